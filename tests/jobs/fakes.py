"""A data volume without any picture: a probe that believes the first bytes, an executor that copies."""

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from pydantic import Field

from app.catalog import ModelShelf
from app.core.errors import AppError, Cancelled, EmptyMediaError, UnsupportedTypeError
from app.core.types import CropSpec, FaceBatch, Identity, IdentityId, SourceView
from app.inference.spec import Crop, InputContract, License, ModelId, ModelSpec, ModelZoo
from app.jobs.database import Database
from app.jobs.engines import EngineRegister
from app.jobs.face_library import FaceLibrary
from app.jobs.folders import DataFolders
from app.jobs.job import Job, JobId, JobRequest, MediaId, NewJob
from app.jobs.lease import LeaseClock, new_token
from app.jobs.library import MediaLibrary
from app.jobs.store import JobStore, LeaseTerms
from app.pipeline.progress import Progress, RenderResult
from app.pipeline.spec import RenderSpec
from app.processors.base import ProcessorOptions, ProcessorSpec
from app.runtime.calls import (
    Answer,
    Call,
    FaceKept,
    FaceSeen,
    FacesSeen,
    FindFaces,
    FindPeople,
    MakePreview,
    PeopleSeen,
    PersonSeen,
    PlaceSeen,
    PreviewMade,
    SaveFace,
)
from app.service import Studio, StudioParts

STILL = b"STILL of a face"
VIDEO = b"VIDEO of a face"


@dataclass(frozen=True)
class FakeInfo:
    kind: str
    container: str

    def to_json(self) -> Mapping[str, object]:
        return {"kind": self.kind, "size_wh": [64, 48]}


def fake_probe(path: Path) -> FakeInfo:
    head = path.read_bytes()[:5]
    if not head:
        raise EmptyMediaError(f"{path.name}: 0 bytes")
    if head == b"STILL":
        return FakeInfo("still", "png")
    if head == b"VIDEO":
        return FakeInfo("video", "mp4")
    raise UnsupportedTypeError(f"{path.name}: no picture or video")


@dataclass
class FakeTime:
    """A monotonic clock that only moves when told."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


class FakeOptions(ProcessorOptions):
    blend: float = Field(default=0.8, ge=0, le=1, title="Blend")
    model: Literal["mesh", "other"] = "mesh"


class FakeProcessor:
    def __init__(self, options: FakeOptions, zoo: ModelZoo) -> None:
        self.options = options

    def process(self, batch: FaceBatch) -> FaceBatch:
        return batch


SWAPPER = ProcessorSpec(
    id="face_swapper",
    title="Swap faces",
    order=10,
    crop=CropSpec(template="native", size_px=16),
    options=FakeOptions,
    build=FakeProcessor,
)
MODEL = ModelSpec(
    id=ModelId("tiny"),
    title="Tiny",
    task="face_detect",
    file="tiny.onnx",
    sources=(),
    sha256="0" * 64,
    bytes=4,
    license=License(spdx="MIT", commercial="yes", origin="test"),
    input=InputContract(name="input", layout="nchw", color="rgb"),
    crop=Crop(template="native", size=16),
    bundle="embedded",
)


@dataclass
class Volume:
    """Everything on one data volume."""

    folders: DataFolders
    database: Database
    store: JobStore
    library: MediaLibrary
    engines: EngineRegister
    studio: Studio
    time: FakeTime
    engine: "FakeEngine"
    thumbnails_made: list[Path] = field(default_factory=list)

    def upload(self, content: bytes = STILL, name: str = "me.png") -> MediaId:
        return self.studio.add_media(io.BytesIO(content), name).id

    def request(self, **changes: object) -> JobRequest:
        values: dict[str, object] = {
            "sources": [self.upload()],
            "target": self.upload(VIDEO, "party.mp4"),
            "consent": "self",
        }
        return JobRequest.model_validate({**values, **changes})

    def submit(self, **changes: object) -> Job:
        return self.studio.submit(self.request(**changes))

    def install(self, model: ModelSpec) -> None:
        put_in_place(model, self.folders.root / "models")


def put_in_place(model: ModelSpec, folder: Path) -> None:
    """A file of the model's length where the command line installs it; it holds nothing."""
    folder.mkdir(exist_ok=True)
    with (folder / model.file).open("wb") as file:
        file.truncate(model.bytes)


@contextmanager
def open_volume(
    root: Path,
    *,
    max_queued: int = 100,
    max_bytes: int = 1 << 20,
    terms: LeaseTerms | None = None,
    clock: LeaseClock | None = None,
    processors: Mapping[str, ProcessorSpec] = MappingProxyType({SWAPPER.id: SWAPPER}),
    models: tuple[ModelSpec, ...] = (MODEL,),
) -> Iterator[Volume]:
    folders = DataFolders(root)
    folders.create()
    fake_time = FakeTime()
    clock = clock or LeaseClock(now=fake_time, boot="boot-1")
    made: list[Path] = []
    engine = FakeEngine(desk=FakeDesk(library=FaceLibrary(folders.faces)))

    def thumbnail(path: Path, side_px: int) -> bytes:
        made.append(path)
        return b"JPEG %d" % side_px

    with Database(folders.database) as database:
        store = JobStore(database, clock=clock, terms=terms)
        library = MediaLibrary(database, folders.media, probe=fake_probe, max_bytes=max_bytes)
        engines = EngineRegister(database, clock=clock)
        studio = Studio(
            StudioParts(
                folders=folders,
                store=store,
                library=library,
                engines=engines,
                processors=processors,
                models=ModelShelf(models, root / "models"),
                thumbnail=thumbnail,
                engine=engine,
                max_queued_jobs=max_queued,
            )
        )
        yield Volume(folders, database, store, library, engines, studio, fake_time, engine, made)


def tiny_job(folders: DataFolders, media_id: MediaId, key: str | None = None) -> NewJob:
    """A job past all checks of the Studio."""
    job_id = JobId(new_token())
    spec = RenderSpec(
        sources=(folders.media / media_id / "original",),
        target=folders.media / media_id / "original",
        output=folders.results / job_id / "result.png",
        consent="self",
    )
    return NewJob(
        id=job_id,
        request=JobRequest(sources=(media_id,), target=media_id, consent="self"),
        spec=spec,
        download_name="me_swapped.png",
        idempotency_key=key,
    )


@dataclass
class FakeExecutor:
    """Copies the target in a number of steps, or does what it is told to."""

    steps: int = 3
    step_s: float = 0.0
    error: Exception | None = None
    on_step: Callable[[int], None] = lambda step: None
    rendered: list[RenderSpec] = field(default_factory=list)

    def render(
        self,
        spec: RenderSpec,
        *,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool],
    ) -> RenderResult:
        self.rendered.append(spec)
        for step in range(self.steps):
            if should_stop():
                raise Cancelled("stopped")
            time.sleep(self.step_s)
            self.on_step(step)
            on_progress(
                Progress(frames_done=step + 1, frames_total=self.steps, fps=10.0, elapsed_s=0.1)
            )
        if self.error is not None:
            raise self.error
        spec.output.write_bytes(spec.target.read_bytes())
        return RenderResult(
            output=spec.output,
            frames=self.steps,
            frames_swapped=self.steps,
            faces_swapped=self.steps,
        )


@dataclass
class FakeDesk:
    """Answers at once, or slowly, or with an error.

    Attributes:
        people: How many a target shows.
        faces: How many a photo shows.
        library: Where faces are saved.
    """

    people: int = 2
    faces: int = 1
    steps: int = 1
    step_s: float = 0.0
    error: BaseException | None = None
    on_answer: Callable[[], None] = lambda: None
    answered: list[Call] = field(default_factory=list)
    called_off: int = 0
    library: FaceLibrary | None = None

    def answer(
        self, call: Call, *, on_progress: Callable[[float], None], should_stop: Callable[[], bool]
    ) -> Answer:
        self.answered.append(call)
        for step in range(self.steps):
            if should_stop():
                self.called_off += 1
                raise Cancelled("stopped")
            time.sleep(self.step_s)
            on_progress((step + 1) / self.steps)
        self.on_answer()
        if self.error is not None:
            raise self.error
        if isinstance(call, FindFaces):
            return faces_seen(self.faces)
        if isinstance(call, FindPeople):
            return people_seen(self.people)
        if isinstance(call, SaveFace):
            assert self.library is not None
            kept = self.library.add(call.name, made_up_face(), consent=call.consent)
            return FaceKept(id=kept.id)
        return PreviewMade(picture=b"JPEG", time_s=call.time_s, faces_swapped=1)


@dataclass
class FakeEngine:
    """A desk without the socket before it.

    Attributes:
        error: What every call ends with.
    """

    desk: FakeDesk = field(default_factory=FakeDesk)
    error: AppError | None = None

    def find_faces(self, path: Path) -> FacesSeen:
        answer = self._ask(FindFaces(path=path))
        assert isinstance(answer, FacesSeen)
        return answer

    def find_people(self, path: Path, *, should_stop: Callable[[], bool]) -> PeopleSeen:
        answer = self._ask(FindPeople(path=path), should_stop)
        assert isinstance(answer, PeopleSeen)
        return answer

    def make_preview(
        self, spec: RenderSpec, time_s: float, *, should_stop: Callable[[], bool]
    ) -> PreviewMade:
        answer = self._ask(MakePreview(spec=spec, time_s=time_s), should_stop)
        assert isinstance(answer, PreviewMade)
        return answer

    def save_face(self, call: SaveFace) -> str:
        answer = self._ask(call)
        assert isinstance(answer, FaceKept)
        return answer.id

    def _ask(self, call: Call, should_stop: Callable[[], bool] = lambda: False) -> Answer:
        if self.error is not None:
            raise self.error
        return self.desk.answer(call, on_progress=lambda _: None, should_stop=should_stop)


def made_up_face() -> Identity:
    """A face that nobody has."""
    embedding = np.eye(1, 128, dtype=np.float32)[0]
    view = SourceView(
        crop=np.full((32, 24, 3), 90, np.uint8),
        landmarks=np.zeros((478, 3), np.float32),
        normed_embedding=embedding,
    )
    return Identity(
        id=IdentityId("made up"), label="face", views=(view,), normed_embedding=embedding
    )


def faces_seen(count: int) -> FacesSeen:
    """Faces side by side, none of them larger than the others."""
    faces = tuple(
        FaceSeen(number=n, bbox_xyxy=(n * 10, 0, n * 10 + 8, 8), thumbnail=b"JPEG of face %d" % n)
        for n in range(1, count + 1)
    )
    return FacesSeen(size_wh=(64, 48), faces=faces, meant=1 if count == 1 else None)


def people_seen(count: int) -> PeopleSeen:
    """People side by side, each seen twice."""
    people = tuple(
        PersonSeen(
            number=n,
            thumbnail=b"JPEG of person %d" % n,
            first_s=0.0,
            last_s=1.5,
            share=1 / n,
            size_range_px=(8.0, 9.0),
            places=tuple(
                PlaceSeen(time_s=t, bbox_xyxy=(n * 10, 0, n * 10 + 8, 8)) for t in (0.0, 1.5)
            ),
        )
        for n in range(1, count + 1)
    )
    likeness = tuple(tuple(0.9 if a == b else 0.1 for b in range(count)) for a in range(count))
    return PeopleSeen(size_wh=(64, 48), duration_s=2.0, people=people, likeness=likeness)


def all_errors(kind: type[AppError] = AppError) -> Iterator[type[AppError]]:
    """Every class of the error tree."""
    yield kind
    for below in kind.__subclasses__():
        yield from all_errors(below)
