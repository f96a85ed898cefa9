"""Sound of a part is that part's sound, to the sample where the container has a word for it."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av import AudioFrame

from app.media.encode import VideoEncoding
from app.media.encoders import Container
from app.media.sound_part import SoundPart, encoder_for_cut, within
from app.media.span import TimeSpan
from tests.media.clips import Sound
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

BEEP_S = 1.0
START, END = Fraction("0.52"), Fraction("1.32")
HALVES = [
    pytest.param(START, END, id="both"),
    pytest.param(Fraction(0), END, id="end"),
    pytest.param(START, None, id="start"),
]
COPIED = "copied"
LOSSLESS = "without loss"
CONVERTED = "converted"
WAYS = [
    ("aac", "a.mp4", "mp4", COPIED),
    ("aac", "a.mp4", "mov", COPIED),
    ("aac", "a.mp4", "matroska", CONVERTED),
    ("aac", "a.mp4", "webm", CONVERTED),
    ("libmp3lame", "a.mkv", "mp4", COPIED),
    ("libmp3lame", "a.mkv", "matroska", CONVERTED),
    ("ac3", "a.mkv", "mp4", COPIED),
    ("ac3", "a.mkv", "matroska", CONVERTED),
    ("eac3", "a.mkv", "matroska", CONVERTED),
    ("libopus", "a.mkv", "mp4", COPIED),
    ("libopus", "a.mkv", "webm", CONVERTED),
    ("libopus", "a.mkv", "matroska", CONVERTED),
    ("mp2", "a.mkv", "matroska", CONVERTED),
    ("mp2", "a.mkv", "mp4", CONVERTED),
    ("pcm_s16le", "a.mov", "mov", LOSSLESS),
    ("pcm_s24le", "a.mkv", "matroska", LOSSLESS),
    ("pcm_f32le", "a.mov", "matroska", LOSSLESS),
    ("pcm_s16le", "a.mov", "mp4", CONVERTED),
    ("flac", "a.mkv", "matroska", LOSSLESS),
    ("flac", "a.mkv", "mp4", LOSSLESS),
    ("alac", "a.mp4", "mov", LOSSLESS),
]
"""Codec, name of the input, container of the output, and what becomes of the sound."""


def cut(source: Path, path: Path, part: TimeSpan, container: Container) -> list[str]:
    encoding = VideoEncoding(container=container, preset="ultrafast")
    return copy_video(source, path, encoding, span=part).written_codes


def heard(path: Path) -> tuple[float, np.ndarray]:
    """When the sound begins, and its samples as one channel of floats."""
    with av.open(str(path)) as file:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=48_000)
        frames = list(file.decode(audio=0))
        parts = [each.to_ndarray()[0] for frame in frames for each in resampler.resample(frame)]
        return float(frames[0].pts * frames[0].time_base), np.concatenate(parts)


def track_s(path: Path) -> float | None:
    """How long the track is by the word of an MP4, whose edit list players obey."""
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        return None if stream.duration is None else float(stream.duration * stream.time_base)


@pytest.mark.parametrize(("start", "end"), HALVES)
@pytest.mark.parametrize(
    ("codec", "name", "container", "way"), WAYS, ids=[f"{c} {n} {o}" for c, n, o, _ in WAYS]
)
def test_sound_begins_ends_and_beeps_when_it_should(
    codec: str,
    name: str,
    container: Container,
    way: str,
    start: Fraction,
    end: Fraction | None,
    make_clip: MakeClip,
    tmp_path: Path,
) -> None:
    sound = Sound(codec=codec, seconds=2, silent_s=BEEP_S)
    source, path = make_clip(name, frames=50, sounds=(sound,)), tmp_path / "out"
    notices = cut(source, path, TimeSpan(start_s=start, end_s=end), container)
    begins_s, samples = heard(path)
    beep_s = begins_s + float(np.argmax(np.abs(samples) > 0.05)) / 48_000
    # A codec rings before a loud sound; its time stamps are milliseconds in Matroska.
    assert abs(beep_s - (BEEP_S - float(start))) < 0.004
    if start:
        assert abs(begins_s) <= 0.001
    # Only a beginning makes Matroska convert what it could copy.
    fits = codec != "mp2" or container == "matroska"
    is_converted = way == CONVERTED and (bool(start) or container in ("mp4", "webm") or not fits)
    is_converted &= not (codec == "libopus" and container == "webm" and not start)
    assert notices == (["media.audio_converted"] if is_converted else [])
    if end is not None:
        length_s = track_s(path) if container in ("mp4", "mov") else None
        length_s = begins_s + len(samples) / 48_000 if length_s is None else length_s
        assert abs(length_s - float(end - start)) <= 0.0011


@pytest.mark.parametrize("codec", ["pcm_s16le", "pcm_s24le", "flac"])
def test_sound_without_loss_keeps_every_sample(
    codec: str, make_clip: MakeClip, tmp_path: Path
) -> None:
    source = make_clip("a.mkv", frames=50, sounds=(Sound(codec=codec, seconds=2),))
    cut(source, tmp_path / "b.mkv", TimeSpan(start_s=START, end_s=END), "matroska")
    _, whole = heard(source)
    _, part = heard(tmp_path / "b.mkv")
    first, last = round(START * 48_000), round(END * 48_000)
    # Within a millisecond of Matroska's clock the wanted samples, bit for bit.
    shifts = [
        shift for shift in range(-48, 49) if (whole[first + shift : last + shift] == part).all()
    ]
    assert shifts


def test_three_minutes_do_not_drift(make_clip: MakeClip, tmp_path: Path) -> None:
    sound = Sound(codec="aac", rate=44_100, seconds=180, silent_s=170, layout="mono")
    source = make_clip(
        "a.mp4", frames=180, rate=Fraction(1), time_base=Fraction(1, 1000), sounds=(sound,)
    )
    for container in ("mp4", "matroska"):
        path = tmp_path / container
        cut(source, path, TimeSpan(start_s=Fraction(7)), container)  # type: ignore[arg-type]
        begins_s, samples = heard(path)
        beep_s = begins_s + float(np.argmax(np.abs(samples) > 0.05)) / 48_000
        assert abs(beep_s - 163) < 0.004


@pytest.mark.parametrize(
    ("codec", "container", "part", "encoder"),
    [
        ("aac", "mp4", SoundPart(), None),
        ("pcm_s16le", "mov", SoundPart(), None),
        ("aac", "mp4", SoundPart(starts_late=True), None),
        ("aac", "matroska", SoundPart(starts_late=True), "aac"),
        ("aac", "matroska", SoundPart(ends_at_s=Fraction(1)), None),
        ("opus", "webm", SoundPart(starts_late=True), "libopus"),
        ("vorbis", "webm", SoundPart(starts_late=True), "libopus"),
        ("dts", "matroska", SoundPart(starts_late=True), "aac"),
        ("flac", "matroska", SoundPart(ends_at_s=Fraction(1)), "flac"),
    ],
)
def test_only_what_no_container_can_say_is_encoded_anew(
    codec: str, container: Container, part: SoundPart, encoder: str | None
) -> None:
    assert encoder_for_cut(codec, container=container, part=part) == encoder


@pytest.mark.parametrize(
    ("pts", "wanted"),
    [(-100, None), (-40, (0, 60)), (0, (0, 100)), (150, (150, 50)), (200, None)],
)
@pytest.mark.parametrize("layout", ["mono", "stereo"])
@pytest.mark.parametrize("sample_format", ["s16", "s16p"])
def test_frames_are_sliced_to_the_part(
    pts: int, wanted: tuple[int, int] | None, layout: str, sample_format: str
) -> None:
    channels = 2 if layout == "stereo" else 1
    ramp = np.arange(100 * channels, dtype=np.int16)
    shaped = ramp.reshape(100, channels).T if sample_format == "s16p" else ramp[None]
    frame = AudioFrame.from_ndarray(
        np.ascontiguousarray(shaped), format=sample_format, layout=layout
    )
    frame.sample_rate, frame.pts, frame.time_base = 1000, pts, Fraction(1, 1000)
    part = SoundPart(starts_late=True, ends_at_s=Fraction(1, 5))
    kept = within(frame, part)
    if wanted is None:
        assert kept is None
        return
    assert kept is not None
    assert (kept.pts, kept.samples) == wanted
    first = (wanted[0] - pts) * channels
    assert kept.to_ndarray().T.reshape(-1)[0] == ramp[first]


@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_sound_that_an_edit_list_ends_within_a_packet_does_not_grow(
    container: Container, make_clip: MakeClip, tmp_path: Path
) -> None:
    source, path = make_clip("a.mp4", sounds=(Sound(seconds=1.5),)), tmp_path / "out"
    shorter = bytearray(source.read_bytes())
    length = shorter.rfind(b"elst") + len("elst") + 8
    shorter[length : length + 4] = (990).to_bytes(4, "big")
    source.write_bytes(shorter)
    assert copy_video(source, path, VideoEncoding(container=container)).codes == []
    with av.open(str(source)) as before, av.open(str(path)) as after:
        packets = [p.duration for p in before.demux(audio=0) if p.dts is not None]
        assert packets[-1] == 1024
        wanted_s = before.streams.audio[0].duration * before.streams.audio[0].time_base
        assert wanted_s == Fraction("0.99")
        (sound,) = after.streams.audio
        assert abs(sound.duration * sound.time_base - wanted_s) <= sound.time_base


def test_makers_names_of_tracks_stay_behind(make_clip: MakeClip, tmp_path: Path) -> None:
    source, path = make_clip("a.mp4", sounds=(Sound(),)), tmp_path / "out.mp4"
    named = source.read_bytes().replace(b"SoundHandler", b"GoPro AAC 99")
    assert named != source.read_bytes()
    source.write_bytes(named)
    copy_video(source, path, VideoEncoding())
    assert b"GoPro" not in path.read_bytes()
