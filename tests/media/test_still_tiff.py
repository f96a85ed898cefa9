"""TIFFs of every kind that cameras, scanners and laboratories write: read value for value, or refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import AppError, MediaTooLargeError
from app.media.limits import MediaLimits
from app.media.still import read_still, still_info, write_still
from app.media.still_encode import StillEncoding
from tests.media.tiff_files import tiff_file

XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
LIMITS = MediaLimits()
Pixels = NDArray[Any]


def noise(channels: int, dtype: type[np.generic] = np.uint16) -> Pixels:
    shape = (24, 31) if channels == 1 else (24, 31, channels)
    top = np.iinfo(dtype).max + 1
    return np.random.default_rng(channels).integers(0, top, shape, dtype)


def read_values(path: Path) -> Pixels:
    planes = read_still(path, LIMITS).picture.planes
    return planes[0] if len(planes) == 1 else np.dstack(planes)


KINDS = [
    pytest.param(np.uint8, 1, "gray", id="gray of 8 bits"),
    pytest.param(np.uint8, 2, "ya8", id="gray with alpha of 8 bits"),
    pytest.param(np.uint8, 3, "rgb24", id="RGB of 8 bits"),
    pytest.param(np.uint8, 4, "rgba", id="RGB with alpha of 8 bits"),
    pytest.param(np.uint16, 1, "gray16le", id="gray of 16 bits"),
    pytest.param(np.uint16, 2, "ya16le", id="gray with alpha of 16 bits"),
    pytest.param(np.uint16, 3, "rgb48le", id="RGB of 16 bits"),
    pytest.param(np.uint16, 4, "rgba64le", id="RGB with alpha of 16 bits"),
]


@pytest.mark.parametrize("is_big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("is_planar", [False, True], ids=["mixed", "planar"])
@pytest.mark.parametrize(("dtype", "channels", "layout"), KINDS)
def test_every_order_of_samples_is_read_value_for_value(
    tmp_path: Path,
    dtype: type[np.generic],
    channels: int,
    layout: str,
    is_planar: bool,
    is_big_endian: bool,
) -> None:
    pixels = noise(channels, dtype)
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(pixels, is_planar=is_planar, is_big_endian=is_big_endian))
    if is_planar and channels == 2:
        with pytest.raises(AppError, match="rare type") as caught:
            read_still(path, LIMITS)
        assert caught.value.code == "media.unsupported_type"
        return
    info = still_info(path, LIMITS)
    assert (info.pixel_format, info.size_wh) == (layout, (31, 24))
    np.testing.assert_array_equal(read_values(path), pixels)
    still = read_still(path, LIMITS)
    out = tmp_path / "out"
    write_still(out, still, still.picture, xmp=XMP, encoding=StillEncoding(format="png"))
    np.testing.assert_array_equal(read_values(out), pixels)


@pytest.mark.parametrize("is_big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_where_0_is_white_the_picture_is_no_negative(
    tmp_path: Path, dtype: type[np.generic], is_big_endian: bool
) -> None:
    pixels = noise(1, dtype)
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(pixels, is_big_endian=is_big_endian, t262=0))
    np.testing.assert_array_equal(read_values(path), np.iinfo(dtype).max - pixels)


UNTURNED = {
    1: lambda p: p,
    3: lambda p: p[::-1, ::-1],
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: np.rot90(p, 3),
    8: lambda p: np.rot90(p),
}


@pytest.mark.parametrize("orientation", UNTURNED)
@pytest.mark.parametrize("is_planar", [False, True], ids=["mixed", "planar"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bits_are_turned_upright_once(
    tmp_path: Path, channels: int, is_planar: bool, orientation: int
) -> None:
    if is_planar and channels == 2:
        return
    pixels = noise(channels)
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(pixels, is_planar=is_planar, t274=orientation))
    wanted = UNTURNED[orientation](pixels)
    assert still_info(path, LIMITS).size_wh == wanted.shape[1::-1]
    np.testing.assert_array_equal(read_values(path), wanted)


@pytest.mark.parametrize(
    "pixels",
    [
        pytest.param(np.zeros((4, 6), np.float32), id="gray"),
        pytest.param(np.zeros((4, 6, 3), np.float32), id="RGB"),
    ],
)
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_floats_are_refused_by_name(tmp_path: Path, pixels: Pixels, is_big_endian: bool) -> None:
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(pixels, is_big_endian=is_big_endian, t339=3))
    with pytest.raises(AppError, match="8 or 16 bits") as caught:
        read_still(path, LIMITS)
    assert caught.value.code == "media.unsupported_type"


@pytest.mark.parametrize("bits", [np.uint8, np.uint16])
def test_inks_are_seen_as_rgb(tmp_path: Path, bits: type[np.generic]) -> None:
    top = np.iinfo(bits).max
    pixels = np.zeros((8, 8, 4), bits)
    pixels[:, 4:, 0] = top
    path = tmp_path / "x.tiff"
    data = tiff_file(pixels, t262=5)
    path.write_bytes(data)
    still = read_still(path, LIMITS)
    assert still.notices == ()
    rgb = still.picture.read(still.picture.box)
    assert rgb[0, 0].tolist() == [255, 255, 255]
    assert rgb[0, 7, 0] == 0


@pytest.mark.parametrize(
    "compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"]
)
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "I;16"])
def test_every_usual_way_of_compression_is_read(
    tmp_path: Path, mode: str, compression: str
) -> None:
    if compression == "jpeg" and mode in ("I;16", "RGBA"):
        return
    pixels = noise(1) if mode == "I;16" else noise({"L": 1, "RGB": 3, "RGBA": 4}[mode], np.uint8)
    path = tmp_path / "x.tiff"
    Image.fromarray(pixels).save(path, compression=compression)
    values = read_values(path)
    if compression == "jpeg":
        assert values.shape == pixels.shape
    else:
        np.testing.assert_array_equal(values, pixels)


def test_planar_16_bits_over_the_budget_are_refused_by_their_header(tmp_path: Path) -> None:
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(noise(3), is_planar=True))
    with pytest.raises(MediaTooLargeError):
        read_still(path, MediaLimits(max_still_pixels=100))


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("is_planar", [False, True])
@pytest.mark.parametrize("channels", [2, 3])
def test_16_bits_that_end_early_are_refused(
    tmp_path: Path, channels: int, is_planar: bool, share: float
) -> None:
    path = tmp_path / "x.tiff"
    data = tiff_file(noise(channels), is_planar=is_planar)
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(AppError) as caught:
        read_still(path, LIMITS)
    assert caught.value.code in ("media.truncated", "media.damaged", "media.unsupported_type")
