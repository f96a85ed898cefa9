"""Color profiles: the pixels of a still stay in its profile's space, and only a face's patch goes to sRGB and back.

Source: ICC.1:2010; the arithmetic is Little CMS's, relative colorimetric with black point compensation.
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

_LATTICE = np.linspace(0, 255, 9).round().astype(np.uint8)
_MODES = {b"RGB ": "RGB", b"GRAY": "L"}
_SAME_CODES = 2
"""A profile that moves no color of the lattice by more is sRGB under one of its many names."""


class ProfileConversion:
    """Between a profile's RGB or gray and sRGB, in 8 bits. One thread at a time.

    Args:
        profile: An RGB or gray profile.
        mode: `RGB`, or `L` for gray; gray too is given and taken as three channels, all the same.

    Raises:
        PyCMSError: The profile does not go both ways.
    """

    def __init__(self, profile: ImageCms.ImageCmsProfile, mode: str = "RGB") -> None:
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
        self._is_gray = mode == "L"
        self._to_srgb = _transform(profile, srgb, mode, "RGB")
        self._from_srgb = _transform(srgb, profile, "RGB", mode)

    def to_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """See `ColorConversion`."""
        return _applied(self._to_srgb, rgb[..., 0] if self._is_gray else rgb)

    def from_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """See `ColorConversion`."""
        own = _applied(self._from_srgb, rgb)
        return np.stack([own] * 3, axis=-1) if self._is_gray else own


def profile_conversion(icc: bytes | None) -> ProfileConversion | None:
    """How to get to sRGB; `None` where the pixels are in it, or nobody can tell how."""
    mode = None if icc is None else _MODES.get(icc[16:20])
    if icc is None or mode is None:
        return None
    try:
        conversion = ProfileConversion(ImageCms.ImageCmsProfile(io.BytesIO(icc)), mode)
        grid = _grays() if mode == "L" else _lattice()
        moved = conversion.to_srgb(grid).astype(np.int16) - grid
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
    return conversion if np.abs(moved).max() > _SAME_CODES else None


def _lattice() -> NDArray[np.uint8]:
    return np.stack(np.meshgrid(_LATTICE, _LATTICE, _LATTICE), -1).reshape(-1, 9, 3)


def _grays() -> NDArray[np.uint8]:
    return np.stack([_LATTICE[None]] * 3, axis=-1)


def _transform(
    source: ImageCms.ImageCmsProfile, target: ImageCms.ImageCmsProfile, before: str, after: str
) -> ImageCms.ImageCmsTransform:
    return ImageCms.buildTransform(
        source,
        target,
        before,
        after,
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _applied(transform: ImageCms.ImageCmsTransform, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    image = ImageCms.applyTransform(Image.fromarray(np.ascontiguousarray(pixels)), transform)
    assert image is not None  # only in place gives nothing back
    return np.array(image)
