"""What all commands share: settings out of options, and errors told in one line."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from app.config import DeviceChoice, Settings
from app.core.error_table import entry_for
from app.core.errors import AppError, UsageError
from app.processors.base import told
from app.terminal import say_error

logger = logging.getLogger(__name__)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


ModelsDirOption = Annotated[
    Path | None, typer.Option("--models-dir", help="Folder of installed models.")
]
DeviceOption = Annotated[DeviceChoice | None, typer.Option(help="Where the networks run.")]
RequireGpuFlag = Annotated[
    bool, typer.Option("--require-gpu", help="Refuse to start where only the CPU works.")
]


def settings_of(**given: object) -> Settings:
    """The settings of the environment, with what the command line says instead.

    Args:
        given: Fields of `Settings`; `None` leaves one as it is.

    Raises:
        UsageError: A value makes no sense.
    """
    try:
        settings = Settings(
            **{name: value for name, value in given.items() if value is not None}  # type: ignore[arg-type]
        )
    except ValidationError as error:
        raise UsageError(told(error.errors(), before=("settings",))) from error
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    return settings


@contextmanager
def reported(*, as_json: bool) -> Iterator[None]:
    """Turn an error into one clear line and the table's exit code."""
    try:
        yield
    except AppError as error:
        entry = entry_for(error)
        say_error(error.code, error.message or entry.text(), as_json=as_json)
        raise typer.Exit(entry.exit_code) from error
    # A reader that has seen enough (`| head`) is no fault; the command line's framework ends quietly then.
    except (typer.Exit, typer.Abort, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        logger.exception("unexpected error")
        say_error(AppError.code, f"unexpected {type(error).__name__}", as_json=as_json)
        raise typer.Exit(1) from error
