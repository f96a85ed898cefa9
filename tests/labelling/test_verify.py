from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from app.core.errors import EmptyMediaError, LabelError
from app.labelling.metadata import DIGITAL_SOURCE_TYPE, Label, still_xmp
from app.labelling.verify import FoundLabel, read_label, verify

LABEL = Label(produce_id="00ff")
AIGC = LABEL.aigc_json
WriteVideo = Callable[..., Path]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        pytest.param({}, "AIGC label: got 0", id="no label"),
        pytest.param({"AIGC": AIGC}, "digital source type: got", id="no source type"),
        pytest.param(
            {"AIGC": AIGC.replace("00ff", "00fe"), "DigitalSourceType": DIGITAL_SOURCE_TYPE},
            "AIGC label: got 1",
            id="another output's label",
        ),
        pytest.param(
            {"AIGC": AIGC, "DigitalSourceType": DIGITAL_SOURCE_TYPE.replace("With", "Withd")},
            "digital source type",
            id="a misspelled source type",
        ),
    ],
)
def test_an_output_with_other_labels_does_not_pass(
    tags: dict[str, str], message: str, write_video: WriteVideo
) -> None:
    with pytest.raises(LabelError, match=message):
        verify(write_video(".mkv", tags), LABEL)


def test_two_labels_in_one_file_do_not_pass(tmp_path: Path) -> None:
    path = tmp_path / "two.jpg"
    packet = still_xmp(LABEL, None)
    doubled = packet.replace(b"<TC260:AIGC>", b"<TC260:AIGC>x</TC260:AIGC><TC260:AIGC>")
    Image.new("RGB", (8, 8)).save(path, xmp=doubled)
    with pytest.raises(LabelError, match="got 2"):
        verify(path, LABEL)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tiff", ".avif", ".bmp", ".gif"])
def test_a_picture_without_labels_has_none(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"plain{suffix}"
    Image.new("RGB", (8, 8)).save(path)
    assert read_label(path) == FoundLabel()


def test_a_file_of_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.png"
    path.write_bytes(b"")
    with pytest.raises(EmptyMediaError):
        read_label(path)
