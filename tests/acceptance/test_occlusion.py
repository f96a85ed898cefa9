"""What lies in front of a face stays, on real pictures: a bar that passes is kept, a bare face loses nothing."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.mesh_regions import FACE_OVAL
from app.core.types import Frame, Identity
from app.faces.align import AlignedFaces, align
from app.faces.masks import ColorMasker
from app.media.decode import VideoReader
from app.media.limits import MediaLimits
from app.media.still import read_still
from app.pipeline.source import source_identity
from app.pipeline.stages import into_windows
from app.pipeline.tools import Tools
from app.processors.face_swapper import PROCESSOR
from tests.acceptance.conftest import SHARED

BARE = (
    "ai_generated_woman.jpg", "beard_man.jpg", "black_white_man.jpg", "closed_eyes_woman.jpg",
    "dark_skin_portrait_a.jpg", "dark_skin_speech_a2.jpg", "elderly_man.jpg", "frontal_astronaut.png",
    "group_outdoor.jpg", "group_six_t1.jpg", "looking_up.jpg", "low_light_blur.jpg", "open_mouth_man.jpg",
    "profile_right.jpg", "two_people_profileish.jpg", "crowd_bw_1927.jpg",
)  # fmt: skip


@pytest.fixture(scope="module")
def tools(zoo: object) -> Tools:
    return Tools.over(zoo, {PROCESSOR.id: PROCESSOR}, MediaLimits())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def identity(tools: Tools, assets: Path) -> Identity:
    return source_identity((assets / "stills" / "frontal_astronaut.png",), tools)[0]


@pytest.fixture(scope="module")
def bar_clip(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    made = subprocess.run(
        [sys.executable, str(SHARED / "assets" / "make_cases.py"), str(folder), "--only", "motion_occluding_bar"],
        check=False, capture_output=True,
    )  # fmt: skip
    clip = folder / "motion_occluding_bar.mp4"
    if made.returncode or not clip.is_file():
        pytest.skip("the case with the bar cannot be made here")
    return clip


def chosen(frame: Frame, identity: Identity) -> Frame:
    return replace(frame, faces=tuple(replace(face, identity=identity) for face in frame.faces))


def oval(points: NDArray[np.float32], side: int) -> NDArray[np.bool_]:
    canvas = np.zeros((side, side), np.uint8)
    cv2.fillPoly(canvas, [np.rint(points[list(FACE_OVAL), :2]).astype(np.int32)], (1,))
    return canvas > 0


def covered(faces: AlignedFaces) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """What each row's mask covers, and the row's oval."""
    batch = faces.batch
    masks = ColorMasker().masks(batch.crops, batch.landmarks, ())
    side = masks.shape[1]
    return [
        (mask < 0.5, oval(points, side))
        for mask, points in zip(masks, batch.landmarks, strict=True)
    ]


@pytest.mark.weights
def test_a_passing_bar_stays_and_nothing_else(
    tools: Tools, identity: Identity, bar_clip: Path
) -> None:
    truth = json.loads((bar_clip.parent / "truth" / "motion_occluding_bar.json").read_text())[
        "frames"
    ]
    tracker, overlaps, false = tools.tracker("video"), [], []
    with VideoReader(bar_clip, MediaLimits()) as reader:
        for window in map(tracker.track, into_windows(reader.frames())):
            window = tuple(chosen(frame, identity) for frame in window)
            for faces in align(window, PROCESSOR.crop):
                for (cover, face), slot, affine in zip(
                    covered(faces), faces.slots, faces.batch.affine, strict=True
                ):
                    x0, _, x1, _ = truth[window[slot.frame].index]["bar"]
                    bar = np.zeros_like(face)
                    left, right = (max(0, round(float(x + affine[0, 2]))) for x in (x0, x1))
                    bar[:, left:right] = True
                    wanted, got = bar & face, cover & face
                    if wanted.sum() > 0.03 * face.sum():
                        overlaps.append((wanted & got).sum() / (wanted | got).sum())
                    elif not wanted.any():
                        false.append(got.sum() / face.sum())
    assert len(overlaps) > 20
    assert np.mean(overlaps) > 0.9
    assert np.min(overlaps) > 0.7
    assert np.mean(false) < 0.005


@pytest.mark.weights
@pytest.mark.parametrize("name", BARE)
def test_a_bare_face_loses_nothing(
    name: str, tools: Tools, identity: Identity, assets: Path
) -> None:
    picture = read_still(assets / "stills" / name, MediaLimits()).picture
    frame = Frame(
        index=0, pts=0, time_base=Fraction(1), picture=picture, faces=tools.faces_of(picture)
    )
    shares = [
        (cover & face).sum() / face.sum()
        for faces in align((chosen(frame, identity),), PROCESSOR.crop)
        for cover, face in covered(faces)
    ]
    assert shares
    assert np.mean(shares) < 0.02
    assert np.max(shares) < 0.1
