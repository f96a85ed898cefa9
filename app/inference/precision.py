"""Half precision: half the memory and up to twice the speed on a GPU, where the numbers stay what they are.

Whether they do is tested for each network on the device itself, on a drawn face: no output that is not finite, and none
that differs much from single precision. A network that fails stays in single precision. Some do: their inner values
leave what 16 bits can hold, such as those of a recognizer that sums squares.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.transformers.float16 import convert_float_to_float16

from app.core.errors import AppError, ConversionError
from app.inference.convert import proof_face
from app.inference.feeds import picture_feed
from app.inference.ort_session import OrtSession
from app.inference.spec import Feeds, ModelSpec, Session

Precision = Literal["auto", "full", "half"]

_FREE_SIDE_PX = 256
_MAX_DIFFERENCE = 0.02
"""Of an output's largest value; the embedded networks reach 0.001 to 0.009."""
_MIN_COSINE = 0.9995
_PREPARING_RUNS, _TIMED_RUNS, _WORTH_IT = 3, 10, 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the self-test found.

    Attributes:
        worst: Largest difference of an output, of its largest value.
        why_not: Why half precision is not used; empty when it is.
    """

    worst: float
    why_not: str = ""

    @property
    def is_fine(self) -> bool:
        """Whether half precision may be used."""
        return not self.why_not


def halved(name: str, content: bytes) -> bytes:
    """The same network in half precision; inputs and outputs stay in single precision.

    Raises:
        ConversionError: It holds something that has no half.
    """
    try:
        model = convert_float_to_float16(onnx.load_from_string(content), keep_io_types=True)
        return bytes(model.SerializeToString(deterministic=True))
    except Exception as error:
        raise ConversionError(f"{name}: no half precision of it can be made: {error}") from error


def self_test(full: Session, half: Session, feeds: Feeds) -> Verdict:
    """Compare two precisions of a network.

    Args:
        full: In single precision.
        half: In half precision, on the same device.
        feeds: What both are run on.
    """
    wanted, got = full.run(feeds), half.run(feeds)
    worst = 0.0
    for name, values in wanted.items():
        a, b = np.float64(values).ravel(), np.float64(got[name]).ravel()
        if not np.isfinite(b).all():
            return Verdict(worst=float("inf"), why_not=f"output {name} is not finite")
        worst = max(worst, _difference(a, b))
        if worst > _MAX_DIFFERENCE or _cosine(a, b) < _MIN_COSINE:
            return Verdict(worst=worst, why_not=f"output {name} differs by {worst:.1%}")
    return Verdict(worst=worst)


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.abs(a - b).max(initial=0)) / max(float(np.abs(a).max(initial=0)), 1e-6)


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 1.0 if lengths < 1e-12 else float(a @ b) / lengths


def sample_feeds(spec: ModelSpec, session: OrtSession) -> Feeds:
    """A drawn face as a network's picture, and the same random numbers every time for its other inputs."""
    random = np.random.default_rng(0)
    feeds = {port.name: port.random(random, _FREE_SIDE_PX) for port in session.inputs}
    port = next(port for port in session.inputs if port.name == spec.input.name)
    if len(port.shape) == 4:
        sides = port.shape[2:] if spec.input.layout == "nchw" else port.shape[1:3]
        side_h, side_w = (side or _FREE_SIDE_PX for side in sides)
        face = cv2.resize(proof_face.draw(), (side_w, side_h), interpolation=cv2.INTER_AREA)
        feed = picture_feed(np.asarray(face, np.uint8)[None], spec.input).astype(port.dtype)
        if feed.shape[1:] == feeds[port.name].shape[1:]:
            feeds[port.name] = feed
    return feeds


Open = Callable[[bytes], OrtSession]


def gains(
    plain: Session,
    other: Session,
    feeds: Feeds,
    clock: Callable[[], float] = time.perf_counter,
) -> bool:
    """Whether another way to run a network gives the same numbers in at most 95 % of the time.

    Args:
        plain: The usual way.
        other: The other way; its first runs may prepare it.
        feeds: What both are run on.
        clock: Seconds.
    """
    for _ in range(_PREPARING_RUNS):
        other.run(feeds)
    if not self_test(plain, other, feeds).is_fine:
        return False
    times_s = []
    for session in (plain, other):
        before_s = clock()
        for _ in range(_TIMED_RUNS):
            session.run(feeds)
        times_s.append(clock() - before_s)
    return times_s[1] <= _WORTH_IT * times_s[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A network's session in the precision that fits it.

    Attributes:
        half: The halved file; empty where single precision was chosen.
    """

    session: OrtSession
    verdict: Verdict
    half: bytes


def chosen(spec: ModelSpec, content: bytes, open_session: Open) -> Choice:
    """Open a network in half precision if that passes the self-test, else in single precision.

    Args:
        spec: The manifest's entry.
        content: The file, in single precision.
        open_session: Opens bytes on the device.

    Raises:
        AppError: Not even single precision runs.
    """
    full = open_session(content)
    try:
        halved_content = halved(spec.id, content)
        half = open_session(halved_content)
        verdict = self_test(full, half, sample_feeds(spec, full))
    except AppError as error:
        return Choice(
            session=full, verdict=Verdict(worst=float("inf"), why_not=error.message), half=b""
        )
    if verdict.is_fine:
        return Choice(session=half, verdict=verdict, half=halved_content)
    return Choice(session=full, verdict=verdict, half=b"")
