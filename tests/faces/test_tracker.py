from collections.abc import Callable, Sequence

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.geometry import FloatArray, transform_points
from app.core.picture import Picture
from app.core.types import Face, Frame, RgbImage, Window
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    Located,
    bbox_from_landmarks,
    face_from_landmarks,
    face_size_px,
    kps_from_landmarks,
)
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.inference.spec import ModelZoo
from tests.conftest import MakeFrame
from tests.faces.conftest import MakeLandmarks

SIZE_WH = (480, 360)
Motion = Callable[[int], FloatArray]


def split(frames: Sequence[Frame], size: int) -> list[Window]:
    return [tuple(frames[start : start + size]) for start in range(0, len(frames), size)]


def tracked(tracker: FaceTracker, frames: Sequence[Frame], size: int = 16) -> list[Frame]:
    return [frame for window in split(frames, size) for frame in tracker.track(window)]


class OneFace:
    """Detector, landmarker and recognizer of a world with one face that stands still, in some frames."""

    def __init__(self, landmarks: FloatArray, away: Sequence[int] = ()) -> None:
        self.landmarks = landmarks
        self.away = away
        self.calls: list[tuple[str, int]] = []

    def _is_there(self, picture: Picture) -> bool:
        return int(picture.planes[0][0, 0, 0]) not in self.away

    def detect(self, pictures: Sequence[Picture]) -> list[tuple[Face, ...]]:
        self.calls.append(("detect", len(pictures)))
        face = face_from_landmarks(self.landmarks, 0.9)
        return [(face,) if self._is_there(picture) else () for picture in pictures]

    def locate_faces(self, items: Sequence[tuple[Picture, Face]], *, passes: int) -> Located:
        self.calls.append(("locate", len(items)))
        return self._located([picture for picture, _ in items])

    def locate(self, items: Sequence[tuple[Picture, CropRegion]]) -> Located:
        self.calls.append(("coast", len(items)))
        return self._located([picture for picture, _ in items])

    def cut(self, items: Sequence[tuple[Picture, CropRegion]]) -> RgbImage:
        self._cut = [picture for picture, _ in items]
        return np.full((len(items), 192, 192, 3), 90, np.uint8)

    def measure(self, crops: RgbImage, regions: Sequence[CropRegion]) -> Located:
        if len(crops):
            self.calls.append(("measure", len(crops)))
        return self._located(self._cut)

    def embed(self, items: Sequence[tuple[Picture, Face]]) -> FloatArray:
        if items:
            self.calls.append(("embed", len(items)))
        return np.eye(128, dtype=np.float32)[: len(items)]

    def _located(self, pictures: Sequence[Picture]) -> Located:
        there = np.array([self._is_there(picture) for picture in pictures], np.float32)
        return np.array([self.landmarks] * len(pictures)).reshape(-1, 478, 3), there

    def tracker(self) -> FaceTracker:
        return FaceTracker(self, self, self)  # type: ignore[arg-type]


def numbered(make_frame: MakeFrame, count: int) -> list[Frame]:
    """Frames whose first pixel is their number; the rest is the same picture, so that nothing is a cut."""
    image = np.random.default_rng(0).integers(0, 255, (128, 128, 3)).astype(np.uint8)
    frames = []
    for index in range(count):
        image = image.copy()
        image[0, 0] = index
        frames.append(make_frame(index, image))
    return frames


def test_an_empty_window_stays_empty(make_landmarks: MakeLandmarks) -> None:
    world = OneFace(make_landmarks())
    assert world.tracker().track(()) == ()
    assert world.calls == []


def test_a_window_needs_a_few_calls_whatever_its_length(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    world = OneFace(make_landmarks())
    frames = tracked(world.tracker(), numbered(make_frame, 48), size=24)
    assert [len(frame.faces) for frame in frames] == [1] * 48
    # A few glances, then the rest of frames 0, 4, ... 20 and 23, then every fourth after 23.
    assert world.calls == [
        *(("detect", 3), ("locate", 3), ("detect", 4), ("locate", 4)),
        *(("measure", 24), ("embed", 1)),
        # A second view, since it is a while after the first.
        *(("detect", 6), ("locate", 6), ("measure", 24), ("embed", 1)),
    ]


def test_a_track_keeps_its_number_and_its_embedding_from_window_to_window(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    frames = tracked(OneFace(make_landmarks()).tracker(), numbered(make_frame, 20), size=8)
    faces = [frame.faces[0] for frame in frames]
    assert {face.track_id for face in faces} == {0}
    assert all(face.embedding is not None and face.embedding[0] == 1 for face in faces)


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(range(20), id="never there"),
        pytest.param(range(7), id="comes between key frames"),
        pytest.param(range(11, 20), id="goes between key frames"),
        pytest.param([6], id="hidden for a frame"),
    ],
)
@pytest.mark.parametrize("size", [1, 6, 20], ids=lambda size: f"windows of {size}")
def test_faces_are_where_the_mesh_sees_them(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks, away: Sequence[int], size: int
) -> None:
    world = OneFace(make_landmarks(), away)
    frames = tracked(world.tracker(), numbered(make_frame, 20), size)
    # While nobody is followed a look every 0.3 s must do; what lies before it in the window is looked at again.
    late = [7] if size == 1 and away == range(7) else []
    assert [frame.index for frame in frames if not frame.faces] == [*away, *late]


def test_while_nobody_is_there_few_frames_are_looked_at(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    world = OneFace(make_landmarks(), away=range(200))
    frames = tracked(world.tracker(), numbered(make_frame, 200))
    seconds = frames[-1].time_s - frames[0].time_s
    assert sum(count for call, count in world.calls if call == "detect") <= seconds / 0.3 + 2


def test_without_a_recognizer_nobody_has_an_embedding(
    make_frame: MakeFrame, make_landmarks: MakeLandmarks
) -> None:
    world = OneFace(make_landmarks())
    tracker = FaceTracker(world, world)  # type: ignore[arg-type]
    assert tracked(tracker, numbered(make_frame, 3))[0].faces[0].embedding is None


def new_tracker(
    zoo: ModelZoo, *, still: bool = False, recognizes: bool = False, searches: bool = False
) -> FaceTracker:
    detector = FaceDetector(zoo, sides_px=STILL_SIDES_PX) if still else FaceDetector(zoo)
    recognizer = FaceRecognizer(zoo) if recognizes else None
    return FaceTracker(detector, FaceLandmarker(zoo), recognizer, searches=searches)


def clip(
    image: RgbImage, motion: Motion, numbers: Sequence[int], make_frame: MakeFrame
) -> list[Frame]:
    """Frames of an image under a known motion, with some noise of the sensor."""
    random = np.random.default_rng(1)
    frames = []
    for number in numbers:
        moved = cv2.warpAffine(
            image, motion(number), SIZE_WH, flags=cv2.INTER_AREA, borderMode=cv2.BORDER_REFLECT
        )
        noisy = np.clip(moved + random.normal(0, 2, moved.shape), 0, 255).astype(np.uint8)
        frames.append(make_frame(number, noisy))
    return frames


def moved(dx: float, dy: float, *, scale: float = 1.0, roll_deg: float = 0.0) -> FloatArray:
    """The astronaut's face, at (226, 117) in her picture, put at the middle of the frame plus (dx, dy)."""
    affine = cv2.getRotationMatrix2D((226, 117), -roll_deg, scale)
    affine[:, 2] += np.array([240 + dx - 226, 180 + dy - 117])
    return np.asarray(affine, np.float32)


def pan(number: int) -> FloatArray:
    return moved(-120 + 10 * number, 30 * np.sin(number / 4))


def zoom(number: int) -> FloatArray:
    return moved(0, 0, scale=0.6 * 1.04**number)


def roll(number: int) -> FloatArray:
    return moved(0, 0, roll_deg=45 * np.sin(number / 5))


def jitter(number: int) -> FloatArray:
    return moved(*np.random.default_rng(number).normal(0, 3, 2))


@pytest.fixture(scope="module")
def truth(zoo: ModelZoo, astronaut: RgbImage) -> FloatArray:
    """The astronaut's landmarks in her own picture, as a mean of several looks at her."""
    detector, landmarker = FaceDetector(zoo), FaceLandmarker(zoo)
    looks = []
    for scale in (0.9, 1.0, 1.1, 1.3):
        affine = moved(0, 0, scale=scale)
        picture = Picture.from_rgb(np.asarray(cv2.warpAffine(astronaut, affine, SIZE_WH), np.uint8))
        face = detector.detect([picture])[0][0]
        landmarks = landmarker.locate_faces([(picture, face)])[0][0]
        looks.append(transform_points(landmarks, np.asarray(cv2.invertAffineTransform(affine))))
    return np.asarray(np.mean(looks, axis=0), np.float32)


def errors(frames: Sequence[Frame], motion: Motion, truth: FloatArray) -> NDArray[np.float32]:
    """Mean distance of the landmarks from the true motion, in sizes of the face, one a frame."""
    result = []
    for frame in frames:
        expected = transform_points(truth, motion(frame.index))
        (face,) = frame.faces
        assert face.landmarks is not None
        away = np.linalg.norm(face.landmarks[:, :2] - expected[:, :2], axis=1).mean()
        result.append(float(away) / face_size_px(expected))
    return np.array(result, np.float32)


@pytest.mark.weights
@pytest.mark.parametrize("motion", [pan, zoom, roll, jitter], ids=lambda motion: motion.__name__)
def test_landmarks_follow_the_true_motion(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame, truth: FloatArray, motion: Motion
) -> None:
    frames = tracked(new_tracker(zoo), clip(astronaut, motion, range(24), make_frame), size=10)
    away = errors(frames, motion, truth)
    assert away.mean() < 0.008
    assert away.max() < 0.015
    assert len({frame.faces[0].track_id for frame in frames}) == 1


@pytest.mark.weights
def test_a_face_that_stands_still_hardly_trembles(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame
) -> None:
    frames = clip(astronaut, lambda _: moved(0, 0), range(16), make_frame)
    points = np.array([frame.faces[0].landmarks for frame in tracked(new_tracker(zoo), frames)])
    second = points[2:, :, :2] - 2 * points[1:-1, :, :2] + points[:-2, :, :2]
    assert np.sqrt((second**2).sum(-1).mean()) / face_size_px(points[0]) < 0.003


@pytest.mark.weights
def test_box_and_key_points_follow_from_the_landmarks(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame
) -> None:
    (frame,) = new_tracker(zoo, still=True).track((make_frame(0, astronaut),))
    (face,) = frame.faces
    assert face.landmarks is not None
    assert np.array_equal(face.bbox_xyxy, bbox_from_landmarks(face.landmarks))
    assert np.array_equal(face.kps, kps_from_landmarks(face.landmarks))
    assert frame.is_cut


@pytest.mark.weights
def test_two_runs_are_the_same_to_the_bit(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame
) -> None:
    frames = clip(astronaut, pan, range(10), make_frame)
    one, two = (tracked(new_tracker(zoo), frames, size=8) for _ in range(2))
    for first, second in zip(one, two, strict=True):
        assert np.array_equal(first.faces[0].landmarks, second.faces[0].landmarks)


@pytest.mark.weights
def test_a_cut_begins_another_track(
    zoo: ModelZoo, astronaut: RgbImage, grace_hopper: RgbImage, make_frame: MakeFrame
) -> None:
    first = clip(astronaut, lambda _: moved(0, 0), range(7), make_frame)
    other = np.array([[0.7, 0, 60], [0, 0.7, 0]], np.float32)
    second = clip(grace_hopper, lambda _: other, range(7, 14), make_frame)
    frames = tracked(new_tracker(zoo, recognizes=True), [*first, *second])
    assert [frame.index for frame in frames if frame.is_cut] == [0, 7]
    assert [frame.faces[0].track_id for frame in frames] == [0] * 7 + [1] * 7
    before, after = frames[6].faces[0], frames[7].faces[0]
    assert before.embedding is not None
    assert after.embedding is not None
    assert before.embedding @ after.embedding < 0.363


@pytest.mark.weights
def test_a_face_enters_and_leaves(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame
) -> None:
    def passing(number: int) -> FloatArray:
        return moved(-330 + 20 * number, 0)

    def bordered(number: int) -> Frame:
        image = cv2.warpAffine(astronaut, passing(number), SIZE_WH, borderValue=(90, 90, 90))
        return make_frame(number, np.asarray(image, np.uint8))

    frames = tracked(new_tracker(zoo), [bordered(number) for number in range(34)])
    # Her face is 90 wide: wholly in the picture from frame 7 to 26, wholly out of it before 3 and after 30.
    seen = [frame.index for frame in frames if frame.faces]
    assert set(range(7, 27)) <= set(seen) <= set(range(3, 31))
    assert seen == list(range(seen[0], seen[-1] + 1))
    assert len({frame.faces[0].track_id for frame in frames if frame.faces}) == 1


@pytest.mark.weights
def test_six_people_of_a_still_are_six_tracks_left_to_right(
    zoo: ModelZoo, six_people: RgbImage, make_frame: MakeFrame
) -> None:
    (frame,) = new_tracker(zoo, still=True, recognizes=True).track((make_frame(0, six_people),))
    assert len({face.track_id for face in frame.faces}) == 6
    middles = [float(face.bbox_xyxy[::2].mean()) for face in frame.faces]
    assert middles == sorted(middles)
    embeddings = np.array([face.embedding for face in frame.faces])
    assert (embeddings @ embeddings.T - np.eye(6)).max() < 0.4


@pytest.mark.weights
def test_where_nobody_is_nobody_is_found(zoo: ModelZoo, make_frame: MakeFrame) -> None:
    noise = np.random.default_rng(5).integers(0, 255, (200, 300, 3)).astype(np.uint8)
    frames = [make_frame(index, noise) for index in range(6)]
    assert all(frame.faces == () for frame in tracked(new_tracker(zoo), frames))


def turning(number: int) -> FloatArray:
    return moved(0, 0, roll_deg=5.0 * number)


def hanging(number: int) -> FloatArray:
    return moved(0, 0, roll_deg=180 + 0.2 * number)


def lying(number: int) -> FloatArray:
    return moved(0, 0, roll_deg=90 + 0.2 * number)


@pytest.mark.weights
@pytest.mark.parametrize("motion", [turning, hanging, lying], ids=lambda motion: motion.__name__)
def test_a_face_at_any_roll_is_followed_in_video(
    zoo: ModelZoo, astronaut: RgbImage, make_frame: MakeFrame, truth: FloatArray, motion: Motion
) -> None:
    # No reflections at the border: a mirrored face is a face.
    portrait = cv2.copyMakeBorder(astronaut, *[256] * 4, cv2.BORDER_CONSTANT, value=(90, 90, 90))
    there = np.array([[1, 0, -256], [0, 1, -256], [0, 0, 1]], np.float32)

    def bordered(number: int) -> FloatArray:
        return motion(number) @ there

    frames = clip(np.asarray(portrait, np.uint8), bordered, range(90), make_frame)
    found = tracked(new_tracker(zoo, searches=True), frames)
    assert [frame.index for frame in found if len(frame.faces) != 1] == []
    assert len({frame.faces[0].track_id for frame in found}) == 1
    assert errors(found, motion, truth).max() < 0.03
