"""Writing a video: pictures encoded with exact times, and all that came with them in the source."""

from collections.abc import Mapping
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import av
from av.codec.context import Flags
from av.container import InputContainer, OutputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from app.core.errors import MediaError, OutputError, SizeChangedError
from app.core.picture import PIXEL_FORMATS, PixelFormat
from app.core.types import Frame, Notice
from app.media.demux import indexed_frames, main_video, missing_samples, opened, packets
from app.media.encodable import encodable, encoded_tags
from app.media.encoders import (
    EncoderSpec,
    VideoEncoding,
    container_of,
    encoded_format,
    encoder_for,
)
from app.media.info import MediaInfo
from app.media.output_errors import is_storage_error, output_errors
from app.media.passengers import Passengers
from app.media.sniff import sniff

__all__ = ["VideoEncoding", "VideoWriter", "container_of"]

_MIN_TIMESCALE: Final = 600
"""Below it the MP4 writer picks a multiple of its own, which is as exact and kinder to players."""


class VideoWriter:
    """A video file in the making.

    Leaving the context cleanly finishes and checks the file; leaving it by an exception removes it. Frames may be
    written from another thread than the one that enters and leaves, one thread at a time.

    Args:
        path: Exactly where to write; what is there is replaced.
        source: The file whose sound, subtitles, chapters and tags go along; `None` for none.
        info: What `probe` says of the video that the frames come from.
        encoding: How to encode.
        metadata: Tags of the file, by name; they replace the source's of the same name.

    Raises:
        UnsupportedOutputError: The container does not take the codec.
    """

    def __init__(
        self,
        path: Path,
        *,
        source: Path | None,
        info: MediaInfo,
        encoding: VideoEncoding,
        metadata: Mapping[str, str],
    ) -> None:
        self._path = path
        self._source_path = source
        self._info = info
        self._encoding = encoding
        self._metadata = dict(metadata)
        self._encoder = encoder_for(encoding)
        self._files = ExitStack()
        self._source: InputContainer | None = None
        self._track: _Track | None = None
        self._notices: list[Notice] = []

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What did not come over as it was; complete when the context is left."""
        return tuple(self._notices)

    def __enter__(self) -> Self:
        """Make sure that the file can be written, before anybody works for it.

        Raises:
            UnwritableOutputError: The folder is missing or closed to us.
            StorageFullError: The disk is full.
        """
        with output_errors():
            self._path.open("wb").close()
        if self._source_path is not None:
            try:
                kind = sniff(self._source_path)
                self._source = self._files.enter_context(opened(self._source_path, kind))
            except MediaError as error:
                self._note("media.stream_dropped", f"sound is left out: {error.message}")
        return self

    def write(self, frame: Frame) -> None:
        """Encode one frame; times must rise from frame to frame.

        Raises:
            SizeChangedError: Its picture has another size than the first one.
            StorageFullError: The disk is full.
            OutputError: The encoder or the file does not take it.
        """
        with output_errors():
            if self._track is None:
                self._track = self._started(frame)
            self._track.write(frame)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish and check the file, or remove it.

        Raises:
            StorageFullError: The disk is full.
            OutputError: The file does not hold every frame that was written.
        """
        is_finished = False
        try:
            if exc is None:
                self._finish()
                is_finished = True
        finally:
            self._close()
            if not is_finished and self._path.is_file():
                self._path.unlink()
