import json
from fractions import Fraction
from pathlib import Path

import av
import pytest
from PIL import Image

from app.core.errors import (
    AppError,
    DamagedMediaError,
    MediaTooLargeError,
    NoVideoError,
    TruncatedMediaError,
    UnsupportedCodecError,
    UnsupportedTypeError,
)
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.sniff import MediaKind
from tests.media.clips import Sound, noise_frame, tone
from tests.media.conftest import MakeClip


def test_a_video_tells_what_it_is(make_clip: MakeClip) -> None:
    info = probe(
        make_clip(
            "clip.mp4",
            frames=12,
            size_wh=(64, 48),
            rate=Fraction(30_000, 1001),
            time_base=Fraction(1, 30_000),
            sounds=(Sound(seconds=0.5, layout="mono", language="deu"),),
            context={"colorspace": 1, "color_range": 1, "color_primaries": 1, "color_trc": 1},
        )
    )
    assert (info.kind, info.container, info.codec) == ("video", MediaKind.MP4, "h264")
    assert (info.size_wh, info.pixel_format, info.bits) == ((64, 48), "yuv420p", 8)
    assert (info.rate, info.frames, info.missing_frames) == (Fraction(30_000, 1001), 12, 0)
    assert (info.tags.matrix, info.tags.is_full_range) == (1, False)
    sound = info.streams[1]
    assert (sound.type, sound.codec, sound.language) == ("audio", "aac", "deu")
    assert (sound.channels, sound.sample_rate_hz) == (1, 48_000)


def test_the_answer_is_plain_json(make_clip: MakeClip) -> None:
    told = json.loads(json.dumps(probe(make_clip("clip.mp4", frames=5)).to_json()))
    assert (told["size_wh"], told["rate"], told["frames"]) == ([64, 48], "25/1", 5)
    assert told["streams"][0]["codec"] == "h264"


def test_size_is_that_of_the_upright_picture(make_clip: MakeClip) -> None:
    info = probe(make_clip("turned.mp4", frames=2, rotation_deg=90))
    assert (info.size_wh, info.rotation_deg) == ((48, 64), 270)


def test_pixel_shape_turns_with_the_picture(make_clip: MakeClip) -> None:
    wide = {"sample_aspect_ratio": Fraction(4, 3)}
    assert probe(make_clip("a.mp4", frames=2, context=wide)).pixel_aspect == Fraction(4, 3)
    turned = probe(make_clip("b.mp4", frames=2, context=wide, rotation_deg=90))
    assert turned.pixel_aspect == Fraction(3, 4)


@pytest.mark.parametrize("name", ["clip.mkv", "clip.ts", "clip.mov", "clip.avi"])
def test_frames_are_counted_in_every_container(make_clip: MakeClip, name: str) -> None:
    codec = "mpeg4" if name == "clip.avi" else "libx264"
    options = {} if name == "clip.avi" else {"preset": "ultrafast"}
    base = Fraction(1, 25) if name == "clip.avi" else Fraction(1, 12_800)
    info = probe(make_clip(name, frames=9, codec=codec, options=options, time_base=base))
    assert info.frames == 9


def test_frames_can_be_estimated_where_counting_takes_long(make_clip: MakeClip) -> None:
    info = probe(make_clip("clip.mp4", frames=10))
    assert info.frames_estimate == 10


def test_an_animated_picture_is_a_video_with_alpha(tmp_path: Path) -> None:
    path = tmp_path / "moving.gif"
    images = [Image.new("RGB", (16, 12), color) for color in ("red", "green", "blue")]
    images[0].save(path, save_all=True, append_images=images[1:], duration=70, loop=0)
    info = probe(path)
    assert (info.kind, info.container, info.frames) == ("video", MediaKind.GIF, 3)
    assert (info.pixel_format, info.has_alpha) == ("rgba", True)


def test_a_still_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "picture.mp4"
    Image.new("RGB", (20, 10)).save(path, format="PNG")
    info = probe(path)
    assert (info.kind, info.container, info.size_wh) == ("still", MediaKind.PNG, (20, 10))


def test_a_file_cut_off_behind_its_index_tells_what_is_missing(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=40, container_options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    info = probe(path)
    assert info.frames == 40
    assert 10 < info.missing_frames < 30


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as output:
        track = output.add_stream("aac", rate=48_000)
        for frame in tone(Sound(seconds=0.2)):
            output.mux(track.encode(frame))
        output.mux(track.encode(None))
    with pytest.raises(NoVideoError):
        probe(path)


def test_a_file_cut_off_before_its_index_is_truncated(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=20)
    path.write_bytes(path.read_bytes()[:-1500])
    with pytest.raises(TruncatedMediaError):
        probe(path)


def test_a_header_of_noise_is_damaged(make_clip: MakeClip) -> None:
    path = make_clip("clip.mkv", frames=5)
    path.write_bytes(path.read_bytes()[:40] + bytes(range(256)) * 20)
    with pytest.raises(DamagedMediaError):
        probe(path)


def test_a_video_of_which_nothing_can_be_decoded_is_damaged(make_clip: MakeClip) -> None:
    path = make_clip("clip.mp4", frames=5)
    content = bytearray(path.read_bytes())
    start, end = content.index(b"mdat") + 4, content.index(b"moov") - 4
    content[start:end] = b"\xa5" * (end - start)
    path.write_bytes(content)
    with pytest.raises(DamagedMediaError):
        probe(path)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        pytest.param(MediaLimits(max_side_px=63), MediaTooLargeError, id="side"),
        pytest.param(MediaLimits(max_duration_s=0.9), MediaTooLargeError, id="seconds"),
        pytest.param(MediaLimits(max_frames=24), MediaTooLargeError, id="frames"),
        pytest.param(MediaLimits(max_streams=1), MediaTooLargeError, id="streams"),
    ],
)
def test_a_video_over_budget_is_refused(
    make_clip: MakeClip, limits: MediaLimits, error: type[AppError]
) -> None:
    path = make_clip("clip.mp4", frames=25, sounds=(Sound(),))
    with pytest.raises(error):
        probe(path, limits)


def test_a_codec_that_is_not_on_the_list_is_refused(make_clip: MakeClip) -> None:
    path = make_clip("clip.mkv", frames=2, codec="snow", options={"strict": "-2"})
    with pytest.raises(UnsupportedCodecError, match="snow"):
        probe(path)


def test_cover_art_is_not_the_video(tmp_path: Path) -> None:
    path = tmp_path / "cover.mp4"
    with av.open(str(path), "w") as output:
        cover = output.add_stream("mjpeg", rate=1, width=32, height=32, pix_fmt="yuvj420p")
        cover.disposition = av.stream.Disposition.attached_pic
        video = output.add_stream("libx264", rate=25, width=64, height=48, pix_fmt="yuv420p")
        output.mux(cover.encode(noise_frame((32, 32), "yuvj420p", 0)))
        output.mux(cover.encode(None))
        output.mux(video.encode(noise_frame((64, 48), "yuv420p", 0)))
        output.mux(video.encode(None))
    info = probe(path)
    assert (info.codec, info.size_wh) == ("h264", (64, 48))
    assert sorted(stream.is_cover for stream in info.streams) == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n", id="playlist"),
        pytest.param("ffconcat version 1.0\nfile '{}'\n", id="list of files"),
    ],
)  # fmt: skip
def test_a_file_that_points_to_another_file_is_refused(make_clip: MakeClip, text: str) -> None:
    other = make_clip("other.mp4", frames=2)
    path = other.with_name("list.mp4")
    path.write_text(text.format(other))
    with pytest.raises(UnsupportedTypeError):
        probe(path)


@pytest.mark.parametrize(
    "name", ["-leading dash.mp4", "it''s %03d ü ビデオ.mp4", "concat:a|b.mp4", "pipe:1.mp4"]
)
def test_a_name_is_only_a_name(make_clip: MakeClip, name: str) -> None:
    assert (
        probe(
            make_clip("plain.mp4", frames=2).rename(make_clip("x.mp4", frames=1).with_name(name))
        ).frames
        == 2
    )
