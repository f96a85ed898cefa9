"""Bad input: the right code, the right exit code, a sentence, and no file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]

Prepare = Callable[[Path, Path], dict[str, Path]]


def no_face_in_target(folder: Path, astronaut: Path) -> dict[str, Path]:
    plain = folder / "plain.png"
    Image.fromarray(np.full((200, 200, 3), 120, np.uint8)).save(plain)
    return {"-s": astronaut, "-t": plain}


def no_face_in_source(folder: Path, astronaut: Path) -> dict[str, Path]:
    return {"-s": no_face_in_target(folder, astronaut)["-t"], "-t": astronaut}


def text_named_jpg(folder: Path, astronaut: Path) -> dict[str, Path]:
    text = folder / "text.jpg"
    text.write_text("this is no picture\n" * 20)
    return {"-s": astronaut, "-t": text}


def empty_file(folder: Path, astronaut: Path) -> dict[str, Path]:
    empty = folder / "empty.mp4"
    empty.touch()
    return {"-s": astronaut, "-t": empty}


def missing_file(folder: Path, astronaut: Path) -> dict[str, Path]:
    return {"-s": astronaut, "-t": folder / "nowhere.png"}


def missing_folder(folder: Path, astronaut: Path) -> dict[str, Path]:
    return {"-s": astronaut, "-t": astronaut, "-o": folder / "nowhere" / "out.png"}


def output_is_input(folder: Path, astronaut: Path) -> dict[str, Path]:
    return {"-s": astronaut, "-t": astronaut, "-o": astronaut}


CASES: list[tuple[Prepare, str, int]] = [
    (no_face_in_target, "face.none_in_target", 3),
    (no_face_in_source, "face.none_in_source", 3),
    (text_named_jpg, "media.unsupported_type", 3),
    (empty_file, "media.empty", 3),
    (missing_file, "media.not_found", 3),
    (missing_folder, "output.unwritable", 2),
    (output_is_input, "request.bad_option", 2),
]


def run_swap(
    folder: Path, arguments: dict[str, Path], *more: str
) -> subprocess.CompletedProcess[str]:
    arguments = {"-o": folder / "out.png", **arguments}
    flat = [part for pair in arguments.items() for part in map(str, pair)]
    return subprocess.run(
        [sys.executable, "-m", "app", "swap", *flat, *more],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def portrait(tmp_path: Path, astronaut: np.ndarray) -> Path:
    path = tmp_path / "astronaut.png"
    Image.fromarray(astronaut).save(path)
    return path


@pytest.mark.parametrize(
    ("prepare", "code", "exit_code"), CASES, ids=[c[0].__name__ for c in CASES]
)
def test_bad_input_is_refused(
    prepare: Prepare, code: str, exit_code: int, tmp_path: Path, portrait: Path
) -> None:
    original = portrait.read_bytes()
    arguments = prepare(tmp_path, portrait)
    before = sorted(tmp_path.rglob("*"))
    run = run_swap(tmp_path, arguments, "--consent", "public-domain", "--json")
    assert run.returncode == exit_code, run.stderr
    error = json.loads(run.stdout.splitlines()[-1])["error"]
    assert error["code"] == code
    assert len(error["message"]) > 20
    assert "Traceback" not in run.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert portrait.read_bytes() == original


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_folder_is_refused(tmp_path: Path, portrait: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    arguments = {"-s": portrait, "-t": portrait, "-o": closed / "out.png"}
    run = run_swap(tmp_path, arguments, "--consent", "public-domain", "--json")
    assert run.returncode == 2
    assert "output.unwritable" in run.stdout


def test_without_consent_it_explains_and_stops(tmp_path: Path, portrait: Path) -> None:
    run = run_swap(tmp_path, {"-s": portrait, "-t": portrait})
    assert run.returncode == 2
    assert "--consent" in run.stderr
    assert "permission" in run.stderr
    assert not (tmp_path / "out.png").exists()


def test_an_unknown_option_is_wrong_usage(tmp_path: Path, portrait: Path) -> None:
    arguments = {"-s": portrait, "-t": portrait}
    run = run_swap(tmp_path, arguments, "--consent", "self", "--set", "face_swapper.nonsense=1")
    assert run.returncode == 2
    assert "face_swapper.nonsense" in run.stderr
