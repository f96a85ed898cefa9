"""The converters by the name that the manifest uses."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.inference.convert import fold, ncnn, tflite

Converter = Callable[[Mapping[str, bytes]], bytes]

CONVERTERS: Mapping[str, Converter] = MappingProxyType(
    {"fold": fold.convert, "tflite": tflite.convert, "ncnn": ncnn.convert}
)
"""Every `ModelSpec.convert` except `none`."""
