"""How many cores we may use."""

import os
from pathlib import Path

import pytest

from app.inference.cores import network_threads, usable_cores


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        pytest.param("100000 100000\n", 1, id="one core of quota"),
        pytest.param("50000 100000\n", 1, id="half a core still is one thread"),
        pytest.param("0 0\n", None, id="nonsense is ignored"),
        pytest.param("max 100000\n", None, id="no limit"),
    ],
)
def test_a_containers_quota_limits_the_threads(
    tmp_path: Path, quota: str, expected: int | None
) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(quota)
    assert usable_cores(file) == (expected or len(os.sched_getaffinity(0)))


def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "absent") == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (3, 1), (16, 8)])
def test_networks_leave_half_the_cores_to_decoding_and_encoding(cores: int, threads: int) -> None:
    assert network_threads(cores) == threads
