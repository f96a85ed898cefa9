"""Finding faces: boxes, scores and five key points, in batches.

The network is YuNet (Wu et al. 2023, "YuNet: A Tiny Millisecond-level Face Detector"); it has no anchors, each cell of
three grids proposes one face.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.geometry import FloatArray, bbox_iou
from app.core.picture import Picture
from app.core.types import Face, RgbImage
from app.inference.spec import ModelId, ModelZoo, Outputs

MODEL = ModelId("yunet")
VIDEO_SIDES_PX = (640,)
STILL_SIDES_PX = (640, 1280)

_STRIDES = (8, 16, 32)
_GRID_PX = 32
_BATCH = 8


@dataclass(frozen=True, slots=True)
class _Proposals:
    """Faces of one picture before overlapping ones are dropped: `(n, 4)`, `(n, 5, 2)`, `(n,)`."""

    boxes: FloatArray
    kps: FloatArray
    scores: FloatArray

    def taken(self, rows: FloatArray | list[int]) -> "_Proposals":
        return _Proposals(self.boxes[rows], self.kps[rows], self.scores[rows])


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
            One tuple a picture, left to right, ties top to bottom; boxes and points in picture pixels.
        """
        finds: list[list[_Proposals]] = [[] for _ in pictures]
        for side_px in sides_px or self._sides_px:
            for index, proposals in self._looked_at(pictures, side_px):
                finds[index].append(proposals)
        return [self._faces(_joined(parts)) if parts else () for parts in finds]

    def _looked_at(
        self, pictures: Sequence[Picture], side_px: int
    ) -> Iterator[tuple[int, _Proposals]]:
        thumbnails = [picture.thumbnail(side_px) for picture in pictures]
        groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, (image, _) in enumerate(thumbnails):
            groups[image.shape].append(index)
        for members in groups.values():
            for start in range(0, len(members), _BATCH):
                batch = members[start : start + _BATCH]
                feed = _network_input([thumbnails[index][0] for index in batch])
                outputs = self._session.run({"input": feed})
                scales = [thumbnails[index][1] for index in batch]
                found = decode(outputs, feed.shape[3], scales, self._min_score)
                yield from zip(batch, found, strict=True)

    def _faces(self, proposals: _Proposals) -> tuple[Face, ...]:
        kept = proposals.taken(
            non_maximum_suppression(proposals.boxes, proposals.scores, self._max_overlap)
        )
        faces = (
            Face(bbox_xyxy=box, kps=kps, det_score=float(score))
            for box, kps, score in zip(kept.boxes, kept.kps, kept.scores, strict=True)
        )
        return in_reading_order(faces)


