"""A face is made once of the same photos, however often it is asked for."""

from pathlib import Path

import pytest

from app.core.errors import NoFaceInSourceError
from app.pipeline.recent import MadeFace, RecentFaces
from tests.jobs.fakes import made_up_face


class Maker:
    """Counts how often it makes a face."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> MadeFace:
        self.made += 1
        return made_up_face(), ()


@pytest.fixture
def maker() -> Maker:
    return Maker()


def photo(folder: Path, name: str, content: bytes = b"a face") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_the_same_bytes_under_another_name_are_the_same_face(tmp_path: Path, maker: Maker) -> None:
    recent = RecentFaces()
    first = recent.get((photo(tmp_path, "a"),), "source", None, maker)
    assert recent.get((photo(tmp_path, "b"),), "source", None, maker) is first
    assert maker.made == 1


@pytest.mark.parametrize(
    ("content", "label", "face"),
    [(b"another face", "source", None), (b"a face", "face", None), (b"a face", "source", 1)],
    ids=["other bytes", "another label", "another face of the photo"],
)
def test_whatever_tells_faces_apart_makes_another_one(
    tmp_path: Path, maker: Maker, content: bytes, label: str, face: int | None
) -> None:
    recent = RecentFaces()
    recent.get((photo(tmp_path, "a"),), "source", None, maker)
    recent.get((photo(tmp_path, "a", content),), label, face, maker)
    assert maker.made == 2


def test_the_face_that_was_asked_for_longest_ago_is_given_up_first(
    tmp_path: Path, maker: Maker
) -> None:
    recent = RecentFaces(most=2)
    one, two, three = (photo(tmp_path, name, name.encode()) for name in "abc")
    for each in (one, two, one, three):
        recent.get((each,), "source", None, maker)
    assert maker.made == 3
    recent.get((one,), "source", None, maker)
    assert maker.made == 3
    recent.get((two,), "source", None, maker)
    assert maker.made == 4


def test_what_cannot_be_read_is_left_to_the_maker(tmp_path: Path, maker: Maker) -> None:
    recent = RecentFaces()
    for _ in range(2):
        recent.get((tmp_path / "missing",), "source", None, maker)
    assert maker.made == 2


def test_a_face_that_could_not_be_made_is_tried_again(tmp_path: Path, maker: Maker) -> None:
    recent, path = RecentFaces(), photo(tmp_path, "a")

    def fail() -> MadeFace:
        raise NoFaceInSourceError("no face")

    with pytest.raises(NoFaceInSourceError):
        recent.get((path,), "source", None, fail)
    recent.get((path,), "source", None, maker)
    assert maker.made == 1
