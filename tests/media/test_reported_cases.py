"""Videos of the kinds that people have reported other programs to break: rates, sizes, sounds, ranges, trims, GIFs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.types import Frame
from app.media.animation_write import AnimationWriter
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.encoders import Container
from app.media.info import MediaInfo
from app.media.probe import probe
from app.media.span import TimeSpan
from tests.media.clips import Sound
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

LOSSLESS = {"codec": "ffv1", "options": {}}


@dataclass(frozen=True, kw_only=True)
class Reported:
    """One kind of clip.

    Attributes:
        wishes: What `make_clip` gets.
        name: Of the input; says its container.
        container: Of the output.
        notices: Codes that the result has to say.
    """

    wishes: dict[str, Any] = field(default_factory=dict)
    name: str = "a.mp4"
    container: Container = "mp4"
    notices: Sequence[str] = ()


def rate(numerator: int, denominator: int = 1) -> dict[str, Any]:
    unit = Fraction(1, numerator)
    return {"rate": Fraction(numerator, denominator), "time_base": unit, "frames": 60}


def jittered(step: int) -> list[int]:
    rng = np.random.default_rng(step)
    return [int(value) for value in np.cumsum(rng.integers(step // 2, step * 2, 60))]


def sounding(codec: str, **wishes: Any) -> dict[str, Any]:
    return {"sounds": (Sound(codec=codec, **wishes),)}


REPORTED = {
    "23.976 a second": Reported(wishes=rate(24_000, 1001)),
    "29.97 a second": Reported(wishes=rate(30_000, 1001)),
    "59.94 a second": Reported(wishes=rate(60_000, 1001)),
    "240 a second": Reported(wishes=rate(240)),
    "a frame in 4 seconds": Reported(wishes={"pts": [0, 51_200, 102_400], "frames": 3}),
    "screen recording with jitter": Reported(wishes={"pts": jittered(300)}),
    "jitter in Matroska": Reported(
        wishes={"pts": jittered(40), "time_base": Fraction(1, 1000)}, name="a.mkv"
    ),
    "real rate far from the average": Reported(
        wishes={"pts": [*range(0, 5120, 512), *range(51_200, 56_320, 512)], "frames": 20}
    ),
    "starts at 1.4 s": Reported(wishes={"pts": range(17_920, 30_720, 512)}, name="a.mkv"),
    "931 x 500": Reported(wishes={"size_wh": (931, 500), **LOSSLESS, "frames": 3}, name="a.mkv"),
    "321 x 241": Reported(wishes={"size_wh": (321, 241), **LOSSLESS, "frames": 3}, name="a.mkv"),
    "1058 x 793": Reported(wishes={"size_wh": (1058, 793), **LOSSLESS, "frames": 2}, name="a.mkv"),
    "33 x 17": Reported(wishes={"size_wh": (33, 17), **LOSSLESS, "frames": 3}, name="a.mkv"),
    "2048 x 16": Reported(wishes={"size_wh": (2048, 16), "frames": 3}),
    "turned by -90": Reported(wishes={"rotation_deg": -90}),
    "PCM in Matroska": Reported(
        wishes=sounding("pcm_s16le"), name="a.mkv", notices=["media.audio_converted"]
    ),
    "MPEG layer 2 in Matroska": Reported(
        wishes=sounding("mp2"), name="a.mkv", notices=["media.audio_converted"]
    ),
    "FLAC in Matroska": Reported(wishes=sounding("flac"), name="a.mkv"),
    "AC-3 in Matroska": Reported(wishes=sounding("ac3"), name="a.mkv"),
    "Opus in Matroska": Reported(wishes=sounding("libopus"), name="a.mkv"),
    "mono at 8 kHz": Reported(wishes=sounding("aac", rate=8000, layout="mono")),
    "5.1": Reported(wishes=sounding("aac", layout="5.1")),
    "sound twice as long": Reported(wishes=sounding("aac", seconds=2.0)),
    "sound a tenth as long": Reported(wishes=sounding("aac", seconds=0.1)),
    "sound half a second late": Reported(wishes=sounding("aac", start_s=0.5)),
    "two languages": Reported(wishes={"sounds": (Sound(), Sound(language="deu"))}),
    "one keyframe and B-frames": Reported(
        wishes={"frames": 120, "options": {"bf": "8", "g": "999", "preset": "fast"}}
    ),
}


def copy(source: Path, path: Path, container: Container) -> tuple[list[str], list[Frame]]:
    encoding = VideoEncoding(container=container, preset="ultrafast")
    frames = []
    return copy_video(source, path, encoding, on_frame=frames.append).codes, frames


def heard_s(info: MediaInfo, path: Path) -> list[tuple[str | None, int | None, float]]:
    """Language, channels and length of each audio track."""
    found = []
    with av.open(str(path)) as container:
        for index, stream in enumerate(info.streams):
            if stream.type != "audio":
                continue
            container.seek(0)
            samples = sum(f.samples for f in container.decode(container.streams[index]))
            found.append((stream.language, stream.channels, samples / (stream.sample_rate_hz or 1)))
    return found


@pytest.mark.parametrize("case", REPORTED.values(), ids=list(REPORTED))
def test_frames_times_size_and_sound_stay(
    case: Reported, make_clip: MakeClip, tmp_path: Path
) -> None:
    source, path = make_clip(case.name, **case.wishes), tmp_path / "out"
    notices, frames = copy(source, path, case.container)
    before, after = probe(source), probe(path)
    assert notices == list(case.notices)
    assert (after.size_wh, after.rotation_deg) == (before.size_wh, 0)
    assert after.frames == before.frames == len(frames)
    with VideoReader(path) as reader:
        for was, now in zip(frames, reader.frames(), strict=True):
            assert abs(was.pts * was.time_base - now.pts * now.time_base) <= now.time_base
    sounds = zip(heard_s(before, source), heard_s(after, path), strict=True)
    for (language, channels, length_s), now_heard in sounds:
        assert now_heard[:2] == (language, channels)
        assert abs(now_heard[2] - length_s) < 0.05


@pytest.mark.parametrize("is_full_range", [True, False], ids=["full", "limited"])
@pytest.mark.parametrize("matrix", [1, 6], ids=["BT.709", "BT.601"])
def test_five_passes_without_a_face_change_no_sample(
    is_full_range: bool, matrix: int, make_clip: MakeClip, tmp_path: Path
) -> None:
    context = {"colorspace": matrix, "color_range": 2 if is_full_range else 1}
    source = make_clip("a.mkv", frames=2, context=context, **LOSSLESS)
    first: list[NDArray[Any]] | None = None
    for index in range(5):
        path = tmp_path / f"{index}.mkv"
        with VideoReader(source) as reader:
            encoding = VideoEncoding(container="matroska", codec="ffv1")
            with VideoWriter(
                path, source=None, info=reader.info, encoding=encoding, metadata={}
            ) as writer:
                for frame in reader.frames():
                    if first is None:
                        first = [plane.copy() for plane in frame.picture.planes]
                    writer.write(frame)
        source = path
    with VideoReader(source) as reader:
        last = next(reader.frames()).picture
    assert first is not None
    assert all((a == b).all() for a, b in zip(first, last.planes, strict=True))
    assert (last.tags.matrix, last.tags.is_full_range) == (matrix, is_full_range)


def test_a_part_between_keyframes_begins_with_its_own_frame(make_clip: MakeClip) -> None:
    path = make_clip("a.mp4", frames=75, options={"g": "30", "bf": "2", "preset": "fast"})
    with VideoReader(path) as reader:
        wanted = list(reader.frames())[13:57]
    part = TimeSpan(start_s=Fraction(13, 25), end_s=Fraction(57, 25))
    with VideoReader(path, span=part) as reader:
        found = list(reader.frames())
    assert len(found) == 44
    for was, now in zip(wanted, found, strict=True):
        assert (was.picture.planes[0] == now.picture.planes[0]).all()


def test_a_large_gif_keeps_size_delays_and_loops(make_clip: MakeClip, tmp_path: Path) -> None:
    times = [0, 512, 1536, 6400, 12_800]
    clip = make_clip("a.mp4", size_wh=(600, 378), frames=5, pts=times)
    gif, again = tmp_path / "a.gif", tmp_path / "b.gif"
    for source, path in ((clip, gif), (gif, again)):
        with (
            VideoReader(source) as reader,
            AnimationWriter(path, info=reader.info, kind="gif", quality=80, xmp=b"") as writer,
        ):
            for frame in reader.frames():
                writer.write(frame)
    first, second = probe(gif), probe(again)
    assert (second.size_wh, second.frames, second.plays) == ((600, 378), 5, 0)
    assert second.duration_s == first.duration_s
    with VideoReader(again) as reader:
        assert [frame.pts for frame in reader.frames()] == [0, 4, 12, 50, 100]
