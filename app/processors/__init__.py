"""What can be done to faces: one file a processor, found by looking.

A module of this folder that is no part of the machinery defines `PROCESSOR`; that is all it takes to be known to the
command line, the API and the page.
"""

from importlib import import_module
from pkgutil import iter_modules

from app.processors.base import ProcessorSpec

_MACHINERY = frozenset({"base"})


def discover() -> dict[str, ProcessorSpec]:
    """Import every processor and return them by id, in the order in which their steps run.

    Raises:
        TypeError: A module has no `PROCESSOR`.
        ValueError: Two modules use one id.
    """
    found: dict[str, ProcessorSpec] = {}
    for name in sorted(_module_names()):
        spec = _processor_of(name)
        if spec.id in found:
            raise ValueError(
                f"{name}: another module already has the id {spec.id!r}; give it its own"
            )
        found[spec.id] = spec
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def _module_names() -> list[str]:
    return [
        f"{__name__}.{module.name}"
        for module in iter_modules(__path__)
        if not module.ispkg and module.name not in _MACHINERY
    ]


def _processor_of(name: str) -> ProcessorSpec:
    spec = getattr(import_module(name), "PROCESSOR", None)
    if not isinstance(spec, ProcessorSpec):
        raise TypeError(
            f"{name}: got PROCESSOR = {spec!r}, wanted a ProcessorSpec; see app/processors/base.py"
        )
    return spec
