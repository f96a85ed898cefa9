"""Folds and wrinkles no deeper than the target's own contrast.

Between the broad shading, which the gains match, and the fine grain, which the sharpness match handles, lies what
is folds, freckles and wrinkles. A source that smiles brings the folds of its smile along, and a weathered one its
wrinkles; on a calm, softly lit target they stand out, and what stands out shimmers when it moves. So that band is
scaled down, place by place, to the strength that it has in the target; never up, since the target's lines belong
to another face. Brows, eyes and lips keep theirs where the target has as strong ones in the same place. It costs
0.01 of SFace cosine, so stills, which cannot shimmer, are spared.
"""

import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.filters import FloatArray, blurred, blurred_on_nothing, luma_of, resized

_WORK_SHARE = 0.5
"""The band is looked at on half the working size: what is finer is not its business."""

_BROAD = 0.05
"""Blur in face sizes beyond which it is shading."""

_AROUND = 0.05
"""Reach of `place by place`, in face sizes."""

_FLATTEST = 0.3
_LEEWAY = 1.0
_MIN_STRENGTH = 1.5
"""Levels that are there in any skin; without a floor a blank target would wipe the source."""

_MIN_WEIGHT = 50.0


def halved(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture of the working size at the size on which the band is looked at."""
    h, w = rgb.shape[:2]
    return resized(rgb, (max(1, round(w * _WORK_SHARE)), max(1, round(h * _WORK_SHARE))))


def broad_detail(half: NDArray[np.uint8] | FloatArray, face_px: float) -> FloatArray:
    """The band of brightness between grain and shading.

    Args:
        half: `(h, w, 3)` RGB from `halved`, colored or not.
        face_px: Size of the face in pixels of the working size.

    Returns:
        `(h, w)` float32.
    """
    luma = luma_of(half)
    return luma - blurred(luma, max(1.0, _BROAD * face_px * _WORK_SHARE))


def relief_change(
    ours: FloatArray, theirs: FloatArray, *, drawn: FloatArray, skin: FloatArray, face_px: float
) -> FloatArray:
    """What to add to a texture's brightness so that its folds are as strong as the target's.

    Args:
        ours: The texture's `broad_detail`, `(h, w)`.
        theirs: The target's, of the same size.
        drawn: At any size, float32, 0 to 1: where the texture is drawn.
        skin: At any size, float32: how surely both show plain skin.
        face_px: Size of the face in pixels of the working size.

    Returns:
        `(h, w)` float32, 0 where nothing is to be changed.
    """
    where, plain = (resized(each, (ours.shape[1], ours.shape[0])) for each in (drawn, skin))
    total = float(plain.sum())
    if total < _MIN_WEIGHT:
        return np.zeros_like(ours)
    overall = float((theirs * theirs * plain).sum()) / total
    around_px = max(1.0, _AROUND * face_px * _WORK_SHARE)
    energies = np.dstack([ours * ours * where, theirs * theirs * where, where])
    ours_near, theirs_near, near = np.moveaxis(blurred_on_nothing(energies, around_px), 2, 0)
    allowed = np.maximum(theirs_near / (near + 1e-3), max(overall, _MIN_STRENGTH**2))
    factor = np.sqrt(allowed / (ours_near / (near + 1e-3) + 1e-3)) * np.float32(_LEEWAY)
    return np.asarray((np.clip(factor, _FLATTEST, 1) - 1) * ours * where, dtype=np.float32)
