"""From choices to roles, over made-up people."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.errors import NoSuchPersonError, UsageError
from app.core.geometry import FloatArray
from app.core.types import Face, Frame, TrackId
from app.faces.assign import Treatment
from app.faces.person import Place
from app.pipeline.casting import Casting, Chosen, PersonInStill, people_in
from app.pipeline.spec import PersonChoice
from tests.conftest import MakeFace, MakeFrame

AXES = np.eye(128, dtype=np.float32)
BLUR = Treatment(is_blurred=True)


def person(number: int, *, x: float, y: float = 50, width: float) -> PersonInStill:
    box = np.array([x, y, x + width, y + width], np.float32)
    return PersonInStill(
        number=number,
        normed_embeddings=AXES[number][None],
        size_range_px=(width, width),
        places=(Place(time_s=0, bbox_xyxy=box),),
    )


PEOPLE = (
    person(1, x=10, width=40),
    person(2, x=300, y=10, width=90),
    person(3, x=150, y=90, width=60),
)


def chosen(who: str, embedding: FloatArray | None = None, **choice: Any) -> Chosen:
    if embedding is not None:
        choice["reference"] = Path("photo")
    asked = PersonChoice[Path](**choice, action="blur")
    return Chosen(who=who, choice=asked, treatment=BLUR, embedding=embedding)


def casting(*choices: Chosen) -> Casting:
    return Casting(choices, others=Treatment(), threshold=0.4)


def blurred(cast: Casting, make_face: MakeFace, make_frame: MakeFrame) -> dict[int, str | None]:
    """Who of `PEOPLE` is blurred, and how results call them."""
    faces = tuple(
        make_face(
            bbox_xyxy=each.places[0].bbox_xyxy,
            track_id=TrackId(each.number),
            embedding=each.normed_embeddings[0],
        )
        for each in PEOPLE
    )
    (frame,) = cast.among(PEOPLE).assign((make_frame(faces=faces),))
    return {face.track_id: face.who for face in frame.faces if face.track_id and face.is_blurred}


@pytest.mark.parametrize(
    ("choice", "number"),
    [
        pytest.param({"person": 2}, 2, id="by number"),
        pytest.param({"order": "leftmost"}, 1, id="leftmost"),
        pytest.param({"order": "leftmost", "rank": 2}, 3, id="second from the left"),
        pytest.param({"order": "rightmost"}, 2, id="rightmost"),
        pytest.param({"order": "topmost"}, 2, id="topmost"),
        pytest.param({"order": "bottommost"}, 3, id="bottommost"),
        pytest.param({"order": "largest"}, 2, id="largest"),
        pytest.param({"order": "largest", "rank": 3}, 1, id="third largest"),
        pytest.param({"order": "smallest"}, 1, id="smallest"),
    ],
)
def test_a_choice_means_one_person(
    choice: dict[str, Any], number: int, make_face: MakeFace, make_frame: MakeFrame
) -> None:
    assert blurred(casting(chosen("x", **choice)), make_face, make_frame) == {number: "x"}


def test_a_reference_photo_means_whom_it_is_likest(
    make_face: MakeFace, make_frame: MakeFrame
) -> None:
    photo = np.asarray(0.6 * AXES[3] + 0.5 * AXES[1] + 0.62 * AXES[90], np.float32)
    assert blurred(casting(chosen("ref", photo)), make_face, make_frame) == {3: "ref"}


def test_two_reference_photos_are_two_people(make_face: MakeFace, make_frame: MakeFrame) -> None:
    likest = np.asarray(0.9 * AXES[3] + 0.435 * AXES[90], np.float32)
    both = np.asarray(0.6 * AXES[3] + 0.5 * AXES[1] + 0.62 * AXES[90], np.float32)
    cast = casting(chosen("a", both), chosen("b", likest))
    assert blurred(cast, make_face, make_frame) == {1: "a", 3: "b"}


def test_a_person_chosen_by_number_is_not_taken_by_a_photo(
    make_face: MakeFace, make_frame: MakeFrame
) -> None:
    cast = casting(chosen("ref", AXES[3]), chosen("number", person=3))
    assert blurred(cast, make_face, make_frame) == {3: "number"}
    assert [notice.code for notice in cast.notices] == ["face.reference_not_found"]


def test_whom_nobody_is_like_is_said(make_face: MakeFace, make_frame: MakeFrame) -> None:
    cast = casting(chosen("reference 1", AXES[77]))
    assert blurred(cast, make_face, make_frame) == {}
    (notice,) = cast.notices
    assert notice.code == "face.reference_not_found"
    assert "reference 1" in notice.message


@pytest.mark.parametrize("choice", [{"person": 4}, {"order": "largest", "rank": 4}])
def test_a_person_beyond_the_last_is_refused_with_the_count(choice: dict[str, Any]) -> None:
    with pytest.raises(NoSuchPersonError, match="shows 3 people"):
        casting(chosen("x", **choice)).among(PEOPLE)


def test_two_choices_of_one_person_are_refused() -> None:
    with pytest.raises(UsageError, match="person 2 and largest"):
        casting(chosen("person 2", person=2), chosen("largest", order="largest")).among(PEOPLE)


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        pytest.param([], False, id="everybody"),
        pytest.param([chosen("r", AXES[1])], False, id="a reference photo"),
        pytest.param([chosen("n", person=1)], True, id="a number"),
        pytest.param([chosen("r", AXES[1]), chosen("o", order="largest")], True, id="both"),
    ],
)
def test_a_target_is_looked_through_only_where_somebody_must_be_found(
    choices: list[Chosen], expected: bool
) -> None:
    assert casting(*choices).needs_people is expected


def test_without_a_look_through_reference_photos_are_known_by_likeness(
    make_face: MakeFace, make_frame: MakeFrame
) -> None:
    assigner = casting(chosen("a", AXES[1]), chosen("b", AXES[2])).by_likeness()
    faces = tuple(
        make_face(track_id=TrackId(at), embedding=AXES[axis]) for at, axis in enumerate((2, 5, 1))
    )
    (frame,) = assigner.assign((make_frame(faces=faces),))
    assert [face.who for face in frame.faces] == ["b", None, "a"]


def test_the_people_of_a_still_are_numbered_as_its_faces_are(
    make_face: MakeFace, make_frame: MakeFrame
) -> None:
    faces: tuple[Face, ...] = (make_face(cx=20), make_face(cx=90, embedding=AXES[4]))
    frame: Frame = make_frame(faces=faces)
    left, right = people_in(frame)
    assert (left.number, right.number) == (1, 2)
    assert left.size_range_px == (40, 40)
    assert right.normed_embeddings @ AXES[4] == pytest.approx(1)
