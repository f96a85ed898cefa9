"""Builds TensorRT's engines in child processes: minutes of work that may crash, and that no request should wait for."""

import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from app.inference.spec import ModelId

_LOOK_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildProgress:
    """How a build goes.

    Attributes:
        text: What the child said last when it failed; empty otherwise.
    """

    model_id: ModelId
    state: Literal["building", "done", "failed"]
    elapsed_s: float
    text: str = ""


def build_engines(
    ids: Iterable[ModelId],
    command: Sequence[str],
    *,
    on_progress: Callable[[BuildProgress], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[ModelId, ...]:
    """Build engines one after the other, each in a process of its own.

    Args:
        ids: Of the models.
        command: Builds one engine; the model's id is added.
        on_progress: Told a few times a second.
        should_stop: Ends the build under way, too.

    Returns:
        The models whose engine is there now.
    """
    built = []
    for model_id in ids:
        if should_stop():
            break
        if _build(model_id, [*command, str(model_id)], on_progress, should_stop):
            built.append(model_id)
    return tuple(built)


def _build(
    model_id: ModelId,
    command: Sequence[str],
    on_progress: Callable[[BuildProgress], None],
    should_stop: Callable[[], bool],
) -> bool:
    started_s = time.monotonic()

    def tell(state: Literal["building", "done", "failed"], text: str = "") -> None:
        elapsed_s = time.monotonic() - started_s
        on_progress(BuildProgress(model_id=model_id, state=state, elapsed_s=elapsed_s, text=text))

    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        said = ""
        while True:
            try:
                _, said = process.communicate(timeout=_LOOK_S)
                break
            except subprocess.TimeoutExpired:
                tell("building")
                if should_stop():
                    process.kill()
    if process.returncode == 0:
        tell("done")
        return True
    last = said.strip().splitlines()
    tell("failed", last[-1] if last else f"ended with {process.returncode}")
    return False
