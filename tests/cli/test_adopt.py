"""Models that an operator has are installed on his word, and not without it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_app(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_app


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """A folder with a network under the name of the public recognizer, a batch of one baked in."""
    x = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, 112, 112])
    y = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 3])
    node = helper.make_node("ReduceMean", ["input"], ["output"], axes=[2, 3], keepdims=0)
    graph = helper.make_graph([node], "net", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder = tmp_path / "brought"
    folder.mkdir()
    (folder / "arcface_w600k_r50.onnx").write_bytes(model.SerializeToString())
    return folder


def test_terms_are_shown_and_have_to_be_accepted(run: Run, brought: Path, tmp_path: Path) -> None:
    done = run("models", "adopt", str(brought), "--unpinned", "--models-dir", str(tmp_path / "m"))
    assert done.returncode == 2
    assert "LicenseRef-InsightFace" in done.stderr
    assert "commercial use: no" in done.stderr
    assert not (tmp_path / "m").exists()


def test_a_file_without_a_known_hash_needs_the_operators_word(
    run: Run, brought: Path, tmp_path: Path
) -> None:
    done = run(
        "models", "adopt", str(brought), "--accept-license", "--models-dir", str(tmp_path / "m")
    )
    assert done.returncode == 5
    assert "--unpinned" in done.stderr


def test_an_adopted_model_is_installed_and_in_the_doctors_list(
    run: Run, brought: Path, tmp_path: Path
) -> None:
    there = ("--models-dir", str(tmp_path / "m"))
    done = run("models", "adopt", str(brought), "--accept-license", "--unpinned", "--json", *there)
    assert json.loads(done.stdout) == {"installed": ["arcface-w600k-r50"]}
    findings = json.loads(run("doctor", "--json", *there).stdout)["findings"]
    assert ("model arcface-w600k-r50", "installed") in [(f["subject"], f["text"]) for f in findings]


def test_a_folder_without_known_files_installs_nothing(run: Run, tmp_path: Path) -> None:
    done = run("models", "adopt", str(tmp_path), "--models-dir", str(tmp_path / "m"))
    assert (done.returncode, "nothing" in done.stdout) == (0, True)


def test_pulling_a_model_with_terms_shows_them_first(run: Run) -> None:
    done = run("models", "pull", "inswapper-128")
    assert done.returncode == 2
    assert "inswapper-128: LicenseRef-InsightFace" in done.stderr


def test_requiring_a_gpu_on_the_cpu_refuses_to_start(run: Run, tmp_path: Path) -> None:
    done = run("serve", "--device", "cpu", "--require-gpu", "--data", str(tmp_path))
    assert (done.returncode, "--require-gpu" in done.stderr) == (5, True)
