"""What can be done to a face: one file a processor, found by its `PROCESSOR`."""

import importlib
import pkgutil

from app.processors.base import ProcessorSpec

_NOT_PROCESSORS = frozenset({"base"})


def discover() -> dict[str, ProcessorSpec]:
    """Import every module of this folder and take its `PROCESSOR`; packages hold parts of processors.

    Returns:
        Processors by id, in the order in which their steps run.

    Raises:
        TypeError: A module has no `PROCESSOR`.
        ValueError: Two processors have one id.
    """
    found: dict[str, ProcessorSpec] = {}
    for module_info in pkgutil.iter_modules(__path__):
        if module_info.ispkg or module_info.name in _NOT_PROCESSORS:
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        spec = getattr(module, "PROCESSOR", None)
        if not isinstance(spec, ProcessorSpec):
            raise TypeError(f"{module.__name__}: wanted a PROCESSOR of type ProcessorSpec")
        if spec.id in found:
            raise ValueError(f"two processors are called {spec.id!r}")
        found[spec.id] = spec
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))
