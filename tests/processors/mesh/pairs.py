"""Two faces over one box, all of it plain skin unless said otherwise."""

import numpy as np
from numpy.typing import NDArray

from app.processors.mesh.color import FacePair


def face_pair(
    texture: NDArray[np.uint8], target: NDArray[np.uint8], *, face_px: float, **fields: object
) -> FacePair:
    ones = np.ones(target.shape[:2], np.float32)
    values: dict[str, object] = {
        "texture": texture, "target": target, "weights": ones, "colored": ones, "alpha": ones, "face_px": face_px,
    }  # fmt: skip
    return FacePair(**{**values, **fields})  # type: ignore[arg-type]
