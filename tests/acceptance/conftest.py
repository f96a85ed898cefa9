"""The shared media; every test here is skipped where they are not."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app import bootstrap
from app.config import Settings
from app.inference.session import OrtModelZoo
from app.media.limits import DEFAULT_LIMITS
from app.pipeline.progress import RenderResult
from app.pipeline.spec import FaceMap, OutputChoices, PersonChoice, RenderSpec, SourceFace
from app.pipeline.tools import Tools
from app.processors import discover
from app.workbench import Workbench
from tests.acceptance.judging import Judges, judges_of

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
def tools(zoo: OrtModelZoo) -> Tools:
    """The same without a door before it."""
    return Tools.over(zoo, discover(), DEFAULT_LIMITS)


@pytest.fixture(scope="session")
def judges(assets: Path, zoo: OrtModelZoo, workbench: Workbench) -> Judges:
    """Two networks that say who a face is."""
    return judges_of(assets / "stills", SHARED / "models", zoo, workbench)


Swap = Callable[[Path, Path, Mapping[int, str]], RenderResult]


@pytest.fixture(scope="session")
def swap(workbench: Workbench, assets: Path) -> Swap:
    """Put sources on people by number, leaving everybody else alone."""

    def run(target: Path, output: Path, given: Mapping[int, str]) -> RenderResult:
        choices = tuple(
            PersonChoice[Path](
                person=person, action=SourceFace[Path](photos=(assets / "stills" / name,))
            )
            for person, name in given.items()
        )
        spec = RenderSpec(
            target=target,
            output=output,
            consent="permission",
            face_map=FaceMap[Path](choices=choices, others="leave"),
            encoding=OutputChoices(codec="ffv1" if output.suffix == ".mkv" else "auto"),
        )
        return workbench.render(spec)

    return run


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stub models with the contracts of the public zoo; the detector finds four faces."""
    maker = SHARED / "tools" / "make_stub_models.py"
    if not maker.is_file():
        pytest.skip("the maker of stub models is not here")
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, maker, folder, "4"], check=True, capture_output=True)
    return folder


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the manifest."""

    path: Path
    group: str
    expect: dict[str, Any]


@pytest.fixture(scope="session")
def cases(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """All cases by name; `FACEDOCK_CASES_DIR` keeps them for the next run."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg, which makes the cases, is not installed")
    kept = os.environ.get("FACEDOCK_CASES_DIR")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("cases")
    if not (folder / "manifest.json").is_file():
        command = [sys.executable, str(assets / "make_cases.py"), str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = json.loads((folder / "manifest.json").read_text())
    return {
        line["file"]: Case(path=folder / line["file"], group=line["group"], expect=line["expect"])
        for line in lines
        if line["made"]
    }
