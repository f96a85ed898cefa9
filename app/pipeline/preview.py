"""One frame as it would come out: the same plan as a job's, over one picture, down to the label."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

from app.core.errors import NoVideoError, UsageError
from app.core.picture import Picture
from app.core.types import Frame, Notice, Window
from app.labelling.metadata import Label, still_xmp
from app.media.decode import VideoReader
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.span import TimeSpan, player_clock_s
from app.media.still import read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_types import Still
from app.pipeline.spec import RenderSpec
from app.pipeline.target import Sink

SUFFIX = ".jpg"
_SIDE_PX = 1920
_QUALITY = 88
_EARLIER_S = Fraction(1, 1000)
_BACK_S = (Fraction(1), Fraction(10))


class FrameTarget:
    """One picture of a file, in the place of the whole file."""

    def __init__(self, frame: Frame, info: MediaInfo, *, icc: bytes | None = None) -> None:
        self._frame = frame
        self._icc = icc
        self.info = info
        self.notices: tuple[Notice, ...] = ()

    @property
    def time_s(self) -> float:
        """Of the frame, as players count."""
        return self._frame.time_s

    def frames(self) -> Iterator[Frame]:
        """The one frame."""
        yield self._frame

    def demand_faces(self, windows: Iterator[Window]) -> Iterator[Window]:
        """Pass the frame on: one without a face is a preview, too."""
        return windows

    @contextmanager
    def sink(self, path: Path, spec: RenderSpec, label: Label) -> Iterator[Sink]:
        """Write a JPEG on leaving, of a size for screens."""
        sink = _OneFrame()
        yield sink
        picture = sink.frame.picture
        scale = min(1.0, _SIDE_PX / max(picture.size_wh))
        w, h = (max(1, round(side * scale)) for side in picture.size_wh)
        shown = Picture.from_rgb(picture.read(picture.box, (w, h)))
        still = Still(picture=shown, format="jpeg", icc=self._icc)
        encoding = StillEncoding(format="jpeg", quality=_QUALITY)
        write_still(path, still, shown, xmp=still_xmp(label, None), encoding=encoding)


class _OneFrame:
    def __init__(self) -> None:
        self.frame: Frame
        self.notices: tuple[Notice, ...] = ()

    def write(self, frame: Frame) -> None:
        self.frame = frame


@contextmanager
def opened_frame(
    spec: RenderSpec,
    limits: MediaLimits,
    *,
    time_s: float,
    on_open: Callable[[FrameTarget], None] = lambda _: None,
) -> Iterator[FrameTarget]:
    """Open one frame of a spec's target, as `open_plan` wants it; the spec's start, end and rate mean nothing.

    Args:
        spec: Names the target.
        limits: What is refused.
        time_s: When the frame is shown, in seconds of the whole file.
        on_open: Told which frame it is.

    Raises:
        MediaError: It cannot be read.
    """
    target = frame_target(spec.target, limits, time_s=time_s)
    on_open(target)
    yield target


def frame_target(path: Path, limits: MediaLimits, *, time_s: float) -> FrameTarget:
    """Read the frame that a player shows at a time; of a still its picture, at any time.

    Raises:
        MediaError: It cannot be read.
    """
    info = probe(path, limits)
    if info.kind == "still":
        still = read_still(path, limits)
        frame = Frame(index=0, pts=0, time_base=Fraction(1), picture=still.picture, is_cut=True)
        return FrameTarget(frame, info, icc=still.icc)
    frame = _frame_at(path, info, limits, Fraction(str(time_s)))
    shown_s = info.clock_offset_s + player_clock_s(info)
    return FrameTarget(frame, replace(info, clock_offset_s=shown_s))


def _frame_at(path: Path, info: MediaInfo, limits: MediaLimits, time_s: Fraction) -> Frame:
    # A player shows a frame until the next one is due, and a span begins at the first frame that is not before it.
    shown_s = time_s - (1 / info.rate - _EARLIER_S if info.rate else 0)
    for earlier_s in (Fraction(0), *_BACK_S, time_s):
        span = TimeSpan(start_s=max(Fraction(0), shown_s - earlier_s))
        try:
            with VideoReader(path, limits, span=span) as reader:
                part_s = reader.info.clock_offset_s - info.clock_offset_s
                wanted = islice(reader.frames(), None if earlier_s else 1)
                # Behind the last frame, since the sound may be longer than the pictures, it is the last one.
                (last,) = deque(wanted, maxlen=1)
                return _kept(last, part_s - player_clock_s(info))
        except UsageError:
            continue
    raise NoVideoError("the video has no frame that can be decoded")


def _kept(frame: Frame, part_s: Fraction) -> Frame:
    """A frame that outlives its reader, with its time as players show it."""
    time_s = Fraction(frame.pts) * frame.time_base + part_s
    return Frame(
        index=0,
        pts=time_s.numerator,
        time_base=Fraction(1, time_s.denominator),
        picture=frame.picture.copy(),
        is_cut=True,
    )
