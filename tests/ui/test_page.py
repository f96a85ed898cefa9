import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from gradio.blocks import Blocks
from starlette.testclient import TestClient

from app.ui.gradio_routes import NeededRoutesOnly, guard_mounted_gradio, is_needed
from app.ui.page import ASSETS, mount_page
from tests.ui.conftest import FakeStudio, processor

SECRET = "only the owner of this machine may read this"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where Gradio would put files."""
    folder = tmp_path_factory.mktemp("gradio") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def studio() -> FakeStudio:
    return FakeStudio()


@pytest.fixture(scope="module")
def app(cache: Path, studio: FakeStudio) -> FastAPI:
    """The page on an API of one route; made once, because Gradio takes its time."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/api/v1/ping")(lambda: "pong")
    return mount_page(app, studio)


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.png"
    file.write_text(SECRET)
    return file


def gradio_app(app: FastAPI) -> Any:
    guard = app.routes[-1].app  # type: ignore[attr-defined]
    assert isinstance(guard, NeededRoutesOnly)
    return guard._gradio_app


def blocks_of(app: FastAPI) -> Blocks:
    blocks: Blocks = gradio_app(app).get_blocks()
    return blocks


def payloads(path: Path) -> dict[str, Any]:
    """A server's file, dressed as each component would dress one that somebody uploaded."""
    file = {"path": str(path), "meta": {"_type": "gradio.FileData"}}
    return {
        "file": file,
        "image": {**file, "mime_type": "image/png", "is_stream": False, "orig_name": "a.png"},
        "video": {"video": file, "subtitles": None},
        "gallery": [{"image": file, "caption": None}],
        "address": {**file, "url": f"/gradio_api/file={path}"},
        "stream": {**file, "is_stream": True},
    }


def call(client: TestClient, fn_index: int, data: list[Any]) -> str:
    """Call an event as the page's script does, and give everything that the server says."""
    body = {"data": data, "fn_index": fn_index, "session_hash": "tests", "event_data": None}
    joined = client.post("/gradio_api/queue/join", json=body)
    if joined.status_code != 200:
        return joined.text
    return joined.text + client.get("/gradio_api/queue/data?session_hash=tests").text


def server_events(app: FastAPI) -> list[tuple[int, int]]:
    """Index and number of inputs of each event that runs Python."""
    return [
        (index, len(fn.inputs)) for index, fn in blocks_of(app).fns.items() if fn.fn is not None
    ]


def leaked(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    return [path for path in files if SECRET in path.read_text(errors="ignore")]


@pytest.mark.parametrize("dress", sorted(payloads(Path())))
def test_no_event_reads_a_file_of_the_server(
    app: FastAPI, client: TestClient, cache: Path, secret: Path, dress: str
) -> None:
    payload = payloads(secret)[dress]
    for index, inputs in server_events(app):
        for position in range(inputs):
            data: list[Any] = [None] * inputs
            data[position] = payload
            said = call(client, index, data)
            assert "process_completed" in said
            assert SECRET not in said
            assert str(secret) not in said
    assert leaked(cache) == []


def test_without_the_switch_gradio_would_read_it(
    app: FastAPI,
    client: TestClient,
    cache: Path,
    secret: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shows that the test above would notice."""
    monkeypatch.setattr(blocks_of(app), "has_launched", False)
    index, inputs = server_events(app)[0]
    call(client, index, [payloads(secret)["file"], *[None] * (inputs - 1)])
    found = leaked(cache)
    for file in found:
        file.unlink()
    assert len(found) == 1


def test_the_page_counts_as_launched(app: FastAPI) -> None:
    assert blocks_of(app).has_launched


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/gradio_api/upload"),
        ("GET", "/gradio_api/file=/etc/passwd"),
        ("HEAD", "/gradio_api/file=/etc/passwd"),
        ("GET", "/gradio_api/file/etc/passwd"),
        ("GET", "/gradio_api/proxy=http://127.0.0.1:1/"),
        ("GET", "/gradio_api/stream/a/b/1/playlist.m3u8"),
        ("POST", "/gradio_api/stream/a"),
        ("POST", "/gradio_api/component_server"),
        ("GET", "/gradio_api/custom_component/a/client/component/index.js"),
        ("GET", "/gradio_api/deep_link"),
        ("GET", "/gradio_api/info"),
        ("GET", "/gradio_api/openapi.json"),
        ("POST", "/gradio_api/call/start"),
        ("POST", "/gradio_api/run/start"),
        ("POST", "/gradio_api/process_recording"),
        ("POST", "/gradio_api/vibe-edit"),
        ("GET", "/gradio_api/runs"),
        ("GET", "/monitoring"),
        ("GET", "/svelte/index.js"),
        ("POST", "/login"),
        ("GET", "/openapi.json"),
        ("GET", "/docs"),
        ("GET", "/../../etc/passwd"),
        ("GET", "/ui/../page.py"),
        ("GET", "/ui/%2e%2e/page.py"),
    ],
)
def test_routes_that_the_page_does_not_need_are_closed(
    client: TestClient, method: str, path: str
) -> None:
    assert client.request(method, path).status_code in (404, 405)


def test_a_closed_route_answers_in_the_form_of_the_api(client: TestClient) -> None:
    error = client.get("/gradio_api/info").json()["error"]
    assert error["code"] == "request.not_found"


@pytest.mark.parametrize("path", ["/", "/config", "/theme.css", "/favicon.ico", "/api/v1/ping"])
def test_the_page_and_the_api_are_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200


def test_only_whole_folders_are_opened() -> None:
    assert is_needed("/assets/index.js")
    assert not is_needed("/assets")
    assert not is_needed("/gradio_api/queue/joined")


def test_guarding_something_else_is_told_loudly() -> None:
    with pytest.raises(TypeError, match="mounted page"):
        guard_mounted_gradio(FastAPI())


def test_nothing_is_recorded_shown_or_sent(client: TestClient) -> None:
    config = client.get("/config").json()
    assert config["analytics_enabled"] is False
    assert config["run_history"] is False
    assert config["show_error"] is False
    assert config["footer_links"] == []
    assert config["title"] == "FaceDock"


def test_every_event_is_private(client: TestClient) -> None:
    dependencies = client.get("/config").json()["dependencies"]
    assert dependencies
    assert {dependency["api_visibility"] for dependency in dependencies} == {"private"}


def test_no_control_holds_a_file(client: TestClient) -> None:
    kinds = {component["type"] for component in client.get("/config").json()["components"]}
    assert kinds <= {
        *("html", "column", "row", "form", "button", "json", "accordion"),
        *("checkbox", "slider", "dropdown", "radio", "number", "textbox"),
    }


def test_no_consent_is_chosen_beforehand(client: TestClient) -> None:
    components = client.get("/config").json()["components"]
    consent = next(c["props"] for c in components if c["props"].get("elem_id") == "fd-consent")
    assert consent.get("value") is None
    assert [value for _, value in consent["choices"]] == [
        *("self", "permission", "fictional", "public-domain")
    ]


def test_icon_style_and_script_of_the_page_are_served(client: TestClient) -> None:
    head = client.get("/config").json()["head"]
    addresses = re.findall(r'(?:href|src)="([^"]+)"', head)
    assert len(addresses) == 3
    assert all(client.get(f"/{address}").status_code == 200 for address in addresses)


def test_the_scripts_import_only_each_other() -> None:
    for script in ASSETS.glob("*.js"):
        for name in re.findall(r'from "(.+)"|^import "(.+)"', script.read_text()):
            assert (ASSETS / (name[0] or name[1])).is_file()


def test_our_own_files_name_no_other_host() -> None:
    for file in ASSETS.iterdir():
        hosts = set(re.findall(r"https?://[\w.]+", file.read_text()))
        assert hosts <= {"http://www.w3.org"}


def test_a_preview_is_described_and_no_picture_passes_through_gradio(
    app: FastAPI, client: TestClient
) -> None:
    index, _ = server_events(app)[1]
    data = [*choices(client, index).values()]
    request = output_of(call(client, index, data))["request"]
    assert (request["target"], request["sources"]) == ("t1", ["s1"])


def choices(client: TestClient, fn_index: int) -> dict[int, Any]:
    """What an event is sent of the page as it opens, a photo and a target chosen: control to value."""
    config = client.get("/config").json()
    values = {c["id"]: c["props"].get("value") for c in config["components"]}
    own, consent, *others = config["dependencies"][fn_index]["inputs"]
    chosen = {"target": "t1", "sources": ["s1"], "face_map": {}, "timing": {}}
    return {own: json.dumps(chosen), consent: "self", **{id: values[id] for id in others}}


def output_of(said: str) -> Any:
    return outputs_of(said)[0]


def outputs_of(said: str) -> list[Any]:
    messages = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
    done = next(message for message in messages if message["msg"] == "process_completed")
    data: list[Any] = done["output"]["data"]
    return data


def test_the_page_starts_a_job_through_the_queue(
    app: FastAPI, client: TestClient, studio: FakeStudio
) -> None:
    index, _ = server_events(app)[0]
    data = [*choices(client, index).values()]
    said = call(client, index, data)
    assert output_of(said) == {"job": "j1"}
    request = studio.submitted[-1]
    assert request.sources == ("s1",)
    assert [step.processor for step in request.steps] == ["face_swapper"]


def test_a_network_that_is_installed_later_can_be_chosen_without_a_restart(
    app: FastAPI, client: TestClient, studio: FakeStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = processor("face_swapper", "Swap faces", networks=["swapper-256"])
    monkeypatch.setattr(studio, "infos", (later, *studio.infos[1:]))
    opening, _ = server_events(app)[-1]
    network = client.get("/config").json()["dependencies"][opening]["outputs"][0]
    said = outputs_of(call(client, opening, []))
    assert [value for _, value in said[0]["choices"]] == ["none", "swapper-256"]
    assert "value" not in said[0]

    start, _ = server_events(app)[0]
    chosen = {**choices(client, start), network: "swapper-256"}
    assert output_of(call(client, start, [*chosen.values()])) == {"job": "j1"}
    assert studio.submitted[-1].steps[0].options["network"] == "swapper-256"
