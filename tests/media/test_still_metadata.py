from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.core.picture import PIXEL_FORMATS
from app.media.limits import MediaLimits
from app.media.still import read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_metadata import clean_exif, parsed_exif, profile_fits
from app.media.still_types import StillFormat

DETAILS = 0x8769
SIZE_WH = (300, 400)


def exif_of(tags: dict[int, object], details: dict[int, object] | None = None) -> Image.Exif:
    exif = Image.Exif()
    for tag, value in tags.items():
        exif[tag] = value
    if details:
        exif[DETAILS] = details
    return parsed_exif(exif.tobytes())


def cleaned(tags: dict[int, object], details: dict[int, object] | None = None) -> Image.Exif:
    data = clean_exif(exif_of(tags, details), SIZE_WH)
    assert data is not None
    return parsed_exif(data)


def test_nothing_stays_nothing() -> None:
    assert clean_exif(Image.Exif(), SIZE_WH) == b""


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(0x010E, "A harbor", id="description"),
        pytest.param(0x8298, "(c) somebody", id="rights"),
        pytest.param(0x0132, "2020:01:02 03:04:05", id="date"),
        pytest.param(0x011A, 300.0, id="resolution"),
    ],
)
def test_what_describes_the_picture_is_kept(tag: int, value: object) -> None:
    assert cleaned({tag: value})[tag] == value


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(0x010F, "GONE", id="make"),
        pytest.param(0x0110, "GONE", id="model"),
        pytest.param(0x0112, 6, id="orientation"),
        pytest.param(0x0131, "GONE", id="software"),
        pytest.param(0x013B, "GONE", id="artist"),
        pytest.param(0x013C, "GONE", id="computer"),
        pytest.param(0x8825, {1: "N", 2: (48.0, 8.0, 0.0)}, id="GPS"),
        pytest.param(0x9C9D, b"G\0O\0N\0E\0", id="author"),
        pytest.param(0xC4A5, b"GONE", id="print image matching"),
    ],
)
def test_what_names_a_place_a_device_or_a_person_is_dropped(tag: int, value: object) -> None:
    kept = cleaned({tag: value, 0x010E: "kept"})
    assert dict(kept) == {0x010E: "kept"}


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        pytest.param(0x927C, b"GONE", id="maker note"),
        pytest.param(0xA420, "GONE", id="unique id"),
        pytest.param(0xA430, "GONE", id="owner"),
        pytest.param(0xA431, "GONE", id="body serial number"),
        pytest.param(0xA434, "GONE", id="lens"),
        pytest.param(0xA435, "GONE", id="lens serial number"),
        pytest.param(0x9286, b'ASCII\0\0\0{"AIGC":{}}', id="another program's label"),
    ],
)
def test_details_that_identify_are_dropped_and_the_exposure_is_kept(
    tag: int, value: object
) -> None:
    kept = cleaned({}, {tag: value, 0x829D: 2.8, 0x9286: b"ASCII\0\0\0hello"} | {tag: value})
    details = kept.get_ifd(DETAILS)
    assert details[0x829D] == 2.8
    assert "GONE" not in str(details)
    assert "AIGC" not in str(details)


def test_the_size_told_is_that_of_the_upright_picture() -> None:
    details = cleaned({}, {0xA002: 400, 0xA003: 300}).get_ifd(DETAILS)
    assert (details[0xA002], details[0xA003]) == SIZE_WH


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"Exif\0\0", id="prefix only"),
        pytest.param(b"Exif\0\0nonsense", id="nonsense"),
        pytest.param(b"Exif\0\0II*\0\xff\xff\xff\xff", id="outside the data"),
        pytest.param(b"Exif\0\0II*\0\x08\0\0\0\xff\xff", id="65 535 entries"),
    ],
)
def test_damaged_exif_is_none(data: bytes) -> None:
    assert clean_exif(parsed_exif(data), SIZE_WH) == b""


def test_exif_that_is_too_long_is_left_out() -> None:
    assert clean_exif(exif_of({0x010E: "x" * 65_000}), SIZE_WH) is None


@pytest.mark.parametrize("target", ["jpeg", "png", "webp", "tiff", "avif"])
@pytest.mark.parametrize("source", ["x.jpg", "x.png", "x.webp", "x.tiff"])
def test_exif_goes_from_every_kind_into_every_kind(
    tmp_path: Path, source: str, target: StillFormat
) -> None:
    exif = exif_of(
        {0x010E: "A harbor", 0x010F: "GONE", 0x8825: {1: "N", 2: (48.0, 8.0, 0.0)}},
        {0x829D: 2.8, 0xA431: "GONE"},
    )
    path = tmp_path / source
    Image.fromarray(np.zeros((16, 24, 3), np.uint8)).save(path, exif=exif)
    still = read_still(path, MediaLimits())
    out = tmp_path / "out"
    write_still(out, still, still.picture, xmp=b"<x/>", encoding=StillEncoding(format=target))
    again = read_still(out, MediaLimits())
    found = parsed_exif(again.exif)
    assert found[0x010E] == "A harbor"
    assert found.get_ifd(DETAILS)[0x829D] == 2.8
    assert b"GONE" not in out.read_bytes()


def test_a_thumbnail_of_the_old_face_does_not_go_along(tmp_path: Path) -> None:
    exif = exif_of({0x010E: "A harbor"})
    exif.get_ifd(0x8769)
    data = exif.tobytes() + b"\xff\xd8THUMBNAIL"
    path = tmp_path / "x.jpg"
    Image.new("RGB", (16, 16)).save(path, exif=data)
    still = read_still(path, MediaLimits())
    assert b"THUMBNAIL" not in still.exif


def icc(space: bytes, length: int = 128) -> bytes:
    head = length.to_bytes(4, "big") + bytes(12) + space + bytes(16) + b"acsp"
    return head.ljust(128, b"\0")


@pytest.mark.parametrize(
    ("profile", "layout", "fits"),
    [
        pytest.param(icc(b"RGB "), "rgb24", True, id="RGB"),
        pytest.param(icc(b"RGB "), "rgba64le", True, id="RGB with alpha"),
        pytest.param(icc(b"GRAY"), "ya8", True, id="gray"),
        pytest.param(icc(b"RGB "), "gray", False, id="RGB for gray"),
        pytest.param(icc(b"CMYK"), "rgb24", False, id="inks for RGB"),
        pytest.param(icc(b"RGB ", 129), "rgb24", False, id="cut"),
        pytest.param(b"", "rgb24", False, id="empty"),
    ],
)
def test_a_profile_fits_pixels_of_its_own_kind(profile: bytes, layout: str, fits: bool) -> None:
    assert profile_fits(profile, PIXEL_FORMATS[layout]) == fits
