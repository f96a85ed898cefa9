"""The real application on a real port: page, API, job store; only the engine is a thread that fakes its work."""

import dataclasses
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from PIL import Image
from pydantic import Field

from app.api.app import create_app
from app.catalog import ModelShelf
from app.core.errors import LeaseLostError
from app.core.types import CropSpec, FaceBatch, Notice
from app.inference.spec import ModelId, ModelSpec, ModelZoo
from app.jobs.database import Database
from app.jobs.engines import EngineRegister
from app.jobs.face_library import FaceLibrary
from app.jobs.folders import DataFolders, move_into_place
from app.jobs.job import Claim, JobFailure, JobState
from app.jobs.library import MediaLibrary
from app.jobs.store import JobStore
from app.media.limits import MediaLimits
from app.media.preview import thumbnail_jpeg
from app.media.probe import probe
from app.pipeline.progress import Busy, Progress, RenderResult
from app.processors.base import ProcessorOptions, ProcessorSpec, model_field
from app.runtime.calls import Answer, Call, FacesSeen, PeopleSeen, PreviewMade
from app.service import Studio, StudioParts
from app.ui.page import mount_page
from tests.jobs.fakes import MODEL, FakeDesk, FakeEngine, put_in_place


class SwapOptions(ProcessorOptions):
    """Made up, with one field of every kind."""

    model: str = model_field(
        "face_swap", built_in="mesh", title="Model", description="What does the work"
    )
    strength: float = Field(
        default=0.6,
        ge=0,
        le=1,
        title="Likeness",
        description="How much of the new face is taken over",
    )
    keeps_mouth: bool = Field(default=True, title="Keep the inside of the mouth")
    passes: int = Field(default=1, ge=1, le=4, title="Passes")


class PolishOptions(ProcessorOptions):
    """Made up."""

    blend: float = Field(default=0.8, ge=0, le=1, title="Blend")


class Untouched:
    """A processor that changes nothing."""

    def __init__(self, options: ProcessorOptions, zoo: ModelZoo) -> None:
        pass

    def process(self, batch: FaceBatch) -> FaceBatch:
        return batch


def spec(id: str, title: str, order: int, options: type[ProcessorOptions]) -> ProcessorSpec:
    crop = CropSpec(template="native", size_px=64)
    return ProcessorSpec(
        id=id, title=title, order=order, crop=crop, options=options, build=Untouched
    )


PROCESSORS = {
    "face_swapper": spec("face_swapper", "Swap faces", 10, SwapOptions),
    "face_polisher": spec("face_polisher", "Polish faces", 20, PolishOptions),
}

NETWORK = MODEL.model_copy(
    update={"id": ModelId("swapper-256"), "task": "face_swap", "bundle": "optional"}
)
"""Known, and not installed."""


BUSY: Busy = {
    "decode": 0.12,
    "find_faces": 0.964,
    "change_faces": 0.4,
    "device": 0.81,
    "encode": 0.3,
}


class SiteDesk(FakeDesk):
    """Sees people side by side on everything, and gives previews turned blue; its pictures can be shown."""

    def answer(
        self, call: Call, *, on_progress: Callable[[float], None], should_stop: Callable[[], bool]
    ) -> Answer:
        answer = super().answer(call, on_progress=on_progress, should_stop=should_stop)
        if isinstance(answer, FacesSeen):
            faces = tuple(
                f.model_copy(update={"thumbnail": square(f.number)}) for f in answer.faces
            )
            return answer.model_copy(update={"faces": faces})
        if isinstance(answer, PeopleSeen):
            people = tuple(
                p.model_copy(update={"thumbnail": square(p.number)}) for p in answer.people
            )
            return answer.model_copy(update={"people": people})
        if isinstance(answer, PreviewMade):
            return answer.model_copy(update={"picture": square(7)})
        return answer


def square(shade: int) -> bytes:
    """A small JPEG; each number has a shade of its own."""
    out = BytesIO()
    Image.new("RGB", (64, 48), (30 * shade, 90, 160)).save(out, "JPEG")
    return out.getvalue()


class FakeRunner:
    """Takes jobs as an engine does; a picture comes back turned blue, a video as it is.

    Attributes:
        frame_s: How long a frame takes.
        failure: What the next jobs fail with.
        device: Kind of device that it says it runs on.
    """

    def __init__(self, store: JobStore, engines: EngineRegister) -> None:
        self.store, self.engines = store, engines
        self.frame_s = 0.005
        self.device = "cpu"
        self.failure: JobFailure | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "FakeRunner":
        self._live()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _live(self) -> None:
        self.engines.seen("engine-0", state="idle", pid=os.getpid(), device=self.device)

    def _run(self) -> None:
        while not self._stopped.wait(0.02):
            self._live()
            claim = self.store.claim()
            if claim is not None:
                self._work(claim)

    def _work(self, claim: Claim) -> None:
        try:
            if self.failure is not None:
                self.store.stop(claim, JobState.REFUSED, self.failure)
            else:
                self._render(claim)
        except LeaseLostError:
            return

    def _render(self, claim: Claim) -> None:
        spec = claim.job.spec
        is_video = spec.target.read_bytes()[4:8] == b"ftyp"
        frames = 60 if is_video else 1
        start = time.monotonic()
        for done in range(1, frames + 1):
            time.sleep(self.frame_s if is_video else 0)
            if self._stopped.is_set():
                return
            if self.store.is_cancel_requested(claim):
                self.store.stop(claim, JobState.CANCELED)
                return
            elapsed_s = max(1e-6, time.monotonic() - start)
            self.store.renew(
                claim,
                Progress(
                    frames_done=done,
                    frames_total=frames,
                    fps=done / elapsed_s,
                    elapsed_s=elapsed_s,
                    busy=BUSY,
                ),
            )
        part = spec.output.with_name("part")
        part.parent.mkdir(parents=True, exist_ok=True)
        if is_video:
            shutil.copyfile(spec.target, part)
        else:
            part.write_bytes(turned_blue(spec.target))
        notices = (
            (Notice(code="face.some_missing", message="2 frames show no face"),) if is_video else ()
        )
        result = RenderResult(
            output=spec.output,
            frames=frames,
            frames_swapped=frames - 2 * is_video,
            faces_swapped=frames,
            notices=notices,
        )
        self.store.finish(claim, result, publish=lambda: move_into_place(part, spec.output))


def turned_blue(path: Path) -> bytes:
    with Image.open(path) as image:
        kind = image.format
        pixels = np.asarray(image.convert("RGB")).copy()
    pixels[..., :2] //= 2
    out = BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


@dataclasses.dataclass(frozen=True)
class Site:
    """The running application."""

    url: str
    studio: Studio
    engine: FakeRunner
    calls: FakeEngine
    gradio_cache: Path
    models_dir: Path

    def install(self, model: ModelSpec) -> None:
        put_in_place(model, self.models_dir)


@contextmanager
def served(app: Any) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def running_site(root: Path) -> Iterator[Site]:
    """The application on a free port of this machine."""
    folders = DataFolders(root)
    folders.create()
    with Database(folders.database) as database:
        models_dir = folders.root / "models"
        calls = FakeEngine(desk=SiteDesk(library=FaceLibrary(folders.faces)))
        store, engines = JobStore(database), EngineRegister(database)
        parts = StudioParts(
            folders=folders,
            store=store,
            library=MediaLibrary(database, folders.media, probe=probe, max_bytes=50 << 20),
            engines=engines,
            processors=PROCESSORS,
            models=ModelShelf((NETWORK,), models_dir),
            thumbnail=lambda path, side_px: thumbnail_jpeg(path, side_px, MediaLimits()),
            engine=calls,
        )
        studio = Studio(parts)
        app = mount_page(create_app(studio), studio)
        with FakeRunner(store, engines) as engine, served(app) as url:
            yield Site(
                url=url,
                studio=studio,
                engine=engine,
                calls=calls,
                gradio_cache=Path(os.environ["GRADIO_TEMP_DIR"]),
                models_dir=models_dir,
            )
