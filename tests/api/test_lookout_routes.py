import threading
import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.core.errors import EngineBusyError, EngineNotRunningError, MissingModelError
from app.jobs.job import MediaId
from tests.api.leaving import served
from tests.api.test_routes import code_of, finish, request_body, submit, upload
from tests.jobs.fakes import STILL, VIDEO, Volume


def test_the_people_of_an_upload_are_found_once_and_then_known(
    client: TestClient, volume: Volume
) -> None:
    media_id = upload(client, VIDEO, "party.mp4")
    url = f"/api/v1/media/{media_id}/people"
    assert code_of(client.get(url)) == "request.not_found"
    found = client.post(url).json()
    assert [person["number"] for person in found["people"]] == [1, 2]
    first = found["people"][0]
    assert first["places"][0] == {"time_s": 0.0, "bbox_xyxy": [10, 0, 18, 8]}
    assert (first["first_s"], first["last_s"], first["share"]) == (0.0, 1.5, 1.0)
    assert found["likeness"] == [[0.9, 0.1], [0.1, 0.9]]
    assert client.get(url).json() == found
    assert client.post(url).json() == found
    assert len(volume.engine.desk.answered) == 1
    thumbnail = client.get(found["people"][1]["thumbnail_url"])
    assert thumbnail.content == b"JPEG of person 2"
    assert thumbnail.headers["content-type"] == "image/jpeg"


def test_the_faces_of_a_photo_are_found_once_and_then_known(
    client: TestClient, volume: Volume
) -> None:
    volume.engine.desk.faces = 3
    url = f"/api/v1/media/{upload(client)}/faces"
    assert code_of(client.get(url)) == "request.not_found"
    found = client.post(url).json()
    assert ([face["number"] for face in found["faces"]], found["meant"]) == ([1, 2, 3], None)
    assert client.get(url).json() == client.post(url).json() == found
    assert len(volume.engine.desk.answered) == 1
    assert client.get(found["faces"][2]["thumbnail_url"]).content == b"JPEG of face 3"


def test_faces_are_not_counted_in_videos(client: TestClient) -> None:
    media_id = upload(client, VIDEO, "party.mp4")
    assert code_of(client.post(f"/api/v1/media/{media_id}/faces")) == "media.unsupported_type"


@pytest.mark.parametrize("number", [0, 3, -1])
def test_there_is_no_picture_of_nobody(client: TestClient, number: int) -> None:
    media_id = upload(client)
    client.post(f"/api/v1/media/{media_id}/people")
    answer = client.get(f"/api/v1/media/{media_id}/people/{number}/thumbnail")
    assert (answer.status_code, code_of(answer)) == (404, "request.not_found")


@pytest.mark.parametrize("what", ["people", "faces"])
def test_small_pictures_carry_the_guards_of_the_api(client: TestClient, what: str) -> None:
    media_id = upload(client)
    client.post(f"/api/v1/media/{media_id}/{what}")
    answer = client.get(f"/api/v1/media/{media_id}/{what}/1/thumbnail")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["people", "faces", "people/1/thumbnail", "faces/1/thumbnail"])
def test_an_unknown_upload_shows_nobody(client: TestClient, path: str) -> None:
    assert code_of(client.get(f"/api/v1/media/nobody/{path}")) == "request.not_found"


def test_what_was_seen_goes_with_the_upload(client: TestClient, volume: Volume) -> None:
    media_id = MediaId(upload(client))
    client.post(f"/api/v1/media/{media_id}/people")
    folder = volume.studio.media_path(media_id).parent
    assert list(folder.glob("PeopleSeen-*.json"))
    assert client.delete(f"/api/v1/media/{media_id}").status_code == 204
    assert not folder.exists()


def test_an_upload_that_goes_in_the_meantime_is_answered_all_the_same(
    client: TestClient, volume: Volume
) -> None:
    media_id = MediaId(upload(client))
    volume.engine.desk.on_answer = lambda: volume.studio.delete_media(media_id)
    assert code_of(client.post(f"/api/v1/media/{media_id}/people")) == "request.not_found"
    assert not list(volume.folders.media.iterdir())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineNotRunningError("gone"), "engine.not_running"),
        (EngineBusyError("much to do"), "engine.busy"),
        (MissingModelError("run make models"), "model.missing"),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["people", "faces", "preview"])
def test_an_engine_that_cannot_answer_is_a_reason_to_come_back(
    client: TestClient, volume: Volume, error: Any, code: str, path: str
) -> None:
    volume.engine.error = error
    if path == "preview":
        answer = client.post("/api/v1/preview", json=request_body(client))
    else:
        answer = client.post(f"/api/v1/media/{upload(client)}/{path}")
    assert (answer.status_code, code_of(answer)) == (503, code)
    assert int(answer.headers["retry-after"]) > 0


def test_a_preview_is_a_picture(client: TestClient, volume: Volume) -> None:
    body = request_body(client, time_s=1.25)
    made = client.post("/api/v1/preview", json=body)
    assert (made.content, made.headers["content-type"]) == (b"JPEG", "image/jpeg")
    assert made.headers["x-faces-swapped"] == "1"
    assert float(made.headers["x-frame-time"]) == 1.25
    (call,) = volume.engine.desk.answered
    assert call.kind == "make_preview"
    assert call.spec.target == volume.studio.media_path(body["target"])
    assert client.get("/api/v1/jobs").json() == {"jobs": []}


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param({"consent": None}, "consent.required", id="a preview needs consent, too"),
        pytest.param({"time_s": -1}, "request.bad_option", id="before the beginning"),
        pytest.param({"target": "nobody"}, "request.not_found", id="no target"),
        pytest.param({"moment": 1}, "request.bad_option", id="an unknown field"),
    ],
)
def test_a_preview_is_checked_like_a_job(
    client: TestClient, volume: Volume, changed: dict[str, Any], code: str
) -> None:
    answer = client.post("/api/v1/preview", json=request_body(client, **changed))
    assert code_of(answer) == code
    assert volume.engine.desk.answered == []


def test_several_faces_for_several_people_are_a_job(client: TestClient, volume: Volume) -> None:
    ada, bob = upload(client), upload(client)
    face_map = {
        "choices": [
            {"person": 1, "action": {"photos": [ada], "face": 2}},
            {"person": 2, "action": {"photos": [bob, ada]}},
            {"person": 3, "action": "blur"},
        ],
        "others": "leave",
        "threshold": 0.5,
    }
    job = submit(client, sources=[], face_map=face_map)
    spec = volume.studio.job(job["id"]).spec
    paths = {photo: volume.studio.media_path(MediaId(photo)) for photo in (ada, bob)}
    assert spec.face_map.photos == (paths[ada], paths[bob])
    assert spec.face_map.threshold == 0.5
    assert job["request"]["face_map"]["choices"][2]["action"] == "blur"


def test_a_deleted_job_may_take_its_uploads_along(client: TestClient, volume: Volume) -> None:
    shared = upload(client)
    own = upload(client, VIDEO, "own.mp4")
    first = submit(client, sources=[shared], target=own)
    second = submit(client, sources=[shared])
    finish(volume)
    assert client.delete(f"{first['url']}?uploads=true").status_code == 204
    assert client.get(f"/api/v1/media/{own}").status_code == 404
    assert client.get(f"/api/v1/media/{shared}").status_code == 200
    finish(volume)
    assert client.delete(second["url"]).status_code == 204
    assert client.get(f"/api/v1/media/{shared}").status_code == 200


def test_a_reference_of_a_job_counts_as_its_input(client: TestClient, volume: Volume) -> None:
    who = upload(client)
    face_map = {"choices": [{"reference": who, "action": "source"}], "others": "leave"}
    submit(client, face_map=face_map)
    assert code_of(client.delete(f"/api/v1/media/{who}")) == "request.in_use"
    assert volume.studio.media(MediaId(who)).bytes == len(STILL)


def test_a_client_that_leaves_calls_the_search_off(volume: Volume) -> None:
    """Over a real socket: the test client never hangs up."""
    volume.engine.desk.steps, volume.engine.desk.step_s = 10_000, 0.01
    media_id = volume.upload(VIDEO, "party.mp4")
    with served(volume.studio) as leave_after:
        leave_after(f"/api/v1/media/{media_id}/people", seconds=0.5)
        until = time.monotonic() + 10
        while not volume.engine.desk.called_off and time.monotonic() < until:
            time.sleep(0.02)
    assert volume.engine.desk.called_off == 1
    assert threading.active_count() < 50
