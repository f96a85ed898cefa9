"""Pictures of printing inks stay such: what nobody changed keeps its inks, a changed face gets inks of its own."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms, JpegImagePlugin

from app.core.picture import PixelBox
from app.media.limits import MediaLimits
from app.media.still import read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_inks import Inks, ink_conversion
from app.media.still_types import Still, StillFormat
from tests.media.ink_profile import ink_profile, looks_like, printed
from tests.media.tiff_files import tiff_file

LIMITS = MediaLimits()
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
BOX = PixelBox(24, 16, 72, 56)
INSIDE = np.s_[16:56, 24:72]

Pixels = NDArray[Any]


@pytest.fixture(scope="module")
def icc() -> bytes:
    return ink_profile()


@pytest.fixture
def inks(astronaut: Pixels) -> Pixels:
    """96 x 80, with a face in it."""
    small = Image.fromarray(astronaut[40:200, 140:332]).resize((96, 80))
    return printed(np.asarray(small))


@pytest.fixture
def skin() -> Pixels:
    """48 x 40 of colors that every printer has."""
    y, x = np.mgrid[0:40, 0:48]
    return np.stack([150 + y, 110 + x, 90 + x], -1).astype(np.uint8)


def saved(path: Path, inks: Pixels, icc: bytes | None, **settings: Any) -> Path:
    name = "TIFF" if path.suffix == ".tiff" else "JPEG"
    Image.fromarray(inks, "CMYK").save(path, name, icc_profile=icc, **settings)
    return path


def ycck(path: Path, inks: Pixels, icc: bytes | None) -> Path:
    """A JPEG as Photoshop writes them: luma, chroma and black; Pillow stores inks upside down, and cannot do it."""
    ycc = np.asarray(Image.fromarray(np.ascontiguousarray(inks[..., :3])).convert("YCbCr"))
    stored = np.concatenate([255 - ycc, inks[..., 3:]], -1)
    saved(path, stored, icc, quality=95)
    data = path.read_bytes()
    at = data.index(b"Adobe") + 11
    path.write_bytes(data[:at] + b"\x02" + data[at + 1 :])
    return path


def again(
    still: Still, path: Path, patch: Pixels | None = None, name: StillFormat = "jpeg"
) -> tuple[str, ...]:
    picture = still.picture.copy()
    if patch is not None:
        picture.write(BOX, patch)
    notices = write_still(path, still, picture, xmp=XMP, encoding=StillEncoding(format=name))
    return tuple(notice.code for notice in notices)


def inks_of(path: Path) -> Pixels:
    with Image.open(path) as image:
        assert image.mode == "CMYK"
        return np.asarray(image).astype(int)


def mean_off(a: Pixels, b: Pixels) -> float:
    return float(np.abs(a.astype(float) - b).mean())


@pytest.mark.parametrize("has_profile", [True, False], ids=["a profile", "no profile"])
@pytest.mark.parametrize("kind", ["CMYK", "YCCK", "TIFF"])
def test_what_is_not_changed_keeps_its_inks(
    kind: str, has_profile: bool, inks: Pixels, icc: bytes, tmp_path: Path
) -> None:
    profile = icc if has_profile else None
    make, suffix = (ycck if kind == "YCCK" else saved), ".tiff" if kind == "TIFF" else ".jpg"
    path = make(tmp_path / f"x{suffix}", inks, profile)
    out, name = tmp_path / f"out{suffix}", "tiff" if kind == "TIFF" else "jpeg"
    still = read_still(path, LIMITS)
    assert again(still, out, name=name) == ()  # type: ignore[arg-type]
    off = np.abs(inks_of(out) - inks_of(path))
    # A JPEG coded again with its own tables: some rounding, where blocks were at the end of a step.
    assert off.max() <= (0 if kind == "TIFF" else 9)
    assert off.mean() < 0.5
    with Image.open(out) as image:
        assert image.info.get("icc_profile") == profile
        assert (image.info.get("xmp") or image.tag_v2[700]) == XMP  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["CMYK", "YCCK", "TIFF"])
def test_a_changed_face_is_printed_as_it_was_meant(
    kind: str, inks: Pixels, skin: Pixels, icc: bytes, tmp_path: Path
) -> None:
    make, suffix = (ycck if kind == "YCCK" else saved), ".tiff" if kind == "TIFF" else ".jpg"
    path = make(tmp_path / f"x{suffix}", inks, icc)
    out, name = tmp_path / f"out{suffix}", "tiff" if kind == "TIFF" else "jpeg"
    assert again(read_still(path, LIMITS), out, skin, name) == ()  # type: ignore[arg-type]
    before, after = inks_of(path), inks_of(out)
    shown = ink_conversion(icc).to_rgb(after.astype(np.uint8))[INSIDE]
    assert mean_off(shown, skin) < 4
    # By the printer's own law too, which knows no correction of its black.
    assert mean_off(looks_like(after)[INSIDE], skin) < 12
    outside = np.ones(after.shape[:2], bool)
    # Blocks of a JPEG that the patch has a part in change as a whole.
    outside[16:56, 24:72] = False
    assert np.abs(before - after)[outside].max() <= (0 if kind == "TIFF" else 9)


def test_without_a_profile_a_change_is_subtracted_from_white(
    inks: Pixels, skin: Pixels, tmp_path: Path
) -> None:
    path = saved(tmp_path / "x.tiff", inks, None)
    assert again(read_still(path, LIMITS), tmp_path / "out.tiff", skin, "tiff") == ()
    with Image.open(tmp_path / "out.tiff") as image:
        shown = np.asarray(image.convert("RGB"))[INSIDE]
    assert mean_off(shown, skin) < 1.5
    assert not (inks_of(tmp_path / "out.tiff") - inks)[:16].any()


def test_a_soft_border_is_no_line_in_any_ink(icc: bytes) -> None:
    """One gray, printed with black alone, and changed ever more from left to right."""
    conversion = ink_conversion(icc)
    pixels = np.zeros((4, 64, 4), np.uint8)
    pixels[..., 3] = 140
    rgb = conversion.to_rgb(pixels)
    new = np.clip(rgb.astype(int) + np.linspace(0, 40, 64).astype(int)[None, :, None], 0, 255)
    out = Inks(pixels=pixels, rgb=rgb, conversion=conversion).changed_to(new.astype(np.uint8))
    steps = np.abs(np.diff(out.astype(int), axis=1))
    assert steps.max() <= 8
    own = conversion.to_inks(rgb)[0, 0].astype(int)
    assert np.abs(own - pixels[0, 0]).max() > 60, "the profile itself would mix it in another way"
    assert mean_off(conversion.to_rgb(out), new) < 3


def test_only_what_is_changed_is_converted() -> None:
    asked: list[tuple[int, ...]] = []
    plain = ink_conversion(None)

    def noted(rgb: Pixels) -> Pixels:
        asked.append(rgb.shape)
        return plain.to_inks(rgb)

    pixels = np.full((1000, 50, 4), 40, np.uint8)
    conversion = type(plain)(to_rgb=plain.to_rgb, to_inks=noted, icc=None)
    inks = Inks(pixels=pixels, rgb=plain.to_rgb(pixels), conversion=conversion)
    assert inks.changed_to(inks.rgb).tobytes() == pixels.tobytes()
    assert asked == []
    new = inks.rgb.copy()
    new[300, 20:24] = 9
    out = inks.changed_to(new)
    assert max(shape[1] for shape in asked) == 4
    assert (out != pixels).any(axis=2).sum() == 4


@pytest.mark.parametrize("target", ["png", "webp", "avif"])
def test_formats_without_inks_get_rgb_and_it_is_said(
    target: StillFormat, inks: Pixels, icc: bytes, tmp_path: Path
) -> None:
    still = read_still(saved(tmp_path / "x.jpg", inks, icc), LIMITS)
    assert again(still, tmp_path / "out", None, target) == ("still.cmyk_converted",)
    written = read_still(tmp_path / "out", LIMITS)
    assert (written.inks, written.icc) == (None, None)
    assert mean_off(written.picture.read(written.picture.box), still.picture.planes[0]) < 6


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(b"no profile at all" * 20, id="nonsense"),
        pytest.param(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(), id="RGB"),
    ],
)
def test_a_profile_that_is_not_of_inks_is_left_out_and_it_is_said(
    profile: bytes, inks: Pixels, tmp_path: Path
) -> None:
    still = read_still(saved(tmp_path / "x.jpg", inks, profile), LIMITS)
    assert [notice.code for notice in still.notices] == ["still.profile_dropped"]
    again(still, tmp_path / "out.jpg")
    with Image.open(tmp_path / "out.jpg") as image:
        assert (image.mode, image.info.get("icc_profile")) == ("CMYK", None)


@pytest.mark.parametrize("quality", [60, 95])
@pytest.mark.parametrize("is_progressive", [True, False])
def test_a_jpeg_of_inks_is_coded_again_as_it_was(
    quality: int, is_progressive: bool, inks: Pixels, tmp_path: Path
) -> None:
    path = saved(tmp_path / "x.jpg", inks, None, quality=quality, progressive=is_progressive)
    again(read_still(path, LIMITS), tmp_path / "out.jpg")
    with Image.open(path) as before, Image.open(tmp_path / "out.jpg") as after:
        assert isinstance(before, JpegImagePlugin.JpegImageFile)
        assert isinstance(after, JpegImagePlugin.JpegImageFile)
        tables = [[image.quantization[x[3]] for x in image.layer] for image in (before, after)]
        assert tables[0] == tables[1]
        assert len(before.quantization) == len(after.quantization), "and no table twice"
        assert {layer[1:3] for layer in after.layer} == {(1, 1)}
        assert bool(after.info.get("progressive")) == is_progressive


@pytest.mark.parametrize("orientation", range(1, 9))
def test_inks_come_out_upright(orientation: int, inks: Pixels, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / "x.jpg", inks, None, quality=95, exif=exif)
    still = read_still(path, LIMITS)
    again(still, tmp_path / "out.jpg")
    with Image.open(tmp_path / "out.jpg") as image:
        assert image.size == still.picture.size_wh == ((96, 80) if orientation < 5 else (80, 96))
        seen = np.asarray(image.convert("RGB"))
    assert mean_off(seen, still.picture.planes[0]) < 2


def test_inks_of_16_bits_are_written_with_8_and_it_is_said(tmp_path: Path) -> None:
    pixels = np.zeros((8, 8, 4), np.uint16)
    pixels[:, 4:, 0] = 65_535
    path = tmp_path / "x.tiff"
    path.write_bytes(tiff_file(pixels, t262=5))
    still = read_still(path, LIMITS)
    assert again(still, tmp_path / "out.tiff", None, "tiff") == ("still.depth_reduced",)
    assert inks_of(tmp_path / "out.tiff")[0, 7].tolist() == [255, 0, 0, 0]


def test_a_jpeg_of_colors_takes_no_tables_of_inks(inks: Pixels, tmp_path: Path) -> None:
    """And inks of another format take those of their quality."""
    path = saved(tmp_path / "x.tiff", inks, None)
    again(read_still(path, LIMITS), tmp_path / "out.jpg")
    assert mean_off(inks_of(tmp_path / "out.jpg"), inks) < 4


def test_what_pillow_reads_is_what_was_written(inks: Pixels, icc: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path / "x.jpg", inks, icc, quality=95)
    again(read_still(path, LIMITS), tmp_path / "out.jpg")
    with Image.open(io.BytesIO((tmp_path / "out.jpg").read_bytes())) as image:
        image.load()
        assert image.info["adobe_transform"] == 0
