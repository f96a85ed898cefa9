"""Engines are built in children, whose end, however it comes, is told."""

import sys

import pytest

from app.inference.spec import ModelId
from app.runtime.engine_build import BuildProgress, build_engines

A, B = ModelId("a"), ModelId("b")


def child(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "built", "last"),
    [
        pytest.param("", (A, B), "", id="done"),
        pytest.param("import sys; sys.exit('no room' if sys.argv[1] == 'a' else 0)", (B,), "",
                     id="one fails, the other is built"),
        pytest.param("import os; os.kill(os.getpid(), 11)", (), "ended with -11", id="a crash"),
        pytest.param("import sys; sys.exit('TensorRT refuses')", (), "TensorRT refuses", id="why"),
    ],
)  # fmt: skip
def test_each_engine_is_a_child_of_its_own(
    code: str, built: tuple[ModelId, ...], last: str
) -> None:
    told: list[BuildProgress] = []
    assert build_engines([A, B], child(code), on_progress=told.append) == built
    assert told[-1].text == last
    assert [step.model_id for step in told if step.state != "building"] == [A, B]


def test_progress_is_told_while_it_builds() -> None:
    told: list[BuildProgress] = []
    build_engines([A], child("import time; time.sleep(0.7)"), on_progress=told.append)
    assert [step.state for step in told][:2] == ["building", "building"]
    assert told[-1].state == "done"


def test_a_wish_to_stop_ends_the_child_under_way() -> None:
    told: list[BuildProgress] = []
    code = child("import time; time.sleep(60)")
    assert (
        build_engines([A, B], code, on_progress=told.append, should_stop=lambda: bool(told)) == ()
    )
    assert told[-1].elapsed_s < 30
    assert {step.model_id for step in told} == {A}


def test_nothing_to_build_builds_nothing() -> None:
    assert build_engines([], child(""), on_progress=lambda _: None) == ()
