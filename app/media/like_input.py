"""The quality at which an encoder makes about as many bytes of a video as the video's own encoder did.

A few short pieces are encoded on trial; from trial to trial the quality follows the difference. Only the first piece
begins with a key frame of both; of the others the first frame, which is one in the trial alone, does not count. It
costs the encoding of a few hundred frames, and asks nothing of the codec but its packets.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, cast

import av
from av.video.codeccontext import VideoCodecContext

from app.core.picture import PIXEL_FORMATS, Picture
from app.media.demux import main_video, opened, packets, video_decoder
from app.media.encodable import EncodableFrames, encoded_tags
from app.media.encoders import EncoderSpec, VideoEncoding, encoded_format, encoder_for
from app.media.frames import picture_of
from app.media.info import MediaInfo
from app.media.orientation import orientation_of, upright

_PIECES: Final = (0.0, 0.5, 1.0)
_PIECE_FRAMES: Final = 24
_PIECE_BYTES: Final = 60_000_000
"""All pieces lie in memory while they are tried: at 4K that is five frames each."""
_TRIALS: Final = 4
_NEAR_ENOUGH: Final = math.log(1.08)
_QUALITIES: Final = (20, 98)
_BYTES_PER_QUALITY: Final = 0.045
"""How much the logarithm of the bytes grows with one step of quality, as far as nobody has measured it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """Some consecutive frames, and the bytes that each takes in the file."""

    pictures: Sequence[Picture]
    sizes_bytes: Sequence[int]
    counts_first: bool

    def counted(self, sizes_bytes: Sequence[int]) -> int:
        """The sum of the packets that count."""
        return sum(sizes_bytes[0 if self.counts_first else 1 :])


def quality_like_input(path: Path, info: MediaInfo, encoding: VideoEncoding) -> int:
    """The quality with which an encoding is about as large as the input, and hence about as good.

    Args:
        path: A video whose codec is that of the encoding.
        info: What `probe` says of it.
        encoding: Says the codec, the preset, and the quality for an encoder that knows none, or a file of no use.

    Returns:
        0 to 100.

    Raises:
        MediaError: The file cannot be read.
    """
    encoder = encoder_for(encoding)
    if encoder.rate_factor is None:
        return encoding.quality
    pieces = _pieces(path, info)
    wanted = sum(piece.counted(piece.sizes_bytes) for piece in pieces)
    if not wanted:
        return encoding.quality

    def distance(quality: int) -> float:
        trial = replace(encoding, quality=quality)
        made = sum(
            piece.counted(_trial_sizes(piece.pictures, info, encoder, trial)) for piece in pieces
        )
        return math.log(max(made, 1) / wanted)

    return _nearest(distance, encoding.quality)


def _nearest(distance: Callable[[int], float], first: int) -> int:
    """Follow the distance to 0, by the slope between the last two qualities."""
    lowest, highest = _QUALITIES
    tried: dict[int, float] = {}
    quality, slope = min(max(first, lowest), highest), _BYTES_PER_QUALITY
    for _ in range(_TRIALS):
        tried[quality] = distance(quality)
        if abs(tried[quality]) < _NEAR_ENOUGH:
            break
        if len(tried) > 1:
            (before, was), (last, now) = list(tried.items())[-2:]
            slope = max(_BYTES_PER_QUALITY / 4, (now - was) / (last - before))
        quality = min(max(round(quality - tried[quality] / slope), lowest), highest)
        if quality in tried:
            break
    return min(tried, key=lambda each: abs(tried[each]))


def _pieces(path: Path, info: MediaInfo) -> list[_Piece]:
    """Pieces of the file, in order, none twice."""
    with opened(path, info.container) as container:
        ordered = sorted(
            (packet.pts, packet.size)
            for packet in packets(container, main_video(container))
            if packet.pts is not None and not packet.is_discard
        )
    count = _piece_frames(info)
    last_start = max(0, len(ordered) - count)
    pieces = []
    for start in sorted({int(share * last_start) for share in _PIECES}):
        times = ordered[start : start + count]
        pictures = _pictures(path, info, {pts for pts, _ in times})
        if len(pictures) == len(times):
            sizes = [size for _, size in times]
            pieces.append(_Piece(pictures=pictures, sizes_bytes=sizes, counts_first=start == 0))
    return pieces


def _piece_frames(info: MediaInfo) -> int:
    shapes = PIXEL_FORMATS[info.pixel_format].plane_shapes(info.size_wh)
    frame_bytes = sum(math.prod(shape) for shape in shapes) * (2 if info.bits > 8 else 1)
    return max(4, min(_PIECE_FRAMES, _PIECE_BYTES // frame_bytes))


def _pictures(path: Path, info: MediaInfo, wanted: set[int]) -> list[Picture]:
    """The pictures of some times."""
    pictures = []
    with opened(path, info.container) as container:
        stream = main_video(container)
        container.seek(min(wanted), stream=stream)
        decoder = video_decoder(stream)
        decoder.thread_type = "AUTO"
        try:
            for packet in (*packets(container, stream), None):
                for frame in decoder.decode(packet):
                    if frame.pts in wanted:
                        pictures.append(upright(picture_of(frame), orientation_of(frame)))
                if len(pictures) == len(wanted):
                    break
        except av.FFmpegError:
            return pictures
    return pictures


def _trial_sizes(
    pictures: Sequence[Picture], info: MediaInfo, encoder: EncoderSpec, encoding: VideoEncoding
) -> list[int]:
    """The sizes of the packets that an encoder makes of some pictures, the key frame's first."""
    first = pictures[0]
    source = PIXEL_FORMATS.get(info.pixel_format, first.pixel_format)
    pixel_format = encoded_format(
        first.pixel_format, source=source, size_wh=first.size_wh, encoder=encoder
    )
    tags = encoded_tags(first, source=info.tags, source_is_yuv=source.family == "yuv")
    frames = EncodableFrames(pixel_format, tags)
    context = cast("VideoCodecContext", av.CodecContext.create(encoder.name, "w"))
    context.width, context.height = first.size_wh
    context.pix_fmt = pixel_format.name
    context.framerate = info.rate or Fraction(25)
    context.time_base = 1 / context.framerate
    context.options = encoder.codec_options(encoding)
    made = []
    for index, picture in enumerate(pictures):
        frame = frames.of(picture)
        frame.pts, frame.time_base = index, context.time_base
        made += context.encode(frame)
    return [packet.size for packet in (*made, *context.encode(None))]
