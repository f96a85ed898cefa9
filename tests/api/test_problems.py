import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.options import ApiOptions
from app.core.error_table import ERROR_TABLE
from app.core.errors import AppError, CrossSiteError
from tests.api.test_routes import code_of
from tests.jobs.fakes import Volume, all_errors


@pytest.fixture
def broken(volume: Volume) -> FastAPI:
    """An app in which every error can be had by its name."""
    app = create_app(volume.studio)
    kinds = {kind.code: kind for kind in all_errors()}

    @app.get("/api/v1/raise/{code}")
    def raise_it(code: str) -> None:
        if code not in kinds:
            raise RuntimeError("secret of /etc/shadow")
        raise kinds[code]("cannot read /data/media/ab/original")

    return app


def test_every_error_has_its_status_and_one_body(broken: FastAPI) -> None:
    client = TestClient(broken)
    answers = {code: client.get(f"/api/v1/raise/{code}") for code in ERROR_TABLE}
    assert {code: code_of(answer) for code, answer in answers.items()} == {
        code: code for code in ERROR_TABLE
    }
    assert {code: answer.status_code for code, answer in answers.items()} == {
        code: entry.http_status for code, entry in ERROR_TABLE.items()
    }
    assert {answer.json()["error"]["message"] for answer in answers.values()} == {
        "cannot read original"
    }
    assert answers["media.empty"].json()["error"]["hint"] == ERROR_TABLE["media.empty"].en


def test_a_surprise_tells_nothing_and_has_the_same_body(broken: FastAPI) -> None:
    answer = TestClient(broken).get("/api/v1/raise/surprise")
    assert (answer.status_code, code_of(answer)) == (500, AppError.code)
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param("GET", "/nowhere", 404, "request.not_found", id="no such route"),
        pytest.param("GET", "/api/v1/jobs/nobody", 404, "job.not_found", id="no such job"),
        pytest.param("PUT", "/api/v1/jobs", 405, "request.bad_option", id="wrong method"),
        pytest.param("GET", "/api/v1/jobs?limit=0", 422, "request.bad_option", id="bad query"),
        pytest.param("POST", "/api/v1/jobs", 422, "request.bad_option", id="no body"),
    ],
)
def test_what_http_itself_refuses_has_the_same_body(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, code_of(answer)) == (status, code)


def test_broken_json_is_refused_without_being_repeated(client: TestClient) -> None:
    answer = client.post(
        "/api/v1/jobs", content=b'{"secret', headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, code_of(answer)) == (422, "request.bad_option")
    assert "secret" not in answer.text


def test_a_request_id_of_the_clients_is_taken_over_when_it_is_plain(client: TestClient) -> None:
    for offered, is_taken in (("abc-123", True), ("x" * 65, False), ("a b", False)):
        answer = client.get("/healthz", headers={"X-Request-ID": offered})
        assert (answer.headers["x-request-id"] == offered) is is_taken


def test_the_authorization_stands_before_every_route_of_the_api(volume: Volume) -> None:
    def refuse(request: Request) -> None:
        raise CrossSiteError("no")

    app = create_app(volume.studio, ApiOptions(authorize=refuse))
    client = TestClient(app)
    paths = [
        (path, method.upper())
        for path, methods in client.get("/api/v1/openapi.json").json()["paths"].items()
        for method in methods
        if path.startswith("/api/v1/")
    ]
    assert len(paths) >= 14
    for path, method in paths:
        answer = client.request(
            method, path.format(media_id="m", job_id="j", face_id="f", number=1)
        )
        assert answer.status_code == 403, (method, path)
    assert client.get("/healthz").status_code == 200
