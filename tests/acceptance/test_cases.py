"""Every video and animation of the shared hard cases: looked at, swapped, compared with what it was made to be."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from app.core.color import ColorTags
from app.core.errors import AppError
from app.media.decode import VideoReader
from app.media.info import MediaInfo
from app.media.probe import probe
from app.media.sniff import MediaKind
from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec
from app.workbench import Workbench
from tests.acceptance.conftest import Case

pytestmark = [pytest.mark.slow, pytest.mark.weights]

VIDEO_GROUPS = ("video", "motion", "animation")
REFUSED = {
    "broken_corrupt_middle.mp4": "media.damaged",
    "broken_no_moov.mp4": "media.truncated",
    "broken_cut_after_moov.mp4": "media.truncated",
    "broken_zero_byte.mp4": "media.empty",
    "broken_text.mp4": "media.unsupported_type",
    "broken_audio_only.mp4": "media.no_video",
}
"""What cannot be a result, and the documented code that says so."""

WARNED = {
    "video_prores4444_alpha.mov": ("media.depth_reduced",),
    "video_interlaced.mp4": ("media.deinterlaced",),
    "video_mpeg2.ts": ("media.audio_converted",),
}
"""Cases whose result says that something is not as it was; every other result is silent."""

CONVERTED = ("video_mpeg2.ts",)
"""Cases whose sound does not fit the container: MPEG layer 2 in MP4."""

SUFFIXES = {
    MediaKind.AVI: ".mkv",
    MediaKind.MPEGTS: ".mp4",
    MediaKind.MATROSKA: ".mkv",
    MediaKind.WEBM: ".webm",
    MediaKind.MOV: ".mov",
    MediaKind.GIF: ".gif",
    MediaKind.APNG: ".apng",
    MediaKind.ANIMATED_WEBP: ".webp",
}


def names(*groups: str) -> Sequence[str]:
    """Names of cases, as far as they are known before they are made."""
    return [name for name, group in KNOWN if group in groups]


KNOWN = (
    *(
        (f"video_{name}", "video")
        for name in (
            "rotation_90.mp4", "rotation_180.mp4", "rotation_270.mp4", "vfr.mp4", "audio_longer.mp4",
            "audio_shorter.mp4", "audio_starts_late.mkv", "no_audio.mp4", "audio_5_1.mp4",
            "two_audio_subs.mkv", "two_audio_subs.mp4", "hevc_hdr10.mp4", "hevc_8bit.mp4",
            "full_range.mp4", "bt601_tagged.mp4", "444.mp4", "10bit_h264.mp4", "odd_719x405.mp4",
            "odd_719x405_420.mkv", "sar_4_3.mp4", "1fps.mp4", "23_976fps.mp4", "59_94fps.mp4",
            "120fps.mp4", "one_frame.mp4", "long_gop_bframes.mp4", "frame_counter.mp4",
            "mkv_h264_opus.mkv", "prores.mov", "prores4444_alpha.mov", "mjpeg.avi", "interlaced.mp4",
            "mpeg2.ts", "vp9_alpha.webm", "av1.mp4", "portrait_1080x1920.mp4", "4k.mp4",
        )
    ),
    *(
        (f"motion_{name}.mp4", "motion")
        for name in (
            "group_pan_zoom", "two_person_side_by_side", "two_people_swap_sides", "scene_cut",
            "face_leaves_and_returns", "occluding_bar", "fade_to_black", "flash",
        )
    ),
    *(
        (f"anim_{name}", "animation")
        for name in ("alpha.gif", "alpha.webp", "alpha.apng", "opaque.gif")
    ),
    ("wrong_extension_mkv.mp4", "video"),
    ("names/-leading dash ü.mp4", "video"),
    ("names/ビデオ 'it''s' %03d.mp4", "video"),
)  # fmt: skip


def swap(workbench: Workbench, assets: Path, target: Path, output: Path) -> RenderResult:
    source = assets / "stills" / "frontal_astronaut.png"
    return workbench.render(
        RenderSpec(sources=(source,), target=target, output=output, consent="permission")
    )


def frame_times(path: Path) -> list[Fraction]:
    with VideoReader(path) as reader:
        return [frame.pts * frame.time_base for frame in reader.frames()]


def sound(path: Path) -> list[list[tuple[float, bytes]]]:
    """Time, in milliseconds, and bytes of every audio packet, a list a track."""
    with av.open(str(path)) as container:
        found: dict[int, list[tuple[float, bytes]]] = {
            stream.index: [] for stream in container.streams.audio
        }
        for packet in container.demux(container.streams.audio) if found else ():
            if packet.size and packet.pts is not None:
                at_ms = float(packet.pts * packet.time_base * 1000)
                found[packet.stream_index].append((round(at_ms), bytes(packet)))
    return list(found.values())


def test_the_manifest_holds_no_video_that_is_not_tried_here(cases: dict[str, Case]) -> None:
    moving = {name for name, case in cases.items() if case.group in VIDEO_GROUPS}
    assert moving <= {name for name, _ in KNOWN}


@pytest.mark.parametrize("name", names(*VIDEO_GROUPS))
def test_probe_says_what_a_case_was_made_to_be(name: str, cases: dict[str, Case]) -> None:
    case = cases[name]
    info, expect = probe(case.path), case.expect
    assert info.frames == expect.get("frames", info.frames)
    assert info.codec == expect.get("codec", info.codec)
    assert info.size_wh == tuple(expect.get("shown_size", expect.get("stored_size", info.size_wh)))
    # Any GIF may be see-through, whatever its pixels are.
    assert info.has_alpha == expect.get("alpha", info.container is MediaKind.GIF)
    assert (info.rotation_deg - expect.get("rotation", info.rotation_deg)) % 180 == 0
    assert len([s for s in info.streams if s.type == "audio"]) >= expect.get("audio_streams", 0)
    assert_color_as_made(info, expect)


def assert_color_as_made(info: MediaInfo, expect: dict[str, Any]) -> None:
    codes = {"bt2020": 9, "bt2020nc": 9, "smpte2084": 16, "smpte170m": 6}
    tags = info.tags
    assert tags.primaries == codes.get(expect.get("color_primaries", ""), tags.primaries)
    assert tags.matrix == codes.get(expect.get("color_space", ""), tags.matrix)
    assert tags.transfer == codes.get(expect.get("color_transfer", ""), tags.transfer)
    assert info.pixel_format == expect.get("pix_fmt", info.pixel_format)
    if expect.get("color_range") == "pc":
        assert tags.is_full_range


@pytest.mark.parametrize("name", names(*VIDEO_GROUPS))
def test_a_swap_changes_nothing_but_faces(
    name: str, cases: dict[str, Case], workbench: Workbench, assets: Path, tmp_path: Path
) -> None:
    case = cases[name]
    before = probe(case.path)
    output = tmp_path / f"out{SUFFIXES.get(before.container, '.mp4')}"
    result = swap(workbench, assets, case.path, output)
    after = probe(output)
    assert result.frames == after.frames == case.expect.get("frames", before.frames)
    assert tuple(notice.code for notice in result.notices) == WARNED.get(name, ())
    assert_same_times(case.path, output, before)
    assert_same_picture_kind(before, after)
    if name not in CONVERTED:
        assert sound(output) == sound(case.path)
    if before.container.family == "animation":
        assert_same_animation(case.path, output)


def assert_same_times(source: Path, output: Path, info: MediaInfo) -> None:
    """Each frame is shown when it was, within a tick of the coarser clock."""
    tick_s = max(info.time_base or Fraction(0), probe(output).time_base or Fraction(0))
    for was, now in zip(frame_times(source), frame_times(output), strict=True):
        assert abs(was - now) <= tick_s


def assert_same_picture_kind(before: MediaInfo, after: MediaInfo) -> None:
    assert after.size_wh == before.size_wh
    assert after.pixel_aspect == before.pixel_aspect
    assert after.rotation_deg == 0
    assert after.has_alpha == before.has_alpha
    # The encoder of ProRes 4444 takes 10 bits; its decoder always gives 12.
    assert after.bits == before.bits or after.codec == before.codec == "prores"
    assert after.hdr == before.hdr
    assert not after.is_interlaced
    if after.container.family == "video" and before.container.family == "video":
        assert_same_tags(before.tags, after.tags)
    # Encoders of sound may add up to 1024 samples in front.
    assert abs((after.duration_s or 0) - (before.duration_s or 0)) < 0.07
    assert stream_kinds(after) == stream_kinds(before)


def stream_kinds(info: MediaInfo) -> list[tuple[str, str, int]]:
    kinds = [
        (stream.type, stream.language or "und", stream.channels or 0)
        for stream in info.streams
        if stream.type != "data"
    ]
    return sorted(kinds)


def assert_same_tags(before: ColorTags, after: ColorTags) -> None:
    """A range that is not said is the limited one."""
    named = dataclasses.replace(before, is_full_range=bool(before.is_full_range))
    assert dataclasses.replace(after, is_full_range=bool(after.is_full_range)) == named


def assert_same_animation(source: Path, output: Path) -> None:
    """Pillow sees the same loop count and the same delays."""
    with Image.open(source) as before, Image.open(output) as after:
        assert after.info.get("loop", 1) == before.info.get("loop", 1)
        assert delays(after) == delays(before)


def delays(image: Image.Image) -> list[float]:
    found = []
    for index in range(getattr(image, "n_frames", 1)):
        image.seek(index)
        image.load()
        found.append(float(image.info.get("duration", 0)))
    return found


@pytest.mark.parametrize(("name", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_cannot_be_done_is_refused_with_its_code(
    name: str,
    code: str,
    cases: dict[str, Case],
    workbench: Workbench,
    assets: Path,
    tmp_path: Path,
) -> None:
    output = tmp_path / "out.mp4"
    with pytest.raises(AppError) as refusal:
        swap(workbench, assets, cases[name].path, output)
    assert refusal.value.code == code
    assert not list(tmp_path.iterdir())
