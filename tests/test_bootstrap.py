"""The wiring of processes."""

from pathlib import Path

from app import bootstrap
from app.config import Settings
from app.inference.manifest import Manifest
from app.inference.stub import StubZoo
from app.runtime.benchmark import FACE_HEIGHT, centers
from app.runtime.occupancy import WorkClock


def test_a_face_that_a_preview_has_made_is_there_for_the_job(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    zoo = StubZoo(Manifest.load(settings.manifest), centers(1), face_height=FACE_HEIGHT)
    zoos = bootstrap.EngineZoos(zoo, zoo, "cpu", WorkClock())
    jobs, people = bootstrap.engine_tools(zoos, settings)
    assert jobs.recent_faces is people.recent_faces
