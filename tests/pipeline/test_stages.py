"""Frames go in windows, in order, none lost."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import CropSpec, FaceBatch, Frame, Identity, IdentityId, SourceView
from app.pipeline.stages import (
    into_windows,
    processed,
    watched,
    watched_where_changed,
    window_length,
)
from app.safety.gate import EMPTY_EVERY_S, EVERY_S, GateWatch
from tests.conftest import MakeFace, MakeFrame


def frames(count: int) -> list[Frame]:
    picture = Picture.from_rgb(np.zeros((2, 2, 3), np.uint8))
    return [Frame(index=i, pts=i, time_base=Fraction(1, 25), picture=picture) for i in range(count)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 50])
def test_windows_hold_every_frame_once_and_in_order(count: int) -> None:
    windows = list(into_windows(frames(count)))
    assert [frame.index for window in windows for frame in window] == list(range(count))
    # The first is short, so that the encoder need not wait long.
    assert [len(window) for window in windows[:-1]] == [4, *[16] * (len(windows) - 2)][
        : len(windows) - 1
    ]
    assert all(windows)


@pytest.mark.parametrize(
    ("frame_bytes", "length"),
    [
        pytest.param(0, 16, id="nothing"),
        pytest.param(1280 * 720 * 3 // 2, 16, id="720p"),
        pytest.param(1920 * 1080 * 3 // 2, 8, id="1080p"),
        pytest.param(3840 * 2160 * 3 // 2, 4, id="4K"),
        pytest.param(7680 * 4320 * 3, 4, id="8K with ten bits"),
    ],
)
def test_large_frames_go_in_short_windows(frame_bytes: int, length: int) -> None:
    assert window_length(frame_bytes) == length


def test_frames_are_taken_only_as_a_window_needs_them() -> None:
    taken: list[int] = []

    def source() -> object:
        for frame in frames(40):
            taken.append(frame.index)
            yield frame

    windows = into_windows(source())  # type: ignore[arg-type]
    next(windows)
    assert len(taken) == 4
    next(windows)
    assert len(taken) == 20


class Looks(GateWatch):
    """Notes what it is shown."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.every_s: list[float] = []
        self.is_finished = False

    def feed(self, time_s: float, picture: Picture, *, every_s: float = EVERY_S) -> None:
        self.seen.append(time_s)
        self.every_s.append(every_s)

    def finish(self) -> float:
        self.is_finished = True
        return 0.0


@pytest.mark.parametrize(
    ("changed", "is_finished"),
    [
        pytest.param((), False, id="nothing changed"),
        pytest.param((1, 3), True, id="two frames changed"),
    ],
)
def test_of_the_result_the_gate_sees_all_that_changed(
    changed: tuple[int, ...], is_finished: bool
) -> None:
    watch = Looks()
    given = [replace(f, faces_swapped=int(f.index in changed)) for f in frames(5)]
    out = list(watched_where_changed(watch)(iter([tuple(given)])))
    assert out == [tuple(given)]
    assert watch.seen == [index / 25 for index in changed]
    assert watch.is_finished is is_finished


def test_where_a_face_is_the_gate_looks_more_often(make_face: MakeFace) -> None:
    watch = Looks()
    given = [replace(f, faces=(make_face(),) if f.index == 1 else ()) for f in frames(3)]
    assert list(watched(watch)(iter([tuple(given)]))) == [tuple(given)]
    assert watch.every_s == [EMPTY_EVERY_S, EVERY_S, EMPTY_EVERY_S]
    assert watch.is_finished


class GivesUpAtTheLast:
    """Puts nothing back of the last face of a batch, as a processor does at a face that is too small."""

    def process(self, batch: FaceBatch) -> FaceBatch:
        masks = np.array(batch.masks)
        masks[-1] = 0
        return replace(batch, masks=masks)


def test_only_a_face_whose_pixels_were_put_back_counts_as_changed(
    make_face: MakeFace, make_frame: MakeFrame
) -> None:
    landmarks = np.random.default_rng(1).uniform(0, 20, (478, 3)).astype(np.float32)
    faces = tuple(
        make_face(landmarks=landmarks + np.float32(x), identity=nobody() if is_chosen else None)
        for x, is_chosen in ((10, True), (50, False), (90, True))
    )
    crop = CropSpec(template="native", size_px=16)
    (window,) = processed(GivesUpAtTheLast(), crop)(iter([(make_frame(faces=faces),)]))
    assert [face.is_changed for face in window[0].faces] == [True, False, False]
    assert window[0].faces_swapped == 1


def nobody() -> Identity:
    view = SourceView(
        crop=np.zeros((4, 4, 3), np.uint8),
        landmarks=np.zeros((478, 3), np.float32),
        normed_embedding=np.zeros(128, np.float32),
    )
    return Identity(
        id=IdentityId("x"), label="x", views=(view,), normed_embedding=view.normed_embedding
    )
