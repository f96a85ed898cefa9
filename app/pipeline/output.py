"""Where a plan ends: the file is written beside its place, labelled, read back, and only then shown.

There is no way out of a plan but through here, and no option that skips the label.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.core.errors import UnwritableOutputError, UsageError
from app.core.storage import publish, storage_refusals, sync
from app.labelling.metadata import Label, finish_video
from app.labelling.verify import verify
from app.media.info import MediaInfo

PRODUCER = "FaceDock"


def new_label() -> Label:
    """A label with an id of its own, for one output."""
    return Label(producer=PRODUCER, produce_id=uuid.uuid4().hex)


@contextmanager
def labelled_output(output: Path, label: Label, info: MediaInfo) -> Iterator[Path]:
    """Give a place to write to; what lies there at the end becomes the output, or nothing does.

    Args:
        output: The file that a person asked for; replaced if it exists.
        label: What the file has to say about itself.
        info: The target, for the kind of file.

    Yields:
        A path in the output's folder; its name says nothing of its format.

    Raises:
        UnwritableOutputError: The folder is missing or closed to us.
        StorageFullError: The disk is full.
        LabelError: The label read back is not the one that was written.
    """
    output = _real_place(output)
    # Short, so that no output name is too long for its own temporary file.
    hidden = output.with_name(f".facedock-{label.produce_id}.part")
    _claim(hidden, output)
    try:
        with storage_refusals():
            yield hidden
            if info.kind == "video":
                finish_video(hidden, label)
            verify(hidden, label)
            sync(hidden)
            publish(hidden, output)
    finally:
        hidden.unlink(missing_ok=True)


def refuse_overwriting_inputs(output: Path, inputs: tuple[Path, ...]) -> None:
    """An output never replaces what it is made of.

    Raises:
        UsageError: The output is one of the inputs.
        UnwritableOutputError: No file can be called that.
    """
    output = _real_place(output)
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise UsageError("the output is one of the input files; choose another name")


def _real_place(output: Path) -> Path:
    """Where a file of this name would really lie: links are followed, so that a link stays one.

    Raises:
        UnwritableOutputError: It is the name of a folder, a device or a pipe, is closed to us, or is too long.
    """
    try:
        place = output.resolve()
        if place.is_dir() or not place.name:
            raise UnwritableOutputError("the output is a folder; name a file in it")
        if place.exists() and not (place.is_file() and os.access(place, os.W_OK)):
            raise UnwritableOutputError(
                "what the output's name stands for is no file that can be replaced; choose another name"
            )
    except (OSError, RuntimeError) as error:
        raise UnwritableOutputError(
            "no file can be called what the output is called; choose another name"
        ) from error
    return place


def _claim(hidden: Path, output: Path) -> None:
    try:
        hidden.open("xb").close()
    except OSError as error:
        reason = "cannot be written to" if output.parent.is_dir() else "does not exist"
        raise UnwritableOutputError(
            f"the folder of {output.name} {reason}; choose another place"
        ) from error
