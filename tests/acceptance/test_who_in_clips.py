"""Each person of a video in turn gets another face, in every frame that shows them, and nobody else changes at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.picture import Picture
from app.pipeline.people import PeopleFound
from app.pipeline.tools import Tools
from app.workbench import Workbench
from tests.acceptance.conftest import Case, Swap
from tests.acceptance.following import TrueFace, truth_of
from tests.acceptance.judging import (
    CORE,
    SOURCES,
    SURELY_SWAPPED,
    Judges,
    Rgb,
    Spot,
    frames_of,
    times_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.weights]

MADE = {
    "motion_group_pan_zoom.mp4": {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5},
    "motion_two_people_swap_sides.mp4": {1: 0, 2: 1},
    "motion_two_person_side_by_side.mp4": {1: 0, 2: 1},
    "motion_face_leaves_and_returns.mp4": {1: 0},
    "motion_occluding_bar.mp4": {1: 0},
    "motion_fade_to_black.mp4": {1: 0},
    "motion_flash.mp4": {1: 0},
    "motion_scene_cut.mp4": {1: 0, 6: 2},
}
"""Numbers of the people of each made clip, and what its truth calls them."""
FOUND = {"street_people_leave_frame.mp4": (1, 2), "stage_lowlight_cuts_audio.mp4": (1, 2)}
"""Clips whose truth nobody knows, and which of their largest people change."""
LARGE_PX = 45
"""Of a street 1280 pixels wide, which the tracker mostly sees at half that."""
OTHER_SOURCES = {
    ("motion_face_leaves_and_returns.mp4", 1): SOURCES[3],
    ("motion_fade_to_black.mp4", 1): SOURCES[3],
    ("motion_flash.mp4", 1): SOURCES[3],
}
"""The astronaut and the man with glasses are sources too, so that they must gain much not to stay themselves."""
JUDGED = 8
"""So many frames, spread over the clip, are shown to the networks."""
FEWEST = 3
"""A person who is seen well in fewer frames proves nothing."""
SEEN_LEVELS = 1.0
"""A face whose core differs by more, in the mean of 8-bit levels, is swapped."""

Shown = Iterator[tuple[Rgb, Rgb, Sequence[TrueFace]]]
"""Frames before and after, and who is in them."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What became of one person of a clip.

    Attributes:
        clear: How many frames show the person clearly.
        missed: Numbers of those that were not changed.
        judged: The others in which nobody else is in the way.
    """

    clear: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    judged: list[tuple[Rgb, Rgb, TrueFace]] = field(default_factory=list)

    def assert_became(self, source: str, judges: Judges, tools: Tools) -> None:
        """In all clear frames together the person is liker the source than anybody."""
        assert self.missed == []
        assert len(self.judged) >= FEWEST
        before, after, spots = zip(
            *(
                (was, now, spot)
                for was, now, face in self.judged[:: max(1, len(self.judged) // JUDGED)]
                for spot in spots_of(face, was, tools)
            ),
            strict=True,
        )
        judges.assert_became(source, before, after, spots)


@pytest.mark.parametrize(
    ("name", "person", "truth"),
    [
        pytest.param(name, person, truth, id=f"{name}, person {person}")
        for name, people in MADE.items()
        for person, truth in people.items()
    ],
)
def test_one_person_of_a_made_video_changes_and_nobody_else(
    name: str,
    person: int,
    truth: int,
    cases: Mapping[str, Case],
    tools: Tools,
    tmp_path: Path,
    swap: Swap,
    judges: Judges,
) -> None:
    clip, output = cases[name].path, tmp_path / "out.mkv"
    result = swap(clip, output, {person: source_of(name, person)})
    assert [each.who for each in result.people] == [f"person {person}"]
    rows = truth_of(clip, result.frames)
    watched = watch(zip(frames_of(clip), frames_of(output), rows, strict=True), truth)
    watched.assert_became(source_of(name, person), judges, tools)


@pytest.mark.parametrize("name", [name for name, people in MADE.items() if len(people) > 1])
def test_everybody_in_a_made_video_gets_their_own_face(
    name: str,
    cases: Mapping[str, Case],
    tools: Tools,
    tmp_path: Path,
    swap: Swap,
    judges: Judges,
) -> None:
    clip, output = cases[name].path, tmp_path / "out.mkv"
    result = swap(clip, output, {person: source_of(name, person) for person in MADE[name]})
    rows = truth_of(clip, result.frames)
    frames = list(zip(frames_of(clip), frames_of(output), rows, strict=True))
    for person, truth in MADE[name].items():
        everybody = watch(iter(frames), truth, changes_others=True)
        everybody.assert_became(source_of(name, person), judges, tools)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        pytest.param(name, rank, id=f"{name}, largest {rank}")
        for name, ranks in FOUND.items()
        for rank in ranks
    ],
)
def test_one_person_of_a_video_changes_where_they_were_seen(
    name: str,
    rank: int,
    assets: Path,
    workbench: Workbench,
    tools: Tools,
    tmp_path: Path,
    swap: Swap,
    judges: Judges,
) -> None:
    clip, output = assets / "clips" / name, tmp_path / "out.mkv"
    found = workbench.find_people(clip)
    often = [each for each in found.people if len(each.places) >= FEWEST]
    person = sorted(often, key=lambda each: -each.size_range_px[1])[rank - 1].number
    swap(clip, output, {person: source_of(name, person)})
    seen = [
        (was, now, faces)
        for was, now, time_s in zip(frames_of(clip), frames_of(output), times_of(clip), strict=True)
        if (faces := faces_seen(found, time_s))
    ]
    watch(iter(seen), person, knows_all=False).assert_became(source_of(name, person), judges, tools)


def source_of(name: str, person: int) -> str:
    return OTHER_SOURCES.get((name, person), SOURCES[person % len(SOURCES)])


def faces_seen(found: PeopleFound, time_s: float) -> list[TrueFace]:
    """The faces of a frame that was looked at; none of another."""
    return [
        TrueFace(
            person=person.number,
            box=place.bbox_xyxy,
            is_clear=float(np.ptp(place.bbox_xyxy[::2])) >= LARGE_PX,
        )
        for person in found.people
        for place in person.places
        if abs(place.time_s - time_s) < 1e-3
    ]


def watch(
    frames: Shown, person: int, *, changes_others: bool = False, knows_all: bool = True
) -> Watched:
    """Follow one person, and see that whatever is not theirs stayed as it was.

    Args:
        frames: Before and after.
        person: Whom to follow.
        changes_others: Others change too.
        knows_all: A frame that is not said to show the person does not show them.
    """
    watched = Watched()
    for number, (was, now, faces) in enumerate(frames):
        own = next((face for face in faces if face.person == person), None)
        others = [face for face in faces if face.person != person and is_apart(face, own)]
        changed = (was != now).any(2)
        if not changes_others:
            assert_untouched_faces(changed, others)
        if not changes_others and (knows_all or own is not None):
            assert_untouched_elsewhere(changed, own)
        if own is None or not own.is_clear:
            continue
        watched.clear.append(number)
        if not is_changed(was, now, own):
            watched.missed.append(number)
        elif len(others) == len([face for face in faces if face is not own]):
            watched.judged.append((was, now, own))
    return watched


def assert_untouched_faces(changed: NDArray[np.bool_], others: Sequence[TrueFace]) -> None:
    for other in others:
        grown = 1.0 if other.is_region else CORE
        assert not changed[zone_of(other, changed.shape, grown)].any()


def assert_untouched_elsewhere(changed: NDArray[np.bool_], own: TrueFace | None) -> None:
    if own is not None:
        grown = 1.0 if own.is_region else SURELY_SWAPPED
        changed = changed & ~zone_of(own, changed.shape, grown)
    assert not changed.any()


def is_apart(face: TrueFace, own: TrueFace | None) -> bool:
    if own is None:
        return True
    return bool((face.box[2:] <= own.box[:2]).any() or (own.box[2:] <= face.box[:2]).any())


def is_changed(was: Rgb, now: Rgb, face: TrueFace) -> bool:
    if face.is_region:
        return bool((was != now)[zone_of(face, was.shape, 1.0)].any())
    core = zone_of(face, was.shape, CORE)
    return float(np.abs(was.astype(np.int16) - now)[core].mean()) > SEEN_LEVELS


def zone_of(face: TrueFace, shape: Sequence[int], grown: float) -> NDArray[np.bool_]:
    return Spot(face.box, face.box).zone(shape, grown)


def spots_of(face: TrueFace, image: Rgb, tools: Tools) -> list[Spot]:
    """The face with its points: as the truth has them, or as the largest find in its place."""
    if face.points is not None:
        return [Spot(face.box, face.points)]
    x0, y0, x1, y1 = face.box.tolist()
    found = [
        Spot(each.bbox_xyxy, each.kps)
        for each in tools.faces_of(Picture.from_rgb(image))
        if x0 <= each.kps[2, 0] <= x1 and y0 <= each.kps[2, 1] <= y1
    ]
    return sorted(found, key=lambda spot: -spot.width_px)[:1]
