"""Tiny networks, manifest entries for them, and wheels that carry them."""

import base64
import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.inference.spec import ModelSpec

MakeSpec = Callable[..., ModelSpec]
MakeWheel = Callable[..., Path]


@pytest.fixture(scope="session")
def doubling_onnx() -> bytes:
    """`y = 2 x` on `(N, 3, 4, 4)` float32."""
    shape = ["N", 3, 4, 4]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y"])],
        "doubling",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.float32([2]), "two")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))


@pytest.fixture(scope="session")
def make_spec() -> MakeSpec:
    """An entry for a file with this content, which a source of this content becomes unchanged."""

    def build(content: bytes, model_id: str = "tiny", **fields: Any) -> ModelSpec:
        pinned = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        values: dict[str, Any] = {
            "id": model_id,
            "title": "Tiny",
            "task": "face_embed",
            "file": f"{model_id}.onnx",
            "sources": [{"kind": "file", "path": f"{model_id}.src", **pinned}],
            **pinned,
            "license": {"spdx": "MIT", "commercial": "yes", "origin": "this test"},
            "input": {"name": "x", "layout": "nchw", "color": "rgb"},
            "crop": {"template": "arcface_112", "size": 4},
        }
        return ModelSpec.model_validate({**values, **fields})

    return build


@pytest.fixture(scope="session")
def make_wheel() -> MakeWheel:
    """Write a wheel with these members, as pip accepts it."""

    def build(folder: Path, members: Mapping[str, bytes], tag: str = "py3-none-any") -> Path:
        info = "tinymodels-1.0.dist-info"
        files = {
            **members,
            f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tinymodels\nVersion: 1.0\n",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
        }
        record = "".join(
            f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items()
        )
        path = folder / f"tinymodels-1.0-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
                archive.writestr(name, data)
        return path

    return build


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
