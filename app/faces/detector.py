"""Finding faces: boxes, scores and five key points, in batches.

The network is YuNet (Wu, Peng, Yu 2023, "YuNet: A Tiny Millisecond-level Face Detector"). It has no anchors: each cell
of three grids proposes one face.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray, bbox_iou
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.inference.spec import ModelId, ModelZoo, Outputs

MODEL = ModelId("yunet")
VIDEO_SIDES_PX = (640,)
STILL_SIDES_PX = (320, 640, 1920)

_STRIDES_PX = (8, 16, 32)
_BATCH = 8
_LARGE_PX = 384
"""Faces that look larger are left to the coarser look: closely seen, an eye or a lapel passes for a face."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """Possible faces, overlapping ones included.

    Attributes:
        boxes: `(n, 4)` float32 x0, y0, x1, y1.
        kps: `(n, 5, 2)` float32.
        scores: `(n,)` float32, 0 to 1.
    """

    boxes: FloatArray
    kps: FloatArray
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)

    def taken(self, rows: NDArray[np.generic]) -> "Proposals":
        """Some rows, by index or by mask."""
        return Proposals(self.boxes[rows], self.kps[rows], self.scores[rows])

    def scaled(self, factor: float) -> "Proposals":
        """The same faces in a picture of another size."""
        return Proposals(self.boxes * factor, self.kps * factor, self.scores)

    @classmethod
    def joined(cls, parts: Sequence["Proposals"]) -> "Proposals":
        """The rows of all parts."""
        return cls(
            np.concatenate([part.boxes for part in parts]),
            np.concatenate([part.kps for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class _Look:
    """One picture at one size: its number, its pixels, their scale, and the largest face to believe in."""

    index: int
    image: RgbImage
    scale: float
    max_px: float


class FaceDetector:
    """Finds faces in many pictures at once.

    Args:
        zoo: Has the model `yunet`.
        sides_px: Long side of the picture as the network sees it; with several, the picture is looked at
            several times and the finds are merged.
        min_score: Finds below are dropped.
        max_overlap: Of two finds that overlap by more (intersection over union) the weaker is dropped.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(
        self,
        zoo: ModelZoo,
        *,
        sides_px: Sequence[int] = VIDEO_SIDES_PX,
        min_score: float = 0.6,
        max_overlap: float = 0.3,
    ) -> None:
        self._session = zoo.session(MODEL)
        self._sides_px = tuple(sides_px)
        self._min_score = min_score
        self._max_overlap = max_overlap

    def detect(
        self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
    ) -> list[tuple[Face, ...]]:
        """Find the faces of each picture.

        Args:
            pictures: Any sizes; those of one size share network calls.
            sides_px: Overrides the detector's own sides, for these pictures.

        Returns:
            One tuple a picture, in reading order; boxes and points in picture pixels.
        """
        finds: list[list[Proposals]] = [[] for _ in pictures]
        for index, proposals in self._looks(pictures, sides_px or self._sides_px):
            finds[index].append(proposals)
        return [self._faces(Proposals.joined(parts)) for parts in finds]

    def _looks(
        self, pictures: Sequence[Picture], sides_px: Sequence[int]
    ) -> Iterator[tuple[int, Proposals]]:
        groups: dict[tuple[int, ...], list[_Look]] = defaultdict(list)
        for index, picture in enumerate(pictures):
            for look in _looks_at(index, picture, sides_px):
                groups[look.image.shape].append(look)
        for group in groups.values():
            for start in range(0, len(group), _BATCH):
                yield from self._one_call(group[start : start + _BATCH])

    def _one_call(self, looks: Sequence[_Look]) -> Iterator[tuple[int, Proposals]]:
        feed = network_input([look.image for look in looks])
        outputs = self._session.run({"input": feed})
        found = decode(outputs, width_px=feed.shape[3], min_score=self._min_score)
        for look, proposals in zip(looks, found, strict=True):
            sides = (proposals.boxes[:, 2:] - proposals.boxes[:, :2]).max(1, initial=0)
            yield look.index, proposals.taken(sides <= look.max_px).scaled(1 / look.scale)

    def _faces(self, proposals: Proposals) -> tuple[Face, ...]:
        kept = proposals.taken(strongest(proposals, self._max_overlap))
        rows = zip(kept.boxes, kept.kps, kept.scores, strict=True)
        return in_reading_order(
            Face(bbox_xyxy=box, kps=kps, det_score=float(score)) for box, kps, score in rows
        )


def _looks_at(index: int, picture: Picture, sides_px: Sequence[int]) -> Iterator[_Look]:
    """The sizes at which a picture is seen; it is never enlarged, so two sides may come to one look."""
    sides = sorted({min(side, max(picture.size_wh)) for side in sides_px})
    for side_px in sides:
        image, scale = picture.thumbnail(side_px)
        yield _Look(index, image, scale, np.inf if side_px == sides[0] else _LARGE_PX)


def in_reading_order(faces: Iterable[Face]) -> tuple[Face, ...]:
    """Left to right by the middles of the boxes in whole pixels, ties top to bottom."""

    def place(face: Face) -> tuple[int, float]:
        x0, y0, x1, y1 = face.bbox_xyxy.tolist()
        return round((x0 + x1) / 2), (y0 + y1) / 2

    return tuple(sorted(faces, key=place))


def network_input(images: Sequence[RgbImage]) -> FloatArray:
    """Stack pictures of one size for YuNet.

    Args:
        images: `(h, w, 3)` uint8 RGB each.

    Returns:
        `(N, 3, H, W)` float32 BGR, 0 to 255; H and W are the next multiples of 32, zeros at the right and bottom.
    """
    h, w = images[0].shape[:2]
    cell = max(_STRIDES_PX)
    feed = np.empty((len(images), 3, h + -h % cell, w + -w % cell), np.float32)
    feed[:, :, h:], feed[:, :, :, w:] = 0, 0
    for row, image in zip(feed, images, strict=True):
        # Split first: reading every third byte takes ten times as long.
        for plane, channel in zip(row, cv2.split(image)[::-1], strict=True):
            plane[:h, :w] = channel
    return feed


def decode(outputs: Outputs, *, width_px: int, min_score: float) -> list[Proposals]:
    """What the network's grids propose.

    Args:
        outputs: `cls_s`, `obj_s` `(N, cells, 1)`, `bbox_s` `(N, cells, 4)`, `kps_s` `(N, cells, 10)` for the strides s.
        width_px: Width of the network's input.
        min_score: Proposals below are left out.

    Returns:
        One set a picture, in pixels of the network's input.

    Source: OpenCV's `face_detect.cpp` (`FaceDetectorYN`, Apache-2.0) for the meaning of the outputs.
    """
    batch = len(outputs["cls_8"])
    parts = [_decode_stride(outputs, s, width_px // s, min_score) for s in _STRIDES_PX]
    return [
        Proposals.joined([proposals.taken(pictures == index) for pictures, proposals in parts])
        for index in range(batch)
    ]


def _decode_stride(
    outputs: Mapping[str, NDArray[np.generic]], stride: int, columns: int, min_score: float
) -> tuple[NDArray[np.intp], Proposals]:
    """Proposals of one grid for all pictures, and to which picture each belongs."""
    named = {
        name: np.asarray(outputs[f"{name}_{stride}"], np.float32)
        for name in ("cls", "obj", "bbox", "kps")
    }
    scores = np.sqrt(np.clip(named["cls"][..., 0], 0, 1) * np.clip(named["obj"][..., 0], 0, 1))
    pictures, cells = np.nonzero(scores > min_score)
    corner = np.stack([cells % columns, cells // columns], axis=1).astype(np.float32)
    box = named["bbox"][pictures, cells]
    center = corner + box[:, :2]
    half = np.exp(box[:, 2:]) / 2
    kps = named["kps"][pictures, cells].reshape(-1, 5, 2) + corner[:, None]
    boxes = np.concatenate([center - half, center + half], axis=1)
    return pictures, Proposals(boxes * stride, kps * stride, scores[pictures, cells])


def strongest(proposals: Proposals, max_overlap: float) -> NDArray[np.intp]:
    """Rows that are left when of any two that overlap too much the weaker goes, strongest first."""
    order = np.argsort(-proposals.scores, kind="stable")
    overlaps = bbox_iou(proposals.boxes[order], proposals.boxes[order]) > max_overlap
    alive = np.ones(len(order), bool)
    for row in range(len(order)):
        if alive[row]:
            alive[row + 1 :] &= ~overlaps[row, row + 1 :]
    return np.asarray(order[alive])
