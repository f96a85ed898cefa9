"""Occlusion by networks: tiny graphs that answer what the picture's colors say."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.faces.mask_networks import NetworkMasker, best_masker, face_share
from app.faces.masks import ColorMasker
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from tests.faces.test_masks import POINTS, SIDE, SKINS, portrait


def occluder() -> bytes:
    """A network after XSeg's contract, `(n, 256, 256, 3)` BGR 0 to 1: face is what has more red than blue."""
    nodes = [
        helper.make_node("Split", ["input"], ["blue", "green", "red"], axis=3, num_outputs=3),
        helper.make_node("Greater", ["red", "blue"], ["is_face"]),
        helper.make_node("Cast", ["is_face"], ["output"], to=TensorProto.FLOAT),
    ]
    return _model(nodes, ["n", 256, 256, 3], ["n", 256, 256, 1])


def parser() -> bytes:
    """A network after BiSeNet's contract, `(n, 3, 512, 512)`: class 1 (skin) where red wins, else 6 (glasses)."""
    table = np.zeros((19, 3, 1, 1), np.float32)
    table[1, 0], table[6, 2] = 1, 1
    nodes = [helper.make_node("Conv", ["input", "table"], ["output"])]
    return _model(
        nodes, ["n", 3, 512, 512], ["n", 19, 512, 512], numpy_helper.from_array(table, "table")
    )


def _model(
    nodes: list[object], shape_in: list[object], shape_out: list[object], *tables: object
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "masks",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape_out)],
        list(tables),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return (
        bytes(onnx._serialize(model)) if hasattr(onnx, "_serialize") else model.SerializeToString()
    )


def entry(name: str, task: str, content: bytes, contract: dict[str, object]) -> dict[str, object]:
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return {
        "id": name, "title": name, "task": task, "file": f"{name}.onnx", **facts,
        "sources": [{"kind": "file", "path": f"{name}.onnx", **facts}],
        "license": {"spdx": "Apache-2.0", "commercial": "yes", "origin": "this test"},
        "input": {"name": "input", **contract},
    }  # fmt: skip


XSEG = {"layout": "nhwc", "color": "bgr", "std": (255.0, 255.0, 255.0)}
BISENET = {
    "layout": "nchw",
    "color": "rgb",
    "mean": (123.7, 116.3, 103.5),
    "std": (58.4, 57.1, 57.4),
}


def zoo_with(folder: Path, *names: str) -> OrtModelZoo:
    contents = {"xseg": occluder(), "bisenet": parser()}
    for name in names:
        (folder / f"{name}.onnx").write_bytes(contents[name])
    manifest = Manifest.model_validate(
        {
            "models": [
                entry("xseg", "face_occlude", contents["xseg"], XSEG),
                entry("bisenet", "face_parse", contents["bisenet"], BISENET),
            ]
        }
    )
    return OrtModelZoo(manifest, folder, device="cpu", threads=1)


def test_without_a_network_colors_decide(tmp_path: Path) -> None:
    assert isinstance(best_masker(zoo_with(tmp_path)), ColorMasker)


@pytest.mark.parametrize("names", [("xseg",), ("bisenet",), ("xseg", "bisenet")], ids=str)
def test_an_installed_network_decides(tmp_path: Path, names: tuple[str, ...]) -> None:
    image = portrait(SKINS["pale"], lips=(170, 60, 60))
    image[:, 60:95] = (40, 90, 170)
    crops = np.stack([image, portrait(SKINS["pale"])])
    with zoo_with(tmp_path, *names) as zoo:
        masker = best_masker(zoo)
        assert isinstance(masker, NetworkMasker)
        masks = masker.masks(crops, np.stack([POINTS, POINTS]), ())
    assert masks.shape == (2, SIDE, SIDE)
    assert masks[0, 100:120, 66:90].max() < 0.1
    assert masks[0, 100:120, 110:130].min() > 0.9
    assert masks[1, 100:120, 66:90].min() > 0.9


def test_more_faces_than_a_batch_go_through(tmp_path: Path) -> None:
    crops = np.stack([portrait(SKINS["pale"])] * 9)
    with zoo_with(tmp_path, "xseg") as zoo:
        masks = best_masker(zoo).masks(crops, np.stack([POINTS] * 9), ())
    assert np.allclose(masks, masks[:1])


def test_an_unsure_network_gives_a_soft_mask() -> None:
    output = np.array([0.2, 0.5, 0.75, 1.0], np.float32).reshape(1, 2, 2, 1)
    assert face_share("face_occlude", output).ravel() == pytest.approx([0, 0, 0.5, 1])


def test_glasses_hair_and_cloth_are_not_the_face() -> None:
    logits = np.zeros((1, 19, 1, 19), np.float32)
    logits[0, range(19), 0, range(19)] = 1
    assert np.flatnonzero(face_share("face_parse", logits)).tolist() == [
        1,
        2,
        3,
        4,
        5,
        10,
        11,
        12,
        13,
    ]


@pytest.mark.parametrize("shape", [(1, 256, 256), (1, 4, 8, 2)], ids=["three axes", "two channels"])
def test_an_output_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="output of shape"):
        face_share("face_occlude", np.zeros(shape, np.float32))
