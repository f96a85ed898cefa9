"""Commands about networks and devices: bring models."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from app import bootstrap
from app.cli_parts import JsonFlag, ModelsDirOption, reported, settings_of
from app.core.errors import UsageError
from app.inference.manifest import Manifest
from app.inference.spec import ModelId
from app.terminal import print_json, shown_pull

AcceptFlag = Annotated[
    bool, typer.Option("--accept-license", help="You have read the terms and keep to them.")
]


def register(app: typer.Typer, models_app: typer.Typer) -> None:
    """Add the commands of this module."""
    models_app.command()(adopt)


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
        settings = settings_of(models_dir=models_dir)
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
