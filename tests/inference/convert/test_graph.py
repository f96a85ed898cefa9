from collections.abc import Callable

import numpy as np
import pytest

from app.core.errors import ConversionError
from app.inference.convert.graph import IR_VERSION, OPSET, GraphBuilder, Port


def doubled() -> GraphBuilder:
    graph = GraphBuilder("input", "output")
    total = graph.add("Mul", ["input", graph.floats(2.0)], hint="twice")
    graph.add_output("output", op_type="Identity", inputs=[total])
    return graph


def built(graph: GraphBuilder) -> bytes:
    return graph.build("test", inputs=[Port("input", ("N", 2))], outputs=[Port("output", ("N", 2))])


def test_a_built_graph_runs_with_any_batch(run_onnx: Callable[..., dict]) -> None:
    for batch in (1, 3):
        picture = np.ones((batch, 2), np.float32)
        assert run_onnx(built(doubled()), input=picture)["output"].tolist() == [[2, 2]] * batch


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert built(doubled()) == built(doubled())


def test_the_versions_are_the_stated_ones() -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(built(doubled()))
    assert (model.ir_version, model.opset_import[0].version) == (IR_VERSION, OPSET)


def test_no_name_is_given_twice() -> None:
    graph = GraphBuilder("input")
    names = [
        graph.floats(1.0, "input"),
        graph.floats(1.0, "x"),
        graph.floats(1.0, "x"),
        graph.add("Abs", ["x"], hint="x.2"),
        graph.add("Abs", ["x"]),
    ]
    assert "input" not in names
    assert len(set(names)) == len(names)


def test_a_constant_keeps_its_type_and_its_rank(run_onnx: Callable[..., dict]) -> None:
    graph = GraphBuilder("input", "output")
    first = graph.add("Gather", ["input", graph.ints(1)], axis=1)
    graph.add_output("output", op_type="Identity", inputs=[first])
    content = graph.build(
        "test", inputs=[Port("input", ("N", 2))], outputs=[Port("output", ("N",))]
    )
    assert run_onnx(content, input=np.array([[3, 4]], np.float32))["output"].tolist() == [4]


@pytest.mark.parametrize(
    "op_type",
    [
        pytest.param("NoSuchOperator", id="unknown operator"),
        pytest.param("Concat", id="missing attribute"),
    ],
)
def test_an_invalid_graph_is_refused(op_type: str) -> None:
    graph = GraphBuilder("input", "output")
    graph.add_output("output", op_type=op_type, inputs=["input"])
    with pytest.raises(ConversionError, match=op_type):
        built(graph)
