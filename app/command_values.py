"""What people type behind options, as values of the program."""

from decimal import Decimal, InvalidOperation

from app.core.errors import UsageError
from app.pipeline.spec import Timing


def parse_timing(start: str | None, end: str | None, fps: float | None) -> Timing:
    """Make a timing of `--start`, `--end` and `--fps`.

    Raises:
        UsageError: A time is none, the end is not behind the start, or the rate is out of range.
    """
    try:
        end_s = None if end is None else _seconds(end)
        return Timing(start_s=_seconds(start or "0"), end_s=end_s, fps=fps)
    except (ValueError, InvalidOperation) as error:
        raise UsageError(
            f"--start {start}, --end {end}, --fps {fps}: wanted times such as 12.5 or 1:02:03.5, "
            "the end behind the start, and a rate above 0 and up to 240"
        ) from error


def _seconds(text: str) -> float:
    *larger, seconds = text.split(":")
    total_s = Decimal(0)
    for part in larger:
        total_s = (total_s + int(part)) * 60
    return float(total_s + Decimal(seconds))
