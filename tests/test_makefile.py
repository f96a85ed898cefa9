"""What the Makefile calls exists."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("module", sorted(set(re.findall(r"-m ([a-z_.]+)", MAKEFILE))))
def test_every_module_that_a_target_runs_can_be_run(module: str) -> None:
    name = f"{module}.__main__" if (ROOT / module).is_dir() else module
    assert importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("script", sorted(set(re.findall(r"deploy/[a-z]+\.sh", MAKEFILE))))
def test_every_script_that_a_target_runs_is_there(script: str) -> None:
    assert (ROOT / script).exists()


def test_every_target_says_what_it_does() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert phony
    said = set(re.findall(r"^([a-z]+):.*## ", MAKEFILE, flags=re.MULTILINE))
    assert set(phony[1].split()) == said
