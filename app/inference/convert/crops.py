"""Squares cut out of a frame, as an ONNX graph: where the network runs, only the frame and the affines have to go.

The frame is halved again and again, each time by averaging two by two pixels, and all sizes lie side by side in one
picture. A face that shrinks is sampled from the size next above what it needs, at four places a pixel, so that large
faces do not alias; one that grows is sampled once. All faces are sampled by a single GridSample over the one picture:
no copy of the frame for each.

It computes what `app.faces.sampling.sample_square` does, but for rounding and the exact shape of the averaging;
`tests/inference/convert/test_crops.py` says how near it comes.

Source: Williams 1983, "Pyramidal parametrics".
"""

from typing import Literal

import numpy as np
from onnx import TensorProto

from app.inference.convert.graph import GraphBuilder, Port

Planes = Literal["rgb24", "yuv420p"]

LEVELS = 5
"""The smallest is a sixteenth: enough for a face of 3600 pixels in a crop of 112."""

_PLACES = ((-1, -1), (1, -1), (-1, 1), (1, 1))


def crops_graph(side_px: int, planes: Planes) -> bytes:
    """Build the graph for crops of one size.

    Args:
        side_px: Side `S` of the crops.
        planes: Layout of the frames, 8 bits. `rgb24` is one input, `rgb (H, W, 3)` uint8. `yuv420p` is `y (H, W)`,
            `u` and `v (ceil(H / 2), ceil(W / 2))` uint8, and `to_rgb (3, 4)` float32, the affine from code values to
            0 to 255.

    Returns:
        A model with the frame's inputs, `affine (n, 2, 3)` float32, frame to crop pixels, and one output, `crops`:
        `(n, S, S, 3)` uint8 RGB.

    Raises:
        ConversionError: The ONNX checker refuses the graph.
    """
    inputs = _frame_ports(planes)
    graph = GraphBuilder(*(port.name for port in inputs), "affine", "crops")
    frame = _from_rgb(graph) if planes == "rgb24" else _from_yuv(graph)
    _add_pixels(graph, _sampled(graph, _Atlas(graph, frame), side_px))
    return graph.build(
        f"crops {side_px} of {planes}",
        inputs=[*inputs, Port("affine", ("N", 2, 3))],
        outputs=[Port("crops", ("N", side_px, side_px, 3), TensorProto.UINT8)],
    )


def _frame_ports(planes: Planes) -> list[Port]:
    if planes == "rgb24":
        return [Port("rgb", ("H", "W", 3), TensorProto.UINT8)]
    sides = {"y": ("H", "W"), "u": ("h", "w"), "v": ("h", "w")}
    ports = [Port(name, sides, TensorProto.UINT8) for name, sides in sides.items()]
    return [*ports, Port("to_rgb", (3, 4))]


def _from_rgb(graph: GraphBuilder) -> str:
    values = graph.add("Cast", ["rgb"], to=TensorProto.FLOAT)
    upright = graph.add("Transpose", [values], perm=[2, 0, 1])
    return graph.add("Unsqueeze", [upright, graph.ints([0])], hint="frame")


def _from_yuv(graph: GraphBuilder) -> str:
    """RGB of luma and chroma, which is spread between its samples' centers as players do."""
    luma, *chroma = (_plane(graph, name) for name in "yuv")
    small = graph.add("Concat", chroma, axis=1)
    doubled = graph.add(
        "Resize",
        [small, "", graph.floats([1, 1, 2, 2])],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    # Of an odd side, half a chroma sample is too much.
    size = graph.add("Slice", [graph.add("Shape", [luma]), graph.ints([2]), graph.ints([4])])
    cut = graph.add("Slice", [doubled, graph.ints([0, 0]), size, graph.ints([2, 3])])
    whole = graph.add("Concat", [luma, cut], axis=1)
    weights = _slice(graph, "to_rgb", axis=1, start=0, stop=3)
    kernel = graph.add("Unsqueeze", [weights, graph.ints([2, 3])])
    shift = graph.add(
        "Reshape", [_slice(graph, "to_rgb", axis=1, start=3, stop=4), graph.ints([-1])]
    )
    mixed = graph.add("Conv", [whole, kernel, shift])
    return graph.add("Clip", [mixed, graph.floats(0), graph.floats(255)], hint="frame")


def _plane(graph: GraphBuilder, name: str) -> str:
    values = graph.add("Cast", [name], to=TensorProto.FLOAT)
    return graph.add("Unsqueeze", [values, graph.ints([0, 1])])


class _Atlas:
    """The frame in all its sizes, in one picture: the whole one left, the smaller ones below each other at its right.

    Attributes:
        picture: Value `(1, 3, h, w)`.
        size_wh: Value `(2)` float32, of the picture.
        sides_wh: Value `(LEVELS, 2)` float32, of each size.
        corners: Value `(LEVELS, 2)` float32, where each size begins, x and y.
    """

    def __init__(self, graph: GraphBuilder, frame: str) -> None:
        self._graph = graph
        levels = [frame]
        for _ in range(LEVELS - 1):
            levels.append(
                graph.add(
                    "AveragePool",
                    [levels[-1]],
                    kernel_shape=[2, 2],
                    strides=[2, 2],
                    ceil_mode=1,
                    count_include_pad=0,
                )
            )
        sides = [self._height_width(level) for level in levels]
        widest = _slice(graph, sides[1], axis=0, start=1, stop=2)
        smaller = [self._padded(level, axis=3, to=widest) for level in levels[1:]]
        column = graph.add("Concat", smaller, axis=2, hint="smaller")
        heights = [
            _slice(graph, self._height_width(each), axis=0, start=0, stop=1)
            for each in (frame, column)
        ]
        height = graph.add("Max", heights)
        halves = [self._padded(each, axis=2, to=height) for each in (frame, column)]
        self.picture = graph.add("Concat", halves, axis=3, hint="atlas")
        self.size_wh = self._turned(self._height_width(self.picture))
        rows = [graph.add("Unsqueeze", [self._turned(each), graph.ints([0])]) for each in sides]
        self.sides_wh = graph.add("Concat", rows, axis=0, hint="sides")
        self.corners = self._corners()

    def _height_width(self, picture: str) -> str:
        return _slice(self._graph, self._graph.add("Shape", [picture]), axis=0, start=2, stop=4)

    def _turned(self, height_width: str) -> str:
        turned = self._graph.add("Gather", [height_width, self._graph.ints([1, 0])])
        return self._graph.add("Cast", [turned], to=TensorProto.FLOAT)

    def _padded(self, picture: str, *, axis: int, to: str) -> str:
        """Made longer at its end; nothing ever reads what is put there."""
        graph = self._graph
        length = _slice(graph, graph.add("Shape", [picture]), axis=0, start=axis, stop=axis + 1)
        missing = graph.add("Sub", [to, length])
        before, after = graph.ints([0] * (4 + axis)), graph.ints([0] * (3 - axis))
        pads = graph.add("Concat", [before, missing, after], axis=0)
        return graph.add("Pad", [picture, pads])

    def _corners(self) -> str:
        """The whole one begins at 0, 0; the others at its right side, each below the one before."""
        graph = self._graph
        width = _slice(
            graph, _slice(graph, self.sides_wh, axis=0, start=0, stop=1), axis=1, start=0, stop=1
        )
        x = graph.add("Mul", [width, graph.floats([[0.0]] + [[1.0]] * (LEVELS - 1))])
        heights = _slice(graph, self.sides_wh, axis=1, start=1, stop=2)
        below = graph.add("Mul", [heights, graph.floats([[0.0]] + [[1.0]] * (LEVELS - 1))])
        y = graph.add("CumSum", [below, graph.ints(0)], exclusive=1)
        return graph.add("Concat", [x, y], axis=1, hint="corners")


def _sampled(graph: GraphBuilder, atlas: _Atlas, side_px: int) -> str:
    """`(n, 3, S, S)`, 0 to 255: the mean of four places in each pixel of each crop."""
    linear = _slice(graph, "affine", axis=2, start=0, stop=2)
    shift = _slice(graph, "affine", axis=2, start=2, stop=3)
    back = _inverse(graph, linear)
    shrink = graph.add("Sqrt", [graph.add("Abs", [_determinant(graph, back)])], hint="shrink")
    level, rest = _level(graph, shrink)
    points = _crop_points(graph, side_px, _spread(graph, rest))
    there = graph.add("MatMul", [back, graph.add("Sub", [points, shift])], hint="there")
    grid = _on_atlas(graph, atlas, there, level)
    rows = graph.ints([1, -1, side_px, 2])
    seen = graph.add(
        "GridSample",
        [atlas.picture, graph.add("Reshape", [grid, rows])],
        mode="bilinear",
        padding_mode="border",
        align_corners=0,
    )
    apart = graph.add("Reshape", [seen, graph.ints([3, -1, len(_PLACES), side_px, side_px])])
    mean = graph.add("ReduceMean", [apart], axes=[2], keepdims=0)
    return graph.add("Transpose", [mean], perm=[1, 0, 2, 3], hint="seen")


def _inverse(graph: GraphBuilder, linear: str) -> str:
    """`(n, 2, 2)` of `(n, 2, 2)`: the adjugate by the determinant."""
    turned = graph.add("Transpose", [_flipped(graph, linear)], perm=[0, 2, 1])
    adjugate = graph.add("Mul", [turned, graph.floats([[1, -1], [-1, 1]])])
    return graph.add("Div", [adjugate, _determinant(graph, linear)], hint="back")


def _flipped(graph: GraphBuilder, linear: str) -> str:
    """Rows and columns in the other order."""
    rows = graph.add("Gather", [linear, graph.ints([1, 0])], axis=1)
    return graph.add("Gather", [rows, graph.ints([1, 0])], axis=2)


def _determinant(graph: GraphBuilder, linear: str) -> str:
    """`(n, 1, 1)`."""
    crossed = graph.add(
        "Mul", [_slice(graph, linear, axis=1, start=0, stop=1), _swapped(graph, linear)]
    )
    return graph.add(
        "ReduceSum",
        [graph.add("Mul", [crossed, graph.floats([[1, -1]])]), graph.ints([2])],
        keepdims=1,
    )


def _swapped(graph: GraphBuilder, linear: str) -> str:
    """The second row, its columns in the other order."""
    row = _slice(graph, linear, axis=1, start=1, stop=2)
    return graph.add("Gather", [row, graph.ints([1, 0])], axis=2)


def _level(graph: GraphBuilder, shrink: str) -> tuple[str, str]:
    """The size to sample from, `(n)`, and by how much it still shrinks, `(n, 1, 1)`."""
    halvings = graph.add("Div", [graph.add("Log", [shrink]), graph.floats(np.log(2))])
    whole = graph.add("Floor", [graph.add("Add", [halvings, graph.floats(1e-4)])])
    level = graph.add("Clip", [whole, graph.floats(0), graph.floats(LEVELS - 1)])
    rest = graph.add("Div", [shrink, graph.add("Pow", [graph.floats(2), level])])
    flat = graph.add("Reshape", [level, graph.ints([-1])])
    return graph.add("Cast", [flat], to=TensorProto.INT64, hint="level"), rest


def _spread(graph: GraphBuilder, rest: str) -> str:
    """How far from a pixel's middle the four places lie, in crop pixels, `(n, 1, 1)`."""
    excess = graph.add("Sub", [rest, graph.floats(1)])
    share = graph.add("Clip", [excess, graph.floats(0), graph.floats(1)])
    return graph.add("Mul", [share, graph.floats(0.25)], hint="spread")


def _crop_points(graph: GraphBuilder, side_px: int, spread: str) -> str:
    """`(n, 2, 4 S S)`: x and y of all places of all pixels of a crop."""
    y, x = np.mgrid[:side_px, :side_px].reshape(2, -1)
    middles = np.tile(np.stack([x, y]), (1, len(_PLACES)))
    places = np.repeat(np.array(_PLACES).T, side_px * side_px, axis=1)
    moved = graph.add("Mul", [graph.floats(places, "places"), spread])
    return graph.add("Add", [graph.floats(middles, "middles"), moved], hint="points")


def _on_atlas(graph: GraphBuilder, atlas: _Atlas, there: str, level: str) -> str:
    """`(n, 4 S S, 2)`: -1 to 1 over the atlas; what lies beyond the frame is moved to its border."""
    column = graph.ints([2])
    sides = graph.add("Unsqueeze", [graph.add("Gather", [atlas.sides_wh, level]), column])
    corner = graph.add("Unsqueeze", [graph.add("Gather", [atlas.corners, level]), column])
    factor = graph.add(
        "Gather", [graph.floats([[[0.5**k]] for k in range(LEVELS)], "factors"), level]
    )
    half = graph.floats(0.5)
    scaled = graph.add("Mul", [graph.add("Add", [there, half]), factor])
    kept = graph.add("Max", [graph.add("Min", [scaled, graph.add("Sub", [sides, half])]), half])
    placed = graph.add("Add", [kept, corner])
    size = graph.add("Reshape", [atlas.size_wh, graph.ints([1, 2, 1])])
    unit = graph.add("Div", [graph.add("Mul", [placed, graph.floats(2)]), size])
    centered = graph.add("Sub", [unit, graph.floats(1)])
    return graph.add("Transpose", [centered], perm=[0, 2, 1], hint="grid")


def _add_pixels(graph: GraphBuilder, seen: str) -> None:
    """The crops as pictures, as the graph's output."""
    last = graph.add("Transpose", [seen], perm=[0, 2, 3, 1])
    whole = graph.add("Clip", [graph.add("Round", [last]), graph.floats(0), graph.floats(255)])
    graph.add_output("crops", op_type="Cast", inputs=[whole], to=TensorProto.UINT8)


def _slice(graph: GraphBuilder, value: str, *, axis: int, start: int, stop: int) -> str:
    return graph.add("Slice", [value, graph.ints([start]), graph.ints([stop]), graph.ints([axis])])
