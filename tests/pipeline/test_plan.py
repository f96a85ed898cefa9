"""A plan keeps what nobody asked to change, and always ends in a label."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import (
    IntimateContentError,
    NoFaceInTargetError,
    UnknownProcessorError,
    UsageError,
)
from app.core.types import CropSpec, FaceBatch, FloatArray, RgbImage
from app.inference.spec import ModelZoo
from app.labelling.verify import read_label
from app.media.limits import MediaLimits
from app.pipeline.plan import checked_steps
from app.pipeline.progress import Progress
from app.pipeline.spec import FaceMap, RenderSpec, Step
from app.pipeline.tools import Tools
from app.processors.base import ProcessorOptions, ProcessorSpec
from app.runtime.executor import LocalExecutor
from app.runtime.occupancy import WorkClock
from app.safety.gate import ContentGate


class NoOptions(ProcessorOptions):
    """Nothing to choose."""


class Filled:
    """Gives every face one value, or leaves it as it is."""

    def __init__(self, value: int | None) -> None:
        self._value = value

    def process(self, batch: FaceBatch) -> FaceBatch:
        crops = batch.crops if self._value is None else np.full_like(batch.crops, self._value)
        return FaceBatch(
            crops=crops,
            masks=np.ones_like(batch.masks) * (batch.masks > 0),
            affine=batch.affine,
            landmarks=batch.landmarks,
            identities=batch.identities,
        )


def processor(name: str, order: int, value: int | None) -> ProcessorSpec:
    return ProcessorSpec(
        id=name,
        title=name,
        order=order,
        crop=CropSpec(template="native", size_px=16),
        options=NoOptions,
        build=lambda options, zoo: Filled(value),
    )


PROCESSORS = {spec.id: spec for spec in (processor("same", 10, None), processor("green", 20, 90))}


class StrictGate(ContentGate):
    """Finds every picture of one kind intimate."""

    def scores(self, pictures: list[RgbImage]) -> FloatArray:  # type: ignore[override]
        return np.array([0.99 if (p == 90).mean() > 0.01 else 0.0 for p in pictures], np.float32)


@pytest.fixture(scope="module")
def tools(zoo: ModelZoo) -> Tools:
    return Tools.over(zoo, PROCESSORS, MediaLimits())


@pytest.fixture
def portrait(tmp_path: Path, astronaut: NDArray[np.uint8]) -> Path:
    path = tmp_path / "portrait.png"
    Image.fromarray(astronaut).save(path)
    return path


@pytest.fixture
def clip(tmp_path: Path, astronaut: NDArray[np.uint8]) -> Path:
    """30 frames at uneven times: a plain wall, then the portrait, drifting."""
    path = tmp_path / "clip.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 512, 512, "yuv420p"
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for index in range(30):
            image = np.full_like(astronaut, 200) if index < 5 else np.roll(astronaut, 2 * index, 1)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame = frame.reformat(format="yuv420p")
            frame.pts, frame.time_base = index * 40 + (index % 3) * 7, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


MakeSpec = Callable[..., RenderSpec]


@pytest.fixture
def make_spec(portrait: Path, tmp_path: Path) -> MakeSpec:
    def make(target: Path, output: str, *steps: str, person: int | None = None) -> RenderSpec:
        return RenderSpec(
            sources=(portrait,),
            target=target,
            output=tmp_path / output,
            consent="public-domain",
            steps=tuple(Step(processor=step) for step in steps),
            face_map=FaceMap() if person is None else FaceMap.only(person),
        )

    return make


def render(tools: Tools, spec: RenderSpec) -> list[Progress]:
    told: list[Progress] = []
    LocalExecutor(tools).render(spec, on_progress=told.append)
    return told


@pytest.mark.weights
@pytest.mark.parametrize("output", ["out.png", "out.jpg", "out.webp", "out.tiff"])
def test_every_still_is_labeled(
    output: str, tools: Tools, make_spec: MakeSpec, portrait: Path
) -> None:
    spec = make_spec(portrait, output, "green")
    render(tools, spec)
    assert read_label(spec.output)


@pytest.mark.weights
@pytest.mark.parametrize("output", ["out.mp4", "out.mov", "out.mkv"])
def test_every_video_is_labeled(output: str, tools: Tools, make_spec: MakeSpec, clip: Path) -> None:
    spec = make_spec(clip, output, "green")
    told = render(tools, spec)
    assert read_label(spec.output)
    assert told[-1].frames_done == 30


@pytest.mark.weights
def test_a_processor_that_changes_nothing_leaves_every_pixel(
    tools: Tools, make_spec: MakeSpec, portrait: Path
) -> None:
    spec = make_spec(portrait, "out.png", "same")
    render(tools, spec)
    with Image.open(portrait) as before, Image.open(spec.output) as after:
        assert (np.asarray(before) == np.asarray(after)).all()


@pytest.mark.weights
def test_times_stay_and_faceless_frames_pass(tools: Tools, make_spec: MakeSpec, clip: Path) -> None:
    spec = make_spec(clip, "out.mkv", "green")
    result = LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert result.frames == 30
    assert 23 <= result.frames_swapped <= 25
    with av.open(str(clip)) as before, av.open(str(spec.output)) as after:
        expected = [frame.pts * frame.time_base for frame in before.decode(video=0)]
        got = [frame.pts * frame.time_base for frame in after.decode(video=0)]
    assert got == expected


@pytest.mark.weights
def test_a_clip_without_any_face_comes_out_with_a_word(
    tools: Tools, make_spec: MakeSpec, tmp_path: Path
) -> None:
    path = tmp_path / "wall.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(3):
            image = np.full((64, 64, 3), 99, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    spec = make_spec(path, "out.mp4", "green")
    result = LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert [notice.code for notice in result.notices] == ["face.none_in_target"]
    assert read_label(spec.output)


@pytest.mark.weights
def test_a_picture_without_a_face_is_refused(
    tools: Tools, make_spec: MakeSpec, tmp_path: Path
) -> None:
    path = tmp_path / "wall.png"
    Image.fromarray(np.full((300, 300, 3), 99, np.uint8)).save(path)
    with pytest.raises(NoFaceInTargetError):
        render(tools, make_spec(path, "out.png", "green"))
    assert not (tmp_path / "out.png").exists()


@pytest.mark.weights
def test_only_the_chosen_person_changes(
    tools: Tools, make_spec: MakeSpec, six_people_path: Path, six_people: NDArray[np.uint8]
) -> None:
    spec = make_spec(six_people_path, "out.png", "green", person=3)
    result = LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert result.faces_swapped == 1
    with Image.open(spec.output) as image:
        changed = (np.asarray(image) != six_people).any(2)
    columns = np.flatnonzero(changed.any(0))
    assert 420 < columns.min() < columns.max() < 620


@pytest.mark.weights
def test_content_that_shows_only_in_the_result_is_refused(
    tools: Tools, zoo: ModelZoo, make_spec: MakeSpec, portrait: Path
) -> None:
    strict = Tools(
        **{name: getattr(tools, name) for name in Tools.__slots__ if name != "gate"},
        gate=StrictGate(zoo),
    )
    with pytest.raises(IntimateContentError, match="result"):
        render(strict, make_spec(portrait, "out.png", "green"))
    assert not (portrait.parent / "out.png").exists()


def test_steps_run_in_the_processors_order() -> None:
    steps = (Step(processor="green"), Step(processor="same"))
    assert [step.processor for step in checked_steps(steps, PROCESSORS)] == ["same", "green"]


def test_an_unknown_processor_names_the_known_ones() -> None:
    with pytest.raises(UnknownProcessorError, match="green, same"):
        checked_steps((Step(processor="nose"),), PROCESSORS)


def test_an_unknown_option_names_itself() -> None:
    with pytest.raises(UsageError, match=r"same\.size"):
        checked_steps((Step(processor="same", options={"size": 3}),), PROCESSORS)


def test_no_field_of_a_job_turns_the_label_off() -> None:
    words = " ".join(RenderSpec.model_json_schema()["$defs"]) + " ".join(RenderSpec.model_fields)
    assert not any(word in words.lower() for word in ("label", "mark", "aigc", "gate", "filter"))


@pytest.mark.weights
def test_progress_and_result_tell_how_busy_each_part_is(
    tools: Tools, make_spec: MakeSpec, clip: Path
) -> None:
    device = WorkClock()
    told: list[Progress] = []
    spec = make_spec(clip, "out.mp4", "green")
    result = LocalExecutor(tools, device).render(spec, on_progress=told.append)
    parts = ["decode", "find_faces", "change_faces", "device", "encode"]
    for busy in (told[-1].busy, result.busy):
        assert list(busy) == parts
        assert all(0 <= share <= 1 for share in busy.values())
    assert max(result.busy.values()) > 0.2, "somebody sets the pace"
    # These networks are not counted by this clock.
    assert result.busy["device"] == 0
    assert "device" not in LocalExecutor(tools).render(spec, on_progress=told.append).busy
