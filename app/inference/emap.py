"""The matrix that a swap network carries beside its weights."""

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from app.core.errors import ModelError
from app.core.types import FloatArray


def last_matrix(name: str, content: bytes) -> FloatArray:
    """The square matrix at the end of a network's constants, which no node reads.

    inswapper keeps there what turns a recognizer's vector into the face that it puts on.

    Args:
        name: Of the model, for messages.
        content: Its ONNX file.

    Returns:
        `(k, k)` float32.

    Raises:
        ModelError: There is none.
    """
    try:
        constants = onnx.load_from_string(content).graph.initializer
    except DecodeError as error:
        raise ModelError(f"{name}: not an ONNX file") from error
    shape = tuple(constants[-1].dims) if constants else ()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ModelError(
            f"{name}: its last constant has shape {shape}, wanted a square matrix; "
            "the file was simplified by a tool that dropped it: get the original one"
        )
    return np.asarray(numpy_helper.to_array(constants[-1]), np.float32)
