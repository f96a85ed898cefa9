"""Animated GIF, WebP and APNG, in and out: every frame, every delay, loops, transparency and labels."""

import os
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import MediaTooLargeError, OutputError, TruncatedMediaError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import Frame
from app.media.animation_chunks import animation_facts
from app.media.animation_files import AnimationFormat
from app.media.animation_write import AnimationWriter, animation_format_of
from app.media.decode import VideoReader
from app.media.gif_file import gif_indexed
from app.media.info import MediaInfo, StreamInfo
from app.media.limits import MediaLimits
from app.media.packets import xmp_packets
from app.media.probe import probe
from app.media.sniff import MediaKind, sniff
from tests.media.bombs import apng
from tests.media.conftest import MakeClip

FORMATS: tuple[AnimationFormat, ...] = ("gif", "webp", "apng")
TIMES_MS = (0, 50, 100, 350, 370, 1400)
LAST_MS = 600
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>a packet</x:xmpmeta>"
RgbaImage = NDArray[np.uint8]


def drawn(index: int, *, colors: int = 12) -> RgbaImage:
    """A disc that walks over an empty picture; few colors, so that a palette holds them all."""
    y, x = np.mgrid[:40, :61]
    rgba = np.zeros((40, 61, 4), np.uint8)
    inside = (x - 12 - 7 * index) ** 2 + (y - 20) ** 2 < 120
    shade = (x * colors // 61).astype(np.uint8)
    rgba[inside] = np.stack([shade * 20, 255 - shade * 9, shade * 5, np.full_like(shade, 255)], -1)[
        inside
    ]
    return rgba


def frames_of(images: Sequence[RgbaImage], times_ms: Sequence[int] = TIMES_MS) -> list[Frame]:
    return [
        Frame(
            index=index,
            pts=at,
            time_base=Fraction(1, 1000),
            picture=Picture((image,), PIXEL_FORMATS["rgba" if image.shape[2] == 4 else "rgb24"]),
        )
        for index, (image, at) in enumerate(zip(images, times_ms, strict=True))
    ]


def info_of(*, plays: int = 0, last_ms: int = LAST_MS) -> MediaInfo:
    stream = StreamInfo(
        index=0, type="video", codec="gif", time_base=Fraction(1, 1000), start_pts=0,
        duration_pts=TIMES_MS[-1] + last_ms,
    )  # fmt: skip
    return MediaInfo(
        kind="video",
        container=MediaKind.GIF,
        size_wh=(61, 40),
        pixel_format="rgba",
        streams=(stream,),
        plays=plays,
    )


def write(
    path: Path, kind: AnimationFormat, frames: Sequence[Frame], *, plays: int = 0
) -> AnimationWriter:
    writer = AnimationWriter(path, info=info_of(plays=plays), kind=kind, quality=100, xmp=XMP)
    with writer:
        for frame in frames:
            writer.write(frame)
    return writer


def written(path: Path, kind: AnimationFormat, *, plays: int = 0) -> list[Frame]:
    frames = frames_of([drawn(index) for index in range(len(TIMES_MS))])
    write(path, kind, frames, plays=plays)
    return frames


def pillow_frames(path: Path) -> list[tuple[float, RgbaImage]]:
    found = []
    with Image.open(path) as image:
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            image.load()
            found.append(
                (float(image.info.get("duration", 0)), np.asarray(image.convert("RGBA")).copy())
            )
    return found


def visible(image: RgbaImage) -> RgbaImage:
    """Colors behind pixels that nobody sees do not count."""
    return np.where(image[..., 3:] == 0, 0, image)


@pytest.mark.parametrize("kind", FORMATS)
def test_another_reader_sees_every_frame_delay_and_see_through_pixel(
    kind: AnimationFormat, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    frames = written(path, kind)
    seen = pillow_frames(path)
    ends = (*TIMES_MS[1:], TIMES_MS[-1] + LAST_MS)
    assert [delay for delay, _ in seen] == [b - a for a, b in zip(TIMES_MS, ends, strict=True)]
    for frame, (_, image) in zip(frames, seen, strict=True):
        assert (visible(image) == visible(np.asarray(frame.picture.planes[0]))).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_our_reader_gives_back_what_was_written(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    frames = written(path, kind)
    with VideoReader(path) as reader:
        found = list(reader.frames())
    assert [frame.pts * frame.time_base * 1000 for frame in found] == list(TIMES_MS)
    assert not reader.notices
    for was, now in zip(frames, found, strict=True):
        assert (
            visible(np.asarray(now.picture.planes[0])) == visible(np.asarray(was.picture.planes[0]))
        ).all()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("plays", [0, 1, 5])
def test_the_number_of_loops_is_kept(kind: AnimationFormat, plays: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    written(path, kind, plays=plays)
    info = probe(path)
    assert info.plays == plays
    assert info.frames == len(TIMES_MS)
    assert info.duration_s == (TIMES_MS[-1] + LAST_MS) / 1000


@pytest.mark.parametrize("kind", FORMATS)
def test_the_packet_is_read_back_once(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    written(path, kind)
    assert xmp_packets(path) == (XMP,)


def test_pillow_reads_the_packet_of_a_webp(tmp_path: Path) -> None:
    written(tmp_path / "a", "webp")
    with Image.open(tmp_path / "a") as image:
        assert image.info["xmp"] == XMP


@pytest.mark.parametrize("kind", FORMATS)
def test_frames_that_are_alike_stay_frames(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, kind, frames_of([drawn(0)] * len(TIMES_MS)))
    assert animation_facts(path, sniff(path)).frames == len(TIMES_MS)
    assert len(pillow_frames(path)) == len(TIMES_MS) or kind == "webp"


@pytest.mark.parametrize("kind", FORMATS)
def test_one_frame_is_an_animation_too(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    write(path, kind, frames_of([drawn(0)], times_ms=(0,)))
    assert probe(path).frames == 1


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_was_cut_is_refused(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    written(path, kind)
    os.truncate(path, path.stat().st_size - 150)
    with pytest.raises(TruncatedMediaError):
        probe(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_too_many_frames_are_refused_before_any_is_decoded(
    kind: AnimationFormat, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    written(path, kind)
    with pytest.raises(MediaTooLargeError, match="6 frames"):
        probe(path, MediaLimits(max_animation_frames=5))


def test_the_length_of_an_apng_is_the_sum_of_its_delays(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(apng((16, 16), [(1, 30)] * 5 + [(1001, 30_000), (7, 0)]))
    wanted = Fraction(5, 30) + Fraction(1001, 30_000) + Fraction(7, 100)
    assert animation_facts(path, sniff(path)).duration_s == wanted


def test_delays_in_thousands_of_units_cost_what_those_in_one_do(tmp_path: Path) -> None:
    """As exact fractions half as many took six times as long as those in one unit."""
    path = tmp_path / "a.png"
    took_s = []
    for delays in ([(1, 1000)] * 40_000, [(1, unit) for unit in range(20_000, 60_000)]):
        path.write_bytes(apng((16, 16), delays))
        start = time.process_time()
        facts = animation_facts(path, sniff(path))
        took_s.append(time.process_time() - start)
        wanted = sum(ticks / unit for ticks, unit in delays)
        assert float(facts.duration_s) == pytest.approx(wanted, abs=1e-5)
    assert took_s[1] < 5 * took_s[0]


def test_a_gif_without_its_end_mark_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    written(path, "gif")
    os.truncate(path, path.stat().st_size - 1)
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) == len(TIMES_MS)


@pytest.mark.parametrize("kind", FORMATS)
def test_an_animation_without_frames_leaves_no_file(kind: AnimationFormat, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(OutputError, match="not one frame"):
        write(path, kind, [])
    assert not path.exists()


def test_a_photo_in_a_gif_stays_near_its_colors(
    tmp_path: Path, astronaut: NDArray[np.uint8]
) -> None:
    indexed = gif_indexed(astronaut[:200, :200])
    shown = np.asarray(indexed.image.convert("RGB")).astype(int)
    assert not indexed.is_exact
    blurred = [
        part.reshape(20, 10, 20, 10, 3).mean((1, 3)) for part in (shown, astronaut[:200, :200])
    ]
    assert np.abs(blurred[0] - blurred[1]).mean() < 3


def test_frames_too_fast_for_a_gif_are_left_out_and_the_speed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    times_ms = [index * 8 for index in range(50)]
    writer = write(path, "gif", frames_of([drawn(0)] * 50, times_ms=times_ms))
    info = probe(path)
    assert [notice.code for notice in writer.notices] == ["media.frames_dropped"]
    assert info.frames is not None
    assert 15 <= info.frames < 25
    with VideoReader(path) as reader:
        *_, last = reader.frames()
    assert abs(last.time_s - 0.392) < 0.03


def test_a_gif_says_that_half_see_through_pixels_are_lost(tmp_path: Path) -> None:
    image = drawn(0)
    image[..., 3] //= 2
    writer = write(tmp_path / "a", "gif", frames_of([image], times_ms=(0,)))
    assert [notice.code for notice in writer.notices] == ["media.alpha_reduced"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_video_becomes_an_animation(
    kind: AnimationFormat, make_clip: MakeClip, tmp_path: Path
) -> None:
    clip, path = make_clip("a.mp4", frames=10, rate=Fraction(10)), tmp_path / "b"
    with (
        VideoReader(clip) as reader,
        AnimationWriter(path, info=reader.info, kind=kind, quality=80, xmp=XMP) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    info = probe(path)
    assert (info.frames, info.plays, info.duration_s) == (10, 0, 1.0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.gif", "gif"), ("a.WEBP", "webp"), ("a.apng", "apng"), ("a.png", "apng"), ("a.mp4", None)],
)
def test_the_name_tells_the_format(name: str, kind: AnimationFormat | None) -> None:
    assert animation_format_of(Path(name)) == kind
