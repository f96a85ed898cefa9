"""Faces made unrecognizable: too few levels of gray and color are kept to tell who it is.

A processor may fail at a face and leave it; here a face that was to be hidden must not show for one frame. So a
face that the tracker loses for a moment stays hidden where it was, or between where it was and where it comes back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import cv2
import numpy as np

from app.core.geometry import FloatArray
from app.core.mesh_topology import MESH_POINTS
from app.core.types import (
    CropSpec,
    Face,
    FaceBatch,
    Frame,
    RgbImage,
    TrackId,
    Window,
)
from app.faces.align import align
from app.faces.landmarks import face_from_landmarks
from app.faces.paste import paste

CROP: Final = CropSpec(template="native", size_px=32, margin=0.45)
_SPOTS = 5.0
"""So many spots of color are left across a face; with twelve a network still knows some people again."""
_GROWTH = 1.3
"""The hidden part against the mesh, which ends at brows, cheeks and chin."""
_SOFT_EDGE = 0.08
"""Of the face's size, outside the hidden part."""
_HOLD_S = 0.5
"""So long a lost face stays hidden."""
_PACE_S = 0.25
"""Over so long a time the pace of a lost face was measured: it goes on with it, or with the camera."""
_OTHER_FACE = 0.25
"""Of the smaller box: so much of another face may lie under a face that is only supposed to be there."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sighting:
    """Where a hidden face was."""

    time_s: float
    landmarks: FloatArray


class FaceHider:
    """Hides the faces of one video that are marked `is_blurred`, window by window."""

    def __init__(self) -> None:
        self._recent: dict[TrackId, list[_Sighting]] = {}

    def hide(self, window: Window) -> Window:
        """Hide what is to be hidden; frames with nothing to hide are the same objects.

        Returns:
            The window; hidden faces count as changed. A face outside the picture, or without landmarks, is left.
        """
        lost = self._lost(window)
        marked = tuple(
            replace(frame, faces=(*frame.faces, *lost[at])) for at, frame in enumerate(window)
        )
        aligned = align(marked, CROP, chosen=_is_to_be_hidden)
        pasted = paste(marked, aligned, [blurred(part.batch) for part in aligned])
        hidden = {(slot.frame, slot.face) for part in aligned for slot in part.slots}
        return tuple(
            _counted(before, after, {face for at, face in hidden if at == index})
            for index, (before, after) in enumerate(zip(window, pasted, strict=True))
        )

    def _lost(self, window: Window) -> list[list[Face]]:
        """For each frame the faces that were hidden a moment ago, are in none of its tracks, and may still be there."""
        rows: list[list[Face]] = []
        for index, frame in enumerate(window):
            if frame.is_cut:
                self._recent.clear()
            seen = _hidden_tracks(frame)
            ghosts = []
            for track_id in sorted(self._recent.keys() - seen.keys()):
                after = _next(track_id, window[index:])
                landmarks = _supposed(self._recent[track_id], frame.time_s, after)
                if landmarks is None:
                    del self._recent[track_id]
                elif not _is_occupied(landmarks, frame):
                    ghosts.append(replace(face_from_landmarks(landmarks, 0.0), is_blurred=True))
            self._remember(seen)
            rows.append(ghosts)
        return rows

    def _remember(self, seen: Mapping[TrackId, _Sighting]) -> None:
        for track_id, sighting in seen.items():
            since_s = sighting.time_s - _PACE_S
            before = self._recent.get(track_id, [])
            self._recent[track_id] = [
                *(each for each in before if each.time_s >= since_s),
                sighting,
            ]


def blurred(batch: FaceBatch) -> FaceBatch:
    """Take all detail out of each crop, in a soft-edged shape somewhat larger than the face.

    Args:
        batch: `native` crops cut with `CROP`; never written to.
    """
    crops = np.empty_like(batch.crops)
    masks = np.empty(batch.masks.shape, np.float32)
    for row, (crop, landmarks) in enumerate(zip(batch.crops, batch.landmarks, strict=True)):
        points = landmarks[:MESH_POINTS, :2]
        size_px = max(float(np.ptp(points, axis=0).max()), 1.0)
        crops[row] = _without_detail(crop, size_px)
        masks[row] = _shape(points, size_px, crop.shape[0]) * batch.masks[row]
    return replace(batch, crops=crops, masks=masks)


def _without_detail(crop: RgbImage, size_px: float) -> RgbImage:
    side = crop.shape[0]
    spots = max(2, round(side / size_px * _SPOTS))
    few = cv2.resize(crop, (spots, spots), interpolation=cv2.INTER_AREA)
    broad = cv2.resize(few, (side, side), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.GaussianBlur(broad, (0, 0), side / spots / 2), np.uint8)


def _shape(points: FloatArray, size_px: float, side_px: int) -> FloatArray:
    """1 where nothing may show, falling to 0 outside of it; `(side, side)` float32."""
    middle = (points.min(0) + points.max(0)) / 2
    soft_px = _SOFT_EDGE * size_px
    # The edge is blurred over its own line, so the line lies half an edge outside.
    grown = middle + (points - middle) * (_GROWTH + 2 * _SOFT_EDGE)
    hull = cv2.convexHull(np.rint(grown).astype(np.int32))
    mask = np.zeros((side_px, side_px), np.float32)
    cv2.fillConvexPoly(mask, hull, 1.0)
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), max(soft_px / 2, 0.3)), np.float32)


def _hidden_tracks(frame: Frame) -> dict[TrackId, _Sighting]:
    return {
        face.track_id: _Sighting(frame.time_s, face.landmarks)
        for face in frame.faces
        if face.is_blurred and face.track_id is not None and face.landmarks is not None
    }


def _next(track_id: TrackId, frames: Window) -> _Sighting | None:
    """Where a track is seen again before the next cut."""
    for frame in frames:
        if frame.is_cut:
            return None
        if (sighting := _hidden_tracks(frame).get(track_id)) is not None:
            return sighting
    return None


def _supposed(
    recent: Sequence[_Sighting], at_s: float, after: _Sighting | None
) -> FloatArray | None:
    """Where a lost face is taken to be; `None` once it has been away too long."""
    first, last = recent[0], recent[-1]
    if after is not None:
        share = (at_s - last.time_s) / max(after.time_s - last.time_s, 1e-9)
        return np.asarray(last.landmarks + (after.landmarks - last.landmarks) * share, np.float32)
    if at_s - last.time_s > _HOLD_S:
        return None
    pace = (last.landmarks - first.landmarks).mean(0) / max(last.time_s - first.time_s, 1e-9)
    return np.asarray(last.landmarks + pace * (at_s - last.time_s), np.float32)


def _is_occupied(landmarks: FloatArray, frame: Frame) -> bool:
    """Whether somebody else's face, or the same one under another number, is seen there."""
    if not frame.faces:
        return False
    box = face_from_landmarks(landmarks, 0.0).bbox_xyxy
    boxes = np.stack([face.bbox_xyxy for face in frame.faces])
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    shared = np.clip(high - low, 0, None).prod(1)
    smaller = np.minimum((box[2:] - box[:2]).prod(), (boxes[:, 2:] - boxes[:, :2]).prod(1))
    return bool((shared > _OTHER_FACE * smaller).any())


def _counted(before: Frame, after: Frame, hidden: set[int]) -> Frame:
    """The frame with its hidden faces marked and counted."""
    if not hidden:
        return before
    faces = tuple(
        replace(face, is_changed=True) if index in hidden else face
        for index, face in enumerate(before.faces)
    )
    return replace(
        before,
        picture=after.picture,
        faces=faces,
        faces_swapped=before.faces_swapped + len(hidden),
    )


def _is_to_be_hidden(face: Face) -> bool:
    return face.is_blurred
