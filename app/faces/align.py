"""Cut faces out of a window: the squares that processors see.

Two ways, one result. A `native` crop is copied: upright, at the picture's own resolution, its corner on
even pixels (so that it also falls on the chroma grid), hence putting it back resamples nothing. Any other
template is a similarity from five points and has to be warped, area-true where it shrinks.

All crops of one call come from the window as it was given: a face never sees its neighbor half changed.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from app.core.errors import DegenerateKpsError
from app.core.geometry import invert_affine, similarity, template_points, transform_points
from app.core.mesh_topology import MESH_POINTS
from app.core.picture import Picture, PixelBox
from app.core.types import (
    CropSpec,
    Face,
    FaceBatch,
    FloatArray,
    Identity,
    RgbImage,
    TrackId,
    Window,
)
from app.faces.sampling import sample_square


@dataclass(frozen=True, slots=True)
class FaceSlot:
    """Where a row of a batch comes from.

    Attributes:
        frame: Position of the frame in the window.
        face: Position of the face in the frame's `faces`.
    """

    frame: int
    face: int


@dataclass(frozen=True, slots=True)
class AlignedFaces:
    """A batch and the origin of each of its rows."""

    batch: FaceBatch
    slots: tuple[FaceSlot, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    slot: FaceSlot
    crop: RgbImage
    mask: FloatArray
    affine: FloatArray
    landmarks: FloatArray
    identity: Identity | None
    track_id: TrackId | None


def gets_a_face(face: Face) -> bool:
    """Whether another face is to be put on."""
    return face.identity is not None


def align(
    window: Window, spec: CropSpec, *, chosen: Callable[[Face], bool] = gets_a_face
) -> list[AlignedFaces]:
    """Cut out every chosen face that has landmarks.

    Args:
        window: Frames of one video, or one still.
        spec: The crop that a processor wants.
        chosen: Which faces; all those of a call have an identity to put on, or none of them has.

    Returns:
        One entry a crop side, smaller sides first; rows in the order of frames and faces. All crops of one track
        have one side, the largest it needs, so that a track's rows lie in one batch. The masks are 1
        inside the picture and 0 where a crop reaches beyond it (there the border pixel is repeated).
        A face outside the picture, or whose five points lie on one spot, has no row: it stays as it is.
    """
    by_side: dict[int, list[_Row]] = defaultdict(list)
    sides = _track_sides([f for frame in window for f in frame.faces if chosen(f)], spec)
    for frame_index, frame in enumerate(window):
        for face_index, face in enumerate(frame.faces):
            if not chosen(face):
                continue
            slot = FaceSlot(frame_index, face_index)
            own = (
                spec if face.track_id not in sides else replace(spec, size_px=sides[face.track_id])
            )
            row = _aligned_row(frame.picture, face, slot, own)
            if row is not None:
                by_side[row.crop.shape[0]].append(row)
    return [_stacked(by_side[side]) for side in sorted(by_side)]


def _track_sides(faces: Sequence[Face], spec: CropSpec) -> dict[TrackId | None, int]:
    """The side that holds each of a track's faces; `native` crops only."""
    sides: dict[TrackId | None, int] = {}
    if spec.template != "native":
        return sides
    for face in faces:
        if face.track_id is not None and face.landmarks is not None:
            side = native_box(face.landmarks, spec).size_wh[0]
            sides[face.track_id] = max(side, sides.get(face.track_id, 0))
    return sides


def native_box(landmarks: FloatArray, spec: CropSpec) -> PixelBox:
    """The square of a `native` crop around a face.

    Args:
        landmarks: `(478, 3)` float32, picture pixels.
        spec: Step of the side and margin.

    Returns:
        A square with even corner; its side is a multiple of `spec.size_px`. It may reach beyond the picture.
    """
    points = landmarks[:MESH_POINTS, :2]
    low, high = points.min(0), points.max(0)
    wanted = float((high - low).max()) * (1 + 2 * spec.margin)
    side = max(1, int(np.ceil(wanted / spec.size_px))) * spec.size_px
    corner = np.floor(((low + high) / 2 - side / 2) / 2).astype(int) * 2
    x0, y0 = int(corner[0]), int(corner[1])
    return PixelBox(x0, y0, x0 + side, y0 + side)


def _aligned_row(picture: Picture, face: Face, slot: FaceSlot, spec: CropSpec) -> _Row | None:
    if face.landmarks is None:
        return None
    cut = _native if spec.template == "native" else _warped
    try:
        crop, mask, affine = cut(picture, face, spec)
    except DegenerateKpsError:
        return None
    if not mask.any():
        return None
    points = transform_points(face.landmarks, affine)
    return _Row(slot, crop, mask, affine, points, face.identity, face.track_id)


def _native(
    picture: Picture, face: Face, spec: CropSpec
) -> tuple[RgbImage, FloatArray, FloatArray]:
    assert face.landmarks is not None
    box = native_box(face.landmarks, spec)
    side = box.size_wh[0]
    affine = np.array([[1, 0, -box.x0], [0, 1, -box.y0]], np.float32)
    inside = box.clipped_to(picture.size_wh)
    if inside == box:
        return picture.read(box), _ones(side), affine
    if inside.is_empty:
        return np.zeros((side, side, 3), np.uint8), np.zeros((side, side), np.float32), affine
    pads = inside.y0 - box.y0, box.y1 - inside.y1, inside.x0 - box.x0, box.x1 - inside.x1
    crop = cv2.copyMakeBorder(picture.read(inside), *pads, cv2.BORDER_REPLICATE)
    mask = np.zeros((side, side), np.float32)
    mask[pads[0] : side - pads[1], pads[2] : side - pads[3]] = 1
    return np.asarray(crop, dtype=np.uint8), mask, affine


def _warped(
    picture: Picture, face: Face, spec: CropSpec
) -> tuple[RgbImage, FloatArray, FloatArray]:
    side = spec.size_px
    affine = similarity(face.kps, template_points(spec.template, side))
    return sample_square(picture, affine, side), _inside_mask(picture.size_wh, affine, side), affine


def _inside_mask(size_wh: tuple[int, int], affine: FloatArray, side_px: int) -> FloatArray:
    """1 where a crop pixel's center lies in the picture."""
    back = invert_affine(affine)
    w, h = size_wh
    ends = np.array([[0, 0], [side_px, 0], [0, side_px], [side_px, side_px]], np.float32) - 0.5
    corners = transform_points(ends.astype(np.float32), back)
    if (corners >= -0.5).all() and (corners <= np.array([w - 0.5, h - 0.5])).all():
        return _ones(side_px)
    steps = np.arange(side_px, dtype=np.float32)
    x = back[0, 0] * steps + back[0, 1] * steps[:, None] + back[0, 2]
    y = back[1, 0] * steps + back[1, 1] * steps[:, None] + back[1, 2]
    inside = (x >= -0.5) & (x <= w - 0.5) & (y >= -0.5) & (y <= h - 0.5)
    return np.asarray(inside, dtype=np.float32)


def _ones(side: int) -> FloatArray:
    """All ones without the memory: a window of 4K faces would spend more on its masks than on its frames."""
    return np.broadcast_to(np.ones(1, np.float32), (side, side))


def _stacked(rows: list[_Row]) -> AlignedFaces:
    batch = FaceBatch(
        crops=np.stack([row.crop for row in rows]),
        masks=_stacked_masks([row.mask for row in rows]),
        affine=np.stack([row.affine for row in rows]),
        landmarks=np.stack([row.landmarks for row in rows]),
        identities=tuple(row.identity for row in rows if row.identity is not None),
        track_ids=tuple(row.track_id for row in rows),
    )
    return AlignedFaces(batch, tuple(row.slot for row in rows))


def _stacked_masks(masks: list[FloatArray]) -> FloatArray:
    if all(mask.strides == (0, 0) for mask in masks):
        return np.broadcast_to(masks[0], (len(masks), *masks[0].shape))
    return np.stack(masks)
