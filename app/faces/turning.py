"""Stills that lie on a side: looked at again in the other quarter turns where the upright look is weak."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.core.geometry import FloatArray, transform_points
from app.core.picture import Picture
from app.core.types import Face
from app.faces.detector import FaceDetector, in_reading_order

_TURNS = (1, 2, 3)
_SIDE_PX = 1920
_SURE = 0.9
"""A lying face is often found upright too, with a low score and its key points in the wrong places."""


class TurningDetector(FaceDetector):
    """A detector for stills: a picture without a sure face is turned too, and the look with the surest face counts."""

    def detect(
        self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
    ) -> list[tuple[Face, ...]]:
        """Find the faces of each picture; see `FaceDetector.detect`."""
        found = super().detect(pictures, sides_px=sides_px)
        return [
            faces if _best_score(faces) >= _SURE else self._surest(picture, faces, sides_px)
            for picture, faces in zip(pictures, found, strict=True)
        ]

    def _surest(
        self, picture: Picture, upright: tuple[Face, ...], sides_px: Sequence[int] | None
    ) -> tuple[Face, ...]:
        rgb, scale = picture.thumbnail(_SIDE_PX)
        turned = [Picture.from_rgb(np.rot90(rgb, turns)) for turns in _TURNS]
        looks = super().detect(turned, sides_px=sides_px)
        turns, faces = max(
            zip((0, *_TURNS), (upright, *looks), strict=True), key=lambda look: _best_score(look[1])
        )
        if turns == 0:
            return upright
        back = turn_back((rgb.shape[1], rgb.shape[0]), turns) / np.float32(scale)
        return in_reading_order(_moved(face, back) for face in faces)


def _best_score(faces: Sequence[Face]) -> float:
    return max((face.det_score for face in faces), default=0.0)


def turn_back(size_wh: tuple[int, int], turns: int) -> FloatArray:
    """From pixels of a picture turned counterclockwise to those of the upright one.

    Args:
        size_wh: Of the upright picture.
        turns: Quarter turns, 0 to 3, as in `numpy.rot90`.

    Returns:
        `(2, 3)` float32; pixel centers fall on pixel centers.
    """
    w, h = size_wh
    rows = {
        0: [[1, 0, 0], [0, 1, 0]],
        1: [[0, -1, w - 1], [1, 0, 0]],
        2: [[-1, 0, w - 1], [0, -1, h - 1]],
        3: [[0, 1, 0], [-1, 0, h - 1]],
    }
    return np.array(rows[turns % 4], np.float32)


def _moved(face: Face, affine: FloatArray) -> Face:
    corners = transform_points(face.bbox_xyxy.reshape(2, 2), affine)
    box = np.concatenate([corners.min(0), corners.max(0)])
    return replace(face, bbox_xyxy=box, kps=transform_points(face.kps, affine))
