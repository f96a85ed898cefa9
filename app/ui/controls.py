"""Options become controls, read from a pydantic class's JSON schema: no processor needs a line here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component
from gradio.i18n import I18nData

from app.processors.base import MODELS_OF
from app.ui.texts import Texts

Schema = Mapping[str, Any]
Choices = Sequence[tuple[str | I18nData, Any]]
"""What people read, and the value."""

_SLIDER_STEPS = 100
_MANY_WHOLE_NUMBERS = 1000


@dataclass(frozen=True, slots=True)
class OptionControls:
    """The controls of one options class, in the order of its fields.

    Attributes:
        names: Field names.
        components: One a field.
    """

    names: tuple[str, ...]
    components: tuple[Component, ...]

    def of(self, name: str) -> Component:
        """The control of a field."""
        return self.components[self.names.index(name)]

    def read(self, values: Sequence[Any]) -> dict[str, Any]:
        """Give the controls' values their field names.

        Args:
            values: One a control; an emptied control leaves its field to its default.
        """
        pairs = zip(self.names, values, strict=True)
        return {name: value for name, value in pairs if value is not None}


def option_texts(options: Schema, prefix: str) -> dict[str, str]:
    """The English texts of an options class, under the keys that its controls use.

    A translation is one line in another language's file: `prefix.field`, `prefix.field.info`,
    `prefix.field.choice`.
    """
    texts = {}
    for name, schema in _fields(options):
        key = f"{prefix}.{name}"
        texts[key] = _as_sentence(str(schema.get("title", name)))
        if "description" in schema:
            texts[f"{key}.info"] = _as_sentence(str(schema["description"]))
        texts |= {f"{key}.{choice}": _choice_text(choice) for choice in schema.get("enum", ())}
    return texts


def model_choices(options: Schema, prefix: str, texts: Texts) -> dict[str, Choices]:
    """The choices of those fields that name a model: what is installed may change while the page is served.

    Args:
        options: The schema as it is now.
        prefix: What the keys of its texts begin with.
        texts: Those of the page; a model that came later is called by its id.
    """
    return {
        name: _choices(schema, f"{prefix}.{name}", texts)
        for name, schema in _fields(options)
        if MODELS_OF in schema
    }


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _choice_text(choice: object) -> str:
    """A word begins like a label; an id such as `x4-plus` stays what it is."""
    text = str(choice)
    return text.capitalize() if text.isalpha() else text


def draw_options(options: Schema, prefix: str, texts: Texts) -> OptionControls:
    """Draw one control a field, in the Gradio layout that is open at the moment.

    Args:
        options: What `model_json_schema` says of the options class.
        prefix: What the keys of its texts begin with.
        texts: All texts, `option_texts` of the same class among them.

    Raises:
        TypeError: A field is of a kind that no control can hold.
    """
    drawn = [(name, _draw(schema, f"{prefix}.{name}", texts)) for name, schema in _fields(options)]
    return OptionControls(
        names=tuple(name for name, _ in drawn), components=tuple(control for _, control in drawn)
    )


def _fields(options: Schema) -> Iterator[tuple[str, Schema]]:
    for name, schema in options.get("properties", {}).items():
        yield name, _resolved(schema, options.get("$defs", {}))


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """A field's schema without indirections: enums in place, one literal as a list of one, optional left out."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        own = {key: value for key, value in schema.items() if key != "$ref"}
        # The title of a shared enum names its class, which says nothing to people.
        return {**{key: value for key, value in target.items() if key != "title"}, **own}
    if "const" in schema:
        return {**schema, "enum": [schema["const"]]}
    if "anyOf" in schema:
        inner = [part for part in schema["anyOf"] if part.get("type") != "null"]
        if len(inner) == 1:
            return {**_resolved(inner[0], definitions), **schema}
    return schema


def _draw(schema: Schema, key: str, texts: Texts) -> Component:
    makers: dict[str, Callable[..., Component]] = {
        "boolean": gr.Checkbox,
        "integer": _number,
        "number": _number,
        "string": gr.Textbox,
    }
    common = {
        "label": texts(key),
        "info": texts(f"{key}.info") if texts.has(f"{key}.info") else None,
        "elem_classes": "fd-option",
    }
    if "enum" in schema:
        return _dropdown(schema, key, texts, common=common)
    kind = str(schema.get("type"))
    if kind not in makers:
        raise TypeError(
            f"option {key}: no control shows a {kind!r}; use a bool, number, text or choice"
        )
    if makers[kind] is _number:
        return _number(schema, common)
    return makers[kind](value=schema.get("default"), **common)


def _dropdown(schema: Schema, key: str, texts: Texts, *, common: Mapping[str, Any]) -> Component:
    return gr.Dropdown(
        choices=_choices(schema, key, texts),
        value=schema.get("default"),
        filterable=False,
        **common,
    )


def _choices(schema: Schema, key: str, texts: Texts) -> Choices:
    def label(choice: object) -> str | I18nData:
        name = f"{key}.{choice}"
        return texts(name) if texts.has(name) else _choice_text(choice)

    return [(label(choice), choice) for choice in schema["enum"]]


def _number(schema: Schema, common: Mapping[str, Any]) -> Component:
    """A slider between two bounds, a number box without."""
    is_whole = schema["type"] == "integer"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value = schema.get("default")
    if low is None or high is None or (is_whole and high - low > _MANY_WHOLE_NUMBERS):
        return gr.Number(
            value=value, minimum=low, maximum=high, precision=0 if is_whole else None, **common
        )
    step = schema.get("multipleOf") or (1 if is_whole else (high - low) / _SLIDER_STEPS)
    # An exclusive bound is one step away: a slider's ends can be reached.
    first = low if "minimum" in schema else low + step
    last = high if "maximum" in schema else high - step
    return gr.Slider(first, last, value=value, step=step, buttons=[], **common)
