from collections.abc import Sequence

import numpy as np
import pytest

from app.core.errors import NoSuchPersonError
from app.core.geometry import FloatArray
from app.core.types import Face, TrackId
from app.faces.assign import Assigner
from tests.conftest import MakeFace, MakeFrame
from tests.faces.conftest import MakeIdentity

ADA, BEN = np.eye(128, dtype=np.float32)[:2]
ADA_AGAIN = (0.6 * ADA + 0.8 * np.eye(128, dtype=np.float32)[5]).astype(np.float32)
ADA_NEARLY = (0.3 * ADA + 0.954 * np.eye(128, dtype=np.float32)[6]).astype(np.float32)

Seen = tuple[int | None, FloatArray | None]


def chosen_tracks(
    person: int | None,
    frames: Sequence[Sequence[Seen]],
    make_face: MakeFace,
    make_frame: MakeFrame,
    make_identity: MakeIdentity,
) -> list[list[int | None]]:
    """Which tracks get the identity, frame by frame; faces stand left to right in the order given."""
    identity = make_identity()
    window = tuple(
        make_frame(index, faces=tuple(_face(make_face, at, seen) for at, seen in enumerate(row)))
        for index, row in enumerate(frames)
    )
    assigned = Assigner(person, identity).assign(window)
    for frame in assigned:
        assert all(face.identity in (None, identity) for face in frame.faces)
    return [[face.track_id for face in frame.faces if face.identity] for frame in assigned]


def _face(make_face: MakeFace, at: int, seen: Seen) -> Face:
    track_id = None if seen[0] is None else TrackId(seen[0])
    return make_face(cx=30 + 40 * at, track_id=track_id, embedding=seen[1])


@pytest.mark.parametrize(
    ("person", "frames", "expected"),
    [
        pytest.param(None, [], [], id="an empty window"),
        pytest.param(0, [[], [(4, None)]], [[], [4]], id="a start without faces"),
        pytest.param(None, [[(0, None), (1, None)]], [[0, 1]], id="everybody"),
        pytest.param(1, [[(0, None), (1, None)]], [[1]], id="one person"),
        pytest.param(1, [[(None, None), (None, None)]], [[None]], id="one person without tracks"),
        pytest.param(
            0,
            [[(3, None), (5, None)], [(5, None), (3, None)]],
            [[3], [3]],
            id="the track is followed when they change places",
        ),
        pytest.param(
            0,
            [[(3, None)], [(4, None)]],
            [[3], []],
            id="without embeddings a new track is a stranger",
        ),
        pytest.param(
            0,
            [[(3, ADA), (4, BEN)], [], [(7, BEN), (8, ADA_AGAIN)], [(8, ADA_AGAIN)]],
            [[3], [], [8], [8]],
            id="after a cut the person is known by the embedding",
        ),
        pytest.param(
            0, [[(3, ADA)], [(4, ADA_NEARLY)]], [[3], []], id="likeness below the level is nobody"
        ),
        pytest.param(
            0,
            [[(3, ADA)], [(5, ADA_AGAIN), (6, ADA)], [(5, ADA_AGAIN)]],
            [[3], [6], []],
            id="of two who look alike the likest, and never the other",
        ),
        pytest.param(
            0,
            [[(3, ADA)], [(3, ADA), (4, ADA)], [(4, ADA)]],
            [[3], [3], []],
            id="a twin seen beside the person is somebody else",
        ),
    ],
)
def test_who_gets_the_face(
    person: int | None,
    frames: Sequence[Sequence[Seen]],
    expected: list[list[int | None]],
    make_face: MakeFace,
    make_frame: MakeFrame,
    make_identity: MakeIdentity,
) -> None:
    assert chosen_tracks(person, frames, make_face, make_frame, make_identity) == expected


def test_a_person_beyond_the_last_is_refused_with_the_count(
    make_face: MakeFace, make_frame: MakeFrame, make_identity: MakeIdentity
) -> None:
    with pytest.raises(NoSuchPersonError, match=r"shows 2, so there is no such person"):
        chosen_tracks(2, [[], [(0, None), (1, None)]], make_face, make_frame, make_identity)


def test_the_person_is_remembered_from_window_to_window(
    make_face: MakeFace, make_frame: MakeFrame, make_identity: MakeIdentity
) -> None:
    assigner = Assigner(1, make_identity())
    pair = (make_face(track_id=TrackId(0)), make_face(cx=100, track_id=TrackId(1)))
    assigner.assign((make_frame(0, faces=pair),))
    (frame,) = assigner.assign((make_frame(1, faces=pair[::-1]),))
    assert [face.identity is not None for face in frame.faces] == [True, False]
