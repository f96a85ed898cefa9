"""Settings become objects: the only place that wires.

Each function imports what its own process needs. The web process runs without a network runtime, and `probe` need not
wait for one.
"""

from app.bootstrap.networks import (
    EngineZoos,
    benchmark,
    build_engine,
    cuts_on_device,
    engine_tools,
    engine_zoos,
    model_zoo,
    run_engine_process,
    tools_over,
    workbench,
)
from app.bootstrap.parts import (
    check_device_works,
    check_devices,
    delete_saved_face,
    examine,
    face_library,
    installer,
    inventory,
    limits,
    manifest,
)
from app.bootstrap.web import studio

__all__ = [
    "EngineZoos",
    "benchmark",
    "build_engine",
    "check_device_works",
    "check_devices",
    "cuts_on_device",
    "delete_saved_face",
    "engine_tools",
    "engine_zoos",
    "examine",
    "face_library",
    "installer",
    "inventory",
    "limits",
    "manifest",
    "model_zoo",
    "run_engine_process",
    "studio",
    "tools_over",
    "workbench",
]
