"""Writes a table of results with the machine that made it."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Processor, cores and versions, in one line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines()
                 if line.startswith("model name")]  # fmt: skip
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def write_table(
    name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
) -> Path:
    """Write `results/<name>.md` and print it."""
    lines = [f"# {title}", "", f"Machine: {machine()}.", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    if note:
        lines += ["", note]
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return path
