"""A machine that lacks something gets the one line that adds it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "dirname", "cmp", "cp", "rm", "env", "cat")

NO_PYTHON = None
OLD = "exit 1"
WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1 ;; *%d.%d*) echo 3.12 ;; esac; exit 0'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the set-up script, and a `bin` that holds next to nothing."""
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "deploy" / "setup.sh", tmp_path / "deploy" / "setup.sh")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (bin_folder / tool).symlink_to(found)
    return tmp_path


def add_program(machine: Path, name: str, body: str) -> None:
    program = machine / "bin" / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


def set_up(machine: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [machine / "deploy" / "setup.sh", "run"],
        env={"PATH": str(machine / "bin")}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("python", "package_manager", "line"),
    [
        pytest.param(NO_PYTHON, "apt-get", "install -y python3.13 python3.13-venv", id="Debian"),
        pytest.param(NO_PYTHON, "dnf", "dnf install -y python3.12", id="Fedora"),
        pytest.param(NO_PYTHON, "nothing", "PYTHON=/path/to/python3.12", id="unknown system"),
        pytest.param(OLD, "apt-get", "install -y python3.13 python3.13-venv", id="too old"),
        pytest.param(WITHOUT_VENV, "apt-get", "apt-get install -y python3.12-venv", id="no venv"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    python: str | None, package_manager: str, line: str, machine: Path
) -> None:
    add_program(machine, package_manager, "exit 0")
    add_program(machine, "apt-cache", 'test "$2" = python3.13-venv')
    if python is not None:
        add_program(machine, "python3", python)
    run = set_up(machine)
    assert run.returncode == 1
    assert line in run.stderr
    assert not (machine / ".venv").exists()


def test_a_release_with_an_old_python_gets_one_from_a_package(machine: Path) -> None:
    add_program(machine, "apt-get", "exit 0")
    add_program(machine, "apt-cache", "exit 100")
    add_program(machine, "python3", OLD)
    assert "uv python install 3.12" in set_up(machine).stderr


def test_the_script_is_fit_for_every_posix_shell() -> None:
    run = subprocess.run(
        ["sh", "-n", ROOT / "deploy" / "setup.sh"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert os.access(ROOT / "deploy" / "setup.sh", os.X_OK)
