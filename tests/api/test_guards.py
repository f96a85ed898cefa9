from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.options import ApiOptions
from tests.api.endless import ask_endlessly
from tests.api.test_routes import code_of, request_body
from tests.jobs.fakes import Volume

BASE = "http://testserver"


def test_every_answer_of_the_api_is_inert(client: TestClient) -> None:
    for path in ("/api/v1/jobs", "/api/v1/jobs/nobody"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "sandbox" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-request-id"]


def test_a_page_on_the_same_app_may_run_scripts_but_in_no_foreign_frame(volume: Volume) -> None:
    app = create_app(volume.studio)

    def page(request: object) -> PlainTextResponse:
        return PlainTextResponse("hello", headers={"Cache-Control": "max-age=60"})

    app.add_route("/page", page)
    headers = TestClient(app).get("/page").headers
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "max-age=60"


@pytest.mark.parametrize(
    ("headers", "is_allowed"),
    [
        pytest.param({}, True, id="no browser"),
        pytest.param({"Origin": BASE}, True, id="our page"),
        pytest.param({"Origin": BASE.upper()}, True, id="our page in capitals"),
        pytest.param({"Origin": "https://testserver"}, True, id="our page behind a TLS proxy"),
        pytest.param({"Origin": BASE + ":81"}, False, id="another port"),
        pytest.param({"Origin": "https://evil.example"}, False, id="another site"),
        pytest.param({"Origin": "null"}, False, id="null origin"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, True, id="browser says same origin"),
        pytest.param({"Sec-Fetch-Site": "none"}, True, id="browser says typed by hand"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, False, id="browser says another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, False, id="browser says a sibling"),
        pytest.param(
            {"Sec-Fetch-Site": "cross-site", "Origin": BASE}, False, id="the browser knows better"
        ),
    ],
)
def test_no_other_sites_page_changes_anything(
    client: TestClient, headers: dict[str, str], is_allowed: bool
) -> None:
    body = request_body(client)
    answer = client.post("/api/v1/jobs", json=body, headers=headers)
    assert (answer.status_code == 202) is is_allowed
    if not is_allowed:
        assert (answer.status_code, code_of(answer)) == (403, "auth.cross_site")
        assert client.get("/api/v1/jobs", headers=headers).json() == {"jobs": []}


@pytest.fixture
def picky(volume: Volume) -> Iterator[TestClient]:
    options = ApiOptions(allowed_hosts=("localhost", "127.0.0.1", "[::1]"))
    with TestClient(create_app(volume.studio, options)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        pytest.param("localhost", True, id="plain"),
        pytest.param("localhost:8080", True, id="with port"),
        pytest.param("LocalHost:8080", True, id="capitals"),
        pytest.param("[::1]:8080", True, id="IPv6 with port"),
        pytest.param("[::1]", True, id="IPv6"),
        pytest.param("rebound.example", False, id="foreign"),
        pytest.param("localhost.evil.example", False, id="begins alike"),
        pytest.param("", False, id="empty"),
    ],
)
def test_only_listed_host_names_are_answered(
    picky: TestClient, host: str, is_allowed: bool
) -> None:
    answer = picky.get("/api/v1/jobs", headers={"Host": host})
    assert (answer.status_code == 200) is is_allowed
    if not is_allowed:
        assert (answer.status_code, code_of(answer)) == (421, "request.bad_host")


def test_a_long_body_is_refused_by_its_announced_length(client: TestClient) -> None:
    answer = client.post("/api/v1/jobs", content=b"x" * 5000)
    assert (answer.status_code, code_of(answer)) == (413, "request.too_large")


def test_a_body_of_unknown_length_is_cut_at_the_limit(volume: Volume) -> None:
    app = create_app(volume.studio, ApiOptions(max_body_bytes=10_000))
    assert ask_endlessly(app, "/api/v1/jobs", b"x" * 4000) == (413, 12_000)


def test_the_pages_own_routes_have_the_limit_too(volume: Volume) -> None:
    app: FastAPI = create_app(volume.studio, ApiOptions(max_body_bytes=200))

    @app.post("/own")
    def own(body: dict[str, str]) -> dict[str, str]:
        return body

    body = {"text": "x" * 100}
    assert TestClient(app).post("/own", json=body).json() == body
    assert TestClient(app).post("/own", json={"text": "x" * 300}).status_code == 413


def test_the_page_takes_small_bodies_only(volume: Volume) -> None:
    app: FastAPI = create_app(volume.studio)

    @app.post("/own")
    def own(body: dict[str, str]) -> dict[str, str]:
        return body

    assert TestClient(app).post("/own", json={"text": "x" * 1000}).status_code == 200
    assert TestClient(app).post("/own", json={"text": "x" * 100_000}).status_code == 413
