"""Subtitles go along into every container, as they are or as plain text."""

from fractions import Fraction
from pathlib import Path

import av
import pytest

from app.media.encode import VideoEncoding
from app.media.encoders import Container
from app.media.subtitle_carrier import subtitle_text
from tests.media.conftest import MakeClip
from tests.media.copying import copy_video

LINES = ((40, 200, "Grüße"), (400, 300, "two\nlines"))


@pytest.mark.parametrize(
    ("data", "codec", "text"),
    [
        pytest.param(b"<i>one</i> &amp; two\r\nthree", "subrip", "one & two\nthree", id="SubRip"),
        pytest.param(b"\0\5helloSTYLE", "mov_text", "hello", id="tx3g, styles behind it"),
        pytest.param(b"\0\0", "mov_text", "", id="nothing is shown"),
        pytest.param(b"<v Bob>hi", "webvtt", "hi", id="WebVTT"),
        pytest.param(rb"0,0,Default,,0,0,0,,{\i1}a, b\Nc", "ass", "a, b\nc", id="ASS"),
        pytest.param(b"a < b > c", "subrip", "a < b > c", id="no tag"),
        pytest.param(b"\xff", "subrip", "\ufffd", id="no UTF-8"),
    ],
)
def test_words_are_found(data: bytes, codec: str, text: str) -> None:
    assert subtitle_text(data, codec) == text


def with_subtitles(source: Path, target: Path) -> None:
    with av.open(str(source)) as before, av.open(str(target), "w") as after:
        video = after.add_stream_from_template(before.streams.video[0])
        text = after.add_mux_stream("subrip", time_base=Fraction(1, 1000))
        text.metadata["language"] = "ger"
        for packet in before.demux(video=0):
            if packet.size:
                packet.stream = video
                after.mux(packet)
        for at, duration, words in LINES:
            line = av.Packet(words.encode())
            line.stream, line.time_base = text, Fraction(1, 1000)
            line.pts = line.dts = at
            line.duration = duration
            after.mux(line)


def copy(source: Path, path: Path, container: Container) -> list[str]:
    return copy_video(
        source, path, VideoEncoding(container=container, preset="ultrafast")
    ).written_codes


def lines_of(path: Path) -> list[tuple[int, int, str]]:
    with av.open(str(path)) as file:
        stream = file.streams.subtitles[0]
        assert stream.language == "ger"
        codec = {"srt": "subrip"}.get(stream.name or "", stream.name or "")
        return [
            (
                round(packet.pts * packet.time_base * 1000),
                round(packet.duration * packet.time_base * 1000),
                subtitle_text(bytes(packet), codec),
            )
            for packet in file.demux(stream)
            if packet.size and subtitle_text(bytes(packet), codec)
        ]


def test_text_goes_from_container_to_container(make_clip: MakeClip, tmp_path: Path) -> None:
    mkv, mp4, webm, back = (tmp_path / name for name in ("b.mkv", "c.mp4", "d.webm", "e.mkv"))
    with_subtitles(make_clip("a.mkv", frames=25), mkv)
    assert copy(mkv, mp4, "mp4") == ["media.subtitles_converted"]
    assert lines_of(mp4) == list(LINES)
    assert copy(mkv, webm, "webm") == ["media.subtitles_converted"]
    assert lines_of(webm) == list(LINES)
    assert copy(mp4, back, "matroska") == ["media.subtitles_converted"]
    assert lines_of(back) == list(LINES)


def test_text_that_fits_is_copied(make_clip: MakeClip, tmp_path: Path) -> None:
    mkv, mp4 = tmp_path / "b.mkv", tmp_path / "c.mp4"
    with_subtitles(make_clip("a.mkv", frames=25), mkv)
    copy(mkv, mp4, "mp4")
    assert copy(mkv, tmp_path / "d.mkv", "matroska") == []
    assert copy(mp4, tmp_path / "e.mov", "mov") == []
    assert lines_of(tmp_path / "e.mov") == list(LINES)


def test_fonts_go_from_matroska_to_matroska_and_covers_stay_behind(
    make_clip: MakeClip, tmp_path: Path
) -> None:
    source, extra = make_clip("a.mkv", frames=10), tmp_path / "b.mkv"
    with av.open(str(source)) as before, av.open(str(extra), "w") as after:
        stream = before.streams.video[0]
        video = after.add_stream_from_template(stream)
        after.add_attachment("letters.ttf", "application/x-truetype-font", b"letters")
        cover = av.CodecContext.create("png", "w")
        cover.width, cover.height, cover.pix_fmt, cover.time_base = 8, 8, "rgb24", Fraction(1)
        picture = b"".join(bytes(p) for p in cover.encode(av.VideoFrame(8, 8, "rgb24")))
        after.add_attachment("cover.png", "image/png", picture)
        for packet in before.demux(stream):
            if packet.size:
                packet.stream = video
                after.mux(packet)
    assert copy(extra, tmp_path / "c.mkv", "matroska") == ["media.cover_dropped"]
    with av.open(str(tmp_path / "c.mkv")) as file:
        assert [each.data for each in file.streams.attachments] == [b"letters"]
        assert len(file.streams.video) == 1
    assert copy(extra, tmp_path / "d.mp4", "mp4") == [
        "media.stream_dropped",
        "media.cover_dropped",
    ]
