"""Whole renders with networks of the zoo: stubs whose result is known, and small real ones."""

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import onnx
import pytest

from app import bootstrap
from app.config import ROOT, Settings
from app.core.errors import MissingModelError
from app.core.types import Face
from app.faces.detector import STILL_SIDES_PX
from app.faces.turning import TurningDetector
from app.inference.crops import DeviceCrops
from app.inference.install import Installer
from app.inference.manifest import Manifest
from app.inference.providers import CPU
from app.inference.session import OrtModelZoo
from app.inference.spec import ModelId
from app.labelling.verify import read_label
from app.media.limits import MediaLimits
from app.pipeline.analysis import AnalysisChoice
from app.pipeline.spec import RenderSpec, Step
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.executor import LocalExecutor
from tests.acceptance.conftest import SHARED

pytestmark = pytest.mark.weights
MANIFEST = ROOT / "models" / "manifest.toml"
PLAIN = (60, 90, 120)


@pytest.fixture(scope="module")
def zoo_dir(stubs: Path, models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded models, and the stubs beside them as `models adopt` installs them."""
    folder = tmp_path_factory.mktemp("zoo")
    shutil.copytree(models_dir, folder, dirs_exist_ok=True)
    manifest = Manifest.load(MANIFEST)
    Installer(manifest, folder).adopt(stubs, manifest.resolve(["optional"]), unpinned=True)
    return folder


def wall(tmp_path: Path, pixel_format: str) -> Path:
    """A video of a plain wall, in which only a stub finds faces: four in a row."""
    path = tmp_path / "wall.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 640, 360, pixel_format
        for index in range(20):
            frame = av.VideoFrame.from_ndarray(np.full((360, 640, 3), PLAIN, np.uint8), "rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 25)
            container.mux(stream.encode(frame.reformat(format=pixel_format)))
        container.mux(stream.encode())
    return path


def spec(photo: Path, target: Path, output: Path, model: str) -> RenderSpec:
    step = Step(processor="face_swapper", options={"model": model, "occlusion": "off"})
    return RenderSpec(
        sources=(photo,), target=target, output=output, consent="public-domain", steps=(step,)
    )


def frames_of(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


@pytest.mark.parametrize(
    ("pixel_format", "crops"),
    [
        pytest.param("yuv444p", None, id="cut by the processor"),
        pytest.param("yuv420p", DeviceCrops(CPU), id="cut by the device"),
    ],
)
@pytest.mark.parametrize("model", ["inswapper-128", "hyperswap-1a-256"])
def test_four_faces_of_every_frame_are_swapped_by_the_chosen_network(
    zoo_dir: Path,
    assets: Path,
    tmp_path: Path,
    model: str,
    pixel_format: str,
    crops: DeviceCrops | None,
) -> None:
    manifest = Manifest.load(MANIFEST)
    chosen = AnalysisChoice(
        detector=ModelId("yoloface-8n"),
        landmarker=ModelId("2dfan4"),
        recognizer=ModelId("arcface-w600k-r50"),
    )
    with OrtModelZoo(manifest, zoo_dir, device="cpu", threads=1) as zoo:
        tools = Tools.over(zoo, discover(), MediaLimits(), analysis=chosen, crops=crops)
        # The stub finds four faces in every picture, and so in the photo, too.
        embedded = TurningDetector(zoo, sides_px=STILL_SIDES_PX)
        executor = LocalExecutor(replace(tools, still_detector=embedded))
        photo = assets / "stills" / "frontal_astronaut.png"
        asked = spec(photo, wall(tmp_path, pixel_format), tmp_path / "out.mkv", model)
        result = executor.render(asked, on_progress=lambda _: None)
    assert (result.frames, result.frames_swapped, result.faces_swapped) == (20, 20, 80)
    assert read_label(asked.output)
    _four_faces_are_painted(frames_of(asked.output))


def _four_faces_are_painted(frames: list[np.ndarray]) -> None:
    """The stub mixes half of a color in: at the places that its maker names, and nowhere else."""
    assert len(frames) == 20
    for frame in frames:
        change = np.abs(frame.astype(int) - PLAIN).max(2)
        assert change[180, [80, 240, 400, 560]].min() > 20
        assert change[:, [0, 160, 320, 480, 639]].max() <= 6
        assert change[:100].max() <= 6 and change[260:].max() <= 6


def test_a_network_that_is_not_installed_is_told_before_anything_is_written(
    models_dir: Path, assets: Path, tmp_path: Path
) -> None:
    photo = assets / "stills" / "frontal_astronaut.png"
    output = tmp_path / "out.png"
    workbench = bootstrap.workbench(Settings(models_dir=models_dir))
    with pytest.raises(MissingModelError, match="models pull inswapper-128"):
        workbench.render(spec(photo, photo, output, "inswapper-128"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def scrfd_dir(zoo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small real detector under the name and with the input that the public zoo gives it."""
    real = SHARED / "models" / "scrfd_2.5g_kps_640.onnx"
    if not real.is_file():
        pytest.skip("the shared models are not here")
    network = onnx.load(real)
    for node in network.graph.node:
        names = ["input" if name == "input.1" else name for name in node.input]
        node.ClearField("input")
        node.input.extend(names)
    network.graph.input[0].name = "input"
    brought = tmp_path_factory.mktemp("brought")
    onnx.save(network, brought / "scrfd_2.5g.onnx")
    manifest = Manifest.load(MANIFEST)
    Installer(manifest, zoo_dir).adopt(brought, manifest.resolve(["scrfd-2.5g"]), unpinned=True)
    return zoo_dir


@pytest.mark.parametrize(
    ("still", "count"),
    [
        ("frontal_astronaut.png", 1),
        ("group_six_t1.jpg", 6),
        ("rotated_90.jpg", 1),
        ("no_face_dog.jpg", 0),
    ],
)
def test_a_real_detector_of_the_zoo_serves_the_whole_path(
    scrfd_dir: Path,
    assets: Path,
    ground_truth: dict[str, dict[str, object]],
    still: str,
    count: int,
) -> None:
    workbench = bootstrap.workbench(Settings(models_dir=scrfd_dir, detector="scrfd-2.5g"))
    found: tuple[Face, ...] = workbench.find_faces(assets / "stills" / still).faces
    assert len(found) == count == ground_truth[still]["faces_count"]
