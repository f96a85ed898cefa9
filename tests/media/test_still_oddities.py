"""Stills as people really have them, made here: what each comes out as, or the code that refuses it."""

import struct
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps, PngImagePlugin

from app.core.errors import AppError
from app.media.limits import MediaLimits
from app.media.still import read_still, still_info, write_still
from app.media.still_encode import StillEncoding
from app.media.still_types import Still, StillFormat
from tests.media.bombs import png_chunk

XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
LIMITS = MediaLimits()
Pixels = NDArray[Any]


@pytest.fixture
def photo(astronaut: Pixels) -> Image.Image:
    """101 x 67: odd sides, all colors of a photo."""
    return Image.fromarray(astronaut[:134, 150:352]).resize((101, 67))


def again(still: Still, path: Path, name: StillFormat) -> tuple[Still, tuple[str, ...]]:
    """What was written and read, and the codes of what got lost."""
    encoding = StillEncoding(format=name)
    notices = write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
    return read_still(path, LIMITS), tuple(notice.code for notice in notices)


def codes(still: Still) -> tuple[str, ...]:
    return tuple(notice.code for notice in still.notices)


SAMPLINGS = [
    pytest.param(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411, True, id="4:1:1"),
    pytest.param(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440, True, id="4:4:0"),
    pytest.param(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420, False, id="4:2:0"),
    pytest.param(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422, False, id="4:2:2"),
    pytest.param(cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444, False, id="4:4:4"),
]


@pytest.mark.parametrize(("sampling", "is_widened"), SAMPLINGS)
def test_a_jpeg_of_a_rare_sampling_says_that_it_got_a_finer_one(
    sampling: int, is_widened: bool, photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x.jpg"
    bgr = np.ascontiguousarray(np.asarray(photo)[..., ::-1])
    assert cv2.imwrite(str(path), bgr, [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling])
    still = read_still(path, LIMITS)
    written, lost = again(still, tmp_path / "out", "jpeg")
    assert lost == (("still.chroma_widened",) if is_widened else ())
    assert written.picture.size_wh == (101, 67)
    assert again(still, tmp_path / "out", "png")[1] == ()


def test_a_half_wide_chroma_that_is_turned_is_said_to_get_finer(
    photo: Image.Image, tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "x.jpg", subsampling=1, exif=exif)
    still = read_still(tmp_path / "x.jpg", LIMITS)
    assert again(still, tmp_path / "out", "jpeg")[1] == ("still.chroma_widened",)


@pytest.mark.parametrize("strength", [0.3, 0.6, 1.0])
def test_a_tinted_photo_keeps_its_tint(strength: float, photo: Image.Image, tmp_path: Path) -> None:
    gray = np.asarray(photo.convert("L")).astype(np.float32)[..., None]
    tint = gray * (1 - strength + strength * np.array([1.0, 0.85, 0.6]))
    Image.fromarray(tint.astype(np.uint8)).save(tmp_path / "x.png")
    still = read_still(tmp_path / "x.png", LIMITS)
    written, lost = again(still, tmp_path / "out", "png")
    np.testing.assert_array_equal(written.picture.planes[0], tint.astype(np.uint8))
    assert lost == codes(written) == ()


def test_gray_stays_gray_whatever_is_written_into_it(photo: Image.Image, tmp_path: Path) -> None:
    photo.convert("L").save(tmp_path / "x.jpg", quality=95)
    still = read_still(tmp_path / "x.jpg", LIMITS)
    picture = still.picture.copy()
    picture.write(picture.box, np.full((67, 101, 3), (250, 20, 90), np.uint8))
    write_still(tmp_path / "out", still, picture, xmp=XMP, encoding=StillEncoding(format="jpeg"))
    with Image.open(tmp_path / "out") as image:
        assert image.mode == "L"


SMALL_BITS = [
    pytest.param(bits, color_type, wanted, id=f"{bits} bits, {what}")
    for color_type, what, wanted in ((0, "gray", "gray"), (3, "palette", "rgb24"))
    for bits in (1, 2, 4)
]


@pytest.mark.parametrize(("bits", "color_type", "wanted"), SMALL_BITS)
def test_pngs_of_few_bits_keep_their_values(
    bits: int, color_type: int, wanted: str, tmp_path: Path
) -> None:
    """Where nothing is changed, not even the number of bits is."""
    values = np.random.default_rng(bits).integers(0, 1 << bits, (9, 16))
    shifts = np.arange(8 // bits)[::-1] * bits
    packed = (values.reshape(9, -1, 8 // bits) << shifts).sum(-1).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in packed)
    colors = np.random.default_rng(9).integers(0, 256, (1 << bits, 3)).astype(np.uint8)
    palette = png_chunk(b"PLTE", colors.tobytes()) if color_type == 3 else b""
    path = tmp_path / "x.png"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 9, bits, color_type, 0, 0, 0))
        + palette
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )
    shown = colors[values] if color_type == 3 else (values * 255 // ((1 << bits) - 1))
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == wanted
    np.testing.assert_array_equal(still.picture.planes[0], shown)
    written, lost = again(still, tmp_path / "out", "png")
    np.testing.assert_array_equal(written.picture.planes[0], shown)
    assert lost == ()
    assert (tmp_path / "out").read_bytes()[24:26] == bytes((bits, color_type))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "tiff"])
def test_every_format_turns_upright_once(
    kind: StillFormat, orientation: int, photo: Image.Image, tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "x"
    photo.save(path, kind, exif=exif, **({"lossless": True} if kind == "webp" else {}))
    with Image.open(path) as image:
        shown = ImageOps.exif_transpose(image)
        upright_wh, pixels = shown.size, np.asarray(shown.convert("RGB"))
    still = read_still(path, LIMITS)
    assert still_info(path, LIMITS).size_wh == still.picture.size_wh == upright_wh
    np.testing.assert_array_equal(still.picture.planes[0], pixels)
    written, _ = again(still, tmp_path / "out", kind)
    assert written.picture.size_wh == upright_wh
    with Image.open(tmp_path / "out") as image:
        assert image.getexif().get(0x0112, 1) == 1


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "tiff", "bmp", "avif"])
def test_a_file_that_ends_early_is_refused_and_never_black(
    kind: str, share: float, photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    photo.save(path, kind)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(AppError) as caught:
        read_still(path, LIMITS)
    assert caught.value.code in ("media.truncated", "media.damaged")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "tiff", "bmp", "avif"])
def test_a_file_with_flipped_bytes_is_a_picture_or_a_refusal_with_a_code(
    kind: str, seed: int, photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    photo.save(path, kind)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for at in rng.integers(len(data) // 20, len(data), 20):
        data[at] ^= int(rng.integers(1, 256))
    path.write_bytes(bytes(data))
    try:
        still = read_still(path, LIMITS)
    except AppError as error:
        assert error.code.startswith("media.")
    else:
        assert min(still.picture.size_wh) >= 2


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "tiff", "avif"])
def test_a_heic_under_another_name_is_told_by_its_bytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"photo.{kind}"
    path.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(64))
    with pytest.raises(AppError, match="HEIC") as caught:
        read_still(path, LIMITS)
    assert caught.value.code == "media.damaged"


def test_bytes_behind_the_end_do_not_go_on(photo: Image.Image, tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    photo.save(path)
    path.write_bytes(path.read_bytes() + b"PK\x03\x04 a second file")
    again(read_still(path, LIMITS), tmp_path / "out", "jpeg")
    assert b"a second file" not in (tmp_path / "out").read_bytes()


def test_texts_of_a_png_do_not_go_on(photo: Image.Image, tmp_path: Path) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "somebody")
    info.add_itxt("parameters", "a prompt")
    photo.save(tmp_path / "x.png", pnginfo=info)
    again(read_still(tmp_path / "x.png", LIMITS), tmp_path / "out", "png")
    data = (tmp_path / "out").read_bytes()
    assert b"somebody" not in data
    assert b"a prompt" not in data
