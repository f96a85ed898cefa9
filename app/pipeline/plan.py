"""A RenderSpec becomes a plan: where frames come from, what happens to them, where they go.

Every plan ends in a labelled output; nothing here, and no field of the spec, can leave it out.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from app.core.errors import MediaError
from app.core.picture import Picture
from app.core.types import Face, Frame, Identity, Notice, Window
from app.faces.assign import Assigner
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.landmarks import FaceLandmarker
from app.faces.mask_networks import best_masker
from app.faces.masks import FaceMasker
from app.faces.people import IdentityBuilder
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.faces.turning import TurningDetector
from app.inference.spec import ModelZoo
from app.media.limits import MediaLimits
from app.media.still import read_still
from app.pipeline.output import labelled_output, new_label, refuse_overwriting_inputs
from app.pipeline.spec import RenderSpec, Step
from app.pipeline.stages import (
    Stage,
    assigned,
    into_windows,
    processed,
    tracked,
    watched,
    watched_where_changed,
)
from app.pipeline.target import Sink, Target, open_wanted_target
from app.processors.base import ProcessorSpec, checked_options
from app.safety.gate import LOOK_SIDE_PX, ContentGate, GateWatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What every plan of this process shares: the networks, the processors, the limits."""

    zoo: ModelZoo
    processors: Mapping[str, ProcessorSpec]
    limits: MediaLimits
    detector: FaceDetector
    still_detector: FaceDetector
    landmarker: FaceLandmarker
    recognizer: FaceRecognizer
    gate: ContentGate
    masker: FaceMasker

    @classmethod
    def over(
        cls, zoo: ModelZoo, processors: Mapping[str, ProcessorSpec], limits: MediaLimits
    ) -> "Tools":
        """Put the tools over one set of models."""
        return cls(
            zoo=zoo,
            processors=processors,
            limits=limits,
            detector=FaceDetector(zoo),
            still_detector=TurningDetector(zoo, sides_px=STILL_SIDES_PX),
            landmarker=FaceLandmarker(zoo),
            recognizer=FaceRecognizer(zoo),
            gate=ContentGate(zoo),
            masker=best_masker(zoo),
        )

    def tracker(self, kind: Literal["still", "video"]) -> FaceTracker:
        """A tracker for one file; a still is looked at more closely, since it is only one."""
        detector = self.still_detector if kind == "still" else self.detector
        return FaceTracker(detector, self.landmarker, self.recognizer)

    def faces_of(self, picture: Picture) -> tuple[Face, ...]:
        """The faces of one picture, left to right, ties top to bottom."""
        still = Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        return self.tracker("still").track((still,))[0].faces


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One job, ready to run.

    Attributes:
        windows: Opens the target's frames; iterate once.
        stages: In order; each takes the windows of the one before.
        sink: Takes the last stage's windows.
        notices: What is known so far; complete once all frames have passed.
        frames_total: As far as the file tells.
    """

    windows: Callable[[], Iterator[Window]]
    stages: tuple[Stage, ...]
    sink: Sink
    notices: Callable[[], tuple[Notice, ...]]
    frames_total: int | None


@contextmanager
def open_plan(spec: RenderSpec, tools: Tools) -> Iterator[Plan]:
    """Check the request, prepare the source face and open target and output.

    Leaving it normally labels, verifies and publishes the output; leaving it on an error leaves nothing behind.

    Raises:
        AppError: Whatever is wrong with the request, the files or the faces.
    """
    steps = checked_steps(spec.steps, tools.processors)
    refuse_overwriting_inputs(spec.output, (*spec.sources, spec.target))
    label = new_label()
    with (
        _opened(spec, tools.limits) as target,
        labelled_output(spec.output, label, target.info) as hidden,
    ):
        identity, notices = source_identity(spec.sources, tools)
        with target.sink(hidden, spec, label) as sink:
            yield Plan(
                windows=lambda: into_windows(target.frames()),
                stages=_stages(spec, steps, tools, identity=identity, target=target),
                sink=sink,
                notices=lambda: (*notices, *target.notices, *sink.notices),
                frames_total=target.info.frames_estimate,
            )


@contextmanager
def _opened(spec: RenderSpec, limits: MediaLimits) -> Iterator[Target]:
    with ExitStack() as stack:
        with role_told("the target"):
            target = stack.enter_context(open_wanted_target(spec, limits))
        yield target


def checked_steps(
    steps: tuple[Step, ...], processors: Mapping[str, ProcessorSpec]
) -> tuple[Step, ...]:
    """Validate the options of each step and put the steps into the processors' order.

    Raises:
        UnknownProcessorError: No processor has this id.
        UsageError: An option is unknown or out of range.
    """
    for step in steps:
        checked_options(processors, step.processor, step.options)
    return tuple(sorted(steps, key=lambda step: processors[step.processor].order))


def source_identity(photos: tuple[Path, ...], tools: Tools) -> tuple[Identity, tuple[Notice, ...]]:
    """Read the photos of the face to put on, let the gate look at them, and make an identity.

    Raises:
        MediaError: A photo cannot be read.
        IntimateContentError: The gate refuses a photo.
        FaceError: A photo shows no face, or several.
    """
    builder = IdentityBuilder(tools.still_detector, tools.landmarker, tools.recognizer)
    return builder.build(_gated_photos(photos, tools), label="source")


def _gated_photos(photos: tuple[Path, ...], tools: Tools) -> Iterator[Picture]:
    """One photo after the other: large ones need not lie in memory together."""
    watch = GateWatch(tools.gate, "source")
    for number, photo in enumerate(photos, start=1):
        with role_told(f"photo {number} of the source"):
            picture = read_still(photo, tools.limits).picture
        watch.add(picture.thumbnail(LOOK_SIDE_PX)[0])
        yield picture
    watch.finish()


@contextmanager
def role_told(role: str) -> Iterator[None]:
    """Say which of a job's files an error is about; a path would say too much.

    Raises:
        MediaError: The same, with the file's role before its message.
    """
    try:
        yield
    except MediaError as error:
        raise type(error)(f"{role}: {error.message}") from error


def _stages(
    spec: RenderSpec, steps: tuple[Step, ...], tools: Tools, *, identity: Identity, target: Target
) -> tuple[Stage, ...]:
    before = watched(GateWatch(tools.gate, "target"))
    after = watched_where_changed(GateWatch(tools.gate, "result"))
    work = []
    for step in steps:
        known = tools.processors[step.processor]
        options = checked_options(tools.processors, step.processor, step.options)
        work.append(
            processed(
                known.build(options, tools.zoo),
                known.crop,
                masker=tools.masker if known.keeps_occluders(options) else None,
                is_still=target.info.kind == "still",
            )
        )
    assigner = Assigner(spec.face_map.person, identity)
    return (
        chained(
            before,
            tracked(tools.tracker(target.info.kind)),
            assigned(assigner),
            target.demand_faces,
        ),
        chained(*work, after),
    )


def chained(*stages: Stage) -> Stage:
    """Several stages that share a thread."""

    def stage(windows: Iterator[Window]) -> Iterator[Window]:
        for each in stages:
            windows = each(windows)
        return windows

    return stage
