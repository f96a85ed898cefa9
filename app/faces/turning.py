"""Stills in which somebody lies on a side or stands on the head: looked at in other turns too.

The detector finds faces up to about 40 degrees off upright. Quarter turns therefore see every face at most 45 degrees
off; what lies just between two of them is seen by a look turned by half a quarter more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import cv2
import numpy as np

from app.core.geometry import FloatArray, bbox_iou, invert_affine, transform_points
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.faces.detector import FaceDetector, in_reading_order

_QUARTERS_DEG = (90, 180, 270)
_EIGHTHS_DEG = (45, 135, 225, 315)
_SIDE_PX = 1920
_QUICK_SIDES_PX = (320, 640)
_SURE = 0.9
"""A lying face is often found upright too, with a low score and its key points in the wrong places."""
_MIN_TURNED_SCORE = 0.8
_SAME_IOU = 0.3


class TurningDetector(FaceDetector):
    """A detector for stills: where the upright look is weak the picture is turned, and each face's surest look counts.

    A picture with only sure faces is looked at in the quarter turns quickly, small: somebody may lie among them.
    """

    def detect(
        self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
    ) -> list[tuple[Face, ...]]:
        """Find the faces of each picture; see `FaceDetector.detect`."""
        found = super().detect(pictures, sides_px=sides_px)
        return [
            self._all_round(picture, faces, sides_px)
            for picture, faces in zip(pictures, found, strict=True)
        ]

    def _all_round(
        self, picture: Picture, upright: tuple[Face, ...], sides_px: Sequence[int] | None
    ) -> tuple[Face, ...]:
        small = Picture.from_rgb(picture.thumbnail(_SIDE_PX)[0])
        scale = small.size_wh[0] / picture.size_wh[0]
        quick = _QUICK_SIDES_PX if _all_sure(upright) else sides_px
        faces = surest([*upright, *self._scaled(small, scale, _QUARTERS_DEG, quick)])
        if not _all_sure(faces):
            faces = surest([*faces, *self._scaled(small, scale, _EIGHTHS_DEG, sides_px)])
        return in_reading_order(faces)

    def _scaled(
        self, small: Picture, scale: float, degrees: Sequence[int], sides_px: Sequence[int] | None
    ) -> list[Face]:
        """What turned looks at a smaller picture are sure of, in pixels of the whole one."""
        found = _looks(super().detect, small, degrees, sides_px)
        back = np.array([[1, 0, 0], [0, 1, 0]], np.float32) / np.float32(scale)
        return [_moved(face, back) for face in found]


def turned_looks(
    detector: FaceDetector, picture: Picture, degrees: Sequence[int], side_px: int
) -> list[Face]:
    """What a detector is sure of in a picture that is turned and small; in pixels of the upright picture."""
    rgb, scale = picture.thumbnail(side_px)
    found = _looks(detector.detect, Picture.from_rgb(rgb), degrees, (side_px,))
    back = np.array([[1, 0, 0], [0, 1, 0]], np.float32) / np.float32(scale)
    return [_moved(face, back) for face in found]


def _looks(
    detect: Callable[..., list[tuple[Face, ...]]],
    picture: Picture,
    degrees: Sequence[int],
    sides_px: Sequence[int] | None,
) -> list[Face]:
    rgb = picture.read(picture.box)
    found = []
    for each in degrees:
        # One at a time: of a large picture all turns together would be a lot of memory.
        (faces,) = detect([Picture.from_rgb(turned(rgb, each))], sides_px=sides_px)
        back = turn_back(picture.size_wh, each)
        found += [_moved(face, back) for face in faces if face.det_score >= _MIN_TURNED_SCORE]
    return found


def _all_sure(faces: Sequence[Face]) -> bool:
    return bool(faces) and all(face.det_score >= _SURE for face in faces)


def surest(faces: Iterable[Face]) -> list[Face]:
    """Of finds that overlap the one with the highest score, highest first."""
    kept: list[Face] = []
    for face in sorted(faces, key=lambda each: -each.det_score):
        boxes = np.array([other.bbox_xyxy for other in kept], np.float32).reshape(-1, 4)
        if not (bbox_iou(face.bbox_xyxy[None], boxes) > _SAME_IOU).any():
            kept.append(face)
    return kept


def turned(rgb: RgbImage, degrees: int) -> RgbImage:
    """A picture turned counterclockwise: by quarters exactly, else on a gray ground that holds all of it."""
    if degrees % 90 == 0:
        return np.ascontiguousarray(np.rot90(rgb, degrees // 90))
    size_wh = rgb.shape[1], rgb.shape[0]
    there = invert_affine(turn_back(size_wh, degrees))
    image = cv2.warpAffine(
        rgb, there, _turned_size_wh(size_wh, degrees), borderValue=(128, 128, 128)
    )
    return np.asarray(image, dtype=np.uint8)


def turn_back(size_wh: tuple[int, int], degrees: int) -> FloatArray:
    """From pixels of a picture that `turned` made to those of the upright one.

    Args:
        size_wh: Of the upright picture.
        degrees: Counterclockwise.

    Returns:
        `(2, 3)` float32; for quarter turns pixel centers fall on pixel centers.
    """
    cosine, sine = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    linear = np.array([[cosine, -sine], [sine, cosine]])
    turned_wh = np.array(_turned_size_wh(size_wh, degrees))
    shift = (np.array(size_wh) - 1) / 2 - linear @ ((turned_wh - 1) / 2)
    return np.column_stack([linear, shift]).astype(np.float32)


def _turned_size_wh(size_wh: tuple[int, int], degrees: int) -> tuple[int, int]:
    w, h = size_wh
    cosine, sine = (abs(f(np.deg2rad(degrees))) for f in (np.cos, np.sin))
    return round(w * cosine + h * sine), round(w * sine + h * cosine)


def _moved(face: Face, affine: FloatArray) -> Face:
    """A find of a turned look in the upright picture: its box as large as before, around the turned middle."""
    x0, y0, x1, y1 = face.bbox_xyxy.tolist()
    middle = np.array([[(x0 + x1) / 2, (y0 + y1) / 2]], np.float32)
    scale = float(np.sqrt(abs(np.linalg.det(affine[:, :2]))))
    half = np.array([x1 - x0, y1 - y0], np.float32) / 2 * scale
    if abs(affine[0, 1]) > abs(affine[0, 0]):
        half = half[::-1]
    center = transform_points(middle, affine)[0]
    box = np.concatenate([center - half, center + half]).astype(np.float32)
    return replace(face, bbox_xyxy=box, kps=transform_points(face.kps, affine))
