"""The readers of zoo networks on small real ones of the same contracts."""

from pathlib import Path

import numpy as np
import pytest

from app.core.types import Face
from app.faces.zoo_detector import ZooDetector, decode_scrfd, decode_yoloface
from app.faces.zoo_recognizer import ArcFaceRecognizer
from app.inference.install import Installer
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from app.inference.spec import ModelId, ModelSpec
from app.media.limits import MediaLimits
from app.media.still import read_still
from app.processors.neural.swapping import SwapNetwork, inswapper_latents
from tests.acceptance.conftest import SHARED

pytestmark = pytest.mark.skipif(
    not (SHARED / "models").is_dir(), reason="the shared models are not here"
)
LIMITS = MediaLimits(
    max_still_pixels=10**8, max_side_px=8192, max_duration_s=60, max_animation_frames=100
)


def spec(name: str, port: str, size: int, *, std: float, mean: float = 127.5) -> ModelSpec:
    return ModelSpec.model_validate(
        {
            "id": name,
            "title": name,
            "task": "face_detect",
            "file": f"{name}.onnx",
            "batch": "rewrite",
            "sources": [{"kind": "brought", "name": f"{name}.onnx"}],
            "license": {"spdx": "LicenseRef-test", "commercial": "no", "origin": "this test"},
            "input": {
                "name": port,
                "layout": "nchw",
                "color": "rgb",
                "mean": [mean] * 3,
                "std": [std] * 3,
            },
            "crop": {"template": "any", "size": size},
        }
    )


SPECS = (
    spec("scrfd_500m_kps_640", "input.1", 640, std=128),
    spec("scrfd_500m_kps_dynamic", "input.1", 640, std=128),
    spec("scrfd_2.5g_kps_640", "input.1", 640, std=128),
    spec("mobilefacenet_128d_112", "input0", 112, std=128),
)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> OrtModelZoo:
    manifest, folder = Manifest(models=SPECS), tmp_path_factory.mktemp("models")
    ids = [each.id for each in SPECS]
    assert len(Installer(manifest, folder).adopt(SHARED / "models", ids, unpinned=True)) == 4
    return OrtModelZoo(manifest, folder, device="cpu", threads=1)


@pytest.mark.parametrize("name", [each.id for each in SPECS[:3]])
def test_scrfd_finds_the_faces_of_a_batch_of_stills(
    zoo: OrtModelZoo, name: str, ground_truth: dict[str, dict[str, object]]
) -> None:
    stills = ["frontal_astronaut.png", "group_six_t1.jpg", "beard_man.jpg", "no_face_dog.jpg"]
    pictures = [
        read_still(SHARED / "assets" / "stills" / still, LIMITS).picture for still in stills
    ]
    found = ZooDetector(zoo, ModelId(name), decode_scrfd).detect(pictures)
    assert [len(faces) for faces in found] == [
        ground_truth[still]["faces_count"] for still in stills
    ]
    for still, faces in zip(stills, found, strict=True):
        truth = sorted(
            ground_truth[still]["faces"], key=lambda face: face["box"][0] + face["box"][2]
        )  # type: ignore[index,arg-type,return-value,call-overload]
        for face, wanted in zip(faces, truth, strict=True):
            size = max(np.ptp(np.reshape(wanted["box"], (2, 2)), axis=0))
            assert np.abs(face.kps - wanted["points"]).max() < 0.12 * size, still


def test_arcface_tells_people_apart(zoo: OrtModelZoo) -> None:
    """Two looks at one face, and five other people at one table."""
    detector = ZooDetector(zoo, ModelId("scrfd_500m_kps_640"), decode_scrfd)
    recognizer = ArcFaceRecognizer(zoo, ModelId("mobilefacenet_128d_112"))
    picture = read_still(SHARED / "assets" / "stills" / "group_six_t1.jpg", LIMITS).picture
    (faces,) = detector.detect([picture])
    nudged = [Face(bbox_xyxy=f.bbox_xyxy, kps=f.kps + 1.5, det_score=1.0) for f in faces]
    unit = recognizer.embed([(picture, face) for face in (*faces, *nudged)])
    likeness = unit[:6] @ unit[6:].T
    assert np.diag(likeness).min() > 0.7
    assert (likeness - np.eye(6) * 2).max() < 0.4


def test_the_stub_zoo_runs_from_detection_to_swap(tmp_path: Path, stubs: Path) -> None:
    manifest = Manifest.load(Path(__file__).resolve().parents[2] / "models" / "manifest.toml")
    ids = manifest.resolve(["optional"])
    installer = Installer(manifest, tmp_path)
    adopted = installer.adopt(stubs, ids, unpinned=True)
    assert set(ids) - set(adopted) == {"scrfd-2.5g", "inswapper-128-fp16"}, "those have no stub"
    zoo = OrtModelZoo(manifest, tmp_path, device="cpu", threads=1)
    picture = read_still(SHARED / "assets" / "stills" / "frontal_astronaut.png", LIMITS).picture
    found = ZooDetector(zoo, ModelId("yoloface-8n"), decode_yoloface).detect([picture] * 3)
    assert [len(faces) for faces in found] == [4, 4, 4]
    items = [(picture, face) for faces in found for face in faces]
    vectors = ArcFaceRecognizer(zoo, ModelId("arcface-w600k-r50")).vectors(items)
    emap = zoo.last_matrix(ModelId("inswapper-128"))
    assert np.array_equal(emap, np.eye(512))
    crops = np.full((12, 128, 128, 3), 100, np.uint8)
    swapped, _ = SwapNetwork(zoo, ModelId("inswapper-128")).swap(
        crops, inswapper_latents(vectors, emap)
    )
    assert swapped.shape == crops.shape
    assert not np.array_equal(swapped, crops)


def test_the_shared_matrix_makes_latents_of_any_vector() -> None:
    emap = np.load(SHARED / "models" / "inswapper_emap_512x512.npy")
    vectors = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)
    latents = inswapper_latents(vectors, emap)
    assert np.isfinite(latents).all()
    assert np.linalg.matrix_rank(emap) == 512
