"""Similarities, boxes and points. Pure functions on arrays."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.core.errors import DegenerateKpsError

FloatArray = NDArray[np.float32]

_ARCFACE = np.array(
    [
        [38.2946, 51.6963],
        [73.5318, 51.5014],
        [56.0252, 71.7366],
        [41.5493, 92.3655],
        [70.7299, 92.2041],
    ],
    np.float32,
)
_FFHQ = np.array(
    [
        [192.98138, 239.94708],
        [318.90277, 240.1936],
        [256.63416, 314.01935],
        [201.26117, 371.41043],
        [313.08905, 371.15118],
    ],
    np.float32,
)
_UNIT_TEMPLATES: Final[Mapping[str, FloatArray]] = MappingProxyType(
    {
        "arcface_112": _ARCFACE / np.float32(112),
        "arcface_128": (_ARCFACE + np.array([8, 0], np.float32)) / np.float32(128),
        "ffhq_512": _FFHQ / np.float32(512),
    }
)
"""Where the five key points lie in an aligned crop, as shares of its side.

Sources: `arcface_112` is the published reference of InsightFace's alignment (`face_align.py`), which SFace uses as
well; for crops whose side is a multiple of 128 the same file keeps the 112 pixels and adds 8 at the left and at the
right, but 16 at the bottom: `arcface_128`. `ffhq_512` are the mean points of FFHQ as facexlib has them, which the
restorers were trained with.
"""


def template_points(name: str, size_px: int) -> FloatArray:
    """The five key points of an aligned crop, `(5, 2)` float32 in its pixels.

    Args:
        name: `arcface_112`, `arcface_128` or `ffhq_512`.
        size_px: Side of the crop; any, the name's number is where the template comes from.

    Raises:
        KeyError: There is no such template.
    """
    return np.asarray(_UNIT_TEMPLATES[name] * np.float32(size_px), np.float32)


def similarity(source: FloatArray, target: FloatArray) -> FloatArray:
    """The scale, rotation and shift that best take points to points.

    Args:
        source: `(k, 2)`, k at least 2.
        target: `(k, 2)`.

    Returns:
        `(2, 3)` float32 affine from source to target; never mirrors.

    Raises:
        DegenerateKpsError: The source points lie on one spot.

    Source: Umeyama 1991, eq. 40 to 43, in two dimensions, where the solution is closed.
    """
    source64, target64 = source.astype(np.float64), target.astype(np.float64)
    source_mean, target_mean = source64.mean(0), target64.mean(0)
    a, b = source64 - source_mean, target64 - target_mean
    spread = float((a * a).sum())
    if spread < 1e-9:
        raise DegenerateKpsError(
            f"all {len(source)} key points lie on one spot; nothing can be aligned to them"
        )
    cosine = float((a * b).sum()) / spread
    sine = float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()) / spread
    linear = np.array([[cosine, -sine], [sine, cosine]])
    return np.column_stack([linear, target_mean - linear @ source_mean]).astype(np.float32)


def invert_affine(affine: FloatArray) -> FloatArray:
    """The inverse of one `(2, 3)` affine or of a stack `(n, 2, 3)`.

    Raises:
        ZeroDivisionError: One affine maps all to a line.
        numpy.linalg.LinAlgError: One of a stack does.
    """
    if affine.ndim == 2:
        # Two by two numbers are inverted by hand a dozen times as fast.
        (a, b, x), (c, d, y) = affine.tolist()
        unit = 1 / (a * d - b * c)
        a, b, c, d = d * unit, -b * unit, -c * unit, a * unit
        return np.array([[a, b, -a * x - b * y], [c, d, -c * x - d * y]], np.float32)
    linear = np.linalg.inv(affine[..., :2].astype(np.float64))
    shift = -linear @ affine[..., 2:].astype(np.float64)
    return np.concatenate([linear, shift], axis=-1).astype(np.float32)


def transform_points(points: FloatArray, affine: FloatArray) -> FloatArray:
    """Take `(k, 2)` or `(k, 3)` points through a `(2, 3)` affine; a third column is scaled alike.

    Source: for a similarity the scale is the square root of the determinant.
    """
    out = np.empty_like(points, dtype=np.float32)
    out[:, :2] = points[:, :2] @ affine[:, :2].T + affine[:, 2]
    if points.shape[1] == 3:
        out[:, 2] = points[:, 2] * np.sqrt(abs(np.linalg.det(affine[:, :2])))
    return out


def roll_rad(left_eye: FloatArray, right_eye: FloatArray) -> float:
    """Angle of the line from the viewer's left to the viewer's right eye, radians, clockwise positive."""
    delta = right_eye[:2] - left_eye[:2]
    return float(np.arctan2(delta[1], delta[0]))


def bbox_iou(a_xyxy: FloatArray, b_xyxy: FloatArray) -> FloatArray:
    """Intersection over union of every pair: `(n, 4)` and `(m, 4)` to `(n, m)`, 0 to 1."""
    corner_min = np.maximum(a_xyxy[:, None, :2], b_xyxy[None, :, :2])
    corner_max = np.minimum(a_xyxy[:, None, 2:], b_xyxy[None, :, 2:])
    overlap = np.clip(corner_max - corner_min, 0, None).prod(-1)
    area_a = (a_xyxy[:, 2:] - a_xyxy[:, :2]).prod(-1)
    area_b = (b_xyxy[:, 2:] - b_xyxy[:, :2]).prod(-1)
    union = area_a[:, None] + area_b[None, :] - overlap
    return np.asarray(overlap / np.maximum(union, 1e-9), dtype=np.float32)
