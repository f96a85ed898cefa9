"""How much of the drawn face is to be seen at each pixel, and which parts of the target stay.

The mask falls to nothing *inside* the mesh's outline, by distance, so no rim of the texture's border
can show and the jaw line, which is the target's, stays whole. Inside, two things thin it: texels that
the source's photos did not show, and the target's hair.

The eyeballs and the inside of an open mouth are the target's: gaze, blinks and teeth are acting, not
identity. So are the lids of a closed eye: a source with open eyes has none to offer, its lashes and
eyeballs would be squeezed into a smear.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.picture import PixelBox
from app.processors.mesh.filters import FloatArray, blurred, dilated, eroded, filled
from app.processors.mesh.raster import IntArray
from app.processors.mesh.shape import gap_share, rigid_pose

_EDGE = 0.075
"""Width of the edge in face sizes; 0.11 costs 0.01 of SFace cosine, narrower edges can be seen."""

_FACES_US = (0.36, 0.58)
"""Cosine between the line of sight and where the face looks: 69 and 55 degrees. The mesh reads turned heads low: at
50 degrees it shows what the eye takes for a profile."""

_BROW_REACH = 0.02
_HAIR_SOFT = 0.012
_EYE_SOFT, _LID_SOFT, _MOUTH_SOFT = 0.008, 0.018, 0.012
_EYE_SHRINKS = 0.4
"""Lid edges and lashes are left to the source; the target's cost 0.006 of mean SFace cosine."""

_MOUTH_OPENS = (0.06, 0.14)
"""Gap between the lips over the width of the mouth: below it is closed, above it is open."""

_EYE_CLOSES = (0.11, 0.20)
"""Gap between the lids over the width of the eye; laughing eyes are at 0.23 and above."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of the target that stays.

    Attributes:
        box: Where it lies.
        share: `(h, w)` float32 over the box, 0 to 1.
    """

    box: PixelBox
    share: FloatArray


def edge_mask(ids: IntArray, face_px: float) -> FloatArray:
    """0 at the outline of the drawn mesh, 1 well inside; `(h, w)` float32.

    Args:
        ids: `(h, w)` drawn triangles; the drawing keeps off the border.
        face_px: Size of the face in pixels of the drawing.
    """
    depth = cv2.distanceTransform((ids >= 0).astype(np.uint8), cv2.DIST_L2, 3)
    x = np.minimum(depth / np.float32(max(_EDGE * face_px, 1.0)), 1)
    return np.asarray(x * x * (3 - 2 * x), dtype=np.float32)


def facing_share(points: FloatArray, canonical: FloatArray) -> float:
    """1 for a face that can be drawn, falling to 0 in profile, where the mesh only guesses and a texture would smear.

    Args:
        points: `(468, 3)` the target's mesh.
        canonical: `(468, 3)` the same face from the front.
    """
    low, high = _FACES_US
    cosine = float(rigid_pose(canonical, points).rotation[2, 2])
    return float(np.clip((cosine - low) / (high - low), 0, 1))


def hair_free(
    likely: FloatArray, hair_zone: FloatArray, points: FloatArray, face_px: float
) -> FloatArray:
    """0 under the target's hair, else 1.

    Args:
        likely: `(h, w)` likelihood of skin.
        hair_zone: `(h, w)` 0 to 1, where hair may fall at all.
        points: `(n, 2 or 3)` the target's mesh; its brows are no hair.
        face_px: Size of the face in pixels.
    """
    h, w = likely.shape
    brows = filled((regions.LEFT_BROW, regions.RIGHT_BROW), points, (w, h))
    brows = dilated(brows, 2 * max(1, round(_BROW_REACH * face_px)) + 1)
    bare = blurred(eroded(np.maximum(likely, brows), 3), max(0.8, _HAIR_SOFT * face_px))
    return 1 - hair_zone * (1 - bare)


def skin_seeds(points: FloatArray, size_wh: tuple[int, int]) -> NDArray[np.bool_]:
    """Pixels that are skin on almost every face."""
    canvas = np.zeros(size_wh[::-1], np.uint8)
    for patch in regions.SKIN_PATCHES:
        hull = cv2.convexHull(points[list(patch), :2])
        cv2.fillConvexPoly(canvas, np.rint(hull).astype(np.int32), (1,))
    return canvas > 0


def eye_parts(
    points: FloatArray,
    acting: FloatArray,
    size_wh: tuple[int, int],
    *,
    face_px: float,
    kept: tuple[float, ...] = (1.0, 1.0),
) -> list[Part]:
    """The eyeballs, and the lids of an eye that is closed.

    Args:
        points: `(468, 3)` where to draw them.
        acting: `(468, 3)` the target's own mesh, which says how far the eyes are open.
        size_wh: Size of the drawing.
        face_px: Size of the face in pixels.
        kept: How much of each eyeball is the target's, 0 to 1.
    """
    parts = []
    for (contour, ring, lids), eyeball in zip(regions.EYES, kept, strict=True):
        box = box_around(points, ring, size_wh, 3 * _LID_SOFT * face_px + 2)
        closed = _closedness(acting, lids)
        if box.is_empty or max(closed, eyeball) == 0:
            continue
        share = _shrunk(soft_area(contour, points, box, max(0.6, _EYE_SOFT * face_px)))
        share *= np.float32(eyeball)
        if closed > 0:
            lid = soft_area(ring, points, box, max(0.8, _LID_SOFT * face_px))
            share = np.maximum(share, lid * np.float32(closed))
        parts.append(Part(box, share))
    return parts


def mouth_parts(
    points: FloatArray, acting: FloatArray, size_wh: tuple[int, int], face_px: float
) -> list[Part]:
    """What an open mouth shows; nothing when it is closed. Arguments as for `eye_parts`."""
    opened = _openness(acting)
    soft_px = max(0.6, _MOUTH_SOFT * face_px)
    box = box_around(points, regions.LIPS_INNER, size_wh, 3 * soft_px + 2)
    if opened == 0 or box.is_empty:
        return []
    return [Part(box, soft_area(regions.LIPS_INNER, points, box, soft_px) * np.float32(opened))]


def _shrunk(share: FloatArray) -> FloatArray:
    """Move a soft edge inwards."""
    inner = np.maximum(share - np.float32(_EYE_SHRINKS), 0)
    return np.asarray(inner / np.float32(1 - _EYE_SHRINKS), dtype=np.float32)


def _openness(points: FloatArray) -> float:
    """0 closed to 1 open, continuous, so that a mouth does not snap open in a video."""
    low, high = _MOUTH_OPENS
    share = gap_share(points, *regions.MOUTH_GAP, *regions.MOUTH_CORNERS)
    return float(np.clip((share - low) / (high - low), 0, 1))


def _closedness(points: FloatArray, lids: tuple[int, int, int, int]) -> float:
    """0 open to 1 closed, continuous."""
    low, high = _EYE_CLOSES
    return float(np.clip((high - gap_share(points, *lids)) / (high - low), 0, 1))


def box_around(
    points: FloatArray, indices: tuple[int, ...], size_wh: tuple[int, int], margin_px: float
) -> PixelBox:
    """The box of some points and a margin, cut at the drawing's border."""
    place = points[list(indices), :2]
    low, high = np.floor(place.min(0) - margin_px), np.ceil(place.max(0) + margin_px)
    return PixelBox(int(low[0]), int(low[1]), int(high[0]), int(high[1])).clipped_to(size_wh)


def soft_area(
    contour: tuple[int, ...], points: FloatArray, box: PixelBox, soft_px: float
) -> FloatArray:
    """What a contour encloses, blurred, over a box, `(h, w)` float32."""
    local = points[:, :2] - np.array([box.x0, box.y0], np.float32)
    return np.minimum(blurred(filled((contour,), local, box.size_wh), soft_px), np.float32(1))
