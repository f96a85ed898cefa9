"""Who gets which face, on made-up tracks with embeddings in a few directions."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from app.core.geometry import FloatArray
from app.core.types import Face, Frame, TrackId
from app.faces.assign import Assigner, Role, Treatment
from app.faces.person import Place
from tests.conftest import MakeFace, MakeFrame
from tests.faces.conftest import MakeIdentity

THRESHOLD = 0.363
AXES = np.eye(128, dtype=np.float32)
ADA, BEN, EVE = AXES[:3]

Seen = tuple[int | None, FloatArray | None]
"""A track and its embedding."""


def like(cosine: float, person: FloatArray = ADA, noise: int = 9) -> FloatArray:
    """Somebody who is so much like a person."""
    return np.asarray(cosine * person + (1 - cosine**2) ** 0.5 * AXES[noise], np.float32)


def between(first: float, second: float) -> FloatArray:
    """Somebody who is so much like Ada, and so much like Ben."""
    rest = max(0.0, 1 - first**2 - second**2) ** 0.5
    return np.asarray(first * ADA + second * BEN + rest * AXES[8], np.float32)


def place(time_s: float, at: int) -> Place:
    """Where the face that stands at a position has its box."""
    cx = 30 + 40 * at
    return Place(time_s=time_s, bbox_xyxy=np.array([cx - 20, 44, cx + 20, 84], np.float32))


@pytest.fixture
def make_window(make_face: MakeFace, make_frame: MakeFrame) -> "MakeWindow":
    return MakeWindow(make_face, make_frame)


class MakeWindow:
    """Frames 1/25 s apart; faces stand left to right in the order given."""

    def __init__(self, make_face: MakeFace, make_frame: MakeFrame) -> None:
        self._make_face = make_face
        self._make_frame = make_frame

    def __call__(self, rows: Sequence[Sequence[Seen]], first: int = 0) -> tuple[Frame, ...]:
        return tuple(
            self._make_frame(
                index, faces=tuple(self._face(at, seen) for at, seen in enumerate(row))
            )
            for index, row in enumerate(rows, start=first)
        )

    def _face(self, at: int, seen: Seen) -> Face:
        track_id = None if seen[0] is None else TrackId(seen[0])
        return self._make_face(cx=30 + 40 * at, track_id=track_id, embedding=seen[1])


def role(who: str, embedding: FloatArray, *places: Place) -> Role:
    return Role(
        who=who,
        normed_embeddings=np.atleast_2d(embedding),
        treatment=Treatment(is_blurred=True),
        places=places,
    )


def assigner(*roles: Role) -> Assigner:
    return Assigner(roles, others=Treatment(), threshold=THRESHOLD)


def named(window: Sequence[Frame]) -> list[list[str | None]]:
    return [[face.who for face in frame.faces] for frame in window]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        pytest.param([], [], id="an empty window"),
        pytest.param([[], [(4, ADA)]], [[], ["ada"]], id="a start without faces"),
        pytest.param([[(0, BEN), (1, ADA)]], [["ben", "ada"]], id="each their own"),
        pytest.param([[(None, BEN), (None, ADA)]], [["ben", "ada"]], id="faces without tracks"),
        pytest.param([[(0, None)]], [[None]], id="whom nobody has described is a stranger"),
        pytest.param([[(0, EVE), (1, ADA)]], [[None, "ada"]], id="a stranger is left alone"),
        pytest.param([[(0, like(0.35))]], [[None]], id="just below the threshold"),
        pytest.param([[(0, like(0.37))]], [["ada"]], id="just above the threshold"),
        pytest.param(
            [[(3, ADA), (5, BEN)], [(5, BEN), (3, ADA)]],
            [["ada", "ben"], ["ben", "ada"]],
            id="two who change places",
        ),
        pytest.param(
            [[(3, ADA), (4, BEN)], [], [(7, BEN), (8, like(0.6))], [(8, like(0.6))]],
            [["ada", "ben"], [], ["ben", "ada"], ["ada"]],
            id="after a cut people are known again",
        ),
        pytest.param(
            [[(0, between(0.9, 0.38)), (1, between(0.7, 0.1))]],
            [["ada", None]],
            id="no second pair at the price of a better one",
        ),
        pytest.param(
            [[(0, between(0.7, 0.68)), (1, between(0.65, 0.2))]],
            [["ben", "ada"]],
            id="the best for both, not the greedy one",
        ),
        pytest.param(
            [[(0, ADA), (1, ADA)]], [["ada", None]], id="a twin beside the person is somebody else"
        ),
        pytest.param(
            [[(0, like(0.5))], [(0, like(0.5)), (1, ADA)], [(0, like(0.5))]],
            [[None], [None, "ada"], [None]],
            id="of two who look alike the likest, in earlier frames of the window too",
        ),
    ],
)
def test_who_is_who(
    frames: Sequence[Sequence[Seen]], expected: list[list[str | None]], make_window: MakeWindow
) -> None:
    assert (
        named(assigner(role("ada", ADA), role("ben", BEN)).assign(make_window(frames))) == expected
    )


def test_several_views_know_a_person_that_their_mean_does_not(make_window: MakeWindow) -> None:
    views = np.stack([like(0.1, ADA, 20), like(0.1, ADA, 21), like(0.1, ADA, 22)])
    ada = role("ada", views)
    assert named(assigner(ada).assign(make_window([[(0, AXES[21])]]))) == [["ada"]]


def test_each_person_is_treated_their_own_way(
    make_window: MakeWindow, make_identity: MakeIdentity
) -> None:
    first, second = make_identity("first"), make_identity("second")
    roles = [
        Role(who="1", normed_embeddings=ADA[None], treatment=Treatment(identity=first)),
        Role(who="2", normed_embeddings=BEN[None], treatment=Treatment(is_blurred=True)),
        Role(who=None, normed_embeddings=EVE[None], treatment=Treatment()),
    ]
    everybody = Assigner(roles, others=Treatment(identity=second), threshold=THRESHOLD)
    window = make_window([[(0, EVE), (1, AXES[50]), (2, BEN), (3, ADA)]])
    ((*faces,),) = (frame.faces for frame in everybody.assign(window))
    assert [face.identity for face in faces] == [None, second, None, first]
    assert [face.is_blurred for face in faces] == [False, False, True, False]


def test_without_roles_everybody_is_treated_alike(
    make_window: MakeWindow, make_identity: MakeIdentity
) -> None:
    identity = make_identity()
    window = make_window([[(0, None), (None, ADA)], []])
    everybody = Assigner([], others=Treatment(identity=identity), threshold=THRESHOLD)
    assigned = everybody.assign(window)
    assert [[face.identity for face in frame.faces] for frame in assigned] == [[identity] * 2, []]


LIKENESS: Mapping[str, Sequence[float]] = {
    "slowly down through the threshold": np.linspace(0.6, 0.3, 40).tolist(),
    "to and fro over it": [0.40, 0.34] * 20,
    "one bad look": [0.7] * 20 + [0.0] + [0.7] * 19,
}


@pytest.mark.parametrize("cosines", LIKENESS.values(), ids=LIKENESS.keys())
def test_a_decision_does_not_flicker(cosines: Sequence[float], make_window: MakeWindow) -> None:
    ada = assigner(role("ada", ADA), role("ben", BEN))
    names = [
        named(ada.assign(make_window([[(0, like(cosine))]], first=index)))[0][0]
        for index, cosine in enumerate(cosines)
    ]
    assert names == ["ada"] * len(cosines)


def test_a_stranger_who_only_grazes_the_threshold_stays_one(make_window: MakeWindow) -> None:
    ada = assigner(role("ada", ADA))
    cosines = [0.2] + [0.40, 0.34] * 10
    names = [
        named(ada.assign(make_window([[(0, like(cosine))]], first=index)))[0][0]
        for index, cosine in enumerate(cosines)
    ]
    assert names == [None] * len(cosines)


def test_strong_evidence_changes_a_decision(make_window: MakeWindow) -> None:
    two = assigner(role("ada", ADA), role("ben", BEN))
    assert named(two.assign(make_window([[(0, between(0.5, 0.4))]]))) == [["ada"]]
    later = [
        named(two.assign(make_window([[(0, between(0.1, 0.9))]], first=index)))[0][0]
        for index in range(1, 5)
    ]
    assert later[-1] == "ben"


def test_who_was_taken_for_a_person_gives_way_to_the_person(make_window: MakeWindow) -> None:
    ada = assigner(role("ada", ADA))
    assert named(ada.assign(make_window([[(0, like(0.45))]]))) == [["ada"]]
    assert named(ada.assign(make_window([[(0, like(0.45)), (1, ADA)]], first=1))) == [[None, "ada"]]
    assert named(ada.assign(make_window([[(0, like(0.45))]], first=2))) == [[None]]


def test_a_place_tells_twins_apart(make_window: MakeWindow) -> None:
    twins = assigner(role("left", ADA, place(0.04, 0)), role("right", ADA, place(0.04, 1)))
    rows = [[(7, ADA), (8, ADA)], [(7, ADA), (8, ADA)], [(8, ADA), (7, ADA)]]
    assert named(twins.assign(make_window(rows))) == [
        ["left", "right"],
        ["left", "right"],
        ["right", "left"],
    ]


def test_a_place_knows_whom_no_likeness_knows(make_window: MakeWindow) -> None:
    ada = assigner(role("ada", ADA, place(0, 1)))
    assert named(ada.assign(make_window([[(0, EVE), (1, None)]]))) == [[None, "ada"]]


@pytest.mark.parametrize(
    ("time_s", "clock_s", "expected"),
    [
        pytest.param(10.0, 10.0, "ada", id="the part begins at 10 s"),
        pytest.param(10.0, 0.0, None, id="another time"),
        pytest.param(0.0, 10.0, None, id="before the part"),
    ],
)
def test_places_are_looked_up_by_the_clock_of_the_whole_file(
    time_s: float, clock_s: float, expected: str | None, make_window: MakeWindow
) -> None:
    known = role("ada", ADA, place(time_s, 0))
    part = Assigner([known], others=Treatment(), threshold=THRESHOLD, clock_s=clock_s)
    assert named(part.assign(make_window([[(0, EVE)]]))) == [[expected]]


def test_one_wrong_place_does_not_outvote_a_track_and_its_likeness(make_window: MakeWindow) -> None:
    ada = role("ada", ADA, place(0, 0), place(0.12, 0))
    ben = role("ben", BEN, place(0.04, 0))
    rows = [[(0, ADA)]] * 4
    assert named(assigner(ada, ben).assign(make_window(rows))) == [["ada"]] * 4


def test_two_who_cross_keep_their_faces(make_window: MakeWindow) -> None:
    """Sixty frames, in the middle of which the two swap sides and look alike."""
    steady = between(0.55, 0.5)
    rows = []
    for index in range(60):
        hidden = 25 <= index < 35
        pair = [(0, steady if hidden else ADA), (1, steady if hidden else BEN)]
        rows.append(pair if index < 30 else pair[::-1])
    two = assigner(role("ada", ADA, place(0, 0)), role("ben", BEN, place(0, 1)))
    names = [
        name
        for start in range(0, 60, 15)
        for name in named(two.assign(make_window(rows[start : start + 15], first=start)))
    ]
    assert names == [["ada", "ben"]] * 30 + [["ben", "ada"]] * 30


def test_what_is_remembered_does_not_grow_with_the_video(make_window: MakeWindow) -> None:
    ada = assigner(role("ada", ADA))
    for index in range(200):
        ada.assign(make_window([[(index, ADA)]], first=index))
    assert ada.remembered_tracks < 20
