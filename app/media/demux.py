"""Opening a video file, with everything refused that has no business in one.

The kind comes from our own look at the bytes and names the demuxer; FFmpeg guesses nothing, follows no link to another
file and speaks no network protocol.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import av
from av.codec.hwaccel import HWAccel
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition, Stream
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from app.core.errors import (
    DamagedMediaError,
    MediaError,
    NoVideoError,
    TruncatedMediaError,
    UnsupportedCodecError,
    UnsupportedTypeError,
)
from app.media.avi import FileHead, cut_index_at
from app.media.sniff import MediaKind

_MOV: Final = "mov"
_DEMUXERS: Final[dict[MediaKind, str]] = {
    MediaKind.MP4: _MOV,
    MediaKind.MOV: _MOV,
    MediaKind.THREE_GP: _MOV,
    MediaKind.MATROSKA: "matroska",
    MediaKind.WEBM: "matroska",
    MediaKind.AVI: "avi",
    MediaKind.MPEGTS: "mpegts",
    MediaKind.GIF: "gif",
    MediaKind.APNG: "apng",
}
_DEMUXER_NAMES: Final = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,gif,apng"

_VIDEO_CODECS: Final = (
    "h264,hevc,av1,vp8,vp9,mpeg1video,mpeg2video,mpeg4,msmpeg4v3,h263,mjpeg,prores,dnxhd,cfhd,ffv1,ffvhuff,"
    "huffyuv,utvideo,magicyuv,rawvideo,v210,dvvideo,qtrle,png,gif,apng,theora,vc1,wmv3,wmv1,wmv2,msmpeg4v1,"
    "msmpeg4v2,flv1,svq1,svq3,cinepak,jpeg2000,vvc"
)
_OTHER_DECODERS: Final = (
    "libdav1d,libvpx-vp9,libvpx,msmpeg4,flv,aac,aac_latm,mp1float,mp2,mp2float,mp3,mp3float,ac3,eac3,dca,truehd,opus,"
    "libopus,vorbis,flac,alac,wmav2,amrnb,amrwb,adpcm_ms,adpcm_ima_wav,adpcm_ima_qt,pcm_s8,pcm_u8,pcm_s16le,"
    "pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,pcm_f32be,pcm_f64le,pcm_alaw,pcm_mulaw,pcm_bluray"
)

_OPTIONS: Final = {
    "protocol_whitelist": "file",
    "format_whitelist": _DEMUXER_NAMES,
    "codec_whitelist": f"{_VIDEO_CODECS},{_OTHER_DECODERS}",
}

_INDEXED: Final = {"skip_frame": "all"}
"""For files whose index says all: FFmpeg would decode up to twenty frames to guess what it has read already."""

_MAX_DEMUX_ERRORS: Final = 64
_MAX_BOXES: Final = 1000


@contextmanager
def opened(
    path: Path, kind: MediaKind, *, hwaccel: HWAccel | None = None
) -> Iterator[InputContainer]:
    """Open a video file for reading, and close it in the end.

    Args:
        path: The file.
        kind: What `sniff` said of it.
        hwaccel: The device that decodes; software without it.

    Raises:
        UnsupportedTypeError: No demuxer for this kind.
        TruncatedMediaError: It ends before its index.
        DamagedMediaError: Its header makes no sense.
        MediaError: The operating system does not let us read it.
    """
    demuxer = _DEMUXERS.get(kind)
    if demuxer is None:
        raise UnsupportedTypeError(
            f"{kind}: cannot be read as a video; save it as MP4 or GIF first"
        )
    options = {**_OPTIONS, **(_INDEXED if demuxer == _MOV else {})}
    try:
        # Tags that are not UTF-8 are no reason to refuse a video.
        container = av.open(
            _readable(path, kind),
            "r",
            format=demuxer,
            options=options,
            metadata_errors="replace",
            hwaccel=hwaccel,
        )
    except (av.error.PermissionError, av.error.FileNotFoundError, av.error.OSError) as error:
        raise MediaError(f"the file cannot be read: {error.strerror}") from error
    except av.FFmpegError as error:
        raise _refusal(path, kind) from error
    with container:
        yield container


def _readable(path: Path, kind: MediaKind) -> str | FileHead:
    """What the demuxer is given: the file, or an AVI's part before an index of which the end is missing."""
    length = cut_index_at(path) if kind is MediaKind.AVI and path.is_file() else None
    return f"file:{path}" if length is None else FileHead(path, length)


def _refusal(path: Path, kind: MediaKind) -> MediaError:
    if _DEMUXERS[kind] == _MOV and b"moov" not in _top_level_boxes(path):
        return TruncatedMediaError(
            f"{kind}: the file ends before its index; it was not copied or uploaded completely"
        )
    return DamagedMediaError(f"{kind}: the header cannot be read; the file is damaged")


def _top_level_boxes(path: Path) -> set[bytes]:
    """Names of the outermost boxes of an ISO file, as far as their sizes lead."""
    names, at = set(), 0
    with path.open("rb") as file:
        for _ in range(_MAX_BOXES):
            file.seek(at)
            head = file.read(16)
            size = int.from_bytes(head[:4], "big")
            names.add(head[4:8])
            if size == 1:
                size = int.from_bytes(head[8:16], "big")
            if size < 8:
                break
            at += size
    return names


def main_video(container: InputContainer) -> VideoStream:
    """The video of a file: its first video stream that is no cover art.

    Raises:
        NoVideoError: It has none.
        UnsupportedCodecError: It is encrypted, or its codec is not on the list.
    """
    streams = [stream for stream in container.streams.video if not is_cover(stream)]
    if not streams:
        raise NoVideoError("the file has no video stream; give a video or a picture")
    stream = streams[0]
    if codec_name(stream) not in _VIDEO_CODECS.split(","):
        raise UnsupportedCodecError(
            f"video codec {codec_name(stream) or 'unknown'}: not on the list; convert the video to H.264 first"
        )
    if stream.codec_context.codec_tag in ("encv", "drmi"):
        raise UnsupportedCodecError("the video is encrypted (DRM) and cannot be decoded")
    return stream


def video_decoder(stream: VideoStream) -> VideoCodecContext:
    """The decoder for a stream: its own, but libvpx for VP8 and VP9 with alpha, which FFmpeg's own leave out."""
    tags = {key.lower(): value for key, value in stream.metadata.items()}
    if tags.get("alpha_mode") == "1" and codec_name(stream) in ("vp8", "vp9"):
        return av.CodecContext.create(
            "libvpx-vp9" if codec_name(stream) == "vp9" else "libvpx", "r"
        )
    return stream.codec_context


def is_cover(stream: Stream) -> bool:
    """True for a picture that goes with a file: cover art, a thumbnail."""
    return bool(stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails))


def codec_name(stream: Stream) -> str:
    """FFmpeg's name of the codec, whatever decoder is used; empty when nobody knows it."""
    # A stream without a decoder has no codec context, whatever the stub says.
    context = getattr(stream, "codec_context", None)
    return (stream.name or "") if context is None else str(context.codec.canonical_name)


def packets(container: InputContainer, *streams: Stream) -> Iterator["Packet[Stream]"]:
    """The packets of some streams in the file's order, over damaged places; no empty ones.

    Raises:
        DamagedMediaError: The demuxer fails again and again.
    """
    errors = 0
    while True:
        try:
            yield from (packet for packet in container.demux(*streams) if packet.size)
        except av.FFmpegError as error:
            # A generator that raised is finished; a new one goes on behind the bad place.
            errors += 1
            if errors > _MAX_DEMUX_ERRORS:
                raise DamagedMediaError(
                    f"the file cannot be read on: {errors} errors between its packets"
                ) from error
        else:
            return


def indexed_frames(stream: VideoStream) -> int | None:
    """How many frames the file's own index lists for showing; `None` without a complete index."""
    entries = stream.index_entries
    if not stream.frames or len(entries) < stream.frames:
        return None
    return sum(not entry.is_discard for entry in entries)


def missing_samples(stream: VideoStream, file_bytes: int) -> int:
    """How many samples of the index lie beyond the end of the file: 0 for a whole file."""
    missing = 0
    for at in range(len(stream.index_entries) - 1, -1, -1):
        entry = stream.index_entries[at]
        if entry.pos + entry.size <= file_bytes:
            break
        missing += 1
    return missing
