"""The stages of a plan: generators over windows of frames, strangers to files, threads and jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from app.core.types import CropSpec, FaceBatch, Frame, Window
from app.faces.align import AlignedFaces, align
from app.faces.assign import Assigner
from app.faces.hiding import FaceHider
from app.faces.masks import FaceMasker
from app.faces.paste import VISIBLE, paste
from app.faces.tracker import FaceTracker
from app.processors.base import FaceProcessor
from app.safety.gate import EMPTY_EVERY_S, EVERY_S, GateWatch

Stage = Callable[[Iterator[Window]], Iterator[Window]]

_WINDOW_BYTES = 25_000_000
"""Few enough that frames are still in the processor's cache when they are encoded: at 1080p 16 frames cost 3 % more
than 8."""
_WINDOW_FRAMES = (4, 16)
"""Four frames are the step at which the tracker looks for faces, so that shorter windows would cost more looks."""


def window_length(frame_bytes: int) -> int:
    """How many frames go together: enough to fill a batch, few enough to keep 4K in memory."""
    shortest, longest = _WINDOW_FRAMES
    return max(shortest, min(longest, _WINDOW_BYTES // max(1, frame_bytes)))


def into_windows(frames: Iterable[Frame]) -> Iterator[Window]:
    """Group consecutive frames; the last window may be shorter, and the first one is, so that encoding begins soon."""
    held: list[Frame] = []
    is_first = True
    for frame in frames:
        held.append(frame)
        frame_bytes = sum(plane.nbytes for plane in frame.picture.planes)
        if len(held) >= (_WINDOW_FRAMES[0] if is_first else window_length(frame_bytes)):
            yield tuple(held)
            held.clear()
            is_first = False
    if held:
        yield tuple(held)


def watched(watch: GateWatch) -> Stage:
    """Let the content gate look at the frames, whose faces are found, as they pass; nothing it refuses goes on."""

    def stage(windows: Iterator[Window]) -> Iterator[Window]:
        for window in windows:
            for frame in window:
                every_s = EVERY_S if frame.faces else EMPTY_EVERY_S
                watch.feed(frame.time_s, frame.picture, every_s=every_s)
            yield window
        watch.finish()

    return stage


def watched_where_changed(watch: GateWatch) -> Stage:
    """As `watched`, for frames that have passed the gate once: only those with a changed face are new to it."""

    def stage(windows: Iterator[Window]) -> Iterator[Window]:
        is_any_changed = False
        for window in windows:
            for frame in window:
                if frame.faces_swapped:
                    is_any_changed = True
                    watch.feed(frame.time_s, frame.picture)
            yield window
        if is_any_changed:
            watch.finish()

    return stage


def tracked(tracker: FaceTracker) -> Stage:
    """Find, measure and follow the faces."""
    return lambda windows: map(tracker.track, windows)


def assigned(assigner: Assigner) -> Stage:
    """Say who gets which face."""
    return lambda windows: map(assigner.assign, windows)


def processed(
    processor: FaceProcessor,
    crop: CropSpec,
    *,
    masker: FaceMasker | None = None,
    is_still: bool = False,
) -> Stage:
    """Cut the chosen faces of a whole window out, work on them as batches, and put them back.

    Args:
        processor: Does the work.
        crop: The crop it wants.
        masker: Says what lies in front of a face and stays; nothing does without it.
        is_still: The one frame has no neighbors, so no row belongs to a track.
    """

    def prepared(batch: FaceBatch) -> FaceBatch:
        tracks = () if is_still else batch.track_ids
        if masker is None:
            return replace(batch, track_ids=tracks)
        seen = masker.masks(batch.crops, batch.landmarks, tracks)
        masks = batch.masks if seen.min() == 1 else batch.masks * seen
        return replace(batch, masks=masks, track_ids=tracks)

    def work(window: Window) -> Window:
        aligned = align(window, crop)
        done = [processor.process(prepared(part.batch)) for part in aligned]
        return _marked(paste(window, aligned, done), aligned, done)

    # Unlike a generator, `map` does not hold on to a window whose changed copy waits for the next stage.
    return lambda windows: map(work, windows)


def hidden(hider: FaceHider) -> Stage:
    """Make unrecognizable who is to be blurred; after all processors, so that none shows what was hidden."""
    return lambda windows: map(hider.hide, windows)


def _marked(window: Window, aligned: Sequence[AlignedFaces], done: Sequence[FaceBatch]) -> Window:
    """Say of each face whether a processor has changed it: a mask that is empty puts nothing back."""
    changed = {
        (slot.frame, slot.face)
        for part, batch in zip(aligned, done, strict=True)
        for slot, mask in zip(part.slots, batch.masks, strict=True)
        if float(mask.max()) >= VISIBLE
    }
    return tuple(
        replace(
            frame,
            faces=tuple(
                replace(face, is_changed=face.is_changed or (at, index) in changed)
                for index, face in enumerate(frame.faces)
            ),
        )
        if any((at, index) in changed for index in range(len(frame.faces)))
        else frame
        for at, frame in enumerate(window)
    )
