"""A landmarker that sees crops which the networks' device has cut."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from app.core.errors import OutOfDeviceMemoryError
from app.core.picture import Picture
from app.core.types import FloatArray, RgbImage
from app.faces.landmarks import CROP_PX, CropRegion, FaceLandmarker, Located


class FaceCutter(Protocol):
    """Cuts faces where the networks run; who imports this need not load what makes its graph."""

    def takes(self, picture: Picture) -> bool:
        """Whether such a picture is cut there."""
        ...

    def cut(self, picture: Picture, affines: FloatArray, side_px: int) -> RgbImage:
        """Cut the squares of a picture's faces.

        Args:
            picture: One that it takes; nobody writes into it from now on.
            affines: `(n, 2, 3)` float32 from picture pixels to crop pixels, n at least 1.
            side_px: Side `S` of the crops.

        Returns:
            `(n, S, S, 3)` uint8 RGB.

        Raises:
            OutOfDeviceMemoryError: The device has no room for it.
        """
        ...


class DeviceLandmarker(FaceLandmarker):
    """Measures as another one does, on crops from the device; see `FaceLandmarker`.

    Args:
        measurer: Has the network, and cuts what the device does not.
        crops: Cuts.
    """

    def __init__(self, measurer: FaceLandmarker, crops: FaceCutter) -> None:
        self._measurer = measurer
        self._crops = crops

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        """See `FaceLandmarker.cut`; the faces of one picture are cut together."""
        crops = np.empty((len(items), CROP_PX, CROP_PX, 3), np.uint8)
        together: dict[int, list[int]] = defaultdict(list)
        for row, (picture, _) in enumerate(items):
            together[id(picture)].append(row)
        for rows in together.values():
            crops[rows] = self._cut([items[row] for row in rows])
        return crops

    def in_crops(self, crops: RgbImage) -> Located:
        """See `FaceLandmarker.in_crops`."""
        return self._measurer.in_crops(crops)

    def _cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        """Cut faces of one picture."""
        picture, _ = items[0]
        if not self._crops.takes(picture):
            return self._measurer.cut(items)
        affines = np.stack([region.affine for _, region in items])
        try:
            return self._crops.cut(picture, affines, CROP_PX)
        except OutOfDeviceMemoryError:
            # The networks need the room more than we do.
            return self._measurer.cut(items)
