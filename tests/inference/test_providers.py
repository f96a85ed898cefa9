"""Devices are believed only when they compute."""

import subprocess
import sys

import pytest
from onnx import TensorProto, helper

from app.core.errors import DeviceUnavailableError
from app.inference import providers
from app.inference.providers import CPU, PROBE_MODEL, Provider, probe, report
from app.inference.session import choose


def test_the_probe_model_is_the_one_described() -> None:
    shapes = {"x": [1, 1, 4, 4], "w": [1, 1, 3, 3], "y": [1, 1, 2, 2]}
    x, w, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "probe", [x, w], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert model.SerializeToString(deterministic=True) == PROBE_MODEL


def test_the_cpu_works_everywhere() -> None:
    assert probe(CPU).works


def test_a_provider_that_falls_back_does_not_count() -> None:
    outcome = probe(Provider(device="cpu", name="TensorrtExecutionProvider"))
    assert not outcome.works
    assert outcome.detail


def test_a_report_says_why_each_failed_device_failed() -> None:
    found = report()
    assert found.version
    kinds = [device.device for device in found.devices]
    assert "cuda" in kinds
    assert kinds[-1] == "cpu"
    assert all(device.works != bool(device.detail) for device in found.devices)


def test_a_device_that_does_not_work_is_refused_with_its_reason() -> None:
    outcome = probe(providers.PROVIDERS[0])
    if outcome.works:
        pytest.skip("this machine has a GPU that works")
    with pytest.raises(DeviceUnavailableError, match="cuda: "):
        choose("cuda")


def test_probing_writes_nothing_to_the_terminal() -> None:
    code = (
        "from app.inference.providers import report, probe, Provider, PROVIDERS; report();"
        "probe(Provider(device='cpu', name='CUDAExecutionProvider'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout + run.stderr == ""


@pytest.mark.parametrize(
    ("driver_version", "is_old"),
    [
        pytest.param(12040, True, id="an old driver is named as the reason"),
        pytest.param(99000, False, id="a newer driver runs older CUDA"),
    ],
)
def test_the_drivers_cuda_is_compared_with_the_needed_one(
    driver_version: int, is_old: bool
) -> None:
    if report().cuda_needed == "":
        pytest.skip("this build of ONNX Runtime has no CUDA")
    complaint = providers.driver_complaint(driver_version)
    assert ("12.4" in complaint) == is_old
    assert bool(complaint) == is_old
