"""The commands of the face library: save a face once, put it on as often as you like."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app import bootstrap
from app.command_frame import reported, settings_given
from app.config import DeviceChoice
from app.core.errors import ConsentRequiredError
from app.pipeline.spec import ConsentBasis
from app.terminal import print_json, show_notices

faces_app = typer.Typer(help="Save, list, rename and delete faces to put on.", no_args_is_help=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

CONSENT_HELP = (
    "say on what ground you may use these faces: --consent self (it is you), permission (everyone "
    "shown agreed), fictional (nobody real is shown), or public-domain (free pictures, no one deceived)"
)


@faces_app.command()
def add(
    name: Annotated[str, typer.Argument(help="What the face is to be called.")],
    photos: Annotated[list[Path], typer.Argument(help="One or more photos of one person.")],
    consent: Annotated[
        ConsentBasis | None, typer.Option(help="On what ground the face may be used.")
    ] = None,
    face: Annotated[
        int | None, typer.Option(min=1, help="Which face of the photo, left to right.")
    ] = None,
    device: Annotated[DeviceChoice | None, typer.Option(help="Where the networks run.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Save a face under a name; swap --map 1=saved:NAME puts it on."""
    with reported(as_json=as_json):
        if consent is None:
            raise ConsentRequiredError(CONSENT_HELP)
        settings = settings_given(device=device)
        identity, notices = bootstrap.workbench(settings).make_face(photos, face=face)
        saved = bootstrap.face_library(settings).add(name, identity, consent=consent)
        show_notices(notices)
        if as_json:
            warnings = [{"code": each.code, "message": each.message} for each in notices]
            print_json({**saved.to_json(), "warnings": warnings})
        else:
            typer.echo(f"saved {saved.name}: made of {saved.photos} photos")


@faces_app.command("list")
def list_faces(as_json: JsonFlag = False) -> None:
    """Show the saved faces."""
    with reported(as_json=as_json):
        faces = bootstrap.face_library(settings_given()).faces()
        if as_json:
            print_json([face.to_json() for face in faces])
            return
        table = Table("name", "photos", "may be used as", "id", box=None)
        for face in faces:
            table.add_row(face.name, str(face.photos), face.consent, face.id)
        Console().print(table)


@faces_app.command()
def rename(
    name: Annotated[str, typer.Argument(help="Name or id of the face.")],
    new_name: Annotated[str, typer.Argument(help="What it is to be called.")],
    as_json: JsonFlag = False,
) -> None:
    """Call a saved face something else."""
    with reported(as_json=as_json):
        library = bootstrap.face_library(settings_given())
        face = library.rename(library.named(name).id, new_name)
        if as_json:
            print_json(face.to_json())
        else:
            typer.echo(f"it is called {face.name} now")


@faces_app.command()
def delete(
    name: Annotated[str, typer.Argument(help="Name or id of the face.")],
    as_json: JsonFlag = False,
) -> None:
    """Remove a saved face with all that is kept of it."""
    with reported(as_json=as_json):
        settings = settings_given()
        face = bootstrap.face_library(settings).named(name)
        bootstrap.delete_saved_face(settings, face.id)
        if as_json:
            print_json({"deleted": face.id})
        else:
            typer.echo(f"deleted {face.name}")
