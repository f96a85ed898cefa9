"""Writing an animated picture out of frames with times: the counterpart of `encode` for GIF, WebP and APNG."""

from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import numpy as np
from numpy.typing import NDArray

from app.core.errors import OutputError, SizeChangedError
from app.core.picture import Picture
from app.core.types import Frame, Notice
from app.media.animation_chunks import animation_facts
from app.media.animation_files import (
    AnimationFile,
    AnimationFormat,
    ApngFile,
    Pixels,
    WebpFile,
)
from app.media.gif_file import GifFile
from app.media.info import MediaInfo
from app.media.pillow_errors import pillow_errors
from app.media.sniff import sniff
from app.media.storage import storage_errors

_FORMATS: Final[dict[str, AnimationFormat]] = {
    ".gif": "gif",
    ".webp": "webp",
    ".apng": "apng",
    ".png": "apng",
}
_USUAL_STEP_S: Final = Fraction(1, 10)
_MAX_SIDES_PX: Final[dict[AnimationFormat, int]] = {"gif": 65_535, "webp": 16_383, "apng": 1 << 30}


def animation_format_of(path: Path) -> AnimationFormat | None:
    """The kind of animated picture that a file name asks for; `None` for a video's name."""
    return _FORMATS.get(path.suffix.lower())


class AnimationWriter:
    """An animated picture in the making.

    Leaving the context cleanly finishes and checks the file; leaving it by an exception removes it.

    Args:
        path: Exactly where to write; what is there is replaced.
        info: What `probe` says of the animation or video that the frames come from.
        kind: Which format.
        quality: 0 to 100, for WebP; 100 is lossless. The others know no quality.
        xmp: The packet that goes into the file.
    """

    def __init__(
        self, path: Path, *, info: MediaInfo, kind: AnimationFormat, quality: int, xmp: bytes
    ) -> None:
        self._path = path
        self._info = info
        self._kind = kind
        self._quality = quality
        self._xmp = xmp
        self._opened: BinaryIO | None = None
        self._file: AnimationFile | None = None
        self._pending: Frame | None = None
        self._shown_ticks = 0
        self._start_s: Fraction | None = None
        self._step_s = 1 / info.rate if info.rate else _USUAL_STEP_S
        self._written = self._skipped = 0
        self._notices: dict[str, Notice] = {}

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What did not come over as it was; complete when the context is left."""
        return tuple(self._notices.values())

    def __enter__(self) -> Self:
        """Open the file.

        Raises:
            UnwritableOutputError: The folder is missing or closed to us.
            StorageFullError: The disk is full.
        """
        with storage_errors():
            self._opened = self._path.open("wb")
        if any(stream.type == "audio" for stream in self._info.streams):
            self._note("media.stream_dropped", "an animated picture has no sound; it is left out")
        return self

    def write(self, frame: Frame) -> None:
        """Take a frame, and encode the one before it.

        Raises:
            SizeChangedError: Its picture has another size than the first one.
            StorageFullError: The disk is full.
            OutputError: The encoder does not take it.
        """
        if self._pending is None:
            self._start(frame)
        elif frame.picture.size_wh != self._pending.picture.size_wh:
            raise SizeChangedError(f"frame {frame.index}: another size than before")
        else:
            self._step_s = (frame.pts - self._pending.pts) * frame.time_base
            self._emit(self._pending, frame.pts * frame.time_base)
        self._pending = frame

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish and check the file, or remove it.

        Raises:
            OutputError: Not a frame was written, or the file does not hold them.
        """
        try:
            if exc is None:
                self._finish()
        except BaseException:
            exc = exc or OutputError()
            raise
        finally:
            if self._opened is not None:
                self._opened.close()
            if exc is not None:
                self._path.unlink(missing_ok=True)
        if exc is None:
            self._check()

    def _start(self, frame: Frame) -> None:
        assert self._opened is not None
        size_wh = frame.picture.size_wh
        if max(size_wh) > _MAX_SIDES_PX[self._kind]:
            raise OutputError(
                f"size: got {size_wh}, at most {_MAX_SIDES_PX[self._kind]} pixels a side go into {self._kind}"
            )
        plays = self._info.plays if self._info.plays is not None else 0
        self._start_s = frame.pts * frame.time_base
        with storage_errors():
            if self._kind == "gif":
                self._file = GifFile(self._opened, size_wh, plays=plays, xmp=self._xmp)
            elif self._kind == "webp":
                self._file = WebpFile(
                    self._opened, size_wh, plays=plays, xmp=self._xmp, quality=self._quality
                )
            else:
                self._file = ApngFile(self._opened, size_wh, plays=plays, xmp=self._xmp)
        if frame.picture.pixel_format.bits > 8 and self._kind != "apng":
            self._note("media.depth_reduced", f"{self._kind} holds 8 bits a sample")

    def _emit(self, frame: Frame, until_s: Fraction) -> None:
        """Write a frame up to the time of the next; delays are rounded so that the error never adds up."""
        assert self._file is not None and self._start_s is not None
        end = round((until_s - self._start_s) / self._file.tick_s)
        ticks = end - self._shown_ticks
        if ticks < self._file.least_ticks:
            self._skipped += 1
            self._note(
                "media.frames_dropped",
                f"{self._kind} cannot show frames this fast; some were left out, the speed is kept",
            )
            return
        with storage_errors(), pillow_errors(self._kind):
            self._file.add(self._pixels(frame.picture), ticks)
        self._shown_ticks = end
        self._written += 1

    def _pixels(self, picture: Picture) -> Pixels:
        if self._kind == "apng":
            return animation_pixels(picture, is_deep=picture.pixel_format.bits == 16)
        pixels = animation_pixels(picture, is_deep=False)
        if self._kind == "gif" and pixels.shape[2] == 4:
            alpha = pixels[..., 3]
            if ((alpha > 0) & (alpha < 255)).any():
                self._note("media.alpha_reduced", "GIF pixels are either see-through or not")
        return pixels

    def _finish(self) -> None:
        if self._pending is None or self._file is None or self._start_s is None:
            raise OutputError("not one frame was written, so there is no animation")
        start_s = self._pending.pts * self._pending.time_base
        least_s = self._file.least_ticks * self._file.tick_s
        shown_s = self._start_s + self._shown_ticks * self._file.tick_s
        end_s = max(start_s + self._last_duration_s(start_s), shown_s + least_s)
        self._emit(self._pending, end_s)
        with storage_errors():
            self._file.finish()

    def _last_duration_s(self, start_s: Fraction) -> Fraction:
        stream = self._info.video_stream
        if stream is None or stream.duration_pts is None or stream.time_base is None:
            return self._step_s
        first = stream.start_pts or 0
        left_s = (first + stream.duration_pts) * stream.time_base - self._info.clock_offset_s
        return left_s - start_s if left_s > start_s else self._step_s

    def _check(self) -> None:
        held = animation_facts(self._path, sniff(self._path)).frames
        if held != self._written:
            self._path.unlink()
            raise OutputError(f"the written file holds {held} frames, wanted {self._written}")

    def _note(self, code: str, message: str) -> None:
        self._notices.setdefault(code, Notice(code, message))


def animation_pixels(picture: Picture, *, is_deep: bool) -> Pixels:
    """A picture as `(h, w, 3 or 4)` RGB or RGBA, 8 bits a sample, or 16 where it has them and they are wanted."""
    pixel_format = picture.pixel_format
    if pixel_format.family == "rgb" and (pixel_format.bits == 8 or is_deep):
        return picture.planes[0]
    rgb = picture.read(picture.box)
    if not pixel_format.has_alpha:
        return rgb
    alpha = picture.planes[0][..., 3] if pixel_format.family == "rgb" else picture.planes[-1]
    return np.dstack([rgb, _eight_bits(alpha, pixel_format.bits)])


def _eight_bits(alpha: NDArray[np.uint8] | NDArray[np.uint16], bits: int) -> NDArray[np.uint8]:
    top = (1 << bits) - 1
    return np.asarray((alpha.astype(np.uint32) * 255 + top // 2) // top, np.uint8)
