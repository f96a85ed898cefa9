"""A video read and written again without touching a frame, as every test of the way through needs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.core.types import Frame, Notice
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.span import WHOLE, TimeSpan


@dataclass(frozen=True, slots=True)
class Copied:
    """What was said on the way."""

    read: tuple[Notice, ...]
    written: tuple[Notice, ...]

    @property
    def codes(self) -> list[str]:
        """Of both."""
        return [notice.code for notice in (*self.read, *self.written)]

    @property
    def written_codes(self) -> list[str]:
        """Of the writer alone."""
        return [notice.code for notice in self.written]


def copy_video(
    source: Path,
    path: Path,
    encoding: VideoEncoding,
    *,
    span: TimeSpan = WHOLE,
    metadata: Mapping[str, str] = MappingProxyType({}),
    on_frame: Callable[[Frame], object] = lambda _: None,
) -> Copied:
    """Copy a video, or a part of it."""
    with (
        VideoReader(source, span=span) as reader,
        VideoWriter(
            path, source=source, info=reader.info, encoding=encoding, metadata=metadata
        ) as writer,
    ):
        for frame in reader.frames():
            on_frame(frame)
            writer.write(frame)
    return Copied(reader.notices, writer.notices)
