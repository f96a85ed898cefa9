"""Landmarks held steady by what the pixels did from one frame to the next."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray, invert_affine
from app.core.types import TrackId
from app.faces.landmarks import face_size_px

_MAX_RETURN_ERROR_PX = 1.0
_PULL = 0.04
_FULL_PULL_AT = 0.06
"""Of the face's width: so far apart, the measure is believed."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One face in one frame.

    Attributes:
        number: Running number of the frame.
        gray: `(S, S)` uint8, the face's crop.
        affine: `(2, 3)` from picture to crop pixels.
        landmarks: `(478, 3)` float32, picture pixels.
    """

    number: int
    gray: NDArray[np.uint8]
    affine: FloatArray
    landmarks: FloatArray


class Stabilizer:
    """Steadies the landmarks of every track; remembers each track's last frame.

    Last landmarks are carried along the optical flow, then pulled towards the new measure. The pull is weak where both
    agree, so that the measure's noise hardly shows, and full where they are 6 % of the face's width apart or where
    the flow is unsure, so that nothing drifts or lags. Where a track begins it is the mean of its measures that is
    carried, or the first one's error would stay. Filters that only smooth over time lag behind a moving head.

    The flow is dense (DIS; Kroeger et al. 2016, "Fast Optical Flow using Dense Inverse Search"). On crops that a known
    similarity had moved it was off by 0.12 % of the face's width (root mean square) and cost 2.1 ms a face; points
    followed one by one (Lucas-Kanade, windows of 21 px) were off by 0.14 % and cost 8.9 ms.
    """

    def __init__(self) -> None:
        self._flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
        self._last: dict[TrackId, View] = {}
        self._ages: dict[TrackId, int] = {}

    def steadied(self, track_id: TrackId, view: View) -> FloatArray:
        """Landmarks of one face, `(478, 3)` float32 in picture pixels.

        A track that was not in the frame before starts from its measure.
        """
        last = self._last.get(track_id)
        is_next = last is not None and last.number == view.number - 1
        age = self._ages.get(track_id, 0) + 1 if is_next else 1
        self._ages[track_id] = age
        landmarks = self._pulled(last, view, age) if last and is_next else view.landmarks
        self._last[track_id] = View(view.number, view.gray, view.affine, landmarks)
        return landmarks

    def forget_before(self, number: int) -> None:
        """Drop the tracks that were last seen before this frame."""
        self._last = {key: view for key, view in self._last.items() if view.number >= number}
        self._ages = {key: self._ages[key] for key in self._last}

    def _pulled(self, last: View, now: View, age: int) -> FloatArray:
        start = _moved(last.landmarks, last.affine)
        ahead = start + self._flow_at(start, last.gray, now.gray)
        back = ahead + self._flow_at(ahead, now.gray, last.gray)
        is_sure = np.linalg.norm(back - start, axis=1) < _MAX_RETURN_ERROR_PX
        expected = last.landmarks.copy()  # no flow tells the depth: it stays what it was
        expected[:, :2] = _moved(ahead, invert_affine(now.affine))
        away = now.landmarks - expected
        apart = np.column_stack([np.linalg.norm(away[:, :2], axis=1)] * 2 + [np.abs(away[:, 2])])
        far = apart / (_FULL_PULL_AT * face_size_px(now.landmarks))
        pull = np.clip(_PULL + far * far, 1 / age, 1.0)
        pull[~is_sure] = 1.0
        return np.asarray(expected + pull * away, dtype=np.float32)

    def _flow_at(
        self, points: FloatArray, before: NDArray[np.uint8], after: NDArray[np.uint8]
    ) -> FloatArray:
        """Where each point goes, `(k, 2)`; points beyond the crop go where its edge does."""
        field = self._flow.calc(before, after, None)  # type: ignore[call-overload]
        x, y = points[None, :, 0], points[None, :, 1]
        moves = cv2.remap(field, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(moves[0], dtype=np.float32)


def _moved(points: FloatArray, affine: FloatArray) -> FloatArray:
    return np.asarray(points[:, :2] @ affine[:, :2].T + affine[:, 2], dtype=np.float32)
