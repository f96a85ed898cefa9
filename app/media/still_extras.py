"""What phones put beside a picture in its file: gain maps, second views, short videos. All of it shows the old face.

Sources: CIPA DC-007 (several pictures in a JPEG), Adobe's gain map 1.0, Google's motion photo 1.0, ISO/IEC 23008-12,
6.4 (helping pictures), ISO 21496-1 (tone-mapped pictures).
"""

from app.media.chunks import jpeg_segments, read_chunk
from app.media.heif import HeifFile
from app.media.still_open import OpenStill

_APP2 = b"\xe2"
_SEVERAL_PICTURES = b"MPF\0"
_WORDS = (b"hdr-gain-map", b"HDRGainMap", b"MotionPhoto", b"MicroVideo", b"GImage:Data", b"GDepth")
_TONE_MAPPED = b"tmap"


def has_extras(still: OpenStill, xmp: bytes | None) -> bool:
    """Whether a file holds, beside its picture, others of the same moment that do not go on.

    Args:
        still: An open file.
        xmp: Its packet.
    """
    if xmp is not None and any(word in xmp for word in _WORDS):
        return True
    if isinstance(still.image, HeifFile):
        items = still.image.head.items.values()
        return any(item.kind == _TONE_MAPPED for item in items) or still.image.has_other_helpers
    if still.format == "jpeg":
        return any(
            segment.name == _APP2
            and read_chunk(still.file, segment, at_most=4) == _SEVERAL_PICTURES
            for segment in jpeg_segments(still.file)
        )
    return False
