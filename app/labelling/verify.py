"""Reading labels back: from our own outputs before anybody may have them, and from any file somebody asks about."""

from dataclasses import dataclass
from pathlib import Path

from app.core.errors import LabelError
from app.labelling import xmp
from app.labelling.metadata import AIGC_TAG, DIGITAL_SOURCE_TYPE, SOURCE_TYPE_TAG, Label
from app.media.packets import container_tags, xmp_packets


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundLabel:
    """What a file says of itself; nothing in it is proven.

    Attributes:
        aigc: Every value of the `AIGC` field, one for each place where it stands.
        source_types: Every value of IPTC's `DigitalSourceType`.
    """

    aigc: tuple[str, ...] = ()
    source_types: tuple[str, ...] = ()


def read_label(path: Path) -> FoundLabel:
    """Read the labels of a picture or video.

    Returns:
        What was found; empty tuples for a file without labels.

    Raises:
        MediaError: The file cannot be read, or is none of the kinds we read.
    """
    packets = xmp_packets(path)
    return FoundLabel(
        aigc=_values(path, packets, AIGC_TAG),
        source_types=_values(path, packets, SOURCE_TYPE_TAG),
    )


def verify(path: Path, label: Label) -> None:
    """Make sure that a finished output carries exactly its labels.

    Raises:
        LabelError: `AIGC` is missing, there more than once, or says something else; or so does the source type.
        MediaError: The file cannot be read.
    """
    found = read_label(path)
    if found.aigc != (label.aigc_json,):
        raise LabelError(
            f"AIGC label: got {len(found.aigc)} of them, wanted one with this output's values; "
            "the output is not given out"
        )
    if set(found.source_types) != {DIGITAL_SOURCE_TYPE}:
        raise LabelError(
            f"digital source type: got {sorted(set(found.source_types))}, wanted {DIGITAL_SOURCE_TYPE}; "
            "the output is not given out"
        )


def _values(path: Path, packets: tuple[bytes, ...], name: str) -> tuple[str, ...]:
    in_xmp = (value for packet in packets for value in xmp.properties(packet, name))
    return (*container_tags(path, name), *in_xmp)
