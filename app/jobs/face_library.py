"""Saved faces: made once of photos, kept on the data volume under a name, put on as often as somebody likes."""

import io
import json
import re
import time
import unicodedata
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.errors import BadNameError, DamagedMediaError, NotFoundError
from app.core.storage import publish, sync
from app.core.types import Identity, IdentityId, SourceView
from app.jobs.folders import remove_tree
from app.jobs.lease import new_token
from app.jobs.library import storage_errors_told
from app.jobs.names import plain_text
from app.pipeline.spec import ConsentBasis

_FACTS, _VIEWS, _THUMBNAIL = "face.json", "views.npz", "thumbnail.jpg"
_ID = re.compile(r"[0-9a-f]{32}")
_THUMBNAIL_PX = 256
_MAX_NAME = 100
_FORMAT = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedFace:
    """What is known of a saved face without opening its pictures.

    Attributes:
        name: What its owner calls it; no two are called alike.
        photos: How many photos it is made of.
        consent: On what ground it may be used, as said when it was saved.
        created_at: Seconds since 1970.
    """

    id: str
    name: str
    photos: int
    consent: ConsentBasis
    created_at: float

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "id": self.id,
            "name": self.name,
            "photos": self.photos,
            "consent": self.consent,
            "created_at": self.created_at,
        }


class FaceLibrary:
    """All saved faces; safe to use from any thread of any process of this machine.

    A face is a folder that appears whole and goes whole. Nothing of it is kept anywhere else.

    Args:
        folder: Where they lie, each in a folder of its own; made when the first one is saved.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, identity: Identity, *, consent: ConsentBasis) -> SavedFace:
        """Save a face.

        Args:
            name: What it is to be called.
            identity: As made of photos that the content gate has seen.
            consent: On what ground it may be used.

        Raises:
            BadNameError: No face may be called this, or one is already.
            StorageFullError: The disk is full.
        """
        face = SavedFace(
            id=new_token(),
            name=self._free_name(name),
            photos=len(identity.views),
            consent=consent,
            created_at=time.time(),
        )
        with storage_errors_told():
            self._write(face, identity)
        return face

    def rename(self, face_id: str, name: str) -> SavedFace:
        """Call a face something else; jobs that name it by its id go on.

        Raises:
            NotFoundError: No saved face has this id.
            BadNameError: No face may be called this, or another one is already.
            StorageFullError: The disk is full.
        """
        face = replace(self.face(face_id), name=self._free_name(name, besides=face_id))
        facts = self._place(face_id) / _FACTS
        part = facts.with_name(f".{new_token()}.part")
        with storage_errors_told():
            part.write_bytes(_facts_of(face))
            sync(part)
            publish(part, facts)
        return face

    def faces(self) -> tuple[SavedFace, ...]:
        """All saved faces, by name."""
        if not self._folder.is_dir():
            return ()
        ids = [path.name for path in self._folder.iterdir() if _ID.fullmatch(path.name)]
        found = [_facts(self._folder / id) for id in ids]
        known = [face for face in found if face is not None]
        return tuple(sorted(known, key=lambda face: (_folded(face.name), face.id)))

    def face(self, face_id: str) -> SavedFace:
        """What is known of one.

        Raises:
            NotFoundError: No saved face has this id.
        """
        face = _facts(self._place(face_id))
        if face is None:
            raise NotFoundError("there is no such saved face; it may have been deleted")
        return face

    def named(self, name: str) -> SavedFace:
        """The face of this name, or of this id.

        Raises:
            NotFoundError: There is none.
        """
        for face in self.faces():
            if _folded(face.name) == _folded(name) or face.id == name:
                return face
        raise NotFoundError(
            "no saved face has this name; `python -m app face-library list` shows all"
        )

    def identity(self, face_id: str) -> Identity:
        """The face, ready to be put on.

        Raises:
            NotFoundError: No saved face has this id.
            DamagedMediaError: Its files are not what was written.
        """
        self.face(face_id)
        try:
            # Opened here: NumPy leaves a file open that it cannot read.
            with (
                (self._place(face_id) / _VIEWS).open("rb") as file,
                np.load(file, allow_pickle=False) as arrays,
            ):
                return _identity(arrays)
        except FileNotFoundError as error:
            raise NotFoundError("the saved face was deleted just now") from error
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
            raise DamagedMediaError(
                "the saved face is damaged; delete it and save it again"
            ) from error

    def thumbnail(self, face_id: str) -> bytes:
        """A small JPEG.

        Raises:
            NotFoundError: No saved face has this id.
        """
        self.face(face_id)
        try:
            return (self._place(face_id) / _THUMBNAIL).read_bytes()
        except OSError as error:
            raise NotFoundError("the saved face has no picture any more") from error

    def delete(self, face_id: str) -> None:
        """Remove a face with all that was kept of it.

        Raises:
            NotFoundError: No saved face has this id.
            UnwritableOutputError: The data volume is closed to us.
        """
        self.face(face_id)
        going = self._folder / f".{new_token()}.gone"
        with storage_errors_told():
            # Renamed first, so that nobody is offered half of it.
            self._place(face_id).replace(going)
            remove_tree(going)
            sync(self._folder)

    def _free_name(self, name: str, *, besides: str | None = None) -> str:
        shown = _checked_name(name)
        if any(_folded(f.name) == _folded(shown) and f.id != besides for f in self.faces()):
            raise BadNameError("a saved face has this name already; choose another, or delete it")
        return shown

    def _place(self, face_id: str) -> Path:
        """The folder of a face.

        Raises:
            NotFoundError: This is no id, so it must not become a path.
        """
        if _ID.fullmatch(face_id) is None:
            raise NotFoundError("there is no such saved face")
        return self._folder / face_id

    def _write(self, face: SavedFace, identity: Identity) -> None:
        part = self._folder / f".{face.id}.part"
        part.mkdir(parents=True)
        try:
            files = {
                _VIEWS: _packed(identity),
                _THUMBNAIL: _jpeg(identity.views[0]),
                _FACTS: _facts_of(face),
            }
            for name, content in files.items():
                (part / name).write_bytes(content)
                sync(part / name)
            sync(part)
            publish(part, self._place(face.id))
        finally:
            remove_tree(part)


def _checked_name(name: str) -> str:
    shown = plain_text(name, "name")
    if not 1 <= len(shown) <= _MAX_NAME:
        raise BadNameError(f"name: wanted 1 to {_MAX_NAME} characters")
    return shown


def _folded(name: str) -> str:
    """Names that differ only in case, blanks or how accents are composed are one name."""
    return unicodedata.normalize("NFC", name).strip().casefold()


def _facts_of(face: SavedFace) -> bytes:
    return json.dumps({"format": _FORMAT, **face.to_json()}).encode()


def _facts(folder: Path) -> SavedFace | None:
    """What a folder says of itself; `None` where there is none, or one that is going or foreign."""
    try:
        values: dict[str, Any] = json.loads((folder / _FACTS).read_bytes())
        del values["format"]
        return SavedFace(**values)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _packed(identity: Identity) -> bytes:
    arrays: dict[str, NDArray[Any]] = {"normed_embedding": identity.normed_embedding}
    for index, view in enumerate(identity.views):
        arrays[f"crop_{index}"] = view.crop
        arrays[f"landmarks_{index}"] = view.landmarks
        arrays[f"embedding_{index}"] = view.normed_embedding
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, id=np.array(identity.id), **arrays)
    return buffer.getvalue()


def _identity(arrays: Any) -> Identity:
    count = sum(name.startswith("crop_") for name in arrays.files)
    views = tuple(
        SourceView(
            crop=arrays[f"crop_{index}"],
            landmarks=arrays[f"landmarks_{index}"],
            normed_embedding=arrays[f"embedding_{index}"],
        )
        for index in range(count)
    )
    return Identity(
        id=IdentityId(str(arrays["id"])),
        label="saved face",
        views=views,
        normed_embedding=arrays["normed_embedding"],
    )


def _jpeg(view: SourceView) -> bytes:
    height, width = view.crop.shape[:2]
    scale = min(1.0, _THUMBNAIL_PX / max(height, width))
    size_wh = max(1, round(width * scale)), max(1, round(height * scale))
    small = cv2.resize(view.crop, size_wh, interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(small, cv2.COLOR_RGB2BGR))
    return jpeg.tobytes()
