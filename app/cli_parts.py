"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from app.config import DeviceChoice

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


ModelsDirOption = Annotated[
    Path | None, typer.Option("--models-dir", help="Folder of installed models.")
]
DeviceOption = Annotated[DeviceChoice | None, typer.Option(help="Where the networks run.")]
RequireGpuFlag = Annotated[
    bool, typer.Option("--require-gpu", help="Refuse to start where only the CPU works.")
]
