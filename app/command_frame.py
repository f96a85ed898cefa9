"""What every command is wrapped in: settings of its options, errors as one clear line and an exit code."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from pydantic import ValidationError

from app.config import Settings
from app.core.error_table import entry_for
from app.core.errors import AppError, UsageError
from app.processors.base import told
from app.terminal import say_error

logger = logging.getLogger(__name__)


def settings_given(**given: object) -> Settings:
    """The settings, with what the command's options say of them; `None` says nothing.

    Raises:
        UsageError: A value is out of its range.
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
