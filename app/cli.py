"""The command line: parse, call, show. The only place that prints and exits.

Commands import what they need inside themselves: `faces --json` need not wait for the page's libraries.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from app import bootstrap, cli_inference
from app.catalog import processor_infos
from app.cli_inference import AcceptFlag, require_accepted
from app.cli_parts import DeviceOption, JsonFlag, ModelsDirOption, RequireGpuFlag
from app.command_frame import reported as _reported
from app.command_frame import settings_given as _settings
from app.command_values import checked_spec, parse_face_map, parse_steps, parse_timing
from app.core.errors import ConsentRequiredError
from app.face_commands import CONSENT_HELP, faces_app
from app.media.choices import CodecChoice
from app.media.probe import probe as media_probe
from app.pipeline.spec import Action, ConsentBasis, OutputChoices, Preset
from app.processors import discover
from app.runtime.listening import taken_address
from app.runtime.stopping import stop_when_asked
from app.terminal import (
    print_facts,
    print_json,
    print_people,
    show_result,
    shown_progress,
    shown_pull,
    shown_share,
)

app = typer.Typer(
    name="facedock",
    help="Put a face on the people of pictures and videos, on your own machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
models_app = typer.Typer(help="List, install and check the models.", no_args_is_help=True)
app.add_typer(models_app, name="models")
app.add_typer(faces_app, name="face-library")
cli_inference.register(app, models_app)

SourceOption = Annotated[
    list[Path] | None,
    typer.Option("-s", "--source", help="Photo of the face; several of one person help."),
]
MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map", help="WHO=WHAT, as 1=a.jpg, 2=leave, 3=blur, largest=saved:Ann, ref:who.jpg=b.jpg."
    ),
]
OthersOption = Annotated[
    Action | None, typer.Option(help="What happens to everybody whom no --map names.")
]
ThresholdOption = Annotated[
    float | None, typer.Option(min=0, max=1, help="Least likeness to be taken for somebody.")
]
PersonOption = Annotated[
    int | None, typer.Option(min=0, help="Only this person, counted from 0; --map counts from 1.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="processor.option=value; `python -m app processors` lists them."),
]
HardwareFlag = Annotated[
    bool, typer.Option("--hardware", help="Decode and encode on the GPU where that works.")
]
SdrFlag = Annotated[bool, typer.Option("--sdr", help="Make SDR of HDR video.")]
StartOption = Annotated[str | None, typer.Option(help="Begin here: seconds, or 1:02:03.5.")]
EndOption = Annotated[str | None, typer.Option(help="End here; like --start.")]
FpsOption = Annotated[float | None, typer.Option(help="Frames a second; all frames without it.")]


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of uploads, jobs and results.")] = None,
    models_dir: ModelsDirOption = None,
    device: DeviceOption = None,
    require_gpu: RequireGpuFlag = False,
) -> None:
    """Start the page and the API."""
    with _reported(as_json=False):
        settings = _settings(
            host=host,
            port=port,
            data_dir=data,
            models_dir=models_dir,
            device=device,
            require_gpu=require_gpu or None,
        )
        bootstrap.check_devices(settings)
        with (
            taken_address(settings.host, settings.port) as listening,
            stop_when_asked() as stopping,
            bootstrap.studio(settings, should_stop=stopping) as studio,
        ):
            # Only now, while the engine starts in its own process: the page's libraries take seconds to load.
            from app.serving import serve_page

            serve_page(settings, studio, listening, stopping, announce=typer.echo)


@app.command(hidden=True)
def engine(
    data: Annotated[Path | None, typer.Option(help="Folder of uploads, jobs and results.")] = None,
    parent_fd: Annotated[
        int | None, typer.Option(help="Ends the engine when it is closed.")
    ] = None,
    models_dir: ModelsDirOption = None,
    device: DeviceOption = None,
    require_gpu: RequireGpuFlag = False,
    name: Annotated[str, typer.Option(help="Its line in the register of engines.")] = "engine-0",
    engines: Annotated[
        int | None, typer.Option(help="How many share this machine, this one included.")
    ] = None,
) -> None:
    """Run the jobs of a data folder; `serve` starts this by itself."""
    with _reported(as_json=False):
        settings = _settings(
            data_dir=data,
            models_dir=models_dir,
            device=device,
            require_gpu=require_gpu or None,
            engines=engines,
        )
        bootstrap.run_engine_process(settings, name=name, parent_fd=parent_fd)


@app.command()
def swap(
    target: Annotated[Path, typer.Option("-t", "--target", help="Picture or video to change.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to make.")],
    source: SourceOption = None,
    consent: Annotated[
        ConsentBasis | None, typer.Option(help="On what ground the faces may be used.")
    ] = None,
    processors: Annotated[
        str, typer.Option(help="Processor ids, comma-separated.")
    ] = "face_swapper",
    set_: SetOption = None,
    map_: MapOption = None,
    others: OthersOption = None,
    threshold: ThresholdOption = None,
    person: PersonOption = None,
    quality: Annotated[int, typer.Option(min=0, max=100, help="Quality of the output.")] = 80,
    preset: Annotated[Preset, typer.Option(help="Speed of the video encoder.")] = "veryfast",
    codec: Annotated[CodecChoice, typer.Option(help="Video codec of the output.")] = "auto",
    hardware: HardwareFlag = False,
    sdr: SdrFlag = False,
    start: StartOption = None,
    end: EndOption = None,
    fps: FpsOption = None,
    device: DeviceOption = None,
    models_dir: ModelsDirOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Put a face on the people of a picture or video."""
    with _reported(as_json=as_json):
        if consent is None:
            raise ConsentRequiredError(CONSENT_HELP)
        settings = _settings(device=device, models_dir=models_dir)
        assignments = [*(map_ or []), *([] if person is None else [f"{person + 1}=source"])]
        spec = checked_spec(
            sources=tuple(source or ()),
            target=target,
            output=output,
            consent=consent,
            steps=parse_steps(processors, set_ or []),
            face_map=parse_face_map(
                assignments,
                others=others,
                has_sources=bool(source),
                threshold=threshold,
                saved_id=lambda name: bootstrap.face_library(settings).named(name).id,
            ),
            encoding=OutputChoices(
                quality=quality,
                preset=preset,
                codec=codec,
                encoder="hardware" if hardware else "software",
                dynamic_range="sdr" if sdr else "keep",
            ),
            timing=parse_timing(start, end, fps),
        )
        workbench = bootstrap.workbench(settings)
        with stop_when_asked() as should_stop, shown_progress(quiet=as_json) as on_progress:
            result = workbench.render(spec, on_progress=on_progress, should_stop=should_stop)
        show_result(result, as_json=as_json)


@app.command()
def processors(as_json: JsonFlag = False, models_dir: ModelsDirOption = None) -> None:
    """Show what can be done to a face, and the options of each step."""
    with _reported(as_json=as_json):
        statuses = bootstrap.inventory(_settings(models_dir=models_dir)).statuses()
        installed = [status.spec for status in statuses if status.is_installed]
        found = processor_infos(discover().values(), installed)
        if as_json:
            print_json([{"id": s.id, "title": s.title, "options": s.options_schema} for s in found])
            return
        for spec in found:
            typer.echo(f"{spec.id}: {spec.title}")
            for name, option in spec.options_schema.get("properties", {}).items():
                values = option.get("enum") or [
                    option[bound] for bound in ("minimum", "maximum") if bound in option
                ]
                allowed = f" ({' to '.join(map(str, values))})" if "minimum" in option else ""
                allowed = f" ({', '.join(map(str, values))})" if "enum" in option else allowed
                typer.echo(f"  --set {spec.id}.{name}={option.get('default')}{allowed}")
                typer.echo(f"        {option.get('description', '')}")


@app.command()
def faces(file: Path, as_json: JsonFlag = False, device: DeviceOption = None) -> None:
    """Find the faces of a picture, or of a video's first frame."""
    with _reported(as_json=as_json):
        found = bootstrap.workbench(_settings(device=device)).find_faces(file)
        if as_json:
            print_json({"file": str(file), **found.to_json()})
            return
        table = Table(
            "#", "box x0 y0 x1 y1", "score", title=f"{file.name}: {len(found.faces)} faces"
        )
        for number, face in enumerate(found.faces, start=1):
            box = " ".join(f"{value:.0f}" for value in face.bbox_xyxy)
            table.add_row(str(number), box, f"{face.det_score:.2f}")
        Console().print(table)


@app.command()
def people(
    files: Annotated[list[Path], typer.Argument(help="Pictures and videos of the same people.")],
    cards: Annotated[
        Path | None, typer.Option(help="Folder for a small picture of each person.")
    ] = None,
    as_json: JsonFlag = False,
    device: DeviceOption = None,
) -> None:
    """Find the people of a picture, a video, or several files: each person once, with a number."""
    with _reported(as_json=as_json):
        workbench = bootstrap.workbench(_settings(device=device))
        with shown_share("looking for people", quiet=as_json) as on_progress:
            found = workbench.find_people(*files, on_progress=on_progress)
        if cards is not None:
            workbench.write_cards(found, cards)
        if as_json:
            print_json({"files": [str(file) for file in files], **found.to_json()})
        else:
            print_people(", ".join(file.name for file in files), found)


@app.command()
def probe(file: Path, as_json: JsonFlag = False) -> None:
    """Say what a file is: kind, size, rate, frames, streams, colors, rotation."""
    with _reported(as_json=as_json):
        facts = media_probe(file, bootstrap.limits(_settings())).to_json()
        if as_json:
            print_json({"file": str(file), **facts})
            return
        print_facts(file.name, facts)


@models_app.command("list")
def list_models(as_json: JsonFlag = False) -> None:
    """Show every known model, its licence and whether it is installed."""
    with _reported(as_json=as_json):
        statuses = bootstrap.inventory(_settings()).statuses()
        if as_json:
            print_json([status.to_json() for status in statuses])
            return
        first = Column("model", no_wrap=True, min_width=24)
        terms = Column("license", no_wrap=True, min_width=12)
        table = Table(first, "MB", terms, "commercial use", "state", box=None)
        for status in statuses:
            spec = status.spec
            table.add_row(
                spec.id,
                f"{spec.bytes / 1e6:.1f}",
                spec.license.spdx,
                spec.license.commercial,
                status.state,
            )
        Console().print(table)


@models_app.command()
def pull(
    names: Annotated[list[str] | None, typer.Argument(help="Model ids or a bundle.")] = None,
    accept_license: AcceptFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Install models; does nothing, and needs no network, when they are there."""
    with _reported(as_json=as_json):
        settings = _settings()
        ids = bootstrap.manifest(settings).resolve(names or ["embedded"])
        require_accepted(bootstrap.manifest(settings), ids, accepted=accept_license)
        with shown_pull(quiet=as_json) as on_progress:
            bootstrap.installer(settings).pull(ids, on_progress)
        if as_json:
            print_json({"installed": ids})


@models_app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Model ids or a bundle.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare installed models with the manifest, byte for byte."""
    with _reported(as_json=as_json):
        settings = _settings()
        ids = bootstrap.manifest(settings).resolve(names or ["embedded"])
        verified = bootstrap.installer(settings).verify(ids)
        if as_json:
            print_json({"verified": list(verified)})
        else:
            typer.echo(f"{len(verified)} models are as the manifest pins them")


@app.command()
def doctor(as_json: JsonFlag = False, models_dir: ModelsDirOption = None) -> None:
    """Check this machine: devices that really work, models, disk, versions; says what to do."""
    with _reported(as_json=as_json):
        report = bootstrap.examine(_settings(models_dir=models_dir))
        if as_json:
            print_json(report.to_json())
        else:
            for finding in report.findings:
                mark = "ok  " if finding.is_fine else "TODO" if finding.is_needed else "note"
                typer.echo(f"{mark}  {finding.subject}: {finding.text}")
        if not report.is_fine:
            raise typer.Exit(5)


def main() -> None:
    """Entry point."""
    app()
