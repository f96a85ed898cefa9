"""Runs a session on buffers that stay on the device, so that a batch costs two copies and no allocation.

For each size of input a set of buffers is made once and used again. A run takes a set for itself, so several threads
may run at once. With CUDA graphs a set also has a recording of the whole run: it is replayed by one call to the driver.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

Array = NDArray[np.generic]
Signature = tuple[tuple[str, str, tuple[int, ...]], ...]

_MAX_SIGNATURES = 8


@dataclass(slots=True, eq=False)
class _Buffers:
    """Inputs and outputs of one size on the device."""

    inputs: Mapping[str, ort.OrtValue]
    outputs: Mapping[str, ort.OrtValue]
    binding: ort.IOBinding
    options: ort.RunOptions | None = field(default=None)


class BoundRunner:
    """Runs one session on its own buffers.

    Args:
        session: Opened on the device.
        device: ONNX Runtime's name of the device's memory: `cuda` or `cpu`.
        uses_graphs: The session was opened to record CUDA graphs.
    """

    def __init__(
        self, session: ort.InferenceSession, device: str, *, uses_graphs: bool = False
    ) -> None:
        self._session = session
        self._device = device
        self._uses_graphs = uses_graphs
        self._names = [node.name for node in session.get_outputs()]
        self._free: dict[Signature, deque[_Buffers]] = {}
        self._numbers = count(1)

    @property
    def sizes_kept(self) -> int:
        """Sizes of input for which buffers lie on the device."""
        return len(self._free)

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Run a batch; outputs in the network's order.

        Args:
            feeds: Input name to array.

        Raises:
            Exception: Whatever ONNX Runtime raises; the buffers of this run are let go.
        """
        signature = tuple((name, array.dtype.str, array.shape) for name, array in feeds.items())
        free = self._free.get(signature)
        if free is None:
            free = self._added(signature)
        try:
            buffers = free.pop()
        except IndexError:
            return self._first(feeds, free)
        for name, array in feeds.items():
            buffers.inputs[name].update_inplace(np.ascontiguousarray(array))
        self._session.run_with_iobinding(buffers.binding, buffers.options)
        results = [buffers.outputs[name].numpy() for name in self._names]
        # On the CPU the result is the buffer itself, and the next run writes into it.
        copies = [np.array(each) for each in results] if self._device == "cpu" else results
        free.append(buffers)
        return copies

    def _added(self, signature: Signature) -> deque[_Buffers]:
        while len(self._free) >= _MAX_SIGNATURES:
            self._free.pop(next(iter(self._free)), None)
        return self._free.setdefault(signature, deque())

    def _first(self, feeds: Mapping[str, Array], free: deque[_Buffers]) -> list[Array]:
        """Run as usual, and make buffers of the sizes that came out."""
        # A copy: on the CPU the value would be the caller's own memory, and the next run would write into it.
        inputs = {
            name: ort.OrtValue.ortvalue_from_numpy(np.array(array, order="C"), self._device, 0)
            for name, array in feeds.items()
        }
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name in self._names:
            binding.bind_output(name, self._device)
        self._session.run_with_iobinding(binding, self._options(-1))
        outputs = dict(zip(self._names, binding.get_outputs(), strict=True))
        results = [np.array(outputs[name].numpy()) for name in self._names]
        graph = next(self._numbers)
        fixed = self._session.io_binding()
        for name, value in inputs.items():
            fixed.bind_ortvalue_input(name, value)
        for name, value in outputs.items():
            fixed.bind_ortvalue_output(name, value)
        options = self._options(graph)
        free.append(_Buffers(inputs, outputs, fixed, options))
        return results

    def _options(self, graph: int) -> ort.RunOptions | None:
        """Which recording a run makes or replays; -1 is none."""
        if not self._uses_graphs:
            return None
        options = ort.RunOptions()
        options.add_run_config_entry("gpu_graph_id", str(graph))
        return options
