"""A blurred face cannot be told, stays blurred while the tracker loses it, and takes nobody else with it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from app.core.picture import Picture
from app.core.types import Face, Frame, RgbImage, TrackId
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.hiding import FaceHider
from app.faces.landmarks import FaceLandmarker, face_from_landmarks
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.inference.spec import ModelZoo
from tests.faces.conftest import MakeLandmarks

SEEN, AWAY, CUT = "seen", "away", "cut"
MakeVideo = Callable[[Sequence[str]], tuple[Frame, ...]]


@pytest.fixture
def make_video(make_landmarks: MakeLandmarks) -> MakeVideo:
    """Noise at 25 frames a second; one face, tracked and to be blurred, moves right by 4 pixels a frame."""
    noise = np.random.default_rng(5).integers(0, 255, (200, 400, 3)).astype(np.uint8)

    def build(rows: Sequence[str]) -> tuple[Frame, ...]:
        frames = []
        for index, row in enumerate(rows):
            landmarks = make_landmarks(cx=80 + 4 * index, cy=100, size=70)
            face = face_from_landmarks(landmarks, 0.9)
            face = replace(face, is_blurred=True, track_id=TrackId(3))
            frames.append(
                Frame(
                    index=index,
                    pts=index,
                    time_base=Fraction(1, 25),
                    picture=Picture.from_rgb(noise.copy()),
                    faces=(face,) if row == SEEN else (),
                    is_cut=row == CUT,
                )
            )
        return tuple(frames)

    return build


def changed_at(before: Frame, after: Frame) -> tuple[float, float] | None:
    """The middle of what has changed."""
    rows, columns = np.nonzero((rgb(before) != rgb(after)).any(2))
    return (float(columns.mean()), float(rows.mean())) if len(rows) else None


def rgb(frame: Frame) -> RgbImage:
    return frame.picture.thumbnail(max(frame.picture.size_wh))[0]


@pytest.mark.parametrize(
    ("rows", "hidden"),
    [
        pytest.param([SEEN] * 3, [0, 1, 2], id="while it is seen"),
        pytest.param([SEEN, AWAY, AWAY, SEEN], [0, 1, 2, 3], id="over a gap"),
        pytest.param([AWAY, SEEN], [1], id="not before it is there"),
        pytest.param([SEEN] + [AWAY] * 20, range(13), id="for half a second after it is lost"),
        pytest.param([SEEN, CUT, AWAY], [0], id="not over a cut"),
    ],
)
def test_a_face_stays_hidden(
    rows: Sequence[str], hidden: Sequence[int], make_video: MakeVideo
) -> None:
    before = make_video(rows)
    after = FaceHider().hide(before)
    assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if changed_at(a, b)] == [
        *hidden
    ]
    assert [frame.faces_swapped for frame in after] == [
        int(index in hidden) for index in range(len(rows))
    ]


def test_over_a_gap_the_blur_moves_with_the_face(make_video: MakeVideo) -> None:
    before = make_video([SEEN, AWAY, AWAY, AWAY, SEEN])
    after = FaceHider().hide(before)
    middles = [changed_at(a, b) for a, b in zip(before, after, strict=True)]
    assert np.allclose([middle[0] for middle in middles if middle], [80, 84, 88, 92, 96], atol=2)


def test_a_lost_face_goes_on_at_its_pace(make_video: MakeVideo) -> None:
    before = make_video([SEEN] * 4 + [AWAY] * 4)
    middles = [changed_at(a, b) for a, b in zip(before, FaceHider().hide(before), strict=True)]
    expected = [80 + 4 * index for index in range(8)]
    assert np.allclose([middle[0] for middle in middles if middle], expected, atol=2)


def test_what_was_seen_in_one_window_is_held_in_the_next(make_video: MakeVideo) -> None:
    frames = make_video([SEEN, AWAY, AWAY])
    hider = FaceHider()
    hider.hide(frames[:1])
    assert [frame.faces_swapped for frame in hider.hide(frames[1:])] == [1, 1]


def test_whoever_else_is_there_is_not_blurred(make_video: MakeVideo) -> None:
    first, second = make_video([SEEN, SEEN])
    (face,) = second.faces
    other = replace(second, faces=(replace(face, is_blurred=False, track_id=TrackId(9)),))
    after = FaceHider().hide((first, other))
    assert after[1] is other


def test_frames_without_anybody_to_hide_are_the_same_objects(make_video: MakeVideo) -> None:
    frames = make_video([AWAY, AWAY])
    assert all(a is b for a, b in zip(frames, FaceHider().hide(frames), strict=True))


def test_the_edge_is_soft_and_all_of_the_face_is_covered(make_video: MakeVideo) -> None:
    before = make_video([SEEN])
    (after,) = FaceHider().hide(before)
    change = np.abs(rgb(before[0]).astype(int) - rgb(after)).mean(2)
    (face,) = before[0].faces
    x0, y0, x1, y1 = (int(value) for value in face.bbox_xyxy)
    still_rough = np.abs(np.diff(rgb(after).astype(int), axis=1))[y0:y1, x0:x1].mean()
    assert still_rough < 3, "noise is left in the face"
    assert (change[:, : x0 - (x1 - x0) // 2] == 0).all()


@pytest.mark.weights
@pytest.mark.parametrize("size", [1, 3], ids=["small", "large"])
def test_no_network_knows_a_blurred_face_again(
    size: int, astronaut: RgbImage, grace_hopper: RgbImage, zoo: ModelZoo
) -> None:
    recognizer = FaceRecognizer(zoo)
    detector = FaceDetector(zoo, sides_px=STILL_SIDES_PX)
    tracker = FaceTracker(detector, FaceLandmarker(zoo), recognizer)
    for image in (astronaut, grace_hopper):
        large = image.repeat(size, axis=0).repeat(size, axis=1)
        picture = Picture.from_rgb(np.ascontiguousarray(large))
        still = Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        (frame,) = tracker.track((still,))
        (face,) = frame.faces
        hidden = FaceHider().hide((replace(frame, faces=(replace(face, is_blurred=True),)),))[0]
        assert hidden.faces[0].is_changed
        before, after = recognizer.embed([(frame.picture, face), (hidden.picture, face)])
        assert before @ after < 0.2
        assert _found_again(detector, hidden.picture, face) is None


def _found_again(detector: FaceDetector, picture: Picture, face: Face) -> Face | None:
    """A face that a detector is still sure of at the place."""
    (found,) = detector.detect([picture])
    middle = face.kps.mean(0)
    return next(
        (f for f in found if np.abs(f.kps.mean(0) - middle).max() < 20 and f.det_score > 0.9), None
    )
