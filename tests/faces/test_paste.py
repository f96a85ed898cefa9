"""What was not changed stays bit for bit; what was lies where it belongs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import template_points
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import CropSpec, Face, FaceBatch, Frame, Window
from app.faces.align import AlignedFaces, align
from app.faces.paste import paste
from tests.conftest import MakeFace, MakeFrame
from tests.faces.conftest import MakeIdentity, MakeLandmarks

NATIVE = CropSpec(template="native", size_px=16, margin=0.1)
RED = (255, 0, 0)
BLUE = (0, 0, 255)

PlaceFace = Callable[..., Face]


@pytest.fixture
def place_face(
    make_face: MakeFace, make_landmarks: MakeLandmarks, make_identity: MakeIdentity
) -> PlaceFace:
    def build(cx: float = 64, cy: float = 64, size: float = 40) -> Face:
        kps = (template_points("arcface_112", 112) - 56) * np.float32(size / 90) + np.array(
            [cx, cy], np.float32
        )
        landmarks = make_landmarks(cx=cx, cy=cy, size=size)
        return make_face(landmarks=landmarks, identity=make_identity(), kps=kps)

    return build


def painted(
    faces: AlignedFaces, color: tuple[int, int, int], mask: NDArray[np.float32] | None = None
) -> FaceBatch:
    batch = faces.batch
    crops = np.broadcast_to(np.array(color, np.uint8), batch.crops.shape).copy()
    return replace(batch, crops=crops, masks=batch.masks if mask is None else mask)


def disk(faces: AlignedFaces) -> NDArray[np.float32]:
    """1 in the middle of each crop, a circle of a third of the side."""
    n, side = faces.batch.masks.shape[:2]
    y, x = np.indices((side, side)) - (side - 1) / 2
    return np.tile((np.hypot(x, y) < side / 3).astype(np.float32), (n, 1, 1))


def rgb_of(frame: Frame) -> NDArray[np.uint8]:
    return frame.picture.read(frame.picture.box)


def pasted(window: Window, spec: CropSpec, color: tuple[int, int, int]) -> Window:
    aligned = align(window, spec)
    return paste(window, aligned, [painted(each, color, disk(each)) for each in aligned])


def test_nothing_processed_gives_the_same_frames(make_frame: MakeFrame) -> None:
    window = (make_frame(0), make_frame(1))
    out = paste(window, [], [])
    assert all(a is b for a, b in zip(out, window, strict=True))


def test_an_empty_mask_gives_the_same_frame_and_counts_nothing(
    make_frame: MakeFrame, place_face: PlaceFace
) -> None:
    window = (make_frame(faces=(place_face(),)),)
    aligned = align(window, NATIVE)
    nothing = np.zeros_like(aligned[0].batch.masks)
    out = paste(window, aligned, [painted(aligned[0], RED, nothing)])
    assert out[0] is window[0] and out[0].faces_swapped == 0


@pytest.mark.parametrize("name", sorted(PIXEL_FORMATS))
@pytest.mark.parametrize("size_wh", [(128, 128), (127, 125)], ids=str)
def test_unchanged_crops_leave_every_plane_bit_for_bit(
    make_frame: MakeFrame, place_face: PlaceFace, name: str, size_wh: tuple[int, int]
) -> None:
    fmt = PIXEL_FORMATS[name]
    rng = np.random.default_rng(3)
    planes = tuple(
        rng.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
        for shape in fmt.plane_shapes(size_wh)
    )
    faces = (place_face(), place_face(cx=5, cy=120), place_face(cx=70, cy=70, size=25))
    frame = replace(make_frame(faces=faces), picture=Picture(planes, fmt))
    aligned = align((frame,), NATIVE)
    out = paste((frame,), aligned, [each.batch for each in aligned])[0]
    assert out.faces_swapped == 3
    assert all(np.array_equal(a, b) for a, b in zip(out.picture.planes, planes, strict=True))


def test_only_the_masked_pixels_change(make_frame: MakeFrame, place_face: PlaceFace) -> None:
    image = np.random.default_rng(2).integers(0, 256, (128, 128, 3), np.uint8)
    window = (make_frame(image=image, faces=(place_face(),)),)
    aligned = align(window, NATIVE)
    out = rgb_of(paste(window, aligned, [painted(aligned[0], RED, disk(aligned[0]))])[0])
    x0, y0 = (-aligned[0].batch.affine[0, :, 2]).astype(int)
    side = aligned[0].batch.crops.shape[1]
    mask = np.zeros((128, 128), bool)
    mask[y0 : y0 + side, x0 : x0 + side] = disk(aligned[0])[0] > 0
    assert np.array_equal(out[~mask], image[~mask])
    assert (out[mask] == RED).all()


def test_the_given_window_is_not_written_to(make_frame: MakeFrame, place_face: PlaceFace) -> None:
    window = (make_frame(value=100, faces=(place_face(),)),)
    pasted(window, NATIVE, RED)
    assert np.unique(rgb_of(window[0])).tolist() == [100]


def test_faces_are_counted_frame_by_frame(make_frame: MakeFrame, place_face: PlaceFace) -> None:
    two = (place_face(cx=30), place_face(cx=95))
    window = (make_frame(0, faces=two), make_frame(1), make_frame(2, faces=two[:1]))
    assert [frame.faces_swapped for frame in pasted(window, NATIVE, RED)] == [2, 0, 1]


def test_a_second_step_does_not_count_faces_again(
    make_frame: MakeFrame, place_face: PlaceFace
) -> None:
    window = (make_frame(faces=(place_face(),)),)
    again = pasted(pasted(window, NATIVE, RED), NATIVE, BLUE)
    assert again[0].faces_swapped == 1
    assert (rgb_of(again[0])[64, 64] == BLUE).all()


def test_touching_faces_do_not_erase_each_other(
    make_frame: MakeFrame, place_face: PlaceFace
) -> None:
    window = (make_frame(faces=(place_face(cx=45), place_face(cx=85))),)
    out = rgb_of(pasted(window, NATIVE, RED)[0])
    assert (out[64, 45] == RED).all() and (out[64, 85] == RED).all()


@pytest.mark.parametrize("is_large_first", [True, False])
def test_the_larger_face_lies_on_top(
    make_frame: MakeFrame, place_face: PlaceFace, is_large_first: bool
) -> None:
    faces = (place_face(cx=60, size=60), place_face(cx=75, size=30))
    window = (make_frame(faces=faces if is_large_first else faces[::-1]),)
    aligned = align(window, NATIVE)
    colors = [BLUE if each.batch.crops.shape[1] < 60 else RED for each in aligned]
    processed = [
        painted(each, color, disk(each)) for each, color in zip(aligned, colors, strict=True)
    ]
    out = rgb_of(paste(window, aligned, processed)[0])
    assert (out[64, 75] == RED).all()


@pytest.mark.parametrize("size", [30, 100], ids=["crop larger than face", "crop smaller than face"])
def test_a_warped_crop_goes_back_where_it_came_from(
    make_frame: MakeFrame, place_face: PlaceFace, size: float
) -> None:
    spec = CropSpec(template="arcface_112", size_px=112)
    y, x = np.indices((128, 128))
    image = np.stack([x, y, 255 - x], axis=2).astype(np.uint8)
    window = (make_frame(image=image, faces=(place_face(size=size),)),)
    aligned = align(window, spec)
    out = paste(window, aligned, [replace(aligned[0].batch, masks=disk(aligned[0]))])
    assert np.abs(rgb_of(out[0]).astype(int) - image).max() <= 2


def test_a_warped_crop_changes_nothing_outside_its_mask(
    make_frame: MakeFrame, place_face: PlaceFace
) -> None:
    spec = CropSpec(template="arcface_112", size_px=112)
    window = (make_frame(value=100, faces=(place_face(size=40),)),)
    out = rgb_of(pasted(window, spec, RED)[0])
    y, x = np.nonzero((out != 100).any(2))
    radius = 112 / 3 * 40 / 90 + 2
    assert np.hypot(x - 64, y - 64).max() < radius
    assert (out[64, 64] == RED).all()


def test_a_processor_that_loses_rows_is_refused(
    make_frame: MakeFrame, place_face: PlaceFace
) -> None:
    window = (make_frame(faces=(place_face(), place_face(cx=30))),)
    (aligned,) = align(window, NATIVE)
    batch = aligned.batch
    fewer = FaceBatch(
        crops=batch.crops[:1], masks=batch.masks[:1], affine=batch.affine[:1],
        landmarks=batch.landmarks[:1], identities=batch.identities[:1],
    )  # fmt: skip
    with pytest.raises(ValueError, match="a processor keeps"):
        paste(window, [aligned], [fewer])
