"""Stills as phones, cameras and programs write them today: deep, HDR, with more in the file than the picture."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms

from app.core.picture import PixelBox
from app.media.limits import MediaLimits
from app.media.still import read_still, still_info, write_still
from app.media.still_encode import StillEncoding
from app.media.still_metadata import parsed_exif
from app.media.still_types import Still, StillFormat
from tests.media.bombs import png_chunk
from tests.media.heif_files import Item, alpha_item, full_box, heif_file, hevc_item

XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
LIMITS = MediaLimits()
BOX = PixelBox(20, 10, 60, 50)
Pixels = NDArray[Any]


@pytest.fixture
def photo(astronaut: Pixels) -> Image.Image:
    """101 x 67: odd sides, all colors of a photo."""
    return Image.fromarray(astronaut[:134, 150:352]).resize((101, 67))


def again(
    still: Still, path: Path, name: StillFormat, quality: int = 80
) -> tuple[Still, tuple[str, ...]]:
    """What was written and read, and the codes of what got lost."""
    encoding = StillEncoding(format=name, quality=quality)
    notices = write_still(path, still, still.picture, xmp=XMP, encoding=encoding)
    return read_still(path, LIMITS), tuple(notice.code for notice in notices)


def codes(still: Still) -> tuple[str, ...]:
    return tuple(notice.code for notice in still.notices)


def rgb(still: Still) -> Pixels:
    return still.picture.read(still.picture.box)


def difference(a: Pixels, b: Pixels) -> float:
    return float(np.abs(a.astype(float) - b).mean())


def deep_avif(pixels: Pixels, bits: int, quality: int = 95) -> bytes:
    """An AVIF of RGB, RGB with alpha, or gray, of so many bits."""
    order = {2: slice(None), 3: (..., [2, 1, 0]), 4: (..., [2, 1, 0, 3])}
    channels = 2 if pixels.ndim == 2 else pixels.shape[2]
    bgr = np.ascontiguousarray(pixels[order[channels]])
    settings = [cv2.IMWRITE_AVIF_DEPTH, bits, cv2.IMWRITE_AVIF_QUALITY, quality]
    done, data = cv2.imencode(".avif", bgr, settings)
    assert done
    return data.tobytes()


def ramp(bits: int, channels: int) -> Pixels:
    """All tones from black to white, each channel its own way; finer steps than 8 bits have."""
    top = (1 << bits) - 1
    x, y = np.linspace(0, top, 160), np.linspace(0, top, 96)
    planes = np.broadcast_arrays(x[None], y[:, None], x[None, ::-1], y[::-1, None])
    return np.dstack(planes[:channels]).astype(np.uint16).squeeze()


@pytest.mark.parametrize("bits", [10, 12])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_an_avif_keeps_its_bits(tmp_path: Path, bits: int, channels: int) -> None:
    path = tmp_path / "x.avif"
    pixels = ramp(bits, channels)
    path.write_bytes(deep_avif(pixels, bits))
    info, still = still_info(path, LIMITS), read_still(path, LIMITS)
    layout = {1: "gray16le", 3: "rgb48le", 4: "rgba64le"}[channels]
    assert (info.bits, info.pixel_format) == (bits, layout)
    assert codes(still) == ()
    scale = 65_535 / ((1 << bits) - 1)
    assert difference(still.picture.planes[0] / scale, pixels) < (2 << (bits - 10)) * 1.5
    written, lost = again(still, tmp_path / "out", "avif", quality=95)
    assert (written.bits, written.picture.pixel_format.name, lost) == (bits, layout, ())
    assert difference(written.picture.planes[0], still.picture.planes[0]) < 200
    assert len(np.unique(written.picture.planes[0])) > (150 if channels == 1 else 300)


@pytest.mark.parametrize("size_wh", [(101, 67), (100, 67), (101, 66), (3, 5)])
def test_odd_sides_of_a_deep_avif_stay(tmp_path: Path, size_wh: tuple[int, int]) -> None:
    path = tmp_path / "x.avif"
    w, h = size_wh
    path.write_bytes(deep_avif(ramp(10, 3)[:h, :w], 10))
    still = read_still(path, LIMITS)
    assert still.picture.size_wh == size_wh
    assert again(still, tmp_path / "out", "avif")[0].picture.size_wh == size_wh


def test_transparency_of_a_deep_avif_is_kept_value_for_value(tmp_path: Path) -> None:
    path = tmp_path / "x.avif"
    path.write_bytes(deep_avif(ramp(10, 4), 10, quality=100))
    still = read_still(path, LIMITS)
    written, _ = again(still, tmp_path / "out", "avif", quality=40)
    alpha = still.picture.planes[0][..., 3]
    np.testing.assert_array_equal(written.picture.planes[0][..., 3], alpha)


def test_16_bits_become_10_in_an_avif_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    cv2.imwrite(str(path), ramp(16, 3))
    written, lost = again(read_still(path, LIMITS), tmp_path / "out", "avif")
    assert (written.bits, lost) == (10, ("still.depth_reduced",))


def test_a_gray_avif_stays_gray(photo: Image.Image, tmp_path: Path) -> None:
    path = tmp_path / "x.avif"
    cv2.imwrite(str(path), np.asarray(photo.convert("L")))
    still = read_still(path, LIMITS)
    assert still.picture.pixel_format.name == "gray"
    picture = still.picture.copy()
    picture.write(picture.box, np.full((67, 101, 3), (250, 20, 90), np.uint8))
    out = tmp_path / "out"
    write_still(out, still, picture, xmp=XMP, encoding=StillEncoding(format="avif"))
    values = rgb(read_still(out, LIMITS)).astype(int)
    assert np.ptp(values, axis=-1).max() <= 1


def tagged(data: bytes, primaries: int, transfer: int) -> bytes:
    at = data.index(b"colrnclx") + 8
    return data[:at] + struct.pack(">HH", primaries, transfer) + data[at + 4 :]


def deep_png(pixels: Pixels, *chunks: bytes) -> bytes:
    h, w = pixels.shape[:2]
    rows = pixels.astype(">u2").reshape(h, -1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    head = struct.pack(">IIBBBBB", w, h, 16, {3: 2, 4: 6}[pixels.shape[2]], 0, 0, 0)
    parts = (png_chunk(b"IHDR", head), *chunks, png_chunk(b"IDAT", body), png_chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def hdr_file(
    folder: Path, kind: str, transfer: int, channels: int = 3, pixels: Pixels | None = None
) -> Path:
    """The ramp, or 16-bit pixels, as PQ (16) or HLG (18) codes."""
    pixels = ramp(16, channels) if pixels is None else pixels
    path = folder / f"hdr.{kind}"
    if kind == "avif":
        path.write_bytes(tagged(deep_avif(pixels >> 6, 10, 99), 9, transfer))
    else:
        cicp = png_chunk(b"cICP", bytes((9, transfer, 0, 1)))
        path.write_bytes(deep_png(pixels, cicp))
    return path


@pytest.mark.parametrize("transfer", [16, 18], ids=["PQ", "HLG"])
@pytest.mark.parametrize("target", ["png", "avif"])
@pytest.mark.parametrize("kind", ["png", "avif"])
def test_hdr_goes_from_every_deep_kind_into_every_deep_kind(
    tmp_path: Path, kind: str, target: StillFormat, transfer: int
) -> None:
    still = read_still(hdr_file(tmp_path, kind, transfer), LIMITS)
    assert still.picture.tags.transfer == transfer
    written, lost = again(still, tmp_path / "out", target, quality=95)
    assert lost == (("still.depth_reduced",) if (kind, target) == ("png", "avif") else ())
    assert (written.picture.tags.transfer, written.picture.tags.primaries) == (transfer, 9)
    with av.open(str(tmp_path / "out"), format={"avif": "mov", "png": "png_pipe"}[target]) as file:
        frame = next(file.decode(video=0))
        assert (frame.color_trc, frame.color_primaries) == (transfer, 9)
    assert difference(written.picture.planes[0], still.picture.planes[0]) < 400
    assert difference(rgb(written), rgb(still)) < 3


@pytest.mark.parametrize("transfer", [16, 18], ids=["PQ", "HLG"])
@pytest.mark.parametrize("kind", ["png", "avif"])
def test_a_patch_in_an_hdr_still_is_seen_as_it_was_meant(
    tmp_path: Path, kind: str, transfer: int
) -> None:
    """In colors that ordinary screens have; what lies outside of them only comes near."""
    pixels = (ramp(16, 3)[..., :1] * np.array([0.6, 0.55, 0.5])).astype(np.uint16)
    path = hdr_file(tmp_path, kind, transfer, pixels=pixels)
    picture = read_still(path, LIMITS).picture.copy()
    before = picture.planes[0].copy()
    patch = picture.read(BOX)
    picture.write(BOX, patch)
    np.testing.assert_array_equal(picture.planes[0], before)
    patch[10:30, 10:30] = 180, 120, 100
    picture.write(BOX, patch)
    assert np.abs(picture.read(BOX)[10:30, 10:30].astype(int) - patch[10:30, 10:30]).max() <= 3
    changed = (picture.planes[0] != before).any(-1)
    changed[20:40, 30:50] = False
    assert not changed.any()


@pytest.mark.parametrize("target", ["jpeg", "webp", "tiff"])
@pytest.mark.parametrize("channels", [3, 4])
def test_hdr_becomes_an_ordinary_picture_where_a_format_has_none(
    tmp_path: Path, target: StillFormat, channels: int
) -> None:
    still = read_still(hdr_file(tmp_path, "png", 16, channels), LIMITS)
    written, lost = again(still, tmp_path / "out", target, quality=97)
    assert lost[0] == "still.tone_mapped"
    assert written.bits == 8
    if channels == 3:
        assert difference(rgb(written), rgb(still)) < 8


def interlaced(pixels: Pixels) -> bytes:
    """An 8-bit PNG in the seven passes of Adam7. Source: PNG specification, 8.2."""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)]
    passes += [(0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    parts = (pixels[y::dy, x::dx] for x, y, dx, dy in passes)
    rows = b"".join(b"\0" + row.tobytes() for part in parts for row in part if part.size)
    h, w = pixels.shape[:2]
    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 1)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks)


def test_an_interlaced_png_is_read_value_for_value(photo: Image.Image, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(interlaced(np.asarray(photo)))
    np.testing.assert_array_equal(read_still(path, LIMITS).picture.planes[0], np.asarray(photo))


def test_what_a_png_says_of_its_colors_is_kept(photo: Image.Image, tmp_path: Path) -> None:
    gamma = (b"gAMA", (100_000).to_bytes(4, "big"))
    white = (
        b"cHRM",
        struct.pack(">8I", 31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000),
    )
    data = io.BytesIO()
    photo.save(data, "PNG")
    raw = data.getvalue()
    path = tmp_path / "x.png"
    path.write_bytes(raw[:33] + png_chunk(*gamma) + png_chunk(*white) + raw[33:])
    again(read_still(path, LIMITS), tmp_path / "out", "png")
    written = (tmp_path / "out").read_bytes()
    assert png_chunk(*gamma) in written
    assert png_chunk(*white) in written


def app_segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def jpeg(photo: Image.Image, *segments: bytes, tail: bytes = b"", **settings: Any) -> bytes:
    data = io.BytesIO()
    photo.save(data, "JPEG", quality=90, **settings)
    return data.getvalue()[:2] + b"".join(segments) + data.getvalue()[2:] + tail


def xmp_segment(inside: str) -> bytes:
    packet = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description rdf:about="" {inside}/></rdf:RDF></x:xmpmeta>'
    )
    return app_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet.encode())


GAIN_MAP = xmp_segment('xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"')
MOTION = xmp_segment(
    'xmlns:GCamera="http://ns.google.com/photos/1.0/camera/" GCamera:MotionPhoto="1"'
)
SECOND_VIEW = app_segment(0xE2, b"MPF\0" + b"MM\0*" + bytes(40))
MP4 = struct.pack(">I", 24) + b"ftypmp42" + bytes(4) + b"mp42isom" + b"OLDFACE" * 99


@pytest.mark.parametrize(
    ("segments", "tail"),
    [
        pytest.param((GAIN_MAP, SECOND_VIEW), "jpeg", id="gain map"),
        pytest.param((SECOND_VIEW,), "jpeg", id="second view"),
        pytest.param((MOTION,), "mp4", id="motion photo"),
    ],
)
@pytest.mark.parametrize("target", ["jpeg", "png", "webp"])
def test_other_pictures_of_the_old_face_do_not_go_on_and_it_is_said(
    photo: Image.Image,
    tmp_path: Path,
    segments: tuple[bytes, ...],
    tail: str,
    target: StillFormat,
) -> None:
    behind = MP4 if tail == "mp4" else jpeg(photo, app_segment(0xEE, b"OLDFACE"))
    path = tmp_path / "x.jpg"
    path.write_bytes(jpeg(photo, *segments, tail=behind))
    still = read_still(path, LIMITS)
    assert codes(still) == ("still.extras_dropped",)
    again(still, tmp_path / "out", target)
    data = (tmp_path / "out").read_bytes()
    assert not any(word in data for word in (b"OLDFACE", b"MPF\0", b"ftypmp42", b"hdrgm"))
    assert data.count(b"\xff\xd8\xff") == (target == "jpeg")


@pytest.mark.parametrize(
    ("kind", "is_said"),
    [
        pytest.param(b"urn:com:apple:photo:2020:aux:hdrgainmap", True, id="gain map"),
        pytest.param(b"urn:mpeg:hevc:2015:auxid:2", True, id="depth"),
        pytest.param(None, False, id="transparency"),
    ],
)
def test_a_heic_says_what_else_it_held(
    photo: Image.Image, tmp_path: Path, kind: bytes | None, is_said: bool
) -> None:
    gray = np.asarray(photo.convert("L"))
    helper = alpha_item(gray)
    if kind is not None:
        about = ((b"auxl", (1,)),)
        helper = hevc_item(gray, full_box(b"auxC", kind + b"\0"), references=about, is_hidden=True)
    path = tmp_path / "x.heic"
    path.write_bytes(heif_file(hevc_item(np.asarray(photo)), helper))
    still = read_still(path, LIMITS)
    assert codes(still) == (("still.extras_dropped",) if is_said else ())
    assert still.picture.pixel_format.has_alpha != is_said


def test_a_motion_photo_of_a_heic_is_read_without_its_video(
    photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x.heic"
    video = struct.pack(">I", 8 + len(MP4)) + b"mpvd" + MP4
    path.write_bytes(heif_file(hevc_item(np.asarray(photo))) + video)
    assert difference(rgb(read_still(path, LIMITS)), np.asarray(photo)) < 3


def test_a_heif_of_another_codec_is_refused_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "x.heic"
    ispe = full_box(b"ispe", struct.pack(">II", 8, 8))
    path.write_bytes(heif_file(Item(kind=b"jpeg", data=b"x", properties=(ispe,))))
    with pytest.raises(Exception, match="'jpeg'") as caught:
        read_still(path, LIMITS)
    assert getattr(caught.value, "code", "") == "media.unsupported_type"


def test_a_thumbnail_in_the_exif_does_not_go_on(photo: Image.Image, tmp_path: Path) -> None:
    """IFD 1 of the EXIF holds a JPEG of the picture as it was."""
    small = jpeg(photo.resize((40, 26)))
    ifd0 = struct.pack("<HHHII", 1, 0x010E, 2, 4, int.from_bytes(b"old\0", "little"))
    at = 8 + len(ifd0) + 4 + 2 + 24 + 4
    ifd1 = struct.pack("<H", 2) + struct.pack("<HHII", 0x0201, 4, 1, at)
    ifd1 += struct.pack("<HHII", 0x0202, 4, 1, len(small)) + bytes(4)
    data = (
        b"Exif\0\0II*\0" + struct.pack("<I", 8) + ifd0 + struct.pack("<I", 8 + len(ifd0) + 4) + ifd1
    )
    path = tmp_path / "x.jpg"
    path.write_bytes(jpeg(photo, exif=data + small))
    still = read_still(path, LIMITS)
    again(still, tmp_path / "out", "jpeg")
    assert (tmp_path / "out").read_bytes().count(b"\xff\xd8\xff") == 1
    assert parsed_exif(still.exif)[0x010E].startswith("old")


@pytest.mark.parametrize("settings", [{"restart_marker_blocks": 3}, {"restart_marker_rows": 1}])
@pytest.mark.parametrize("is_progressive", [False, True])
def test_restart_markers_are_no_obstacle(
    photo: Image.Image, tmp_path: Path, is_progressive: bool, settings: dict[str, int]
) -> None:
    path = tmp_path / "x.jpg"
    path.write_bytes(jpeg(photo, progressive=is_progressive, **settings))
    still = read_still(path, LIMITS)
    assert difference(rgb(still), np.asarray(photo)) < 6
    assert again(still, tmp_path / "out", "jpeg")[1] == ()


@pytest.mark.parametrize("transform", [0, 2], ids=["CMYK", "YCCK"])
def test_inks_of_both_codings_show_the_same(
    photo: Image.Image, tmp_path: Path, transform: int
) -> None:
    """Pillow writes plain inks; told that they are YCCK, the same numbers are other colors, but no failure."""
    data = jpeg(photo.convert("CMYK"))
    at = data.index(b"Adobe") + 11
    path = tmp_path / "x.jpg"
    path.write_bytes(data[:at] + bytes((transform,)) + data[at + 1 :])
    still = read_still(path, LIMITS)
    assert codes(still) == ()
    with Image.open(path) as image:
        wanted = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(rgb(still), wanted)


DPI_TARGETS: tuple[StillFormat, ...] = ("jpeg", "png", "tiff")


@pytest.mark.parametrize("target", DPI_TARGETS)
@pytest.mark.parametrize("source", ["x.jpg", "x.png", "x.tiff"])
def test_an_odd_resolution_is_kept(
    photo: Image.Image, tmp_path: Path, source: str, target: StillFormat
) -> None:
    path = tmp_path / source
    photo.save(path, dpi=(317, 211))
    written, _ = again(read_still(path, LIMITS), tmp_path / "out", target)
    assert written.dpi == pytest.approx((317, 211), abs=0.6)


BMP_MODES = [
    pytest.param("1", id="1 bit"),
    pytest.param("L", id="gray"),
    pytest.param("P", id="palette"),
    pytest.param("RGB", id="24 bits"),
    pytest.param("RGBA", id="32 bits"),
]


@pytest.mark.parametrize("mode", BMP_MODES)
def test_a_bmp_of_every_depth_shows_what_it_showed(
    photo: Image.Image, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "x.bmp"
    image = photo.convert(mode)
    image.save(path)
    still = read_still(path, LIMITS)
    np.testing.assert_array_equal(rgb(still), np.asarray(image.convert("RGB")))


def gray_profile(gamma: float) -> bytes:
    """One curve of gray. Source: ICC.1:2010, 8.3.4 and 10.5."""

    def s15(*values: float) -> bytes:
        return b"".join(round(value * 65_536).to_bytes(4, "big") for value in values)

    white = s15(0.9642, 1.0, 0.8249)
    curve = b"curv\0\0\0\0" + struct.pack(">IHH", 1, round(gamma * 256), 0)
    text = b"desc\0\0\0\0" + struct.pack(">I", 5) + b"test\0" + bytes(79)
    parts = {b"wtpt": b"XYZ \0\0\0\0" + white, b"desc": text, b"cprt": b"text\0\0\0\0free\0\0\0\0"}
    parts[b"kTRC"] = curve
    at, table, body = 132 + 12 * len(parts), struct.pack(">I", len(parts)), b""
    for name, part in parts.items():
        padded = part + bytes(-len(part) % 4)
        table += name + struct.pack(">II", at + len(body), len(padded))
        body += padded
    head = bytearray(128)
    head[0:4] = struct.pack(">I", at + len(body))
    head[8:24] = b"\x02\x40\0\0mntrGRAYXYZ "
    head[36:40] = b"acsp"
    head[68:80] = white
    return bytes(head) + table + body


@pytest.mark.parametrize("gamma", [1.0, 1.8, 2.6])
@pytest.mark.parametrize("suffix", ["png", "tiff", "jpg"])
def test_gray_in_a_profile_is_read_as_it_looks_and_changed_in_its_own_values(
    photo: Image.Image, tmp_path: Path, suffix: str, gamma: float
) -> None:
    icc = gray_profile(gamma)
    path = tmp_path / f"x.{suffix}"
    photo.convert("L").save(path, icc_profile=icc, **({"quality": 100} if suffix == "jpg" else {}))
    still = read_still(path, LIMITS)
    assert still.icc == icc
    picture = still.picture.copy()
    before = picture.planes[0].copy()
    patch = picture.read(BOX)
    own, srgb = (ImageCms.ImageCmsProfile(io.BytesIO(icc)), ImageCms.createProfile("sRGB"))
    flags = ImageCms.Flags.BLACKPOINTCOMPENSATION
    shown = ImageCms.profileToProfile(
        Image.fromarray(before), own, srgb, renderingIntent=1, outputMode="RGB", flags=flags
    )
    assert shown is not None
    assert difference(rgb(still), np.asarray(shown)) < 1
    picture.write(BOX, patch)
    np.testing.assert_array_equal(picture.planes[0], before)
    patch[:] = 200, 120, 90
    picture.write(BOX, patch)
    wanted = ImageCms.profileToProfile(
        Image.new("RGB", (1, 1), (200, 120, 90)),
        srgb,
        own,
        renderingIntent=1,
        outputMode="L",
        flags=flags,
    )
    assert wanted is not None
    inside = picture.planes[0][BOX.y0 : BOX.y1, BOX.x0 : BOX.x1].astype(int)
    assert np.abs(inside - np.asarray(wanted)[0, 0]).max() <= 12
    assert np.abs(inside - np.asarray(wanted)[0, 0]).mean() <= 2


def test_gray_in_a_profile_looks_the_same_in_a_format_without_gray(
    photo: Image.Image, tmp_path: Path
) -> None:
    path = tmp_path / "x.png"
    photo.convert("L").save(path, icc_profile=gray_profile(1.0))
    still = read_still(path, LIMITS)
    written, _ = again(still, tmp_path / "out", "webp")
    assert written.icc is None
    assert difference(rgb(written), rgb(still)) < 3


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "avif", "tiff"])
def test_exif_of_any_length_is_no_obstacle(photo: Image.Image, tmp_path: Path, suffix: str) -> None:
    exif = Image.Exif()
    exif[0x010E] = "A harbor"
    exif.get_ifd(0x8769)[0x927C] = b"GONE" * 12_000
    path = tmp_path / f"x.{suffix}"
    photo.save(path, exif=exif.tobytes())
    still = read_still(path, LIMITS)
    written, _ = again(still, tmp_path / "out", still.format)
    assert b"GONE" not in (tmp_path / "out").read_bytes()
    assert parsed_exif(written.exif)[0x010E] == "A harbor"
