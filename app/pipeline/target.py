"""The file to change: a still is a video of one frame, written back in its own way."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np

from app.core.errors import NoFaceInTargetError, NoSuchPersonError
from app.core.picture import Picture
from app.core.types import Frame, Notice, Window
from app.labelling.metadata import Label, still_xmp, video_metadata
from app.media.animation_write import AnimationWriter, animation_format_of
from app.media.decode import VideoReader
from app.media.encode import VideoWriter
from app.media.encoder_choice import chosen_codec
from app.media.encoders import VideoEncoding, container_of
from app.media.hardware_decode import decoding_device
from app.media.info import MediaInfo
from app.media.like_input import quality_like_input
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.resample import at_rate, exact_rate, info_at_rate
from app.media.span import TimeSpan
from app.media.still import output_format, read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_types import Still
from app.media.tonemap import in_sdr, info_in_sdr
from app.pipeline.spec import RenderSpec, Timing

WHOLE_AS_IT_IS = Timing()
"""All frames, with their times."""


class Sink(Protocol):
    """Takes the finished frames."""

    def write(self, frame: Frame) -> None:
        """Encode one frame."""
        ...

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was noticed while writing."""
        ...


class Target(Protocol):
    """The file to change, opened."""

    @property
    def info(self) -> MediaInfo:
        """What the file is."""
        ...

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was noticed while reading."""
        ...

    def frames(self) -> Iterator[Frame]:
        """Decode; iterate once."""
        ...

    def demand_faces(self, windows: Iterator[Window]) -> Iterator[Window]:
        """A stage that refuses what makes no sense without a face."""
        ...

    def sink(self, path: Path, spec: RenderSpec, label: Label) -> AbstractContextManager[Sink]:
        """Open the encoder; leaving it on an error leaves no whole file."""
        ...


@contextmanager
def open_target(
    path: Path,
    limits: MediaLimits,
    *,
    timing: Timing = WHOLE_AS_IT_IS,
    makes_sdr: bool = False,
    uses_hardware: bool = False,
) -> Iterator[Target]:
    """Open the file to change; a still has no time, so timing means nothing for it.

    Args:
        path: The file.
        limits: What is refused.
        timing: The part and the rate that are wanted.
        makes_sdr: Bring HDR video into the range of usual screens.
        uses_hardware: Decode on the graphics card where that gives the same frames.

    Raises:
        UsageError: No frame lies in the part that is wanted.
        MediaError: It cannot be read.
    """
    info = probe(path, limits)
    if info.kind == "still":
        yield StillTarget(read_still(path, limits), info)
        return
    end_s = None if timing.end_s is None else _exact_s(timing.end_s)
    span = TimeSpan(start_s=_exact_s(timing.start_s), end_s=end_s)
    device = decoding_device(path, info.container) if uses_hardware else None
    with VideoReader(path, limits, span=span, probed=info, device=device) as reader:
        rate = None if timing.fps is None else exact_rate(timing.fps)
        yield VideoTarget(path, reader, rate=rate, makes_sdr=makes_sdr)


def open_wanted_target(spec: RenderSpec, limits: MediaLimits) -> AbstractContextManager[Target]:
    """Open the file to change, as a request wants it."""
    makes_sdr = spec.encoding.dynamic_range == "sdr"
    return open_target(
        spec.target,
        limits,
        timing=spec.timing,
        makes_sdr=makes_sdr,
        uses_hardware=spec.encoding.encoder == "hardware",
    )


def _exact_s(seconds: float) -> Fraction:
    """What a person wrote: 0.1 is a tenth, not the nearest number to it that a computer has."""
    return Fraction(str(seconds))


class StillTarget:
    """A picture, as a video of one frame."""

    def __init__(self, still: Still, info: MediaInfo) -> None:
        self._still = still
        self.info = info
        self.notices: tuple[Notice, ...] = still.notices

    def frames(self) -> Iterator[Frame]:
        """The one frame."""
        yield Frame(index=0, pts=0, time_base=Fraction(1), picture=self._still.picture, is_cut=True)

    def demand_faces(self, windows: Iterator[Window]) -> Iterator[Window]:
        """Pass the frame on, unless nobody in it gets a face.

        Raises:
            NoFaceInTargetError: There is no face.
            NoSuchPersonError: There are faces, and all of them are to be left as they are.
        """
        for window in windows:
            faces = [face for frame in window for face in frame.faces]
            if not faces:
                raise NoFaceInTargetError(
                    "no face was found in the picture to change; "
                    "try one where the face is larger, sharper or less turned"
                )
            if not any(face.identity or face.is_blurred for face in faces):
                raise NoSuchPersonError(
                    f"the picture shows {len(faces)} people, and none of them is to be changed: nobody is enough like "
                    "a reference photo, or all are to be left alone"
                )
            yield window

    @contextmanager
    def sink(self, path: Path, spec: RenderSpec, label: Label) -> Iterator[Sink]:
        """Write the picture on leaving, in the target's way."""
        # Asked first: a name that no labeled picture can have need not cost a swap.
        wanted = output_format(spec.output, self._still.format)
        sink = _StillSink()
        yield sink
        encoding = StillEncoding(format=wanted, quality=spec.encoding.quality)
        xmp = still_xmp(label, self._still.xmp)
        sink.notices = write_still(path, self._still, sink.picture, xmp=xmp, encoding=encoding)


class _StillSink:
    def __init__(self) -> None:
        self.picture = Picture.from_rgb(np.zeros((1, 1, 3), np.uint8))
        self.notices: tuple[Notice, ...] = ()

    def write(self, frame: Frame) -> None:
        self.picture = frame.picture


class VideoTarget:
    """A video, or an animated picture."""

    def __init__(
        self,
        path: Path,
        reader: VideoReader,
        *,
        rate: Fraction | None = None,
        makes_sdr: bool = False,
    ) -> None:
        self._path = path
        self._reader = reader
        self._rate = rate
        self._makes_sdr = makes_sdr

    @property
    def info(self) -> MediaInfo:
        """What the file is, or the part of it, at the rate and in the range that are wanted."""
        info = info_in_sdr(self._reader.info) if self._makes_sdr else self._reader.info
        return info if self._rate is None else info_at_rate(info, self._rate)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was noticed while reading."""
        return self._reader.notices

    def frames(self) -> Iterator[Frame]:
        """Decode; iterate once."""
        frames = in_sdr(self._reader.frames()) if self._makes_sdr else self._reader.frames()
        return frames if self._rate is None else at_rate(frames, self._rate, self._reader.info)

    def demand_faces(self, windows: Iterator[Window]) -> Iterator[Window]:
        """Pass everything on: a frame without a face comes out as it is."""
        return windows

    @contextmanager
    def sink(self, path: Path, spec: RenderSpec, label: Label) -> Iterator[Sink]:
        """Encode as frames come; the original sound is carried along."""
        animation = animation_format_of(spec.output)
        if animation is not None:
            with AnimationWriter(
                path,
                info=self.info,
                kind=animation,
                quality=spec.encoding.quality,
                xmp=still_xmp(label, None),
            ) as animated:
                yield animated
            return
        container = container_of(spec.output)
        encoding = VideoEncoding(
            container=container,
            codec=chosen_codec(spec.encoding.codec, container=container, info=self.info),
            quality=spec.encoding.quality,
            preset=spec.encoding.preset,
            uses_hardware=spec.encoding.encoder == "hardware",
        )
        if spec.encoding.codec == "like-input" and encoding.codec == self._reader.info.codec:
            quality = quality_like_input(self._path, self._reader.info, encoding)
            encoding = replace(encoding, quality=quality)
        with VideoWriter(
            path,
            source=self._path if self.info.plays is None else None,
            info=self.info,
            encoding=encoding,
            metadata=video_metadata(label),
        ) as writer:
            yield writer
