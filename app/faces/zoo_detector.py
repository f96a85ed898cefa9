"""Detectors of the public zoo: YOLOFace and SCRFD, on the contracts that their authors published.

Both see the picture in the top left corner of a black square and propose boxes with five points.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isqrt
from types import MappingProxyType
from typing import Final

import numpy as np

from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face
from app.faces.detector import FaceDetector, Proposals
from app.faces.turning import TurningDetector
from app.inference.feeds import picture_feed
from app.inference.spec import ModelId, ModelZoo, Outputs

Decode = Callable[[Outputs, float], list[Proposals]]

_BATCH = 8
_STRIDES_PX = (8, 16, 32)
_ANCHORS = 2
_SURE_SCORE = 0.7
"""What is scored so high is a face: on 73 faces of 26 stills SCRFD scores 0.55 to 0.9, nine in ten above 0.7, and a
dog 0.44. Not measured with YOLOFace, whose weights are not at hand."""
_OUR_SCORES = (0.6, 0.9)
"""The embedded detector's lowest score, and the one from which it is sure; what comes later goes by these."""


class ZooDetector(FaceDetector):
    """Finds faces with a network of the zoo; see `FaceDetector`. Scores are put on the embedded detector's scale.

    Args:
        zoo: Has the model.
        model_id: Of the detector; its entry tells the side of the square and how pixels become numbers.
        decode: Reads its outputs; by the entry's adapter without it.
        min_score: Finds below are dropped.
        max_overlap: Of two finds that overlap by more the weaker is dropped.

    Raises:
        MissingModelError: The model is not installed.
    """

    def __init__(
        self,
        zoo: ModelZoo,
        model_id: ModelId,
        decode: Decode | None = None,
        *,
        min_score: float = 0.5,
        max_overlap: float = 0.4,
    ) -> None:
        self._contract = zoo.spec(model_id).input
        crop = zoo.spec(model_id).crop
        self._side_px = 640 if crop is None else crop.size
        self._session = zoo.session(model_id)
        self._decode = decode or DECODERS[zoo.spec(model_id).adapter]
        self._min_score = min_score
        self._max_overlap = max_overlap

    def detect(
        self, pictures: Sequence[Picture], *, sides_px: Sequence[int] | None = None
    ) -> list[tuple[Face, ...]]:
        """Find the faces of each picture; see `FaceDetector.detect`. The network's side is fixed, whatever is asked."""
        found: list[tuple[Face, ...]] = []
        for start in range(0, len(pictures), _BATCH):
            found += self._found_in(pictures[start : start + _BATCH])
        return found

    def _found_in(self, pictures: Sequence[Picture]) -> list[tuple[Face, ...]]:
        squares = np.zeros((len(pictures), self._side_px, self._side_px, 3), np.uint8)
        scales = []
        for square, picture in zip(squares, pictures, strict=True):
            # Never enlarged: the detector knows small faces.
            image, scale = picture.thumbnail(min(self._side_px, max(picture.size_wh)))
            square[: image.shape[0], : image.shape[1]] = image
            scales.append(scale)
        feeds = {self._contract.name: picture_feed(squares, self._contract)}
        proposals = self._decode(self._session.run(feeds), self._min_score)
        return [
            self._faces(_rescored(each.scaled(1 / scale), self._min_score))
            for each, scale in zip(proposals, scales, strict=True)
        ]


class TurningZooDetector(TurningDetector, ZooDetector):
    """One for stills: looks at the picture in other turns too, see `TurningDetector`."""


def _rescored(proposals: Proposals, min_score: float) -> Proposals:
    scores = np.interp(proposals.scores, (min_score, _SURE_SCORE, 1), (*_OUR_SCORES, 1))
    return Proposals(proposals.boxes, proposals.kps, scores.astype(np.float32))


def decode_yoloface(outputs: Outputs, min_score: float) -> list[Proposals]:
    """Read YOLOFace's output: middle, size, score and five points with a certainty each, by proposal.

    Args:
        outputs: One, `(n, 20, proposals)`.
        min_score: Proposals below are left out.

    Returns:
        One set a picture, in pixels of the network's input.
    """
    (table,) = outputs.values()
    found = []
    for columns in np.asarray(table, np.float32):
        rows = columns.T[columns[4] >= min_score]
        middles, halves = rows[:, :2], rows[:, 2:4] / 2
        boxes = np.concatenate([middles - halves, middles + halves], axis=1)
        kps = rows[:, 5:20].reshape(-1, 5, 3)[..., :2]
        found.append(Proposals(boxes, np.ascontiguousarray(kps), rows[:, 4]))
    return found


def decode_scrfd(outputs: Outputs, min_score: float) -> list[Proposals]:
    """Read SCRFD's nine outputs: scores, then distances to the box's sides, then to the points, for three strides.

    Args:
        outputs: Each `(n, cells * 2, k)`, in the network's order; a square input.
        min_score: Proposals below are left out.

    Returns:
        One set a picture, in pixels of the network's input.
    """
    tables = [np.asarray(table, np.float32) for table in outputs.values()]
    found: list[list[Proposals]] = [[] for _ in tables[0]]
    for level, stride in enumerate(_STRIDES_PX):
        scores, sides, points = tables[level], tables[level + 3], tables[level + 6]
        middles = _anchors(scores.shape[1], stride)
        for row, parts in enumerate(found):
            chosen = scores[row, :, 0] >= min_score
            boxes, kps = _placed(middles[chosen], sides[row][chosen], points[row][chosen], stride)
            parts.append(Proposals(boxes, kps, scores[row, chosen, 0]))
    return [Proposals.joined(parts) for parts in found]


DECODERS: Final[Mapping[str, Decode]] = MappingProxyType(
    {"yoloface": decode_yoloface, "scrfd": decode_scrfd}
)
"""By the manifest's `adapter`."""


def _anchors(count: int, stride: int) -> FloatArray:
    """The corner of each cell, twice, `(count, 2)`, pixels."""
    across = isqrt(count // _ANCHORS)
    y, x = np.mgrid[:across, :across]
    cells = np.stack([x, y], axis=-1).reshape(-1, 2) * stride
    return np.repeat(cells, _ANCHORS, axis=0).astype(np.float32)


def _placed(
    middles: FloatArray, sides: FloatArray, points: FloatArray, stride: int
) -> tuple[FloatArray, FloatArray]:
    """Boxes and points of distances in strides from the anchors."""
    low, high = middles - sides[:, :2] * stride, middles + sides[:, 2:] * stride
    return np.concatenate([low, high], axis=1), middles[:, None] + points.reshape(-1, 5, 2) * stride
