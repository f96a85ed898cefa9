"""Between HDR code values and the SDR pictures that networks know: a curve that can be gone back exactly.

PQ and HLG values become light relative to SDR white, go from BT.2020 to BT.709 primaries, and are rolled off softly
above the knee. Nothing is clipped on the way, not even colors that BT.709 cannot show, so a change made to the SDR
picture can be carried back to the code values it came from; no change there is no change here.

Sources: SMPTE ST 2084 (PQ), ITU-R BT.2100-2 (HLG), BT.2087-0 (primaries), BT.2408-7 (SDR white at 203 cd/m2, which
is 75 % of HLG), BT.1886 (exponent of SDR displays).
"""

import cv2
import numpy as np
from numpy.typing import NDArray

PQ = 16
HLG = 18

_WHITE_CD_M2 = 203.0
_PQ_PEAK = 10_000.0 / _WHITE_CD_M2
_M1, _M2 = 2610 / 16384, 2523 / 4096 * 128
_C1, _C2, _C3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
_A, _B, _C = 0.17883277, 0.28466892, 0.55991073
_HLG_WHITE = (np.exp((0.75 - _C) / _A) + _B) / 12
_HLG_GAMMA = 1.2
_KNEE = 0.8
_DISPLAY_GAMMA = 2.4
_TABLE_SIZE = 1 << 14

_TO_BT709 = np.array(
    [
        [1.660491, -0.587641, -0.072850],
        [-0.124550, 1.132900, -0.008349],
        [-0.018151, -0.100579, 1.118730],
    ]
)
_TO_BT2020 = np.linalg.inv(_TO_BT709)

Values = NDArray[np.float64]


class ToneCurve:
    """The curve of one transfer function.

    Args:
        transfer: `PQ` or `HLG`, as H.273 numbers them.
    """

    def __init__(self, transfer: int) -> None:
        self._is_pq = transfer == PQ
        steps = np.linspace(0, 1, _TABLE_SIZE)
        self._light = (_pq_to_light(steps) if self._is_pq else _hlg_to_light(steps)).astype(
            np.float32
        )

    def seen(self, codes: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same as `to_sdr`, quick, and near enough for pictures of 8 bits."""
        indices = np.clip(codes * ((_TABLE_SIZE - 1) / 255) + 0.5, 0, _TABLE_SIZE - 1)
        light = cv2.transform(self._light[indices.astype(np.int32)], _TO_BT709)
        size = np.abs(light)
        over = np.maximum(size - _KNEE, 0) / (1 - _KNEE)
        flat = np.minimum(size, _KNEE) + (1 - _KNEE) * over / (1 + over)
        signal = cv2.pow(flat.astype(np.float32), 1 / _DISPLAY_GAMMA)
        return np.asarray(255 * np.copysign(signal, light), np.float32)

    def to_sdr(self, codes: NDArray[np.float32]) -> Values:
        """SDR values of code values.

        Args:
            codes: `(.., 3)` R'G'B', 0 to 255 from black to the highest code.

        Returns:
            `(.., 3)` BT.709 R'G'B', 0 to 255 from black to nearly white; what BT.709 cannot show lies outside.
        """
        signal = np.clip(codes.astype(np.float64) / 255, 0, 1)
        light = _pq_to_light(signal) if self._is_pq else _hlg_to_light(signal)
        return 255 * _rolled_off(light @ _TO_BT709.T)

    def to_codes(self, sdr: Values) -> Values:
        """Code values of SDR values: the way back."""
        light = np.maximum(_unrolled(sdr / 255) @ _TO_BT2020.T, 0)
        return 255 * (_light_to_pq(light) if self._is_pq else _light_to_hlg(light))

    def carried_back(
        self, codes: NDArray[np.float32], change: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """What a change of the SDR picture is in code values; exactly 0 where there is none.

        Args:
            codes: `(h, w, 3)`, the code values that the change was made to.
            change: `(h, w, 3)`, in units of the SDR picture.
        """
        changed = change.any(axis=-1)
        was = np.clip(codes[changed], 0, 255)
        carried = np.zeros_like(change)
        carried[changed] = self.to_codes(self.to_sdr(was) + change[changed]) - was
        return carried


def tone_curve(transfer: int) -> ToneCurve | None:
    """The curve of a transfer function; `None` for SDR, which needs none."""
    return ToneCurve(transfer) if transfer in (PQ, HLG) else None


def _pq_to_light(signal: Values) -> Values:
    power = signal ** (1 / _M2)
    ratio = np.maximum(power - _C1, 0) / (_C2 - _C3 * power)
    return np.asarray(_PQ_PEAK * ratio ** (1 / _M1))


def _light_to_pq(light: Values) -> Values:
    power = np.clip(light / _PQ_PEAK, 0, 1) ** _M1
    return np.asarray(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def _hlg_to_light(signal: Values) -> Values:
    scene = np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - _C) / _A) + _B) / 12)
    return np.asarray((scene / _HLG_WHITE) ** _HLG_GAMMA)


def _light_to_hlg(light: Values) -> Values:
    scene = np.clip(light ** (1 / _HLG_GAMMA) * _HLG_WHITE, 0, 1)
    bright = _A * np.log(np.maximum(12 * scene - _B, 1e-9)) + _C
    return np.asarray(np.where(scene <= 1 / 12, np.sqrt(3 * scene), bright))


def _rolled_off(light: Values) -> Values:
    """Light as the signal of an SDR display: as it is up to the knee, ever flatter above, 1 at infinity."""
    size = np.abs(light)
    over = np.maximum(size - _KNEE, 0) / (1 - _KNEE)
    flat = np.where(size > _KNEE, _KNEE + (1 - _KNEE) * over / (1 + over), size)
    return np.asarray(np.sign(light) * flat ** (1 / _DISPLAY_GAMMA))


def _unrolled(signal: Values) -> Values:
    flat = np.abs(signal) ** _DISPLAY_GAMMA
    share = np.clip((flat - _KNEE) / (1 - _KNEE), 0, 0.9999)
    size = np.where(flat > _KNEE, _KNEE + (1 - _KNEE) * share / (1 - share), flat)
    return np.asarray(np.sign(signal) * size)
