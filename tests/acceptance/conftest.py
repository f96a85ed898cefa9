"""The shared media; every test here is skipped where they are not."""

import json
from pathlib import Path

import pytest

from app import bootstrap
from app.config import Settings
from app.workbench import Workbench

SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(scope="session")
def assets() -> Path:
    """Folder of stills and clips with faces."""
    folder = SHARED / "assets"
    if not folder.is_dir():
        pytest.skip("the shared media are not here")
    return folder


@pytest.fixture(scope="session")
def ground_truth(assets: Path) -> dict[str, dict[str, object]]:
    """What the stills show, by file name."""
    truth: dict[str, dict[str, object]] = json.loads((assets / "ground_truth.json").read_text())[
        "stills"
    ]
    return truth


@pytest.fixture(scope="session")
def workbench(models_dir: Path) -> Workbench:
    """The real thing, over the installed models."""
    return bootstrap.workbench(Settings(models_dir=models_dir))
