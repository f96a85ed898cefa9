"""What may be asked for, and that what was stored by an earlier release still means the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.jobs.job import JobRequest, MediaId
from app.pipeline.spec import FaceMap, RenderSpec

WHOLE: dict[str, Any] = {
    "choices": [
        {"person": 1, "action": {"photos": ["a", "b"]}},
        {"person": 2, "action": {"photos": ["group"], "face": 2}},
        {"reference": "who", "reference_face": 1, "action": {"saved": "0123"}},
        {"order": "largest", "rank": 2, "action": "blur"},
        {"order": "leftmost", "action": "leave"},
        {"person": 3, "action": "source"},
    ],
    "others": "leave",
    "threshold": 0.5,
}


def stored(face_map: object, sources: list[str]) -> str:
    return json.dumps(
        {"sources": sources, "target": "t", "output": "o", "consent": "self", "face_map": face_map}
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, FaceMap()),
        ({"person": None}, FaceMap()),
        ({"person": 0}, FaceMap.only(1)),
        ({"person": 4}, FaceMap.only(5)),
    ],
)
def test_stored_jobs_of_earlier_releases_mean_what_they_meant(
    old: dict[str, Any], new: FaceMap[Path]
) -> None:
    assert RenderSpec.model_validate_json(stored(old, ["s"])).face_map == new


def test_a_whole_map_survives_being_stored() -> None:
    spec = RenderSpec.model_validate_json(stored(WHOLE, ["s"]))
    assert RenderSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.face_map.choices[0].action.photos == (Path("a"), Path("b"))  # type: ignore[union-attr]


def test_a_request_names_uploads_and_a_job_paths() -> None:
    request = JobRequest.model_validate(
        {"sources": ["s"], "target": "t", "consent": "self", "face_map": WHOLE}
    )
    assert request.inputs == ("s", "a", "b", "group", "who", "t")
    assert request.face_map.saved_faces == ("0123",)
    there = request.face_map.with_photos(lambda id: Path("/uploads") / id)
    assert there.photos == tuple(Path("/uploads") / id for id in ("a", "b", "group", "who"))
    assert there.with_photos(lambda path: MediaId(path.name)) == request.face_map


@pytest.mark.parametrize(
    ("face_map", "sources", "wrong"),
    [
        pytest.param({"person": -1}, ["s"], "person", id="an old number below 0"),
        pytest.param({"person": "x"}, ["s"], "person", id="an old number that is none"),
        pytest.param({}, [], "sources", id="everybody gets a face that is not there"),
        pytest.param({"others": "leave"}, ["s"], "sources", id="nobody gets the face"),
        pytest.param(
            {"choices": [{"person": 0, "action": "blur"}]}, ["s"], "person", id="person 0"
        ),
        pytest.param(
            {"choices": [{"action": "blur"}]}, ["s"], "exactly one", id="nobody is chosen"
        ),
        pytest.param(
            {"choices": [{"person": 1, "order": "largest", "action": "blur"}]},
            ["s"],
            "exactly one",
            id="two ways at once",
        ),
        pytest.param(
            {"choices": [{"person": 1, "rank": 2, "action": "blur"}]}, ["s"], "rank", id="rank"
        ),
        pytest.param(
            {"choices": [{"person": 1, "reference_face": 2, "action": "blur"}]},
            ["s"],
            "reference_face",
            id="a face of no photo",
        ),
        pytest.param(
            {"choices": [{"person": 1, "action": {"photos": []}}]}, ["s"], "photos", id="no photo"
        ),
        pytest.param(
            {"choices": [{"person": 1, "action": {"photos": ["a"], "saved": "b"}}]},
            ["s"],
            "photos",
            id="photos and a saved face",
        ),
        pytest.param(
            {"choices": [{"person": 1, "action": {"photos": ["a", "b"], "face": 2}}]},
            ["s"],
            "face",
            id="a face of several photos",
        ),
        pytest.param(
            {"choices": [{"person": 1, "action": "blur"}, {"person": 1, "action": "leave"}]},
            ["s"],
            "twice",
            id="one person twice",
        ),
        pytest.param({"threshold": 1.5}, ["s"], "threshold", id="a threshold above 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    face_map: dict[str, Any], sources: list[str], wrong: str
) -> None:
    with pytest.raises(ValidationError, match=wrong):
        RenderSpec.model_validate_json(stored(face_map, sources))


def test_a_map_that_needs_no_source_of_its_own_goes_without() -> None:
    face_map = {"choices": [{"person": 1, "action": {"photos": ["a"]}}], "others": "blur"}
    assert RenderSpec.model_validate_json(stored(face_map, [])).sources == ()
