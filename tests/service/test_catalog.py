"""What a door may offer depends on what is installed."""

from pathlib import Path

import pytest

from app.catalog import ModelShelf, options_schema, processor_infos, require_models
from app.core.errors import MissingModelError, UnknownModelError
from app.inference.spec import ModelId, ModelSpec
from app.processors import discover
from app.processors.face_swapper import Options
from tests.faces.zoo_manifest import MANIFEST
from tests.jobs.fakes import put_in_place


def installed(*ids: str) -> list[ModelSpec]:
    return [spec for spec in MANIFEST.models if spec.id in ids]


@pytest.mark.parametrize(
    ("ids", "choices"),
    [
        pytest.param((), ["mesh"], id="nothing installed"),
        pytest.param(("yunet", "gfpgan-1.4"), ["mesh"], id="models for something else"),
        pytest.param(
            ("hyperswap-1a-256", "inswapper-128"),
            ["mesh", "inswapper-128", "hyperswap-1a-256"],
            id="two swappers, in the manifest's order",
        ),
    ],
)
def test_the_choices_of_a_model_are_those_that_are_installed(
    ids: tuple[str, ...], choices: list[str]
) -> None:
    schema = options_schema(Options, installed(*ids))
    assert schema["properties"]["model"]["enum"] == choices
    assert schema["properties"]["model"]["default"] == "mesh"


def test_every_processor_is_shown_in_the_order_of_its_steps() -> None:
    infos = processor_infos(discover().values(), installed("inswapper-128"))
    assert [info.order for info in infos] == sorted(info.order for info in infos)
    assert "inswapper-128" in infos[0].options_schema["properties"]["model"]["enum"]


@pytest.mark.parametrize("model", ["mesh", "inswapper-128"])
def test_what_is_there_is_accepted(model: str) -> None:
    there = ("inswapper-128", "arcface-w600k-r50")
    require_models(
        Options(model=model), MANIFEST.models, is_installed=lambda spec: spec.id in there
    )


@pytest.mark.parametrize(
    ("model", "there", "error", "told"),
    [
        pytest.param(
            "inswapper-128", (), MissingModelError, "models pull inswapper-128", id="can be fetched"
        ),
        pytest.param(
            "inswapper-128-fp16",
            ("inswapper-128",),
            MissingModelError,
            "models adopt FOLDER inswapper-128-fp16",
            id="has to be brought",
        ),
        pytest.param(
            "inswapper-128",
            ("inswapper-128",),
            MissingModelError,
            "needs arcface-w600k-r50.*models adopt FOLDER arcface-w600k-r50",
            id="without its recognizer",
        ),
        pytest.param(
            "yunet", ("yunet",), UnknownModelError, "mesh, inswapper-128", id="other task"
        ),
        pytest.param("moon", (), UnknownModelError, "no model of this name", id="unknown"),
    ],
)
def test_what_is_not_there_is_told_with_what_to_do(
    model: str, there: tuple[str, ...], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        require_models(
            Options(model=model), MANIFEST.models, is_installed=lambda spec: spec.id in there
        )


def test_a_shelf_sees_what_comes_and_goes(tmp_path: Path) -> None:
    embedded, optional = (MANIFEST.get(ModelId(each)) for each in ("yunet", "inswapper-128"))
    shelf = ModelShelf((embedded, optional), tmp_path)
    assert (shelf.installed, shelf.is_set_up) == ((), False)
    put_in_place(embedded, tmp_path)
    assert (shelf.installed, shelf.is_set_up) == ((embedded,), True)
    put_in_place(optional, tmp_path)
    assert [info.is_installed for info in shelf.infos()] == [True, True]
    (tmp_path / embedded.file).unlink()
    assert (shelf.installed, shelf.is_set_up) == ((optional,), False)
