"""Source photos become an identity: the face to put on."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import cv2
import numpy as np

from app.core.errors import AmbiguousSourceError, NoFaceInSourceError, SourcesDisagreeError
from app.core.geometry import FloatArray
from app.core.mesh_topology import MESH_POINTS
from app.core.picture import Picture, PixelBox
from app.core.types import Face, Frame, Identity, IdentityId, Notice, SourceView
from app.faces.detector import FaceDetector
from app.faces.landmarks import FaceLandmarker, face_size_px, share_inside, yaw_deg
from app.faces.recognizer import SAME_PERSON_COSINE, FaceRecognizer, normed
from app.faces.tracker import FaceTracker

_DOMINANT = 2.0
"""A face of at least twice the area of the next one is meant."""
_MARGIN = 0.25
_MAX_SIDE_PX = 1024
_SMALL_PX = 80
_TURNED_DEG = 25.0


@dataclass(frozen=True, slots=True, eq=False)
class _Photo:
    """What is kept of one photo: its face alone, so that many large photos need not lie in memory at once."""

    number: int
    view: SourceView
    usefulness: float
    notices: tuple[Notice, ...]


class IdentityBuilder:
    """Makes identities of photos.

    Args:
        detector: One that looks at stills, see `STILL_SIDES_PX`.
        landmarker: Measures.
        recognizer: Says whether the photos show one person.
    """

    def __init__(
        self, detector: FaceDetector, landmarker: FaceLandmarker, recognizer: FaceRecognizer
    ) -> None:
        self._detector = detector
        self._landmarker = landmarker
        self._recognizer = recognizer

    def build(
        self, photos: Iterable[Picture], label: str, *, face: int | None = None
    ) -> tuple[Identity, tuple[Notice, ...]]:
        """Make one identity of one or more photos of one person.

        Args:
            photos: At least one; taken one after the other, and not kept.
            label: What the identity is called, in errors and notices too.
            face: Which face of each photo, from 1, left to right (ties top to bottom); `None` is the one that is
                clearly meant.

        Returns:
            The identity, its best view first, and what a person should know of the photos.

        Raises:
            NoFaceInSourceError: A photo shows no face, or fewer than `face` says.
            AmbiguousSourceError: A photo shows several faces, none of them clearly meant.
            SourcesDisagreeError: The photos show different people, and no one of them most often.
        """
        measured = [
            self._measured(photo, f"photo {number} of the {label}", number=number, face=face)
            for number, photo in enumerate(photos, start=1)
        ]
        kept, dropped = _one_person(measured, label)
        kept.sort(key=lambda photo: photo.usefulness, reverse=True)
        shares = _shares(kept)
        notices = [*dropped, *_told_shares(kept, shares, label)]
        notices += [notice for photo in kept for notice in photo.notices]
        return _identity(kept, shares, label), tuple(notices)

    def faces(self, picture: Picture) -> tuple[tuple[Face, ...], Face | None]:
        """The faces of a photo, and the one of them that `build` takes.

        Returns:
            The faces, left to right, ties top to bottom; the one that is clearly meant, where one is.
        """
        found = self._found(picture)
        return found, _dominant(found)

    def _measured(self, picture: Picture, name: str, *, number: int, face: int | None) -> _Photo:
        meant, notices = _meant(self._found(picture), name, face)
        assert meant.embedding is not None
        return _Photo(
            number=number,
            view=_view(picture, meant, meant.embedding),
            usefulness=usefulness(picture, meant),
            notices=(*notices, *_warnings(name, meant)),
        )

    def _found(self, picture: Picture) -> tuple[Face, ...]:
        """The faces as every still's are found, so that a number means the same face everywhere."""
        still = Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        tracker = FaceTracker(self._detector, self._landmarker, self._recognizer)
        return tracker.track((still,))[0].faces


def _meant(faces: Sequence[Face], name: str, number: int | None) -> tuple[Face, tuple[Notice, ...]]:
    """The face of a photo that is meant, and what is to be known of the others."""
    if not faces:
        raise NoFaceInSourceError(
            f"{name} shows no face that can be found; "
            "use one that shows the face from the front, sharp and at least 80 pixels wide"
        )
    if number is not None:
        if number > len(faces):
            raise NoFaceInSourceError(
                f"{name} shows {len(faces)} faces, so there is no face {number}; "
                "they are counted from 1, left to right"
            )
        return faces[number - 1], ()
    meant = _dominant(faces)
    if meant is None:
        raise AmbiguousSourceError(
            f"{name} shows {len(faces)} faces; crop it to the one that you mean, or give its number"
        )
    if len(faces) == 1:
        return meant, ()
    text = f"{name} shows {len(faces)} faces; the largest one is used"
    return meant, (Notice("face.others_ignored", text),)


def _dominant(faces: Sequence[Face]) -> Face | None:
    by_area = sorted(faces, key=_area, reverse=True)
    if not by_area or (len(by_area) > 1 and _area(by_area[0]) < _DOMINANT * _area(by_area[1])):
        return None
    return by_area[0]


def _area(face: Face) -> float:
    x0, y0, x1, y1 = face.bbox_xyxy.tolist()
    return float(max(0.0, x1 - x0) * max(0.0, y1 - y0))


def _one_person(photos: Sequence[_Photo], label: str) -> tuple[list[_Photo], list[Notice]]:
    """The photos that agree with what most of them agree on.

    The photo that most others agree with is the center (among equals the first), the mean of those is the consensus:
    a mean of several photos knows a face better than any one of them, so a hard photo is judged by it.
    """
    embeddings = np.stack([photo.view.normed_embedding for photo in photos])
    cosines = embeddings @ embeddings.T
    agrees = cosines >= SAME_PERSON_COSINE
    center = int(np.argmax(agrees.sum(1)))
    consensus = normed(embeddings[agrees[center]].mean(0))
    belongs = embeddings @ consensus >= SAME_PERSON_COSINE
    belongs[center] = True
    kept = [photo for photo, is_same in zip(photos, belongs, strict=True) if is_same]
    if 2 * len(kept) <= len(photos):
        raise SourcesDisagreeError(
            f"the {len(photos)} photos of the {label} show different people, at most {len(kept)} of them the same; "
            "give photos of one person only"
        )
    notices = [
        Notice(
            "face.another_person",
            f"photo {photo.number} of the {label} seems to show another person than the rest and is left out",
        )
        for photo, is_same in zip(photos, belongs, strict=True)
        if not is_same
    ]
    return kept, notices


def _shares(photos: Sequence[_Photo]) -> FloatArray:
    """How much each photo counts: by its usefulness; together 1."""
    useful = np.array([max(photo.usefulness, 1e-6) for photo in photos])
    return np.asarray(useful / useful.sum(), np.float32)


def _told_shares(photos: Sequence[_Photo], shares: FloatArray, label: str) -> list[Notice]:
    if len(photos) == 1:
        return []
    by_number = sorted(zip(photos, shares, strict=True), key=lambda pair: pair[0].number)
    told = ", ".join(f"photo {photo.number}: {share:.0%}" for photo, share in by_number)
    return [Notice("face.photo_shares", f"what each photo adds to the {label}: {told}")]


def _identity(photos: Sequence[_Photo], shares: FloatArray, label: str) -> Identity:
    views = tuple(photo.view for photo in photos)
    embeddings = np.stack([view.normed_embedding for view in views])
    mean = normed(np.asarray(shares @ embeddings, np.float32))
    return Identity(id=_id_of(views), label=label, views=views, normed_embedding=mean)


def usefulness(picture: Picture, face: Face) -> float:
    """How much a photo tells of a measured face: whole, frontal, large and sharp ones most; 0 to 1."""
    landmarks = _landmarks(face)
    whole = share_inside(landmarks, picture.size_wh)
    frontal = float(np.cos(np.deg2rad(yaw_deg(landmarks))))
    size = min(1.0, face_size_px(landmarks) / 256)
    return whole**2 * frontal**2 * size * (0.5 + 0.5 * _sharpness(picture, face))


def _landmarks(face: Face) -> FloatArray:
    assert face.landmarks is not None
    return face.landmarks


def _sharpness(picture: Picture, face: Face) -> float:
    """0 to 1 from the strength of edges in the face, seen at one size."""
    box = _crop_box(picture, face)
    gray = cv2.cvtColor(picture.read(box, (256, 256)), cv2.COLOR_RGB2GRAY)
    return float(min(1.0, cv2.Laplacian(gray, cv2.CV_32F).std() / 12))


def _warnings(name: str, face: Face) -> list[Notice]:
    notices = []
    if yaw_deg(_landmarks(face)) > _TURNED_DEG:
        text = f"the face in {name} is turned far to a side; a frontal photo looks better"
        notices.append(Notice("face.source_turned", text))
    if (size := face_size_px(_landmarks(face))) < _SMALL_PX:
        text = f"the face in {name} is only {size:.0f} pixels wide; a larger one is sharper"
        notices.append(Notice("face.source_small", text))
    return notices


def _crop_box(picture: Picture, face: Face) -> PixelBox:
    points = _landmarks(face)[:MESH_POINTS, :2]
    low, high = points.min(0), points.max(0)
    pad = _MARGIN * float((high - low).max())
    x0, y0 = np.floor(low - pad).astype(int).tolist()
    x1, y1 = np.ceil(high + pad).astype(int).tolist()
    return PixelBox(x0, y0, x1, y1).clipped_to(picture.size_wh)


def _view(picture: Picture, face: Face, embedding: FloatArray) -> SourceView:
    box = _crop_box(picture, face)
    scale = min(1.0, _MAX_SIDE_PX / max(box.size_wh))
    w, h = (max(1, round(side * scale)) for side in box.size_wh)
    points = (_landmarks(face) - np.array([box.x0, box.y0, 0], np.float32)) * np.float32(scale)
    return SourceView(
        crop=picture.read(box, (w, h)),
        landmarks=points.astype(np.float32),
        normed_embedding=embedding,
    )


def _id_of(views: Sequence[SourceView]) -> IdentityId:
    digest = hashlib.sha256()
    for view in views:
        digest.update(view.crop.tobytes())
    return IdentityId(digest.hexdigest()[:16])
