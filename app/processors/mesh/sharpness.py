"""Neither sharper nor smoother than the picture around it.

A crisp studio face in a soft video looks pasted on, and so does a soft web photo in a crisp one. The
texture is blurred when it is finer than the target. When it is coarser nothing can be won back; but what
the eye misses then is not features, it is the fine grain of skin and sensor. So the target's own grain is
laid over it, on plain skin only, and only as much as is missing.

In a moving picture that is not enough. What is fine and strong shimmers when it moves, by less than a pixel a
frame, through the pixels; where the target has lines too, one does not see it, and where the target is smooth one
does. So there fine structure is brought below the target's own strength, place by place, and plain skin farther below
and in somewhat broader lines than brows, eyes, lips and beards, by which a face is known. A recognizer, which sees a
face on a hundred pixels, hardly notices.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.filters import FloatArray, blurred, luma_of, resized

_TOO_SHARP, _TOO_SOFT = 0.87, 1.1
_BLUR_PX, _MAX_BLUR_PX = 0.75, 3.0
_MAX_BLUR = 0.01
"""In face sizes: more costs a small face its features."""

_GRAIN_SHARE = 0.004
"""Radius of grain in face sizes: pores, not wrinkles."""

_MAX_GRAIN = 7.0
"""Levels; what stands out more is a line of the target's face, and fades out up to twice this."""

_FINE_SHARE, _FINE_PX = 0.01, (0.6, 2.0)
"""Blur that parts fine structure from the rest, in face sizes, and its bounds in pixels."""

_LINES = 0.9
"""Further blur on plain skin, against that one: lines of the skin are broader than lashes. With 1.6 SFace notices."""

_CALM, _CALM_SKIN, _CALMEST = 0.6, 0.25, 0.15
"""Strength against the target's, on features and on plain skin, and at least against its own."""

_CALM_FLOOR = 0.3
"""Levels that rounding makes; a blank target does not wipe all."""

_PLACE = 0.02
"""Reach of `place by place`, in face sizes."""

_PLACE_STEP = 4
"""Pixels between two places that are looked at."""

_MIN_PIXELS = 50


def match_sharpness(
    texture: FloatArray,
    target: NDArray[np.uint8],
    *,
    skin: FloatArray,
    face_px: float,
    ratio: float,
) -> FloatArray:
    """Bring a colored texture to the target's fineness.

    Args:
        texture: `(h, w, 3)` float32, 0 to 255.
        target: `(h, w, 3)` uint8 RGB.
        skin: `(h, w)` float32: how surely both show plain skin.
        face_px: Size of the face in pixels.
        ratio: From `fineness_ratio`, of this frame or steadied over several.

    Returns:
        `(h, w, 3)` float32.
    """
    if ratio < _TOO_SHARP:
        return blurred(texture, _blur_px(ratio, face_px))
    if ratio > _TOO_SOFT:
        return texture + _grain(target, skin, ratio, face_px)[..., None]
    return texture


def fine_change(
    texture: FloatArray, target: NDArray[np.uint8], *, skin: FloatArray, face_px: float
) -> FloatArray:
    """What to add to a texture's brightness so that its fine structure is nowhere stronger than the target's.

    Args:
        texture: `(h, w, 3)` float32, 0 to 255, colored.
        target: `(h, w, 3)` uint8 RGB.
        skin: `(h, w)` float32: how surely both show plain skin.
        face_px: Size of the face in pixels.

    Returns:
        `(h, w)` float32.
    """
    luma = luma_of(texture)
    gray = np.asarray(cv2.cvtColor(target, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    ours, theirs = (_fine(each, skin, face_px) for each in (luma, gray))
    floor = np.float32(_CALM_FLOOR**2)
    share = (_energy(theirs, face_px) + floor) / (_energy(ours, face_px) + floor)
    plain = resized(skin, (share.shape[1], share.shape[0]))
    calm = np.float32(_CALM) + plain * np.float32(_CALM_SKIN - _CALM)
    factor = np.clip(calm * np.sqrt(share), np.float32(_CALMEST), np.float32(1))
    change = ours * (resized(factor, (ours.shape[1], ours.shape[0])) - np.float32(1))
    return np.asarray(change, dtype=np.float32)


def _fine(luma: FloatArray, skin: FloatArray, face_px: float) -> FloatArray:
    """Fine structure, and on plain skin somewhat broader lines, too."""
    radius_px = float(np.clip(_FINE_SHARE * face_px, *_FINE_PX))
    near = blurred(luma, radius_px)
    return luma - near + (near - blurred(near, radius_px * _LINES)) * skin


def _energy(fine: FloatArray, face_px: float) -> FloatArray:
    """Mean square around each place."""
    h, w = fine.shape
    size_wh = max(1, w // _PLACE_STEP), max(1, h // _PLACE_STEP)
    return blurred(resized(fine * fine, size_wh), max(1.0, _PLACE * face_px / _PLACE_STEP))


def fineness_ratio(texture: FloatArray, target: NDArray[np.uint8], skin: FloatArray) -> float:
    """Fine structure of the target over that of the texture on plain skin; 1 if there is too little skin."""
    where = (skin > 0.5).astype(np.uint8)
    if cv2.countNonZero(where) < _MIN_PIXELS:
        return 1.0
    ours = _fineness(texture.clip(0, 255).astype(np.uint8), where)
    return _fineness(target, where) / max(ours, 1e-3)


def _fineness(rgb: NDArray[np.uint8], where: NDArray[np.uint8]) -> float:
    luma = cv2.GaussianBlur(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), (3, 3), 0.8)
    return float(cv2.meanStdDev(cv2.Laplacian(luma, cv2.CV_16S), mask=where)[1][0, 0])


def _blur_px(ratio: float, face_px: float) -> float:
    """Radius that brings natural texture down by this ratio; grows from nothing, so that a video does not flip."""
    wanted = _BLUR_PX * float(np.sqrt((_TOO_SHARP / max(ratio, 1e-3)) ** 2 - 1)) + 1e-3
    return min(wanted, _MAX_BLUR_PX, max(_MAX_BLUR * face_px, _BLUR_PX))


def _grain(target: NDArray[np.uint8], skin: FloatArray, ratio: float, face_px: float) -> FloatArray:
    luma = np.asarray(cv2.cvtColor(target, cv2.COLOR_RGB2GRAY), dtype=np.float32)
    fine = luma - blurred(luma, float(np.clip(_GRAIN_SHARE * face_px, 0.8, 3.0)))
    fine *= np.clip(2 - np.abs(fine) / np.float32(_MAX_GRAIN), 0, 1)
    missing = np.float32(np.sqrt(1 - (_TOO_SOFT / ratio) ** 2))
    return fine * skin * missing
