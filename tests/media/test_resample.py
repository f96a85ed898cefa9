"""Other frame rates: what is on the screen at each moment stays the same, and so does the length."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import Frame
from app.media.info import MediaInfo, StreamInfo
from app.media.resample import at_rate, exact_rate, info_at_rate
from app.media.sniff import MediaKind

UNIT = Fraction(1, 1000)


def frames_at(times_ms: Sequence[int]) -> list[Frame]:
    return [
        Frame(
            index=index,
            pts=at,
            time_base=UNIT,
            picture=Picture.from_rgb(np.full((2, 2, 3), index % 256, np.uint8)),
        )
        for index, at in enumerate(times_ms)
    ]


def info(end_ms: int, rate: Fraction = Fraction(25)) -> MediaInfo:
    stream = StreamInfo(
        index=0, type="video", codec="h264", time_base=UNIT, start_pts=0, duration_pts=end_ms
    )
    return MediaInfo(
        kind="video",
        container=MediaKind.MP4,
        size_wh=(2, 2),
        pixel_format="rgb24",
        rate=rate,
        duration_s=end_ms / 1000,
        streams=(stream,),
    )


def shown(frames: Sequence[Frame]) -> list[int]:
    return [int(frame.picture.planes[0][0, 0, 0]) for frame in frames]


@pytest.mark.parametrize(
    ("fps", "exact"),
    [
        (25, Fraction(25)),
        (29.97, Fraction(30_000, 1001)),
        (23.976, Fraction(24_000, 1001)),
        (59.94, Fraction(60_000, 1001)),
        (12.5, Fraction(25, 2)),
        (0.1, Fraction(1, 10)),
    ],
)
def test_a_rate_is_what_a_person_means(fps: float, exact: Fraction) -> None:
    assert exact_rate(fps) == exact


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        pytest.param(25, [0, 1, 2, 3, 4], id="the same"),
        pytest.param(50, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], id="twice"),
        pytest.param(Fraction(25, 2), [0, 2, 4], id="half"),
        pytest.param(10, [0, 2], id="a quarter of a frame short"),
    ],
)
def test_each_moment_shows_the_frame_of_then(rate: Fraction, wanted: list[int]) -> None:
    frames = list(at_rate(frames_at([0, 40, 80, 120, 160]), Fraction(rate), info(200)))
    assert shown(frames) == wanted
    assert [frame.index for frame in frames] == list(range(len(wanted)))
    assert [frame.pts * frame.time_base * rate for frame in frames] == list(range(len(wanted)))


def test_a_variable_rate_becomes_steady() -> None:
    frames = list(at_rate(frames_at([0, 10, 500, 600]), Fraction(10), info(700, Fraction(4))))
    assert shown(frames) == [0, 1, 1, 1, 1, 2, 3]


def test_the_start_between_two_moments_is_kept() -> None:
    frames = list(at_rate(frames_at([33, 73, 113]), Fraction(25), info(153)))
    assert [frame.pts * frame.time_base for frame in frames] == [
        Fraction(n, 1000) for n in (33, 73, 113)
    ]


def test_an_ntsc_rate_does_not_drift() -> None:
    rate = Fraction(30_000, 1001)
    frames = list(at_rate(frames_at(range(0, 100_000, 40)), rate, info(100_000)))
    assert frames[-1].pts * frames[-1].time_base == (len(frames) - 1) / rate
    assert len(frames) == pytest.approx(100 * rate, abs=1)


def test_no_frames_stay_no_frames() -> None:
    assert list(at_rate([], Fraction(25), info(0))) == []


def test_the_facts_say_the_new_rate() -> None:
    facts = info_at_rate(replace(info(2000), frames=50), Fraction(10))
    assert (facts.rate, facts.frames) == (10, 20)
