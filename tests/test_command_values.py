"""What people type behind `--map` becomes a face map."""

from pathlib import Path
from typing import Any

import pytest

from app.command_values import checked_spec, parse_face_map
from app.core.errors import NotFoundError, UsageError
from app.pipeline.spec import FaceMap

FILES = ("a.jpg", "b.jpg", "x+y.jpg", "odd#2.jpg", "a=b.jpg", "who=1.jpg")


@pytest.fixture(autouse=True)
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


def saved_id(name: str) -> str:
    if name != "Ann":
        raise NotFoundError("no saved face has this name")
    return "0123"


def parsed(*assignments: str, has_sources: bool = False, **options: Any) -> FaceMap[Path]:
    values: dict[str, Any] = {"others": None, "threshold": None, **options}
    return parse_face_map(assignments, has_sources=has_sources, saved_id=saved_id, **values)


def photo(*names: str, face: int | None = None) -> dict[str, Any]:
    return {"photos": names, "face": face}


@pytest.mark.parametrize(
    ("assignment", "choice"),
    [
        pytest.param("1=a.jpg", {"person": 1, "action": photo("a.jpg")}, id="a photo"),
        pytest.param("2=leave", {"person": 2, "action": "leave"}, id="leave"),
        pytest.param("3=blur", {"person": 3, "action": "blur"}, id="blur"),
        pytest.param("1=saved:Ann", {"person": 1, "action": {"saved": "0123"}}, id="saved"),
        pytest.param("1=a.jpg+b.jpg", {"person": 1, "action": photo("a.jpg", "b.jpg")}, id="two"),
        pytest.param("1=x+y.jpg", {"person": 1, "action": photo("x+y.jpg")}, id="a plus in a name"),
        pytest.param("1=a.jpg#3", {"person": 1, "action": photo("a.jpg", face=3)}, id="face 3"),
        pytest.param("1=odd#2.jpg", {"person": 1, "action": photo("odd#2.jpg")}, id="a hash in a name"),
        pytest.param("1=a=b.jpg", {"person": 1, "action": photo("a=b.jpg")}, id="an equals sign"),
        pytest.param("1=gone.jpg", {"person": 1, "action": photo("gone.jpg")}, id="a photo that is not there"),
        pytest.param("largest=blur", {"order": "largest", "action": "blur"}, id="an order"),
        pytest.param("leftmost:2=blur", {"order": "leftmost", "rank": 2, "action": "blur"}, id="a rank"),
        pytest.param("ref:a.jpg=b.jpg", {"reference": "a.jpg", "action": photo("b.jpg")}, id="a reference"),
        pytest.param(
            "ref:a.jpg#2=blur",
            {"reference": "a.jpg", "reference_face": 2, "action": "blur"},
            id="a face of a reference",
        ),
        pytest.param("ref:who=1.jpg=blur", {"reference": "who=1.jpg", "action": "blur"}, id="= in a reference"),
    ],
)  # fmt: skip
def test_an_assignment_is_a_choice(assignment: str, choice: dict[str, Any]) -> None:
    assert parsed(assignment) == FaceMap[Path].model_validate(
        {"choices": [choice], "others": "leave"}
    )


def test_photos_of_one_person_given_one_by_one_belong_together() -> None:
    assert parsed("1=a.jpg", "2=blur", "1=b.jpg") == parsed("1=a.jpg+b.jpg", "2=blur")


@pytest.mark.parametrize(
    ("assignments", "options", "others"),
    [
        pytest.param([], {"has_sources": True}, "source", id="a source alone is for everybody"),
        pytest.param(["1=a.jpg"], {}, "leave", id="without a source others are left"),
        pytest.param(["1=a.jpg"], {"has_sources": True}, "source", id="a source is for the others"),
        pytest.param(["1=source"], {"has_sources": True}, "leave", id="a source for one person"),
        pytest.param(["1=a.jpg"], {"others": "blur"}, "blur", id="as it is said"),
        pytest.param([], {"others": "blur"}, "blur", id="everybody is blurred"),
    ],
)
def test_what_happens_to_the_others(
    assignments: list[str], options: dict[str, Any], others: str
) -> None:
    assert parsed(*assignments, **options).others == others


@pytest.mark.parametrize(
    "assignments",
    [
        [],
        ["1"],
        ["=a.jpg"],
        ["1="],
        ["0=a.jpg"],
        ["-1=a.jpg"],
        ["everybody=a.jpg"],
        ["largest:x=a.jpg"],
        ["largest:0=a.jpg"],
        ["ref:=a.jpg"],
        ["1=a.jpg", "1=leave"],
        ["1=leave", "1=blur"],
        ["1=a.jpg#1", "1=b.jpg"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_understood_is_wrong_usage(assignments: list[str]) -> None:
    with pytest.raises(UsageError):
        parsed(*assignments)


def test_a_face_that_is_not_saved_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        parsed("1=saved:Bob")


def test_a_threshold_is_kept() -> None:
    assert parsed("1=blur", threshold=0.5).threshold == 0.5
    assert parsed("1=blur").threshold == FaceMap().threshold


def test_options_that_contradict_each_other_are_wrong_usage() -> None:
    values = {"target": Path("t"), "output": Path("o"), "consent": "self"}
    with pytest.raises(UsageError, match="sources"):
        checked_spec(sources=(Path("a.jpg"),), face_map=parsed("1=b.jpg", others="leave"), **values)
