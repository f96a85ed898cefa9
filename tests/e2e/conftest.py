"""A browser and the application for it; without a Chromium on the machine these tests are skipped."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.e2e.site import Site, running_site
from tests.e2e.visit import DESKTOP, Visit

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skip(reason="no Chromium on this machine: apt-get install chromium")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(missing)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio") / "cache"))
        with running_site(tmp_path_factory.mktemp("data")) as site:
            yield site


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=20_000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(locale="en-US", viewport=DESKTOP)  # type: ignore[arg-type]
    yield context
    context.close()


@pytest.fixture
def visit(context: BrowserContext, site: Site) -> Visit:
    return Visit(context.new_page(), site.url).open()


@pytest.fixture
def face(tmp_path: Path, astronaut: NDArray[np.uint8]) -> Path:
    file = tmp_path / "a face.jpg"
    Image.fromarray(astronaut).save(file)
    return file


@pytest.fixture
def picture(tmp_path: Path, grace_hopper: NDArray[np.uint8]) -> Path:
    file = tmp_path / "<b>grace & 格蕾丝.png"
    Image.fromarray(grace_hopper).save(file)
    return file


@pytest.fixture
def video(tmp_path: Path, grace_hopper: NDArray[np.uint8]) -> Path:
    file = tmp_path / "clip.mp4"
    with av.open(str(file), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 256, 300, "yuv420p"
        for index in range(60):
            moved = np.ascontiguousarray(np.roll(grace_hopper[::2, ::2], index, 1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved, format="rgb24")))
        container.mux(stream.encode())
    return file


@pytest.fixture
def slow(site: Site) -> Iterator[None]:
    """A job of some seconds, long enough to be looked at."""
    usual, site.engine.frame_s = site.engine.frame_s, 0.05
    yield
    site.engine.frame_s = usual
