import re

import cv2
import numpy as np
import pytest

from app.core.errors import AmbiguousSourceError, NoFaceInSourceError, SourcesDisagreeError
from app.core.picture import Picture
from app.core.types import Identity, RgbImage
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.landmarks import FaceLandmarker, yaw_deg
from app.faces.people import IdentityBuilder
from app.faces.recognizer import FaceRecognizer
from app.inference.spec import ModelZoo
from tests.faces.conftest import MakeLandmarks


@pytest.fixture(scope="module")
def builder(zoo: ModelZoo) -> IdentityBuilder:
    detector = FaceDetector(zoo, sides_px=STILL_SIDES_PX)
    return IdentityBuilder(detector, FaceLandmarker(zoo), FaceRecognizer(zoo))


def built(builder: IdentityBuilder, *images: RgbImage) -> tuple[Identity, list[str]]:
    photos = [Picture.from_rgb(np.ascontiguousarray(image)) for image in images]
    identity, notices = builder.build(photos, label="somebody")
    return identity, [each.code for each in notices if each.code != "face.photo_shares"]


def side_by_side(left: RgbImage, right: RgbImage) -> RgbImage:
    height = max(len(left), len(right))
    padded = [np.pad(image, ((0, height - len(image)), (0, 0), (0, 0))) for image in (left, right)]
    return np.concatenate(padded, axis=1)


@pytest.mark.weights
def test_one_photo_is_one_view_at_its_own_resolution(
    builder: IdentityBuilder, astronaut: RgbImage
) -> None:
    identity, codes = built(builder, astronaut)
    (view,) = identity.views
    assert codes == []
    assert np.linalg.norm(identity.normed_embedding) == pytest.approx(1)
    low, high = view.landmarks[:468, :2].min(0), view.landmarks[:468, :2].max(0)
    assert (low > 0).all()
    assert (high < view.crop.shape[1::-1]).all()
    x, y = 226 - 181, 117 - 56
    crop_rows = view.crop.reshape(-1, 3)
    assert (crop_rows == astronaut[56 + y, 181 + x]).all(1).any()


@pytest.mark.weights
def test_a_very_large_photo_is_kept_at_a_sensible_size(
    builder: IdentityBuilder, astronaut: RgbImage
) -> None:
    large = astronaut[20:220, 130:330].repeat(16, axis=0).repeat(16, axis=1)
    identity, _ = built(builder, large)
    assert max(identity.views[0].crop.shape) == 1024


@pytest.mark.weights
def test_the_id_is_that_of_the_pixels(
    builder: IdentityBuilder, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    ids = [built(builder, image)[0].id for image in (astronaut, astronaut, grace_hopper)]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]


@pytest.mark.weights
@pytest.mark.parametrize("worse", ["blurred", "cut by the border"])
def test_the_most_useful_photo_comes_first(
    builder: IdentityBuilder, astronaut: RgbImage, worse: str
) -> None:
    blurred = np.asarray(cv2.GaussianBlur(astronaut, (0, 0), 3), np.uint8)
    other = blurred if worse == "blurred" else astronaut[:, 205:]
    identity, codes = built(builder, other, astronaut)
    sharp, _ = built(builder, astronaut)
    assert codes == []
    assert len(identity.views) == 2
    assert np.array_equal(identity.views[0].crop, sharp.views[0].crop)


@pytest.mark.weights
def test_a_photo_of_somebody_else_is_left_out(
    builder: IdentityBuilder, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    identity, codes = built(builder, grace_hopper, astronaut, astronaut[:, ::-1])
    alone, _ = built(builder, astronaut)
    assert codes == ["face.another_person"]
    assert len(identity.views) == 2
    assert identity.normed_embedding @ alone.normed_embedding > 0.8


@pytest.mark.weights
@pytest.mark.parametrize("mirrored", [False, True], ids=["one against one", "two against two"])
def test_photos_of_which_no_person_is_the_most_are_refused(
    builder: IdentityBuilder, astronaut: RgbImage, grace_hopper: RgbImage, mirrored: bool
) -> None:
    images = [astronaut, grace_hopper]
    images += [astronaut[:, ::-1], grace_hopper[:, ::-1]] if mirrored else []
    with pytest.raises(SourcesDisagreeError, match=f"the {len(images)} photos of the somebody"):
        built(builder, *images)


@pytest.mark.weights
def test_the_photo_that_is_left_out_is_named_and_what_the_others_add(
    builder: IdentityBuilder, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    blurred = np.asarray(cv2.GaussianBlur(astronaut, (0, 0), 3), np.uint8)
    photos = [Picture.from_rgb(image) for image in (blurred, grace_hopper, astronaut)]
    _, notices = builder.build(photos, label="face for person 1")
    told = {notice.code: notice.message for notice in notices}
    assert "photo 2 of the face for person 1" in told["face.another_person"]
    shares = dict(re.findall(r"photo (\d): (\d+)%", told["face.photo_shares"]))
    assert list(shares) == ["1", "3"]
    assert int(shares["3"]) > int(shares["1"]) > 0
    assert int(shares["3"]) + int(shares["1"]) == pytest.approx(100, abs=1)


@pytest.mark.weights
def test_one_photo_has_no_share_to_tell(builder: IdentityBuilder, astronaut: RgbImage) -> None:
    _, notices = builder.build([Picture.from_rgb(astronaut)], label="somebody")
    assert notices == ()


@pytest.mark.weights
def test_a_face_of_a_group_is_chosen_by_its_number_from_the_left(
    builder: IdentityBuilder, six_people: RgbImage
) -> None:
    picture = Picture.from_rgb(six_people)
    chosen = [builder.build([picture], label="somebody", face=number)[0] for number in range(1, 7)]
    embeddings = np.stack([identity.normed_embedding for identity in chosen])
    assert (embeddings @ embeddings.T - np.eye(6) < 0.363).all(), "one face came twice"
    (first,) = chosen[0].views
    crop = first.crop
    assert (crop[5, 5] == six_people[:500, :200]).all(2).any(), "face 1 is not at the left"


@pytest.mark.weights
def test_a_face_beyond_the_last_is_refused_with_the_count(
    builder: IdentityBuilder, six_people: RgbImage
) -> None:
    with pytest.raises(NoFaceInSourceError, match="shows 6 faces, so there is no face 7"):
        builder.build([Picture.from_rgb(six_people)], label="somebody", face=7)


@pytest.mark.weights
def test_a_photo_without_a_face_is_refused_by_its_number(
    builder: IdentityBuilder, astronaut: RgbImage
) -> None:
    with pytest.raises(NoFaceInSourceError, match="photo 2"):
        built(builder, astronaut, np.full((300, 300, 3), 80, np.uint8))


@pytest.mark.weights
def test_several_faces_of_like_size_are_refused_with_their_number(
    builder: IdentityBuilder, six_people: RgbImage
) -> None:
    with pytest.raises(AmbiguousSourceError, match="6 faces"):
        built(builder, six_people)


@pytest.mark.weights
def test_the_larger_of_two_faces_is_meant_and_said(
    builder: IdentityBuilder, astronaut: RgbImage, grace_hopper: RgbImage
) -> None:
    both = side_by_side(astronaut.repeat(2, axis=0).repeat(2, axis=1), grace_hopper[::2, ::2])
    identity, codes = built(builder, both)
    alone, _ = built(builder, astronaut)
    assert codes == ["face.others_ignored"]
    assert identity.normed_embedding @ alone.normed_embedding > 0.8


@pytest.mark.weights
def test_a_small_face_is_used_and_said(builder: IdentityBuilder, astronaut: RgbImage) -> None:
    _, codes = built(builder, astronaut[::2, ::2])
    assert codes == ["face.source_small"]


@pytest.mark.parametrize("degrees", [0, 20, 40])
def test_yaw_is_read_from_the_depth(make_landmarks: MakeLandmarks, degrees: float) -> None:
    angle = np.deg2rad(degrees)
    turn = np.array(
        [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    )
    landmarks = (make_landmarks(cx=0, cy=0) @ turn.T).astype(np.float32)
    assert yaw_deg(landmarks) == pytest.approx(degrees, abs=1)
