import logging
from typing import Any

import gradio as gr
import pytest

from app.core.errors import ConsentRequiredError, QueueFullError
from app.jobs.job import JobRequest, MediaId
from app.pipeline.spec import FaceMap
from app.ui.controls import OptionControls
from app.ui.start import StartForm, StepControls, submit
from tests.ui.conftest import FakeStudio


@pytest.fixture
def form() -> StartForm:
    """Two steps: one with an option, one without."""
    strength = OptionControls(names=("strength",), components=(gr.Slider(0, 1),))
    nothing = OptionControls(names=(), components=())
    encoding = OptionControls(names=("quality",), components=(gr.Slider(0, 100),))
    return StartForm(
        sources=gr.Textbox(),
        target=gr.Textbox(),
        consent=gr.Radio(),
        whom=gr.Radio(),
        number=gr.Number(),
        encoding=encoding,
        steps=(
            StepControls(processor="swap", enabled=gr.Checkbox(), options=strength),
            StepControls(processor="polish", enabled=gr.Checkbox(), options=nothing),
        ),
    )


def values(**changed: Any) -> list[Any]:
    """What the browser sends, in the order of the form's controls."""
    usual: dict[str, Any] = {
        "sources": "s1 s2",
        "target": "t1",
        "consent": "self",
        "whom": "everyone",
        "number": 1,
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


@pytest.mark.parametrize(
    ("whom", "number", "wanted"),
    [
        pytest.param("everyone", 3, FaceMap(), id="everyone, whatever the hidden number says"),
        pytest.param("everyone", 0, FaceMap(), id="everyone, even where it makes no sense"),
        pytest.param("one", 1, FaceMap.only(1), id="the first"),
        pytest.param("one", 4.0, FaceMap.only(4), id="the fourth"),
    ],
)
def test_people_count_from_one(
    form: StartForm, whom: str, number: float | None, wanted: FaceMap[MediaId]
) -> None:
    assert form.request(values(whom=whom, number=number)).face_map == wanted


def test_only_ticked_steps_run(form: StartForm) -> None:
    request = form.request(values(swap=False, polish=True))
    assert [step.processor for step in request.steps] == ["polish"]


def test_a_started_job_is_answered_by_its_id(form: StartForm, studio: FakeStudio) -> None:
    assert submit(studio, form, values()) == {"job": "j1"}
    assert isinstance(studio.submitted[0], JobRequest)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"sources": ""}, id="no face"),
        pytest.param({"sources": None}, id="a face field that was never filled"),
        pytest.param({"swap": False}, id="no step"),
        pytest.param({"consent": "because"}, id="an unknown ground"),
        pytest.param({"whom": "one", "number": 0}, id="person 0"),
        pytest.param({"whom": "one", "number": None}, id="an emptied number"),
        pytest.param({"whom": "one", "number": 2.5}, id="half a person"),
        pytest.param({"quality": 101}, id="quality beyond its bounds"),
    ],
)
def test_what_makes_no_sense_is_answered_with_a_code(
    form: StartForm, studio: FakeStudio, changed: dict[str, Any]
) -> None:
    reply = submit(studio, form, values(**changed))
    assert reply["error"]["code"] == "request.bad_option"
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
