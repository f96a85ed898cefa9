"""Networks with a batch of one baked in take any batch afterwards, or are left as they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from app.core.errors import ConversionError
from app.inference.convert.batch import free_batch, has_fixed_batch, rewrite
from app.inference.convert.batch_proof import prove_batch
from app.inference.one_by_one import OneByOne
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU

Constants = Mapping[str, object]
F, I64 = np.float32, np.int64
RANDOM = np.random.default_rng(3)


def tensor(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(F)


def model(
    *nodes: onnx.NodeProto,
    constants: Constants | None = None,
    x: Sequence[Any] = (1, 3, 4, 6),
    y: Sequence[Any] | None = None,
    opset: int = 17,
) -> bytes:
    """`x` to `y`, with a batch of one."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        tensors,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(made.SerializeToString(deterministic=True))


def node(op_type: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    names = [name if name != "_" else "" for name in inputs.split()]
    return helper.make_node(op_type, names, output.split(), **attributes)


def case(name: str, *nodes: onnx.NodeProto, **fields: Any) -> Any:
    return pytest.param(model(*nodes, **fields), id=name)


SHAPED = (
    node("Shape", "x", "s"),
    node("Gather", "s one", "h", axis=0),
    node("Unsqueeze", "h zero", "h1"),
    node("Concat", "minus h1", "target", axis=0),
    node("Reshape", "x target"),
)
ATTENTION = (
    node("Reshape", "x tokens", "t"),
    node("Transpose", "t", "k", perm=[0, 2, 1]),
    node("MatMul", "t k", "scores"),
    node("Softmax", "scores", "p", axis=-1),
    node("MatMul", "p t"),
)
CASES = [
    case("a convolution", node("Conv", "x w"), constants={"w": tensor(5, 3, 3, 3)}),
    case("a target with a batch of one", node("Reshape", "x t"), constants={"t": I64([1, 3, -1])}),
    case("a target that keeps its batch by 0", node("Reshape", "x t"), constants={"t": I64([0, 72])}),
    case("a target without a place for the batch", node("Reshape", "x t"),
         constants={"t": I64([-1, 6])}),
    case("the batch between rows and columns, as detectors have it",
         node("Transpose", "x", "a", perm=[2, 3, 0, 1]), node("Reshape", "a t", "b"),
         node("Sigmoid", "b"), constants={"t": I64([-1, 1])}),
    case("a batch that moves to the third axis", node("Transpose", "x", perm=[1, 2, 0, 3])),
    case("a batch that moves and comes back",
         node("Transpose", "x", "a", perm=[1, 0, 2, 3]), node("Reshape", "a t", "b"),
         node("Transpose", "b", perm=[1, 0, 2]), constants={"t": I64([3, 1, 24])}),
    case("sizes that name a batch of one", node("Resize", "x _ _ sizes", mode="nearest"),
         constants={"sizes": I64([1, 3, 8, 12])}),
    case("factors", node("Resize", "x _ scales", mode="linear"),
         constants={"scales": F([1, 1, 2, 2])}),
    case("sizes of two axes", node("Resize", "x _ _ sizes", axes=[2, 3]), opset=18,
         constants={"sizes": I64([8, 12])}),
    case("a target of Expand", node("Expand", "x t"), constants={"t": I64([1, 3, 4, 6])}),
    case("a target of Expand with more axes", node("Expand", "x t"),
         constants={"t": I64([2, 1, 3, 4, 6])}),
    case("a constant that is joined", node("Concat", "x c", axis=1), constants={"c": tensor(1, 2, 4, 6)}),
    case("a constant joined to a batch without an axis",
         node("Squeeze", "x axes", "a"), node("Concat", "a c", axis=0),
         constants={"axes": I64([0]), "c": tensor(2, 4, 6)}),
    case("the batch squeezed away and put back",
         node("Squeeze", "x axes", "a"), node("Tanh", "a", "b"), node("Unsqueeze", "b axes"),
         constants={"axes": I64([0])}),
    case("all axes of one squeezed away", node("Squeeze", "x"), x=(1, 1, 5)),
    case("the first of the batch picked", node("Gather", "x zero"), constants={"zero": I64(0)}),
    case("channels picked", node("Gather", "x order", axis=1), constants={"order": I64([2, 0])}),
    case("a mean over everything", node("ReduceMean", "x", keepdims=0)),
    case("a mean over everything, added to a constant",
         node("ReduceMean", "x", "m", keepdims=0), node("Add", "c m"), constants={"c": tensor(1, 5, 7)}),
    case("a sum over channels", node("ReduceSum", "x axes", keepdims=0), constants={"axes": I64([1])}),
    case("a mean over the batch of one", node("ReduceMean", "x", axes=[0], keepdims=1)),
    case("a mean whose axes are an input", node("ReduceMean", "x axes"), opset=18,
         constants={"axes": I64([2, 3])}),
    case("a shape that is computed", *SHAPED,
         constants={"one": I64(1), "zero": I64([0]), "minus": I64([-1])}),
    case("a shape that is computed of a free picture", *SHAPED, x=(1, 3, "h", "w"),
         constants={"one": I64(1), "zero": I64([0]), "minus": I64([-1])}),
    case("attention", *ATTENTION, constants={"tokens": I64([1, 3, 24])}),
    case("attention without an axis for the batch",
         node("Squeeze", "x axes", "t"), node("Transpose", "t", "k"), node("MatMul", "t k", "scores"),
         node("Softmax", "scores", "p", axis=-1), node("MatMul", "p t"), x=(1, 3, 24),
         constants={"axes": I64([0])}),
    case("a layer", node("Flatten", "x", "f"), node("Gemm", "f w b"),
         constants={"w": tensor(72, 5), "b": tensor(5)}),
    case("a layer after a target", node("Reshape", "x t", "f"), node("Gemm", "f w", transB=1),
         constants={"t": I64([1, 72]), "w": tensor(5, 72)}),
    case("a product with a matrix", node("MatMul", "x w"), constants={"w": tensor(6, 2)}),
    case("a matrix times the picture", node("MatMul", "w x"), constants={"w": tensor(2, 4)}),
    case("rows flattened behind the batch", node("Flatten", "x", axis=2)),
    case("softmax of old over the rest", node("Softmax", "x"), opset=11),
    case("softmax of old over everything", node("Softmax", "x", axis=0), opset=11),
    case("channels split", node("Split", "x", "a b c", axis=1), node("Sum", "a b c")),
    case("the best channel", node("ArgMax", "x", "i", axis=1, keepdims=0), node("Cast", "i", to=1)),
    case("the best of a picture", node("TopK", "x k", "y i", axis=3), constants={"k": I64([2])}),
    case("rows cut", node("Slice", "x from to axes steps"),
         constants={"from": I64([1]), "to": I64([4]), "axes": I64([2]), "steps": I64([2])}),
    case("the batch cut to its one", node("Slice", "x from to axes"),
         constants={"from": I64([0, 1]), "to": I64([1, 3]), "axes": I64([0, 2])}),
    case("rows cut by attributes", node("Slice", "x", starts=[1], ends=[3], axes=[2]), opset=9),
    case("a border", node("Pad", "x pads"), constants={"pads": I64([0, 0, 1, 1, 0, 0, 2, 2])}),
    case("a border by attributes", node("Pad", "x", pads=[0, 0, 1, 1, 0, 0, 2, 2]), opset=9),
    case("a border of a value without an axis for the batch",
         node("Squeeze", "x axes", "a"), node("Pad", "a pads"),
         constants={"axes": I64([0]), "pads": I64([0, 1, 1, 0, 2, 2])}),
    case("tiles", node("Tile", "x n"), constants={"n": I64([1, 1, 2, 3])}),
    case("tiles of the batch", node("Tile", "x n"), constants={"n": I64([2, 1, 1, 1])}),
    case("a constant picture that is modulated",
         node("ReduceMean", "x", "m", axes=[2, 3]), node("Conv", "m w", "s"), node("Mul", "c s"),
         constants={"w": tensor(4, 3, 1, 1), "c": tensor(1, 4, 8, 8)}),
    case("weights of more rows than pictures", node("Add", "x c"), constants={"c": tensor(5, 3, 4, 6)}),
    case("rows that a convolution takes for a batch",
         node("Reshape", "x t", "a"), node("Conv", "a w"),
         constants={"t": I64([3, 1, 4, 6]), "w": tensor(2, 1, 3, 3)}),
    case("instance norm", node("InstanceNormalization", "x s b"),
         constants={"s": tensor(3), "b": tensor(3)}),
    case("layer norm", node("LayerNormalization", "x s b", axis=-1),
         constants={"s": tensor(6), "b": tensor(6)}),
    case("half a constant, half the input of another rank", node("Mul", "c x"), x=(1, 6),
         constants={"c": tensor(2, 1, 6)}),
    case("a free batch already", node("Relu", "x"), x=("N", 3, 4, 4)),
]  # fmt: skip


@pytest.mark.parametrize("content", CASES)
def test_a_batch_of_many_equals_many_batches_of_one(content: bytes) -> None:
    freed = free_batch(content)
    assert (freed.is_free, freed.why_not) == (True, "")
    assert not has_fixed_batch(freed.content)


@pytest.mark.parametrize("content", CASES)
def test_the_same_network_gives_the_same_bytes(content: bytes) -> None:
    assert free_batch(content).content == free_batch(content).content


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(
            model(
                node("Reshape", "x t", "w"),
                node("Conv", "x w"),
                constants={"t": I64([6, 3, 2, 2])},
            ),
            "weights that depend on the picture",
            id="weights of a picture's own",
        ),
        pytest.param(
            model(node("NonZero", "x", "i"), node("Cast", "i", to=1)),
            "NonZero",
            id="as many results as it finds",
        ),
        pytest.param(model(node("Relu", "x"), x=(4, 3, 2, 2)), "no input", id="a batch of four"),
        pytest.param(b"", "no network", id="nothing"),
        pytest.param(b"\xff\xff\xff", "ONNX", id="junk"),
    ],
)
def test_what_cannot_be_freed_stays_as_it_is_with_a_reason(content: bytes, why: str) -> None:
    freed = free_batch(content)
    assert (freed.is_free, freed.content) == (False, content)
    assert why in freed.why_not


def test_rows_that_mix_are_found_by_the_proof() -> None:
    content = model(node("ReduceMean", "x", "m", axes=[0]), node("Sub", "x m"), x=("N", 3, 4, 4))
    freed = free_batch(content)
    assert (freed.is_free, "differs" in freed.why_not) == (False, True)


def test_a_wrong_rewrite_does_not_pass_the_proof() -> None:
    right = model(node("Mul", "x c"), constants={"c": F(2)})
    wrong = model(node("Mul", "x c"), x=("N", 3, 4, 6), constants={"c": F(2.001)})
    with pytest.raises(ConversionError, match="differs"):
        prove_batch(right, wrong)


def test_an_output_that_does_not_depend_on_the_picture_is_repeated() -> None:
    content = model(
        node("Relu", "x"), node("Identity", "c", "anchors"), constants={"c": tensor(1, 9, 4)}
    )
    made = onnx.load_from_string(content)
    made.graph.output.append(helper.make_tensor_value_info("anchors", TensorProto.FLOAT, [1, 9, 4]))
    freed = free_batch(made.SerializeToString())
    assert freed.is_free
    session = OrtSession("freed", freed.content, provider=CPU)
    assert session.run({"x": np.zeros((5, 3, 4, 6), F)})["anchors"].shape == (5, 9, 4)


def test_a_single_number_is_the_same_for_all_pictures() -> None:
    made = onnx.load_from_string(model(node("Mul", "x strength")))
    made.graph.input.append(helper.make_tensor_value_info("strength", TensorProto.FLOAT, [1]))
    freed = free_batch(made.SerializeToString())
    assert freed.is_free
    feeds = {"x": np.ones((2, 3, 4, 6), F), "strength": F([3])}
    assert OrtSession("freed", freed.content, provider=CPU).run(feeds)["y"].max() == 3


def test_two_inputs_share_the_batch() -> None:
    made = onnx.load_from_string(
        model(
            node("Gemm", "source w", "g"),
            node("Unsqueeze", "g axes", "s"),
            node("Add", "x s"),
            constants={"w": tensor(8, 3), "axes": I64([2, 3])},
        )
    )
    made.graph.input.append(helper.make_tensor_value_info("source", TensorProto.FLOAT, [1, 8]))
    assert free_batch(made.SerializeToString()).is_free


def test_an_unread_matrix_stays_the_last_constant() -> None:
    """Swap networks carry one there, and whoever wants it looks at the end."""
    content = model(
        node("Reshape", "x t"), constants={"t": I64([-1, 6]), "unread": np.eye(4, dtype=F)}
    )
    last = onnx.load_from_string(rewrite(content)).graph.initializer[-1]
    assert last.name == "unread"
    assert np.array_equal(numpy_helper.to_array(last), np.eye(4))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(model(node("Relu", "x")), id="an axis for the batch"),
        pytest.param(
            model(node("Reshape", "x t"), constants={"t": I64([-1, 6])}), id="no axis for the batch"
        ),
    ],
)
def test_one_by_one_gives_what_the_rewritten_network_gives(content: bytes) -> None:
    feeds = {"x": tensor(3, 3, 4, 6)}
    single = OneByOne(OrtSession("single", content, provider=CPU)).run(feeds)
    free = OrtSession("free", rewrite(content), provider=CPU).run(feeds)
    assert single["y"].shape == free["y"].shape
    assert np.allclose(single["y"], free["y"])
