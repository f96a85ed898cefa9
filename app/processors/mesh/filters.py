"""OpenCV's filters with the types that go in and come out, and the few settings that all of the swap shares."""

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
LUMA = np.array([[0.299, 0.587, 0.114]], np.float32)
"""What each color adds to brightness; ITU-R BT.601."""

_Pixel = TypeVar("_Pixel", np.uint8, np.float32)


def luma_of(rgb: NDArray[np.uint8] | FloatArray) -> FloatArray:
    """Brightness of a picture, `(h, w, 3)` to `(h, w)`."""
    return np.asarray(cv2.transform(rgb.astype(np.float32, copy=False), LUMA), dtype=np.float32)


def blurred(image: NDArray[_Pixel], sigma_px: float) -> NDArray[_Pixel]:
    """Gaussian blur."""
    return np.asarray(cv2.GaussianBlur(image, (0, 0), sigma_px), dtype=image.dtype)


def blurred_on_nothing(image: FloatArray, sigma_px: float) -> FloatArray:
    """Gaussian blur with zeros beyond the border, for weighted means."""
    soft = cv2.GaussianBlur(image, (0, 0), sigma_px, borderType=cv2.BORDER_CONSTANT)
    return np.asarray(soft, dtype=np.float32)


def resized(image: NDArray[_Pixel], size_wh: tuple[int, int]) -> NDArray[_Pixel]:
    """Another size, area-true when it shrinks."""
    shrinks = size_wh[0] < image.shape[1] or size_wh[1] < image.shape[0]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, size_wh, interpolation=method), dtype=image.dtype)


def sampled(
    image: NDArray[_Pixel], place: FloatArray, method: int = cv2.INTER_LINEAR
) -> NDArray[_Pixel]:
    """The image at each place, `(h, w, 2)` pixels; its border repeated beyond it."""
    x, y = place[..., 0], place[..., 1]
    out = cv2.remap(image, x, y, method, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(out, dtype=image.dtype)


def dilated(image: FloatArray, side_px: int) -> FloatArray:
    """Highest value in a square around each pixel."""
    return np.asarray(cv2.dilate(image, np.ones((side_px, side_px), np.uint8)), dtype=np.float32)


def eroded(image: FloatArray, side_px: int) -> FloatArray:
    """Lowest value in a square around each pixel."""
    return np.asarray(cv2.erode(image, np.ones((side_px, side_px), np.uint8)), dtype=np.float32)


def filled(
    contours: tuple[tuple[int, ...], ...], points: FloatArray, size_wh: tuple[int, int]
) -> FloatArray:
    """Contours of mesh points as an area, `(h, w)` float32, 0 to 1, smooth at the edge."""
    canvas = np.zeros(size_wh[::-1], np.uint8)
    for contour in contours:
        polygon = np.rint(points[list(contour), :2] * 16).astype(np.int32)
        cv2.fillPoly(canvas, [polygon], (255,), cv2.LINE_AA, 4)
    return canvas.astype(np.float32) * np.float32(1 / 255)


def ramp(value: NDArray[np.floating], low_high: tuple[float, float]) -> FloatArray:
    """0 up to the lower bound, 1 from the upper, straight between."""
    low, high = low_high
    return np.asarray(np.clip((value - low) / (high - low), 0, 1), dtype=np.float32)
