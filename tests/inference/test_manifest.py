"""The list of models is checked when it is read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import ModelError, UnknownModelError
from app.inference.manifest import Manifest
from app.inference.spec import ModelId
from tests.inference.conftest import MakeSpec

ROOT = Path(__file__).resolve().parents[2]

ENTRY = """
[[model]]
id = "tiny"
title = "Tiny"
task = "face_embed"
file = "tiny.onnx"
sha256 = "0"
bytes = 1
license = { spdx = "MIT", commercial = "yes", origin = "this test" }
input = { name = "x", layout = "nchw", color = "rgb" }
sources = [{ kind = "file", path = "tiny.src", sha256 = "0", bytes = 1 }]
"""


@pytest.fixture(scope="module")
def shipped() -> Manifest:
    return Manifest.load(ROOT / "models" / "manifest.toml")


def test_an_empty_manifest_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("")
    assert Manifest.load(tmp_path / "m.toml").models == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[[model]", "not a valid list", id="no TOML"),
        pytest.param("[[model]]\nid = 'a'", "not a valid list", id="half an entry"),
        pytest.param("models_ = 1", "not a valid list", id="unknown word"),
        pytest.param(ENTRY.replace("bytes = 1", "size = 1"), "bytes", id="unknown field"),
        pytest.param(ENTRY.replace('"MIT"', "1"), "spdx", id="wrong type"),
        pytest.param(ENTRY + ENTRY, "id used twice: tiny", id="one id twice"),
        pytest.param(
            ENTRY.replace('"tiny.onnx"', '"../tiny.onnx"'), "plain name", id="path as file"
        ),
        pytest.param(ENTRY.replace('"tiny.onnx"', '".lock"'), "plain name", id="hidden file"),
        pytest.param(ENTRY.replace("sources = [{", "sources = [] #"), "one source", id="no source"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(ModelError, match=complaint):
        Manifest.load(tmp_path / "m.toml")


def test_a_missing_manifest_says_which_setting_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="FACEDOCK_MANIFEST"):
        Manifest.load(tmp_path / "absent.toml")


def test_an_unknown_id_lists_the_known_ones(make_spec: MakeSpec) -> None:
    with pytest.raises(UnknownModelError, match="known are: tiny"):
        Manifest(models=(make_spec(b"1"),)).get(ModelId("huge"))


def test_bundles_and_ids_resolve_to_ids_once(make_spec: MakeSpec) -> None:
    manifest = Manifest(
        models=(make_spec(b"1", "a", bundle="embedded"), make_spec(b"2", "b"), make_spec(b"3", "c"))
    )
    assert manifest.resolve(["c", "embedded", "optional"]) == ("c", "a", "b")
    with pytest.raises(UnknownModelError):
        manifest.resolve(["embeded"])


def test_the_embedded_bundle_is_what_the_readme_promises(shipped: Manifest) -> None:
    assert [spec.id for spec in shipped.bundle("embedded")] == [
        "yunet",
        "sface",
        "face-mesh-attention",
        "open-nsfw",
        "realesrgan-x4plus",
        "realesr-animevideov3-x2",
        "realesr-animevideov3-x3",
        "realesr-animevideov3-x4",
    ]


def test_embedded_models_are_free_for_commercial_use_and_come_from_packages(
    shipped: Manifest,
) -> None:
    facts: list[Any] = [
        (spec.license.commercial, source.kind, len(source.sha256))
        for spec in shipped.bundle("embedded")
        for source in spec.sources
    ]
    assert set(facts) == {("yes", "wheel", 64)}


def test_reading_the_manifest_loads_no_network_runtime() -> None:
    code = (
        "import sys, app.inference.spec, app.inference.manifest, app.inference.inventory;"
        "sys.exit(any(name in sys.modules for name in ('onnxruntime', 'onnx', 'cv2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
