"""The command line is a contract: names, JSON and exit codes that other programs build on."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.command_values import parse_steps
from app.core.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(models_dir: Path, tmp_path: Path) -> Run:
    def run_app(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app", *map(str, arguments)],
            cwd=tmp_path,
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": "/usr/bin:/bin",
                "FACEDOCK_MODELS_DIR": str(models_dir),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run_app


@pytest.fixture
def portrait(tmp_path: Path, astronaut: NDArray[np.uint8]) -> Path:
    path = tmp_path / "a portrait.png"
    Image.fromarray(astronaut).save(path)
    return path


@pytest.mark.parametrize(
    ("processors", "assignments", "expected"),
    [
        pytest.param("face_swapper", [], [("face_swapper", {})], id="one"),
        pytest.param("a, b", [], [("a", {}), ("b", {})], id="spaces"),
        pytest.param("a", ["a.x=1"], [("a", {"x": "1"})], id="an option"),
        pytest.param(
            "a,b", ["b.x=1=2", "a.y="], [("a", {"y": ""}), ("b", {"x": "1=2"})], id="equals"
        ),
    ],
)
def test_processors_and_options_become_steps(
    processors: str, assignments: list[str], expected: list[tuple[str, dict[str, str]]]
) -> None:
    steps = parse_steps(processors, assignments)
    assert [(step.processor, step.options) for step in steps] == expected


@pytest.mark.parametrize(
    ("processors", "assignment"),
    [
        ("", ""),
        (" , ", ""),
        ("a", "a.x"),
        ("a", "x=1"),
        ("a", ".x=1"),
        ("a", "a.=1"),
        ("a", "b.x=1"),
    ],
)
def test_a_malformed_option_is_wrong_usage(processors: str, assignment: str) -> None:
    with pytest.raises(UsageError):
        parse_steps(processors, [assignment] if assignment else [])


@pytest.mark.weights
def test_people_are_told_with_numbers_and_cards(
    run: Run, six_people_path: Path, tmp_path: Path
) -> None:
    done = run("people", six_people_path, "--json", "--cards", tmp_path / "cards")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["files"] == [str(six_people_path)]
    assert [person["number"] for person in told["people"]] == [1, 2, 3, 4, 5, 6]
    cards = sorted((tmp_path / "cards").iterdir())
    assert [card.name for card in cards] == [f"person_{n}.jpg" for n in range(1, 7)]
    with Image.open(cards[0]) as card:
        assert card.size[0] == card.size[1] <= 256


@pytest.mark.weights
def test_faces_are_told_left_to_right(run: Run, six_people_path: Path) -> None:
    done = run("faces", six_people_path, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["size_wh"] == [1280, 886]
    assert len(told["faces"]) == 6
    lefts = [face["bbox_xyxy"][0] for face in told["faces"]]
    assert lefts == sorted(lefts)
    for face in told["faces"]:
        assert set(face) == {"bbox_xyxy", "det_score", "kps"}
        assert np.array(face["kps"]).shape == (5, 2)
        assert 0 < face["det_score"] <= 1


@pytest.mark.weights
def test_a_swap_ends_with_one_line_of_json(run: Run, portrait: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.png"
    arguments = ["-s", portrait, "-t", portrait, "-o", output, "--consent", "public-domain"]
    done = run("swap", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    busy = told.pop("busy")
    assert set(busy) == {"decode", "find_faces", "change_faces", "device", "encode"}
    assert all(0 <= share <= 1 for share in busy.values())
    assert busy["device"] > 0
    assert told == {
        "output": str(output),
        "frames": 1,
        "frames_swapped": 1,
        "faces_swapped": 1,
        "people": [],
        "warnings": [],
    }


@pytest.mark.weights
def test_a_person_beyond_the_last_one_is_wrong_usage(
    run: Run, portrait: Path, tmp_path: Path
) -> None:
    arguments = ["-s", portrait, "-t", portrait, "-o", tmp_path / "o.png", "--consent", "self"]
    done = run("swap", *arguments, "--person", "1", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout.splitlines()[-1])["error"]["code"] == "face.no_such_person"
    assert not (tmp_path / "o.png").exists()


@pytest.mark.weights
def test_a_saved_face_is_put_on_the_chosen_person_and_deleted(
    run: Run, portrait: Path, six_people_path: Path, tmp_path: Path
) -> None:
    data = {"FACEDOCK_DATA_DIR": str(tmp_path / "data")}
    added = run(
        "face-library", "add", "Ann", portrait, "--consent", "public-domain", "--json", **data
    )
    assert added.returncode == 0, added.stderr
    (listed,) = json.loads(run("face-library", "list", "--json", **data).stdout)
    assert (listed["name"], listed["photos"]) == ("Ann", 1)

    arguments = ["-t", six_people_path, "-o", tmp_path / "o.png", "--consent", "self", "--json"]
    done = run("swap", *arguments, "--map", "2=saved:ann", "--map", "largest=blur", **data)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["people"] == [{"who": "person 2", "frames": 1}, {"who": "largest", "frames": 1}]
    assert told["faces_swapped"] == 2

    assert run("face-library", "rename", "Ann", "Anna", **data).returncode == 0
    assert run("face-library", "delete", "Anna", **data).returncode == 0
    assert not any(path.is_file() for path in (tmp_path / "data" / "faces").rglob("*"))
    gone = run("swap", *arguments, "--map", "2=saved:ann", **data)
    assert json.loads(gone.stdout.splitlines()[-1])["error"]["code"] == "request.not_found"


def test_a_face_is_saved_only_with_consent(run: Run, portrait: Path) -> None:
    done = run("face-library", "add", "Ann", portrait, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["error"]["code"] == "consent.required"


def test_a_swap_without_any_face_is_wrong_usage(run: Run, portrait: Path, tmp_path: Path) -> None:
    arguments = ["-t", portrait, "-o", tmp_path / "o.png", "--consent", "self", "--json"]
    done = run("swap", *arguments)
    assert done.returncode == 2
    assert "--map" in done.stderr


def test_a_probe_tells_what_a_file_is(run: Run, portrait: Path) -> None:
    told = json.loads(run("probe", portrait, "--json").stdout)
    assert told["kind"] == "still"
    assert told["size_wh"] == [512, 512]
    assert told["rotation_deg"] == 0


def test_models_are_listed_with_their_terms(run: Run) -> None:
    models = json.loads(run("models", "list", "--json").stdout)
    assert {"yunet", "sface", "face-mesh-attention", "open-nsfw"} <= {
        model["id"] for model in models
    }
    for model in models:
        assert model["license"]
        assert model["commercial_use"] in ("yes", "no", "unknown")


def test_a_missing_model_is_told_by_its_code(run: Run, portrait: Path, tmp_path: Path) -> None:
    done = run("faces", portrait, "--json", FACEDOCK_MODELS_DIR=str(tmp_path / "none"))
    assert done.returncode == 5
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert error["code"] == "model.missing"
    assert "models pull" in error["message"]


@pytest.mark.weights
def test_a_missing_gate_lets_nothing_pass(
    run: Run, portrait: Path, models_dir: Path, tmp_path: Path
) -> None:
    others = tmp_path / "models"
    others.mkdir()
    for model in models_dir.glob("*.onnx"):
        if model.name != "open-nsfw.onnx":
            (others / model.name).symlink_to(model)
    output = tmp_path / "out.png"
    done = run(
        "swap", "-s", portrait, "-t", portrait, "-o", output, "--consent", "self",
        FACEDOCK_MODELS_DIR=str(others),
    )  # fmt: skip
    assert done.returncode == 4
    assert "policy.gate_unavailable" in done.stderr
    assert not output.exists()


@pytest.mark.weights
def test_the_doctor_finds_a_set_up_machine_fine(run: Run) -> None:
    done = run("doctor", "--json")
    told = json.loads(done.stdout)
    subjects = {finding["subject"] for finding in told["findings"]}
    assert {"device cpu", "model yunet", "disk"} <= subjects
    assert done.returncode == 0 if told["is_fine"] else 5


def test_the_doctor_says_what_to_do(run: Run, tmp_path: Path) -> None:
    done = run("doctor", FACEDOCK_MODELS_DIR=str(tmp_path / "none"))
    assert done.returncode == 5
    assert "models pull embedded" in done.stdout


@pytest.mark.weights
def test_installed_models_are_verified_in_full(run: Run, models_dir: Path, tmp_path: Path) -> None:
    assert run("models", "verify", "yunet").returncode == 0
    broken = tmp_path / "models"
    broken.mkdir()
    content = bytearray((models_dir / "yunet.onnx").read_bytes())
    content[1000] ^= 1
    (broken / "yunet.onnx").write_bytes(content)
    done = run("models", "verify", "yunet", FACEDOCK_MODELS_DIR=str(broken))
    assert done.returncode == 5
    assert "model.integrity" in done.stderr


@pytest.mark.weights
def test_pulling_what_is_there_needs_no_network(run: Run) -> None:
    done = run("models", "pull", "embedded", "--json", PIP_NO_INDEX="1")
    assert done.returncode == 0, done.stderr


def test_a_bad_setting_is_wrong_usage(run: Run, portrait: Path) -> None:
    done = run("probe", portrait, FACEDOCK_PORT="abc")
    assert done.returncode == 2
    assert "settings.port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_data_folder_that_is_a_file_is_said(run: Run, portrait: Path) -> None:
    done = run("serve", "--port", "1", "--data", portrait)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_processors_show_their_options(run: Run) -> None:
    told = run("processors").stdout
    assert "--set face_swapper.shape=0.8 (0 to 1)" in told
    assert "face_swapper" in json.loads(run("processors", "--json").stdout)[0]["id"]


@pytest.mark.weights
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_stopped_swap_leaves_nothing_behind(
    number: signal.Signals, portrait: Path, tmp_path: Path, models_dir: Path
) -> None:
    clip, output = tmp_path / "clip.mp4", tmp_path / "out.mp4"
    write_long_clip(clip, portrait)
    before = sorted(tmp_path.iterdir())
    command = ["swap", "-s", portrait, "-t", clip, "-o", output, "--consent", "self"]
    environment = {
        "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "FACEDOCK_MODELS_DIR": str(models_dir),
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *map(str, command)],
        env=environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".facedock-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "job.canceled" in told
    assert sorted(tmp_path.iterdir()) == before


def write_long_clip(path: Path, portrait: Path) -> None:
    with Image.open(portrait) as image:
        picture = av.VideoFrame.from_image(image.convert("RGB"))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 512, 512, "yuv420p"
        for _ in range(900):
            picture.pts = None
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


def test_a_reader_that_has_seen_enough_is_no_fault(models_dir: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "models", "list", "--json"],
        env={"PYTHONPATH": str(ROOT), "FACEDOCK_MODELS_DIR": str(models_dir)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout and process.stderr
    process.stdout.close()
    with process.stderr as stderr:
        told = stderr.read()
    process.wait(timeout=60)
    assert "Traceback" not in told
    assert "unexpected" not in told
