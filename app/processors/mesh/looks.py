"""How a texture is brought to a target's look, and how that look is kept calm along a track.

Each frame's light, contrast and fineness are measured on a few thousand pixels, so they shake a little while
nothing in the scene changes; a shaking gain is a flickering face. So each frame goes only part of the way from
the look before to its own. The part grows with the distance: a lamp that is switched on is followed at once,
and nothing lags. A track begins anew after every cut, and so does its look.
"""

from collections import OrderedDict
from dataclasses import replace

import numpy as np

from app.core.types import IdentityId, TrackId
from app.processors.mesh.color import ColorMatch
from app.processors.mesh.exposure import Exposure
from app.processors.mesh.filters import FloatArray, resized

_PULL = 0.18
_FULL_PULL_AT = 0.12
"""Mean change of the gain, as a share, that is followed at once: about half a stop of a camera's steps."""

MAX_TRACKS = 64

LookKey = tuple[TrackId, IdentityId]


class FaceMemory:
    """What is carried from one frame of a track to the next.

    Args:
        moves: The face is one of a moving picture, not a still.
    """

    def __init__(self, *, moves: bool = True) -> None:
        self.moves = moves
        self._color: ColorMatch | None = None
        self._exposure: Exposure | None = None
        self._number: float | None = None
        self._pull = 1.0

    def steady_color(self, now: ColorMatch) -> ColorMatch:
        """The gains and curves to use in the next frame, given those that it asks for by itself."""
        if self._color is None:
            self._color, self._pull = now, 1.0
        else:
            h, w = now.gain.shape[:2]
            before = resized(self._color.gain, (w, h))
            change = float(np.abs(now.gain / before - 1).mean())
            self._pull = min(1.0, _PULL + change / _FULL_PULL_AT)
            self._color = _between(replace(self._color, gain=before), now, self._pull)
        return self._color

    def steady_exposure(self, now: Exposure) -> Exposure:
        """The exposure that goes with the colors, followed as fast as those; ask after `steady_color`."""
        last = now if self._exposure is None else self._exposure
        self._exposure = last.between(now, self._pull)
        return self._exposure

    def steady_number(self, now: float) -> float:
        """A number that goes with the colors, followed as fast as those; ask after `steady_color`."""
        last = now if self._number is None else self._number
        self._number = last + self._pull * (now - last)
        return self._number


class LookMemory:
    """The memory of every track; one for each thread."""

    def __init__(self) -> None:
        self._faces: OrderedDict[LookKey, FaceMemory] = OrderedDict()

    def __len__(self) -> int:
        return len(self._faces)

    def of(self, key: LookKey | None) -> FaceMemory:
        """What is known of a face; a new, empty memory without a key. The track idle for longest makes room."""
        if key is None:
            return FaceMemory(moves=False)
        memory = self._faces.setdefault(key, FaceMemory())
        self._faces.move_to_end(key)
        if len(self._faces) > MAX_TRACKS:
            self._faces.popitem(last=False)
        return memory


def _between(last: ColorMatch, now: ColorMatch, pull: float) -> ColorMatch:
    level = np.arange(256, dtype=np.float32) * np.float32(now.step)
    share = np.float32(pull)
    curves = np.column_stack([now.factor, now.offset])
    before = _curves_at(level, last.step, np.column_stack([last.factor, last.offset]))
    curves = before + share * (curves - before)
    return ColorMatch(
        gain=last.gain + share * (now.gain - last.gain),
        factor=np.ascontiguousarray(curves[:, 0]),
        offset=np.ascontiguousarray(curves[:, 1:]),
        step=now.step,
    )


def _curves_at(level: FloatArray, step: float, curves: FloatArray) -> FloatArray:
    """Curves whose entries lie `step` levels apart, `(256, k)`, read at other levels."""
    known = np.arange(256, dtype=np.float32) * np.float32(step)
    columns = [np.interp(level, known, column) for column in curves.T]
    return np.stack(columns, axis=1).astype(np.float32)
