"""Runs a swap network on aligned faces: `source` is a vector of the face to put on, `target` the crop to change."""

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.types import FloatArray, RgbImage, check_shape
from app.inference.feeds import picture_feed
from app.inference.spec import InputContract, ModelId, ModelZoo

_BATCH = 32


def inswapper_latents(embeddings: FloatArray, emap: FloatArray) -> FloatArray:
    """What inswapper takes as the face to put on.

    Args:
        embeddings: `(n, 512)` of ArcFace, of any length.
        emap: `(512, 512)`, the matrix that the network's file carries.

    Returns:
        `(n, 512)` float32 of unit length: each vector times the matrix.

    Source: InsightFace's `inswapper.py`, by the network's authors, and ReSwapper, which is trained so. (FaceFusion
    divides by the length that the vector had before; the matrix does not keep lengths.)
    """
    check_shape("emap", emap, (embeddings.shape[1], embeddings.shape[1]))
    return unit_latents(embeddings @ emap)


def unit_latents(embeddings: FloatArray) -> FloatArray:
    """What HyperSwap takes: the vectors, scaled to unit length."""
    length = np.linalg.norm(embeddings, axis=1, keepdims=True)
    return np.asarray(embeddings / np.maximum(length, 1e-12), np.float32)


class SwapNetwork:
    """One swap network.

    Args:
        zoo: Has the model.
        model_id: Of the network; its entry tells its crop and how pixels become numbers.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(self, zoo: ModelZoo, model_id: ModelId) -> None:
        spec = zoo.spec(model_id)
        self._contract = spec.input
        self._session = zoo.session(model_id)
        self.size_px = 128 if spec.crop is None else spec.crop.size

    def swap(self, crops: RgbImage, latents: FloatArray) -> tuple[RgbImage, NDArray[np.bool_]]:
        """Put a face on each crop.

        Args:
            crops: `(n, S, S, 3)` uint8 RGB, aligned.
            latents: `(n, 512)` float32, one a crop.

        Returns:
            `(n, S, S, 3)` uint8 RGB, and `(n,)`: false where the network gave something that is no number; such a crop
            is left as it was.
        """
        check_shape("crops", crops, (len(latents), self.size_px, self.size_px, 3))
        swapped, is_sound = np.array(crops), np.empty(len(crops), np.bool_)
        for start in range(0, len(crops), _BATCH):
            part = slice(start, start + _BATCH)
            feeds = {
                self._contract.name: picture_feed(crops[part], self._contract),
                "source": latents[part],
            }
            # The picture comes first; some networks give a mask, too.
            values = np.asarray(next(iter(self._session.run(feeds).values())), np.float32)
            is_sound[part] = np.isfinite(values).all((1, 2, 3))
            rows = np.arange(len(crops))[part][is_sound[part]]
            swapped[rows] = pixels_of(values[is_sound[part]], self._contract)
        return swapped, is_sound


def pixels_of(values: FloatArray, contract: InputContract) -> RgbImage:
    """Undo a contract: `(n, 3, H, W)` as the network gives them to `(n, H, W, 3)` uint8 RGB."""
    pixels = np.empty((len(values), *values.shape[2:], 3), np.uint8)
    for row, planes in zip(pixels, values, strict=True):
        channels = [
            # Scaled, shifted, rounded and clipped in one go.
            cv2.addWeighted(plane, std, plane, 0, mean, dtype=cv2.CV_8U)
            for plane, std, mean in zip(planes, contract.std, contract.mean, strict=True)
        ]
        cv2.merge(channels, dst=row)
    return pixels
