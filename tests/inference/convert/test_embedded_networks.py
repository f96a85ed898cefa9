"""The embedded networks that these converters make, against the runtimes of their makers.

`data/attention_mesh_astronaut.npz` holds what the package mediapipe 0.10.21 computes for the crop below: the raw
outputs of its InferenceCalculator on the CPU, with MediaPipe's own versions of the custom operators.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import ncnn
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.mesh_topology import LEFT_EYE_REFINED, LIPS_REFINED, RIGHT_EYE_REFINED
from app.inference.convert.ncnn import convert as convert_ncnn
from app.inference.convert.tflite import convert as convert_tflite
from app.inference.convert.tflite import refinement_indices
from app.inference.manifest import Manifest
from app.inference.spec import ModelId

Array = NDArray[np.float32]
RgbImage = NDArray[np.uint8]
RunOnnx = Callable[..., dict[str, Array]]
SourcesOf = Callable[[str], dict[str, bytes]]

ROOT = Path(__file__).resolve().parents[3]
OFFICIAL = Path(__file__).parent / "data" / "attention_mesh_astronaut.npz"
MESH = "face-mesh-attention"
UPSCALERS = (
    "realesr-animevideov3-x2",
    "realesr-animevideov3-x3",
    "realesr-animevideov3-x4",
    "realesrgan-x4plus",
)


def unit(picture: RgbImage) -> Array:
    """`(1, 3, H, W)`, 0 to 1."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


@pytest.fixture(scope="module")
def face(astronaut: RgbImage) -> Array:
    """The astronaut's face in a square of 192 pixels, cut out without resampling."""
    return unit(astronaut[21:213, 130:322])


@pytest.fixture(scope="module")
def mesh_file(models_dir: Path) -> bytes:
    return (models_dir / "face-mesh-attention.onnx").read_bytes()


@pytest.mark.weights
def test_the_mesh_computes_what_mediapipe_does(
    mesh_file: bytes, face: Array, run_onnx: RunOnnx
) -> None:
    got = run_onnx(mesh_file, input=face)
    with np.load(OFFICIAL) as official:
        assert list(got) == list(official)
        for name, expected in official.items():
            np.testing.assert_allclose(got[name][0], expected, atol=1e-3, err_msg=name)


@pytest.mark.weights
def test_left_is_the_viewers_left(mesh_file: bytes, face: Array, run_onnx: RunOnnx) -> None:
    got = {name: array[0] for name, array in run_onnx(mesh_file, input=face).items()}
    left, right = got["left_iris"][0], got["right_iris"][0]
    assert left[0] < right[0]
    for name, indices in (("left_eye", LEFT_EYE_REFINED), ("right_eye", RIGHT_EYE_REFINED)):
        base = got["mesh"][list(indices), :2]
        assert np.linalg.norm(got[name] - base, axis=1).max() < 5
    assert np.linalg.norm(left - got["left_eye"][:16].mean(0)) < 3
    assert np.linalg.norm(right - got["right_eye"][:16].mean(0)) < 3
    assert got["lips"][:, 1].min() > got["left_eye"][:, 1].max()


@pytest.mark.weights
def test_a_batch_of_faces_is_faces_one_by_one(
    mesh_file: bytes, face: Array, run_onnx: RunOnnx
) -> None:
    faces = [face, face[..., ::-1]]
    together = run_onnx(mesh_file, input=np.concatenate(faces))
    for index, one in enumerate(faces):
        for name, alone in run_onnx(mesh_file, input=np.ascontiguousarray(one)).items():
            np.testing.assert_allclose(together[name][index], alone[0], atol=1e-4, err_msg=name)


@pytest.mark.slow
@pytest.mark.weights
def test_the_lists_of_refined_points_are_those_of_the_file(sources_of: SourcesOf) -> None:
    (data,) = sources_of(MESH).values()
    lists = {name: tuple(indices.tolist()) for name, indices in refinement_indices(data).items()}
    assert lists == {
        "lips": LIPS_REFINED,
        "left_eye": LEFT_EYE_REFINED,
        "right_eye": RIGHT_EYE_REFINED,
    }


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize("model_id", UPSCALERS)
def test_an_upscaler_computes_what_ncnn_does(
    model_id: str, sources_of: SourcesOf, run_onnx: RunOnnx, astronaut: RgbImage, tmp_path: Path
) -> None:
    sources = sources_of(model_id)
    crop = unit(astronaut[90:142, 196:256])
    got = run_onnx(convert_ncnn(sources), input=crop)["output"]
    expected = run_ncnn(sources, crop[0], tmp_path)
    error = np.mean((got[0].astype(np.float64) - expected) ** 2)
    assert got.shape == (1, *expected.shape)
    assert -10 * np.log10(error) > 50


def run_ncnn(sources: dict[str, bytes], picture: Array, folder: Path) -> Array:
    for name, content in sources.items():
        (folder / f"net{Path(name).suffix}").write_bytes(content)
    net = ncnn.Net()
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    assert net.load_param(str(folder / "net.param")) == 0
    assert net.load_model(str(folder / "net.bin")) == 0
    extractor = net.create_extractor()
    # ncnn works in place, in memory of its own only.
    blob = ncnn.Mat(picture).clone()
    extractor.input("data", blob)
    code, result = extractor.extract("output")
    assert code == 0
    return np.array(result)


@pytest.mark.weights
@pytest.mark.parametrize("model_id", UPSCALERS)
def test_a_batch_of_pictures_is_pictures_one_by_one(
    model_id: str, models_dir: Path, run_onnx: RunOnnx, astronaut: RgbImage
) -> None:
    content = (models_dir / f"{model_id}.onnx").read_bytes()
    crops = [unit(astronaut[90:114, left : left + 20]) for left in (196, 216)]
    together = run_onnx(content, input=np.concatenate(crops))["output"]
    alone = np.concatenate([run_onnx(content, input=crop)["output"] for crop in crops])
    np.testing.assert_allclose(together, alone, atol=1e-4)


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize("model_id", [MESH, *UPSCALERS])
def test_the_manifest_pins_what_the_converter_writes(model_id: str, sources_of: SourcesOf) -> None:
    convert = convert_tflite if model_id == MESH else convert_ncnn
    spec = Manifest.load(ROOT / "models" / "manifest.toml").get(ModelId(model_id))
    sources = sources_of(model_id)
    for content in (convert(sources), convert(sources)):
        pinned = len(content), hashlib.sha256(content).hexdigest()
        assert pinned == (spec.bytes, spec.sha256)
