"""Videos of kinds that cameras, editors and broadcasters really make: each keeps its frames, times and sound."""

# ruff: noqa: E501

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from app.media.carriers import CopyCarrier
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.encoders import Container
from app.media.passengers import fits_timecode
from app.media.probe import probe
from app.media.sound_part import SoundPart
from app.media.span import TimeSpan
from tests.media.clips import Clip, Sound, noise_frame, stored_packets, tone, write_clip
from tests.media.copying import copy_video

FAST = {"preset": "ultrafast", "crf": "18"}
QUIET = {"preset": "ultrafast", "x265-params": "log-level=none"}


def copied(source: Path, path: Path, container: Container = "mp4") -> list[str]:
    encoding = VideoEncoding(container=container, preset="ultrafast")
    return copy_video(source, path, encoding).codes


def times(path: Path) -> list[Fraction]:
    with VideoReader(path) as reader:
        return [frame.pts * frame.time_base for frame in reader.frames()]


def heard_s(path: Path) -> list[float]:
    found = []
    with av.open(str(path)) as file:
        for index in range(len(file.streams.audio)):
            file.seek(0)
            stream = file.streams.audio[index]
            found.append(sum(f.samples for f in file.decode(stream)) / stream.rate)
    return found


def heard(path: Path) -> tuple[float, np.ndarray]:
    """When the sound begins, and its samples at 48 kHz; gaps count as silence."""
    with av.open(str(path)) as file:
        frames = list(file.decode(audio=0))
    begins_s = float(frames[0].pts * frames[0].time_base)
    samples = np.zeros(0, np.float32)
    for frame in frames:
        at = round((float(frame.pts * frame.time_base) - begins_s) * 48_000)
        samples = np.concatenate([samples, np.zeros(max(0, at - len(samples)), np.float32)])
        samples = np.concatenate([samples[: max(at, 0)], frame.to_ndarray()[0].astype(np.float32)])
    return begins_s, samples


def sounding(codec: str = "aac", **wishes: Any) -> tuple[Sound, ...]:
    return (Sound(codec=codec, **wishes),)


CLIPS = {
    "avc3": ("a.mp4", Clip(options=FAST, context={"codec_tag": "avc3"})),
    "hev1": ("a.mp4", Clip(codec="libx265", options=QUIET, context={"codec_tag": "hev1"})),
    "hvc1 in MOV": ("a.mov", Clip(codec="libx265", options=QUIET, context={"codec_tag": "hvc1"})),
    "fragments": ("a.mp4", Clip(options=FAST, sounds=sounding(), container_options={"movflags": "frag_keyframe+empty_moov"})),
    "fragments of one frame": ("a.mp4", Clip(options=FAST, container_options={"movflags": "frag_every_frame+empty_moov+default_base_moof"})),
    "index at the end": ("a.mp4", Clip(options=FAST, sounds=sounding())),
    "no edit list": ("a.mp4", Clip(options={"preset": "fast", "bf": "3"}, container_options={"use_editlist": "0"})),
    "open groups of pictures": ("a.mkv", Clip(frames=60, options={"preset": "fast", "g": "12", "bf": "3", "x264-params": "open-gop=1"})),
    "1000 a second": ("a.mp4", Clip(frames=60, rate=Fraction(1000), time_base=Fraction(1, 1000), options=FAST)),
    "one frame in 10 seconds": ("a.mp4", Clip(frames=3, pts=[0, 128_000, 256_000], options=FAST)),
    "clock of 1001/30000 s": ("a.mp4", Clip(rate=Fraction(30_000, 1001), time_base=Fraction(1001, 30_000), options=FAST)),
    "clock of 1/11 s": ("a.mp4", Clip(rate=Fraction(11), time_base=Fraction(1, 11), options=FAST)),
    "clock of 1 ns": ("a.mp4", Clip(time_base=Fraction(1, 1_000_000), options=FAST)),
    "starts after an hour": ("a.mkv", Clip(time_base=Fraction(1, 1000), pts=range(3_600_000, 3_601_000, 40), options=FAST)),
    "gaps of a second": ("a.mp4", Clip(frames=20, pts=[i * 512 + (i // 5) * 12_800 for i in range(20)], options=FAST)),
    "odd height in 4:2:2": ("a.mkv", Clip(size_wh=(65, 49), pixel_format="yuv422p", codec="ffv1", options={})),
    "4:1:1": ("a.mkv", Clip(size_wh=(64, 48), pixel_format="yuv411p", codec="ffv1", options={})),
    "4:1:0": ("a.mkv", Clip(size_wh=(64, 48), pixel_format="yuv410p", codec="ffv1", options={})),
    "gray": ("a.mkv", Clip(pixel_format="gray", codec="ffv1", options={})),
    "deep gray": ("a.mkv", Clip(pixel_format="gray16le", codec="ffv1", options={})),
    "lossless RGB": ("a.mkv", Clip(pixel_format="bgr0", codec="ffv1", options={})),
    "uncompressed": ("a.avi", Clip(frames=5, pixel_format="bgr24", codec="rawvideo", options={}, time_base=Fraction(1, 25))),
    "uncompressed 4:2:2 of 10 bits": ("a.mov", Clip(frames=5, pixel_format="yuv422p10le", codec="v210", options={})),
    "PAL DV": ("a.avi", Clip(frames=5, size_wh=(720, 576), codec="dvvideo", options={}, time_base=Fraction(1, 25), sounds=sounding("pcm_s16le", seconds=0.2))),
    "NTSC DV": ("a.mov", Clip(frames=5, size_wh=(720, 480), pixel_format="yuv411p", codec="dvvideo", options={}, rate=Fraction(30_000, 1001), time_base=Fraction(1001, 30_000))),
    "MPEG-4 with B-frames in AVI": ("a.avi", Clip(codec="mpeg4", options={"bf": "2"}, time_base=Fraction(1, 25), sounds=sounding("libmp3lame"))),
    "Motion JPEG in MOV": ("a.mov", Clip(codec="mjpeg", pixel_format="yuvj422p", options={}, sounds=sounding("pcm_s16be"))),
    "a phone of 2005": ("a.3gp", Clip(size_wh=(176, 144), codec="h263", options={}, rate=Fraction(30_000, 1001), time_base=Fraction(1001, 30_000), sounds=sounding(layout="mono", rate=8000))),
    "QuickTime Animation": ("a.mov", Clip(frames=5, codec="qtrle", pixel_format="rgb24", options={})),
    "HuffYUV": ("a.avi", Clip(frames=5, codec="huffyuv", pixel_format="yuv422p", options={}, time_base=Fraction(1, 25))),
    "DNxHR": ("a.mov", Clip(frames=3, size_wh=(320, 240), codec="dnxhd", pixel_format="yuv422p", options={"profile": "dnxhr_sq"})),
    "Windows Media 7": ("a.avi", Clip(frames=5, codec="wmv1", pixel_format="yuv420p", options={}, time_base=Fraction(1, 25))),
    "Windows Media 8": ("a.avi", Clip(frames=5, codec="wmv2", pixel_format="yuv420p", options={}, time_base=Fraction(1, 25))),
    "Microsoft MPEG-4 v2": ("a.avi", Clip(frames=5, codec="msmpeg4v2", pixel_format="yuv420p", options={}, time_base=Fraction(1, 25))),
    "Sorenson of Flash": ("a.avi", Clip(frames=5, codec="flv1", pixel_format="yuv420p", options={}, time_base=Fraction(1, 25))),
    "Sorenson of QuickTime": ("a.mov", Clip(frames=5, codec="svq1", pixel_format="yuv410p", options={}, time_base=Fraction(1, 25))),
    "Cinepak": ("a.mov", Clip(frames=5, codec="cinepak", pixel_format="rgb24", options={}, time_base=Fraction(1, 25))),
    "JPEG 2000": ("a.mov", Clip(frames=5, codec="jpeg2000", pixel_format="rgb24", options={}, time_base=Fraction(1, 25))),
    "VP8": ("a.webm", Clip(codec="libvpx", options={"deadline": "realtime", "cpu-used": "8"}, sounds=sounding("libopus"))),
    "MPEG-2 in a transport stream": ("a.ts", Clip(codec="mpeg2video", options={"bf": "2"}, time_base=Fraction(1, 25), sounds=sounding("mp2"))),
    "HEVC in a transport stream": ("a.ts", Clip(codec="libx265", options=QUIET, time_base=Fraction(1, 90_000), sounds=sounding("ac3"))),
    "Blu-ray packets": ("a.ts", Clip(options=FAST, time_base=Fraction(1, 90_000), container="mpegts", container_options={"mpegts_m2ts_mode": "1"}, sounds=sounding("ac3"))),
    "sound at 8 kHz": ("a.mp4", Clip(options=FAST, sounds=sounding(rate=8000, layout="mono"))),
    "sound of 7.1": ("a.mkv", Clip(options=FAST, sounds=sounding("flac", layout="7.1"))),
    "floating sound": ("a.mov", Clip(options=FAST, sounds=sounding("pcm_f32le"))),
    "sound at 96 kHz": ("a.mov", Clip(options=FAST, sounds=sounding("pcm_s24le", rate=96_000))),
    "sound of 44.1 kHz into Opus": ("a.mkv", Clip(options=FAST, sounds=sounding("pcm_s16le", rate=44_100))),
    "sound before the picture": ("a.mkv", Clip(pts=range(6400, 19_200, 512), options=FAST, sounds=sounding(seconds=1.5))),
    "five tracks": ("a.mkv", Clip(options=FAST, sounds=tuple(Sound(language=each) for each in ("eng", "deu", "fra", "jpn", "und")))),
}  # fmt: skip


@pytest.mark.parametrize("container", ["mp4", "matroska", "webm"])
@pytest.mark.parametrize(("name", "clip"), CLIPS.values(), ids=list(CLIPS))
def test_frames_times_and_sound_come_through(
    name: str, clip: Clip, container: Container, tmp_path: Path
) -> None:
    source, path = tmp_path / name, tmp_path / "out"
    write_clip(source, clip)
    notices = copied(source, path, container)
    before, after = probe(source), probe(path)
    assert after.frames == len(clip.times)
    assert after.size_wh == before.size_wh == clip.size_wh
    assert after.pixel_aspect == before.pixel_aspect
    tick_s = max(after.time_base or Fraction(0), before.time_base or Fraction(0))
    for was, now in zip(times(source), times(path), strict=True):
        assert abs(was - now) <= tick_s
    for was_s, now_s in zip(heard_s(source), heard_s(path), strict=True):
        assert abs(was_s - now_s) < 0.07
    allowed = {"media.audio_converted", "media.deinterlaced", "media.depth_reduced"}
    assert set(notices) <= allowed


def test_a_group_that_is_open_is_cut_to_the_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    options = {"preset": "fast", "g": "12", "bf": "3", "x264-params": "open-gop=1"}
    write_clip(path, Clip(frames=60, options=options))
    with VideoReader(path) as reader:
        wanted = list(reader.frames())[13:47]
    span = TimeSpan(start_s=Fraction(13, 25), end_s=Fraction(47, 25))
    with VideoReader(path, span=span) as reader:
        found = list(reader.frames())
    assert len(found) == 34
    for was, now in zip(wanted, found, strict=True):
        assert (was.picture.planes[0] == now.picture.planes[0]).all()


@pytest.mark.parametrize("turn_deg", [90, -90, 180])
def test_pixels_that_are_not_square_turn_with_the_picture(turn_deg: int, tmp_path: Path) -> None:
    source, path = tmp_path / "a.mp4", tmp_path / "b.mp4"
    context = {"sample_aspect_ratio": Fraction(4, 3)}
    write_clip(source, Clip(frames=3, options=FAST, rotation_deg=turn_deg, context=context))
    assert copied(source, path) == []
    lies = turn_deg != 180
    assert probe(path).size_wh == ((48, 64) if lies else (64, 48))
    assert probe(path).pixel_aspect == (Fraction(3, 4) if lies else Fraction(4, 3))


def with_timecode(path: Path) -> None:
    with av.open(str(path), "w") as output:
        output.metadata["timecode"] = "01:02:03:04"
        stream = output.add_stream("libx264", rate=25, options=FAST)
        stream.width, stream.height = 64, 48
        for index in range(25):
            frame = noise_frame((64, 48), "yuv420p", index)
            frame.pts, frame.time_base = index, Fraction(1, 25)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))


@pytest.mark.parametrize("container", ["mov", "mp4", "matroska"])
def test_a_timecode_goes_along(container: Container, tmp_path: Path) -> None:
    coded, path = tmp_path / "b.mov", tmp_path / "out"
    with_timecode(coded)
    assert "data" in [stream.type for stream in probe(coded).streams]
    assert copied(coded, path, container) == []
    with av.open(str(path)) as file:
        found = {**file.metadata, **file.streams.video[0].metadata}
    assert {key.lower(): value for key, value in found.items()}["timecode"] == "01:02:03:04"


def test_a_timecode_of_another_beginning_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    coded, path = tmp_path / "b.mov", tmp_path / "out"
    with_timecode(coded)
    encoding = VideoEncoding(container="mov", preset="ultrafast")
    with (
        VideoReader(coded, span=TimeSpan(start_s=Fraction(1, 5))) as reader,
        VideoWriter(path, source=coded, info=reader.info, encoding=encoding, metadata={}) as writer,
    ):
        for frame in reader.frames():
            writer.write(frame)
    assert [notice.code for notice in writer.notices] == ["media.stream_dropped"]
    with av.open(str(path)) as file:
        assert "timecode" not in {**file.metadata, **file.streams.video[0].metadata}


@pytest.mark.parametrize(
    ("code", "rate", "fits"),
    [
        ("01:00:00:00", Fraction(25), True),
        ("01:00:00:24", Fraction(24_000, 1001), False),
        ("01:00:00;02", Fraction(30_000, 1001), True),
        ("01:00:00;02", Fraction(25), False),
        ("01:00:00:02", Fraction(2345, 100), False),
        ("noon", Fraction(25), False),
        ("01:00:00:00", None, False),
    ],
)
def test_only_a_timecode_that_counts_the_frames_goes_along(
    code: str, rate: Fraction | None, fits: bool
) -> None:
    assert fits_timecode(code, rate) == fits


def test_of_two_videos_the_first_is_made_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as output:
        streams = []
        for size_wh in ((64, 48), (96, 64)):
            stream = output.add_stream("libx264", rate=25, options=FAST)
            stream.width, stream.height = size_wh
            streams.append(stream)
        for index in range(10):
            for stream in streams:
                frame = noise_frame((stream.width, stream.height), "yuv420p", index)
                frame.pts, frame.time_base = index, Fraction(1, 25)
                output.mux(stream.encode(frame))
        for stream in streams:
            output.mux(stream.encode(None))
    assert copied(path, tmp_path / "out") == ["media.stream_dropped"]
    after = probe(tmp_path / "out")
    assert (after.frames, after.size_wh) == (10, (64, 48))


def test_frames_of_one_time_are_all_kept(tmp_path: Path) -> None:
    source, path = tmp_path / "a.mkv", tmp_path / "b.mkv"
    write_clip(source, Clip(frames=10, codec="mjpeg", pixel_format="yuvj420p", options={}))
    with av.open(str(source)) as before, av.open(str(path), "w") as after:
        stream = before.streams.video[0]
        target = after.add_stream_from_template(stream)
        for index, packet in enumerate(each for each in before.demux(stream) if each.size):
            packet.pts = packet.dts = 40 * (index - index % 2)
            packet.stream = target
            after.mux(packet)
    assert copied(path, tmp_path / "out") == []
    found = times(tmp_path / "out")
    assert len(found) == 10
    assert found == sorted(set(found))


def patched(content: bytes, at: int, value: int) -> bytes:
    return content[:at] + value.to_bytes(4, "little") + content[at + 4 :]


@pytest.mark.parametrize("count", [0, 7, 5000])
def test_a_wrong_number_of_frames_in_the_header_is_not_believed(count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    write_clip(path, Clip(options=FAST, time_base=Fraction(1, 25)))
    content = path.read_bytes()
    content = patched(content, content.index(b"avih") + 8 + 16, count)
    content = patched(content, content.index(b"strh") + 8 + 32, count)
    path.write_bytes(content)
    with VideoReader(path) as reader:
        assert len(list(reader.frames())) == 25
    assert reader.notices == ()
    assert copied(path, tmp_path / "out") == []


def test_times_of_decoding_that_run_backwards_lose_no_sound(tmp_path: Path) -> None:
    source, path = tmp_path / "a.mkv", tmp_path / "out.mkv"
    write_clip(source, Clip(options=FAST, sounds=sounding("libmp3lame")))
    with av.open(str(source)) as before, av.open(str(path), "w") as after:
        carrier = CopyCarrier(after, before.streams.audio[0], part=SoundPart())
        found = [each for each in before.demux(audio=0) if each.size]
        for index in (7, 20):
            found[index].dts, found[index + 1].dts = found[index + 1].dts, found[index].dts
        for packet in found:
            carrier.carry(packet)
    assert carrier.lost == 0
    assert [data for _, data in stored_packets(path)[0]] == [
        data for _, data in stored_packets(source)[0]
    ]


def test_sound_before_time_zero_keeps_its_distance(tmp_path: Path) -> None:
    source, path = tmp_path / "a.mkv", tmp_path / "out"
    write_clip(source, Clip(options=FAST, sounds=sounding("libmp3lame", silent_s=0.5)))
    copied(source, path)
    for each in (source, path):
        begins_s, samples = heard(each)
        beep_s = begins_s + float(np.argmax(np.abs(samples) > 0.05)) / 48_000
        assert abs(beep_s - 0.5) < 0.004


def test_two_recordings_in_one_transport_stream_are_both_there(tmp_path: Path) -> None:
    """Broadcasters change the number of a stream; what comes behind it is another stream for a demuxer."""
    first, second, path = (tmp_path / name for name in ("a.ts", "b.ts", "c.ts"))
    clip = Clip(options=FAST, time_base=Fraction(1, 90_000))
    write_clip(first, clip)
    later = Clip(
        options=FAST,
        time_base=Fraction(1, 90_000),
        pts=range(25 * 3600, 50 * 3600, 3600),
        container_options={"mpegts_start_pid": "512"},
    )
    write_clip(second, later)
    path.write_bytes(first.read_bytes() + second.read_bytes())
    notices = copied(path, tmp_path / "out")
    frames = probe(tmp_path / "out").frames
    assert frames == 50 or (frames == 25 and "media.stream_dropped" in notices)


@pytest.mark.parametrize("shift_s", [-3, 0, 3600])
def test_a_clock_that_starts_again_in_a_transport_stream_runs_on(
    shift_s: int, tmp_path: Path
) -> None:
    """Two recordings of four seconds end to end, as cameras that change files leave them."""
    first, second, path = (tmp_path / name for name in ("a.ts", "b.ts", "c.ts"))
    sounds = sounding("mp2", seconds=4, silent_s=3)
    unit = Fraction(1, 90_000)
    wishes: dict[str, Any] = {"options": FAST, "time_base": unit, "frames": 100, "sounds": sounds}
    write_clip(first, Clip(**wishes))
    delay = {"output_ts_offset": str(shift_s + 4)} if shift_s >= 0 else {}
    write_clip(second, Clip(**wishes, container_options=delay))
    path.write_bytes(first.read_bytes() + second.read_bytes())
    before = probe(path)
    assert bool(before.clock_jumps) == (shift_s != 0)
    copied(path, tmp_path / "out")
    found = times(tmp_path / "out")
    assert len(found) == 200
    steps = [b - a for a, b in pairwise(found)]
    assert max(steps) < Fraction(1, 10)
    assert min(steps) > Fraction(1, 50)
    begins_s, samples = heard(tmp_path / "out")
    loud = np.abs(samples) > 0.05
    first_beep_s = begins_s + float(np.argmax(loud)) / 48_000
    half = len(samples) // 2 + 9600
    second_beep_s = begins_s + float(half + np.argmax(loud[half:])) / 48_000
    # The picture of the second recording begins at frame 100, and its beep comes three seconds later.
    assert abs(first_beep_s - float(found[75])) < 0.1
    assert abs(second_beep_s - float(found[175])) < 0.1


def test_a_tone_has_the_length_that_it_says() -> None:
    """The other tests lean on it."""
    (frame,) = tone(Sound(seconds=0.5, silent_s=0.25))
    samples = frame.to_ndarray()[0]
    assert (samples[:12_000] == 0).all()
    assert np.abs(samples[12_001:]).max() > 7000
