"""How much of the drawn face is to be seen at each pixel.

The mask falls to nothing *inside* the mesh's outline, by distance, so no rim of the texture's border can show and the jaw line,
which is the target's, stays whole. Inside, three things thin it: texels the source's photos did not show, hair over the target's
forehead, and hair over the source's. The eyeballs and the inside of an open mouth are the target's: gaze, blinks and teeth are
acting, not identity.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh import regions
from app.processors.mesh.face_model import fill_inplace
from app.processors.mesh.raster import FloatArray, IntArray
from app.processors.mesh.shape import gap_share

_EDGE = 0.08
"""Width of the edge in face sizes."""

_HAIR_SOFT = 0.012
_EYE_SOFT, _MOUTH_SOFT = 0.008, 0.012
_MOUTH_OPENS = (0.06, 0.14)
"""Gap between the lips over the width of the mouth: below it is closed, above it is open."""

_EYE_CLOSES = (0.11, 0.20)
"""Gap between the lids over the width of the eye; laughing eyes are at 0.23 and above."""

_LID_SOFT = 0.018
_LIDS = (
    (regions.LEFT_LID_RING, regions.LEFT_LIDS),
    (regions.RIGHT_LID_RING, regions.RIGHT_LIDS),
)


def edge_mask(ids: IntArray, face_px: float) -> FloatArray:
    """0 at the outline of the drawn mesh, 1 well inside; `(h, w)` float32.

    Args:
        ids: `(h, w)` drawn triangles; the drawing keeps off the border.
        face_px: Size of the face in pixels of the drawing.
    """
    depth = cv2.distanceTransform((ids >= 0).astype(np.uint8), cv2.DIST_L2, 3)
    return _smooth(depth / np.float32(max(_EDGE * face_px, 1.0)))


def bare_skin(
    likely: FloatArray, hair_zone: FloatArray, points: FloatArray, face_px: float
) -> FloatArray:
    """0 under the target's hair, else 1.

    Args:
        likely: `(h, w)` likelihood of skin.
        hair_zone: `(h, w)` 0 to 1, where hair may fall at all.
        face_px: Size of the face in pixels.
    """
    brows = np.zeros(likely.shape, np.uint8)
    for brow in (regions.LEFT_BROW, regions.RIGHT_BROW):
        fill_inplace(brows, points[list(brow), :2])
    reach = 2 * max(1, round(0.02 * face_px)) + 1
    brows = cv2.dilate(brows, np.ones((reach, reach), np.uint8))
    shrunk = cv2.erode(np.maximum(likely, brows.astype(np.float32) / 255), np.ones((3, 3), np.uint8))
    soft = cv2.GaussianBlur(shrunk, (0, 0), max(0.8, _HAIR_SOFT * face_px))
    return 1 - hair_zone * (1 - soft)


def eye_mask(points: FloatArray, size_wh: tuple[int, int], face_px: float) -> FloatArray:
    """1 on the eyeballs, and on the lids of an eye that is closed; `(h, w)` float32.

    A source with open eyes has no closed lids to offer: its lashes and eyeballs would be squeezed into a smear.
    """
    keep = _filled(regions.EYES, points, size_wh, max(0.6, _EYE_SOFT * face_px))
    for ring, lids in _LIDS:
        closed = eye_closedness(points, lids)
        if closed > 0:
            soft = _filled((ring,), points, size_wh, max(0.8, _LID_SOFT * face_px))
            keep = np.maximum(keep, soft * np.float32(closed))
    return keep


def eye_closedness(points: FloatArray, lids: tuple[int, int, int, int]) -> float:
    """0 open to 1 closed, continuous.

    Args:
        points: `(n, 2 or 3)` float32.
        lids: Upper lid, lower lid, outer corner, inner corner.
    """
    low, high = _EYE_CLOSES
    return float(np.clip((high - gap_share(points, *lids)) / (high - low), 0, 1))


def mouth_mask(points: FloatArray, size_wh: tuple[int, int], face_px: float) -> FloatArray:
    """1 inside an open mouth, `(h, w)` float32; 0 everywhere when it is closed."""
    open_share = mouth_openness(points)
    if open_share == 0:
        return np.zeros(size_wh[::-1], np.float32)
    soft_px = max(0.6, _MOUTH_SOFT * face_px)
    return _filled((regions.LIPS_INNER,), points, size_wh, soft_px) * np.float32(open_share)


def mouth_openness(points: FloatArray) -> float:
    """0 closed to 1 open, continuous, so that a mouth does not snap open in a video."""
    low, high = _MOUTH_OPENS
    share = gap_share(points, *regions.MOUTH_GAP, *regions.MOUTH_CORNERS)
    return float(np.clip((share - low) / (high - low), 0, 1))


def skin_seeds(points: FloatArray, size_wh: tuple[int, int]) -> NDArray[np.bool_]:
    """Pixels that are skin on almost every face."""
    canvas = np.zeros(size_wh[::-1], np.uint8)
    for patch in regions.SKIN_PATCHES:
        hull = cv2.convexHull(points[list(patch), :2].astype(np.float32))
        cv2.fillConvexPoly(canvas, np.rint(hull).astype(np.int32), (1,))
    return canvas > 0


def _filled(
    contours: tuple[tuple[int, ...], ...],
    points: FloatArray,
    size_wh: tuple[int, int],
    soft_px: float,
) -> FloatArray:
    canvas = np.zeros(size_wh[::-1], np.uint8)
    for contour in contours:
        fill_inplace(canvas, points[list(contour), :2])
    return cv2.GaussianBlur(canvas, (0, 0), soft_px).astype(np.float32) / 255


def _smooth(x: FloatArray) -> FloatArray:
    """Third-degree step from 0 to 1: no kink at either end that the eye would find."""
    x = np.clip(x, 0, 1)
    return np.asarray(x * x * (3 - 2 * x), dtype=np.float32)
