"""Whether a file is all there, as far as its own structure tells: for kinds without an index of every frame.

Sources: RFC 8794 (EBML), RFC 9559 (Matroska), the AVI RIFF file reference, ISO/IEC 13818-1 (transport streams).
"""

from fractions import Fraction
from pathlib import Path
from typing import Final

import av

from app.core.errors import DamagedMediaError
from app.core.types import Notice
from app.media import avi
from app.media.demux import main_video, opened, packets
from app.media.ebml import has_foreign_bytes, segment_end
from app.media.info import MediaInfo
from app.media.sniff import MediaKind
from app.media.transport import ends_within_packet

MATROSKA: Final = frozenset({MediaKind.MATROSKA, MediaKind.WEBM})
TOLD_BY_THEIR_ENDS: Final = MATROSKA | {MediaKind.AVI}
"""Kinds whose headers say how much there should be, but not where each frame lies."""

_SAME_END_S: Final = Fraction(1, 2)
"""Streams of a file that was cut end about together; one that ended earlier was over already."""


def missing_share(path: Path, kind: MediaKind) -> float:
    """The share of the file's declared bytes that is not there; 0 where the header declares nothing.

    Live recordings declare no length, transport streams have none.
    """
    declared = _declared_end(path, kind)
    held = path.stat().st_size
    return 0.0 if declared is None or declared <= held else 1 - held / declared


def missing_frames(path: Path, info: MediaInfo) -> int:
    """How many frames the end of a cut file should have held, by the length that its header gives."""
    if info.frames is None or info.rate is None or missing_share(path, info.container) == 0:
        return 0
    with opened(path, info.container) as container:
        stream = main_video(container)
        if info.container is MediaKind.AVI:
            return max(0, stream.frames - info.frames)
        if container.duration is None:
            return 0
        promised_s = Fraction(container.duration, av.time_base)
        video_s = others_s = Fraction(0)
        for packet in packets(container, *container.streams.video, *container.streams.audio):
            at = packet.pts if packet.pts is not None else packet.dts
            end_s = ((at or 0) + (packet.duration or 0)) * packet.time_base
            if packet.stream_index == stream.index:
                video_s = max(video_s, end_s)
            else:
                others_s = max(others_s, end_s)
    if others_s > video_s + _SAME_END_S:
        return 0
    # Sound often outlives the picture by a packet.
    return max(0, int((promised_s - video_s) * info.rate))


def is_damaged_inside(path: Path, kind: MediaKind) -> bool:
    """True when the parts of a Matroska file do not follow each other as they should."""
    return kind in MATROSKA and has_foreign_bytes(path)


def end_notice(path: Path, kind: MediaKind) -> Notice | None:
    """What to say of a file that is not all there; `None` for a whole one."""
    share = missing_share(path, kind)
    if share:
        return Notice(
            "media.ends_early", f"the file ends early: {share:.2%} of its bytes are missing"
        )
    if kind is MediaKind.AVI and avi.cut_index_at(path) is not None:
        return Notice(
            "media.ends_early",
            "the index at the end of the file is incomplete; the file was read without it",
        )
    if kind is MediaKind.MPEGTS and ends_within_packet(path):
        return Notice(
            "media.ends_early",
            "the file ends in the middle of a packet: how much is missing behind it, if anything, it does not say",
        )
    return None


def _declared_end(path: Path, kind: MediaKind) -> int | None:
    if kind in MATROSKA:
        try:
            return segment_end(path)
        except DamagedMediaError:
            return None
    if kind is not MediaKind.AVI or avi.cut_index_at(path) is not None:
        # Only the end of its index is missing, which holds no frame.
        return None
    return avi.declared_end(path)
