"""Cuts crops for a network on the network's own device: the frame goes up, and nothing else of its size.

Measured by `python -m app benchmark`, and not used by jobs yet: what it gains has to be seen on a GPU first.
"""

import numpy as np

from app.core.color import yuv_to_rgb_matrix
from app.core.picture import Picture
from app.core.types import FloatArray
from app.inference.convert.crops import Planes, crops_graph
from app.inference.ort_session import OrtSession
from app.inference.providers import Provider
from app.inference.spec import Feeds, InputContract

_PLANES: dict[str, Planes] = {"rgb24": "rgb24", "yuv420p": "yuv420p"}


class DeviceCrops:
    """Crops for one network, from pictures of one layout.

    Args:
        contract: What the network expects.
        side_px: Side `S` of its crops.
        layout: `rgb24` or `yuv420p`, as `PixelFormat.name`.
        provider: The device, a row of the table that passed the probe.

    Raises:
        ValueError: Pictures of this layout are cut on the processor only.
        DeviceError: The device does not take the graph.
    """

    def __init__(
        self, contract: InputContract, side_px: int, *, layout: str, provider: Provider
    ) -> None:
        planes = _PLANES.get(layout)
        if planes is None:
            raise ValueError(f"layout: got {layout}, wanted one of {', '.join(_PLANES)}")
        self._layout = layout
        graph = crops_graph(contract, side_px, planes)
        self._session = OrtSession(f"crops {side_px}", graph, provider=provider)

    def cut(self, picture: Picture, affines: FloatArray) -> FloatArray:
        """Cut the squares of a picture's faces.

        Args:
            picture: Of the layout; in sRGB and without HDR, which only `Picture.read` understands.
            affines: `(n, 2, 3)` float32 from picture pixels to crop pixels, similarities, n at least 1.

        Returns:
            `(n, 3, S, S)` or `(n, S, S, 3)` float32, as the contract says.

        Raises:
            ValueError: The picture is another one.
            DeviceError: The device failed.
        """
        is_plain = picture.conversion is None
        if picture.pixel_format.name != self._layout or not is_plain:
            raise ValueError(f"picture: got {picture.pixel_format.name}, wanted {self._layout}")
        outputs = self._session.run({**self._feeds(picture), "affine": affines})
        return np.asarray(outputs["crops"], np.float32)

    def _feeds(self, picture: Picture) -> Feeds:
        if self._layout == "rgb24":
            return {"rgb": picture.planes[0]}
        matrix = picture.tags.effective_matrix(picture.size_wh[1])
        is_full = bool(picture.tags.is_full_range)
        to_rgb = yuv_to_rgb_matrix(matrix, is_full_range=is_full, bits=8).astype(np.float32)
        return {**dict(zip("yuv", picture.planes, strict=True)), "to_rgb": to_rgb}
