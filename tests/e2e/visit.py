"""One open page, and what a person does on it."""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from app.jobs.job import Job, JobId
from tests.e2e.site import Site

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
WAIT_MS = 20_000


@dataclass
class Visit:
    """One open page, and what it did that it should not have done."""

    page: Page
    url: str
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, address: str = "") -> "Visit":
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("request", lambda request: self._note_request(request.url))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(self.url + address)
        self.page.wait_for_selector("fd-note p")
        self.page.wait_for_selector("fd-jobs > *")
        return self

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.url, "data:", "blob:")):
            self.outside.append(url)

    def nameless(self) -> list[str]:
        """What can be used and is seen, but has no name that a screen reader could say."""
        found: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, summary, a[href], fieldset, video")]
                .filter((element) => element.offsetParent && !element.closest("[hidden]"))
                .filter((element) => !(element.getAttribute("aria-label") || element.title
                    || element.labels?.[0]?.textContent.trim() || element.textContent.trim()))
                .map((element) => element.outerHTML)"""
        )
        return found

    def choose_target(self, file: Path) -> None:
        self.page.set_input_files("fd-target input", file)

    def add_faces(self, *files: Path) -> None:
        before = self.page.locator("fd-faces img").count()
        self.page.set_input_files("fd-faces input", [str(file) for file in files])
        expect(self.page.locator("fd-faces img")).to_have_count(before + len(files))

    def consent(self, basis: str = "self") -> None:
        self.page.check(f'#fd-consent input[value="{basis}"]')

    def prepare(self, target: Path, face: Path) -> None:
        """Everything up to Start."""
        self.choose_target(target)
        self.add_faces(face)
        self.consent()
        expect(self.note).to_have_text("Ready to start")

    def start(self) -> None:
        self.page.click("#fd-start")

    @property
    def note(self) -> Any:
        return self.page.locator("fd-note")

    @property
    def stage(self) -> Any:
        return self.page.locator("fd-stage")

    @property
    def job_id(self) -> JobId:
        self.page.wait_for_url(re.compile("#job="))
        return JobId(self.page.url.rpartition("=")[2])


def finished(site: Site, job_id: JobId) -> Job:
    deadline = time.monotonic() + WAIT_MS / 1000
    while not (job := site.studio.job(job_id)).state.is_final:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job
