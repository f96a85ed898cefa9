"""Networks see sRGB, whatever space a still is in; its pixels stay in their own space."""

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from app.core.picture import PixelBox
from app.media.limits import MediaLimits
from app.media.still import read_still
from app.media.still_profile import profile_conversion

Rgb = NDArray[np.uint8]
BOX = PixelBox(11, 7, 51, 47)


def s15(*values: float) -> bytes:
    return b"".join(round(value * 65_536).to_bytes(4, "big", signed=True) for value in values)


def rgb_profile(columns: tuple[tuple[float, float, float], ...], gamma: float) -> bytes:
    """A matrix profile: the three primaries in XYZ under D50, and one gamma. Source: ICC.1:2010, 8.3.3."""
    curve = (
        b"curv\0\0\0\0" + (1).to_bytes(4, "big") + round(gamma * 256).to_bytes(2, "big") + b"\0\0"
    )
    white = (0.9642, 1.0, 0.8249)
    xyz = [b"XYZ \0\0\0\0" + s15(*column) for column in (*columns, white)]
    text = b"desc\0\0\0\0" + (5).to_bytes(4, "big") + b"test\0" + bytes(79)
    names = (b"rXYZ", b"gXYZ", b"bXYZ", b"wtpt", b"desc", b"cprt", b"rTRC", b"gTRC", b"bTRC")
    parts = [*xyz, text, b"text\0\0\0\0free\0\0\0\0", curve, curve, curve]
    parts = [part + bytes(-len(part) % 4) for part in parts]
    at = 128 + 4 + 12 * len(parts)
    table = len(parts).to_bytes(4, "big")
    for name, part in zip(names, parts, strict=True):
        table += name + at.to_bytes(4, "big") + len(part).to_bytes(4, "big")
        at += len(part)
    head = bytearray(128)
    head[0:4] = at.to_bytes(4, "big")
    head[8:24] = b"\x02\x40\0\0mntrRGB XYZ "
    head[36:40] = b"acsp"
    head[68:80] = s15(*white)
    return bytes(head) + table + b"".join(parts)


DISPLAY_P3 = ((0.51512, 0.2412, -0.00105), (0.29198, 0.69225, 0.04189), (0.1571, 0.06657, 0.78407))
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
PROFILES = [
    pytest.param(rgb_profile(DISPLAY_P3, 2.2), id="wide"),
    pytest.param(rgb_profile(ADOBE, 2.2), id="Adobe RGB"),
    pytest.param(rgb_profile(DISPLAY_P3, 1.8), id="bright"),
]


def srgb_icc() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def converted(rgb: Rgb, source: bytes, target: bytes) -> Rgb:
    profiles = [ImageCms.ImageCmsProfile(io.BytesIO(each)) for each in (source, target)]
    image = ImageCms.profileToProfile(
        Image.fromarray(rgb),
        *profiles,
        renderingIntent=1,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert image is not None
    return np.asarray(image)


@pytest.fixture
def photo(astronaut: Rgb) -> Rgb:
    return np.ascontiguousarray(astronaut[60:160, 170:290])


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
@pytest.mark.parametrize("icc", PROFILES)
def test_what_is_read_of_it_is_srgb(icc: bytes, suffix: str, photo: Rgb, tmp_path: Path) -> None:
    path = tmp_path / f"photo.{suffix}"
    stored = converted(photo, srgb_icc(), icc)
    Image.fromarray(stored).save(path, icc_profile=icc, lossless=True)
    still = read_still(path, MediaLimits())
    assert still.icc == icc
    np.testing.assert_array_equal(still.picture.planes[0], stored)
    shown = still.picture.read(still.picture.box)
    assert np.abs(shown.astype(int) - photo).mean() < 1.5
    assert np.abs(stored.astype(int) - photo).mean() > 3


@pytest.mark.parametrize("icc", PROFILES)
def test_a_patch_that_is_not_changed_changes_nothing(
    icc: bytes, photo: Rgb, tmp_path: Path
) -> None:
    path = tmp_path / "photo.png"
    # All codes, also those whose colors sRGB lacks.
    Image.fromarray(photo).save(path, icc_profile=icc)
    picture = read_still(path, MediaLimits()).picture.copy()
    picture.write(BOX, picture.read(BOX))
    np.testing.assert_array_equal(picture.planes[0], photo)


@pytest.mark.parametrize("icc", PROFILES)
def test_a_patch_comes_back_in_the_profiles_own_space(
    icc: bytes, photo: Rgb, tmp_path: Path
) -> None:
    path = tmp_path / "photo.png"
    stored = converted(photo, srgb_icc(), icc)
    Image.fromarray(stored).save(path, icc_profile=icc)
    picture = read_still(path, MediaLimits()).picture.copy()
    patch = np.full((40, 40, 3), (200, 140, 110), np.uint8)
    picture.write(BOX, patch)
    wanted = converted(patch, srgb_icc(), icc)
    inside = np.s_[BOX.y0 : BOX.y1, BOX.x0 : BOX.x1]
    # The change is exact to a code or two; where it starts from is what 8 bits tell of it.
    assert np.abs(picture.planes[0][inside].astype(int) - wanted).max() <= 4
    outside = np.ones(stored.shape[:2], bool)
    outside[inside] = False
    np.testing.assert_array_equal(picture.planes[0][outside], stored[outside])
    assert np.abs(picture.read(BOX).astype(int) - patch).max() <= 4


@pytest.mark.parametrize(
    "icc",
    [
        pytest.param(None, id="no profile"),
        pytest.param(srgb_icc(), id="sRGB"),
        pytest.param(rgb_profile(DISPLAY_P3, 2.2)[:200], id="cut off"),
        pytest.param(b"\0" * 16 + b"GRAY" + b"\0" * 200, id="gray"),
        pytest.param(b"\0" * 16 + b"RGB " + b"\0" * 200, id="nonsense"),
    ],
)
def test_where_there_is_nothing_to_convert_nothing_is(icc: bytes | None) -> None:
    assert profile_conversion(icc) is None
