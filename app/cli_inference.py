"""Commands about networks and devices: bring models, build engines."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from app import bootstrap
from app.cli_parts import DeviceOption, JsonFlag, ModelsDirOption
from app.command_frame import reported, settings_given
from app.core.errors import UsageError
from app.inference.manifest import Manifest
from app.inference.spec import ModelId
from app.runtime.engine_build import BuildProgress, build_engines
from app.runtime.stopping import stop_when_asked
from app.terminal import print_json, shown_pull

AcceptFlag = Annotated[
    bool, typer.Option("--accept-license", help="You have read the terms and keep to them.")
]


def register(app: typer.Typer, models_app: typer.Typer) -> None:
    """Add the commands of this module."""
    models_app.command()(adopt)
    models_app.command()(engines)
    app.command()(benchmark)
    app.command("build-engine", hidden=True)(build_engine)


def adopt(
    folder: Annotated[Path, typer.Argument(help="Holds model files under their public names.")],
    names: Annotated[list[str] | None, typer.Argument(help="Model ids; all without it.")] = None,
    unpinned: Annotated[
        bool, typer.Option(help="Take files that no known hash stands for: you vouch for them.")
    ] = False,
    accept_license: AcceptFlag = False,
    models_dir: ModelsDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Install models from files that you have, rewritten and proven as after a download."""
    with reported(as_json=as_json):
        settings = settings_given(models_dir=models_dir)
        known = bootstrap.manifest(settings)
        ids = known.resolve(names or ["optional"])
        installer = bootstrap.installer(settings)
        require_accepted(known, installer.adoptable(folder, ids), accepted=accept_license)
        with shown_pull(quiet=as_json) as on_progress:
            adopted = installer.adopt(folder, ids, on_progress, unpinned=unpinned)
        if as_json:
            print_json({"installed": list(adopted)})
        elif not adopted:
            typer.echo(f"nothing that the manifest knows is in {folder.name}")


def engines(
    names: Annotated[list[str] | None, typer.Argument(help="Model ids; all installed.")] = None,
    models_dir: ModelsDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Build TensorRT's engines, minutes each, for `--device tensorrt`; until then CUDA is used."""
    with reported(as_json=as_json), stop_when_asked() as should_stop:
        settings = settings_given(models_dir=models_dir, device="tensorrt")
        bootstrap.check_device_works(settings)
        installed = [s.spec.id for s in bootstrap.inventory(settings).statuses() if s.is_installed]
        ids = bootstrap.manifest(settings).resolve(names) if names else installed
        place = ("--models-dir", str(settings.models_path), "--data", str(settings.data_dir))
        built = build_engines(
            ids,
            (sys.executable, "-m", "app", "build-engine", *place),
            on_progress=lambda step: _tell(step, quiet=as_json),
            should_stop=should_stop,
        )
        if as_json:
            print_json({"built": list(built)})


def benchmark(
    models: Annotated[
        Literal["installed", "stub"],
        typer.Option(help="stub: networks that cost nothing, to see what the rest costs."),
    ] = "installed",
    device: DeviceOption = None,
    models_dir: ModelsDirOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the tables to this file, too.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Measure this machine: networks alone, whole videos, a preview, memory."""
    with reported(as_json=as_json):
        settings = settings_given(device=device, models_dir=models_dir)
        measured = bootstrap.benchmark(
            settings,
            models,
            is_quick=quick,
            on_progress=lambda step: None if as_json else typer.echo(f"measuring {step}", err=True),
        )
        if output is not None:
            output.write_text(measured.to_markdown(), encoding="utf-8")
        if as_json:
            print_json(measured.to_json())
        else:
            typer.echo(measured.to_markdown())


def build_engine(
    model_id: str,
    models_dir: ModelsDirOption = None,
    data: Annotated[Path | None, typer.Option(help="Folder of the cache.")] = None,
) -> None:
    """Build one engine in this process; `models engines` starts this by itself."""
    with reported(as_json=False):
        settings = settings_given(models_dir=models_dir, data_dir=data, device="tensorrt")
        bootstrap.build_engine(settings, model_id)


def _tell(step: BuildProgress, *, quiet: bool) -> None:
    if not quiet and step.state != "building":
        reason = f": {step.text}" if step.text else ""
        typer.echo(f"{step.model_id} {step.state} after {step.elapsed_s:.0f} s{reason}", err=True)


def require_accepted(known: Manifest, ids: Iterable[ModelId], *, accepted: bool) -> None:
    """Refuse models whose terms restrict their use, unless somebody accepts them.

    Raises:
        UsageError: Naming each model and its license.
    """
    bound = [spec for spec in map(known.get, ids) if spec.license.commercial != "yes"]
    if bound and not accepted:
        terms = "; ".join(
            f"{spec.id}: {spec.license.spdx} ({spec.license.origin}), "
            f"commercial use: {spec.license.commercial}"
            for spec in bound
        )
        raise UsageError(f"{terms}. Read these terms, then add --accept-license")
