"""Color profiles: the pixels of a still stay in its profile's space, and only a face's patch goes to sRGB and back.

Source: ICC.1:2010; the arithmetic is Little CMS's, relative colorimetric with black point compensation.
"""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

_LATTICE = np.linspace(0, 255, 9).round().astype(np.uint8)
_SAME_CODES = 2
"""A profile that moves no color of the lattice by more is sRGB under one of its many names."""


class ProfileConversion:
    """Between a profile's RGB and sRGB, in 8 bits. One thread at a time.

    Args:
        profile: An RGB profile.

    Raises:
        PyCMSError: The profile does not go both ways.
    """

    def __init__(self, profile: ImageCms.ImageCmsProfile) -> None:
        srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
        self._to_srgb = _transform(profile, srgb)
        self._from_srgb = _transform(srgb, profile)

    def to_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """See `ColorConversion`."""
        return _applied(self._to_srgb, rgb)

    def from_srgb(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """See `ColorConversion`."""
        return _applied(self._from_srgb, rgb)


def profile_conversion(icc: bytes | None) -> ProfileConversion | None:
    """How to get to sRGB; `None` where the pixels are in it, or are gray, or nobody can tell how."""
    if icc is None or icc[16:20] != b"RGB ":
        return None
    try:
        conversion = ProfileConversion(ImageCms.ImageCmsProfile(io.BytesIO(icc)))
        grid = np.stack(np.meshgrid(_LATTICE, _LATTICE, _LATTICE), -1).reshape(-1, 9, 3)
        moved = conversion.to_srgb(grid).astype(np.int16) - grid
    except (ImageCms.PyCMSError, OSError, ValueError):
        return None
    return conversion if np.abs(moved).max() > _SAME_CODES else None


def _transform(
    source: ImageCms.ImageCmsProfile,
    target: ImageCms.ImageCmsProfile,
) -> ImageCms.ImageCmsTransform:
    return ImageCms.buildTransform(
        source,
        target,
        "RGB",
        "RGB",
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )


def _applied(transform: ImageCms.ImageCmsTransform, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    image = Image.fromarray(np.ascontiguousarray(rgb))
    ImageCms.applyTransform(image, transform, inPlace=True)
    return np.array(image)
