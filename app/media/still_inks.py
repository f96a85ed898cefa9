"""Pictures of inks (CMYK): what they show is read as RGB, and where that is changed, inks are found for it.

All other pixels keep the inks that they have. One color can be printed in many ways, with much black or with little; a
pixel that is changed a little keeps the mixture that it had, so that a face's soft border leaves no line in any ink.

Source: ICC.1:2010; the arithmetic is Little CMS's, relative colorimetric with black point compensation. Without a
profile, plain subtraction.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from app.core.planes import Plane

_INKS = "CMYK"
_RGB = "RGB"
_ROWS = 128
_WHOLE_CHANGE = 24
"""A pixel that differs by so many of 255 in some channel is a new color, to be mixed as the profile would."""

Convert = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InkConversion:
    """Between the inks of a profile and sRGB, in 8 bits.

    Attributes:
        to_rgb: `(h, w, 4)` inks, 255 is full, to `(h, w, 3)` RGB.
        to_inks: The way back; a color that the inks cannot make becomes the nearest that they can.
        icc: The profile; `None` is plain subtraction.
    """

    to_rgb: Convert
    to_inks: Convert
    icc: bytes | None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Inks:
    """A picture as it would be printed.

    Attributes:
        pixels: `(H, W, 4)` uint8, upright, 255 is full.
        rgb: `(H, W, 3)` uint8: what they show.
        conversion: Between the two.
    """

    pixels: NDArray[np.uint8]
    rgb: NDArray[np.uint8]
    conversion: InkConversion

    def changed_to(self, rgb: Plane) -> Plane:
        """The inks of a picture that was made of this one; where it is the same they stay as they are.

        Args:
            rgb: `(H, W, 3)` uint8.
        """
        out = self.pixels.copy()
        for top in range(0, len(out), _ROWS):
            rows = slice(top, top + _ROWS)
            by_channel = cv2.split(cv2.absdiff(rgb[rows], self.rgb[rows]))
            change = np.asarray(np.maximum.reduce(by_channel), np.uint8)
            if change.any():
                columns = np.flatnonzero(change.any(axis=0))
                box = rows, slice(int(columns[0]), int(columns[-1]) + 1)
                out[box] = self._mixed(box, np.asarray(rgb[box], np.uint8), change[:, box[1]])
        return cast("Plane", out)

    def _mixed(
        self, box: tuple[slice, slice], rgb: NDArray[np.uint8], change: NDArray[np.uint8]
    ) -> NDArray[np.uint8]:
        """The profile's own mixture of the new color, with what was special about the old one as far as it is there."""
        before = self.pixels[box]
        special = before.astype(np.float32) - self.conversion.to_inks(self.rgb[box])
        kept = np.clip(1 - change.astype(np.float32) / _WHOLE_CHANGE, 0, 1)[..., None]
        mixed = self.conversion.to_inks(rgb) + kept * special
        new = np.clip(np.rint(mixed), 0, 255).astype(np.uint8)
        return np.where(change[..., None] > 0, new, before)


def ink_conversion(icc: bytes | None) -> InkConversion:
    """How to get from inks to RGB and back: through a usable profile, else by subtraction."""
    if icc is not None and icc[16:20] == b"CMYK":
        try:
            return _by_profile(icc)
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass
    return InkConversion(to_rgb=_subtracted, to_inks=_added, icc=None)


def _by_profile(icc: bytes) -> InkConversion:
    inks = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    return InkConversion(
        to_rgb=_transform((inks, _INKS), (srgb, _RGB)),
        to_inks=_transform((srgb, _RGB), (inks, _INKS)),
        icc=icc,
    )


def _transform(
    source: tuple[ImageCms.ImageCmsProfile, str], target: tuple[ImageCms.ImageCmsProfile, str]
) -> Convert:
    transform = ImageCms.buildTransform(
        source[0],
        target[0],
        source[1],
        target[1],
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )

    def convert(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        image = Image.fromarray(np.ascontiguousarray(pixels), source[1])
        made = ImageCms.applyTransform(image, transform)
        assert made is not None  # only in place gives nothing back
        return np.array(made)

    return convert


def _subtracted(inks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """What white paper shows that each ink takes its share of."""
    return np.asarray(Image.fromarray(inks, _INKS).convert(_RGB))


def _added(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Inks for a color, with half of the black that it can have."""
    light = rgb.astype(np.float32) / 255
    black = (1 - light.max(axis=-1, keepdims=True)) / 2
    colors = 1 - light / (1 - black)
    inks = np.concatenate([colors, black], axis=-1) * 255
    return np.asarray(np.rint(inks), np.uint8)
