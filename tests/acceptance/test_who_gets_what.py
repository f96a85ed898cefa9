"""Each person of a picture in turn gets another face: that person becomes it, and nobody else changes by one level."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from app.workbench import Workbench
from tests.acceptance.conftest import Swap
from tests.acceptance.judging import CORE, SOURCES, SURELY_SWAPPED, Judges, Rgb, Spot, pixels

pytestmark = [pytest.mark.slow, pytest.mark.weights]

GROUPS = {"group_six_t1.jpg": 6, "glasses_three_people.jpg": 3, "two_people_profileish.jpg": 2}
CROWDS = {"crowd_bw_1927.jpg": 29, "group_outdoor.jpg": 14}
ROUNDS = 3
"""In each of so many rounds another part of a crowd changes; neighbors in a row change in different ones."""
ALONE = {"crowd_bw_1927.jpg": (6, 12, 15), "group_outdoor.jpg": (6, 7, 9)}
"""Members of a crowd who change alone: the smallest, the largest, and one between others."""

CHANGED = [
    *((name, (person,)) for name, count in GROUPS.items() for person in range(1, count + 1)),
    *((name, (person,)) for name, people in ALONE.items() for person in people),
    *(
        (name, tuple(range(first, count + 1, ROUNDS)))
        for name, count in CROWDS.items()
        for first in range(1, ROUNDS + 1)
    ),
    *((name, tuple(range(1, count + 1))) for name, count in {**GROUPS, **CROWDS}.items()),
]


def told(case: object) -> str:
    """A name for a case."""
    if not isinstance(case, tuple):
        return str(case)
    return f"people {case[0]} to {case[-1]}" if len(case) > 1 else f"person {case[0]}"


def spots_in(workbench: Workbench, path: Path) -> list[Spot]:
    return [Spot(face.bbox_xyxy, face.kps) for face in workbench.find_faces(path).faces]


def test_every_picture_with_several_people_is_tried(
    ground_truth: dict[str, dict[str, object]],
) -> None:
    several = {name: told["faces_count"] for name, told in ground_truth.items()}
    assert {name: count for name, count in several.items() if count > 1} == {**GROUPS, **CROWDS}  # type: ignore[operator]


@pytest.mark.parametrize(("name", "people"), CHANGED, ids=told)
def test_who_is_meant_becomes_their_source_and_nobody_else_changes(
    name: str,
    people: tuple[int, ...],
    assets: Path,
    tmp_path: Path,
    workbench: Workbench,
    swap: Swap,
    judges: Judges,
) -> None:
    target, output = assets / "stills" / name, tmp_path / "out.png"
    given = {person: SOURCES[person % len(SOURCES)] for person in people}
    result = swap(target, output, given)
    assert [(each.who, each.frames) for each in result.people] == [
        (f"person {p}", 1) for p in people
    ]
    before, after, spots = pixels(target), pixels(output), spots_in(workbench, target)
    meant = {person: spots[person - 1] for person in people}
    others = [spot for number, spot in enumerate(spots, start=1) if number not in meant]
    assert_untouched(before, after, meant.values(), others)
    for person, spot in meant.items():
        judges.assert_became(given[person], [before], [after], [spot])


def assert_untouched(
    before: Rgb, after: Rgb, changed: Iterable[Spot], others: Iterable[Spot]
) -> None:
    """Nothing far from the changed faces differs, and nothing in anybody else's face."""
    same = (before == after).all(2)
    for other in others:
        assert same[other.zone(before.shape, CORE)].all()
    for spot in changed:
        same |= spot.zone(before.shape, SURELY_SWAPPED)
    assert same.all()
