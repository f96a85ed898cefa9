"""One engine for each GPU; as many as wanted take turns on what is there."""

import pytest

from app.runtime.fleet import engine_seats


@pytest.mark.parametrize(
    ("wanted", "gpus", "devices"),
    [
        pytest.param(0, (), (None,), id="no GPU"),
        pytest.param(0, ("0",), (None,), id="one GPU"),
        pytest.param(0, ("0", "1", "2"), ("0", "1", "2"), id="several GPUs"),
        pytest.param(3, (), (None, None, None), id="several on the processor"),
        pytest.param(2, ("5",), (None, None), id="several on one GPU"),
        pytest.param(3, ("GPU-a", "GPU-b"), ("GPU-a", "GPU-b", "GPU-a"), id="more than GPUs"),
        pytest.param(1, ("4", "7"), ("4",), id="fewer than GPUs"),
    ],
)
def test_engines_are_placed_on_devices(
    wanted: int, gpus: tuple[str, ...], devices: tuple[str | None, ...]
) -> None:
    seats = engine_seats(wanted, gpus)
    assert tuple(seat.environment.get("CUDA_VISIBLE_DEVICES") for seat in seats) == devices
    assert [seat.name for seat in seats] == [f"engine-{number}" for number in range(len(devices))]
