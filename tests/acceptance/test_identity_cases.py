"""Every shared hard case through the whole program, with a processor that gives its crop back unchanged.

Whatever comes out is compared with what went in, sample for sample: the outputs are lossless (FFV1, PNG, GIF, APNG,
WebP at quality 100), so nothing but the program itself could have changed a value.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import AppError
from app.core.picture import Picture
from app.core.types import CropSpec, FaceBatch
from app.inference.spec import ModelZoo
from app.media.decode import VideoReader
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.sniff import MediaKind
from app.media.still import read_still
from app.pipeline.plan import open_plan
from app.pipeline.progress import RenderResult
from app.pipeline.spec import OutputChoices, RenderSpec, Step
from app.pipeline.tools import Tools
from app.processors.base import ProcessorOptions, ProcessorSpec
from app.runtime.executor import LocalExecutor
from tests.acceptance.conftest import Case
from tests.acceptance.test_cases import KNOWN, REFUSED
from tests.acceptance.test_still_cases import REFUSED_BY_PROBE, REFUSED_BY_THE_SWAP

pytestmark = [pytest.mark.slow, pytest.mark.weights]

VIDEOS = tuple(name for name, _ in KNOWN)
ANIMATIONS = {
    MediaKind.GIF: ".gif",
    MediaKind.APNG: ".apng",
    MediaKind.ANIMATED_WEBP: ".webp",
}
MAY_BE_REFUSED = {
    **REFUSED_BY_PROBE,
    **REFUSED_BY_THE_SWAP,
    **{f"img_rotated_{degrees:03}.jpg": "face.none_in_target" for degrees in (45, 90, 135)},
}


@dataclass
class Counting:
    """Gives every crop back, and wants all of it to be put into the picture."""

    rows: int = 0

    def process(self, batch: FaceBatch) -> FaceBatch:
        self.rows += len(batch)
        return replace(batch, masks=np.ones_like(batch.masks))


class NoOptions(ProcessorOptions):
    """There is nothing to choose."""


@dataclass(frozen=True)
class Bench:
    """The program with nothing but that processor."""

    tools: Tools
    processor: Counting
    source: Path

    def spec(self, target: Path, output: Path) -> RenderSpec:
        return RenderSpec(
            sources=(self.source,),
            target=target,
            output=output,
            consent="public-domain",
            steps=(Step(processor="unchanged"),),
            encoding=OutputChoices(quality=100, codec="ffv1", preset="ultrafast"),
        )

    def render(self, target: Path, output: Path) -> RenderResult:
        self.processor.rows = 0
        executor = LocalExecutor(self.tools)
        return executor.render(self.spec(target, output), on_progress=lambda _: None)


@pytest.fixture(scope="module")
def bench(zoo: ModelZoo, assets: Path) -> Bench:
    processor = Counting()
    known = ProcessorSpec(
        id="unchanged",
        title="Unchanged",
        order=10,
        crop=CropSpec(template="native", size_px=16, margin=0.2),
        options=NoOptions,
        build=lambda options, zoo: processor,
    )
    tools = Tools.over(zoo, {known.id: known}, MediaLimits())
    return Bench(tools, processor, assets / "stills" / "frontal_astronaut.png")


def suffix_of(info: MediaInfo) -> str:
    if info.kind == "still":
        return ".png"
    return ANIMATIONS.get(info.container, ".mkv")


def pictures(path: Path) -> list[Picture]:
    if probe(path).kind == "still":
        return [read_still(path, MediaLimits()).picture]
    with VideoReader(path) as reader:
        return [frame.picture for frame in reader.frames()]


def visible(picture: Picture, index: int) -> NDArray[Any]:
    """One plane; colors that nobody sees do not count."""
    plane = picture.planes[index]
    if picture.pixel_format.family == "rgb" and picture.pixel_format.has_alpha:
        return np.where(plane[..., 3:] == 0, 0, plane)
    return plane


def assert_equal(before: Picture, after: Picture) -> None:
    assert after.pixel_format == before.pixel_format
    assert after.size_wh == before.size_wh
    for index in range(len(before.planes)):
        np.testing.assert_array_equal(visible(before, index), visible(after, index))


@pytest.mark.parametrize("name", VIDEOS)
def test_no_sample_of_any_video_changes(
    name: str, cases: dict[str, Case], bench: Bench, tmp_path: Path
) -> None:
    path = cases[name].path
    output = tmp_path / f"out{suffix_of(probe(path))}"
    result = bench.render(path, output)
    before, after = pictures(path), pictures(output)
    assert len(after) == len(before) == result.frames
    for was, now in zip(before, after, strict=True):
        assert_equal(was, now)
    assert result.faces_swapped == bench.processor.rows > 0


def test_no_sample_of_any_still_changes(
    cases: dict[str, Case], bench: Bench, tmp_path: Path
) -> None:
    refused = {}
    for name, case in cases.items():
        if name in VIDEOS or name in REFUSED:
            continue
        spec = bench.spec(case.path, tmp_path / "out.png")
        try:
            with open_plan(spec, bench.tools) as plan:
                windows = plan.windows()
                for stage in plan.stages:
                    windows = stage(windows)
                ((frame,),) = windows
                plan.sink.write(frame)
        except AppError as error:
            refused[name] = error.code
            continue
        (before,) = pictures(case.path)
        assert frame.faces_swapped > 0, name
        assert_equal(before, frame.picture)
        if before.pixel_format.family != "yuv":
            (written,) = pictures(tmp_path / "out.png")
            assert_equal(before, written)
    assert refused == {name: code for name, code in MAY_BE_REFUSED.items() if name in refused}


def test_every_case_that_is_not_refused_is_compared(cases: dict[str, Case]) -> None:
    stills = {name for name, case in cases.items() if case.group in ("still", "name", "broken")}
    assert len({*VIDEOS, *stills, *REFUSED} & cases.keys()) == len(cases)
