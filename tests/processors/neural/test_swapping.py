"""A swap network gets what its contract says, and what it gives becomes pixels again."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.core.errors import ModelError
from app.inference.emap import last_matrix
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session
from app.processors.neural.swapping import (
    SwapNetwork,
    inswapper_latents,
    unit_latents,
)
from tests.faces.zoo_manifest import MANIFEST


class Echo:
    """Gives its target back, and notes its source."""

    def __init__(self) -> None:
        self.fed: list[Feeds] = []

    def spec(self, model_id: ModelId) -> ModelSpec:
        return MANIFEST.get(model_id)

    def session(self, model_id: ModelId) -> Session:
        return self  # type: ignore[return-value]

    def run(self, feeds: Feeds) -> Outputs:
        self.fed.append(feeds)
        return {"output": feeds["target"]}


@pytest.mark.parametrize(
    ("model_id", "size", "low", "high"),
    [
        pytest.param("inswapper-128", 128, 0.0, 1.0, id="0 to 1"),
        pytest.param("hyperswap-1a-256", 256, -1.0, 1.0, id="-1 to 1"),
    ],
)
def test_pixels_pass_through_a_network_that_does_nothing(
    model_id: str, size: int, low: float, high: float
) -> None:
    zoo = Echo()
    crops = np.random.default_rng(0).integers(0, 256, (35, size, size, 3), dtype=np.uint8)
    crops[0, 0, :2] = [[0, 0, 0], [255, 255, 255]]
    network = SwapNetwork(zoo, ModelId(model_id))
    swapped, is_sound = network.swap(crops, np.zeros((35, 512), np.float32))
    assert np.array_equal(swapped, crops)
    assert is_sound.all()
    assert [len(feeds["source"]) for feeds in zoo.fed] == [32, 3]
    assert float(zoo.fed[0]["target"].min()) == pytest.approx(low)
    assert float(zoo.fed[0]["target"].max()) == pytest.approx(high)


def test_crops_of_another_size_are_refused() -> None:
    network = SwapNetwork(Echo(), ModelId("inswapper-128"))
    with pytest.raises(ValueError, match="crops"):
        network.swap(np.zeros((1, 256, 256, 3), np.uint8), np.zeros((1, 512), np.float32))


def test_latents_are_the_vectors_times_the_matrix_and_of_unit_length() -> None:
    random = np.random.default_rng(1)
    vectors = random.standard_normal((3, 512)).astype(np.float32) * 7
    emap = random.standard_normal((512, 512)).astype(np.float32)
    latents = inswapper_latents(vectors, emap)
    wanted = vectors[1] @ emap
    assert np.allclose(latents[1], wanted / np.linalg.norm(wanted), atol=1e-4)
    assert np.allclose(np.linalg.norm(latents, axis=1), 1)
    assert np.allclose(inswapper_latents(vectors * 5, emap), latents, atol=1e-4)
    assert np.allclose(np.linalg.norm(unit_latents(vectors), axis=1), 1)
    with pytest.raises(ValueError, match="emap"):
        inswapper_latents(vectors, emap[:5])


def model(*constants: onnx.TensorProto) -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [x], [y], constants)
    return bytes(helper.make_model(graph).SerializeToString())


def test_the_matrix_is_the_last_constant() -> None:
    first = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    last = numpy_helper.from_array(np.eye(3, dtype=np.float32) * 4, "m")
    assert np.array_equal(last_matrix("net", model(first, last)), np.eye(3) * 4)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(model(), id="no constants"),
        pytest.param(
            model(numpy_helper.from_array(np.ones((2, 3), np.float32), "w")), id="no square"
        ),
        pytest.param(b"\xff", id="junk"),
    ],
)
def test_a_file_without_the_matrix_is_told(content: bytes) -> None:
    with pytest.raises(ModelError, match="net: "):
        last_matrix("net", content)
