"""Writing a video file: pictures encoded with exact times, and all that came with them in the source."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import av
from av.container import InputContainer, OutputContainer

from app.core.errors import MediaError, OutputError
from app.core.types import Frame, Notice
from app.media.demux import main_video, missing_samples, opened, packets
from app.media.display_size import write_display_size
from app.media.encoders import VideoEncoding, container_of, encoder_for
from app.media.info import MediaInfo
from app.media.output_errors import is_storage_error, output_errors
from app.media.passengers import Passengers
from app.media.sniff import sniff
from app.media.video_track import VideoTrack

__all__ = ["VideoEncoding", "VideoWriter", "container_of"]

_TIMESCALES: Final = range(600, 1_000_001)
"""Units a second that are kept; below, the MP4 writer picks a multiple of its own, which is as exact."""


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
        encoder_for(encoding)
        self._path = path
        self._source_path = source
        self._info = info
        self._encoding = encoding
        self._metadata = dict(metadata)
        self._files = ExitStack()
        self._source: InputContainer | None = None
        self._output: OutputContainer | None = None
        self._track: VideoTrack | None = None
        self._passengers: Passengers | None = None
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
                source = opened(self._source_path, sniff(self._source_path))
                self._source = self._files.enter_context(source)
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
            track = self._track or self._start(frame)
            if self._passengers is not None:
                self._passengers.advance(frame.pts * frame.time_base)
            track.write(frame)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Finish and check the file, or remove it.

        Raises:
            StorageFullError: The disk is full.
            OutputError: Nothing was written, or the file does not hold every frame that was.
        """
        is_finished = False
        try:
            if exc is None:
                self._finish()
                is_finished = True
        finally:
            self._files.close()
            if not is_finished:
                self._discard()

    def _start(self, first: Frame) -> VideoTrack:
        """Open the file for its first frame; a passenger that spoils the header is left behind."""
        try:
            return self._open(first, self._source)
        except (av.FFmpegError, ValueError) as error:
            is_storage = isinstance(error, av.FFmpegError) and is_storage_error(error)
            if self._source is None or is_storage:
                raise
            self._note("media.stream_dropped", "sound and subtitles do not fit into the output")
            return self._open(first, None)

    def _open(self, first: Frame, source: InputContainer | None) -> VideoTrack:
        output = av.open(
            f"file:{self._path}",
            "w",
            format=self._encoding.container,
            container_options=self._container_options(first),
        )
        track = VideoTrack(output, first, info=self._info, encoding=self._encoding)
        passengers = None
        if source is not None:
            passengers = Passengers(
                source,
                output,
                container=self._encoding.container,
                info=self._info,
            )
        self._set_metadata(output)
        output.start_encoding()
        self._output, self._track, self._passengers = output, track, passengers
        return track

    def _set_metadata(self, output: OutputContainer) -> None:
        """Ours replace the source's, whatever the case of their letters: no tag may be there twice."""
        ours = {key.lower() for key in self._metadata}
        for key in [key for key in output.metadata if key.lower() in ours]:
            del output.metadata[key]
        output.metadata.update(self._metadata)

    def _container_options(self, first: Frame) -> dict[str, str]:
        """MP4 and MOV drop tags they have no box for unless told otherwise, and start playing late."""
        if self._encoding.container not in ("mp4", "mov"):
            # Without it the whole file moves back by the lead-in of the sound, which lies before time 0.
            return {"avoid_negative_ts": "disabled"}
        options = {"movflags": "use_metadata_tags+faststart"}
        unit = first.time_base
        if unit.numerator == 1 and unit.denominator in _TIMESCALES:
            # The second one is the unit of start offsets: 1/1000 s without it.
            options["video_track_timescale"] = str(unit.denominator)
            options["movie_timescale"] = str(unit.denominator)
        return options

    def _finish(self) -> None:
        if self._output is None or self._track is None:
            raise OutputError("not one frame was written, so there is no video")
        with output_errors():
            self._track.finish()
            if self._passengers is not None:
                self._passengers.finish()
            self._output.close()
            self._set_display_size()
        self._notices += self._track.notices
        self._notices += self._passengers.notices if self._passengers else ()
        self._check(self._track.frames)

    def _set_display_size(self) -> None:
        aspect = self._info.pixel_aspect
        if (
            aspect != 1
            and self._track is not None
            and self._encoding.container in ("matroska", "webm")
        ):
            write_display_size(self._path, self._track.size_wh, aspect)

    def _check(self, frames: int) -> None:
        """Count the frames of the finished file: writers have been known to report success without having any."""
        try:
            with opened(self._path, sniff(self._path)) as container:
                stream = main_video(container)
                held = len(stream.index_entries) if stream.frames else 0
                held = held or sum(1 for _ in packets(container, stream))
                held -= missing_samples(stream, self._path.stat().st_size)
        except MediaError as error:
            raise OutputError(f"the written file cannot be read: {error.message}") from error
        if held != frames:
            raise OutputError(f"the written file holds {held} frames, wanted {frames}")

    def _discard(self) -> None:
        if self._output is not None:
            with suppress(av.FFmpegError):
                self._output.close()
        if self._path.is_file():
            self._path.unlink()

    def _note(self, code: str, message: str) -> None:
        self._notices.append(Notice(code, message))
