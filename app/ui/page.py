"""The page: Gradio holds the choices and the Start event, our own elements hold everything private.

Uploads, pictures and results never pass through Gradio or its cache: the elements of `assets/` talk to the HTTP API,
and only ids of uploads reach a Gradio control.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import gradio as gr
from fastapi import FastAPI
from gradio.components import Component
from gradio.i18n import I18nData
from starlette.staticfiles import StaticFiles

from app.catalog import ProcessorInfo
from app.core.error_table import ERROR_TABLE, Language
from app.pipeline.spec import ConsentBasis, FaceMap, OutputChoices, RenderSpec
from app.ui.controls import Choices, OptionControls, draw_options, model_choices, option_texts
from app.ui.gradio_routes import guard_mounted_gradio
from app.ui.start import PageStudio, StartForm, StepControls, describe, submit
from app.ui.texts import ENGLISH, Texts
from app.ui.theme import make_theme

ASSETS = Path(__file__).parent / "assets"
_ENCODING = OutputChoices.model_json_schema()
_STARTS_AT_ONCE = 4
_STARTS_WAITING = 32
_TINY_UPLOAD_BYTES = 1
_USUAL_THRESHOLD = FaceMap.model_fields["threshold"].default
_QUIET: Final[Mapping[str, Any]] = MappingProxyType(
    {"api_visibility": "private", "show_progress": "hidden"}
)

# The browser fills in what Gradio must not hold before an event, and hears what became of it after.
_JS_CHOSEN = "(...values) => window.facedock.chosen(values)"
_JS_STARTED = "(reply) => { window.facedock.started(reply); }"
_JS_START_FAILED = "() => { window.facedock.started(null); }"
_JS_CONSENT = "(basis) => { window.facedock.consent(basis); }"
_JS_STEPS = "(...ticks) => { window.facedock.steps(ticks); }"
_JS_DESCRIBED = "(reply) => { window.facedock.described(reply); }"
_JS_DESCRIBE_FAILED = "() => { window.facedock.described(null); }"


def mount_page(app: FastAPI, studio: PageStudio) -> FastAPI:
    """Put the page at `/` of an application that already has its API; call it last.

    Args:
        app: Serves `/api/v1`; gains `/ui` and everything below `/` that it does not have yet.
        studio: Lists the processors and takes jobs.
    """
    _in_event_loop(lambda: _mount(app, studio))
    return app


def _in_event_loop(work: Callable[[], None]) -> None:
    """Gradio makes its locks in an event loop; where none runs it opens new ones and never closes them."""

    async def run() -> None:
        work()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(run())
    else:
        work()


def _mount(app: FastAPI, studio: PageStudio) -> None:
    texts = page_texts(studio.processors())
    demo = build_page(studio, texts)
    # Without it Gradio takes any path of the server for a file that somebody uploaded.
    demo.has_launched = True
    app.mount("/ui", StaticFiles(directory=ASSETS), name="page assets")
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        i18n=texts.for_gradio(),
        theme=make_theme(),
        head=_head(),
        favicon_path=str(ASSETS / "favicon.svg"),
        footer_links=[],
        allowed_paths=[],
        max_file_size=_TINY_UPLOAD_BYTES,
        show_error=False,
        enable_monitoring=False,
        run_history=False,
        ssr_mode=False,
        mcp_server=False,
    )
    guard_mounted_gradio(app)


def page_texts(processors: Sequence[ProcessorInfo]) -> Texts:
    """The page's own texts, those of the error table, and those that come with the processors."""
    texts = Texts.load().including(ENGLISH, option_texts(_ENCODING, "encoding"))
    for language in get_args(Language):
        errors = {f"error.{code}": entry.text(language) for code, entry in ERROR_TABLE.items()}
        texts = texts.including(language, errors)
    for each in processors:
        own = {each.id: each.title, **option_texts(each.options_schema, each.id)}
        texts = texts.including(ENGLISH, own)
    return texts


def build_page(studio: PageStudio, texts: Texts) -> gr.Blocks:
    """Lay the page out and connect its events."""
    demo: gr.Blocks
    with gr.Blocks(title="FaceDock", analytics_enabled=False, fill_width=True) as demo:
        _markup("<fd-header></fd-header>")
        with gr.Row(elem_id="fd-columns"):
            form, start = _columns(studio.processors(), texts)
        _connect_start(studio, form, start)
        _connect_preview(form)
        _connect_models(demo, studio, form, texts)
        demo.queue(
            max_size=_STARTS_WAITING, default_concurrency_limit=_STARTS_AT_ONCE, api_open=False
        )
    return demo


def _columns(processors: Sequence[ProcessorInfo], texts: Texts) -> tuple[StartForm, gr.Button]:
    with gr.Column(elem_id="fd-media"):
        with _card():
            _heading(texts("section.media"))
            _markup("<fd-target></fd-target>")
            _markup("<fd-faces></fd-faces>")
        with _card("fd-jobs-card"):
            _heading(texts("section.jobs"))
            _markup("<fd-jobs></fd-jobs>")
    with gr.Column(elem_id="fd-center"):
        with _card():
            _markup("<fd-stage></fd-stage>")
        with _card():
            _heading(texts("section.people"))
            _markup(f'<fd-people data-threshold="{_USUAL_THRESHOLD}"></fd-people>')
    with gr.Column(elem_id="fd-choices"):
        with _card():
            steps = _processing(processors, texts)
        with _card():
            encoding, consent = _output(texts)
        with gr.Column(elem_id="fd-start-bar"):
            start = gr.Button(texts("start.button"), variant="primary", elem_id="fd-start")
            _markup("<fd-note></fd-note>")
        own = gr.Textbox(visible="hidden", elem_id="fd-own-choices")
    form = StartForm(own=own, consent=consent, encoding=encoding, steps=steps)
    return form, start


def _card(id: str | None = None) -> gr.Column:
    return gr.Column(elem_classes="fd-card", elem_id=id)


def _heading(text: I18nData) -> None:
    _markup(text, template="<h2>${value}</h2>")


def _markup(value: str | I18nData, template: str = "${value}") -> None:
    """Markup of our own; Gradio's style for prose and its click event stay away from it."""
    gr.HTML(value, html_template=template, js_on_load=None, apply_default_css=False)


def _processing(processors: Sequence[ProcessorInfo], texts: Texts) -> tuple[StepControls, ...]:
    _heading(texts("section.processing"))
    ticked = {step.processor for step in RenderSpec.model_fields["steps"].default}
    drawn = []
    for each in processors:
        with gr.Column(elem_classes="fd-step"):
            tick = gr.Checkbox(each.id in ticked, label=texts(each.id), elem_classes="fd-tick")
            with gr.Column(elem_classes="fd-options"):
                options = draw_options(each.options_schema, each.id, texts)
        drawn.append(StepControls(processor=each.id, enabled=tick, options=options))
    return tuple(drawn)


def _output(texts: Texts) -> tuple[OptionControls, gr.Radio]:
    _heading(texts("section.output"))
    _markup("<fd-timing></fd-timing>")
    with gr.Accordion(texts("output.more"), open=False, elem_classes="fd-fold"):
        encoding = draw_options(_ENCODING, "encoding", texts)
    consent = gr.Radio(
        [(texts(f"consent.{basis}"), basis) for basis in get_args(ConsentBasis)],
        label=texts("consent.title"),
        info=texts("consent.info"),
        elem_classes="fd-list",
        elem_id="fd-consent",
    )
    return encoding, consent


def _connect_start(studio: PageStudio, form: StartForm, start: gr.Button) -> None:
    def on_start(*values: Any) -> dict[str, Any]:
        return submit(studio, form, values)

    reply = gr.JSON(visible="hidden")
    started = start.click(on_start, list(form.components), reply, js=_JS_CHOSEN, **_QUIET)
    started.success(None, reply, None, js=_JS_STARTED, **_QUIET)
    started.failure(None, None, None, js=_JS_START_FAILED, **_QUIET)
    form.consent.change(None, form.consent, None, js=_JS_CONSENT, **_QUIET)  # type: ignore[attr-defined]
    ticks = [step.enabled for step in form.steps]
    for tick in ticks:
        tick.change(None, ticks, None, js=_JS_STEPS, **_QUIET)  # type: ignore[attr-defined]


def _connect_preview(form: StartForm) -> None:
    """The picture itself never comes here: only what to ask the HTTP API for."""

    def on_ask(*values: Any) -> dict[str, Any]:
        return describe(form, values)

    # Pressed by our own script, when somebody wants a preview.
    ask = gr.Button(visible="hidden", elem_id="fd-ask-preview")
    reply = gr.JSON(visible="hidden")
    described = ask.click(on_ask, list(form.components), reply, js=_JS_CHOSEN, **_QUIET)
    described.success(None, reply, None, js=_JS_DESCRIBED, **_QUIET)
    described.failure(None, None, None, js=_JS_DESCRIBE_FAILED, **_QUIET)


def _connect_models(demo: gr.Blocks, studio: PageStudio, form: StartForm, texts: Texts) -> None:
    """Whoever opens the page is offered the models that are installed then, not those of the server's start."""
    steps = {step.processor: step.options for step in form.steps}

    def current() -> dict[Component, Choices]:
        return {
            steps[each.id].of(field): choices
            for each in studio.processors()
            for field, choices in model_choices(each.options_schema, each.id, texts).items()
        }

    def on_load() -> dict[Component, gr.Dropdown]:
        return {control: gr.Dropdown(choices=[*choices]) for control, choices in current().items()}

    controls = [*current()]
    if controls:
        demo.load(on_load, None, controls, **_QUIET)


def _head() -> str:
    """Style and script; their address changes with their bytes, so that no browser shows yesterday's."""
    files = sorted(path for path in ASSETS.iterdir() if path.suffix in (".css", ".js"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    return (
        '<link rel="icon" type="image/svg+xml" href="ui/favicon.svg">'
        f'<link rel="stylesheet" href="ui/page.css?v={digest}">'
        f'<script type="module" src="ui/page.js?v={digest}"></script>'
    )
