"""Pictures of few bits and of a palette: back as they were while nothing is changed, and wider, with a word, after."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.picture import PixelBox
from app.core.types import Notice
from app.media.limits import MediaLimits
from app.media.still import read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_few import FewColors, in_few_colors
from app.media.still_types import Still, StillFormat
from tests.media.bombs import png_chunk

LIMITS = MediaLimits()
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
HEAD = slice(24, 26)
"""Bits and color type in a PNG."""

Pixels = NDArray[Any]


@pytest.fixture
def photo(astronaut: Pixels) -> Image.Image:
    return Image.fromarray(astronaut[:134, 150:352]).resize((101, 67))


def png(values: Pixels, bits: int, color_type: int, *more: tuple[bytes, bytes]) -> bytes:
    h, w = values.shape
    padded = np.pad(values, ((0, 0), (0, -w % (8 // bits))))
    shifts = np.arange(8 // bits)[::-1] * bits
    packed = (padded.reshape(h, -1, 8 // bits) << shifts).sum(-1).astype(np.uint8)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in packed))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", w, h, bits, color_type, 0, 0, 0)),
        *more,
        (b"IDAT", body),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(name, content) for name, content in parts)


def again(
    still: Still, path: Path, name: StillFormat = "png", *, changed: bool = False
) -> tuple[Still, tuple[Notice, ...]]:
    picture = still.picture
    if changed:
        picture = picture.copy()
        ramp = np.linspace(20, 235, 64).astype(np.uint8).reshape(8, 8)
        picture.write(PixelBox(2, 2, 10, 10), np.stack([ramp, ramp[::-1], ramp.T], -1))
    notices = write_still(path, still, picture, xmp=XMP, encoding=StillEncoding(format=name))
    return read_still(path, LIMITS), notices


@pytest.mark.parametrize("width", [16, 17, 23], ids=lambda w: f"{w} wide")
@pytest.mark.parametrize("clear_share", ["some", "none"])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_gray_of_few_bits_with_a_clear_value_keeps_both(
    bits: int, clear_share: str, width: int, tmp_path: Path
) -> None:
    """A value says by itself that it is nothing, also where no pixel has it."""
    clear = (1 << bits) - 1
    values = np.random.default_rng(bits).integers(0, clear + (clear_share == "some"), (9, width))
    path = tmp_path / "x.png"
    path.write_bytes(png(values, bits, 0, (b"tRNS", struct.pack(">H", clear))))
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == "ya8"
    np.testing.assert_array_equal(still.picture.planes[0], values * (255 // clear))
    np.testing.assert_array_equal(still.picture.planes[1], np.where(values == clear, 0, 255))
    written, notices = again(still, tmp_path / "out")
    assert notices == ()
    assert (tmp_path / "out").read_bytes()[HEAD] == bytes((bits, 0))
    for before, after in zip(still.picture.planes, written.picture.planes, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("alpha", [b"", b"\x00", b"\x80\xff"], ids=["opaque", "clear", "half"])
def test_a_palette_keeps_its_bits_and_its_transparency(
    bits: int, alpha: bytes, tmp_path: Path
) -> None:
    values = np.random.default_rng(bits).integers(0, 1 << bits, (20, 21))
    colors = np.random.default_rng(9).integers(0, 256, (1 << bits, 3)).astype(np.uint8)
    more = [(b"PLTE", colors.tobytes()), *([(b"tRNS", alpha)] if alpha else [])]
    path = tmp_path / "x.png"
    path.write_bytes(png(values, bits, 3, *more))
    still = read_still(path, LIMITS)
    written, notices = again(still, tmp_path / "out")
    assert notices == ()
    assert (tmp_path / "out").read_bytes()[HEAD] == bytes((bits, 3))
    np.testing.assert_array_equal(still.picture.planes[0], written.picture.planes[0])
    with Image.open(tmp_path / "out") as seen, Image.open(path) as before:
        np.testing.assert_array_equal(
            np.asarray(seen.convert("RGBA")), np.asarray(before.convert("RGBA"))
        )


FEW = [
    pytest.param("1", {}, 1, id="black and white"),
    pytest.param("P", {"bits": 2}, 2, id="a palette of four"),
    pytest.param("P", {}, 8, id="a palette"),
]


@pytest.mark.parametrize(("mode", "settings", "bits"), FEW)
def test_a_changed_face_gets_8_bits_and_it_is_said(
    mode: str, settings: dict[str, Any], bits: int, photo: Image.Image, tmp_path: Path
) -> None:
    image = photo.quantize(1 << bits) if mode == "P" else photo.convert("1")
    path = tmp_path / "x.png"
    image.save(path, **settings)
    still = read_still(path, LIMITS)
    assert still.few == FewColors(bits=bits, has_palette=mode == "P")
    written, notices = again(still, tmp_path / "out", changed=True)
    assert [notice.code for notice in notices] == ["still.depth_raised"]
    assert written.few is None
    before, after = still.picture.planes[0], written.picture.planes[0]
    np.testing.assert_array_equal(before[12:], after[12:])
    assert len(np.unique(after[2:10, 2:10])) > 30


def test_a_face_of_few_colors_changed_within_them_keeps_the_palette(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    Image.new("P", (16, 16), 3).save(path)
    still = read_still(path, LIMITS)
    picture = still.picture.copy()
    picture.write(PixelBox(2, 2, 10, 10), np.full((8, 8, 3), 77, np.uint8))
    notices = write_still(
        tmp_path / "out", still, picture, xmp=XMP, encoding=StillEncoding(format="png")
    )
    assert (notices, (tmp_path / "out").read_bytes()[25]) == ((), 3)
    written = read_still(tmp_path / "out", LIMITS).picture
    np.testing.assert_array_equal(written.planes[0], picture.planes[0])


@pytest.mark.parametrize("target", ["webp", "tiff"])
def test_another_format_was_asked_for_and_needs_no_word(
    target: StillFormat, photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x.png"
    photo.convert("1").save(path)
    assert again(read_still(path, LIMITS), tmp_path / "out", target)[1] == ()


@pytest.mark.parametrize("mode", ["1", "P"])
def test_a_tiff_of_few_bits_comes_back_with_8_and_it_is_said(
    mode: str, photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x.tiff"
    photo.convert(mode).save(path)
    written, notices = again(read_still(path, LIMITS), tmp_path / "out", "tiff")
    assert [notice.code for notice in notices] == ["still.depth_raised"]
    with Image.open(path) as before:
        shown = np.asarray(before.convert("L" if mode == "1" else "RGB"))
    np.testing.assert_array_equal(written.picture.planes[0], shown)


@pytest.mark.parametrize("mode", ["L", "RGB", "LA", "RGBA"])
def test_pictures_of_8_bits_are_none_of_few(mode: str, photo: Image.Image, tmp_path: Path) -> None:
    for suffix in ("png", "tiff"):
        out = io.BytesIO()
        photo.convert(mode).save(out, suffix)
        path = tmp_path / f"x.{suffix}"
        path.write_bytes(out.getvalue())
        assert read_still(path, LIMITS).few is None


@pytest.mark.parametrize(
    ("gray", "alpha"),
    [
        pytest.param([0, 85, 170, 255], [255, 255, 255, 255], id="every value is in use"),
        pytest.param(
            [0, 0, 170, 255], [0, 255, 255, 255], id="a value is clear here and not there"
        ),
        pytest.param([0, 85, 170, 255], [0, 0, 255, 255], id="two values are clear"),
        pytest.param([0, 85, 170, 255], [128, 255, 255, 255], id="half clear"),
        pytest.param([0, 85, 171, 255], [255, 255, 255, 0], id="a shade between"),
    ],
)
def test_gray_that_does_not_fit_is_not_forced(gray: list[int], alpha: list[int]) -> None:
    pixels = np.stack([np.array([gray], np.uint8), np.array([alpha], np.uint8)], -1)
    assert in_few_colors(pixels, FewColors(bits=2, has_palette=False)) is None
