"""The shared media; every test here is skipped where they are not."""

import json
import subprocess
import sys
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


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stub models with the contracts of the public zoo; the detector finds four faces."""
    maker = SHARED / "tools" / "make_stub_models.py"
    if not maker.is_file():
        pytest.skip("the maker of stub models is not here")
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, maker, folder, "4"], check=True, capture_output=True)
    return folder
