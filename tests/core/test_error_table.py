import re

import pytest

from app.core import errors
from app.core.error_table import ERROR_TABLE, entry_for, entry_of, without_paths
from app.core.errors import AppError
from tests.jobs.fakes import all_errors

CODES = sorted({kind.code for kind in all_errors()})


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = list(all_errors())
    assert len({kind.code for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_an_entry_in_both_languages(code: str) -> None:
    entry = ERROR_TABLE[code]
    assert re.fullmatch(r"[A-Z][ -~]+[.]", entry.text("en"))
    assert re.search(r"[\u4e00-\u9fff].*。", entry.text("zh"))
    assert 400 <= entry.http_status < 600


def test_the_table_has_no_entry_that_nobody_raises() -> None:
    assert sorted(ERROR_TABLE) == CODES


def test_the_tree_at_the_top_of_the_module_is_the_real_one() -> None:
    drawn = dict(re.findall(r"(\w+) {2,}(\w+\.\w+)$", errors.__doc__ or "", re.MULTILINE))
    assert drawn == {kind.__name__: kind.code for kind in all_errors()}


USAGE = {"consent", "output.unwritable", "output.unsupported_type", "face.no_such_person"}
EXIT_CODES = {"request": 2, "media": 3, "face": 3, "policy": 4, "device": 5, "model": 5}


@pytest.mark.parametrize("code", CODES)
def test_exit_codes_follow_the_family_of_the_code(code: str) -> None:
    family = code.split(".")[0]
    wanted = 2 if code in USAGE or family in USAGE else EXIT_CODES.get(family, 1)
    assert ERROR_TABLE[code].exit_code == wanted


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("media.empty", 422),
        ("media.unsupported_type", 415),
        ("media.too_large", 422),
        ("consent.required", 422),
        ("policy.intimate_content", 422),
        ("queue.full", 429),
        ("storage.full", 507),
        ("model.missing", 503),
        ("job.not_found", 404),
        ("job.not_finished", 409),
        ("request.too_large", 413),
        ("request.bad_name", 400),
        ("request.bad_host", 421),
        ("auth.cross_site", 403),
        ("output.unwritable", 500),
        ("internal.unexpected", 500),
    ],
)
def test_statuses_that_clients_count_on(code: str, status: int) -> None:
    assert ERROR_TABLE[code].http_status == status


def test_a_code_of_a_newer_release_reads_as_unexpected() -> None:
    assert entry_of("moon.full") is ERROR_TABLE["internal.unexpected"]
    assert entry_for(AppError()) is ERROR_TABLE["internal.unexpected"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("12 of 30 faces", "12 of 30 faces", id="nothing to cut"),
        pytest.param("/data/media/ab12/original: cut off", "original: cut off", id="at the start"),
        pytest.param("cannot open '/srv/x/y.png'", "cannot open 'y.png'", id="in quotes"),
        pytest.param("rate 30000/1001, 16/9", "rate 30000/1001, 16/9", id="fractions stay"),
        pytest.param("see https://a.b/c/d", "see https://a.b/c/d", id="addresses stay"),
        pytest.param("image/png is not video/mp4", "image/png is not video/mp4", id="types stay"),
    ],
)
def test_messages_lose_the_paths_of_this_machine(text: str, shown: str) -> None:
    assert without_paths(text) == shown
