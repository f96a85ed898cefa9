"""What a process keeps between two jobs does not hide what was installed meanwhile."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session, Task
from app.inference.stub import StubZoo
from app.media.limits import MediaLimits
from app.pipeline.spec import RenderSpec, Step
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.benchmark import frame_of
from app.runtime.executor import LocalExecutor
from tests.faces.zoo_manifest import MANIFEST

OCCLUDER = next(spec for spec in MANIFEST.models if spec.task == "face_occlude")


class ShopZoo(StubZoo):
    """Stubs, and an occlusion network that may be installed while jobs run; it sees nothing in front of a face."""

    def __init__(self) -> None:
        super().__init__(MANIFEST, ((0.5, 0.5),))
        self.has_occluder = False
        self.asked = 0

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        is_there = self.has_occluder and task == OCCLUDER.task
        return (OCCLUDER,) if is_there else super().installed(task)

    def session(self, model_id: ModelId) -> Session:
        return self if model_id == OCCLUDER.id else super().session(model_id)

    def run(self, feeds: Feeds) -> Outputs:
        (pictures,) = feeds.values()
        self.asked += len(pictures)
        return {"output": np.ones((*pictures.shape[:3], 1), np.float32)}


@pytest.fixture
def spec(tmp_path: Path) -> RenderSpec:
    for name, size_wh in (("source", (320, 320)), ("target", (640, 360))):
        Image.fromarray(frame_of(size_wh, 1, 0)).save(tmp_path / f"{name}.png")
    return RenderSpec(
        sources=(tmp_path / "source.png",),
        target=tmp_path / "target.png",
        output=tmp_path / "out.png",
        consent="fictional",
        steps=(Step(processor="face_swapper"),),
    )


def test_a_job_asks_the_occlusion_network_that_was_installed_since_the_last_one(
    spec: RenderSpec,
) -> None:
    zoo = ShopZoo()
    tools = Tools.over(zoo, discover(), MediaLimits())
    LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert zoo.asked == 0
    zoo.has_occluder = True
    LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert zoo.asked > 0
