from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from tests.api.conftest import LIMITS
from tests.api.endless import ask_endlessly
from tests.api.test_routes import code_of
from tests.jobs.fakes import STILL, Volume

MIB = 1 << 20
FORM = {"Content-Type": "multipart/form-data; boundary=cut"}


def part(
    content: bytes, disposition: bytes = b'form-data; name="file"; filename="me.png"'
) -> bytes:
    return b"--cut\r\nContent-Disposition: " + disposition + b"\r\n\r\n" + content + b"\r\n"


END = b"--cut--\r\n"


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def post_form(client: TestClient, body: bytes | Iterator[bytes]):  # type: ignore[no-untyped-def]
    return client.post("/api/v1/media", content=body, headers=FORM)


def left_behind(volume: Volume) -> list[str]:
    return [path.name for path in volume.folders.media.iterdir()]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_form_may_arrive_in_pieces_of_any_size(
    client: TestClient, volume: Volume, size: int
) -> None:
    fields = part(b"a note", b'form-data; name="note"')
    content = STILL + bytes(range(256)) + b"\r\n--cu\r\n--cut no boundary"
    content = content.replace(b"\r\n--cut", b"\r\n--cot")
    answer = post_form(client, in_pieces(fields + part(content) + END, size))
    assert answer.status_code == 201, answer.text
    assert volume.studio.media_path(answer.json()["id"]).read_bytes() == content


def test_a_raw_body_is_an_upload_too(client: TestClient, volume: Volume) -> None:
    answer = client.post("/api/v1/media", params={"name": "我.png"}, content=STILL)
    assert (answer.status_code, answer.json()["name"]) == (201, "我.png")
    assert volume.studio.media_path(answer.json()["id"]).read_bytes() == STILL


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("../../x.png", "x.png", id="climbing"),
        pytest.param("C:\\x\\y.png", "y.png", id="Windows path"),
        pytest.param("照片.png", "照片.png", id="Chinese"),
        pytest.param("%03d.png", "%03d.png", id="pattern"),
        pytest.param("", "file", id="empty"),
    ],
)
def test_names_are_reduced_to_what_is_safe_to_show(
    client: TestClient, name: str, shown: str
) -> None:
    disposition = f'form-data; name="file"; filename="{name}"'.encode()
    answer = post_form(client, part(STILL, disposition) + END)
    assert (answer.status_code, answer.json()["name"]) == (201, shown)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param(END, 400, "request.bad_multipart", id="no part"),
        pytest.param(
            part(b"x", b'form-data; name="file"') + END, 400, "request.bad_multipart", id="no file"
        ),
        pytest.param(part(STILL) + part(STILL) + END, 400, "request.bad_multipart", id="two files"),
        pytest.param(part(STILL), 400, "request.bad_multipart", id="cut off"),
        pytest.param(b"no form at all", 400, "request.bad_multipart", id="no form"),
        pytest.param(
            part(b"x", b'form-data; name="n"') * 10_000 + END,
            400,
            "request.bad_multipart",
            id="10000 parts",
        ),
        pytest.param(
            part(b"x" * 100_000, b'form-data; name="n"') + part(STILL) + END,
            400,
            "request.bad_multipart",
            id="long field",
        ),
        pytest.param(
            part(STILL, b"form-data; name=file; filename=" + b"x" * 20_000) + END,
            400,
            "request.bad_multipart",
            id="endless header",
        ),
        pytest.param(
            part(STILL, b'form-data; name="file"; filename="a\x00b"') + END,
            400,
            "request.bad_name",
            id="NUL in the name",
        ),
        pytest.param(
            part(STILL, 'form-data; name="file"; filename="a\u202eb"'.encode()) + END,
            400,
            "request.bad_name",
            id="reversed name",
        ),
        pytest.param(
            part(STILL, b'form-data; name="file"; filename="\xff\xfe.png"') + END,
            400,
            "request.bad_name",
            id="name in no known script",
        ),
        pytest.param(part(b"") + END, 422, "media.empty", id="empty file"),
        pytest.param(part(b"plain text") + END, 415, "media.unsupported_type", id="text"),
        pytest.param(part(b"STILL" * MIB) + END, 413, "request.too_large", id="too large"),
    ],
)
def test_bad_uploads_are_refused_and_leave_nothing(
    client: TestClient, volume: Volume, body: bytes, status: int, code: str
) -> None:
    answer = post_form(client, body)
    assert (answer.status_code, code_of(answer)) == (status, code)
    assert left_behind(volume) == []


@pytest.mark.parametrize("boundary", ["", "b" * 8192], ids=["no boundary", "8 kB boundary"])
def test_a_form_needs_a_sane_boundary(client: TestClient, boundary: str) -> None:
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = client.post("/api/v1/media", content=part(STILL) + END, headers=headers)
    assert (answer.status_code, code_of(answer)) == (400, "request.bad_multipart")


def test_an_upload_of_unknown_length_is_cut_at_the_limit(volume: Volume) -> None:
    app = create_app(volume.studio, LIMITS)
    status, taken = ask_endlessly(app, "/api/v1/media", b"STILL".ljust(MIB // 4, b"."))
    assert status == 413
    assert taken <= 2 * MIB
    assert left_behind(volume) == []


def test_an_upload_that_breaks_off_leaves_nothing(volume: Volume) -> None:
    app = create_app(volume.studio, LIMITS)
    status, _ = ask_endlessly(app, "/api/v1/media", STILL, leave_after=3)
    assert status is None
    assert left_behind(volume) == []


def test_the_file_may_be_as_large_as_the_limit_whatever_the_form_adds(client: TestClient) -> None:
    assert post_form(client, part(STILL.ljust(MIB, b".")) + END).status_code == 201
    answer = post_form(client, part(STILL.ljust(MIB + 1, b".")) + END)
    assert code_of(answer) == "request.too_large"
