"""Another frame rate: each moment shows the frame that was on the screen then."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Final

from app.core.types import Frame
from app.media.info import MediaInfo

_FINE: Final = 90_000
_NTSC_RATES: Final = (24, 30, 48, 60, 120)


def exact_rate(fps: float) -> Fraction:
    """The rate that a person means: 29.97 is 30000/1001."""
    for rate in _NTSC_RATES:
        if abs(fps - rate * 1000 / 1001) < 0.006:
            return Fraction(rate * 1000, 1001)
    return Fraction(fps).limit_denominator(1001)


def info_at_rate(info: MediaInfo, rate: Fraction) -> MediaInfo:
    """What a video is at another rate."""
    frames = None if info.duration_s is None else max(1, round(info.duration_s * rate))
    return replace(info, rate=rate, frames=frames, time_base=_time_base(rate))


def at_rate(frames: Iterable[Frame], rate: Fraction, info: MediaInfo) -> Iterator[Frame]:
    """Frames at a steady rate, from the first one's time to the end of the last one.

    Args:
        frames: With rising times.
        rate: Frames a second.
        info: Of the video as it is, for how long its last frame stays.
    """
    step_s, time_base = 1 / rate, _time_base(rate)
    count, shown, last_step_s = 0, None, 1 / (info.rate or rate)
    start_s = Fraction(0)
    for frame in frames:
        at_s = frame.pts * frame.time_base
        if shown is None:
            start_s = at_s
        else:
            last_step_s = at_s - shown.pts * shown.time_base
            # A frame that comes less than half a tick late counts as there.
            until_s = at_s - frame.time_base / 2
            while start_s + count * step_s < until_s:
                yield _moved(shown, count, round((start_s + count * step_s) / time_base), time_base)
                count += 1
        shown = frame
    if shown is None:
        return
    end_s = shown.pts * shown.time_base + _last_duration_s(shown, info, last_step_s)
    while count == 0 or start_s + count * step_s < end_s - shown.time_base / 2:
        yield _moved(shown, count, round((start_s + count * step_s) / time_base), time_base)
        count += 1


def _moved(frame: Frame, index: int, pts: int, time_base: Fraction) -> Frame:
    return replace(frame, index=index, pts=pts, time_base=time_base)


def _last_duration_s(frame: Frame, info: MediaInfo, usual_s: Fraction) -> Fraction:
    stream = info.video_stream
    if stream is None or stream.duration_pts is None or stream.time_base is None:
        return usual_s
    end_s = ((stream.start_pts or 0) + stream.duration_pts) * stream.time_base - info.clock_offset_s
    left_s = end_s - frame.pts * frame.time_base
    return (
        left_s if 0 < left_s <= 2 * usual_s or (info.plays is not None and left_s > 0) else usual_s
    )


def _time_base(rate: Fraction) -> Fraction:
    """A unit in which every frame's time is whole, fine enough for a start between frames."""
    return Fraction(1, rate.numerator * -(-_FINE // rate.numerator))
