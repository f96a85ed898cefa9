import json
import logging
from typing import Any

import gradio as gr
import pytest

from app.core.errors import ConsentRequiredError, QueueFullError
from app.jobs.job import JobRequest
from app.ui.controls import OptionControls
from app.ui.start import StartForm, StepControls, describe, submit
from tests.ui.conftest import FakeStudio


@pytest.fixture
def form() -> StartForm:
    """Two steps: one with an option, one without."""
    strength = OptionControls(names=("strength",), components=(gr.Slider(0, 1),))
    nothing = OptionControls(names=(), components=())
    encoding = OptionControls(names=("quality",), components=(gr.Slider(0, 100),))
    return StartForm(
        own=gr.Textbox(),
        consent=gr.Radio(),
        encoding=encoding,
        steps=(
            StepControls(processor="swap", enabled=gr.Checkbox(), options=strength),
            StepControls(processor="polish", enabled=gr.Checkbox(), options=nothing),
        ),
    )


def own(**changed: Any) -> str:
    """What the page's own elements write into the hidden field."""
    usual: dict[str, Any] = {
        "target": "t1",
        "sources": ["s1", "s2"],
        "face_map": {"choices": [], "others": "source"},
        "timing": {"start_s": 0, "end_s": None, "fps": None},
    }
    return json.dumps({**usual, **changed})


def values(**changed: Any) -> list[Any]:
    """What the browser sends, in the order of the form's controls."""
    usual: dict[str, Any] = {
        "own": own(),
        "consent": "self",
        "quality": 90,
        "swap": True,
        "strength": 0.4,
        "polish": False,
    }
    return list({**usual, **changed}.values())


def test_the_form_lists_its_controls_in_the_order_of_the_values(form: StartForm) -> None:
    assert len(form.components) == len(values())


def test_the_controls_become_a_request(form: StartForm) -> None:
    request = form.request(values())
    assert request.sources == ("s1", "s2")
    assert request.target == "t1"
    assert request.consent == "self"
    assert request.encoding.quality == 90
    assert [(step.processor, step.options) for step in request.steps] == [
        ("swap", {"strength": 0.4})
    ]


def test_each_person_gets_what_the_page_says(form: StartForm) -> None:
    choices = [
        {"person": 1, "action": {"photos": ["s1"], "face": 2}},
        {"person": 3, "action": "blur"},
    ]
    face_map = {"choices": choices, "others": "leave", "threshold": 0.5}
    request = form.request(values(own=own(sources=[], face_map=face_map)))
    assert [choice.person for choice in request.face_map.choices] == [1, 3]
    assert (request.face_map.others, request.face_map.threshold) == ("leave", 0.5)
    assert request.inputs == ("s1", "t1")


def test_part_and_rate_of_a_video_are_taken_over(form: StartForm) -> None:
    request = form.request(values(own=own(timing={"start_s": 1.5, "end_s": 4, "fps": 12})))
    timing = request.timing
    assert (timing.start_s, timing.end_s, timing.fps) == (1.5, 4, 12)


def test_a_described_job_is_the_one_that_would_be_started(
    form: StartForm, studio: FakeStudio
) -> None:
    described = describe(form, values())["request"]
    submit(studio, form, values())
    assert JobRequest.model_validate(described) == studio.submitted[0]


def test_only_ticked_steps_run(form: StartForm) -> None:
    request = form.request(values(swap=False, polish=True))
    assert [step.processor for step in request.steps] == ["polish"]


def test_a_started_job_is_answered_by_its_id(form: StartForm, studio: FakeStudio) -> None:
    assert submit(studio, form, values()) == {"job": "j1"}
    assert isinstance(studio.submitted[0], JobRequest)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"own": own(sources=[])}, id="no face"),
        pytest.param({"own": None}, id="a hidden field that was never filled"),
        pytest.param({"own": "no JSON"}, id="a hidden field that holds something else"),
        pytest.param({"own": own(path="/etc/passwd")}, id="a hidden field that holds more"),
        pytest.param({"swap": False}, id="no step"),
        pytest.param({"consent": "because"}, id="an unknown ground"),
        pytest.param({"own": own(face_map={"others": "paint"})}, id="an unknown action"),
        pytest.param({"own": own(timing={"start_s": 4, "end_s": 2})}, id="an end before the start"),
        pytest.param({"own": own(timing={"fps": 0})}, id="no frame a second"),
        pytest.param({"quality": 101}, id="quality beyond its bounds"),
    ],
)
def test_what_makes_no_sense_is_answered_with_a_code(
    form: StartForm, studio: FakeStudio, changed: dict[str, Any]
) -> None:
    reply = submit(studio, form, values(**changed))
    assert reply["error"]["code"] == "request.bad_option"
    assert describe(form, values(**changed)) == reply
    assert studio.submitted == []


@pytest.mark.parametrize("error", [ConsentRequiredError("say why"), QueueFullError("too many")])
def test_a_refusal_of_the_studio_keeps_its_code(
    form: StartForm, studio: FakeStudio, error: ConsentRequiredError | QueueFullError
) -> None:
    studio.error = error
    assert submit(studio, form, values()) == {
        "error": {"code": error.code, "message": error.message}
    }


def test_a_surprise_tells_neither_the_browser_nor_the_log_where_files_lie(
    form: StartForm, studio: FakeStudio, caplog: pytest.LogCaptureFixture
) -> None:
    studio.error = OSError("/home/somebody/secret.png")
    with caplog.at_level(logging.INFO):
        reply = submit(studio, form, values())
    assert reply["error"]["code"] == "internal.unexpected"
    assert "secret" not in str(reply) + caplog.text
    assert "OSError" in caplog.text
