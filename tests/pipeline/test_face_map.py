"""Face maps through the whole pipeline, with a processor that paints each face in its source's color."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import Cancelled, NoSuchPersonError, NotFoundError
from app.core.picture import Picture
from app.core.types import CropSpec, Face, FaceBatch, Identity
from app.faces.detector import FaceDetector
from app.inference.spec import ModelZoo
from app.media.limits import MediaLimits
from app.pipeline.progress import Progress, RenderResult
from app.pipeline.recent import RecentFaces
from app.pipeline.source import source_identity
from app.pipeline.spec import FaceMap, OutputChoices, RenderSpec, Step, Timing
from app.pipeline.tools import Tools
from app.processors.base import ProcessorOptions, ProcessorSpec
from app.runtime.executor import LocalExecutor

pytestmark = pytest.mark.weights


class NoOptions(ProcessorOptions):
    """Nothing to choose."""


class Painted:
    """Gives every face a level that only its identity has."""

    def process(self, batch: FaceBatch) -> FaceBatch:
        levels = np.array([level_of(identity) for identity in batch.identities], np.uint8)
        crops = np.broadcast_to(levels[:, None, None, None], batch.crops.shape)
        return replace(batch, crops=crops, masks=np.ones_like(batch.masks) * (batch.masks > 0))


def level_of(identity: Identity) -> int:
    return 40 + int(identity.id[:4], 16) % 180


PAINT = ProcessorSpec(
    id="paint",
    title="paint",
    order=10,
    crop=CropSpec(template="native", size_px=16),
    options=NoOptions,
    build=lambda options, zoo: Painted(),
)


class CountingDetector(FaceDetector):
    """Counts the pictures that were looked at."""

    looks = 0

    def detect(self, pictures: Sequence[Picture], **options: Any) -> list[tuple[Face, ...]]:
        self.looks += len(pictures)
        return super().detect(pictures, **options)


@pytest.fixture(scope="module")
def tools(zoo: ModelZoo) -> Tools:
    return Tools.over(zoo, {"paint": PAINT}, MediaLimits())


@pytest.fixture
def photos(
    tmp_path: Path, astronaut: NDArray[np.uint8], grace_hopper: NDArray[np.uint8]
) -> dict[str, Path]:
    images = {"ada": astronaut, "grace": grace_hopper, "mirrored": astronaut[:, ::-1]}
    paths = {name: tmp_path / f"{name}.png" for name in images}
    for name, image in images.items():
        Image.fromarray(image).save(paths[name])
    return paths


@pytest.fixture
def levels(photos: dict[str, Path], tools: Tools) -> dict[str, int]:
    """The level in which each photo's face is painted."""
    return {name: level_of(source_identity((path,), tools)[0]) for name, path in photos.items()}


@pytest.fixture
def clip(tmp_path: Path, astronaut: NDArray[np.uint8], grace_hopper: NDArray[np.uint8]) -> Path:
    """Two seconds in which two people, Ada at the left, drift to the right; the frames before are empty."""
    pair = np.concatenate([astronaut[:400, 80:400], grace_hopper[:400, 90:490]], axis=1)
    path = tmp_path / "clip.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 720, 400, "yuv444p"
        for index in range(50):
            image = np.full_like(pair, 120) if index < 4 else np.roll(pair, index // 2, axis=1)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 25)
            container.mux(stream.encode(frame.reformat(format="yuv444p")))
        container.mux(stream.encode())
    return path


Render = Callable[..., RenderResult]


@pytest.fixture
def render(tools: Tools, tmp_path: Path) -> Render:
    def run(target: Path, face_map: dict[str, Any], **values: Any) -> RenderResult:
        suffix = target.suffix
        spec = RenderSpec(
            target=target,
            output=tmp_path / f"out{suffix}",
            consent="public-domain",
            steps=(Step(processor="paint"),),
            face_map=FaceMap[Path].model_validate(face_map),
            encoding=OutputChoices(codec="ffv1" if suffix == ".mkv" else "auto"),
            **{"timing": Timing(), **values},
        )
        return LocalExecutor(tools).render(spec, on_progress=lambda _: None)

    return run


def frames_of(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def painted(image: NDArray[np.uint8], level: int) -> tuple[int, int] | None:
    """The columns that have a level in many rows."""
    close = (np.abs(image.astype(int) - level).max(2) <= 2).sum(0) > 40
    columns = np.flatnonzero(close)
    return (int(columns.min()), int(columns.max())) if len(columns) else None


def test_each_person_of_a_picture_gets_their_own_face(
    render: Render, six_people_path: Path, photos: dict[str, Path], levels: dict[str, int]
) -> None:
    choices = [
        {"person": 1, "action": {"photos": [photos["grace"]]}},
        {"person": 6, "action": {"photos": [photos["ada"]]}},
        {"person": 3, "action": "leave"},
    ]
    result = render(six_people_path, {"choices": choices, "others": "blur"})
    assert [(each.who, each.frames) for each in result.people] == [("person 1", 1), ("person 6", 1)]
    assert result.faces_swapped == 5
    with Image.open(result.output) as image:
        pixels = np.asarray(image)
    left, right = painted(pixels, levels["grace"]), painted(pixels, levels["ada"])
    assert left is not None and 20 < left[0] < left[1] < 210
    assert right is not None and 1110 < right[0] < right[1] < 1250


@pytest.mark.parametrize("start_s", [0, 0.8], ids=["whole", "a part"])
def test_a_person_of_a_video_is_the_same_one_in_every_frame(
    start_s: float, render: Render, clip: Path, photos: dict[str, Path], levels: dict[str, int]
) -> None:
    choices = [
        {"person": 1, "action": {"photos": [photos["grace"]]}},
        {"person": 2, "action": {"photos": [photos["ada"]]}},
    ]
    result = render(clip, {"choices": choices, "others": "leave"}, timing=Timing(start_s=start_s))
    frames = frames_of(result.output)
    empty = 4 if start_s == 0 else 0
    assert [each.frames for each in result.people] == [len(frames) - empty] * 2
    for frame in frames[empty:]:
        left, right = painted(frame, levels["grace"]), painted(frame, levels["ada"])
        assert left is not None and right is not None
        assert left[1] < 320 < right[0]


def test_a_reference_photo_finds_the_person_without_a_look_through(
    render: Render, clip: Path, photos: dict[str, Path], levels: dict[str, int]
) -> None:
    choice = {"reference": photos["mirrored"], "action": {"photos": [photos["grace"]]}}
    result = render(clip, {"choices": [choice], "others": "leave"})
    assert [(each.who, each.frames) for each in result.people] == [("reference 1", 46)]
    columns = painted(frames_of(result.output)[20], levels["grace"])
    assert columns is not None and columns[1] < 320


def test_the_others_get_the_source_of_the_request(
    render: Render, clip: Path, photos: dict[str, Path], levels: dict[str, int]
) -> None:
    face_map = {"choices": [{"order": "rightmost", "action": "leave"}]}
    result = render(clip, face_map, sources=(photos["grace"],))
    before, after = frames_of(clip)[20], frames_of(result.output)[20]
    columns = painted(after, levels["grace"])
    assert columns is not None and columns[1] < 320
    assert (before[:, 340:] == after[:, 340:]).all()


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param({"person": 3}, id="a number"),
        pytest.param({"order": "largest", "rank": 3}, id="a rank"),
    ],
)
def test_whom_a_video_does_not_show_is_refused(
    choice: dict[str, Any], render: Render, clip: Path, tmp_path: Path
) -> None:
    with pytest.raises(NoSuchPersonError, match="shows 2 people"):
        render(clip, {"choices": [{**choice, "action": "blur"}], "others": "leave"})
    assert not (tmp_path / "out.mkv").exists()


def test_a_picture_in_which_nobody_is_meant_is_refused(
    render: Render, photos: dict[str, Path]
) -> None:
    choice = {"reference": photos["grace"], "action": "blur"}
    with pytest.raises(NoSuchPersonError, match="none of them is to be changed"):
        render(photos["ada"], {"choices": [choice], "others": "leave"})


def test_whom_a_video_never_shows_is_said(
    render: Render, clip: Path, photos: dict[str, Path], six_people_path: Path
) -> None:
    choice = {"reference": six_people_path, "reference_face": 3, "action": "blur"}
    result = render(clip, {"choices": [choice], "others": "leave"})
    assert [each.frames for each in result.people] == [0]
    assert result.frames_swapped == 0
    assert "face.none_in_target" in [notice.code for notice in result.notices]


def test_a_saved_face_that_is_gone_is_not_found(render: Render, photos: dict[str, Path]) -> None:
    choice = {"person": 1, "action": {"saved": "0" * 32}}
    with pytest.raises(NotFoundError):
        render(photos["ada"], {"choices": [choice], "others": "leave"})


BY_NUMBER = {"choices": [{"person": 2, "action": "source"}], "others": "leave"}
BY_PHOTO = {"choices": [{"reference": "ada", "action": "source"}], "others": "leave"}


@pytest.mark.parametrize(
    ("target", "face_map", "is_looked_through"),
    [
        pytest.param("still", {}, False, id="everybody of a still"),
        pytest.param("still", BY_NUMBER, False, id="a number in a still"),
        pytest.param("video", {}, False, id="everybody of a video"),
        pytest.param("video", BY_PHOTO, False, id="a photo of somebody in a video"),
        pytest.param("video", BY_NUMBER, True, id="a number in a video"),
    ],
)
def test_only_a_video_whose_people_are_numbered_is_looked_at_twice(
    target: str,
    face_map: dict[str, Any],
    is_looked_through: bool,
    tools: Tools,
    zoo: ModelZoo,
    six_people_path: Path,
    clip: Path,
    photos: dict[str, Path],
    tmp_path: Path,
) -> None:
    detector = CountingDetector(zoo)
    is_still = target == "still"
    spec = RenderSpec(
        sources=(photos["ada"],),
        target=six_people_path if is_still else clip,
        output=tmp_path / ("out.png" if is_still else "out.mkv"),
        consent="public-domain",
        steps=(Step(processor="paint"),),
        face_map=FaceMap[str].model_validate(face_map).with_photos(lambda name: photos[name]),
        timing=Timing(end_s=0.32),
    )
    fresh = replace(tools, recent_faces=RecentFaces())
    counting = (
        replace(fresh, still_detector=detector) if is_still else replace(fresh, detector=detector)
    )
    LocalExecutor(counting).render(spec, on_progress=lambda _: None)
    # One look at the photo and one at the still; the part of the video has its few key frames.
    assert detector.looks == 2 if is_still else (detector.looks > 4) is is_looked_through


def test_a_look_through_a_video_can_be_stopped(tools: Tools, clip: Path, tmp_path: Path) -> None:
    spec = RenderSpec(
        target=clip,
        output=tmp_path / "out.mkv",
        consent="public-domain",
        face_map=FaceMap[Path].model_validate(
            {"choices": [{"person": 1, "action": "blur"}], "others": "leave"}
        ),
        steps=(Step(processor="paint"),),
    )
    told: list[Progress] = []
    with pytest.raises(Cancelled):
        LocalExecutor(tools).render(spec, on_progress=told.append, should_stop=lambda: True)
    assert told == []
    assert not (tmp_path / "out.mkv").exists()
