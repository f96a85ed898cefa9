"""Faces are cut out where they are, and only those that shall be changed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import template_points, transform_points
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import CropSpec, Face, Frame
from app.faces.align import FaceSlot, align, native_box
from tests.conftest import MakeFace, MakeFrame
from tests.faces.conftest import MakeIdentity, MakeLandmarks

NATIVE = CropSpec(template="native", size_px=16, margin=0.1)
ARCFACE = CropSpec(template="arcface_112", size_px=112)
EMPTY_SPOT = np.zeros((5, 2), np.float32)


@pytest.fixture
def face(make_face: MakeFace, make_landmarks: MakeLandmarks, make_identity: MakeIdentity) -> Face:
    return make_face(landmarks=make_landmarks(), identity=make_identity())


def noise(height: int = 128, width: int = 128) -> NDArray[np.uint8]:
    return np.random.default_rng(5).integers(0, 256, (height, width, 3), np.uint8)


def test_an_empty_window_gives_nothing(make_frame: MakeFrame) -> None:
    assert align((), NATIVE) == []
    assert align((make_frame(),), NATIVE) == []


@pytest.mark.parametrize("missing", ["identity", "landmarks"])
def test_a_face_without_identity_or_landmarks_is_left_out(
    make_frame: MakeFrame, face: Face, missing: str
) -> None:
    assert align((make_frame(faces=(replace(face, **{missing: None}),)),), NATIVE) == []


def test_a_native_crop_is_the_pictures_own_pixels(make_frame: MakeFrame, face: Face) -> None:
    image = noise()
    (aligned,) = align((make_frame(image=image, faces=(face,)),), NATIVE)
    x0, y0 = (-aligned.batch.affine[0, :, 2]).astype(int)
    side = aligned.batch.crops.shape[1]
    assert np.array_equal(aligned.batch.crops[0], image[y0 : y0 + side, x0 : x0 + side])
    assert aligned.batch.masks.min() == 1
    assert (x0 % 2, y0 % 2, side % 16) == (0, 0, 0)


def test_a_native_crop_is_a_pure_translation(make_frame: MakeFrame, face: Face) -> None:
    (aligned,) = align((make_frame(faces=(face,)),), NATIVE)
    affine, landmarks = aligned.batch.affine[0], aligned.batch.landmarks[0]
    assert np.array_equal(affine[:, :2], np.eye(2))
    assert face.landmarks is not None
    assert np.allclose(landmarks[:, :2], face.landmarks[:, :2] + affine[:, 2], atol=1e-3)
    assert np.allclose(landmarks[:, 2], face.landmarks[:, 2])


@pytest.mark.parametrize("size", [30, 61, 100])
def test_a_native_box_holds_the_face_and_its_margin(
    make_landmarks: MakeLandmarks, size: float
) -> None:
    landmarks = make_landmarks(size=size)
    box = native_box(landmarks, NATIVE)
    low, high = landmarks[:468, :2].min(0), landmarks[:468, :2].max(0)
    margin = 0.1 * (high - low).max() - 2
    assert (low - [box.x0, box.y0] >= margin).all()
    assert ([box.x1, box.y1] - high >= margin).all()


def test_beyond_the_picture_the_border_is_repeated_and_the_mask_is_zero(
    make_frame: MakeFrame, face: Face, make_landmarks: MakeLandmarks
) -> None:
    image = noise()
    cut_off = replace(face, landmarks=make_landmarks(cx=10, cy=120))
    (aligned,) = align((make_frame(image=image, faces=(cut_off,)),), NATIVE)
    x0, y0 = (-aligned.batch.affine[0, :, 2]).astype(int)
    crop, mask = aligned.batch.crops[0], aligned.batch.masks[0]
    assert x0 < 0 and mask[:, :-x0].max() == 0 and mask[: 128 - y0, -x0:].min() == 1
    assert np.array_equal(crop[: 128 - y0, : -x0 + 1], np.repeat(image[y0:, :1], -x0 + 1, axis=1))
    assert mask[128 - y0 :].max(initial=0) == 0


def test_a_face_outside_the_picture_is_left_out(
    make_frame: MakeFrame, face: Face, make_landmarks: MakeLandmarks
) -> None:
    gone = replace(face, landmarks=make_landmarks(cx=-300))
    assert align((make_frame(faces=(gone,)),), NATIVE) == []


def test_rows_are_grouped_by_side_and_know_where_they_come_from(
    make_frame: MakeFrame, face: Face, make_landmarks: MakeLandmarks
) -> None:
    small = replace(face, landmarks=make_landmarks(size=30))
    window = (make_frame(0, faces=(face, small)), make_frame(1), make_frame(2, faces=(small, face)))
    sides = align(window, NATIVE)
    assert [each.batch.crops.shape[1] for each in sides] == [48, 80]
    assert sides[0].slots == (FaceSlot(0, 1), FaceSlot(2, 0))
    assert sides[1].slots == (FaceSlot(0, 0), FaceSlot(2, 1))


@pytest.mark.parametrize("name", ["yuv420p", "yuv422p10le", "gray", "rgba"])
def test_any_pixel_format_can_be_cut(make_frame: MakeFrame, face: Face, name: str) -> None:
    fmt = PIXEL_FORMATS[name]
    planes = tuple(
        np.full(shape, 1 << (fmt.bits - 1), fmt.dtype) for shape in fmt.plane_shapes((127, 125))
    )
    frame: Frame = replace(make_frame(faces=(face,)), picture=Picture(planes, fmt))
    (aligned,) = align((frame,), NATIVE)
    assert aligned.batch.crops.dtype == np.uint8


@pytest.mark.parametrize("side_px", [112, 256])
def test_five_points_land_on_the_template(make_frame: MakeFrame, face: Face, side_px: int) -> None:
    template = template_points("arcface_112", 112)
    kps = (template - 50) * 0.5 + 64
    spec = CropSpec(template="arcface_112", size_px=side_px)
    (aligned,) = align((make_frame(faces=(replace(face, kps=kps),)),), spec)
    landed = transform_points(kps, aligned.batch.affine[0])
    assert np.abs(landed - template * side_px / 112).max() < 0.05
    assert aligned.batch.crops.shape == (1, side_px, side_px, 3)


def test_a_large_face_is_averaged_not_picked_from(make_frame: MakeFrame, face: Face) -> None:
    checks = (np.indices((900, 900)).sum(0) % 2 * 255).astype(np.uint8)
    image = np.repeat(checks[..., None], 3, axis=2)
    kps = (template_points("arcface_112", 112) - 56) * 7 + 450
    large = replace(face, kps=kps.astype(np.float32))
    (aligned,) = align((make_frame(image=image, faces=(large,)),), ARCFACE)
    inner = aligned.batch.crops[0, 10:-10, 10:-10].astype(int)
    assert np.abs(inner - 127).max() < 40
    assert inner.std() < 10


def test_a_warped_crop_knows_what_lies_beyond_the_picture(
    make_frame: MakeFrame, face: Face
) -> None:
    kps = (template_points("arcface_112", 112) - 56) * 0.5 + [0, 64]
    (aligned,) = align((make_frame(faces=(replace(face, kps=kps.astype(np.float32)),)),), ARCFACE)
    mask = aligned.batch.masks[0]
    assert mask[:, :54].max() == 0 and mask[:, 58:].min() == 1


def test_a_face_whose_points_lie_on_one_spot_is_left_out(make_frame: MakeFrame, face: Face) -> None:
    window = (make_frame(faces=(replace(face, kps=EMPTY_SPOT),)),)
    assert align(window, ARCFACE) == []
    assert len(align(window, NATIVE)) == 1
