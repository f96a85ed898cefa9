"""The file to change: a still is a video of one frame, written back in its own way."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from app.core.errors import NoFaceInTargetError
from app.core.types import Frame, Notice, Window
from app.labelling.metadata import Label
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.pipeline.spec import RenderSpec


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

    def frames(self) -> Iterator[Frame]:
        """Decode; iterate once."""
        ...

    def demand_faces(self, windows: Iterator[Window]) -> Iterator[Window]:
        """A stage that refuses what makes no sense without a face."""
        ...

    def sink(self, path: Path, spec: RenderSpec, label: Label) -> AbstractContextManager[Sink]:
        """Open the encoder; leaving it on an error leaves no whole file."""
        ...
