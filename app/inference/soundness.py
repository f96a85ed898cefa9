"""Networks that run and yet fail: what they give is no number, or nothing at all."""

import numpy as np

from app.core.errors import ModelError
from app.core.types import FloatArray
from app.inference.spec import ModelId


def require_sound(rows: FloatArray, model_id: ModelId) -> FloatArray:
    """The rows as they are, if each is made of numbers that are not all 0.

    A half-precision overflow or a broken driver shows in such rows; nothing that follows would notice.

    Args:
        rows: `(n, ...)`, one for each face.
        model_id: Whose they are, for the message.

    Raises:
        ModelError: A row has something that is no number, or only zeros.
    """
    axes = tuple(range(1, rows.ndim))
    if not (np.isfinite(rows).all() and rows.any(axes).all()):
        raise ModelError(
            f"{model_id}: it gave something that means nothing; try FACEDOCK_PRECISION=full, another device, or "
            "`models verify`"
        )
    return rows
