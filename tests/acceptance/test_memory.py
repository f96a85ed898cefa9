"""Memory does not grow with the length of a film, and 4K fits into what small machines have."""

import json
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.types import RgbImage

pytestmark = [pytest.mark.slow, pytest.mark.weights]

ROOT = Path(__file__).resolve().parents[2]
MOST_GROWTH = 1.10
MOST_BYTES_4K = 1_200_000_000


@pytest.fixture
def face(tmp_path: Path, astronaut: RgbImage) -> Path:
    path = tmp_path / "face.png"
    Image.fromarray(astronaut).save(path)
    return path


def write(path: Path, image: NDArray[np.uint8], frames: int) -> None:
    """The picture, wandering to the right, at a rate that asks for few looks of the content gate."""
    h, w = image.shape[:2]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=250, options={"preset": "ultrafast", "crf": "20"}
        )
        stream.width, stream.height, stream.pix_fmt = w, h, "yuv420p"
        for index in range(frames):
            moved = np.ascontiguousarray(np.roll(image, index % w, 1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="rgb24")))
        container.mux(stream.encode(None))


def rendered(face: Path, clip: Path, models_dir: Path) -> dict[str, int]:
    """What a fresh process tells of rendering the clip."""
    command = [sys.executable, "-m", "tests.acceptance.render_process"]
    command += [str(each) for each in (face, clip, clip.with_name("out.mp4"), models_dir)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=900)
    result: dict[str, int] = json.loads(told.stdout)
    return result


def test_20_000_frames_need_no_more_memory_than_1_000(
    face: Path, tmp_path: Path, models_dir: Path
) -> None:
    gray = np.add.outer(np.arange(64), 3 * np.arange(64)) % 192
    image = np.repeat(gray[..., None], 3, 2).astype(np.uint8)
    peaks = []
    for frames in (1_000, 20_000):
        clip = tmp_path / f"{frames}.mp4"
        write(clip, image, frames)
        told = rendered(face, clip, models_dir)
        assert told["frames"] == frames
        peaks.append(told["peak_bytes"])
    assert peaks[1] < MOST_GROWTH * peaks[0]


def test_4k_with_a_face_fits(
    face: Path, tmp_path: Path, astronaut: RgbImage, models_dir: Path
) -> None:
    clip = tmp_path / "4k.mp4"
    canvas = np.full((2160, 3840, 3), 90, np.uint8)
    canvas[800:1312, 1500:2012] = astronaut
    write(clip, canvas, 40)
    told = rendered(face, clip, models_dir)
    assert told["frames"] == 40
    assert told["swapped"] >= 35
    assert told["peak_bytes"] < MOST_BYTES_4K
