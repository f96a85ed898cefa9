"""From the sources of a model to the bytes of its installed file, proven."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.errors import ConversionError
from app.inference.convert.batch import free_batch
from app.inference.convert.proof import check_inputs, prove
from app.inference.convert.registry import CONVERTERS
from app.inference.spec import ModelSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """An installed file to be.

    Attributes:
        why_single: Why it takes only one picture at a time; empty when it takes any number.
    """

    content: bytes
    why_single: str = ""


def build(spec: ModelSpec, sources: Mapping[str, bytes]) -> Built:
    """Rewrite a model if its entry says so, and prove that the result computes what it should.

    Args:
        spec: The manifest's entry.
        sources: File name to verified content.

    Raises:
        ConversionError: The rewrite failed, or its proof did. That a batch cannot be freed is no failure.
    """
    if spec.convert == "none":
        content = next(iter(sources.values()))
    elif spec.convert in CONVERTERS:
        content = CONVERTERS[spec.convert](sources)
    else:
        raise ConversionError(f"{spec.id}: no converter is called {spec.convert!r}")
    if spec.batch == "rewrite":
        check_inputs(spec, content)
        freed = free_batch(content)
        return Built(content=freed.content, why_single=freed.why_not)
    prove(spec, content, sources)
    return Built(content=content)
