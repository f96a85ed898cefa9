"""Every text of the page in every language; the browser chooses, in Gradio as in our own elements."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gradio as gr
from gradio.i18n import I18nData

FOLDER = Path(__file__).parent / "i18n"
ENGLISH = "en"

# Gradio looks a browser's language up by its full name; a reader of traditional Chinese is better served
# by simplified Chinese than by English.
_LOCALES = {"zh": ("zh", "zh-CN", "zh-TW")}


@dataclass(frozen=True, slots=True)
class Texts:
    """Tables of texts by language; English knows every key, the others fall back to it.

    Attributes:
        tables: Language to key to text.
    """

    tables: Mapping[str, Mapping[str, str]]

    @classmethod
    def load(cls, folder: Path = FOLDER) -> "Texts":
        """Read one file a language."""
        return cls(
            {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
        )

    def including(self, language: str, more: Mapping[str, str]) -> "Texts":
        """The same with more texts; a key that is already known keeps its text."""
        known = self.tables.get(language, {})
        return Texts({**self.tables, language: {**more, **known}})

    def __call__(self, key: str) -> I18nData:
        """The text of a key, for a Gradio component; the browser puts its language in.

        Raises:
            KeyError: English does not know the key.
        """
        if key not in self.tables[ENGLISH]:
            raise KeyError(f"no text is called {key!r}; add it to i18n/{ENGLISH}.json")
        return I18nData(key)

    def has(self, key: str) -> bool:
        """Whether there is such a text."""
        return key in self.tables[ENGLISH]

    def for_gradio(self) -> gr.I18n:
        """All tables under every name by which Gradio may look for them."""
        return gr.I18n(
            **{
                locale: dict(table)
                for language, table in self.tables.items()
                for locale in _LOCALES.get(language, (language,))
            }
        )
