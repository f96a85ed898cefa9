"""Frames, faces and the batches in which faces go through networks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NewType

import numpy as np
from numpy.typing import NDArray

from app.core.picture import Picture

RgbImage = NDArray[np.uint8]
FloatArray = NDArray[np.float32]

IdentityId = NewType("IdentityId", str)
TrackId = NewType("TrackId", int)

Template = Literal["arcface_112", "arcface_128", "ffhq_512", "native"]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know of a result that was made all the same; `code` is stable."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CropSpec:
    """The square that a model wants to see.

    Attributes:
        template: `native` is an upright cut-out at the picture's own resolution, whose corner lies on
            whole pixels, so that putting it back resamples nothing; any other name is a template of five points.
        size_px: Side of the crop; for `native` the step to which sides are rounded up.
        margin: `native` only: what to add around the face's landmarks on each side, in face sizes.
    """

    template: Template
    size_px: int
    margin: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SourceView:
    """One photo of a source face.

    Attributes:
        crop: `(h, w, 3)` uint8 RGB around the face, at the photo's own resolution; ends where the photo does.
        landmarks: `(478, 3)` float32 in pixels of `crop`, z at the same scale, smaller is nearer.
        normed_embedding: `(k,)` float32 of unit length, by which people are told apart.
        embeddings: What else recognizers say of the photo, by the recognizer's id: `(k,)` float32 as its network
            gives it, its length not made one. Made only where somebody asks for it.
    """

    crop: RgbImage
    landmarks: FloatArray
    normed_embedding: FloatArray
    embeddings: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_shape("crop", self.crop, (None, None, 3))
        check_shape("landmarks", self.landmarks, (478, 3))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Identity:
    """A face to put on: what a person gave us, not yet what one network makes of it.

    Each processor derives its own material from the views (a texture atlas, a latent) and keeps it by `id`,
    so that an identity needs no knowledge of the processors.

    Attributes:
        views: One or more photos of the same person, the most useful first.
        normed_embedding: `(k,)` float32 of unit length, the views' mean.
    """

    id: IdentityId
    label: str
    views: tuple[SourceView, ...]
    normed_embedding: FloatArray

    def __post_init__(self) -> None:
        if not self.views:
            raise ValueError("an identity needs at least one view")

    def embedding_by(self, recognizer: str) -> FloatArray:
        """What one recognizer says of the person: the mean of its views, each of unit length, made one again.

        Args:
            recognizer: The recognizer's id.

        Returns:
            `(k,)` float32 of unit length.

        Raises:
            ValueError: The views were not shown to this recognizer.
        """
        vectors = [view.embeddings.get(recognizer) for view in self.views]
        if any(vector is None for vector in vectors):
            raise ValueError(f"the identity's views have no embedding of {recognizer!r}")
        unit = [
            vector / max(float(np.linalg.norm(vector)), 1e-12)
            for vector in vectors
            if vector is not None
        ]
        mean = np.mean(unit, axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Face:
    """One face in one picture; all coordinates are pixels of the upright picture.

    Attributes:
        bbox_xyxy: `(4,)` float32; may reach beyond the picture.
        kps: `(5, 2)` float32: eye at the viewer's left, eye at the viewer's right, nose tip, mouth corners left, right,
            as seen with the face upright.
        det_score: Confidence of the detector, 0 to 1.
        landmarks: `(478, 3)` float32: 468 mesh points and 2 x 5 iris points; z at the scale of x, smaller is nearer.
        embedding: `(k,)` float32 of unit length, where somebody asked for it; k is 128 with the embedded recognizer.
        track_id: The same for one person along a shot.
        identity: The face to put on; `None` puts none on.
        is_blurred: To be made unrecognizable.
        who: How results call the person, where somebody chose what happens to them.
        is_changed: Its pixels are no longer those of the file.
    """

    bbox_xyxy: FloatArray
    kps: FloatArray
    det_score: float
    landmarks: FloatArray | None = None
    embedding: FloatArray | None = None
    track_id: TrackId | None = None
    identity: Identity | None = None
    is_blurred: bool = False
    who: str | None = None
    is_changed: bool = False

    def __post_init__(self) -> None:
        check_shape("bbox_xyxy", self.bbox_xyxy, (4,))
        check_shape("kps", self.kps, (5, 2))
        if self.landmarks is not None:
            check_shape("landmarks", self.landmarks, (478, 3))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Frame:
    """One picture of a video, or the one picture of a still.

    Attributes:
        index: Position among the decoded frames, from 0.
        pts: Presentation time in units of `time_base`.
        faces_swapped: How many faces were really changed in `picture`.
        is_cut: Nothing is carried over from the frame before.
    """

    index: int
    pts: int
    time_base: Fraction
    picture: Picture
    faces: tuple[Face, ...] = ()
    faces_swapped: int = 0
    is_cut: bool = False

    @property
    def time_s(self) -> float:
        """Presentation time in seconds."""
        return float(self.pts * self.time_base)


Window = tuple[Frame, ...]
"""Consecutive frames that go through the stages together."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FaceBatch:
    """Aligned faces of many people and many frames, one row a face.

    Attributes:
        crops: `(n, S, S, 3)` uint8 RGB.
        masks: `(n, S, S)` float32, 0 to 1: how much of the crop is to be put back.
        affine: `(n, 2, 3)` float32 from picture pixels to crop pixels.
        landmarks: `(n, 478, 3)` float32 in crop pixels.
        identities: The face to put on, one a row, or none at all where nobody's is.
        track_ids: One a row, or none at all. Rows of one track are in the order of time and never in two batches of
            one window, so that a processor may carry something over from row to row.
    """

    crops: RgbImage
    masks: FloatArray
    affine: FloatArray
    landmarks: FloatArray
    identities: tuple[Identity, ...] = field(default=())
    track_ids: tuple[TrackId | None, ...] = field(default=())

    def __post_init__(self) -> None:
        n, side = self.crops.shape[0], self.crops.shape[1]
        check_shape("crops", self.crops, (n, side, side, 3))
        check_shape("masks", self.masks, (n, side, side))
        check_shape("affine", self.affine, (n, 2, 3))
        check_shape("landmarks", self.landmarks, (n, 478, 3))
        if self.identities and len(self.identities) != n:
            raise ValueError(f"identities: got {len(self.identities)} rows, wanted {n} or none")
        if self.track_ids and len(self.track_ids) != n:
            raise ValueError(f"track_ids: got {len(self.track_ids)} rows, wanted {n} or none")

    def __len__(self) -> int:
        return len(self.crops)


def check_shape(name: str, array: NDArray[np.generic], shape: Sequence[int | None]) -> None:
    """Refuse an array whose shape is not the promised one; `None` stands for any length.

    Raises:
        ValueError: Naming the field, the shape got and the shape wanted.
    """
    fits = array.ndim == len(shape) and all(
        wanted is None or got == wanted for got, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted_text = tuple("any" if side is None else side for side in shape)
        raise ValueError(f"{name}: got shape {array.shape}, wanted {wanted_text}")
