import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from app.core.errors import (
    BadDimensionsError,
    DamagedMediaError,
    EmptyMediaError,
    MediaError,
    MediaNotFoundError,
    MediaTooLargeError,
    TruncatedMediaError,
    UnsupportedOutputError,
    UnsupportedTypeError,
    UnwritableOutputError,
)
from app.media.limits import MediaLimits
from app.media.packets import xmp_packets
from app.media.still import output_format, read_still, still_info, write_still
from app.media.still_encode import StillEncoding
from app.media.still_types import Still, StillFormat

LIMITS = MediaLimits()
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
Pixels = NDArray[Any]
Save = Callable[..., Path]


@pytest.fixture
def photo(astronaut: Pixels) -> Image.Image:
    """96 x 64, with all colors of a photo, and its corners all different."""
    return Image.fromarray(astronaut[:256, :384]).resize((96, 64))


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def save(image: Image.Image, name: str, **settings: object) -> Path:
        path = tmp_path / name
        image.save(path, **settings)
        return path

    return save


def with_alpha(image: Image.Image) -> Image.Image:
    image = image.copy()
    ramp = np.arange(image.width * image.height).reshape(image.height, image.width) % 256
    image.putalpha(Image.fromarray(ramp.astype(np.uint8)))
    return image


def png_bytes(pixels: Pixels, color_type: int, extra: bytes = b"") -> bytes:
    """A 16-bit PNG."""
    h, w = pixels.shape[:2]
    rows = pixels.astype(">u2").reshape(h, -1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return png_of(struct.pack(">IIBBBBB", w, h, 16, color_type, 0, 0, 0), extra, body)


def png_of(head: bytes, extra: bytes = b"", body: bytes = b"") -> bytes:
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", head)
        + extra
        + png_chunk(b"IDAT", body)
        + png_chunk(b"IEND", b"")
    )


def png_chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def written(still: Still, path: Path, name: StillFormat, quality: int = 80) -> Still:
    """The still written and read again."""
    encoding = StillEncoding(format=name, quality=quality)
    write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
    assert xmp_packets(path) == (XMP,)
    return read_still(path, LIMITS)


def assert_same_planes(a: Still, b: Still) -> None:
    assert a.picture.pixel_format == b.picture.pixel_format
    for plane, other in zip(a.picture.planes, b.picture.planes, strict=True):
        np.testing.assert_array_equal(plane, other)


LAYOUTS = [
    pytest.param("1", "x.png", {}, "gray", id="1-bit PNG"),
    pytest.param("L", "x.png", {}, "gray", id="gray PNG"),
    pytest.param("LA", "x.png", {}, "ya8", id="gray PNG with alpha"),
    pytest.param("L", "x.png", {"transparency": 7}, "ya8", id="gray PNG with a clear gray"),
    pytest.param("RGB", "x.png", {}, "rgb24", id="PNG"),
    pytest.param("RGB", "x.png", {"transparency": (1, 2, 3)}, "rgba", id="PNG with a clear color"),
    pytest.param("RGBA", "x.png", {}, "rgba", id="PNG with alpha"),
    pytest.param("P", "x.png", {}, "rgb24", id="palette PNG"),
    pytest.param("P", "x.png", {"transparency": 3}, "rgba", id="palette PNG with a clear entry"),
    pytest.param("I;16", "x.png", {}, "gray16le", id="16-bit gray PNG"),
    pytest.param("RGB", "x.webp", {"lossless": True}, "rgb24", id="lossless WebP"),
    pytest.param(
        "RGBA", "x.webp", {"lossless": True, "exact": True}, "rgba", id="lossless WebP with alpha"
    ),
    pytest.param("L", "x.tiff", {}, "gray", id="gray TIFF"),
    pytest.param("LA", "x.tiff", {}, "ya8", id="gray TIFF with alpha"),
    pytest.param("RGB", "x.tiff", {"compression": "tiff_lzw"}, "rgb24", id="TIFF"),
    pytest.param("RGBA", "x.tiff", {}, "rgba", id="TIFF with alpha"),
    pytest.param("I;16", "x.tiff", {}, "gray16le", id="16-bit gray TIFF"),
    pytest.param("RGB", "x.bmp", {}, "rgb24", id="BMP"),
    pytest.param("P", "x.gif", {}, "rgb24", id="GIF"),
]


def in_mode(photo: Image.Image, mode: str) -> Image.Image:
    if mode == "I;16":
        return Image.fromarray(np.asarray(photo.convert("L")).astype(np.uint16) * 257 + 3)
    return with_alpha(photo.convert(mode[:-1])) if mode.endswith("A") else photo.convert(mode)


@pytest.mark.parametrize(("mode", "name", "settings", "layout"), LAYOUTS)
def test_a_lossless_still_comes_back_value_for_value(
    photo: Image.Image, save: Save, mode: str, name: str, settings: dict[str, Any], layout: str
) -> None:
    path = save(in_mode(photo, mode), name, **settings)
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == layout
    assert still.is_lossless
    target = output_format(Path("result"), still.format)
    assert_same_planes(still, written(still, path.with_name("result"), target))


@pytest.mark.parametrize(("mode", "name", "settings", "layout"), LAYOUTS)
def test_the_header_tells_what_the_pixels_will_be(
    photo: Image.Image, save: Save, mode: str, name: str, settings: dict[str, Any], layout: str
) -> None:
    info = still_info(save(in_mode(photo, mode), name, **settings), LIMITS)
    assert (info.kind, info.size_wh, info.pixel_format) == ("still", (96, 64), layout)
    assert info.bits == (16 if "16" in layout else 8)
    assert info.has_alpha == (layout in ("ya8", "rgba"))


@pytest.mark.parametrize(
    ("color_type", "channels", "layout"),
    [
        pytest.param(0, 1, "gray16le", id="gray"),
        pytest.param(4, 2, "ya16le", id="gray with alpha"),
        pytest.param(2, 3, "rgb48le", id="RGB"),
        pytest.param(6, 4, "rgba64le", id="RGB with alpha"),
    ],
)
def test_16_bits_stay_16_bits(tmp_path: Path, color_type: int, channels: int, layout: str) -> None:
    rng = np.random.default_rng(5)
    pixels = rng.integers(0, 65_536, (24, 31, channels), np.uint16)
    path = tmp_path / "deep.png"
    path.write_bytes(png_bytes(pixels, color_type))
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == layout
    np.testing.assert_array_equal(np.dstack(still.picture.planes), pixels)
    assert_same_planes(still, written(still, tmp_path / "again", "png"))
    in_tiff = np.dstack(written(still, tmp_path / "again", "tiff").picture.planes)
    np.testing.assert_array_equal(in_tiff[..., 0], pixels[..., 0])
    np.testing.assert_array_equal(in_tiff[..., -1], pixels[..., -1])


@pytest.mark.parametrize(
    ("color_type", "channels", "clear"),
    [
        pytest.param(0, 1, b"\x12\x34", id="gray"),
        pytest.param(2, 3, b"\x12\x34" * 3, id="RGB"),
    ],
)
def test_a_clear_color_of_16_bits_becomes_alpha(
    tmp_path: Path, color_type: int, channels: int, clear: bytes
) -> None:
    pixels = np.full((4, 6, channels), 0x4321, np.uint16)
    pixels[1, 2] = 0x1234
    path = tmp_path / "deep.png"
    path.write_bytes(png_bytes(pixels, color_type, png_chunk(b"tRNS", clear)))
    values = np.dstack(read_still(path, LIMITS).picture.planes)
    assert values[1, 2, -1] == 0
    assert (values[..., -1] == 65_535).sum() == 23


def exif_bytes(**tags: object) -> bytes:
    exif = Image.Exif()
    for name, value in tags.items():
        exif[int(name.removeprefix("t"), 16)] = value
    return exif.tobytes()


UNTURNED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize("suffix", [".png", ".webp", ".tiff"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_comes_out_upright(
    photo: Image.Image, save: Save, orientation: int, suffix: str
) -> None:
    operation = UNTURNED[orientation]
    stored = photo if operation is None else photo.transpose(operation)
    settings = {"lossless": True} if suffix == ".webp" else {}
    path = save(stored, "turned" + suffix, exif=exif_bytes(t0112=orientation), **settings)
    still = read_still(path, LIMITS)
    np.testing.assert_array_equal(still.picture.planes[0], np.asarray(photo))
    assert still_info(path, LIMITS).size_wh == (96, 64)
    again = written(still, path.with_name("again"), still.format)
    assert_same_planes(still, again)


@pytest.mark.parametrize(
    ("orientation", "rotation_deg", "is_mirrored"),
    [
        *((1, 0, False), (2, 0, True), (3, 180, False), (4, 180, True)),
        *((5, 270, True), (6, 90, False), (7, 90, True), (8, 270, False)),
    ],
)
def test_the_header_tells_how_the_picture_lies(
    photo: Image.Image, save: Save, orientation: int, rotation_deg: int, is_mirrored: bool
) -> None:
    info = still_info(save(photo, "x.jpg", exif=exif_bytes(t0112=orientation)), LIMITS)
    assert (info.rotation_deg, info.is_mirrored) == (rotation_deg, is_mirrored)


@pytest.mark.parametrize("orientation", [0, 9, 65_535])
def test_an_orientation_that_does_not_exist_is_none(
    photo: Image.Image, save: Save, orientation: int
) -> None:
    still = read_still(save(photo, "x.png", exif=exif_bytes(t0112=orientation)), LIMITS)
    np.testing.assert_array_equal(still.picture.planes[0], np.asarray(photo))


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("is_progressive", [False, True])
def test_a_jpeg_is_coded_again_as_it_was(
    photo: Image.Image, save: Save, subsampling: int, is_progressive: bool
) -> None:
    path = save(photo, "x.jpg", quality=71, subsampling=subsampling, progressive=is_progressive)
    still = read_still(path, LIMITS)
    again = written(still, path.with_name("again"), "jpeg", quality=3)
    assert again.jpeg == still.jpeg
    assert still.jpeg is not None
    assert (still.jpeg.subsampling, still.jpeg.is_progressive) == (subsampling, is_progressive)
    change = again.picture.planes[0].astype(int) - still.picture.planes[0]
    assert np.abs(change).mean() < 1.0


def test_a_gray_jpeg_stays_gray(photo: Image.Image, save: Save) -> None:
    still = read_still(save(photo.convert("L"), "x.jpg", quality=90), LIMITS)
    again = written(still, save(photo, "y.jpg"), "jpeg")
    assert still.picture.pixel_format.name == again.picture.pixel_format.name == "gray"
    assert again.jpeg == still.jpeg


def test_a_jpeg_of_rgb_stays_one(photo: Image.Image, save: Save) -> None:
    still = read_still(save(photo, "x.jpg", keep_rgb=True), LIMITS)
    assert still.jpeg is not None
    assert still.jpeg.is_rgb
    assert written(still, save(photo, "y.jpg"), "jpeg").jpeg == still.jpeg


def test_a_turned_jpeg_takes_its_tables_along(photo: Image.Image, save: Save) -> None:
    table = [[1 + x + 3 * y for y in range(8) for x in range(8)]] * 2
    path = save(photo, "x.jpg", qtables=table, subsampling=1, exif=exif_bytes(t0112=6))
    coding = read_still(path, LIMITS).jpeg
    assert coding is not None
    assert coding.tables[0] == tuple(1 + y + 3 * x for y in range(8) for x in range(8))
    assert coding.subsampling == 0


def test_noise_at_the_finest_tables_is_written_all_the_same(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (200, 300, 3), np.uint8))
    path = tmp_path / "x.jpg"
    noise.save(path, qtables=[[1] * 64] * 2, subsampling=0)
    still = read_still(path, LIMITS)
    assert still.jpeg is not None
    progressive = {**{n: getattr(still, n) for n in ("picture", "format")}}
    coding = type(still.jpeg)(tables=still.jpeg.tables, subsampling=0, is_progressive=True)
    again = written(Still(**progressive, jpeg=coding), tmp_path / "again", "jpeg")
    assert again.jpeg is not None
    assert again.jpeg.tables == still.jpeg.tables


def test_inks_are_seen_as_rgb(photo: Image.Image, save: Save) -> None:
    path = save(photo.convert("CMYK"), "x.jpg", quality=95)
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == "rgb24"
    assert still.notices == ()
    assert np.abs(still.picture.planes[0].astype(int) - np.asarray(photo)).mean() < 6
    assert written(still, path.with_name("again"), "jpeg").picture.size_wh == (96, 64)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("x.gif", {"save_all": True}, id="GIF"),
        pytest.param("x.png", {"save_all": True}, id="APNG"),
        pytest.param("x.webp", {"save_all": True, "lossless": True}, id="WebP"),
        pytest.param("x.tiff", {"save_all": True}, id="TIFF"),
        pytest.param("x.avif", {"save_all": True}, id="AVIF"),
    ],
)
def test_of_several_pictures_the_first_is_read_and_it_is_said(
    photo: Image.Image, save: Save, name: str, settings: dict[str, Any]
) -> None:
    path = save(photo, name, append_images=[photo.rotate(180)], **settings)
    still = read_still(path, LIMITS)
    assert [notice.code for notice in still.notices] == ["still.first_picture_only"]
    change = still.picture.read(still.picture.box).astype(int) - np.asarray(photo)
    assert np.abs(change).mean() < 8


@pytest.mark.parametrize("name", ["x.webp", "x.avif"])
def test_alpha_is_kept_where_the_colors_are_lossy(
    photo: Image.Image, save: Save, name: str
) -> None:
    still = read_still(save(with_alpha(photo), "x.png"), LIMITS)
    lossy = Still(picture=still.picture, format="jpeg", is_lossless=False)
    target = output_format(Path(name), "png")
    again = written(lossy, save(photo, name), target, quality=40)
    np.testing.assert_array_equal(again.picture.planes[0][..., 3], still.picture.planes[0][..., 3])
    assert not again.is_lossless


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_jpeg_gets_white_for_nothing_and_it_is_said(
    photo: Image.Image, save: Save, mode: str
) -> None:
    clear = with_alpha(photo.convert(mode[:-1]))
    clear.putalpha(0)
    path = save(clear, "x.png")
    still = read_still(path, LIMITS)
    encoding = StillEncoding(format="jpeg")
    notices = write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
    assert [notice.code for notice in notices] == ["still.alpha_flattened"]
    assert read_still(path, LIMITS).picture.planes[0].min() == 255


@pytest.mark.parametrize("target", ["jpeg", "webp"])
def test_8_bits_of_16_are_said(tmp_path: Path, target: StillFormat) -> None:
    path = tmp_path / "deep.png"
    path.write_bytes(png_bytes(np.full((16, 16, 3), 0x80FF, np.uint16), 2))
    still = read_still(path, LIMITS)
    encoding = StillEncoding(format=target, quality=95)
    notices = write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
    assert [notice.code for notice in notices] == ["still.depth_reduced"]
    assert np.abs(read_still(path, LIMITS).picture.planes[0].astype(int) - 0x81).max() <= 1


def profile(space: str = "sRGB") -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile(space)).tobytes()


@pytest.mark.parametrize("target", ["jpeg", "png", "webp", "tiff", "avif"])
@pytest.mark.parametrize("source", ["x.jpg", "x.png", "x.tiff"])
def test_the_color_profile_goes_along(
    photo: Image.Image, save: Save, source: str, target: StillFormat
) -> None:
    icc = profile()
    path = save(photo, source, icc_profile=icc)
    again = written(read_still(path, LIMITS), path.with_name("again"), target)
    assert again.icc == icc


@pytest.mark.parametrize("name", ["x.jpg", "x.png"])
@pytest.mark.parametrize(
    "icc",
    [
        pytest.param(b"\0" * 200, id="nonsense"),
        pytest.param(profile("LAB"), id="of another color space"),
        pytest.param(profile()[:-8], id="cut"),
    ],
)
def test_a_profile_that_is_none_is_left_out_and_it_is_said(
    photo: Image.Image, save: Save, icc: bytes, name: str
) -> None:
    path = save(photo, name, icc_profile=icc)
    still = read_still(path, LIMITS)
    assert [notice.code for notice in still.notices] == ["still.profile_dropped"]
    assert written(still, path, still.format).icc is None


def test_the_color_chunks_of_a_png_go_along(photo: Image.Image, save: Save) -> None:
    path = save(photo, "x.png", dpi=(300, 150))
    gamma = png_chunk(b"gAMA", struct.pack(">I", 45_455))
    data = path.read_bytes()
    path.write_bytes(data[:33] + gamma + png_chunk(b"tEXt", b"Author\0GONE") + data[33:])
    still = read_still(path, LIMITS)
    again = written(still, path, "png")
    assert [name for name, _ in again.png_chunks] == [b"gAMA", b"pHYs"]
    assert again.dpi == pytest.approx((300, 150), abs=0.1)
    assert b"GONE" not in path.read_bytes()


@pytest.mark.parametrize("target", ["jpeg", "png", "tiff"])
def test_the_resolution_goes_along(photo: Image.Image, save: Save, target: StillFormat) -> None:
    path = save(photo, "x.jpg", dpi=(300, 300))
    again = written(read_still(path, LIMITS), path.with_name("again"), target)
    assert again.dpi == pytest.approx((300, 300), abs=0.1)


def test_values_under_a_write_change_and_others_do_not(photo: Image.Image, save: Save) -> None:
    path = save(with_alpha(photo), "x.png")
    still = read_still(path, LIMITS)
    changed = still.picture.copy()
    box = changed.box._replace(x0=10, y0=10, x1=30, y1=40)
    changed.write(box, 255 - changed.read(box))
    write_still(path, still, changed, xmp=XMP, encoding=StillEncoding(format="png"))
    before, after = still.picture.planes[0], read_still(path, LIMITS).picture.planes[0]
    outside = np.ones(before.shape[:2], bool)
    outside[10:40, 10:30] = False
    np.testing.assert_array_equal(before[outside], after[outside])
    np.testing.assert_array_equal(before[..., 3], after[..., 3])
    np.testing.assert_array_equal(255 - before[10:40, 10:30, :3], after[10:40, 10:30, :3])


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(None, MediaNotFoundError, id="no file"),
        pytest.param(b"", EmptyMediaError, id="no bytes"),
        pytest.param(b"This is not a picture.\n" * 40, UnsupportedTypeError, id="text"),
        pytest.param(b"<svg xmlns='http://www.w3.org/2000/svg'/>", UnsupportedTypeError, id="SVG"),
        pytest.param(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", DamagedMediaError, id="empty HEIC"),
        pytest.param(b"\0\0\0\x18ftypisom\0\0\0\0mp41mp42", UnsupportedTypeError, id="video"),
        pytest.param(b"\xff\xd8\xff\xe0", MediaError, id="JPEG of four bytes"),
        pytest.param(b"BM" + b"\0" * 12 + b"\x28" + b"\0" * 9, MediaError, id="BMP of nothing"),
    ],
)
def test_what_is_no_still_is_refused(
    tmp_path: Path, content: bytes | None, error: type[MediaError]
) -> None:
    path = tmp_path / "x.jpg"
    if content is not None:
        path.write_bytes(content)
    for read in (still_info, read_still):
        with pytest.raises(error):
            read(path, LIMITS)


def webp_canvas(w: int, h: int) -> bytes:
    canvas = (w - 1).to_bytes(3, "little") + (h - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + canvas
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(
            png_of(struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
            MediaTooLargeError,
            id="PNG of 60 000 pixels a side",
        ),
        pytest.param(
            png_of(struct.pack(">IIBBBBB", 1, 20_000, 8, 2, 0, 0, 0)),
            BadDimensionsError,
            id="PNG of one pixel a row",
        ),
        pytest.param(
            png_of(struct.pack(">IIBBBBB", 0, 10, 8, 2, 0, 0, 0)),
            BadDimensionsError,
            id="PNG of no pixel a row",
        ),
        pytest.param(webp_canvas(16_384, 16_384), MediaTooLargeError, id="large WebP canvas"),
        pytest.param(webp_canvas(1, 1), BadDimensionsError, id="WebP of one pixel"),
    ],
)
def test_the_budget_is_decided_from_the_header(
    tmp_path: Path, content: bytes, error: type[MediaError]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    for read in (still_info, read_still):
        with pytest.raises(error):
            read(path, LIMITS)


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(MediaLimits(max_side_px=95), id="side"),
        pytest.param(MediaLimits(max_still_pixels=96 * 64 - 1), id="area"),
    ],
)
@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.webp", "x.avif", "x.tiff", "x.bmp", "x.gif"])
def test_every_kind_keeps_to_the_budget(
    photo: Image.Image, save: Save, name: str, limits: MediaLimits
) -> None:
    with pytest.raises(MediaTooLargeError):
        still_info(save(photo, name), limits)


def test_a_picture_file_longer_than_its_budget_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.webp"
    with path.open("wb") as file:
        file.write(b"RIFF\xff\xff\xff\x7fWEBPVP8 ")
        file.truncate(1 << 30)
    with pytest.raises(MediaTooLargeError, match="bytes"):
        still_info(path, LIMITS)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.webp", "x.avif", "x.tiff", "x.bmp", "x.gif"])
def test_a_cut_file_is_truncated(photo: Image.Image, save: Save, name: str, share: float) -> None:
    path = save(photo, name)
    data = path.read_bytes()
    path.write_bytes(data[: round(len(data) * share)])
    with pytest.raises(TruncatedMediaError):
        read_still(path, LIMITS)


def test_a_cut_16_bit_png_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    data = png_bytes(np.random.default_rng(2).integers(0, 65_536, (64, 64, 3), np.uint16), 2)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(TruncatedMediaError):
        read_still(path, LIMITS)


def test_a_flipped_byte_in_a_16_bit_png_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    data = bytearray(
        png_bytes(np.random.default_rng(2).integers(0, 65_536, (64, 64, 3), np.uint16), 2)
    )
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(DamagedMediaError):
        read_still(path, LIMITS)


@pytest.mark.parametrize("mode", ["F", "I"])
def test_pixels_of_32_bits_are_refused(photo: Image.Image, save: Save, mode: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="8 or 16 bits"):
        read_still(save(photo.convert("L").convert(mode), "x.tiff"), LIMITS)


@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.webp", "x.avif", "x.tiff", "x.bmp", "x.gif"])
def test_damaged_files_end_in_an_error_of_ours_or_a_picture(
    photo: Image.Image, save: Save, name: str
) -> None:
    path = save(photo, name)
    data = path.read_bytes()
    rng = np.random.default_rng(11)
    for _ in range(60):
        noisy = bytearray(data)
        for at in rng.integers(4, len(data), 6):
            noisy[at] = rng.integers(256)
        path.write_bytes(noisy)
        try:
            read_still(path, MediaLimits(max_still_pixels=1_000_000))
        except MediaError as error:
            assert error.message


@pytest.mark.parametrize(
    ("output", "input_format", "expected"),
    [
        ("a.jpg", "png", "jpeg"),
        ("a.JPEG", "png", "jpeg"),
        ("a.b.png", "jpeg", "png"),
        ("a.webp", "jpeg", "webp"),
        ("a.tif", "jpeg", "tiff"),
        ("a.avif", "jpeg", "avif"),
        ("a", "jpeg", "jpeg"),
        ("a", "webp", "webp"),
        ("a", "bmp", "png"),
        ("a", "gif", "png"),
        (".hidden", "tiff", "tiff"),
    ],
)
def test_the_outputs_name_tells_its_format(
    output: str, input_format: StillFormat, expected: StillFormat
) -> None:
    assert output_format(Path(output), input_format) == expected


@pytest.mark.parametrize("output", ["a.bmp", "a.gif", "a.heic", "a.mp4", "a.txt"])
def test_a_format_that_cannot_carry_the_label_is_refused(output: str) -> None:
    with pytest.raises(UnsupportedOutputError, match=r"\.png"):
        output_format(Path(output), "png")


def test_no_way_round_writes_a_file_without_label(photo: Image.Image, save: Save) -> None:
    path = save(photo, "x.bmp")
    still = read_still(path, LIMITS)
    target = path.with_name("y")
    with pytest.raises(UnsupportedOutputError):
        write_still(target, still, still.picture, xmp=XMP, encoding=StillEncoding(format="bmp"))
    assert not target.exists()


def test_a_webp_cannot_be_as_wide_as_a_png(tmp_path: Path) -> None:
    limits = MediaLimits(max_side_px=20_000)
    path = tmp_path / "x.png"
    Image.new("L", (16_400, 2)).save(path)
    still = read_still(path, limits)
    with pytest.raises(UnsupportedOutputError, match="16383"):
        write_still(path, still, still.picture, xmp=XMP, encoding=StillEncoding(format="webp"))


def test_a_missing_folder_is_said(photo: Image.Image, save: Save) -> None:
    path = save(photo, "x.png")
    still = read_still(path, LIMITS)
    with pytest.raises(UnwritableOutputError):
        write_still(
            path.parent / "none" / "x.png",
            still,
            still.picture,
            xmp=XMP,
            encoding=StillEncoding(format="png"),
        )


def test_the_inherited_packet_is_read_from_every_kind(photo: Image.Image, save: Save) -> None:
    still = read_still(save(photo, "x.png"), LIMITS)
    for target in ("jpeg", "png", "webp", "tiff", "avif"):
        assert written(still, save(photo, "y.png"), target).xmp == XMP


def test_a_compressed_packet_of_a_png_is_read(photo: Image.Image, save: Save) -> None:
    path = save(photo, "x.png")
    data = path.read_bytes()
    packet = png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\x01\0\0\0" + zlib.compress(XMP))
    path.write_bytes(data[:33] + packet + data[33:])
    assert read_still(path, LIMITS).xmp == XMP


def test_pillow_reads_what_we_wrote(photo: Image.Image, save: Save, tmp_path: Path) -> None:
    still = read_still(save(with_alpha(photo), "x.png"), LIMITS)
    for target in ("png", "tiff"):
        path = tmp_path / target
        encoding = StillEncoding(format=target)
        write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            np.testing.assert_array_equal(np.asarray(image), still.picture.planes[0])
