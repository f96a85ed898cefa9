"""A film that goes through several times stays what it is: no pass shifts a color or a range."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.planes import Plane
from app.core.types import CropSpec, FaceBatch
from app.inference.spec import ModelZoo
from app.media.encodable import EncodableFrames
from app.media.frames import picture_of
from app.media.limits import MediaLimits
from app.pipeline.stages import processed, tracked
from app.pipeline.tools import Tools
from tests.media.clips import stored_frames
from tests.pipeline.lossless import given, rendered, write_ffv1

PASSES = 5
SIZE_WH = (192, 108)
CROP = CropSpec(template="native", size_px=16)
COLORS = (
    (235, 128, 128), (162, 44, 142), (131, 156, 44), (112, 72, 58),
    (84, 184, 198), (65, 100, 212), (35, 212, 114), (16, 128, 128),
)  # fmt: skip
"""Luma and chroma of 75 % bars, as BT.601 has them in 8 bits of limited range; other matrices show other colors."""


class Refusing:
    """A processor that must not be asked: there is no face."""

    def process(self, batch: FaceBatch) -> FaceBatch:
        raise AssertionError("no face was found, so there is nothing to process")


def bars(name: str, tags: ColorTags) -> Picture:
    """Eight bars over a ramp that goes through every code value, also those outside limited range."""
    fmt = PIXEL_FORMATS[name]
    top = (1 << fmt.bits) - 1
    planes: list[Plane] = []
    for index, shape in enumerate(fmt.plane_shapes(SIZE_WH)):
        h, w = shape
        columns = np.arange(w) * len(COLORS) // w
        plane = np.repeat(np.array([c[index] for c in COLORS])[columns][None], h, 0)
        plane = plane << (fmt.bits - 8)
        plane[h * 2 // 3 :] = np.linspace(0, top, w).astype(int)
        planes.append(plane.astype(fmt.dtype))
    return Picture(tuple(planes), fmt, tags)


TAGS = [
    pytest.param(ColorTags(matrix=1, is_full_range=False), id="BT.709 limited"),
    pytest.param(ColorTags(matrix=1, is_full_range=True), id="BT.709 full"),
    pytest.param(ColorTags(matrix=6, is_full_range=False), id="BT.601 limited"),
    pytest.param(ColorTags(matrix=5, is_full_range=True), id="BT.601 full"),
    pytest.param(ColorTags(), id="nothing said"),
]
FORMATS = ("yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv444p12le")


def errors(before: list[Picture], after: list[Picture]) -> Iterator[float]:
    for a, b in zip(before, after, strict=True):
        for plane, other in zip(a.planes, b.planes, strict=True):
            yield float(np.abs(plane.astype(np.int64) - other).mean())


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("name", FORMATS)
def test_five_passes_in_a_row_change_nothing(name: str, tags: ColorTags, tmp_path: Path) -> None:
    first = [bars(name, tags)] * 2
    path = tmp_path / "0.mkv"
    write_ffv1(path, first)
    for number in range(1, PASSES + 1):
        output = tmp_path / f"{number}.mkv"
        _, after = rendered(path, output, given(()), processed(Refusing(), CROP))
        path = output
        assert set(errors(first, after)) == {0.0}
        assert [picture.tags for picture in after] == [tags] * 2


@pytest.mark.weights
@pytest.mark.parametrize("tags", TAGS)
def test_five_passes_with_a_look_for_faces_change_nothing(
    tags: ColorTags, zoo: ModelZoo, tmp_path: Path
) -> None:
    tools = Tools.over(zoo, {}, MediaLimits())
    first = [bars("yuv420p", tags)] * 2
    path = tmp_path / "0.mkv"
    write_ffv1(path, first)
    for number in range(1, PASSES + 1):
        output = tmp_path / f"{number}.mkv"
        stages = tracked(tools.tracker("video")), processed(Refusing(), CROP)
        _, after = rendered(path, output, *stages)
        path = output
        assert set(errors(first, after)) == {0.0}
        assert [picture.tags for picture in after] == [tags] * 2


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("name", FORMATS)
def test_the_encoder_gets_the_very_samples_that_the_decoder_gave(
    name: str, tags: ColorTags, tmp_path: Path
) -> None:
    path = tmp_path / "in.mkv"
    write_ffv1(path, [bars(name, tags)])
    (decoded,) = stored_frames(path)
    before, _ = rendered(path, tmp_path / "out.mkv")
    given_to_it = EncodableFrames(PIXEL_FORMATS[name], tags).of(before[0])
    assert given_to_it.format.name == name
    assert set(errors([picture_of(decoded)], [picture_of(given_to_it)])) == {0.0}
    assert int(given_to_it.colorspace) == tags.matrix
