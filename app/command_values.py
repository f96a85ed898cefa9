"""What people type behind options, as values of the program."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from app.core.errors import UsageError
from app.pipeline.spec import Action, FaceMap, PersonOrder, RenderSpec, Step, Timing
from app.processors.base import told

SavedId = Callable[[str], str]
"""From the name of a saved face to its id."""

_MAP_HELP = (
    "wanted WHO=WHAT: WHO is a number from 1, ref:PHOTO, or leftmost, rightmost, topmost, bottommost, largest, "
    "smallest (largest:2 is the second largest); WHAT is a photo, several joined by +, photo.jpg#2 for the second "
    "face in it, saved:NAME, leave or blur"
)


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


def parse_face_map(
    assignments: Sequence[str],
    *,
    others: Action | None,
    has_sources: bool,
    threshold: float | None,
    saved_id: SavedId,
) -> FaceMap[Path]:
    """Make a face map of `--map`, `--others` and `--threshold`.

    Args:
        assignments: `WHO=WHAT` each; photos for one person given several times belong together.
        others: What happens to everybody else; `None` is the face of `--source`, unless `WHO=source` says who gets it.
        has_sources: Whether there is a `--source`.
        threshold: Least likeness; `None` is the usual one.
        saved_id: Finds saved faces.

    Raises:
        UsageError: An assignment is malformed, or two contradict each other.
        NotFoundError: No saved face has a name.
    """
    if not (assignments or has_sources or others == "blur"):
        raise UsageError("say which face to put on: --source PHOTO, or --map WHO=WHAT")
    choices: dict[tuple[tuple[str, Any], ...], Any] = {}
    for assignment in assignments:
        who, what = _split(assignment)
        person, action = _person(who, assignment), _action(what, saved_id)
        key = tuple(person.items())
        if key in choices:
            action = _joined(choices[key], action, assignment)
        choices[key] = action
    values: dict[str, Any] = {
        "choices": [{**dict(person), "action": action} for person, action in choices.items()],
        "others": others
        or ("source" if has_sources and "source" not in choices.values() else "leave"),
    }
    if threshold is not None:
        values["threshold"] = threshold
    try:
        return FaceMap[Path].model_validate(values)
    except ValidationError as error:
        raise UsageError(f"--map: {told(error.errors())}; {_MAP_HELP}") from error


def _split(assignment: str) -> tuple[str, str]:
    """At the first equals sign, but of a reference photo behind its name, which may hold one."""
    who, equals, what = assignment.partition("=")
    if who.startswith("ref:"):
        ends = [at for at, letter in enumerate(assignment) if letter == "="]
        for at in ends:
            if Path(_numbered(assignment[4:at])[0]).is_file():
                who, what = assignment[:at], assignment[at + 1 :]
                break
    if not (who and equals and what):
        raise UsageError(f"--map {assignment}: {_MAP_HELP}")
    return who, what


def _person(who: str, assignment: str) -> dict[str, Any]:
    if who.isdecimal():
        return {"person": int(who)}
    if who.startswith("ref:") and len(who) > 4:
        photo, face = _numbered(who[4:])
        return {"reference": photo, "reference_face": face}
    order, _, rank = who.partition(":")
    if order in get_args(PersonOrder) and (rank.isdecimal() or order == who):
        return {"order": order, "rank": int(rank or 1)}
    raise UsageError(f"--map {assignment}: {_MAP_HELP}")


def _action(what: str, saved_id: SavedId) -> Any:
    if what in get_args(Action):
        return what
    if what.startswith("saved:"):
        return {"saved": saved_id(what[6:])}
    if Path(what).is_file() or "+" not in what:
        photo, face = _numbered(what)
        return {"photos": [photo], "face": face}
    return {"photos": what.split("+")}


def _joined(before: Any, action: Any, assignment: str) -> Any:
    """Photos given in two assignments for one person are of one face."""
    both = [each for each in (before, action) if isinstance(each, dict) and each.get("photos")]
    if len(both) < 2 or any(each.get("face") for each in both):
        raise UsageError(f"--map {assignment}: it was said before what this person gets")
    return {"photos": [photo for each in both for photo in each["photos"]]}


def _numbered(photo: str) -> tuple[str, int | None]:
    """`photo.jpg#2` is the second face of a photo, unless a file is called that."""
    match = re.fullmatch(r"(.+)#(\d+)", photo)
    if match is None or Path(photo).is_file():
        return photo, None
    return match[1], int(match[2])


def checked_spec(**values: Any) -> RenderSpec:
    """A spec of what the options say.

    Raises:
        UsageError: Two of them contradict each other.
    """
    try:
        return RenderSpec(**values)
    except ValidationError as error:
        raise UsageError(told(error.errors())) from error


def parse_steps(processors: str, assignments: list[str]) -> tuple[Step, ...]:
    """Make steps of `--processors` and `--set`.

    Args:
        processors: Ids, comma-separated.
        assignments: `processor.option=value` each; values stay text, the options' own class reads them.

    Raises:
        UsageError: An assignment is malformed, or names a processor that is not asked for.
    """
    options: dict[str, dict[str, Any]] = {
        name.strip(): {} for name in processors.split(",") if name.strip()
    }
    if not options:
        raise UsageError("--processors names no processor")
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        processor, dot, option = key.partition(".")
        if not (equals and dot and option):
            raise UsageError(f"--set {assignment}: wanted processor.option=value")
        if processor not in options:
            raise UsageError(f"--set {assignment}: {processor} is not among --processors")
        options[processor][option] = value
    return tuple(Step(processor=name, options=values) for name, values in options.items())


def _seconds(text: str) -> float:
    *larger, seconds = text.split(":")
    total_s = Decimal(0)
    for part in larger:
        total_s = (total_s + int(part)) * 60
    return float(total_s + Decimal(seconds))
