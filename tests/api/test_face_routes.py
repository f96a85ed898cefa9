from typing import Any

import pytest
from starlette.testclient import TestClient

from app.core.errors import EngineNotRunningError, NoFaceInSourceError
from tests.api.test_routes import code_of, request_body, submit, upload
from tests.jobs.fakes import VIDEO, Volume


def save(client: TestClient, **changed: object) -> Any:
    body = {"name": "Ada", "photos": [upload(client)], "consent": "self", **changed}
    return client.post("/api/v1/faces", json=body)


def test_a_face_is_saved_listed_shown_and_deleted(client: TestClient) -> None:
    assert client.get("/api/v1/faces").json() == {"faces": []}
    answer = save(client)
    assert answer.status_code == 201, answer.text
    face = answer.json()
    assert (face["name"], face["photos"], face["consent"]) == ("Ada", 1, "self")
    assert client.get("/api/v1/faces").json() == {"faces": [face]}
    thumbnail = client.get(face["thumbnail_url"])
    assert thumbnail.content[:2] == b"\xff\xd8"
    assert thumbnail.headers["content-type"] == "image/jpeg"
    assert client.delete(f"/api/v1/faces/{face['id']}").status_code == 204
    assert client.get("/api/v1/faces").json() == {"faces": []}
    assert code_of(client.get(face["thumbnail_url"])) == "request.not_found"


def test_the_engine_makes_it_of_the_uploads(client: TestClient, volume: Volume) -> None:
    photos = [upload(client), upload(client)]
    save(client, photos=photos, face=None, consent="permission")
    (call,) = volume.engine.desk.answered
    assert call.kind == "save_face"
    assert (len(call.photos), call.consent) == (2, "permission")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param({"consent": None}, "consent.required", id="without consent"),
        pytest.param({"photos": []}, "request.bad_option", id="of nothing"),
        pytest.param({"photos": ["nobody"]}, "request.not_found", id="of an unknown upload"),
        pytest.param({"name": ""}, "request.bad_option", id="without a name"),
        pytest.param({"name": "a\u202eb"}, "request.bad_name", id="with a name that deceives"),
        pytest.param({"face": 0}, "request.bad_option", id="of face 0"),
        pytest.param({"path": "/etc"}, "request.bad_option", id="an unknown field"),
    ],
)
def test_what_makes_no_face_is_refused(
    client: TestClient, changed: dict[str, Any], code: str
) -> None:
    assert code_of(save(client, **changed)) == code
    assert client.get("/api/v1/faces").json() == {"faces": []}


def test_a_video_makes_no_face(client: TestClient) -> None:
    video = upload(client, VIDEO, "party.mp4")
    assert code_of(save(client, photos=[video])) == "media.unsupported_type"


def test_a_name_is_given_once(client: TestClient) -> None:
    save(client)
    assert code_of(save(client, name="ada")) == "request.bad_name"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NoFaceInSourceError("nobody"), 422, "face.none_in_source"),
        (EngineNotRunningError("gone"), 503, "engine.not_running"),
    ],
    ids=str,
)
def test_what_the_engine_says_is_told(
    client: TestClient, volume: Volume, error: Any, status: int, code: str
) -> None:
    volume.engine.error = error
    answer = save(client)
    assert (answer.status_code, code_of(answer)) == (status, code)


def test_a_saved_face_is_put_on(client: TestClient, volume: Volume) -> None:
    face = save(client).json()
    choices = [{"person": 1, "action": {"saved": face["id"]}}]
    job = submit(client, sources=[], face_map={"choices": choices, "others": "leave"})
    assert volume.studio.job(job["id"]).spec.face_map.saved_faces == (face["id"],)


@pytest.mark.parametrize("path", ["jobs", "preview"])
def test_a_saved_face_that_is_gone_is_told_at_once(client: TestClient, path: str) -> None:
    choices = [{"person": 1, "action": {"saved": "0" * 32}}]
    body = request_body(client, sources=[], face_map={"choices": choices, "others": "leave"})
    assert code_of(client.post(f"/api/v1/{path}", json=body)) == "request.not_found"


@pytest.mark.parametrize("face_id", ["..", "..%2F..%2Fjobs", "%2e%2e", "x"])
def test_no_id_becomes_a_path(client: TestClient, volume: Volume, face_id: str) -> None:
    answer = client.delete(f"/api/v1/faces/{face_id}")
    assert answer.status_code in (404, 405)
    assert volume.folders.database.exists()


def test_a_face_is_renamed(client: TestClient) -> None:
    face = save(client).json()
    answer = client.patch(f"/api/v1/faces/{face['id']}", json={"name": "Lovelace"})
    assert answer.json() == {**face, "name": "Lovelace"}
    assert client.get("/api/v1/faces").json() == {"faces": [answer.json()]}


@pytest.mark.parametrize(
    ("face_id", "name", "code"),
    [
        pytest.param("0" * 32, "Bob", "request.not_found", id="nobody"),
        pytest.param(None, "a\u202eb", "request.bad_name", id="to what deceives"),
        pytest.param(None, "", "request.bad_option", id="to nothing"),
    ],
)
def test_what_is_no_renaming_is_refused(
    client: TestClient, face_id: str | None, name: str, code: str
) -> None:
    known = save(client).json()["id"]
    assert code_of(client.patch(f"/api/v1/faces/{face_id or known}", json={"name": name})) == code


def test_a_face_that_a_job_waits_for_stays_until_it_is_done(client: TestClient) -> None:
    face = save(client).json()
    choices = [{"person": 1, "action": {"saved": face["id"]}}]
    job = submit(client, sources=[], face_map={"choices": choices, "others": "leave"})
    refused = client.delete(f"/api/v1/faces/{face['id']}")
    assert (refused.status_code, code_of(refused)) == (409, "request.in_use")
    client.post(f"/api/v1/jobs/{job['id']}/cancel")
    assert client.delete(f"/api/v1/faces/{face['id']}").status_code == 204
