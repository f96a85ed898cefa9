"""The desk with real networks: what the page's short calls see."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import (
    Cancelled,
    MediaNotFoundError,
    NoFaceInSourceError,
    NoSuchPersonError,
)
from app.inference.session import OrtModelZoo
from app.jobs.face_library import FaceLibrary
from app.labelling.metadata import DIGITAL_SOURCE_TYPE
from app.media.limits import MediaLimits
from app.pipeline.preview import frame_target
from app.pipeline.spec import FaceMap, PersonChoice, RenderSpec, SourceFace, Timing
from app.pipeline.tools import Tools
from app.processors import discover
from app.runtime.calls import (
    FaceKept,
    FacesSeen,
    FindFaces,
    FindPeople,
    MakePreview,
    PeopleSeen,
    PreviewMade,
    SaveFace,
)
from app.runtime.desk import LocalDesk, likeness

RgbImage = NDArray[np.uint8]
Ask = Callable[..., object]


@pytest.fixture
def library(tmp_path: Path) -> FaceLibrary:
    return FaceLibrary(tmp_path / "faces")


@pytest.fixture
def desk(tmp_path: Path, zoo: OrtModelZoo, library: FaceLibrary) -> LocalDesk:
    tools = Tools.over(zoo, discover(), MediaLimits(), saved_face=library.identity)
    scratch = tmp_path / "previews"
    scratch.mkdir()
    return LocalDesk(tools, scratch, library)


@pytest.fixture
def ask(desk: LocalDesk) -> Ask:
    def call(asked: object, shares: list[float] | None = None) -> object:
        told: list[float] = [] if shares is None else shares
        return desk.answer(asked, on_progress=told.append, should_stop=lambda: False)  # type: ignore[arg-type]

    return call


@pytest.fixture
def photo(tmp_path: Path, astronaut: RgbImage) -> Path:
    path = tmp_path / "photo.png"
    Image.fromarray(astronaut).save(path)
    return path


@pytest.fixture
def video(tmp_path: Path, grace_hopper: RgbImage) -> Iterator[Path]:
    """Two seconds at 10 frames a second; each frame is brighter than the one before."""
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 512, 600, "yuv420p"
        for index in range(20):
            shade = np.clip(grace_hopper.astype(int) - 40 + 3 * index, 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shade, format="rgb24")))
        container.mux(stream.encode())
    return path


def spec(target: Path, *sources: Path, **fields: object) -> RenderSpec:
    return RenderSpec(
        sources=sources,
        target=target,
        output=Path("unused"),
        consent="self",
        **fields,  # type: ignore[arg-type]
    )


def pixels(jpeg: bytes) -> RgbImage:
    with Image.open(io.BytesIO(jpeg)) as image:
        assert image.format == "JPEG"
        return np.asarray(image.convert("RGB"))


@pytest.mark.weights
def test_the_faces_of_a_photo_are_numbered_and_the_one_meant_is_named(
    ask: Ask, photo: Path, six_people_path: Path
) -> None:
    one = ask(FindFaces(path=photo))
    assert isinstance(one, FacesSeen)
    assert (len(one.faces), one.meant, one.size_wh) == (1, 1, (512, 512))
    several = ask(FindFaces(path=six_people_path))
    assert isinstance(several, FacesSeen)
    assert (len(several.faces), several.meant) == (6, None)
    lefts = [face.bbox_xyxy[0] for face in several.faces]
    assert lefts == sorted(lefts)
    for face in several.faces:
        assert min(pixels(face.thumbnail).shape[:2]) > 40


@pytest.mark.weights
def test_a_photo_without_a_face_shows_none(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "wall.png"
    Image.new("RGB", (300, 200), (120, 130, 140)).save(path)
    seen = ask(FindFaces(path=path))
    assert isinstance(seen, FacesSeen)
    assert (seen.faces, seen.meant) == ((), None)


@pytest.mark.weights
def test_the_people_of_a_picture_are_cards(ask: Ask, six_people_path: Path) -> None:
    shares: list[float] = []
    seen = ask(FindPeople(path=six_people_path), shares)
    assert isinstance(seen, PeopleSeen)
    assert [person.number for person in seen.people] == [1, 2, 3, 4, 5, 6]
    assert shares[-1] == 1
    matrix = np.array(seen.likeness)
    assert np.allclose(matrix, matrix.T)
    assert np.allclose(np.diag(matrix), 1, atol=1e-3)
    assert (matrix - np.eye(6)).max() < 0.5
    assert all(pixels(person.thumbnail).shape[0] > 32 for person in seen.people)


@pytest.mark.weights
def test_whoever_hangs_up_ends_the_search(desk: LocalDesk, six_people_path: Path) -> None:
    with pytest.raises(Cancelled):
        desk.answer(
            FindPeople(path=six_people_path),
            on_progress=lambda _: None,
            should_stop=lambda: True,
        )


@pytest.mark.weights
def test_a_preview_changes_whom_the_face_map_says_and_is_labeled(
    ask: Ask, photo: Path, six_people_path: Path, six_people: RgbImage, tmp_path: Path
) -> None:
    seen = ask(FindPeople(path=six_people_path))
    assert isinstance(seen, PeopleSeen)
    choices = (
        PersonChoice[Path](person=2, action=SourceFace[Path](photos=(photo,))),
        PersonChoice[Path](person=5, action="blur"),
    )
    face_map = FaceMap[Path](choices=choices, others="leave")
    made = ask(MakePreview(spec=spec(six_people_path, face_map=face_map), time_s=0))
    assert isinstance(made, PreviewMade)
    assert made.faces_swapped >= 1
    assert DIGITAL_SOURCE_TYPE.encode() in made.picture
    changed = np.abs(pixels(made.picture).astype(int) - six_people.astype(int)).max(2)
    means = []
    for person in seen.people:
        x0, y0, x1, y1 = (round(value) for value in person.places[0].bbox_xyxy)
        means.append(float(changed[y0:y1, x0:x1].mean()))
    touched = {number for number, mean in enumerate(means, start=1) if mean > 8}
    assert touched == {2, 5}, means
    assert list((tmp_path / "previews").iterdir()) == []


@pytest.mark.weights
def test_a_person_who_is_not_there_is_told(ask: Ask, photo: Path, six_people_path: Path) -> None:
    choice = PersonChoice[Path](person=9, action=SourceFace[Path](photos=(photo,)))
    asked = spec(six_people_path, face_map=FaceMap[Path](choices=(choice,), others="leave"))
    with pytest.raises(NoSuchPersonError):
        ask(MakePreview(spec=asked, time_s=0))


@pytest.mark.weights
def test_a_preview_of_a_video_is_of_the_frame_at_that_time(
    ask: Ask, photo: Path, video: Path
) -> None:
    choice = PersonChoice[Path](person=1, action=SourceFace[Path](photos=(photo,)))
    asked = spec(
        video,
        face_map=FaceMap[Path](choices=(choice,), others="leave"),
        timing=Timing(start_s=0.3, end_s=0.4, fps=5),
    )
    made = ask(MakePreview(spec=asked, time_s=1.25))
    assert isinstance(made, PreviewMade)
    assert (round(made.time_s, 3), made.faces_swapped) == (1.2, 1)
    assert pixels(made.picture).shape == (600, 512, 3)


@pytest.mark.weights
def test_a_face_is_saved_and_put_on(
    ask: Ask, library: FaceLibrary, photo: Path, six_people_path: Path
) -> None:
    kept = ask(SaveFace(name="Eileen", photos=(photo,), consent="public-domain"))
    assert isinstance(kept, FaceKept)
    (saved,) = library.faces()
    assert (saved.id, saved.name, saved.consent) == (kept.id, "Eileen", "public-domain")
    choice = PersonChoice[Path](person=1, action=SourceFace[Path](saved=kept.id))
    asked = spec(six_people_path, face_map=FaceMap[Path](choices=(choice,), others="leave"))
    made = ask(MakePreview(spec=asked, time_s=0))
    assert isinstance(made, PreviewMade)
    assert made.faces_swapped == 1


@pytest.mark.weights
def test_a_face_that_cannot_be_made_is_not_saved(
    ask: Ask, library: FaceLibrary, photo: Path
) -> None:
    with pytest.raises(NoFaceInSourceError):
        ask(SaveFace(name="Nobody", photos=(photo,), face=4, consent="self"))
    assert library.faces() == ()


@pytest.mark.weights
def test_a_file_that_is_gone_is_told(ask: Ask, tmp_path: Path) -> None:
    with pytest.raises(MediaNotFoundError):
        ask(FindPeople(path=tmp_path / "gone.png"))


@pytest.mark.parametrize(
    ("time_s", "wanted_s"),
    [
        pytest.param(0, 0.0, id="the first frame"),
        pytest.param(0.1, 0.1, id="just as a frame begins"),
        pytest.param(0.19, 0.1, id="just before the next one"),
        pytest.param(1.95, 1.9, id="the last frame"),
        pytest.param(2.0, 1.9, id="the end"),
        pytest.param(99.0, 1.9, id="far behind the end"),
    ],
)
def test_a_frame_is_the_one_that_a_player_shows(
    video: Path, time_s: float, wanted_s: float
) -> None:
    target = frame_target(video, MediaLimits(), time_s=time_s)
    assert round(target.time_s, 3) == wanted_s
    (frame,) = target.frames()
    brightness = float(frame.picture.thumbnail(64)[0].mean())
    (first,) = frame_target(video, MediaLimits(), time_s=0).frames()
    # Each frame is a bit brighter, by about 3.
    assert brightness - float(first.picture.thumbnail(64)[0].mean()) == pytest.approx(
        30 * wanted_s * 0.75, abs=8
    )


def test_likeness_of_nobody_is_empty() -> None:
    assert likeness([]) == ()


def test_likeness_is_of_the_most_alike_views_and_of_the_least_alike_own_ones() -> None:
    x, y = np.eye(2, 128, dtype=np.float32)
    between = (x + y) / np.float32(np.sqrt(2))
    people = [np.stack([x, between]), y[None]]
    assert likeness(people) == ((0.7071, 0.7071), (0.7071, 1.0))
