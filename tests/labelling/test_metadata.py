import json
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from app.core.errors import DamagedMediaError, LabelError, UsageError
from app.labelling.metadata import (
    DIGITAL_SOURCE_TYPE,
    Label,
    finish_video,
    still_xmp,
    video_metadata,
)
from app.labelling.verify import read_label, verify
from app.labelling.xmp import properties

LABEL = Label(produce_id="00ff")
AIGC = (
    '{"Label":"1","ContentProducer":"FaceDock","ProduceID":"00ff","ReservedCode1":"",'
    '"ContentPropagator":"","PropagateID":"","ReservedCode2":""}'
)
WriteVideo = Callable[..., Path]


def test_the_label_is_the_standards_json_byte_for_byte() -> None:
    assert LABEL.aigc_json == AIGC
    assert list(json.loads(LABEL.aigc_json)) == [
        *("Label", "ContentProducer", "ProduceID", "ReservedCode1"),
        *("ContentPropagator", "PropagateID", "ReservedCode2"),
    ]


def test_the_source_type_is_iptcs_word_for_an_edit_by_a_generative_model() -> None:
    assert DIGITAL_SOURCE_TYPE == (
        "http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia"
    )


@pytest.mark.parametrize("value", ["", "a b", 'a"b', "a\\b", "脸", "a\nb", "a\x7f"])
def test_a_label_of_forbidden_characters_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="produce_id"):
        Label(produce_id=value)
    with pytest.raises(UsageError, match="producer"):
        Label(producer=value, produce_id="1")


def test_a_still_gets_both_labels_in_xmp() -> None:
    packet = still_xmp(LABEL, None)
    assert properties(packet, "AIGC") == (AIGC,)
    assert properties(packet, "DigitalSourceType") == (DIGITAL_SOURCE_TYPE,)


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".webm"])
def test_a_finished_video_is_verified_and_still_plays(suffix: str, write_video: WriteVideo) -> None:
    path = write_video(suffix, dict(video_metadata(LABEL)))
    finish_video(path, LABEL)
    verify(path, LABEL)
    assert read_label(path).aigc == (AIGC,)
    with av.open(str(path)) as video:
        assert sum(1 for _ in video.decode(video=0)) == 5


@pytest.mark.parametrize("suffix", [".mp4", ".mov"])
def test_iptc_aware_readers_find_xmp_at_the_end_of_the_file(
    suffix: str, write_video: WriteVideo
) -> None:
    path = write_video(suffix, dict(video_metadata(LABEL)), "use_metadata_tags+faststart")
    before = path.read_bytes()
    finish_video(path, LABEL)
    added = path.read_bytes().removeprefix(before)
    assert int.from_bytes(added[:4], "big") == len(added)
    assert added[4:24] == b"uuid" + bytes.fromhex("BE7ACFCB97A942E89C71999491E3AFAC")
    assert properties(added[24:], "DigitalSourceType") == (DIGITAL_SOURCE_TYPE,)
    assert properties(added[24:], "AIGC") == ()


def test_a_muxer_that_drops_the_tags_is_found_out(write_video: WriteVideo) -> None:
    path = write_video(".mp4", dict(video_metadata(LABEL)), movflags="faststart")
    with pytest.raises(LabelError, match="AIGC"):
        finish_video(path, LABEL)
    with pytest.raises(LabelError, match="got 0"):
        verify(path, LABEL)


def test_a_file_that_cannot_grow_stays_as_it_is(write_video: WriteVideo) -> None:
    path = write_video(".mp4", dict(video_metadata(LABEL)))
    damaged = path.read_bytes() + b"\0\0\0\0mdat"
    path.write_bytes(damaged)
    with pytest.raises(DamagedMediaError):
        finish_video(path, LABEL)
    assert path.read_bytes() == damaged
