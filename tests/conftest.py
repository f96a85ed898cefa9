"""Builders of frames and faces, and the three pictures with faces that come inside packages."""

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import insightface
import matplotlib.cbook
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from app.core.picture import Picture
from app.core.types import Face, Frame
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo

RgbImage = NDArray[np.uint8]
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """Where the set-up step keeps the embedded models."""
    return Path(os.environ.get("FACEDOCK_MODELS_DIR", ROOT / "data" / "models"))


@pytest.fixture(scope="session")
def zoo(models_dir: Path) -> Iterator[OrtModelZoo]:
    """The installed embedded models on the CPU; only for tests marked `weights`."""
    manifest = Manifest.load(ROOT / "models" / "manifest.toml")
    with OrtModelZoo(manifest, models_dir, device="cpu", threads=1) as zoo:
        yield zoo


@pytest.fixture(scope="session")
def astronaut() -> RgbImage:
    """512 x 512, one frontal face at about (181, 56) to (271, 178); NASA, public domain."""
    return np.asarray(skimage.data.astronaut())


@pytest.fixture(scope="session")
def grace_hopper() -> RgbImage:
    """512 x 600, one frontal face with glasses; public domain."""
    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file, Image.open(file) as image:
        return np.asarray(image.convert("RGB"))


@pytest.fixture(scope="session")
def six_people_path() -> Path:
    """1280 x 886, six people round a table."""
    return Path(insightface.__file__).parent / "data" / "images" / "t1.jpg"


@pytest.fixture(scope="session")
def six_people(six_people_path: Path) -> RgbImage:
    """The pixels of `six_people_path`."""
    with Image.open(six_people_path) as image:
        return np.asarray(image.convert("RGB"))


MakeFace = Callable[..., Face]
MakeFrame = Callable[..., Frame]


@pytest.fixture
def make_face() -> MakeFace:
    """Build a face around `(cx, cy)` with level eyes and flat landmarks."""

    def build(*, cx: float = 64, cy: float = 64, side: float = 40, **fields: object) -> Face:
        half = side / 2
        kps = np.array(
            [[-0.2, -0.15], [0.2, -0.15], [0, 0.05], [-0.15, 0.25], [0.15, 0.25]], np.float32
        ) * side + np.array([cx, cy], np.float32)
        values: dict[str, object] = {
            "bbox_xyxy": np.array([cx - half, cy - half, cx + half, cy + half], np.float32),
            "kps": kps,
            "det_score": 0.9,
        }
        return Face(**{**values, **fields})  # type: ignore[arg-type]

    return build


@pytest.fixture
def make_frame() -> MakeFrame:
    """Build a frame over a plain or given RGB image."""

    def build(
        index: int = 0,
        image: RgbImage | None = None,
        faces: tuple[Face, ...] = (),
        value: int = 100,
    ) -> Frame:
        pixels = np.full((128, 128, 3), value, np.uint8) if image is None else image
        return Frame(
            index=index,
            pts=index,
            time_base=Fraction(1, 25),
            picture=Picture.from_rgb(pixels),
            faces=faces,
        )

    return build
