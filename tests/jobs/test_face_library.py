"""A face appears whole, goes whole, and is what was saved."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from app.core.errors import BadNameError, DamagedMediaError, NotFoundError, UnwritableOutputError
from app.core.types import Identity, IdentityId, SourceView
from app.jobs.face_library import FaceLibrary


@pytest.fixture
def library(tmp_path: Path) -> FaceLibrary:
    return FaceLibrary(tmp_path / "data" / "faces")


@pytest.fixture
def identity() -> Identity:
    random = np.random.default_rng(2)
    views = tuple(
        SourceView(
            crop=random.integers(0, 255, (300 + 10 * index, 200, 3)).astype(np.uint8),
            landmarks=random.normal(size=(478, 3)).astype(np.float32),
            normed_embedding=np.eye(128, dtype=np.float32)[index],
        )
        for index in range(3)
    )
    mean = np.full(128, 128**-0.5, np.float32)
    return Identity(id=IdentityId("abc"), label="source", views=views, normed_embedding=mean)


def test_what_was_saved_comes_back(library: FaceLibrary, identity: Identity) -> None:
    face = library.add("Ann", identity, consent="permission")
    again = library.identity(face.id)
    assert again.id == identity.id
    assert np.array_equal(again.normed_embedding, identity.normed_embedding)
    for view, was in zip(again.views, identity.views, strict=True):
        assert np.array_equal(view.crop, was.crop)
        assert np.array_equal(view.landmarks, was.landmarks)
        assert np.array_equal(view.normed_embedding, was.normed_embedding)


def test_another_process_finds_it(library: FaceLibrary, identity: Identity, tmp_path: Path) -> None:
    face = library.add("Ann", identity, consent="self")
    other = FaceLibrary(tmp_path / "data" / "faces")
    assert other.faces() == (face,)
    assert other.face(face.id) == other.named("ann") == other.named(face.id) == face
    assert (face.photos, face.consent) == (3, "self")


def test_the_thumbnail_is_a_small_picture(library: FaceLibrary, identity: Identity) -> None:
    jpeg = library.thumbnail(library.add("Ann", identity, consent="self").id)
    image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert max(image.shape) == 256


def test_faces_are_listed_by_name(library: FaceLibrary, identity: Identity) -> None:
    for name in ("bob", "Ann", "Çem"):
        library.add(name, identity, consent="self")
    assert [face.name for face in library.faces()] == ["Ann", "bob", "Çem"]


def test_deleting_leaves_nothing(library: FaceLibrary, identity: Identity, tmp_path: Path) -> None:
    face = library.add("Ann", identity, consent="self")
    library.delete(face.id)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert library.faces() == ()
    library.add("Ann", identity, consent="self")


ASKS: dict[str, Callable[[FaceLibrary, str], object]] = {
    "face": FaceLibrary.face,
    "identity": FaceLibrary.identity,
    "thumbnail": FaceLibrary.thumbnail,
    "delete": FaceLibrary.delete,
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
@pytest.mark.parametrize(
    "face_id", ["0" * 32, "", "..", "../media", "/etc", "a/b", "\x00", "0" * 31 + "\n"]
)
def test_an_id_that_is_none_is_not_found_and_never_a_path(
    ask: Callable[[FaceLibrary, str], object], face_id: str, library: FaceLibrary
) -> None:
    with pytest.raises(NotFoundError):
        ask(library, face_id)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\nb", "Ann", "ANN", " ann "])
def test_a_name_is_a_name_and_the_only_one(
    name: str, library: FaceLibrary, identity: Identity
) -> None:
    library.add("Ann", identity, consent="self")
    with pytest.raises(BadNameError):
        library.add(name, identity, consent="self")
    assert len(library.faces()) == 1


@pytest.mark.parametrize("name", ["Ann / Bob", "C:\\Ann", "..", "<b>Ann</b>", "Çem 照片"])
def test_a_name_is_no_path_and_stays_whole(
    name: str, library: FaceLibrary, identity: Identity
) -> None:
    face = library.add(name, identity, consent="self")
    assert face.name == name
    assert library.named(unicodedata.normalize("NFD", name)) == face


def test_a_damaged_face_is_said_to_be(
    library: FaceLibrary, identity: Identity, tmp_path: Path
) -> None:
    face = library.add("Ann", identity, consent="self")
    (views,) = tmp_path.rglob("views.npz")
    views.write_bytes(views.read_bytes()[:1000])
    with pytest.raises(DamagedMediaError):
        library.identity(face.id)
    library.delete(face.id)


def test_pickled_objects_are_never_opened(
    library: FaceLibrary, identity: Identity, tmp_path: Path
) -> None:
    face = library.add("Ann", identity, consent="self")
    (views,) = tmp_path.rglob("views.npz")
    np.savez(views, id=np.array({"a": 1}, dtype=object), normed_embedding=np.zeros(128))
    with pytest.raises(DamagedMediaError):
        library.identity(face.id)


def test_what_is_half_written_is_not_listed(
    library: FaceLibrary, identity: Identity, tmp_path: Path
) -> None:
    library.add("Ann", identity, consent="self")
    folder = tmp_path / "data" / "faces"
    (folder / f".{'1' * 32}.part").mkdir()
    (folder / ("2" * 32)).mkdir()
    (folder / ("3" * 32)).mkdir()
    (folder / ("3" * 32) / "face.json").write_text(json.dumps({"format": 1, "name": 3}))
    assert [face.name for face in library.faces()] == ["Ann"]


def test_a_volume_that_is_closed_is_said_to_be(identity: Identity, tmp_path: Path) -> None:
    (tmp_path / "faces").write_bytes(b"a file where the folder should be")
    with pytest.raises(UnwritableOutputError):
        FaceLibrary(tmp_path / "faces").add("Ann", identity, consent="self")


def test_a_face_is_renamed_and_stays_the_same(library: FaceLibrary, identity: Identity) -> None:
    face = library.add("Ann", identity, consent="self")
    renamed = library.rename(face.id, "Anna")
    assert library.faces() == (renamed,)
    assert (renamed.id, renamed.name, renamed.created_at) == (face.id, "Anna", face.created_at)
    assert np.array_equal(library.identity(face.id).views[0].crop, identity.views[0].crop)
    assert library.rename(face.id, "ANNA").name == "ANNA"


@pytest.mark.parametrize("name", ["", "bob", "x" * 101], ids=["empty", "taken", "too long"])
def test_a_face_keeps_its_name_where_the_new_one_cannot_be(
    library: FaceLibrary, identity: Identity, name: str
) -> None:
    face = library.add("Ann", identity, consent="self")
    library.add("Bob", identity, consent="self")
    with pytest.raises(BadNameError):
        library.rename(face.id, name)
    assert library.face(face.id).name == "Ann"


def test_nobody_is_not_renamed(library: FaceLibrary) -> None:
    with pytest.raises(NotFoundError):
        library.rename("0" * 32, "Ann")
