"""The rules that keep the map true: layers, one home a library, one runtime, small modules."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
APP = ROOT / "app"

HOMES: dict[str, tuple[str, ...]] = {
    "gradio": ("app/ui",),
    # The page is mounted on the API's application, which is of FastAPI's type.
    "fastapi": ("app/api", "app/ui/page.py", "app/ui/gradio_routes.py"),
    "starlette": ("app/api", "app/ui"),
    "uvicorn": ("app/serving.py",),
    "typer": (
        "app/cli.py",
        "app/cli_inference.py",
        "app/cli_parts.py",
        "app/command_frame.py",
        "app/face_commands.py",
        "app/terminal.py",
    ),
    "rich": ("app/cli.py", "app/face_commands.py", "app/terminal.py"),
    "av": ("app/media",),
    "PIL": ("app/media",),
    "onnxruntime": ("app/inference",),
    "onnx": ("app/inference",),
    "tflite": ("app/inference",),
    "flatbuffers": ("app/inference",),
    "sqlite3": ("app/jobs",),
    "threading": ("app/runtime",),
    "queue": ("app/runtime",),
    "multiprocessing": ("app/runtime",),
    "concurrent": ("app/runtime",),
    "subprocess": ("app/runtime", "app/inference/fetch/wheel.py"),
    "ray": ("app/runtime",),
    "c2pa": ("app/labelling",),
    "pydantic_settings": ("app/config.py",),
}
MODULE_LINES = 400
FUNCTION_LINES = 60


def modules() -> list[Path]:
    return sorted(APP.rglob("*.py"))


def imported_roots(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_library_has_one_home() -> None:
    strays = [
        f"{path.relative_to(ROOT)} imports {root}"
        for path in modules()
        for root in set(imported_roots(ast.parse(path.read_text())))
        if root in HOMES
        and not any(str(path.relative_to(ROOT)).startswith(home) for home in HOMES[root])
    ]
    assert strays == []


def test_imports_point_down() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_modules_and_functions_stay_small() -> None:
    large = []
    for path in modules():
        text = path.read_text()
        if len(text.splitlines()) > MODULE_LINES:
            large.append(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > FUNCTION_LINES:
                    large.append(f"{path.relative_to(ROOT)}:{node.name}: {length} lines")
    assert large == []


def test_no_module_is_a_drawer_for_everything() -> None:
    names = {path.name for path in modules()}
    assert names.isdisjoint({"utils.py", "helpers.py", "manager.py", "common.py", "misc.py"})


def test_nothing_below_bootstrap_reads_the_environment() -> None:
    # The wheel fetcher hands the environment on to pip, unread: mirrors and proxies are configured there.
    wheel = APP / "inference" / "fetch" / "wheel.py"
    allowed = {APP / "config.py", APP / "cli.py", *(APP / "bootstrap").glob("*.py"), wheel}
    readers = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path not in allowed
        and any(word in path.read_text() for word in ("os.environ", "os.getenv"))
    ]
    assert readers == []


@pytest.mark.parametrize("door", ["app.ui.page", "app.api.app", "app.service", "app.jobs.store"])
def test_the_doors_load_without_a_network_runtime(door: str) -> None:
    code = f"import sys, {door}; sys.exit(1 if 'onnxruntime' in sys.modules else 0)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_renders_are_set_up_without_what_makes_graphs() -> None:
    """It takes a few tenths of a second to load, and only a device that cuts faces needs it."""
    code = "import sys, app.pipeline.tools; sys.exit(1 if 'onnx' in sys.modules else 0)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def distributions(prefix: str) -> set[str]:
    names = {dist.metadata["Name"].lower().replace("_", "-") for dist in metadata.distributions()}
    return {name for name in names if name.startswith(prefix)}


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("onnxruntime", "a second ONNX Runtime ends in a silent CPU-only app"),
        ("opencv", "a second OpenCV overwrites the first"),
    ],
)
def test_only_one_of_its_kind_is_installed(prefix: str, why: str) -> None:
    assert len(distributions(prefix)) == 1, why


def test_only_the_overridden_dependencies_are_missing() -> None:
    """insightface (tests only) asks for the CPU runtime and the OpenCV with windows; both are overridden."""
    run = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 1), run.stderr
    complaints = [line for line in run.stdout.splitlines() if "No broken requirements" not in line]
    assert run.returncode == bool(complaints)
    assert all(
        line.startswith("insightface 2.1 requires") and line.endswith("which is not installed.")
        for line in complaints
    ), run.stdout


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-dev.txt"])
def test_every_locked_package_has_hashes(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    pins = [index for index, line in enumerate(lines) if line[:1].isalnum()]
    assert pins
    assert all("--hash=sha256:" in lines[index + 1] for index in pins)


def test_the_developers_lock_holds_the_applications() -> None:
    def pins(lock: str) -> set[str]:
        return {
            line.rstrip(" \\")
            for line in (ROOT / lock).read_text().splitlines()
            if line[:1].isalnum()
        }

    assert pins("requirements.txt") <= pins("requirements-dev.txt")
