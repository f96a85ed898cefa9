"""Cuts faces out of frames on the networks' own device: a frame goes up once, and small pictures come back.

They come back, and do not stay for the network, since the tracker compares the crops of each face of each frame by
their pixels. Beside a frame of 1080p a crop is small: a thirtieth as a picture, a seventh as a network's numbers.
"""

import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import onnxruntime as ort

from app.core.color import yuv_to_rgb_matrix
from app.core.picture import Picture
from app.core.planes import Plane
from app.core.tone import tone_curve
from app.core.types import FloatArray, RgbImage
from app.inference.convert.crops import Planes, crops_graph
from app.inference.ort_session import OrtSession
from app.inference.providers import PROVIDERS, Provider
from app.inference.residency import AtWork
from app.inference.spec import Feeds, Outputs

_INPUTS: Final[Mapping[str, tuple[Planes, tuple[str, ...]]]] = MappingProxyType(
    {"rgb24": ("rgb24", ("rgb",)), "yuv420p": ("yuv420p", ("y", "u", "v"))}
)
_KEPT_BYTES = 64 << 20
"""Of frames on the device: a window, which is looked at several times, and some."""

Work = Callable[[], Outputs]
RunWork = Callable[[Work], Outputs]


def at_once(work: Work) -> Outputs:
    """Do it in the caller's own thread."""
    return work()


@dataclass(frozen=True, slots=True, eq=False)
class _Upload:
    """A frame on the device.

    Attributes:
        first: Its first plane, as long as somebody has it; another one may come to lie in its place.
    """

    first: Callable[[], Plane | None]
    values: Mapping[str, ort.OrtValue]
    bytes: int


class DeviceCrops:
    """Crops of pictures of 8 bits, as most videos have them; for several threads.

    Args:
        provider: The networks' device, a row of the table that passed the probe.
        run: Does the work in the thread that talks to the device; the caller's own without it.
        at_work: Told of each run, by whoever counts how busy the device is.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        run: RunWork = at_once,
        at_work: AtWork = nullcontext,
    ) -> None:
        # What TensorRT would need minutes to build an engine for, the row behind it runs at once.
        behind = [row for row in PROVIDERS if row.device == provider.behind]
        self._provider = behind[0] if behind else provider
        self._run = run
        self._at_work = at_work
        self._sessions: dict[tuple[str, int], OrtSession] = {}
        self._uploads: dict[int, _Upload] = {}

    @property
    def frames_kept(self) -> int:
        """Frames that lie on the device."""
        return len(self._uploads)

    def takes(self, picture: Picture) -> bool:
        """Whether such a picture is cut here: profiles and HDR are understood by `Picture.read` only."""
        is_plain = picture.conversion is None and tone_curve(picture.tags.transfer) is None
        return picture.pixel_format.name in _INPUTS and is_plain

    def cut(self, picture: Picture, affines: FloatArray, side_px: int) -> RgbImage:
        """Cut the squares of a picture's faces.

        Args:
            picture: Nobody writes into it from now on.
            affines: `(n, 2, 3)` float32 from picture pixels to crop pixels, similarities, n at least 1.
            side_px: Side `S` of the crops.

        Returns:
            `(n, S, S, 3)` uint8 RGB.

        Raises:
            ValueError: Such a picture is not taken.
            OutOfDeviceMemoryError: The device has no room for it.
            DeviceError: The device failed, or does not take the graph.
        """
        if not self.takes(picture):
            raise ValueError(
                f"picture: got {picture.pixel_format.name}, wanted plain {' or '.join(_INPUTS)}"
            )
        outputs = self._run(lambda: self._outputs(picture, affines, side_px))
        return np.asarray(outputs["crops"], np.uint8)

    def _outputs(self, picture: Picture, affines: FloatArray, side_px: int) -> Outputs:
        with self._at_work():
            session = self._session(picture.pixel_format.name, side_px)
            values = self._uploaded(picture, session)
            return session.run_on(values, {"affine": affines, **_colors(picture)})

    def _session(self, layout: str, side_px: int) -> OrtSession:
        known = self._sessions.get((layout, side_px))
        if known is None:
            graph = crops_graph(side_px, _INPUTS[layout][0])
            opened = OrtSession(f"crops {side_px}", graph, provider=self._provider)
            known = self._sessions.setdefault((layout, side_px), opened)
        return known

    def _uploaded(self, picture: Picture, session: OrtSession) -> Mapping[str, ort.OrtValue]:
        first = picture.planes[0]
        known = self._uploads.get(id(first))
        if known is not None and known.first() is first:
            return known.values
        _, names = _INPUTS[picture.pixel_format.name]
        values = {
            name: session.upload(plane) for name, plane in zip(names, picture.planes, strict=True)
        }
        size = sum(plane.nbytes for plane in picture.planes)
        self._uploads.pop(id(first), None)
        while sum(each.bytes for each in [*self._uploads.values()]) + size > _KEPT_BYTES:
            oldest = next(iter([*self._uploads]), None)
            if oldest is None:
                break
            self._uploads.pop(oldest, None)
        self._uploads[id(first)] = _Upload(weakref.ref(first), values, size)
        return values


def _colors(picture: Picture) -> Feeds:
    if picture.pixel_format.family == "rgb":
        return {}
    matrix = picture.tags.effective_matrix(picture.size_wh[1])
    is_full = bool(picture.tags.is_full_range)
    to_rgb = yuv_to_rgb_matrix(matrix, is_full_range=is_full, bits=8).astype(np.float32)
    return {"to_rgb": to_rgb}
