"""What the command line shows: lines, tables, JSON and bars."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import typer
from rich.console import Console, Group
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from app.core.types import Notice
from app.inference.progress import PullProgress
from app.pipeline.people import PeopleFound
from app.pipeline.progress import Busy, Progress, RenderResult, WorkPart

_PARTS: Mapping[WorkPart, str] = MappingProxyType(
    {
        "decode": "reading",
        "find_faces": "finding faces",
        "change_faces": "changing faces",
        "device": "networks",
        "encode": "writing",
    }
)


def say_error(code: str, message: str, *, as_json: bool) -> None:
    """One line for people on standard error; for programs, JSON on standard output too."""
    if as_json:
        print_json({"error": {"code": code, "message": message}})
    typer.echo(f"error [{code}]: {message}", err=True)


def print_json(value: object) -> None:
    """One line of JSON on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """A table of names and values."""
    table = Table(title=title, show_header=False)
    for name, value in facts.items():
        table.add_row(
            name,
            json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value),
        )
    Console().print(table)


def print_people(title: str, found: PeopleFound) -> None:
    """A table of people: their number, when and how often they are seen, how large."""
    table = Table(
        "#", "seen", "share", "face width px", title=f"{title}: {len(found.people)} people"
    )
    for person in found.people:
        smallest, largest = person.size_range_px
        table.add_row(
            str(person.number),
            f"{person.first_s:.1f} to {person.last_s:.1f} s" if found.duration_s else "",
            f"{person.share:.0%}",
            f"{smallest:.0f} to {largest:.0f}",
        )
    Console().print(table)


def show_result(result: RenderResult, *, as_json: bool) -> None:
    """What a job has made, and what is to be known of it."""
    show_notices(result.notices)
    if as_json:
        print_json(
            {
                "output": str(result.output),
                "frames": result.frames,
                "frames_swapped": result.frames_swapped,
                "faces_swapped": result.faces_swapped,
                "busy": dict(result.busy),
                "people": [{"who": each.who, "frames": each.frames} for each in result.people],
                "warnings": [_notice_json(notice) for notice in result.notices],
            }
        )
        return
    left = result.frames - result.frames_swapped
    without = f", {left} without a face to change" if left else ""
    for each in result.people:
        typer.echo(f"{each.who}: changed in {each.frames} of {result.frames} frames")
    typer.echo(
        f"swapped {result.frames_swapped} of {result.frames} frames{without}: {result.output}"
    )
    if result.frames > 1 and result.busy:
        typer.echo(f"share of the time at work: {busy_words(result.busy)}")


def busy_words(busy: Busy) -> str:
    """How busy each part of a job is, in words; the busiest part sets the pace."""
    return " · ".join(f"{_PARTS[part]} {share:.0%}" for part, share in busy.items())


def show_notices(notices: Iterable[Notice]) -> None:
    """What is to be known of something that was made all the same, on standard error."""
    for notice in notices:
        typer.echo(f"note [{notice.code}]: {notice.message}", err=True)


def _notice_json(notice: Notice) -> dict[str, str]:
    return {"code": notice.code, "message": notice.message}


class _BarsAndWords(Bars):
    """Bars with a line of text below them."""

    words = ""

    def get_renderable(self) -> Group:
        """What is drawn, again and again."""
        return Group(*self.get_renderables(), Text(self.words, style="dim"))


@contextmanager
def shown_progress(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar with frames, speed and time left, and below it what everybody is busy with; on standard error."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[frames]}  {task.fields[speed]}  {task.fields[left]}"),
    )
    console = Console(stderr=True)
    with _BarsAndWords(
        *columns, console=console, disable=quiet or not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("preparing", total=None, frames="", speed="", left="")

        def show(progress: Progress) -> None:
            total = progress.frames_total
            left = progress.remaining_s
            if progress.busy:
                bar.words = f"at work: {busy_words(progress.busy)}"
            bar.update(
                task,
                description="swapping",
                completed=progress.frames_done,
                total=total,
                frames=f"{progress.frames_done}/{total if total is not None else '?'} frames",
                speed=f"{progress.fps:.1f} fps",
                left="" if left is None else f"{left:.0f} s left",
            )

        yield show


@contextmanager
def shown_pull(*, quiet: bool) -> Iterator[Callable[[PullProgress], None]]:
    """A bar for each thing that is fetched or converted, on standard error."""
    console = Console(stderr=True)
    with Bars(console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(step: PullProgress) -> None:
            if step.phase == "done":
                bar.console.print(f"installed {step.what}")
            label = f"{step.phase} {step.what}".strip()
            if label not in tasks:
                tasks[label] = bar.add_task(label, total=step.bytes_total)
            bar.update(tasks[label], completed=step.bytes_done, total=step.bytes_total)

        yield show


@contextmanager
def shown_share(what: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A bar for work of which only the share done is known, on standard error."""
    console = Console(stderr=True)
    with Bars(console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
