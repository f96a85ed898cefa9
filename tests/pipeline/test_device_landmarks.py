"""Faces that the networks' device cuts out are measured, and whole files swapped, as where the processor cuts."""

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import OutOfDeviceMemoryError
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import FloatArray, RgbImage
from app.faces.landmarks import CROP_PX, CropRegion, FaceLandmarker
from app.inference.crops import DeviceCrops
from app.inference.providers import CPU
from app.inference.spec import ModelZoo
from app.inference.stub import StubZoo
from app.media.limits import MediaLimits
from app.pipeline.device_landmarks import DeviceLandmarker
from app.pipeline.spec import OutputChoices, RenderSpec, Step
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.benchmark import FACE_HEIGHT, centers, frame_of
from app.runtime.executor import LocalExecutor
from tests.faces.zoo_manifest import MANIFEST

SIZE_WH = (640, 360)
FRAMES = 20


class CountedCrops(DeviceCrops):
    """Cuts on the processor's memory, and says how often."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.faces = 0

    def cut(self, picture: Picture, affines: FloatArray, side_px: int) -> RgbImage:
        self.faces += len(affines)
        return super().cut(picture, affines, side_px)


class FullCrops(CountedCrops):
    """A device that has no room."""

    def cut(self, picture: Picture, affines: FloatArray, side_px: int) -> RgbImage:
        self.faces += len(affines)
        raise OutOfDeviceMemoryError("full")


def stubs() -> StubZoo:
    return StubZoo(MANIFEST, centers(2), face_height=FACE_HEIGHT)


def smooth(name: str, value: int) -> Picture:
    rgb = cv2.GaussianBlur(frame_of(SIZE_WH, 2, value), (0, 0), 3)
    if name == "rgb24":
        return Picture.from_rgb(np.asarray(rgb, np.uint8))
    layout = PIXEL_FORMATS[name]
    planes = tuple(np.full(shape, 118, layout.dtype) for shape in layout.plane_shapes(SIZE_WH))
    picture = Picture(planes, layout)
    picture.write(picture.box, np.asarray(rgb, np.uint8))
    return picture


REGIONS = (
    CropRegion((160, 180), 150, 0.3),
    CropRegion((480, 180), 90, -1),
    CropRegion((0, 9), 60, 0),
)


def test_crops_come_in_the_order_in_which_they_were_asked_for() -> None:
    pictures = [smooth("yuv420p", 0), smooth("rgb24", 5), smooth("yuv444p", 9)]
    items = [(picture, region) for region in REGIONS for picture in pictures]
    usual, crops = FaceLandmarker(stubs()), CountedCrops()
    cut = DeviceLandmarker(usual, crops).cut(items)
    off = np.abs(cut.astype(float) - usual.cut(items))
    assert off.mean((1, 2, 3)).max() < 1
    assert crops.faces == 6, "whole chroma is left to the processor"


def test_a_device_without_room_leaves_the_work_to_the_processor() -> None:
    items = [(smooth("yuv420p", 0), region) for region in REGIONS]
    usual, crops = FaceLandmarker(stubs()), FullCrops()
    assert (DeviceLandmarker(usual, crops).cut(items) == usual.cut(items)).all()
    assert crops.faces == len(items)


def test_nothing_to_cut_is_nothing() -> None:
    assert DeviceLandmarker(FaceLandmarker(stubs()), CountedCrops()).cut([]).shape == (
        *(0, CROP_PX, CROP_PX, 3),
    )


# Whole files.


def clip_of(path: Path, frames: list[RgbImage]) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for index, image in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = index, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def rendered(
    zoo: ModelZoo, folder: Path, source: RgbImage, frames: list[RgbImage], crops: DeviceCrops | None
) -> NDArray[np.float64]:
    """The luma of a swap, `(frames, H, W)`."""
    cv2.imwrite(str(folder / "source.png"), source[..., ::-1])
    target = clip_of(folder / "target.mkv", frames)
    spec = RenderSpec(
        sources=(folder / "source.png",),
        target=target,
        output=folder / f"out{crops is None}.mkv",
        consent="fictional",
        steps=(Step(processor="face_swapper"),),
        encoding=OutputChoices(quality=100),
    )
    tools = Tools.over(zoo, discover(), MediaLimits(), crops=crops)
    result = LocalExecutor(tools).render(spec, on_progress=lambda _: None)
    assert result.frames_swapped == len(frames)
    with av.open(str(spec.output)) as container:
        planes = [f.to_ndarray(format="gray") for f in container.decode(video=0)]
    return np.stack(planes).astype(float)


def assert_alike(ours: NDArray[np.float64], usual: NDArray[np.float64]) -> None:
    """Hardly any pixel differs: an edge may, where a landmark moved by a tenth of a pixel."""
    off = np.abs(ours - usual)
    assert off.mean() < 0.2
    assert np.percentile(off, 99.9) <= 8
    assert (off > 16).mean() < 1e-3


def test_a_whole_video_is_swapped_alike_with_stubs(tmp_path: Path) -> None:
    source = frame_of((360, 360), 1, 0)
    frames = [frame_of(SIZE_WH, 2, index) for index in range(FRAMES)]
    crops = CountedCrops()
    ours = rendered(stubs(), tmp_path, source, frames, crops)
    usual = rendered(stubs(), tmp_path, source, frames, None)
    assert crops.faces >= 2 * FRAMES
    assert_alike(ours, usual)


@pytest.mark.weights
def test_a_whole_video_is_swapped_alike(
    zoo: ModelZoo, tmp_path: Path, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    frames = [np.roll(astronaut, 2 * index, 1) for index in range(FRAMES)]
    crops = CountedCrops()
    ours = rendered(zoo, tmp_path, grace_hopper, frames, crops)
    usual = rendered(zoo, tmp_path, grace_hopper, frames, None)
    assert crops.faces >= FRAMES
    assert_alike(ours, usual)
