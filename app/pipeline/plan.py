"""A RenderSpec becomes a plan: where frames come from, what happens to them, where they go.

Every plan ends in a labelled output; nothing here, and no field of the spec, can leave it out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.core.types import CropSpec, Notice, Window
from app.faces.hiding import FaceHider
from app.faces.zoo_recognizer import ArcFaceRecognizer
from app.inference.spec import ModelId
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.pipeline.casting import Casting, people_in, prepare_casting
from app.pipeline.output import labelled_output, new_label, refuse_overwriting_inputs
from app.pipeline.people import PeopleFound, find_people
from app.pipeline.progress import WorkPart
from app.pipeline.source import role_told
from app.pipeline.spec import RenderSpec, Step
from app.pipeline.stages import (
    Stage,
    assigned,
    hidden,
    into_windows,
    processed,
    tracked,
    watched,
    watched_where_changed,
)
from app.pipeline.target import Sink, Target, open_wanted_target
from app.pipeline.tools import Tools
from app.processors.base import FaceProcessor, ProcessorSpec, checked_options
from app.safety.gate import GateWatch


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One job, ready to run.

    Attributes:
        windows: Opens the target's frames; iterate once.
        stages: In order; each takes the windows of the one before.
        parts: How people are told of each stage's work; as many as there are stages.
        sink: Takes the last stage's windows.
        notices: What is known so far; complete once all frames have passed.
        people: How results call the people whom the face map changes; known once the first frame has passed.
        frames_total: As far as the file tells.
    """

    windows: Callable[[], Iterator[Window]]
    stages: tuple[Stage, ...]
    parts: tuple[WorkPart, ...]
    sink: Sink
    notices: Callable[[], tuple[Notice, ...]]
    people: Callable[[], tuple[str, ...]]
    frames_total: int | None


_PARTS: tuple[WorkPart, ...] = ("find_faces", "change_faces")

OpenTarget = Callable[[RenderSpec, MediaLimits], AbstractContextManager[Target]]
FindPeople = Callable[[Path, Tools], PeopleFound]


@contextmanager
def open_plan(
    spec: RenderSpec,
    tools: Tools,
    *,
    opens_target: OpenTarget = open_wanted_target,
    finds_people: FindPeople = find_people,
) -> Iterator[Plan]:
    """Check the request, and open target and output; the stages prepare the faces and find the people it names.

    Leaving it normally labels, verifies and publishes the output; leaving it on an error leaves nothing behind.

    Args:
        spec: What a person asked for.
        tools: The networks, the processors, the limits.
        opens_target: What of the spec's target is worked on; all that the spec wants unless somebody says otherwise.
        finds_people: Looks who is on the target, where the spec names people by their numbers.

    Raises:
        AppError: Whatever is wrong with the request, the files or the faces.
    """
    steps = checked_steps(spec.steps, tools.processors)
    refuse_overwriting_inputs(spec.output, (*spec.sources, *spec.face_map.photos, spec.target))
    label = new_label()
    wanted = tuple(_wanted(step, tools) for step in steps)
    recognizers = _recognizers(wanted, tools)
    with (
        _opened(spec, tools.limits, opens_target) as target,
        labelled_output(spec.output, label, target.info) as hidden,
    ):
        cast = _Cast(
            spec,
            tools,
            info=target.info,
            finds_people=finds_people,
            recognizers=recognizers,
        )
        with target.sink(hidden, spec, label) as sink:
            yield Plan(
                windows=lambda: into_windows(target.frames()),
                stages=_stages(wanted, tools, who=cast.assigned, target=target),
                parts=_PARTS,
                sink=sink,
                notices=lambda: (*cast.notices, *target.notices, *sink.notices),
                people=lambda: cast.changed,
                frames_total=target.info.frames_estimate,
            )


@contextmanager
def _opened(spec: RenderSpec, limits: MediaLimits, opens: OpenTarget) -> Iterator[Target]:
    with ExitStack() as stack:
        with role_told("the target"):
            target = stack.enter_context(opens(spec, limits))
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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A step, ready to work."""

    processor: FaceProcessor
    crop: CropSpec
    recognizer: ModelId | None
    keeps_occluders: bool


def _wanted(step: Step, tools: Tools) -> _Wanted:
    """Build a step's processor; a model that it names and that is not there is told before any file is opened."""
    known = tools.processors[step.processor]
    options = checked_options(tools.processors, step.processor, step.options)
    needs = known.needs(options, tools.zoo)
    return _Wanted(
        known.build(options, tools.zoo),
        needs.crop or known.crop,
        needs.recognizer,
        known.keeps_occluders(options),
    )


def _recognizers(steps: Sequence[_Wanted], tools: Tools) -> tuple[ArcFaceRecognizer, ...]:
    ids = dict.fromkeys(step.recognizer for step in steps if step.recognizer is not None)
    return tuple(ArcFaceRecognizer(tools.zoo, each) for each in ids)


def _stages(
    steps: Sequence[_Wanted], tools: Tools, *, who: Stage, target: Target
) -> tuple[Stage, ...]:
    before = watched(GateWatch(tools.gate, "target"))
    after = watched_where_changed(GateWatch(tools.gate, "result"))
    work = [
        processed(
            step.processor,
            step.crop,
            masker=tools.masker() if step.keeps_occluders else None,
            is_still=target.info.kind == "still",
        )
        for step in steps
    ]
    return (
        chained(tracked(tools.tracker(target.info.kind)), before),
        chained(who, target.demand_faces, *work, hidden(FaceHider()), after),
    )


class _Cast:
    """Who gets which face. The faces are made in the stage itself, while others look at the first frames."""

    def __init__(
        self,
        spec: RenderSpec,
        tools: Tools,
        *,
        info: MediaInfo,
        finds_people: FindPeople,
        recognizers: tuple[ArcFaceRecognizer, ...],
    ) -> None:
        self._spec = spec
        self._tools = tools
        self._info = info
        self._finds_people = finds_people
        self._recognizers = recognizers
        self._casting: Casting | None = None

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is known so far of the photos."""
        return () if self._casting is None else self._casting.notices

    @property
    def changed(self) -> tuple[str, ...]:
        """How the people are called for whom a change was chosen."""
        return () if self._casting is None else self._casting.changed

    def assigned(self, windows: Iterator[Window]) -> Iterator[Window]:
        """A stage that says who gets which face.

        Raises:
            AppError: A photo cannot be used, or somebody whom the spec names is not there.
        """
        self._casting = prepare_casting(self._spec, self._tools, recognizers=self._recognizers)
        yield from self._stage(self._casting)(windows)

    def _stage(self, casting: Casting) -> Stage:
        """The people of a still are those whom its one frame shows; a video is looked through where it is needed."""
        if self._info.kind == "still" and self._spec.face_map.choices:
            return _assigned_in_still(casting)
        if not casting.needs_people:
            return assigned(casting.by_likeness())
        found = self._finds_people(self._spec.target, self._tools)
        # Of a part the clock starts with the part, and people were seen by the whole file's.
        clock_s = float(self._info.clock_offset_s - found.clock_offset_s)
        return assigned(casting.among(found.people, clock_s=clock_s))


def _assigned_in_still(casting: Casting) -> Stage:
    """Say who gets which face, once it is seen who is there."""
    return lambda windows: (casting.among(people_in(w[0])).assign(w) for w in windows)


def chained(*stages: Stage) -> Stage:
    """Several stages that share a thread."""

    def stage(windows: Iterator[Window]) -> Iterator[Window]:
        for each in stages:
            windows = each(windows)
        return windows

    return stage
