"""The machine-readable labels: what they say, and where each kind of file keeps them.

Two labels go into every output. `AIGC` is the implicit label of GB 45438-2025 (seven keys, one per file);
`DigitalSourceType` is IPTC's word for how a picture came to be. A face swap is an edit by a generative model of a
picture that somebody took, so the term is `compositeWithTrainedAlgorithmicMedia`, not `trainedAlgorithmicMedia`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.core.errors import LabelError, UsageError
from app.labelling import xmp
from app.media.boxes import append_xmp_box
from app.media.packets import KINDS_WITH_XMP_BOX, container_tags
from app.media.sniff import sniff

DIGITAL_SOURCE_TYPE = (
    "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
)
"""Source: IPTC NewsCodes, scheme `digitalsourcetype`."""

AIGC_TAG = "AIGC"
SOURCE_TYPE_TAG = "DigitalSourceType"

_VALUE = re.compile(r"[!#-\[\]-~]+")
"""Printable ASCII without space, quotation mark and backslash: no reader has to unescape it (GB 45438-2025, E)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Who made an output, and which one it is.

    Attributes:
        producer: Name or code of whoever runs this program.
        produce_id: Unique for each output, hexadecimal.

    Raises:
        UsageError: A value is empty, or holds characters that the standard forbids.
    """

    produce_id: str
    producer: str = "FaceDock"

    def __post_init__(self) -> None:
        for name, value in (("producer", self.producer), ("produce_id", self.produce_id)):
            if not _VALUE.fullmatch(value):
                raise UsageError(
                    f"label {name}: got {value!r}, wanted printable ASCII without spaces, quotes and backslashes"
                )

    @property
    def aigc_json(self) -> str:
        """The `AIGC` field's text: seven keys in the standard's order, ASCII, no spaces."""
        fields = {
            "Label": "1",
            "ContentProducer": self.producer,
            "ProduceID": self.produce_id,
            "ReservedCode1": "",
            "ContentPropagator": "",
            "PropagateID": "",
            "ReservedCode2": "",
        }
        return json.dumps(fields, separators=(",", ":"))


def video_metadata(label: Label) -> Mapping[str, str]:
    """The tags that the muxer writes into a video's container (mp4, mov, mkv, webm)."""
    return MappingProxyType({AIGC_TAG: label.aigc_json, SOURCE_TYPE_TAG: DIGITAL_SOURCE_TYPE})


def still_xmp(label: Label, inherited: bytes | None) -> bytes:
    """The XMP packet of a still: the labels, and what is worth keeping of the input's packet.

    An inherited label is replaced; names of people, places and devices are dropped.

    Args:
        label: What to say.
        inherited: The packet of the input, if it had one; nothing in it is trusted.
    """
    return xmp.merged(inherited, aigc=label.aigc_json, source_type=DIGITAL_SOURCE_TYPE)


def finish_video(path: Path, label: Label) -> None:
    """Add to a finished video file what its muxer cannot write.

    Readers that know IPTC look for XMP, which mp4 and mov keep in a box of its own. The box holds the IPTC property
    only: the one `AIGC` field of the file is the container's tag. Other containers stay as they are; so do pictures,
    one that a video's frame has become and animated ones, which hold both labels in their XMP from the start.

    Args:
        path: A complete file, labeled with `video_metadata`; it grows in place.
        label: The same label.

    Raises:
        LabelError: The muxer has not written the tags; some do so without a word.
        DamagedMediaError: The file's boxes do not add up, so nothing can be appended.
        StorageFullError: The disk is full.
    """
    if sniff(path).family != "video":
        return
    if container_tags(path, AIGC_TAG) != (label.aigc_json,):
        raise LabelError(
            "the video's container does not hold the AIGC tag; write mp4, mov, mkv or webm with these tags"
        )
    if sniff(path) in KINDS_WITH_XMP_BOX:
        append_xmp_box(path, xmp.merged(None, aigc=None, source_type=DIGITAL_SOURCE_TYPE))
