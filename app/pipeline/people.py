"""Who is in a file: a sparse look, done in seconds, before anything is rendered."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

from app.core.types import Frame
from app.faces.gathering import Detect, PeopleGatherer
from app.faces.person import Person
from app.faces.searching import detect_sparsely
from app.faces.shots import CutFinder
from app.media.glimpses import glimpses
from app.media.info import MediaInfo
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.span import player_clock_s
from app.media.still import read_still
from app.pipeline.tools import Tools

LOOK_EVERY_S = 0.5
_MAX_LOOKS = 600
"""Of longer videos the looks lie farther apart."""
_BATCH = 8

OnShare = Callable[[float], None]
"""Is told what share of the work is done, 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleFound:
    """The people of one or more files.

    Attributes:
        size_wh: Of the (first) upright picture; boxes are in pixels of their own file's picture.
        duration_s: Of all files together; 0 for stills.
        clock_offset_s: What the times of the (first) file's places, which are those that players show, have lost
            against its own clock.
    """

    size_wh: tuple[int, int]
    duration_s: float
    people: tuple[Person, ...]
    clock_offset_s: Fraction = Fraction(0)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; neither pixels nor embeddings."""
        return {
            "size_wh": list(self.size_wh),
            "duration_s": round(self.duration_s, 3),
            "people": [_person_json(person) for person in self.people],
        }


def _person_json(person: Person) -> dict[str, object]:
    return {
        "number": person.number,
        "first_s": round(person.first_s, 3),
        "last_s": round(person.last_s, 3),
        "share": round(person.share, 4),
        "size_range_px": [round(width, 1) for width in person.size_range_px],
        "places": [
            {
                "file": place.file,
                "time_s": round(place.time_s, 3),
                "bbox_xyxy": [round(float(value), 1) for value in place.bbox_xyxy],
            }
            for place in person.places
        ],
    }


def find_people(path: Path, tools: Tools, *, on_progress: OnShare = lambda _: None) -> PeopleFound:
    """Find the people of a still or a video; see `find_people_of_all`."""
    return find_people_of_all((path,), tools, on_progress=on_progress)


def find_people_of_all(
    paths: Sequence[Path], tools: Tools, *, on_progress: OnShare = lambda _: None
) -> PeopleFound:
    """Find the people of several files, each person once.

    A video is looked at about twice a second and at the first frame of each shot. Two runs give the same.

    Args:
        paths: One or more stills, videos or animations.
        tools: The networks.
        on_progress: Is told what share of the work is done.

    Raises:
        MediaError: A file cannot be read.
    """
    infos = [probe(path, tools.limits) for path in paths]
    duration_s = sum(info.duration_s or 0.0 for info in infos if info.kind == "video")
    every_s = max(LOOK_EVERY_S, duration_s / _MAX_LOOKS)
    gatherer = PeopleGatherer(tools.landmarker, tools.recognizer)
    for file, (path, info) in enumerate(zip(paths, infos, strict=True)):
        looks = _looks(path, info, tools.limits, every_s)
        for batch in _batches(looks):
            gatherer.look(batch, _detect(info, tools), file=file)
            on_progress((file + _share(batch[-1], info)) / len(paths))
    on_progress(1.0)
    return PeopleFound(
        size_wh=infos[0].size_wh,
        duration_s=duration_s,
        people=gatherer.people(),
        clock_offset_s=infos[0].clock_offset_s + player_clock_s(infos[0]),
    )


def _looks(path: Path, info: MediaInfo, limits: MediaLimits, every_s: float) -> Iterator[Frame]:
    """What is looked at: the first frame of each shot, and one every so often; a still whole."""
    if info.kind == "still":
        picture = read_still(path, limits).picture
        yield Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        return
    cuts, due_s = CutFinder(), 0.0
    for frame in glimpses(path, limits, every_s=every_s):
        (marked,) = cuts.mark((frame,))
        if marked.is_cut or frame.time_s >= due_s:
            # The decoder's memory goes with the next frame.
            shown = marked.pts - round(player_clock_s(info) / marked.time_base)
            yield replace(marked, pts=shown, picture=frame.picture.copy())
            due_s = frame.time_s + every_s


def _detect(info: MediaInfo, tools: Tools) -> Detect:
    if info.kind == "still":
        return tools.still_detector.detect
    return detect_sparsely(tools.detector)


def _batches(looks: Iterator[Frame]) -> Iterator[list[Frame]]:
    while batch := list(islice(looks, _BATCH)):
        yield batch


def _share(frame: Frame, info: MediaInfo) -> float:
    return min(1.0, frame.time_s / info.duration_s) if info.duration_s else 1.0
