"""How many engine processes there are, and what each may use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSeat:
    """One engine's place.

    Attributes:
        number: From 0.
        environment: What limits the engine to its device.
    """

    number: int
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its line in the register, and the name of its socket."""
        return f"engine-{self.number}"


def engine_seats(wanted: int, gpus: Sequence[str]) -> tuple[EngineSeat, ...]:
    """Place engines on devices, in turns where there are more engines than devices.

    Args:
        wanted: Engines; 0 is one for each GPU, or one.
        gpus: How `CUDA_VISIBLE_DEVICES` calls each GPU.
    """
    numbers = range(wanted or max(1, len(gpus)))
    if len(gpus) < 2:
        # The one device, or none, is what an engine finds anyway.
        return tuple(EngineSeat(number=number) for number in numbers)
    return tuple(
        EngineSeat(number=n, environment={"CUDA_VISIBLE_DEVICES": gpus[n % len(gpus)]})
        for n in numbers
    )
