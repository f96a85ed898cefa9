from typing import Any

import gradio as gr
import pytest
from pydantic import BaseModel, Field

from app.ui.controls import OptionControls, draw_options, model_choices, option_texts
from app.ui.texts import Texts
from tests.ui.conftest import MadeUpOptions, processor

SCHEMA = MadeUpOptions.model_json_schema()
TEXTS = Texts({"en": {}, "zh": {"made_up.strength": "强度"}}).including(
    "en", option_texts(SCHEMA, "made_up")
)


def drawn() -> dict[str, Any]:
    controls = draw_options(SCHEMA, "made_up", TEXTS)
    return dict(zip(controls.names, controls.components, strict=True))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        pytest.param("is_on", gr.Checkbox, {"value": True}, id="bool is a tick"),
        pytest.param(
            "strength",
            gr.Slider,
            {"minimum": 0, "maximum": 1, "step": 0.01, "value": 0.6},
            id="float between bounds is a slider",
        ),
        pytest.param(
            "passes",
            gr.Slider,
            {"minimum": 1, "maximum": 8, "step": 1, "value": 2},
            id="int between bounds is a slider of whole numbers",
        ),
        pytest.param(
            "seed", gr.Number, {"minimum": 0, "precision": 0, "value": 7}, id="open int is a number"
        ),
        pytest.param(
            "gain",
            gr.Slider,
            {"minimum": 0.25, "maximum": 1.75, "step": 0.25},
            id="exclusive bounds are one step away",
        ),
        pytest.param(
            "limit", gr.Slider, {"minimum": 1, "maximum": 9}, id="optional is what it holds"
        ),
        pytest.param("note", gr.Textbox, {"value": ""}, id="text is a text field"),
    ],
)
def test_a_field_becomes_the_control_for_its_kind(
    name: str, kind: type, expected: dict[str, Any]
) -> None:
    control = drawn()[name]
    assert isinstance(control, kind)
    assert {key: getattr(control, key) for key in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        pytest.param("model", ["mesh", "other"], id="literal"),
        pytest.param("mood", ["calm", "wild"], id="enum"),
        pytest.param("only", ["one"], id="literal with one choice"),
        pytest.param("network", ["none"], id="what names a model"),
    ],
)
def test_a_closed_set_becomes_a_dropdown(name: str, choices: list[str]) -> None:
    control = drawn()[name]
    assert isinstance(control, gr.Dropdown)
    assert [value for _, value in control.choices] == choices


def test_a_model_that_came_later_is_called_by_its_id_and_nothing_but_models_is_asked_for_anew() -> (
    None
):
    later = processor("made_up", "Make up", networks=["swapper-256"]).options_schema
    choices = model_choices(later, "made_up", TEXTS)
    assert list(choices) == ["network"]
    built_in, (label, value) = choices["network"]
    assert built_in[1] == "none"
    assert (label, value) == ("swapper-256", "swapper-256")


def test_every_field_is_drawn_once_in_its_order() -> None:
    assert list(drawn()) == list(MadeUpOptions.model_fields)


def test_titles_and_descriptions_become_texts_that_another_language_can_give() -> None:
    assert TEXTS.tables["en"]["made_up.strength"] == "Strength"
    assert TEXTS.tables["en"]["made_up.is_on.info"] == "Whether it is on"
    assert TEXTS.tables["en"]["made_up.model.mesh"] == "Mesh"
    assert drawn()["strength"].label.key == "made_up.strength"


def test_values_come_back_under_their_names_and_validate() -> None:
    controls = OptionControls(names=("strength", "limit", "passes"), components=())
    values = controls.read([0.25, None, 3.0])
    assert values == {"strength": 0.25, "passes": 3.0}
    assert MadeUpOptions.model_validate(values).passes == 3


def test_a_field_that_no_control_can_hold_is_told_loudly() -> None:
    class Odd(BaseModel):
        pairs: dict[str, int] = Field(default={}, title="Pairs")

    schema = Odd.model_json_schema()
    texts = Texts({"en": option_texts(schema, "odd")})
    with pytest.raises(TypeError, match=r"odd\.pairs"):
        draw_options(schema, "odd", texts)


def test_no_options_make_no_controls() -> None:
    class Nothing(BaseModel):
        pass

    schema = Nothing.model_json_schema()
    assert option_texts(schema, "nothing") == {}
    assert draw_options(schema, "nothing", Texts({"en": {}})).components == ()
