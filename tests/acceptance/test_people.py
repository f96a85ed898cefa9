"""Finding and following people, measured against the truth of the shared stills and of the clips made from them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from app.core.errors import NoFaceInSourceError
from app.core.geometry import bbox_iou
from app.core.picture import Picture
from app.core.types import Face
from app.faces.people import IdentityBuilder
from app.media.limits import DEFAULT_LIMITS
from app.media.preview import first_picture
from app.pipeline.people import find_people
from app.pipeline.preview import frame_target
from app.pipeline.tools import Tools
from app.workbench import Workbench
from tests.acceptance.conftest import Case
from tests.acceptance.following import Score, scored, tracked, truth_of

pytestmark = [pytest.mark.slow, pytest.mark.weights]

CROWDS = ("crowd_bw_1927.jpg", "group_outdoor.jpg")
DRAWN = ("cartoon_anime_man.jpg",)
"""A drawn face is a face or not, as one likes."""

PEOPLE = {
    "motion_group_pan_zoom.mp4": 6,
    "motion_two_person_side_by_side.mp4": 2,
    "motion_two_people_swap_sides.mp4": 2,
    "motion_face_leaves_and_returns.mp4": 1,
    "motion_occluding_bar.mp4": 1,
    "motion_fade_to_black.mp4": 1,
    "motion_flash.mp4": 1,
}
"""How many people each clip shows."""
CLIPS = (*PEOPLE, "motion_scene_cut.mp4")

Truths = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def made(cases: Mapping[str, Case]) -> Path:
    """The folder of made clips and turned stills."""
    return cases[CLIPS[0]].path.parent


@pytest.fixture(scope="module")
def scores(made: Path, tools: Tools) -> dict[str, Score]:
    """Every clip, tracked once."""
    found = {}
    for name in CLIPS:
        path = made / name
        frames = tracked(path, tools)
        people = find_people(path, tools).people
        found[name] = scored(name, frames, truth_of(path, len(frames)), people)
    return found


def table(scores: dict[str, Score]) -> str:
    return "\n" + "\n".join(score.line() for score in scores.values())


def test_no_face_changes_its_person(scores: dict[str, Score]) -> None:
    assert sum(score.switches + score.mixed_tracks for score in scores.values()) == 0, table(scores)


def test_no_row_of_frames_is_broken_for_less_than_half_a_second(scores: dict[str, Score]) -> None:
    assert sum(score.broken for score in scores.values()) == 0, table(scores)


def test_faces_of_clips_are_found_and_nothing_else(scores: dict[str, Score]) -> None:
    assert all(score.recall >= 0.97 for score in scores.values()), table(scores)
    assert sum(score.strays for score in scores.values()) == 0, table(scores)


def test_faces_of_clips_lie_where_they_are(scores: dict[str, Score]) -> None:
    exact = [score for score in scores.values() if score.point_errors]
    assert len(exact) == 3
    for score in exact:
        assert np.quantile(score.point_errors, 0.99) <= 0.1, table(scores)
        assert min(score.ious) >= 0.5, table(scores)


@pytest.mark.parametrize(("name", "count"), PEOPLE.items(), ids=list(PEOPLE))
def test_each_person_of_a_clip_is_found_once(
    name: str, count: int, made: Path, workbench: Workbench
) -> None:
    found = workbench.find_people(made / name)
    assert [person.number for person in found.people] == list(range(1, count + 1))
    assert all(person.first_s < 0.6 for person in found.people)
    again = workbench.find_people(made / name)
    assert again.to_json() == found.to_json()
    for one, two in zip(found.people, again.people, strict=True):
        assert np.array_equal(one.thumbnail, two.thumbnail)
        assert np.array_equal(one.normed_embeddings, two.normed_embeddings)


def test_people_of_several_shots_and_of_several_files_are_one(
    made: Path, assets: Path, workbench: Workbench
) -> None:
    group = assets / "stills" / "group_six_t1.jpg"
    found = workbench.find_people(group, made / "motion_group_pan_zoom.mp4")
    assert len(found.people) == 6
    assert all({place.file for place in person.places} == {0, 1} for person in found.people)


@pytest.mark.parametrize(
    "name",
    ["video_vfr.mp4", "video_1fps.mp4", "video_rotation_90.mp4", "video_sar_4_3.mp4",
     "video_audio_starts_late.mkv", "video_mpeg2.ts", "anim_opaque.gif",
     "motion_two_people_swap_sides.mp4"],
)  # fmt: skip
def test_a_person_lies_where_a_player_shows_the_frame(
    name: str, cases: Mapping[str, Case], tools: Tools
) -> None:
    path = cases[name].path
    people = find_people(path, tools).people
    assert people
    for place in (each for person in people for each in (person.places[0], person.places[-1])):
        target = frame_target(path, DEFAULT_LIMITS, time_s=place.time_s)
        assert target.time_s == pytest.approx(place.time_s, abs=1e-3)
        (frame,) = target.frames()
        boxes = np.stack([face.bbox_xyxy for face in tools.faces_of(frame.picture)])
        assert bbox_iou(boxes, place.bbox_xyxy[None]).max() > 0.7


@pytest.fixture(scope="module")
def still_faces(
    assets: Path, ground_truth: Truths, tools: Tools
) -> dict[str, tuple[tuple[Face, ...], np.ndarray[Any, np.dtype[np.float32]]]]:
    found = {}
    for name, told in ground_truth.items():
        picture = first_picture(assets / "stills" / name, DEFAULT_LIMITS)
        boxes = np.array([face["box"] for face in told["faces"]], np.float32).reshape(-1, 4)
        found[name] = tools.faces_of(picture), boxes
    return found


def test_faces_of_stills_are_found_and_hardly_anything_else(still_faces: Any) -> None:
    rows, false, hits, total = [], 0, 0, 0
    for name, (faces, boxes) in still_faces.items():
        found = np.array([face.bbox_xyxy for face in faces], np.float32).reshape(-1, 4)
        overlap = bbox_iou(found, boxes)
        hit = int((overlap.max(0, initial=0) > 0.3).sum())
        extra = int((overlap.max(1, initial=0) <= 0.3).sum())
        rows.append(f"{name:28} found {hit:2}/{len(boxes):2}  false {extra}")
        if name not in DRAWN:
            hits, total, false = hits + hit, total + len(boxes), false + extra
        if name in CROWDS:
            assert hit >= 0.95 * len(boxes), rows[-1]
    listing = "\n" + "\n".join(rows)
    assert hits >= 0.97 * total, listing
    assert false <= len(still_faces) / 10, listing


@pytest.mark.parametrize("degrees", [15, 30, 45, 90, 135, 180, 270])
def test_a_face_at_any_roll_is_found_where_it_is(degrees: int, made: Path, tools: Tools) -> None:
    name = f"img_rotated_{degrees:03}"
    told = json.loads((made / "truth" / f"{name}.json").read_text())["faces"][0]
    faces = tools.faces_of(first_picture(made / f"{name}.jpg", DEFAULT_LIMITS))
    assert len(faces) == 1
    points = np.array(told["points"], np.float32)
    eyes = np.linalg.norm(points[0] - points[1])
    assert np.linalg.norm(faces[0].kps - points, axis=1).max() < 0.35 * eyes


def test_a_dog_is_nobody_at_any_size_and_turn(assets: Path, tools: Tools) -> None:
    picture = first_picture(assets / "stills" / "no_face_dog.jpg", DEFAULT_LIMITS)
    whole = picture.read(picture.box)
    taken = []
    for scale in (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.4, 2.0):
        sized = cv2.resize(whole, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        for turns in range(4):
            turned = Picture.from_rgb(np.rot90(np.asarray(sized, np.uint8), turns))
            if tools.faces_of(turned):
                taken.append((scale, turns))
    assert taken == []


def test_a_dog_is_no_face_to_put_on(assets: Path, tools: Tools) -> None:
    picture = first_picture(assets / "stills" / "no_face_dog.jpg", DEFAULT_LIMITS)
    builder = IdentityBuilder(tools.still_detector, tools.landmarker, tools.recognizer)
    whole = picture.read(picture.box)
    for scale in (0.35, 0.5, 0.7, 1.0, 2.0):
        sized = cv2.resize(whole, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        with pytest.raises(NoFaceInSourceError):
            builder.build([Picture.from_rgb(np.asarray(sized, np.uint8))], "source")
