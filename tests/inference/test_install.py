"""Installing is atomic, resumes, and two processes may do it at once."""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.core.errors import (
    ConversionError,
    DownloadError,
    MissingModelError,
    ModelIntegrityError,
    UnknownModelError,
    UnwritableOutputError,
)
from app.inference.convert.build import Built
from app.inference.install import Build, Installer
from app.inference.manifest import Manifest
from app.inference.progress import PullProgress
from app.inference.spec import BroughtSource, ModelId, ModelSpec
from tests.inference.conftest import MakeSpec

ROOT = Path(__file__).resolve().parents[2]
TINY = ModelId("tiny")


def plain(spec: ModelSpec, sources: Mapping[str, bytes]) -> Built:
    """Keep the one source."""
    (content,) = sources.values()
    return Built(content=content)


class Workshop:
    """A models folder, and models whose sources are files beside it."""

    def __init__(self, folder: Path, make_spec: MakeSpec) -> None:
        self.models_dir = folder / "models"
        self.folder = folder
        self._make_spec = make_spec

    def spec(self, content: bytes, model_id: str = "tiny") -> ModelSpec:
        spec = self._make_spec(content, model_id)
        path = self.folder / f"{model_id}.src"
        path.write_bytes(content)
        source = spec.sources[0].model_copy(update={"path": str(path)})
        return spec.model_copy(update={"sources": (source,)})

    def installer(self, *specs: ModelSpec, build: Build = plain) -> Installer:
        return Installer(Manifest(models=specs), self.models_dir, build=build)

    def files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.models_dir))
            for path in self.models_dir.rglob("*")
            if path.is_file()
        )


@pytest.fixture
def workshop(tmp_path: Path, make_spec: MakeSpec) -> Workshop:
    return Workshop(tmp_path, make_spec)


def test_pulling_nothing_touches_nothing(workshop: Workshop) -> None:
    assert workshop.installer().pull([]) == ()
    assert not workshop.models_dir.exists()


def test_a_pull_leaves_the_model_and_no_sources(workshop: Workshop) -> None:
    installer = workshop.installer(workshop.spec(b"network"))
    assert installer.pull([TINY]) == ("tiny",)
    assert (workshop.models_dir / "tiny.onnx").read_bytes() == b"network"
    assert workshop.files() == [".lock", ".receipts/tiny.onnx.json", "tiny.onnx"]
    assert installer.verify() == ("tiny",)


def test_a_second_pull_needs_no_source(workshop: Workshop) -> None:
    installer = workshop.installer(workshop.spec(b"network"))
    installer.pull([TINY])
    (workshop.folder / "tiny.src").unlink()
    assert installer.pull([TINY, TINY]) == ()


def test_a_pull_tells_its_steps(workshop: Workshop) -> None:
    told: list[PullProgress] = []
    workshop.installer(workshop.spec(b"network")).pull([TINY], on_progress=told.append)
    assert [str(step) for step in told] == ["converting tiny", "installed tiny"]


def test_a_damaged_model_is_installed_again(workshop: Workshop) -> None:
    installer = workshop.installer(workshop.spec(b"network"))
    installer.pull([TINY])
    (workshop.models_dir / "tiny.onnx").write_bytes(b"netw")
    with pytest.raises(ModelIntegrityError, match=r"tiny\.onnx: has 4 bytes"):
        installer.verify([TINY])
    assert installer.pull([TINY]) == ("tiny",)
    assert installer.verify([TINY]) == ("tiny",)


def test_a_missing_model_does_not_verify(workshop: Workshop) -> None:
    installer = workshop.installer(workshop.spec(b"network"))
    assert installer.verify() == ()
    with pytest.raises(MissingModelError, match="models pull tiny"):
        installer.verify([TINY])


def test_an_unknown_model_is_refused(workshop: Workshop) -> None:
    with pytest.raises(UnknownModelError):
        workshop.installer(workshop.spec(b"network")).pull([ModelId("other")])


def test_a_failed_proof_installs_nothing_and_keeps_the_source(workshop: Workshop) -> None:
    def refuse(spec: ModelSpec, sources: Mapping[str, bytes]) -> Built:
        raise ConversionError("proof failed")

    spec = workshop.spec(b"network")
    with pytest.raises(ConversionError, match="proof failed"):
        workshop.installer(spec, build=refuse).pull([TINY])
    assert workshop.files() == [".lock", f".sources/{spec.sources[0].sha256}"]
    (workshop.folder / "tiny.src").unlink()
    assert workshop.installer(spec).pull([TINY]) == ("tiny",)


def test_a_rewrite_that_gives_other_bytes_installs_nothing(workshop: Workshop) -> None:
    other = Built(content=b"others!")
    with pytest.raises(ConversionError, match="the manifest says"):
        workshop.installer(workshop.spec(b"network"), build=lambda *_: other).pull([TINY])
    assert "tiny.onnx" not in workshop.files()


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(None, DownloadError, id="absent"),
        pytest.param(b"networ", ModelIntegrityError, id="cut short"),
        pytest.param(b"neTwork", ModelIntegrityError, id="changed"),
    ],
)
def test_a_wrong_source_installs_nothing_but_stops_no_other(
    workshop: Workshop, content: bytes | None, error: type[Exception]
) -> None:
    specs = workshop.spec(b"network"), workshop.spec(b"another", "other")
    source = workshop.folder / "tiny.src"
    source.unlink() if content is None else source.write_bytes(content)
    with pytest.raises(error):
        workshop.installer(*specs).pull([TINY, ModelId("other")])
    assert workshop.files() == [".lock", ".receipts/other.onnx.json", "other.onnx"]


def test_a_folder_that_cannot_be_made_is_told(workshop: Workshop) -> None:
    workshop.models_dir.write_bytes(b"a file where the folder should be")
    with pytest.raises(UnwritableOutputError, match="FACEDOCK_MODELS_DIR"):
        workshop.installer(workshop.spec(b"network")).pull([TINY])


PULL = """
import sys, time
from pathlib import Path
from app.inference.convert.build import Built
from app.inference.install import Installer
from app.inference.manifest import Manifest

manifest, models_dir, log = map(Path, sys.argv[1:])

def build(spec, sources):
    with log.open("a") as file:
        file.write("built\\n")
    time.sleep(0.5)
    return Built(content=next(iter(sources.values())))

installer = Installer(Manifest.load(manifest), models_dir, build=build)
installer.pull(["tiny"], on_progress=print)
print(installer.verify(["tiny"]))
"""


def test_two_processes_that_pull_at_once_install_once(workshop: Workshop) -> None:
    source = workshop.spec(b"network").sources[0]
    manifest = workshop.folder / "manifest.toml"
    manifest.write_text(
        f"""
        [[model]]
        id = "tiny"
        title = "Tiny"
        task = "face_embed"
        file = "tiny.onnx"
        sha256 = "{source.sha256}"
        bytes = 7
        license = {{ spdx = "MIT", commercial = "yes", origin = "this test" }}
        input = {{ name = "x", layout = "nchw", color = "rgb" }}
        sources = [{{ kind = "file", path = "{workshop.folder}/tiny.src", sha256 = "{source.sha256}", bytes = 7 }}]
        """
    )
    log = workshop.folder / "log"
    command = [sys.executable, "-c", PULL, str(manifest), str(workshop.models_dir), str(log)]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all("('tiny',)" in answer for answer in answers)
    assert log.read_text() == "built\n"


class Brought:
    """A model whose file an operator brings, under a name of its own."""

    def __init__(self, workshop: Workshop, *, why_single: str = "") -> None:
        self.folder = workshop.folder / "brought"
        self.folder.mkdir()
        self.why_single = why_single
        self.workshop = workshop

    def spec(self, pinned: bytes | None = None) -> ModelSpec:
        sha256 = "" if pinned is None else hashlib.sha256(pinned).hexdigest()
        source = BroughtSource(kind="brought", name="theirs.onnx", sha256=sha256)
        changes = {"sources": (source,), "batch": "rewrite", "sha256": "", "bytes": 0}
        return self.workshop.spec(b"unused").model_copy(update=changes)

    def installer(self, spec: ModelSpec) -> Installer:
        return self.workshop.installer(
            spec, build=lambda _, sources: Built(
                content=b"rewritten " + sources["theirs.onnx"], why_single=self.why_single
            )
        )  # fmt: skip

    def bring(self, content: bytes) -> None:
        (self.folder / "theirs.onnx").write_bytes(content)


def test_a_brought_file_that_is_pinned_is_adopted_and_rewritten(workshop: Workshop) -> None:
    brought = Brought(workshop)
    brought.bring(b"network")
    installer = brought.installer(brought.spec(pinned=b"network"))
    assert installer.adopt(brought.folder, [TINY]) == ("tiny",)
    assert (workshop.models_dir / "tiny.onnx").read_bytes() == b"rewritten network"
    assert installer.verify() == ("tiny",)
    assert brought.folder.joinpath("theirs.onnx").read_bytes() == b"network"


@pytest.mark.parametrize(
    "pinned", [pytest.param(b"another", id="another file"), pytest.param(None, id="no pin")]
)
def test_a_file_that_nothing_vouches_for_is_adopted_only_on_the_operators_word(
    workshop: Workshop, pinned: bytes | None
) -> None:
    brought = Brought(workshop)
    brought.bring(b"network")
    installer = brought.installer(brought.spec(pinned))
    with pytest.raises(ModelIntegrityError, match="--unpinned"):
        installer.adopt(brought.folder, [TINY])
    assert not (workshop.models_dir / "tiny.onnx").exists()
    assert installer.adopt(brought.folder, [TINY], unpinned=True) == ("tiny",)
    assert installer.status(TINY).is_installed


def test_a_file_that_is_not_in_the_folder_is_not_adopted(workshop: Workshop) -> None:
    brought = Brought(workshop)
    assert brought.installer(brought.spec()).adopt(brought.folder, [TINY]) == ()


def test_an_adopted_file_that_changes_is_damaged(workshop: Workshop) -> None:
    brought = Brought(workshop)
    brought.bring(b"network")
    installer = brought.installer(brought.spec(pinned=b"network"))
    installer.adopt(brought.folder, [TINY])
    (workshop.models_dir / "tiny.onnx").write_bytes(b"rewritten netw0rk")
    with pytest.raises(ModelIntegrityError, match="sha256"):
        installer.verify([TINY])


def test_a_file_laid_into_the_models_folder_by_hand_is_not_believed(workshop: Workshop) -> None:
    brought = Brought(workshop)
    workshop.models_dir.mkdir()
    (workshop.models_dir / "tiny.onnx").write_bytes(b"network")
    status = brought.installer(brought.spec()).status(TINY)
    assert (status.state, "models adopt FOLDER tiny" in status.detail) == ("damaged", True)


def test_a_brought_model_cannot_be_pulled(workshop: Workshop) -> None:
    brought = Brought(workshop)
    with pytest.raises(DownloadError, match="models adopt FOLDER tiny"):
        brought.installer(brought.spec()).pull([TINY])


def test_why_a_model_runs_one_by_one_is_remembered(workshop: Workshop) -> None:
    brought = Brought(workshop, why_single="its rows mix")
    brought.bring(b"network")
    installer = brought.installer(brought.spec(pinned=b"network"))
    installer.adopt(brought.folder, [TINY])
    assert installer.status(TINY).why_single == "its rows mix"
    installer.verify([TINY])
    assert installer.status(TINY).why_single == "its rows mix"
