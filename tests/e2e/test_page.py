"""The page in a real browser, from upload to download."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, expect

from app.core.errors import IntimateContentError
from app.jobs.job import JobFailure, JobState
from tests.e2e.site import NETWORK, Site
from tests.e2e.visit import DESKTOP, PHONE, Visit, finished


def test_a_picture_goes_from_upload_to_download(
    visit: Visit, site: Site, picture: Path, face: Path, tmp_path: Path
) -> None:
    visit.choose_target(picture)
    expect(visit.page.locator("fd-target")).to_contain_text("<b>grace & 格蕾丝.png")
    expect(visit.page.locator("fd-target")).to_contain_text("512×600")
    visit.add_faces(face)
    visit.consent("permission")
    visit.start()
    link = visit.stage.get_by_role("link", name="Download")
    expect(link).to_be_visible()
    expect(visit.stage).to_contain_text("One face changed")
    with visit.page.expect_download() as download:
        link.click()
    saved = tmp_path / "saved.png"
    download.value.save_as(saved)
    assert download.value.suggested_filename.endswith("grace & 格蕾丝_swapped.png")
    assert saved.read_bytes() == site.studio.result(visit.job_id).path.read_bytes()
    assert site.studio.job(visit.job_id).request.consent == "permission"
    assert visit.outside == []
    assert visit.errors == []


def test_before_and_after_are_compared_with_the_keyboard(
    visit: Visit, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.start()
    slider = visit.stage.get_by_role("slider", name="Slide between before and after")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    split = visit.stage.locator(".fd-comparison").evaluate(
        "box => box.style.getPropertyValue('--split')"
    )
    assert split == "25%"
    for picture_shown in visit.stage.locator("img").all():
        assert picture_shown.evaluate("image => image.complete && image.naturalWidth") == 512


@pytest.mark.usefixtures("slow")
def test_a_video_shows_its_progress_and_then_a_player(
    visit: Visit, video: Path, face: Path
) -> None:
    visit.prepare(video, face)
    expect(visit.page.locator("fd-target")).to_contain_text("256×300 25 fps · 0:02")
    visit.start()
    numbers = visit.stage.locator(".fd-numbers")
    expect(numbers).to_have_text(re.compile(r"\d+ of 60 frames · [\d.]+ fps · 0:0\d left"))
    busy = visit.stage.locator(".fd-busy")
    expect(busy).to_have_text(
        "At work: reading 12 % · finding faces 96 % · changing faces 40 % · networks 81 % · writing 30 %"
    )
    expect(busy.locator("strong")).to_have_text("finding faces 96 %")
    bar = visit.stage.get_by_role("progressbar")
    assert 0 < float(bar.get_attribute("aria-valuenow") or 0) <= 100
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()
    expect(visit.stage).to_contain_text("Faces changed in 58 of 60 frames")
    expect(visit.stage).to_contain_text("2 frames show no face")
    player = visit.stage.locator("video")
    visit.page.wait_for_function("document.querySelector('fd-stage video').readyState > 0")
    assert player.evaluate("video => video.videoWidth") == 256
    assert visit.errors == []


@pytest.mark.usefixtures("slow")
def test_closing_the_tab_loses_nothing(
    visit: Visit, context: BrowserContext, site: Site, video: Path, face: Path
) -> None:
    visit.prepare(video, face)
    visit.start()
    expect(visit.stage.locator(".fd-numbers")).to_contain_text("of 60 frames")
    job_id = visit.job_id
    visit.page.close()
    again = Visit(context.new_page(), site.url).open()
    expect(again.stage.locator(".fd-numbers")).to_contain_text("of 60 frames")
    assert again.job_id == job_id
    expect(again.stage.get_by_role("link", name="Download")).to_be_visible()
    expect(again.page.locator("fd-jobs li").first).to_contain_text("clip.mp4")


def test_an_earlier_job_is_shown_again(
    visit: Visit, context: BrowserContext, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.start()
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()
    later = Visit(context.new_page(), site.url).open()
    expect(later.stage).to_contain_text("Your result appears here")
    later.page.locator("fd-jobs button").first.click()
    expect(later.stage.get_by_role("link", name="Download")).to_be_visible()
    assert later.job_id == visit.job_id


@pytest.mark.usefixtures("slow")
def test_a_running_job_is_canceled(visit: Visit, site: Site, video: Path, face: Path) -> None:
    visit.prepare(video, face)
    visit.start()
    expect(visit.stage.locator(".fd-numbers")).to_contain_text("of 60 frames")
    visit.stage.get_by_role("button", name="Cancel").click()
    expect(visit.stage.get_by_role("status")).to_have_text("Canceled")
    assert finished(site, visit.job_id).state is JobState.CANCELED
    visit.stage.get_by_role("button", name="Back to the preview").click()
    expect(visit.stage.locator("video")).to_be_visible()


def test_start_says_what_is_missing(visit: Visit, site: Site, picture: Path, face: Path) -> None:
    before = len(site.studio.jobs(limit=1000))
    visit.start()
    expect(visit.note).to_have_text(
        "Still needed: a picture or video, a face, and your consent statement"
    )
    expect(visit.page.locator("fd-target input")).to_be_focused()
    visit.choose_target(picture)
    visit.add_faces(face)
    expect(visit.note).to_have_text("Still needed: your consent statement")
    visit.page.uncheck(".fd-tick input")
    expect(visit.note).to_contain_text("at least one step under Processing")
    visit.start()
    assert len(site.studio.jobs(limit=1000)) == before


def test_the_choices_reach_the_job(visit: Visit, site: Site, picture: Path, face: Path) -> None:
    visit.prepare(picture, face)
    visit.page.get_by_label("number input for Likeness").fill("0.25")
    visit.page.get_by_label("Keep the inside of the mouth").uncheck()
    visit.page.get_by_label("Polish faces").check()
    visit.page.get_by_role("button", name="Quality and format").click()
    # What lies in a fold is drawn when it is opened, and takes its values a moment later.
    expect(visit.page.get_by_label("range slider for Quality")).to_have_value("80")
    visit.page.wait_for_timeout(500)
    visit.page.get_by_label("number input for Quality").fill("55")
    visit.page.get_by_label("number input for Quality").blur()
    expect(visit.page.get_by_label("range slider for Quality")).to_have_value("55")
    visit.start()
    request = finished(site, visit.job_id).request
    assert request.encoding.quality == 55
    steps = {step.processor: step.options for step in request.steps}
    assert steps["face_swapper"] == {
        "model": "mesh",
        "strength": 0.25,
        "keeps_mouth": False,
        "passes": 1,
    }
    assert steps["face_polisher"] == {"blend": 0.8}


def test_a_network_that_is_installed_meanwhile_is_offered_to_whoever_opens_the_page(
    context: BrowserContext, site: Site, picture: Path, face: Path
) -> None:
    first = Visit(context.new_page(), site.url).open()
    first.page.get_by_label("Model", exact=True).click()
    expect(first.page.get_by_role("option")).to_have_count(1)
    site.install(NETWORK)
    second = Visit(context.new_page(), site.url).open()
    second.page.get_by_label("Model", exact=True).click()
    second.page.get_by_role("option", name="swapper-256").click()
    second.prepare(picture, face)
    second.start()
    assert finished(site, second.job_id).request.steps[0].options["model"] == "swapper-256"
    assert second.errors == []


def test_a_file_that_is_no_picture_is_refused_where_it_was_given(
    visit: Visit, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.jpg"
    wrong.write_text("no picture")
    visit.choose_target(wrong)
    box = visit.page.locator("fd-target").get_by_role("alert")
    expect(box).to_contain_text("media.unsupported_type")
    box.get_by_role("button", name="Close this message").click()
    expect(box).to_have_count(0)
    visit.page.set_input_files("fd-faces input", wrong)
    expect(visit.page.locator("fd-faces").get_by_role("alert")).to_contain_text("media.unsupported")
    expect(visit.page.locator("fd-faces .fd-tile")).to_have_count(1)


def test_a_refused_job_says_why(visit: Visit, site: Site, picture: Path, face: Path) -> None:
    visit.prepare(picture, face)
    site.engine.failure = JobFailure(code=IntimateContentError.code, message="")
    try:
        visit.start()
        expect(visit.stage.get_by_role("alert")).to_contain_text(IntimateContentError.code)
    finally:
        site.engine.failure = None
    expect(visit.page.locator("fd-jobs li").first).to_contain_text("Refused")


def test_a_server_that_is_gone_is_told_and_waited_for(
    visit: Visit, context: BrowserContext
) -> None:
    context.set_offline(True)
    visit.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(visit.note).to_contain_text("The server does not answer")
    context.set_offline(False)
    expect(visit.note).to_contain_text("Still needed")


def test_names_of_strangers_are_text_and_not_markup(visit: Visit, picture: Path) -> None:
    visit.choose_target(picture)
    expect(visit.page.locator("fd-target .fd-name")).to_have_text(picture.name)
    assert visit.page.locator("fd-target b").count() == 0


def test_dropped_files_are_taken(visit: Visit, tmp_path: Path) -> None:
    small = tmp_path / "small.png"
    Image.new("RGB", (32, 32)).save(small)
    transfer = visit.page.evaluate_handle(
        """(bytes) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], "dropped.png"));
            return transfer;
        }""",
        list(small.read_bytes()),
    )
    visit.page.dispatch_event("fd-faces", "drop", {"dataTransfer": transfer})
    expect(visit.page.locator("fd-faces img")).to_have_count(1)
    visit.page.get_by_role("button", name="Remove this photo").click()
    expect(visit.page.locator("fd-faces img")).to_have_count(0)


def test_an_upload_that_is_taken_back_goes_from_the_server(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.choose_target(picture)
    with visit.page.expect_response("**/api/v1/media/*") as answer:
        visit.page.get_by_role("button", name="Remove", exact=True).click()
    assert (answer.value.request.method, answer.value.status) == ("DELETE", 204)


@pytest.mark.parametrize(
    ("locale", "button", "heading", "language"),
    [
        pytest.param("en-US", "Start", "1 · Media", "en", id="english"),
        pytest.param("zh-CN", "开始", "1 · 素材", "zh-CN", id="chinese"),
        pytest.param(
            "zh-TW", "开始", "1 · 素材", "zh-CN", id="traditional chinese reads simplified"
        ),
        pytest.param("fr-FR", "Start", "1 · Media", "en", id="another language reads english"),
    ],
)
def test_the_page_speaks_the_browsers_language(
    chromium: Browser, site: Site, locale: str, button: str, heading: str, language: str
) -> None:
    context = chromium.new_context(locale=locale)
    page = Visit(context.new_page(), site.url).open().page
    expect(page.locator("#fd-start")).to_have_text(button)
    expect(page.locator("h2").first).to_have_text(heading)
    assert page.evaluate("document.documentElement.lang") == language
    assert "__i18n__" not in page.inner_text("body")
    context.close()


@pytest.mark.parametrize(
    ("device", "locale", "text", "is_slow"),
    [
        pytest.param("cpu", "en-US", "Runs on the processor: slower", True, id="the processor"),
        pytest.param("cpu", "zh-CN", "使用处理器运行：速度较慢", True, id="in chinese"),
        pytest.param("cuda", "en-US", "NVIDIA graphics card", False, id="a graphics card"),
        pytest.param("new-kind", "en-US", "new-kind", False, id="a kind that nobody knows yet"),
    ],
)
def test_the_page_says_on_what_the_networks_run(
    chromium: Browser, site: Site, device: str, locale: str, text: str, is_slow: bool
) -> None:
    before, site.engine.device = site.engine.device, device
    time.sleep(0.1)
    context = chromium.new_context(locale=locale, viewport=DESKTOP)  # type: ignore[arg-type]
    try:
        page = Visit(context.new_page(), site.url).open().page
        badge = page.locator(f'fd-header [data-device="{device}"]')
        expect(badge.locator(".fd-long")).to_have_text(text)
        expect(page.locator("fd-header .is-slow")).to_have_count(int(is_slow))
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        expect(badge).to_be_in_viewport()
    finally:
        site.engine.device = before
        context.close()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_one_column_with_start_in_reach(
    chromium: Browser, site: Site, locale: str, scheme: Any
) -> None:
    context = chromium.new_context(
        locale=locale,
        viewport=PHONE,
        color_scheme=scheme,
        has_touch=True,  # type: ignore[arg-type]
    )
    page = Visit(context.new_page(), site.url).open().page
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    lefts = {round(card.bounding_box()["x"]) for card in page.locator(".fd-card").all()}  # type: ignore[index]
    assert len(lefts) == 1
    box = page.locator("#fd-start").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < PHONE["height"]
    assert box["height"] >= 44
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 28)"
    assert dark == (scheme == "dark")
    context.close()


def test_everything_to_be_used_has_a_name_and_is_reached_by_tab(visit: Visit) -> None:
    assert visit.nameless() == []
    visit.page.locator("body").focus()
    reached = set()
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        reached.add(
            visit.page.evaluate(
                "document.activeElement.closest('[id], fd-target, fd-faces')?.id"
                " || document.activeElement.closest('fd-target, fd-faces')?.localName"
            )
        )
    assert {"fd-start", "fd-consent"} <= reached


def test_the_page_is_quick_and_stands_still(visit: Visit) -> None:
    started = time.monotonic()
    visit.page.reload()
    visit.page.wait_for_selector("#fd-start")
    visit.page.wait_for_selector("fd-jobs > *")
    assert time.monotonic() - started < 3
    visit.page.wait_for_timeout(500)
    shift = visit.page.evaluate(
        """() => new Promise((resolve) => {
            let sum = 0;
            new PerformanceObserver((list) => list.getEntries().forEach((entry) => (sum += entry.value)))
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => resolve(sum), 200);
        })"""
    )
    assert shift < 0.1


def test_private_media_never_reach_gradios_cache(
    visit: Visit, picture: Path, face: Path, site: Site
) -> None:
    visit.prepare(picture, face)
    visit.start()
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()
    assert site.gradio_cache.is_dir() is False or not any(
        path.is_file() for path in site.gradio_cache.rglob("*")
    )


@pytest.mark.parametrize("size", [(1440, 900), (1366, 768), (1280, 720), (390, 844)])
def test_every_ground_for_consent_is_seen_when_one_is_asked_for(
    visit: Visit, picture: Path, face: Path, size: tuple[int, int]
) -> None:
    visit.page.set_viewport_size({"width": size[0], "height": size[1]})
    visit.choose_target(picture)
    visit.add_faces(face)
    visit.start()
    visit.page.wait_for_timeout(300)
    bar = visit.page.locator("#fd-start-bar").bounding_box()
    choices = visit.page.locator("#fd-consent label").all()
    assert len(choices) == 4
    for choice in choices:
        box = choice.bounding_box()
        assert bar and box
        bottom = box["y"] + box["height"]
        assert box["y"] >= 0 and bottom <= size[1] + 1
        assert bottom <= bar["y"] + 1 or box["y"] >= bar["y"] + bar["height"]
