"""Every command that the README shows is run here, or by what `RUN_ELSEWHERE` names; Docker's are only read."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()

RUN_ELSEWHERE = {
    "make run": "tests/acceptance/test_fresh_clone.py",
    "make test": ".ci/run",
    "docker compose up": "docker-compose.yml",
    "docker compose -f docker-compose.cpu.yml up": "docker-compose.cpu.yml",
}
SHOWN_ADDRESS = "http://localhost:8080"


def shown_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def app_commands() -> list[str]:
    return [command for command in shown_commands() if command.startswith("python -m app ")]


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
    astronaut: NDArray[np.uint8],
    grace_hopper: NDArray[np.uint8],
    six_people_path: Path,
) -> Path:
    """Files of the names that the README uses."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("face.jpg", "front.jpg", "left.jpg"):
        Image.fromarray(astronaut).save(folder / name, quality=95)
    for name in ("photo.jpg", "photo.png"):
        Image.fromarray(grace_hopper).save(folder / name)
    (folder / "group.jpg").write_bytes(six_people_path.read_bytes())
    write_clip(folder / "video.mp4", grace_hopper)
    return folder


def write_clip(path: Path, image: NDArray[np.uint8]) -> None:
    h, w = (side // 2 * 2 for side in image.shape[:2])
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(25))
        stream.width, stream.height, stream.pix_fmt = w, h, "yuv420p"
        for shift in range(6):
            moved = np.roll(image[:h, :w], shift, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="rgb24")))
        container.mux(stream.encode())


def test_no_shown_command_is_forgotten() -> None:
    curl = {command for command in shown_commands() if command.startswith("curl ")}
    known = set(app_commands()) | curl | set(RUN_ELSEWHERE)
    assert set(shown_commands()) - known == set()
    assert len(app_commands()) >= 5


@pytest.mark.weights
@pytest.mark.parametrize("command", app_commands())
def test_a_shown_command_works(command: str, folder: Path, models_dir: Path) -> None:
    arguments = shlex.split(command)[1:]
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "FACEDOCK_MODELS_DIR": str(models_dir), "PATH": "/usr/bin:/bin",
             "FACEDOCK_DATA_DIR": str(folder / "saved")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    if "-o" in arguments:
        assert (folder / arguments[arguments.index("-o") + 1]).stat().st_size > 0
    if "--json" in arguments:
        assert json.loads(run.stdout)["faces"]


@pytest.fixture(scope="module")
def served(folder: Path, models_dir: Path) -> Iterator[str]:
    """The address of a running FaceDock."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--port", str(port), "--data", str(folder / "data")],
        cwd=ROOT, env={**os.environ, "FACEDOCK_MODELS_DIR": str(models_dir)},
    )  # fmt: skip
    try:
        yield wait_until_served(f"http://localhost:{port}", within_s=120)
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_until_served(address: str, within_s: float) -> str:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5):
                return address
        except OSError:
            time.sleep(0.2)
    raise AssertionError("nothing is served")


@pytest.mark.weights
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", [c for c in shown_commands() if c.startswith("curl ")])
def test_a_shown_request_is_answered(command: str, served: str, folder: Path) -> None:
    arguments = shlex.split(command.replace(SHOWN_ADDRESS, served))
    assert served in " ".join(arguments)
    run = subprocess.run(
        [*arguments, "--fail-with-body", "--silent"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    assert "error" not in json.loads(run.stdout)


@pytest.mark.parametrize("place", RUN_ELSEWHERE.items(), ids=RUN_ELSEWHERE.keys())
def test_the_other_commands_have_their_place(place: tuple[str, str]) -> None:
    command, where = place
    assert command in shown_commands()
    text = (ROOT / where).read_text()
    assert "services:" in text if where.endswith(".yml") else command in text.replace('", "', " ")


@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.cpu.yml"])
def test_the_compose_files_describe_one_service_on_this_machine_only(name: str) -> None:
    service = yaml.safe_load((ROOT / name).read_text())["services"]["facedock"]
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    assert "data:/data" in service["volumes"]


def links() -> Iterator[str]:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        if not link.startswith("http"):
            yield link


@pytest.mark.parametrize("link", sorted(set(links())))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
