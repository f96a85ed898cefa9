"""A wrong network does not pass its proof."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.core.errors import ConversionError
from app.inference.convert import proof_face
from app.inference.convert.build import build
from app.inference.convert.proof import prove
from app.inference.manifest import Manifest
from app.inference.spec import ModelId, ModelSpec
from tests.inference.conftest import MakeSpec

MANIFEST = Path(__file__).resolve().parents[3] / "models" / "manifest.toml"
SourcesOf = Callable[[str], dict[str, bytes]]


def network(*nodes: onnx.NodeProto, constants: dict[str, object] | None = None) -> bytes:
    """`x` to `y`, `(N, 3, S, S)`."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3, None, None])
        for name in ("x", "y")
    )
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "net", [x], [y], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))


def enlarging(mode: str) -> bytes:
    return network(
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode),
        constants={"scales": np.float32([1, 1, 2, 2])},
    )


def as_upscaler(spec: ModelSpec, scale: int = 2) -> ModelSpec:
    contract = spec.input.model_copy(update={"std": (255.0, 255.0, 255.0)})
    return spec.model_copy(
        update={
            "task": "frame_upscale",
            "adapter": "upscaler",
            "scale": scale,
            "crop": None,
            "input": contract,
        }
    )


def test_a_network_without_a_proof_of_its_own_is_proven_by_its_batch(
    make_spec: MakeSpec, doubling_onnx: bytes
) -> None:
    spec = make_spec(doubling_onnx)
    assert build(spec, {"tiny.src": doubling_onnx}).content == doubling_onnx


def test_rows_that_depend_on_each_other_are_refused(make_spec: MakeSpec) -> None:
    content = network(
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[0]),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
    )
    with pytest.raises(ConversionError, match="in a batch differs"):
        prove(make_spec(content), content, {})


def test_a_fixed_batch_is_refused(make_spec: MakeSpec) -> None:
    content = network(
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
        constants={"shape": np.array([1, 3, 4, 4])},
    )
    with pytest.raises(ConversionError, match="the proof could not run"):
        prove(make_spec(content), content, {})


def test_another_input_name_is_refused(make_spec: MakeSpec, doubling_onnx: bytes) -> None:
    spec = make_spec(doubling_onnx)
    renamed = spec.model_copy(update={"input": spec.input.model_copy(update={"name": "z"})})
    with pytest.raises(ConversionError, match="the manifest says z"):
        prove(renamed, doubling_onnx, {})


def test_junk_is_refused(make_spec: MakeSpec) -> None:
    with pytest.raises(ConversionError, match="the proof could not run"):
        prove(make_spec(b"junk"), b"junk", {})


def test_an_upscaler_must_enlarge_what_it_sees(make_spec: MakeSpec) -> None:
    content = enlarging("linear")
    prove(as_upscaler(make_spec(content)), content, {})


@pytest.mark.parametrize(
    ("content", "scale", "complaint"),
    [
        pytest.param(enlarging("nearest"), 3, "gives .* wanted", id="another factor"),
        pytest.param(
            network(
                helper.make_node("Resize", ["x", "", "scales"], ["large"], mode="nearest"),
                helper.make_node("Sub", ["one", "large"], ["y"]),
                constants={"scales": np.float32([1, 1, 2, 2]), "one": np.float32([1])},
            ),
            2,
            "dB from the input",
            id="the negative",
        ),
    ],
)
def test_an_upscaler_that_makes_something_else_is_refused(
    make_spec: MakeSpec, content: bytes, scale: int, complaint: str
) -> None:
    with pytest.raises(ConversionError, match=complaint):
        prove(as_upscaler(make_spec(content), scale), content, {})


def test_the_drawn_face_is_always_the_same_and_has_two_halves() -> None:
    face = proof_face.draw()
    assert (face.shape, face.dtype) == ((256, 256, 3), np.uint8)
    assert np.array_equal(face, proof_face.draw())
    assert not np.array_equal(face, face[:, ::-1])


def shaken(content: bytes, share: float) -> bytes:
    """The network with every weight off by about this share."""
    model = onnx.load_from_string(content)
    rng = np.random.default_rng(0)
    for item in model.graph.initializer:
        values = numpy_helper.to_array(item)
        if values.dtype in (np.float32, np.float16) and values.ndim == 4:
            noise = 1 + share * rng.standard_normal(values.shape)
            item.CopyFrom(numpy_helper.from_array((values * noise).astype(values.dtype), item.name))
    return bytes(model.SerializeToString())


def cell_shifted(content: bytes) -> bytes:
    """The detector with its boxes half a pixel larger."""
    model = onnx.load_from_string(content)
    graph = model.graph
    for node in list(graph.node):
        if node.output[0].startswith("bbox_"):
            name = node.output[0]
            node.output[0] = f"{name}_before"
            graph.initializer.append(
                numpy_helper.from_array(np.float32([0, 0, 0.02, 0.02]), f"{name}_shift")
            )
            graph.node.append(helper.make_node("Add", [f"{name}_before", f"{name}_shift"], [name]))
    return bytes(model.SerializeToString())


@pytest.mark.weights
@pytest.mark.parametrize(
    ("model_id", "spoil", "complaint"),
    [
        pytest.param("yunet", lambda data: shaken(data, 0.2), "OpenCV's detector", id="yunet"),
        pytest.param("yunet", cell_shifted, "differs from OpenCV's", id="yunet, other boxes"),
        pytest.param("sface", lambda data: shaken(data, 0.05), "cosine", id="sface"),
        pytest.param(
            "face-mesh-attention", lambda data: shaken(data, 0.02), "face's width", id="mesh"
        ),
    ],
)
def test_a_spoiled_embedded_model_is_refused(
    models_dir: Path,
    sources_of: SourcesOf,
    model_id: str,
    spoil: Callable[[bytes], bytes],
    complaint: str,
) -> None:
    spec = Manifest.load(MANIFEST).get(ModelId(model_id))
    content = (models_dir / spec.file).read_bytes()
    sources = sources_of(model_id) if model_id != "face-mesh-attention" else {}
    prove(spec, content, sources)
    with pytest.raises(ConversionError, match=complaint):
        prove(spec, spoil(content), sources)


@pytest.mark.weights
def test_the_drawn_face_is_found_by_the_detector(models_dir: Path) -> None:
    face = proof_face.draw()
    detector = cv2.FaceDetectorYN.create(str(models_dir / "yunet.onnx"), "", face.shape[1::-1])
    _, rows = detector.detect(np.ascontiguousarray(face[..., ::-1]))
    assert len(rows) == 1
    assert rows[0, 14] > 0.9
