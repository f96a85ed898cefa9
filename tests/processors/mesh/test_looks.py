"""The look of a track is calm, yet follows what really changes."""

import numpy as np
import pytest

from app.core.types import IdentityId, TrackId
from app.processors.mesh.color import ColorMatch
from app.processors.mesh.looks import MAX_TRACKS, FaceMemory, LookMemory

SOMEONE = IdentityId("someone")


def match(gain: float, offset: float = 0, step: float = 1, side: int = 8) -> ColorMatch:
    return ColorMatch(
        gain=np.full((side, side, 3), gain, np.float32),
        factor=np.ones(256, np.float32),
        offset=np.arange(256, dtype=np.float32)[:, None].repeat(3, 1) * step + offset,
        step=step,
    )


def test_the_first_look_is_taken_as_it_is() -> None:
    first = match(1.3)
    assert FaceMemory().steady_color(first) is first


def test_noise_of_the_gain_shrinks() -> None:
    memory, noise = FaceMemory(), np.random.default_rng(0).normal(0, 0.01, 60)
    steady = [float(memory.steady_color(match(1 + float(each))).gain.mean()) for each in noise]
    assert np.diff(steady).std() < 0.4 * np.diff(noise).std()
    assert np.mean(steady) == pytest.approx(1, abs=0.005)


def test_a_lamp_switched_on_is_followed_at_once() -> None:
    memory = FaceMemory()
    memory.steady_color(match(1))
    assert memory.steady_color(match(1.5)).gain.mean() == pytest.approx(1.5)


def test_a_slow_fade_lags_less_than_a_hundredth() -> None:
    memory = FaceMemory()
    lags = [
        abs(float(memory.steady_color(match(level)).gain.mean()) / level - 1)
        for level in np.linspace(1, 1.6, 100).tolist()
    ]
    assert max(lags) < 0.02


def test_other_sizes_and_other_steps_of_the_curves_fit() -> None:
    memory = FaceMemory()
    memory.steady_color(match(1, step=1, side=8))
    steady = memory.steady_color(match(1.001, step=1.25, side=11))
    assert steady.gain.shape == (11, 11, 3)
    assert steady.offset[:200, 0] == pytest.approx(np.arange(200) * 1.25, abs=1e-3)


def test_a_number_follows_as_fast_as_the_colors() -> None:
    memory = FaceMemory()
    memory.steady_color(match(1))
    memory.steady_number(1)
    memory.steady_color(match(1))
    assert memory.steady_number(2) == pytest.approx(1.18)


def test_tracks_do_not_share_and_old_ones_make_room() -> None:
    memories = LookMemory()
    first = memories.of((TrackId(0), SOMEONE))
    assert memories.of((TrackId(0), SOMEONE)) is first
    assert memories.of((TrackId(0), IdentityId("another"))) is not first
    assert memories.of(None) is not memories.of(None)
    for number in range(MAX_TRACKS + 5):
        memories.of((TrackId(number + 1), SOMEONE))
    assert len(memories) == MAX_TRACKS
    assert memories.of((TrackId(0), SOMEONE)) is not first
