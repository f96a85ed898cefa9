"""The installed embedded models keep the contracts that everybody else builds on."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.inference.feeds import picture_feed
from app.inference.install import Installer
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from app.inference.spec import ModelId

MANIFEST = Manifest.load(Path(__file__).resolve().parents[2] / "models" / "manifest.toml")

pytestmark = pytest.mark.weights

SHAPES: dict[str, tuple[int, dict[str, tuple[int, ...]]]] = {
    "yunet": (
        64,
        {
            f"{name}_{stride}": (2, (64 // stride) ** 2, width)
            for name, width in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10))
            for stride in (8, 16, 32)
        },
    ),
    "sface": (112, {"fc1": (2, 128)}),
    "face-mesh-attention": (
        192,
        {
            "mesh": (2, 468, 3),
            "lips": (2, 80, 2),
            "left_eye": (2, 71, 2),
            "right_eye": (2, 71, 2),
            "left_iris": (2, 5, 2),
            "right_iris": (2, 5, 2),
            "presence": (2, 1),
        },
    ),
    "open-nsfw": (224, {"outputs": (2, 2)}),
    "realesr-animevideov3-x2": (16, {"output": (2, 3, 32, 32)}),
    "realesr-animevideov3-x3": (16, {"output": (2, 3, 48, 48)}),
    "realesr-animevideov3-x4": (16, {"output": (2, 3, 64, 64)}),
    "realesrgan-x4plus": (8, {"output": (2, 3, 32, 32)}),
}


@pytest.fixture(scope="module")
def zoo(models_dir: Path) -> Iterator[OrtModelZoo]:
    with OrtModelZoo(MANIFEST, models_dir, device="cpu", threads=1) as zoo:
        yield zoo


def test_every_embedded_model_is_the_pinned_one(models_dir: Path) -> None:
    ids = MANIFEST.resolve(["embedded"])
    assert Installer(MANIFEST, models_dir).verify(ids) == ids
    assert set(ids) == set(SHAPES)


@pytest.mark.parametrize("model_id", SHAPES)
def test_a_batch_of_two_gives_the_promised_shapes(zoo: OrtModelZoo, model_id: str) -> None:
    side, expected = SHAPES[model_id]
    spec = zoo.spec(ModelId(model_id))
    pictures = np.random.default_rng(1).integers(0, 255, (2, side, side, 3), np.uint8)
    outputs = zoo.session(spec.id).run({spec.input.name: picture_feed(pictures, spec.input)})
    assert {name: values.shape for name, values in outputs.items()} == expected
    assert all(values.dtype == np.float32 for values in outputs.values())


def test_a_harmless_picture_passes_the_content_classifier(
    zoo: OrtModelZoo, astronaut: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
) -> None:
    spec = zoo.spec(ModelId("open-nsfw"))
    feed = picture_feed(astronaut[None, 16:240, 100:324], spec.input)
    ((safe, intimate),) = zoo.session(spec.id).run({spec.input.name: feed})["outputs"]
    assert safe + intimate == pytest.approx(1, abs=1e-5)
    assert intimate < 0.1
