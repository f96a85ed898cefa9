"""A frame goes to the device once; what the device does not understand is left to the processor."""

import gc

import numpy as np
import pytest

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture
from app.inference.crops import DeviceCrops
from app.inference.providers import CPU, PROVIDERS, Provider

SIDE_PX = 16
WHERE = np.array([[[1, 0, -4], [0, 1, -4]], [[0.5, 0, 0], [0, 0.5, 0]]], np.float32)
PQ = 16


def picture(
    name: str = "yuv420p",
    size_wh: tuple[int, int] = (64, 48),
    value: int = 90,
    tags: ColorTags | None = None,
) -> Picture:
    layout = PIXEL_FORMATS[name]
    planes = tuple(np.full(shape, value, layout.dtype) for shape in layout.plane_shapes(size_wh))
    return Picture(planes, layout, tags)


@pytest.mark.parametrize("name", ["yuv420p", "rgb24"])
def test_crops_of_one_frame_come_together(name: str) -> None:
    crops = DeviceCrops(CPU).cut(picture(name), WHERE, SIDE_PX)
    assert (crops.shape, crops.dtype) == ((2, SIDE_PX, SIDE_PX, 3), np.uint8)
    assert np.ptp(crops, axis=(0, 1, 2)).max() == 0


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(picture("gray"), id="gray"),
        pytest.param(picture("rgb48le"), id="16 bits"),
        pytest.param(picture("yuv420p10le"), id="10 bits"),
        pytest.param(picture("yuv444p"), id="whole chroma"),
        pytest.param(picture(tags=ColorTags(transfer=PQ)), id="HDR in 8 bits"),
    ],
)
def test_what_the_graph_does_not_know_is_not_taken(other: Picture) -> None:
    crops = DeviceCrops(CPU)
    assert not crops.takes(other)
    with pytest.raises(ValueError, match="picture: got"):
        crops.cut(other, WHERE, SIDE_PX)


def test_a_frame_goes_up_once_however_often_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crops, uploads = DeviceCrops(CPU), []
    session = crops._session("yuv420p", SIDE_PX)
    upload = session.upload
    monkeypatch.setattr(session, "upload", lambda array: uploads.append(array) or upload(array))
    first, second = picture(), picture()
    for each in (first, second, first, first, second):
        crops.cut(each, WHERE, SIDE_PX)
    assert len(uploads) == 6


def test_a_frame_that_lies_where_another_one_lay_is_not_taken_for_it() -> None:
    """The system gives the memory of a frame that is gone to the next one."""
    crops = DeviceCrops(CPU)
    for value in range(40, 200, 10):
        frame = picture("rgb24", value=value)
        assert (crops.cut(frame, WHERE, SIDE_PX) == value).all()
        del frame
        gc.collect()


def test_old_frames_make_room_on_the_device() -> None:
    crops = DeviceCrops(CPU)
    frames = [picture("rgb24", (2048, 2048)) for _ in range(8)]
    for frame in frames:
        crops.cut(frame, WHERE[:1], SIDE_PX)
    assert 0 < crops.frames_kept <= (64 << 20) // frames[0].planes[0].nbytes
    assert (crops.cut(frames[0], WHERE[:1], SIDE_PX) == 90).all()


@pytest.mark.parametrize(("device", "runs_on"), [("tensorrt", "cuda"), ("cuda", "cuda")])
def test_of_tensorrt_the_device_behind_it_cuts(device: str, runs_on: str) -> None:
    (row,) = (row for row in PROVIDERS if row.device == device)
    used: Provider = DeviceCrops(row)._provider
    assert used.device == runs_on
