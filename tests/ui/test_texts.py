import json
import re

import pytest

from app.catalog import ProcessorInfo
from app.core.error_table import ERROR_TABLE
from app.processors import discover
from app.ui.page import ASSETS, page_texts
from app.ui.texts import FOLDER, Texts
from tests.ui.conftest import FakeStudio

OWN = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
SCRIPTS = "".join(path.read_text("utf-8") for path in ASSETS.glob("*.js"))


def test_english_and_chinese_are_there() -> None:
    assert set(OWN) == {"en", "zh"}


def test_chinese_says_everything_that_english_says() -> None:
    assert set(OWN["en"]) <= set(OWN["zh"])


@pytest.mark.parametrize("key", sorted(OWN["en"]))
def test_translations_have_the_same_gaps_to_fill(key: str) -> None:
    gaps = [set(re.findall(r"\{(\w+)\}", table[key])) for table in OWN.values()]
    assert gaps[0] == gaps[1]


def test_the_scripts_ask_for_no_unknown_text() -> None:
    asked = set(re.findall(r"""\bt\(\s*"([\w.-]+)\"""", SCRIPTS))
    assert len(asked) > 20
    assert asked <= set(OWN["en"])


def test_every_error_code_has_its_sentence_in_both_languages(studio: FakeStudio) -> None:
    tables = page_texts(studio.processors()).tables
    for code in ERROR_TABLE:
        assert tables["en"][f"error.{code}"]
        assert tables["zh"][f"error.{code}"]


def test_a_processor_brings_its_english_texts(studio: FakeStudio) -> None:
    english = page_texts(studio.processors()).tables["en"]
    assert english["made_up"] == "Make up"
    assert english["made_up.strength"] == "Strength"


def test_a_known_text_is_not_overwritten() -> None:
    texts = Texts({"en": {"a": "own"}}).including("en", {"a": "brought", "b": "new"})
    assert texts.tables["en"] == {"a": "own", "b": "new"}


def test_an_unknown_key_is_told_loudly() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        Texts({"en": {}})("nowhere")


def test_gradio_finds_chinese_under_the_names_browsers_use() -> None:
    translations = Texts.load().for_gradio().translations_dict
    assert translations["zh-CN"]["start.button"] == "开始"
    assert translations["zh-TW"]["start.button"] == "开始"


def test_chinese_says_everything_that_the_shipped_options_say() -> None:
    shipped = [
        ProcessorInfo(
            id=each.id,
            title=each.title,
            order=each.order,
            options_schema=each.options.model_json_schema(),
        )
        for each in discover().values()
    ]
    tables = page_texts(shipped).tables
    assert sorted(set(tables["en"]) - set(tables["zh"])) == []
