from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.inference.spec import ModelId
from app.pipeline.progress import Busy, Progress, RenderResult
from app.processors import discover
from tests.api.conftest import LIMITS
from tests.faces.zoo_manifest import MANIFEST
from tests.jobs.fakes import MODEL, STILL, VIDEO, Volume, open_volume


def upload(client: TestClient, content: bytes = STILL, name: str = "me.png") -> str:
    answer = client.post("/api/v1/media", files={"file": (name, content)})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def request_body(client: TestClient, **changes: object) -> dict[str, Any]:
    body = {
        "sources": [upload(client)],
        "target": upload(client, VIDEO, "party.mp4"),
        "consent": "self",
    }
    return {**body, **changes}


def submit(client: TestClient, **changes: object) -> dict[str, Any]:
    answer = client.post("/api/v1/jobs", json=request_body(client, **changes))
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


def finish(volume: Volume, content: bytes = b"0123456789") -> None:
    claim = volume.store.claim()
    assert claim is not None
    output = claim.job.spec.output
    output.parent.mkdir()
    output.write_bytes(content)
    result = RenderResult(output=output, frames=3, frames_swapped=2, faces_swapped=4)
    volume.store.finish(claim, result)


def code_of(answer: Any) -> str:
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "hint", "request_id"}
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["message"]
    return str(error["code"])


def test_the_whole_way_from_upload_to_download(client: TestClient, volume: Volume) -> None:
    job = submit(client)
    assert (job["state"], job["queue_position"]) == ("queued", 0)
    assert client.get(job["url"]).json() == job
    assert client.get("/api/v1/jobs").json() == {"jobs": [job]}
    finish(volume)
    done = client.get(job["url"]).json()
    assert done["state"] == "done"
    assert done["result"] == {
        "name": "party_swapped.mp4",
        "url": f"/api/v1/jobs/{job['id']}/result",
        "frames": 3,
        "frames_swapped": 2,
        "faces_swapped": 4,
        "notices": [],
        "busy": {},
    }
    file = client.get(done["result"]["url"])
    assert file.content == b"0123456789"
    assert file.headers["content-type"] == "video/mp4"
    assert file.headers["content-disposition"] == 'attachment; filename="party_swapped.mp4"'
    assert client.delete(job["url"]).status_code == 204
    assert code_of(client.get(job["url"])) == "job.not_found"


def test_no_answer_tells_where_a_file_lies(client: TestClient, volume: Volume) -> None:
    job = submit(client)
    finish(volume)
    for path in (job["url"], "/api/v1/jobs", f"/api/v1/media/{job['request']['target']}"):
        assert str(volume.folders.root) not in client.get(path).text


@pytest.mark.parametrize(
    ("range_", "status", "content"),
    [
        pytest.param("bytes=4-6", 206, b"456", id="middle"),
        pytest.param("bytes=7-", 206, b"789", id="resumed download"),
        pytest.param("bytes=20-", 416, None, id="beyond the end"),
    ],
)
def test_downloads_can_be_resumed(
    client: TestClient, volume: Volume, range_: str, status: int, content: bytes | None
) -> None:
    job = submit(client)
    finish(volume)
    answer = client.get(f"{job['url']}/result", headers={"Range": range_})
    assert answer.status_code == status
    if content is not None:
        assert answer.content == content


def test_the_head_of_a_result_tells_its_length(client: TestClient, volume: Volume) -> None:
    job = submit(client)
    finish(volume)
    head = client.head(f"{job['url']}/result")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "10", b"")


def test_a_name_in_any_script_is_offered_for_download(client: TestClient, volume: Volume) -> None:
    submit(client, target=upload(client, VIDEO, "派对.mp4"))
    finish(volume)
    job = client.get("/api/v1/jobs").json()["jobs"][0]
    answer = client.get(job["result"]["url"])
    assert (
        "filename*=utf-8''%E6%B4%BE%E5%AF%B9_swapped.mp4" in answer.headers["content-disposition"]
    )


def test_an_unfinished_job_has_no_result(client: TestClient) -> None:
    answer = client.get(f"{submit(client)['url']}/result")
    assert (answer.status_code, code_of(answer)) == (409, "job.not_finished")


def test_progress_and_failure_are_told(client: TestClient, volume: Volume) -> None:
    job = submit(client)
    claim = volume.store.claim()
    assert claim is not None
    busy: Busy = {"decode": 0.25, "encode": 0.75}
    progress = Progress(frames_done=5, frames_total=10, fps=2.0, elapsed_s=2.5, busy=busy)
    volume.store.renew(claim, progress)
    running = client.get(job["url"]).json()
    assert running["state"] == "running"
    assert running["progress"] == {
        "frames_done": 5, "frames_total": 10, "fps": 2.0, "elapsed_s": 2.5, "remaining_s": 2.5,
        "busy": {"decode": 0.25, "encode": 0.75},
    }  # fmt: skip
    assert client.post(f"{job['url']}/cancel").status_code == 202
    assert client.get(job["url"]).json()["is_cancel_requested"]


def test_a_waiting_job_is_canceled(client: TestClient) -> None:
    job = submit(client)
    answer = client.post(f"{job['url']}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "canceled")


def test_the_same_key_gives_the_same_job_and_200(client: TestClient) -> None:
    body, key = request_body(client), {"Idempotency-Key": "abc"}
    first = client.post("/api/v1/jobs", json=body, headers=key)
    again = client.post("/api/v1/jobs", json=body, headers=key)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == again.json()
    assert again.headers["location"] == first.json()["url"]
    other = client.post("/api/v1/jobs", json=request_body(client), headers=key)
    assert (other.status_code, code_of(other)) == (409, "request.key_reused")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        pytest.param({"consent": None}, 422, "consent.required", id="consent missing"),
        pytest.param({"consent": False}, 422, "consent.required", id="consent false"),
        pytest.param({"consent": "maybe"}, 422, "consent.required", id="consent unknown"),
        pytest.param({"target": "gone"}, 404, "request.not_found", id="target gone"),
        pytest.param({"sources": []}, 422, "request.bad_option", id="no source"),
        pytest.param({"labels": False}, 422, "request.bad_option", id="unknown field"),
        pytest.param({"face_map": {"person": -1}}, 422, "request.bad_option", id="person -1"),
        pytest.param(
            {"steps": [{"processor": "x"}]}, 422, "request.unknown_processor", id="unknown step"
        ),
        pytest.param(
            {"steps": [{"processor": "face_swapper", "options": {"blend": 7}}]},
            422,
            "request.bad_option",
            id="option out of bounds",
        ),
    ],
)
def test_bad_jobs_are_refused(
    client: TestClient, changes: dict[str, object], status: int, code: str
) -> None:
    answer = client.post("/api/v1/jobs", json=request_body(client, **changes))
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert client.get("/api/v1/jobs").json() == {"jobs": []}


def test_a_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    with open_volume(tmp_path, max_queued=1) as volume, TestClient(create_app(volume.studio)) as c:
        submit(c)
        answer = c.post("/api/v1/jobs", json=request_body(c))
    assert (answer.status_code, code_of(answer)) == (429, "queue.full")
    assert int(answer.headers["retry-after"]) > 0


def test_uploads_are_shown_and_deleted(client: TestClient) -> None:
    media = client.get(f"/api/v1/media/{upload(client)}").json()
    assert (media["name"], media["kind"], media["info"]["size_wh"]) == ("me.png", "still", [64, 48])
    content = client.get(media["content_url"])
    assert (content.content, content.headers["content-type"]) == (STILL, "image/png")
    thumbnail = client.get(media["thumbnail_url"], params={"side_px": 64})
    assert (thumbnail.content, thumbnail.headers["content-type"]) == (b"JPEG 64", "image/jpeg")
    path = f"/api/v1/media/{media['id']}"
    assert client.delete(path).status_code == 204
    for gone in (path, media["content_url"], media["thumbnail_url"]):
        assert (client.get(gone).status_code, code_of(client.get(gone))) == (
            404,
            "request.not_found",
        )


def test_an_upload_that_a_job_needs_is_not_deleted(client: TestClient) -> None:
    job = submit(client)
    answer = client.delete(f"/api/v1/media/{job['request']['target']}")
    assert (answer.status_code, code_of(answer)) == (409, "request.in_use")


def test_processors_and_models_are_listed(client: TestClient) -> None:
    (processor,) = client.get("/api/v1/processors").json()["processors"]
    assert processor["options_schema"]["properties"]["blend"]["default"] == 0.8
    (model,) = client.get("/api/v1/models").json()["models"]
    assert (model["id"], model["is_installed"]) == (MODEL.id, False)
    assert model["license"]["spdx"] == "MIT"


def test_a_model_that_is_installed_while_the_server_runs_is_listed_offered_and_taken(
    tmp_path: Path,
) -> None:
    models = tuple(MANIFEST.get(ModelId(each)) for each in ("inswapper-128", "arcface-w600k-r50"))
    with (
        open_volume(tmp_path / "data", processors=discover(), models=models) as volume,
        TestClient(create_app(volume.studio, LIMITS)) as client,
    ):
        step = {"processor": "face_swapper", "options": {"model": "inswapper-128"}}
        body = request_body(client, steps=[step])
        refused = client.post("/api/v1/jobs", json=body)
        assert (refused.status_code, code_of(refused)) == (503, "model.missing")
        assert choices(client) == ["mesh"]
        for model in models:
            volume.install(model)
        assert all(m["is_installed"] for m in client.get("/api/v1/models").json()["models"])
        assert choices(client) == ["mesh", "inswapper-128"]
        assert client.post("/api/v1/jobs", json=body).status_code == 202


def choices(client: TestClient) -> list[str]:
    """The models that the swapper offers."""
    processors = client.get("/api/v1/processors").json()["processors"]
    (swapper,) = (each for each in processors if each["id"] == "face_swapper")
    offered: list[str] = swapper["options_schema"]["properties"]["model"]["enum"]
    return offered


def test_health_and_readiness(client: TestClient, volume: Volume) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert [p["code"] for p in answer.json()["problems"]] == ["engine.not_running", "model.missing"]
    (volume.folders.root / "models").mkdir()
    (volume.folders.root / "models" / MODEL.file).write_bytes(b"1234")
    volume.engines.seen("engine-0", state="idle", pid=1)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (200, True)
    assert answer.json()["engines"][0]["is_alive"]


def test_the_schema_is_served_and_no_page_that_loads_scripts_from_elsewhere(
    client: TestClient,
) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    assert "/api/v1/jobs/{job_id}/events" in schema["paths"]
    for page in ("/docs", "/redoc"):
        assert client.get(page).status_code == 404


def test_the_schema_names_what_an_upload_is_made_of(client: TestClient) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    body = schema["paths"]["/api/v1/media"]["post"]["requestBody"]
    assert set(body["content"]) == {"multipart/form-data", "application/octet-stream"}
