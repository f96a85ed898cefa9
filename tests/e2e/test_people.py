"""Several faces for several people, chosen in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from app.core.errors import EngineNotRunningError
from app.jobs.job import JobRequest
from app.pipeline.spec import SourceFace
from tests.e2e.site import Site
from tests.e2e.visit import PHONE, Visit, finished


@pytest.fixture(autouse=True)
def usual_desk(site: Site) -> Iterator[None]:
    yield
    site.calls.error = None
    site.calls.desk.people, site.calls.desk.faces = 2, 1
    site.calls.desk.step_s = 0


def add_another(visit: Visit, face: Path) -> None:
    before = visit.page.locator(".fd-face").count()
    visit.page.set_input_files(".fd-another input", face)
    expect(visit.page.locator(".fd-face")).to_have_count(before + 1)
    expect(visit.page.locator(".fd-face img")).not_to_have_count(before)


def choice(visit: Visit, number: int) -> Any:
    return visit.page.get_by_label(f"What happens to person {number}")


def requested(visit: Visit, site: Site) -> JobRequest:
    visit.start()
    return finished(site, visit.job_id).request


def shown(select: Any) -> str:
    text: str = select.evaluate("select => select.selectedOptions[0].textContent")
    return text


def test_one_face_goes_to_everybody_unless_somebody_is_left_alone(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    assert [shown(choice(visit, number)) for number in (1, 2)] == ["Face 1", "Face 1"]
    choice(visit, 2).select_option(label="Leave alone")
    request = requested(visit, site)
    assert len(request.sources) == 1
    assert request.face_map.others == "source"
    ((person, action),) = [(c.person, c.action) for c in request.face_map.choices]
    assert (person, action) == (2, "leave")
    assert visit.errors == []


def test_two_faces_go_to_two_people_and_strangers_are_left_alone(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    site.calls.desk.people = 3
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(3)
    add_another(visit, picture)
    assert [shown(choice(visit, number)) for number in (1, 2, 3)] == [
        *("Face 1", "Face 2", "Leave alone")
    ]
    choice(visit, 3).select_option(label="Blur")
    request = requested(visit, site)
    assert (request.sources, request.face_map.others) == ((), "leave")
    actions = {c.person: c.action for c in request.face_map.choices}
    assert set(actions) == {1, 2, 3}
    assert isinstance(actions[1], SourceFace)
    assert isinstance(actions[2], SourceFace)
    assert actions[1].photos != actions[2].photos
    assert actions[3] == "blur"


def test_everyone_else_can_be_blurred(visit: Visit, site: Site, picture: Path, face: Path) -> None:
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    visit.page.get_by_label("Everyone else").select_option(label="Blur")
    request = requested(visit, site)
    assert request.face_map.others == "blur"
    assert [c.person for c in request.face_map.choices] == [1, 2]


def test_where_a_photo_shows_several_faces_one_has_to_be_chosen(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    site.calls.desk.faces = 3
    visit.choose_target(picture)
    visit.page.set_input_files("fd-faces input", face)
    visit.consent()
    group = visit.page.get_by_role("group", name="3 faces in this photo: choose which")
    expect(group).to_be_visible()
    expect(visit.note).to_contain_text("which face of the photo you mean")
    visit.start()
    expect(group.get_by_label("Face 1 of the photo")).to_be_focused()
    visit.page.keyboard.press("ArrowRight")
    expect(group.get_by_label("Face 2 of the photo")).to_be_checked()
    expect(visit.note).to_have_text("Ready to start")
    request = requested(visit, site)
    faces = [c.action for c in request.face_map.choices]
    assert [f.face for f in faces if isinstance(f, SourceFace)] == [2, 2]
    assert request.sources == ()


def test_a_photo_without_a_face_is_told_at_once(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    site.calls.desk.faces = 0
    visit.choose_target(picture)
    visit.page.set_input_files("fd-faces input", face)
    visit.consent()
    expect(visit.page.locator("fd-faces").get_by_role("alert")).to_contain_text("shows no face")
    expect(visit.note).to_contain_text("a photo that shows a face")
    visit.page.get_by_role("button", name="Remove this photo").click()
    expect(visit.note).to_have_text("Still needed: a face")


def test_a_face_that_is_gone_is_nobodys_choice_any_more(
    visit: Visit, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    add_another(visit, picture)
    expect(choice(visit, 1)).to_be_visible()
    choice(visit, 1).select_option(label="Face 2")
    visit.page.get_by_label("Face 2", exact=True).get_by_role(
        "button", name="Remove this photo"
    ).click()
    expect(visit.page.locator(".fd-face")).to_have_count(1)
    assert shown(choice(visit, 1)) == "Face 1"


def test_the_engine_that_is_still_starting_is_waited_for(
    visit: Visit, site: Site, picture: Path
) -> None:
    site.calls.error = EngineNotRunningError("not yet")
    visit.choose_target(picture)
    expect(visit.page.locator("fd-people")).to_contain_text("Waiting for the engine")
    site.calls.error = None
    expect(visit.page.locator(".fd-person")).to_have_count(2)


def test_nobody_has_to_wait_for_the_people(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    site.calls.error = EngineNotRunningError("not yet")
    visit.choose_target(picture)
    visit.page.set_input_files("fd-faces input", face)
    visit.consent()
    expect(visit.note).to_have_text("Ready to start")
    assert requested(visit, site).face_map.choices == ()


def test_a_target_that_is_replaced_shows_its_own_people(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    site.calls.desk.step_s = 1.0
    visit.choose_target(picture)
    expect(visit.page.locator("fd-people")).to_contain_text("Looking for people")
    site.calls.desk.step_s, site.calls.desk.people = 0, 4
    visit.choose_target(face)
    expect(visit.page.locator(".fd-person")).to_have_count(4)


def test_a_target_without_a_face_says_so(visit: Visit, site: Site, picture: Path) -> None:
    site.calls.desk.people = 0
    visit.choose_target(picture)
    expect(visit.page.locator("fd-people")).to_contain_text("No face was found in this file")


def test_people_have_their_numbers_on_the_picture(visit: Visit, picture: Path) -> None:
    visit.choose_target(picture)
    marks = visit.stage.locator(".fd-mark")
    expect(marks).to_have_text(["1", "2"])
    picture_box = visit.stage.locator("img").bounding_box()
    box = marks.nth(1).bounding_box()
    assert box and picture_box
    # As the desk of these tests says: from 20 to 28 of 64 across.
    assert abs((box["x"] - picture_box["x"]) / picture_box["width"] - 20 / 64) < 0.01
    assert abs(box["width"] / picture_box["width"] - 8 / 64) < 0.01


def test_a_preview_shows_one_picture_before_and_after(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    visit.page.get_by_label("number input for Likeness").fill("0.25")
    visit.stage.get_by_role("button", name="Preview").click()
    expect(visit.stage.get_by_role("status")).to_have_text("One face changed")
    expect(visit.stage.get_by_role("slider", name="Slide between")).to_be_visible()
    expect(visit.stage.locator(".fd-mark")).to_have_text(["1", "2"])
    call = site.calls.desk.answered[-1]
    assert call.kind == "make_preview"
    assert call.spec.steps[0].options["strength"] == 0.25
    visit.stage.get_by_role("button", name="Close the preview").click()
    expect(visit.stage.get_by_role("button", name="Preview")).to_be_visible()
    assert visit.errors == []


def test_a_preview_of_a_video_is_of_the_frame_on_show(
    visit: Visit, site: Site, video: Path, face: Path
) -> None:
    visit.prepare(video, face)
    visit.page.wait_for_function("document.querySelector('fd-stage video')?.readyState > 1")
    visit.stage.locator("video").evaluate(
        "video => new Promise((done) => { video.onseeked = done; video.currentTime = 1.5; })"
    )
    expect(visit.stage.locator(".fd-mark")).to_have_text(["1", "2"])
    visit.stage.get_by_role("button", name="Preview this frame").click()
    expect(visit.stage.locator(".fd-comparison")).to_be_visible()
    call = site.calls.desk.answered[-1]
    assert call.kind == "make_preview"
    assert call.time_s == pytest.approx(1.5, abs=0.05)


def test_a_preview_that_fails_says_why(visit: Visit, site: Site, picture: Path, face: Path) -> None:
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    site.calls.error = EngineNotRunningError("gone")
    visit.stage.get_by_role("button", name="Preview").click()
    expect(visit.stage.get_by_role("alert")).to_contain_text("engine.not_running")


def test_a_preview_needs_what_a_job_needs(visit: Visit, site: Site, picture: Path) -> None:
    visit.choose_target(picture)
    visit.stage.get_by_role("button", name="Preview").click()
    expect(visit.note.locator(".is-urgent")).to_contain_text("Still needed: a face")
    assert all(call.kind != "make_preview" or call.time_s for call in site.calls.desk.answered[-1:])


def test_how_alike_is_alike_counts_as_it_is_moved(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.page.get_by_text("How alike is one person").click()
    people = visit.page.locator("fd-people")
    expect(people).to_contain_text("2 of 2 match in every view. Nobody is mixed up.")
    slider = visit.page.get_by_role("slider", name="Likeness needed")
    slider.fill("0.05")
    expect(people).to_contain_text("Could be mixed up: 1 with 2.")
    slider.fill("0.95")
    expect(people).to_contain_text("0 of 2 match in every view.")
    assert requested(visit, site).face_map.threshold == 0.95


def test_part_and_rate_of_a_video_are_checked_and_reach_the_job(
    visit: Visit, site: Site, picture: Path, video: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    expect(visit.page.get_by_text("Part and frame rate")).to_have_count(0)
    visit.choose_target(video)
    expect(visit.note).to_have_text("Ready to start")
    visit.page.get_by_text("Part and frame rate").click()
    fields = visit.page.locator("fd-timing")
    start, end = fields.get_by_label("Start"), fields.get_by_label("End")
    for wrong, told in (
        ("soon", "Write seconds, or 1:30"),
        ("1:75", "Write seconds, or 1:30"),
        ("9", "The video is only 0:02 long"),
    ):
        start.fill(wrong)
        expect(fields.get_by_role("alert").first).to_contain_text(told)
        expect(start).to_have_attribute("aria-invalid", "true")
    start.fill("0:00.4")
    end.fill("0.2")
    expect(fields.get_by_role("alert").nth(1)).to_contain_text("later than the start")
    expect(visit.note).to_contain_text("a start, end or rate that makes sense")
    visit.start()
    expect(end).to_be_focused()
    end.fill("1,2")
    fields.get_by_label("Frames a second").fill("500")
    expect(fields.get_by_role("alert").nth(2)).to_contain_text("at most 240")
    fields.get_by_label("Frames a second").fill("12.5")
    timing = requested(visit, site).timing
    assert (timing.start_s, timing.end_s, timing.fps) == (0.4, 1.2, 12.5)


def test_a_finished_job_is_deleted_with_its_uploads(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.start()
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()
    job = site.studio.job(visit.job_id)
    # Another visit: this page holds none of the uploads any more.
    visit.page.goto("about:blank")
    visit.page.goto(visit.url)
    answers = iter([False, True])
    visit.page.on("dialog", lambda asked: asked.accept() if next(answers) else asked.dismiss())
    row = visit.page.locator("fd-jobs li").first
    row.get_by_role("button", name="Delete").click()
    assert site.studio.job(job.id) == job
    with visit.page.expect_response("**/api/v1/jobs/*") as answer:
        row.get_by_role("button", name="Delete").click()
    assert answer.value.status == 204
    assert job.id not in {other.id for other in site.studio.jobs(limit=1000)}
    assert not site.studio._parts.folders.media.joinpath(job.request.target).exists()


def test_a_deleted_job_leaves_what_the_page_still_holds(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.start()
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()
    target = site.studio.job(visit.job_id).request.target
    visit.page.once("dialog", lambda dialog: dialog.accept())
    visit.page.locator("fd-jobs li").first.get_by_role("button", name="Delete").click()
    expect(visit.stage.get_by_role("button", name="Preview")).to_be_visible()
    assert site.studio.media(target).id == target
    visit.start()
    expect(visit.stage.get_by_role("link", name="Download")).to_be_visible()


def test_a_face_is_saved_put_on_again_and_deleted(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    visit.page.once("dialog", lambda dialog: dialog.accept("Ada"))
    visit.page.get_by_role("button", name="Save Face 1").click()
    visit.page.get_by_text("Saved faces (1)").click()
    visit.page.get_by_role("button", name="Put Ada on").click()
    expect(visit.page.locator(".fd-face")).to_have_count(2)
    choice(visit, 1).select_option(label="Ada")
    choice(visit, 2).select_option(label="Leave alone")
    request = requested(visit, site)
    (saved,) = site.studio.saved_faces.all()
    assert request.face_map.saved_faces == (saved.id,)
    assert saved.consent == "self"
    visit.page.once("dialog", lambda dialog: dialog.accept())
    visit.page.get_by_role("button", name="Delete Ada").click()
    expect(visit.page.locator(".fd-face")).to_have_count(1)
    assert site.studio.saved_faces.all() == ()
    assert visit.errors == []


def test_a_saved_face_that_is_put_on_gets_another_name(
    visit: Visit, site: Site, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    visit.page.once("dialog", lambda dialog: dialog.accept("Ada"))
    visit.page.get_by_role("button", name="Save Face 1").click()
    visit.page.get_by_text("Saved faces (1)").click()
    visit.page.get_by_role("button", name="Put Ada on").click()
    visit.page.once("dialog", lambda dialog: dialog.accept("<b>Grace</b>"))
    visit.page.get_by_role("button", name="Rename Ada").click()
    expect(visit.page.locator(".fd-face h4").last).to_have_text("<b>Grace</b>")
    expect(visit.page.get_by_role("button", name="Put <b>Grace</b> on")).to_be_visible()
    choice(visit, 1).select_option(label="<b>Grace</b>")
    visit.page.once("dialog", lambda dialog: dialog.dismiss())
    visit.page.get_by_role("button", name="Rename <b>Grace</b>").click()
    (saved,) = site.studio.saved_faces.all()
    assert saved.name == "<b>Grace</b>"
    site.studio.saved_faces.delete(saved.id)
    assert visit.errors == []


def test_a_face_is_not_saved_without_consent(visit: Visit, site: Site, face: Path) -> None:
    visit.add_faces(face)
    visit.page.once("dialog", lambda dialog: dialog.accept("Ada"))
    visit.page.get_by_role("button", name="Save Face 1").click()
    expect(visit.page.locator("fd-faces").get_by_role("alert")).to_contain_text("consent.required")
    assert site.studio.saved_faces.all() == ()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [PHONE["width"], 760, 1000, 1280])
def test_nothing_runs_out_of_the_page(
    chromium: Browser, site: Site, picture: Path, face: Path, locale: str, width: int
) -> None:
    site.calls.desk.people, site.calls.desk.faces = 6, 3
    context = chromium.new_context(locale=locale, viewport={"width": width, "height": 844})
    visit = Visit(context.new_page(), site.url).open()
    visit.choose_target(picture)
    visit.page.set_input_files("fd-faces input", face)
    expect(visit.page.locator(".fd-person")).to_have_count(6)
    expect(visit.page.locator(".fd-chooser")).to_be_visible()
    visit.page.locator("fd-people summary").click()
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    empty = visit.page.evaluate(
        """() => [...document.querySelectorAll("#fd-center, #fd-center > .fd-card")].map((box) =>
            box.getBoundingClientRect().bottom - box.lastElementChild.getBoundingClientRect().bottom)"""
    )
    assert max(empty) < 40
    cut = visit.page.evaluate(
        """() => [...document.querySelectorAll("fd-people *, fd-faces *, fd-stage button")]
            .filter((element) => element.scrollWidth > element.clientWidth + 1
                && getComputedStyle(element).overflow !== "visible" && element.clientWidth > 0
                && !element.closest("select") && element.localName !== "input")
            .map((element) => element.className)"""
    )
    assert cut == []
    context.close()


def test_all_of_it_has_names_and_is_reached_by_tab(
    visit: Visit, site: Site, video: Path, face: Path
) -> None:
    site.calls.desk.faces = 3
    visit.choose_target(video)
    visit.page.set_input_files("fd-faces input", face)
    expect(visit.page.locator(".fd-chooser")).to_be_visible()
    expect(visit.page.locator(".fd-person")).to_have_count(2)
    assert visit.nameless() == []
    visit.page.locator("body").focus()
    reached = set()
    for _ in range(120):
        visit.page.keyboard.press("Tab")
        reached.add(visit.page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert {
        "What happens to person 1",
        "What happens to person 2",
        "Everyone else",
        "Face 1 of the photo",
    } <= reached


def test_a_choice_made_with_the_keyboard_keeps_the_focus(
    visit: Visit, picture: Path, face: Path
) -> None:
    visit.prepare(picture, face)
    choice(visit, 2).focus()
    visit.page.keyboard.press("ArrowDown")
    expect(choice(visit, 2)).to_be_focused()
    assert shown(choice(visit, 2)) == "Leave alone"
