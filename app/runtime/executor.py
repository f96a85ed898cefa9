"""Runs plans in this process: decode, analysis, processing and encoding each in a thread of their own."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial

from app.core.errors import Cancelled
from app.core.types import Notice, Window
from app.pipeline.people import find_people
from app.pipeline.plan import open_plan
from app.pipeline.progress import PersonCount, Progress, RenderResult, WorkPart
from app.pipeline.spec import RenderSpec
from app.pipeline.tools import Tools
from app.runtime.occupancy import Occupancy, WorkClock
from app.runtime.runner import run_threaded


class LocalExecutor:
    """Renders one spec after another with the same tools.

    Args:
        tools: Networks, processors and limits; shared by all jobs of this process.
        device: Counts the time in which the networks run; `None` where nobody counts it.
    """

    def __init__(self, tools: Tools, device: WorkClock | None = None) -> None:
        self._tools = tools
        self._device = device

    def render(
        self,
        spec: RenderSpec,
        *,
        on_progress: Callable[[Progress], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> RenderResult:
        """Make the output of a spec.

        Args:
            spec: What a person asked for.
            on_progress: Told after each window of frames.
            should_stop: Asked before each window of frames, and while people are looked for.

        Raises:
            AppError: Whatever is wrong; nothing is left behind.
            Cancelled: `should_stop` said so; nothing is left behind.
        """

        def stop_if_asked(_: float = 0.0) -> None:
            if should_stop():
                raise Cancelled("stopped on request")

        finds_people = partial(find_people, on_progress=stop_if_asked)
        with ExitStack() as opened:
            plan = opened.enter_context(open_plan(spec, self._tools, finds_people=finds_people))
            clocks = [WorkClock() for _ in (*plan.stages, "the source")]
            encoding = WorkClock()
            tally = _Tally(self._occupancy(plan.parts, clocks, encoding))
            running = run_threaded(plan.windows(), plan.stages, clocks=clocks)
            with closing(running) as finished:
                for window in finished:
                    stop_if_asked()
                    with encoding.at_work():
                        for frame in window:
                            plan.sink.write(frame)
                    tally.add(window)
                    on_progress(tally.progress(plan.frames_total))
            with encoding.at_work():
                # What the encoder still holds, the label, and the sound.
                opened.close()
        return tally.result(spec, plan.notices(), plan.people())

    def _occupancy(
        self, stages: Sequence[WorkPart], clocks: Sequence[WorkClock], encoding: WorkClock
    ) -> Occupancy:
        parts: dict[WorkPart, WorkClock] = dict(zip(("decode", *stages), clocks, strict=True))
        if self._device is not None:
            parts["device"] = self._device
        return Occupancy({**parts, "encode": encoding})


class _Tally:
    """Counts what comes out.

    Args:
        occupancy: How busy the parts of the job are.
    """

    def __init__(self, occupancy: Occupancy) -> None:
        self._occupancy = occupancy
        self._started_s = time.monotonic()
        self._people: Counter[str] = Counter()
        self._frames = 0
        self._frames_swapped = 0
        self._faces_swapped = 0

    def add(self, window: Window) -> None:
        self._frames += len(window)
        self._frames_swapped += sum(frame.faces_swapped > 0 for frame in window)
        self._faces_swapped += sum(frame.faces_swapped for frame in window)
        for frame in window:
            self._people.update({face.who for face in frame.faces if face.is_changed and face.who})

    def progress(self, frames_total: int | None) -> Progress:
        elapsed_s = time.monotonic() - self._started_s
        return Progress(
            frames_done=self._frames,
            frames_total=frames_total,
            fps=self._frames / elapsed_s if elapsed_s > 0 else 0.0,
            elapsed_s=elapsed_s,
            busy=self._occupancy.lately(),
        )

    def result(
        self, spec: RenderSpec, notices: tuple[Notice, ...], people: Sequence[str]
    ) -> RenderResult:
        if self._frames_swapped == 0:
            notice = Notice("face.none_in_target", "no face was found to change in any frame")
            notices = (*notices, notice)
        return RenderResult(
            output=spec.output,
            frames=self._frames,
            frames_swapped=self._frames_swapped,
            faces_swapped=self._faces_swapped,
            notices=notices,
            people=tuple(PersonCount(who=who, frames=self._people[who]) for who in people),
            busy=self._occupancy.overall(),
        )
