"""From the sources of a model to the bytes of its installed file, proven."""

from collections.abc import Mapping

from app.core.errors import ConversionError
from app.inference.convert.proof import prove
from app.inference.convert.registry import CONVERTERS
from app.inference.spec import ModelSpec


def build(spec: ModelSpec, sources: Mapping[str, bytes]) -> bytes:
    """Rewrite a model if its entry says so, and prove that the result computes what it should.

    Args:
        spec: The manifest's entry.
        sources: File name to verified content.

    Raises:
        ConversionError: The rewrite failed, or its proof did.
    """
    if spec.convert == "none":
        content = next(iter(sources.values()))
    elif spec.convert in CONVERTERS:
        content = CONVERTERS[spec.convert](sources)
    else:
        raise ConversionError(f"{spec.id}: no converter is called {spec.convert!r}")
    prove(spec, content, sources)
    return content
