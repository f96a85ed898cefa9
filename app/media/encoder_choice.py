"""From what a person asks for to an encoder: the usual one, one like the input's, or a named one."""

from typing import Final, get_args

from app.core.picture import PIXEL_FORMATS
from app.media.choices import CodecChoice
from app.media.encoders import ENCODERS, Container, VideoCodec
from app.media.hdr import is_hdr
from app.media.info import MediaInfo

_DEEP_BITS: Final = 12
_LEAST_DEEP_BITS: Final = 10


def chosen_codec(choice: CodecChoice, *, container: Container, info: MediaInfo) -> VideoCodec:
    """The codec to encode with.

    Args:
        choice: `auto` plays everywhere unless the input's depth, range or transparency asks for more; `like-input` is
            the input's own where we write it, at its depth, and the container takes it, else as `auto`.
        container: Where it goes.
        info: The input.

    Returns:
        A codec; one that a person named is not checked against the container here.
    """
    if choice == "auto":
        return _usual_codec(container, info)
    if choice == "like-input":
        for codec in get_args(VideoCodec):
            if codec == info.codec and container in ENCODERS[codec].containers:
                return codec if _holds(codec, info) else _usual_codec(container, info)
        return _usual_codec(container, info)
    return choice


def _holds(codec: VideoCodec, info: MediaInfo) -> bool:
    """False where an encoder would make 8 bits of more, as that of VP9 does."""
    formats = (PIXEL_FORMATS[name] for name in ENCODERS[codec].formats)
    return max(each.bits for each in formats) >= min(info.bits, _LEAST_DEEP_BITS)


def _usual_codec(container: Container, info: MediaInfo) -> VideoCodec:
    is_deep = info.bits >= _DEEP_BITS or is_hdr(info.tags.transfer)
    if container == "webm":
        return "vp9" if info.has_alpha or (_holds("vp9", info) and not is_deep) else "av1"
    if info.has_alpha and info.plays is None:
        if container == "mov":
            return "prores"
        if container == "matroska":
            return "vp9"
    return "hevc" if is_deep else "h264"
