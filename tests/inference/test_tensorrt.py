"""Engines are kept by all that they depend on, and never built where somebody waits."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import TensorProto, helper

from app.core.errors import ModelError
from app.inference.opening import OpenChoices, Opener
from app.inference.ort_session import OrtSession
from app.inference.providers import CPU, PROVIDERS, Provider, chain
from app.inference.tensorrt import MAX_BATCH, EngineCache, profile, tensorrt_version
from tests.inference.conftest import MakeSpec

ROW = PROVIDERS[0]


def network(*sides: int | str) -> bytes:
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3, *sides])
        for name in ("x", "y")
    )
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))


def cache(folder: Path, **changes: object) -> EngineCache:
    facts: dict[str, object] = {"label": "H100 driver 13000", "version": "101600", "half": True}
    return EngineCache(folder, **{**facts, **changes})  # type: ignore[arg-type]


class Opened:
    """Opens everything on the CPU, and notes what was asked for."""

    def __init__(self) -> None:
        self.rows: list[Provider] = []

    def __call__(self, content: bytes, provider: Provider) -> OrtSession:
        self.rows.append(provider)
        return OrtSession("net", content, provider=CPU)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"label": "H100 driver 13010"}, id="another driver"),
        pytest.param({"version": "101700"}, id="another TensorRT"),
        pytest.param({"half": False}, id="another precision"),
    ],
)
def test_whatever_an_engine_depends_on_is_in_its_place(
    tmp_path: Path, make_spec: MakeSpec, changes: dict[str, object]
) -> None:
    content = network(8, 8)
    spec = make_spec(content)
    here = cache(tmp_path).place(spec, content)
    assert cache(tmp_path, **changes).place(spec, content) != here
    assert cache(tmp_path).place(spec, network(9, 9)) != here
    assert cache(tmp_path).place(spec, content) == here


def test_a_build_leaves_a_marked_engine_and_is_not_done_twice(
    tmp_path: Path, make_spec: MakeSpec
) -> None:
    content = network(8, 8)
    spec, engines, opened = make_spec(content), cache(tmp_path), Opened()
    assert not engines.is_built(spec, content)
    engines.build(ROW, spec, content, opened)
    assert engines.is_built(spec, content)
    assert not cache(tmp_path, version="101700").is_built(spec, content)
    options = dict(opened.rows[-1].options)
    assert options["trt_engine_cache_path"] == str(engines.place(spec, content))
    assert options["trt_profile_max_shapes"] == f"x:{MAX_BATCH}x3x8x8"
    assert options["trt_fp16_enable"] == "1"
    count = len(opened.rows)
    engines.build(ROW, spec, content, opened)
    assert len(opened.rows) == count


def test_a_network_for_pictures_of_any_size_stays_on_cuda(
    tmp_path: Path, make_spec: MakeSpec
) -> None:
    content = network("h", "w")
    with pytest.raises(ModelError, match="stays on CUDA"):
        cache(tmp_path).build(ROW, make_spec(content), content, Opened())


def test_a_build_that_fails_leaves_no_mark(tmp_path: Path, make_spec: MakeSpec) -> None:
    content = network(8, 8)

    def refuse(data: bytes, provider: Provider) -> OrtSession:
        if provider is not CPU:
            raise ModelError("TensorRT takes no such operator")
        return OrtSession("net", data, provider=CPU)

    with pytest.raises(ModelError):
        cache(tmp_path).build(ROW, make_spec(content), content, refuse)
    assert not cache(tmp_path).is_built(make_spec(content), content)


class NotedOpener(Opener):
    """Opens on the CPU and notes the device that was asked for."""

    def __init__(self, models_dir: Path, engines: EngineCache) -> None:
        super().__init__(models_dir, ROW, OpenChoices(engines=engines))
        self.devices: list[str] = []

    def _on(self, spec: object, content: bytes, provider: Provider) -> OrtSession:
        self.devices.append(provider.device)
        return OrtSession("net", content, provider=CPU)


def test_until_its_engine_is_built_a_network_runs_on_cuda(
    tmp_path: Path, make_spec: MakeSpec
) -> None:
    content = network(8, 8)
    spec, engines = make_spec(content), cache(tmp_path / "engines")
    (tmp_path / "tiny.onnx").write_bytes(content)
    opener = NotedOpener(tmp_path, engines)
    opener.open(spec)
    assert opener.devices == ["cuda"]
    opener.build_engine(spec)
    opener.devices.clear()
    opener.open(spec)
    assert opener.devices[-1] == "tensorrt"


def test_tensorrt_leaves_operators_to_cuda_and_cuda_to_the_cpu() -> None:
    assert [name for name, _ in chain(ROW)] == [
        "TensorrtExecutionProvider",
        "CUDAExecutionProvider",
        "CPUExecutionProvider",
    ]


def test_all_inputs_are_in_a_profile() -> None:
    assert profile(SimpleNamespace(id="n"), Opened()(network(8, 9), CPU)) == "x:{n}x3x8x9"  # type: ignore[arg-type]


def test_the_version_is_asked_of_the_library() -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    assert tensorrt_version(absent) == "none"
    assert (
        tensorrt_version(lambda _: SimpleNamespace(getInferLibVersion=lambda: 101600)) == "101600"
    )
