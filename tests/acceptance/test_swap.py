"""The main job on real pictures and clips: who changes, who does not, and what is kept."""

import math
from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps

from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec
from app.workbench import Workbench

STILLS = (
    "ai_generated_woman.jpg", "beard_man.jpg", "black_white_man.jpg", "closed_eyes_woman.jpg",
    "dark_skin_portrait_a.jpg", "dark_skin_speech_a2.jpg", "elderly_man.jpg", "glasses_curly_hair.jpg",
    "glasses_three_people.jpg", "group_outdoor.jpg", "group_six_t1.jpg", "hair_over_face_down.jpg",
    "hand_over_mouth.jpg", "looking_up.jpg", "low_light_blur.jpg", "mask_on_face.jpg",
    "open_mouth_man.jpg", "partial_face_at_edge.jpg", "profile_right.jpg", "rotated_90.jpg",
    "two_people_profileish.jpg", "crowd_bw_1927.jpg",
)  # fmt: skip
CLIPS = ("talk_woman_flag_audio.mp4", "halfbody_woman_720p_audio.mp4")


def swap(workbench: Workbench, assets: Path, target: Path, output: Path) -> RenderResult:
    source = assets / "stills" / "frontal_astronaut.png"
    return workbench.render(
        RenderSpec(sources=(source,), target=target, output=output, consent="permission")
    )


def upright(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


@pytest.fixture
def lossless_target(assets: Path, tmp_path: Path) -> Iterator[object]:
    def make(name: str) -> Path:
        path = tmp_path / f"{Path(name).stem}.png"
        Image.fromarray(upright(assets / "stills" / name)).save(path)
        return path

    yield make


def outside_mask(workbench: Workbench, path: Path) -> NDArray[np.bool_]:
    found = workbench.find_faces(path)
    mask = np.ones(found.size_wh[::-1], bool)
    for face in found.faces:
        x0, y0, x1, y1 = face.bbox_xyxy
        rows = slice(max(0, math.floor(y0)), max(0, math.ceil(y1)))
        mask[rows, max(0, math.floor(x0)) : max(0, math.ceil(x1))] = False
    return mask


@pytest.mark.parametrize("name", STILLS)
def test_a_still_changes_in_its_faces_and_nowhere_else(
    name: str, workbench: Workbench, assets: Path, tmp_path: Path, lossless_target: object
) -> None:
    target = lossless_target(name)  # type: ignore[operator]
    output = tmp_path / "out.png"
    result = swap(workbench, assets, target, output)
    before, after = upright(target), upright(output)
    outside = outside_mask(workbench, target)
    assert result.faces_swapped >= 1
    assert before.shape == after.shape
    assert (before[outside] == after[outside]).all()
    assert (before[~outside] != after[~outside]).any()


def test_all_six_people_of_the_group_change(
    workbench: Workbench, assets: Path, tmp_path: Path
) -> None:
    target, output = assets / "stills" / "group_six_t1.jpg", tmp_path / "out.jpg"
    result = swap(workbench, assets, target, output)
    before, after = upright(target), upright(output)
    faces = workbench.find_faces(target).faces
    assert result.faces_swapped == len(faces) == 6
    for face in faces:
        x0, y0, x1, y1 = (int(value) for value in face.bbox_xyxy)
        change = cv2.absdiff(before[y0:y1, x0:x1], after[y0:y1, x0:x1])
        assert change.mean() > 4


@pytest.mark.parametrize(
    "source",
    ["frontal_astronaut.png", "dark_skin_portrait_a.jpg", "elderly_man.jpg", "beard_man.jpg"],
)
def test_in_hot_light_new_faces_are_no_brighter_than_the_old(
    source: str, workbench: Workbench, assets: Path, tmp_path: Path, lossless_target: object
) -> None:
    target, output = lossless_target("group_six_t1.jpg"), tmp_path / "out.png"  # type: ignore[operator]
    given = assets / "stills" / source
    workbench.render(
        RenderSpec(sources=(given,), target=target, output=output, consent="permission")
    )
    before, after = (cv2.cvtColor(upright(path), cv2.COLOR_RGB2GRAY) for path in (target, output))
    for face in workbench.find_faces(target).faces:
        x0, y0, x1, y1 = face.bbox_xyxy
        inner = np.s_[
            round(0.8 * y0 + 0.2 * y1) : round(0.2 * y0 + 0.8 * y1),
            round(0.8 * x0 + 0.2 * x1) : round(0.2 * x0 + 0.8 * x1),
        ]
        assert np.percentile(after[inner], 98) <= np.percentile(before[inner], 99) + 3


def packets(path: Path, kind: str) -> list[tuple[object, ...]]:
    with av.open(str(path)) as container:
        stream = next(each for each in container.streams if each.type == kind)
        return [
            (packet.pts * packet.time_base, bytes(packet) if kind == "audio" else b"")
            for packet in container.demux(stream)
            if packet.pts is not None
        ]


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_keeps_frames_times_and_sound(
    name: str, workbench: Workbench, assets: Path, tmp_path: Path
) -> None:
    target, output = assets / "clips" / name, tmp_path / "out.mp4"
    result = swap(workbench, assets, target, output)
    assert result.frames_swapped == result.frames
    assert sorted(packets(output, "video")) == sorted(packets(target, "video"))
    assert packets(output, "audio") == packets(target, "audio")
