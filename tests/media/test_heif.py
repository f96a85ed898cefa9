"""HEIC photos, made here as phones and cameras make them: what is read, what comes out, what is refused."""

import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from app.core.errors import (
    AppError,
    MediaTooLargeError,
    TruncatedMediaError,
    UnsupportedOutputError,
)
from app.core.picture import PixelBox
from app.jobs.names import result_suffix
from app.media.limits import MediaLimits
from app.media.packets import xmp_packets
from app.media.probe import probe
from app.media.still import output_format, read_still, still_info, write_still
from app.media.still_encode import StillEncoding
from app.media.still_metadata import parsed_exif
from app.media.still_types import Still, StillFormat
from tests.media.heif_files import (
    BT709,
    PQ_BT2020,
    Item,
    alpha_item,
    box,
    crop,
    exif_item,
    extents,
    full_box,
    grid_items,
    heif_file,
    hevc_item,
    mirror,
    nclx,
    profile,
    turn,
)

LIMITS = MediaLimits()
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SIZE_WH = (150, 98)
Pixels = NDArray[Any]


@pytest.fixture
def photo(astronaut: Pixels) -> Pixels:
    """150 x 98, with all colors of a photo."""
    image = Image.fromarray(astronaut[:256, :392]).resize(SIZE_WH)
    return np.asarray(image)


@pytest.fixture
def heic(tmp_path: Path) -> Path:
    return tmp_path / "photo.heic"


def rgb(still: Still) -> Pixels:
    return still.picture.read(still.picture.box)


def difference(a: Pixels, b: Pixels) -> float:
    return float(np.abs(a.astype(float) - b).mean())


def orientation_exif(value: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = value
    exif[0x010E] = "A harbor"
    exif[0x010F] = "GONE"
    exif[0x8825] = {1: "N", 2: (48.0, 8.0, 0.0)}
    return exif.tobytes()


TURNS = [
    pytest.param((), lambda p: p, id="upright"),
    pytest.param((turn(1),), np.rot90, id="a quarter left"),
    pytest.param((turn(2),), lambda p: p[::-1, ::-1], id="upside down"),
    pytest.param((turn(3),), lambda p: np.rot90(p, 3), id="a quarter right"),
    pytest.param((mirror(0),), lambda p: p[::-1], id="top and bottom swapped"),
    pytest.param((mirror(1),), lambda p: p[:, ::-1], id="left and right swapped"),
    pytest.param((turn(1), mirror(1)), lambda p: np.rot90(p)[:, ::-1], id="turned, then mirrored"),
]


@pytest.mark.parametrize("exif_says", [1, 6])
@pytest.mark.parametrize("is_tiled", [False, True], ids=["one picture", "tiles"])
@pytest.mark.parametrize(("properties", "seen"), TURNS)
def test_a_heic_is_turned_once_as_its_boxes_say(
    photo: Pixels, heic: Path, properties: Any, seen: Any, is_tiled: bool, exif_says: int
) -> None:
    items = (
        grid_items(photo, 64, nclx(BT709), *properties)
        if is_tiled
        else (hevc_item(photo, nclx(BT709), *properties),)
    )
    heic.write_bytes(heif_file(*items, exif_item(orientation_exif(exif_says))))
    still = read_still(heic, LIMITS)
    wanted = seen(photo)
    assert still_info(heic, LIMITS).size_wh == still.picture.size_wh == wanted.shape[1::-1]
    assert difference(rgb(still), wanted) < 2
    write_still(
        heic, still, still.picture, xmp=XMP, encoding=StillEncoding(format="jpeg", quality=95)
    )
    again = read_still(heic, LIMITS)
    assert difference(rgb(again), wanted) < 4
    assert parsed_exif(again.exif).get(0x0112, 1) == 1
    assert again.picture.size_wh == wanted.shape[1::-1]


@pytest.mark.parametrize("is_full", [True, False], ids=["full range", "limited range"])
@pytest.mark.parametrize("says", ["boxes", "stream"])
@pytest.mark.parametrize("chroma", ["420", "422", "444"])
@pytest.mark.parametrize("bits", [8, 10])
def test_colors_come_out_whatever_their_coding(
    photo: Pixels, heic: Path, bits: int, chroma: str, says: str, is_full: bool
) -> None:
    pixels = cv2.GaussianBlur(photo, (0, 0), 2)
    deep = pixels if bits == 8 else pixels.astype(np.uint16) * 257
    properties = (nclx(BT709, is_full=is_full),) if says == "boxes" else ()
    item = hevc_item(deep, *properties, bits=bits, chroma=chroma, is_full=is_full)
    heic.write_bytes(heif_file(item))
    assert difference(rgb(read_still(heic, LIMITS)), pixels) < 2.5


@pytest.mark.parametrize("is_full", [True, False], ids=["full range", "limited range"])
def test_gray_comes_out_whatever_its_range(photo: Pixels, heic: Path, is_full: bool) -> None:
    gray = np.ascontiguousarray(photo[..., 1])
    # The scaler takes gray for gray, whatever the range: narrowed here.
    coded = gray if is_full else np.rint(gray * (219 / 255) + 16).astype(np.uint8)
    heic.write_bytes(heif_file(hevc_item(coded, nclx(BT709, is_full=is_full), is_full=is_full)))
    assert difference(read_still(heic, LIMITS).picture.planes[0], gray) < 2


def test_tiles_whose_order_lies_in_the_description_are_found(photo: Pixels, heic: Path) -> None:
    """As iPhones write them: the grid in `idat`, 4:2:0, no word on the colors but a profile."""
    items = grid_items(photo, 64, profile(SRGB), is_in_meta=True, chroma="420", codes=(1, 13, 6))
    heic.write_bytes(heif_file(*items))
    assert difference(rgb(read_still(heic, LIMITS)), photo) < 5


def test_a_cropped_heic_has_the_size_that_is_shown(photo: Pixels, heic: Path) -> None:
    heic.write_bytes(heif_file(hevc_item(photo, nclx(BT709), crop((100, 60), (10, -8)), turn(1))))
    wanted = np.rot90(photo[19 - 4 : 79 - 4, 25 + 5 : 125 + 5])
    assert still_info(heic, LIMITS).size_wh == (60, 100)
    assert difference(rgb(read_still(heic, LIMITS)), wanted) < 2


def test_the_main_picture_is_read_and_it_is_said(photo: Pixels, heic: Path) -> None:
    items = (hevc_item(255 - photo), hevc_item(photo, nclx(BT709)))
    heic.write_bytes(heif_file(*items, primary=2))
    still = read_still(heic, LIMITS)
    assert difference(rgb(still), photo) < 2
    assert [notice.code for notice in still.notices] == ["still.first_picture_only"]


def test_a_gray_heic_stays_gray(photo: Pixels, heic: Path) -> None:
    gray = np.asarray(Image.fromarray(photo).convert("L"))
    heic.write_bytes(heif_file(hevc_item(gray, nclx(BT709))))
    still = read_still(heic, LIMITS)
    assert still.picture.pixel_format.name == "gray"
    assert difference(still.picture.planes[0], gray) < 2


@pytest.mark.parametrize("is_gray", [False, True])
def test_ten_bits_stay_ten_bits(photo: Pixels, heic: Path, is_gray: bool) -> None:
    ramp = np.linspace(0, 65_535, 150).astype(np.uint16)
    pixels = np.broadcast_to(ramp[None, :, None], (98, 150, 3)).copy()
    pixels = pixels[..., 0] if is_gray else pixels
    heic.write_bytes(heif_file(hevc_item(pixels, nclx(BT709), bits=10)))
    info, still = still_info(heic, LIMITS), read_still(heic, LIMITS)
    assert info.bits == still.bits == 10
    assert still.picture.pixel_format.name == ("gray16le" if is_gray else "rgb48le")
    values = still.picture.planes[0].reshape(98, 150, -1)[..., 0]
    assert difference(values, ramp) < 300
    assert len(np.unique(values)) > 130


def test_transparency_is_kept(photo: Pixels, heic: Path) -> None:
    alpha = np.tile(np.arange(150, dtype=np.uint8), (98, 1))
    heic.write_bytes(heif_file(hevc_item(photo, nclx(BT709)), alpha_item(alpha)))
    info, still = still_info(heic, LIMITS), read_still(heic, LIMITS)
    assert info.has_alpha
    assert still.picture.pixel_format.name == "rgba"
    assert difference(still.picture.planes[0][..., 3], alpha) < 1
    out = heic.with_name("out")
    write_still(out, still, still.picture, xmp=XMP, encoding=StillEncoding(format="png"))
    np.testing.assert_array_equal(
        read_still(out, LIMITS).picture.planes[0], still.picture.planes[0]
    )


@pytest.mark.parametrize("target", ["jpeg", "png", "webp", "avif", "tiff"])
def test_profile_and_harmless_exif_go_on_and_the_rest_does_not(
    photo: Pixels, heic: Path, target: StillFormat
) -> None:
    heic.write_bytes(heif_file(hevc_item(photo, profile(SRGB)), exif_item(orientation_exif(6))))
    still = read_still(heic, LIMITS)
    assert still.icc == SRGB
    out = heic.with_name("out")
    write_still(out, still, still.picture, xmp=XMP, encoding=StillEncoding(format=target))
    again = read_still(out, LIMITS)
    assert again.icc == SRGB
    assert dict(parsed_exif(again.exif)) == {0x010E: "A harbor"}
    assert xmp_packets(out) == (XMP,)
    assert b"GONE" not in out.read_bytes()


@pytest.mark.parametrize("skipped", [6, 0])
def test_exif_is_found_behind_its_prefix(photo: Pixels, heic: Path, skipped: int) -> None:
    exif = exif_item(orientation_exif(1), skipped=skipped)
    heic.write_bytes(heif_file(hevc_item(photo), exif))
    assert parsed_exif(read_still(heic, LIMITS).exif)[0x010E] == "A harbor"


def test_its_xmp_is_read(photo: Pixels, heic: Path) -> None:
    packet = Item(kind=b"mime", data=XMP, references=((b"cdsc", (1,)),))
    heic.write_bytes(heif_file(hevc_item(photo), packet))
    assert read_still(heic, LIMITS).xmp == XMP


@pytest.mark.parametrize(
    ("bits", "has_alpha", "suffix"),
    [(8, False, ".jpg"), (10, False, ".png"), (8, True, ".png")],
)
def test_a_result_becomes_what_holds_the_photo(bits: int, has_alpha: bool, suffix: str) -> None:
    info = {"bits": bits, "has_alpha": has_alpha}
    assert result_suffix("heic", "IMG_0001.HEIC", info) == suffix


def test_a_result_named_heic_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnsupportedOutputError, match=r"\.jpg, \.png"):
        output_format(Path("out.heic"), "heic")


HDR_TARGETS = [
    pytest.param("png", 16, (), id="PNG"),
    pytest.param("avif", 10, (), id="AVIF"),
    pytest.param("jpeg", 8, ("still.tone_mapped",), id="JPEG"),
    pytest.param("webp", 8, ("still.tone_mapped",), id="WebP"),
    pytest.param("tiff", 8, ("still.tone_mapped",), id="TIFF"),
]


@pytest.mark.parametrize(("target", "bits", "lost"), HDR_TARGETS)
def test_hdr_stays_hdr_where_the_format_has_it(
    photo: Pixels, heic: Path, target: StillFormat, bits: int, lost: tuple[str, ...]
) -> None:
    codes = photo.astype(np.uint16) * 128
    heic.write_bytes(heif_file(hevc_item(codes, nclx(PQ_BT2020), codes=PQ_BT2020, bits=10)))
    assert (probe(heic).tags.transfer, probe(heic).tags.primaries) == (16, 9)
    still = read_still(heic, LIMITS)
    out = heic.with_name("out")
    notices = write_still(
        out, still, still.picture, xmp=XMP, encoding=StillEncoding(format=target, quality=95)
    )
    again = read_still(out, LIMITS)
    assert tuple(notice.code for notice in notices) == lost
    assert again.bits == bits
    assert again.picture.tags.transfer == (2 if lost else 16)
    # What people see is the same either way.
    assert difference(rgb(again), rgb(still)) < 4


def test_a_patch_in_an_hdr_photo_is_seen_as_it_was_meant(photo: Pixels, heic: Path) -> None:
    codes = photo.astype(np.uint16) * 128
    heic.write_bytes(heif_file(hevc_item(codes, nclx(PQ_BT2020), codes=PQ_BT2020, bits=10)))
    picture = read_still(heic, LIMITS).picture.copy()
    before = picture.planes[0].copy()
    box = PixelBox(20, 10, 80, 60)
    patch = picture.read(box)
    patch[10:40, 10:40] = 120, 90, 70
    picture.write(box, patch)
    assert difference(picture.read(box), patch) < 1
    changed = (picture.planes[0] != before).any(axis=-1)
    assert changed[20:50, 30:60].mean() > 0.95
    changed[20:50, 30:60] = False
    assert not changed.any()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.99])
def test_a_heic_that_ends_early_is_refused(photo: Pixels, heic: Path, share: float) -> None:
    data = heif_file(*grid_items(photo, 64))
    heic.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(TruncatedMediaError):
        read_still(heic, LIMITS)


@pytest.mark.parametrize("seed", range(12))
def test_a_heic_with_flipped_bytes_is_a_picture_or_a_refusal_with_a_code(
    photo: Pixels, heic: Path, seed: int
) -> None:
    data = bytearray(heif_file(*grid_items(photo, 64, profile(SRGB))))
    rng = np.random.default_rng(seed)
    for at in rng.integers(24, len(data) if seed % 2 else 700, 12):
        data[at] ^= int(rng.integers(1, 256))
    heic.write_bytes(bytes(data))
    try:
        still = read_still(heic, LIMITS)
    except AppError as error:
        assert error.code.startswith("media.")
    else:
        assert min(still.picture.size_wh) >= 2


def small(**bounds: int) -> MediaLimits:
    return replace(LIMITS, **bounds)


def test_a_heic_over_the_budget_is_refused_by_its_header(photo: Pixels, heic: Path) -> None:
    heic.write_bytes(heif_file(*grid_items(photo, 64)))
    with pytest.raises(MediaTooLargeError):
        still_info(heic, small(max_still_pixels=10_000))


def test_a_coded_picture_larger_than_it_says_is_refused_by_its_header(
    photo: Pixels, heic: Path
) -> None:
    item = hevc_item(photo)
    lying = replace(item, properties=(item.properties[0], extents((16, 16))))
    heic.write_bytes(heif_file(lying))
    with pytest.raises(MediaTooLargeError):
        still_info(heic, small(max_still_pixels=10_000))


def test_tiles_by_the_thousand_under_a_small_picture_are_refused(photo: Pixels, heic: Path) -> None:
    tile = hevc_item(photo, is_hidden=True)
    grid = Item(
        kind=b"grid",
        data=struct.pack(">BBBBHH", 0, 0, 99, 99, 200, 200),
        properties=(extents((200, 200)),),
        references=((b"dimg", (2,) * 10_000),),
    )
    heic.write_bytes(heif_file(grid, tile))
    with pytest.raises(MediaTooLargeError, match="tiles"):
        still_info(heic, small(max_still_pixels=1_000_000))


def timed_refusal(path: Path, data: bytes) -> float:
    """Seconds of CPU until the file was refused."""
    path.write_bytes(data)
    start = time.process_time()
    with pytest.raises(AppError) as caught:
        still_info(path, LIMITS)
    assert caught.value.code in ("media.too_large", "media.damaged", "media.truncated")
    return time.process_time() - start


def test_bombs_in_the_description_are_refused_fast(photo: Pixels, heic: Path) -> None:
    item = hevc_item(photo)
    ftyp = box(b"ftyp", b"heic", bytes(4), b"mif1heic")
    one = struct.pack(">HHHH", 1, 0, 0, 65_535)
    endless = full_box(b"iloc", b"\0\0", struct.pack(">H", 65_535), one * 65_535, version=1)
    long = full_box(b"meta", full_box(b"iref", bytes(5 << 20)))
    ways = [
        replace(
            item, properties=(box(b"hvcC", item.properties[0][8:], bytes((n,))), item.properties[1])
        )
        for n in range(200)
    ]
    grid = Item(
        kind=b"grid",
        data=struct.pack(">BBBBHH", 0, 0, 9, 19, 150, 98),
        properties=(extents((150, 98)),),
        references=((b"dimg", tuple(range(2, 202))),),
    )
    bombs = (ftyp + full_box(b"meta", endless), ftyp + long, heif_file(grid, *ways))
    assert max(timed_refusal(heic, bomb) for bomb in bombs) < 1.0
