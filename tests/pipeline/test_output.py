"""Nothing leaves without a verified label, and nothing partial is ever visible."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.core.errors import LabelError, UnwritableOutputError, UsageError
from app.labelling.metadata import still_xmp
from app.labelling.verify import verify
from app.media.probe import probe
from app.pipeline.output import labelled_output, new_label, refuse_overwriting_inputs


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "target.png"
    Image.fromarray(np.zeros((32, 48, 3), np.uint8)).save(path)
    return path


def save_labelled(path: Path, xmp: bytes) -> None:
    info = PngInfo()
    info.add_itxt("XML:com.adobe.xmp", xmp.decode())
    Image.fromarray(np.zeros((32, 48, 3), np.uint8)).save(path, format="PNG", pnginfo=info)


def test_a_labelled_file_takes_its_place(picture: Path, tmp_path: Path) -> None:
    output, label = tmp_path / "out.png", new_label()
    with labelled_output(output, label, probe(picture)) as hidden:
        save_labelled(hidden, still_xmp(label, None))
        assert not output.exists()
    verify(output, label)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.png", "target.png"]


def test_a_file_without_its_label_never_appears(picture: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.png"
    with (
        pytest.raises(LabelError),
        labelled_output(output, new_label(), probe(picture)) as hidden,
    ):
        Image.fromarray(np.zeros((32, 48, 3), np.uint8)).save(hidden, format="PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["target.png"]


def test_a_file_with_somebody_elses_label_never_appears(picture: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.png"
    with (
        pytest.raises(LabelError),
        labelled_output(output, new_label(), probe(picture)) as hidden,
    ):
        save_labelled(hidden, still_xmp(new_label(), None))
    assert not output.exists()


def test_an_error_keeps_the_file_that_was_there(picture: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.png"
    output.write_bytes(b"the one before")
    with (
        pytest.raises(RuntimeError, match="on the way"),
        labelled_output(output, new_label(), probe(picture)),
    ):
        raise RuntimeError("on the way")
    assert output.read_bytes() == b"the one before"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_missing_folder_is_said_before_any_work(picture: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(UnwritableOutputError, match="does not exist"),
        labelled_output(tmp_path / "nowhere" / "out.png", new_label(), probe(picture)),
    ):
        pytest.fail("got a place to write to")


def test_a_long_name_is_no_trouble(picture: Path, tmp_path: Path) -> None:
    output, label = tmp_path / f"{'n' * 250}.png", new_label()
    with labelled_output(output, label, probe(picture)) as hidden:
        save_labelled(hidden, still_xmp(label, None))
    assert output.exists()


def test_labels_are_unique() -> None:
    assert len({new_label().produce_id for _ in range(50)}) == 50


def test_an_output_never_replaces_an_input(picture: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.png"
    link.symlink_to(picture)
    refuse_overwriting_inputs(tmp_path / "out.png", (picture,))
    for output in (picture, link):
        with pytest.raises(UsageError, match="input"):
            refuse_overwriting_inputs(output, (picture,))


@pytest.mark.parametrize("name", ["", ".", "folder", "n" * 300 + ".png", "pipe.png"])
def test_what_no_file_can_be_is_refused(name: str, picture: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UnwritableOutputError):
        refuse_overwriting_inputs(tmp_path / name, (picture,))
    with (
        pytest.raises(UnwritableOutputError),
        labelled_output(tmp_path / name, new_label(), probe(picture)),
    ):
        pytest.fail("got a place to write to")
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_stays_a_link(picture: Path, tmp_path: Path) -> None:
    real, link, label = tmp_path / "real.png", tmp_path / "link.png", new_label()
    real.write_bytes(b"the one before")
    link.symlink_to(real)
    with labelled_output(link, label, probe(picture)) as hidden:
        save_labelled(hidden, still_xmp(label, None))
    assert link.is_symlink()
    verify(real, label)
