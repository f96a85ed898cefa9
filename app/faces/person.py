"""People of a still or a video: one entry a person, however often they come and go."""

from dataclasses import dataclass

from app.core.types import FloatArray, RgbImage, check_shape


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Place:
    """Where and when a person was seen.

    Attributes:
        time_s: Presentation time of the looked-at frame, seconds; 0 in a still.
        bbox_xyxy: `(4,)` float32, the face's box in pixels of the upright picture.
        file: Which of several files that were looked at together, from 0.
    """

    time_s: float
    bbox_xyxy: FloatArray
    file: int = 0

    def __post_init__(self) -> None:
        check_shape("bbox_xyxy", self.bbox_xyxy, (4,))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Person:
    """One person as a sparse look through a file found them.

    Attributes:
        number: From 1: by first appearance, ties left to right, then top to bottom.
        thumbnail: `(s, s, 3)` uint8 RGB, s at most 256: the best view, with some of its surroundings.
        normed_embeddings: `(k, n)` float32, rows of unit length: one to several good views, the best first.
        first_s: When the person is seen first, seconds.
        last_s: When last.
        share: Part of the looked-at frames that show the person, 0 to 1.
        size_range_px: Widths of the smallest and the largest face box.
        places: Where the person was seen, by time.
    """

    number: int
    thumbnail: RgbImage
    normed_embeddings: FloatArray
    first_s: float
    last_s: float
    share: float
    size_range_px: tuple[float, float]
    places: tuple[Place, ...]

    def __post_init__(self) -> None:
        check_shape("thumbnail", self.thumbnail, (None, None, 3))
        check_shape("normed_embeddings", self.normed_embeddings, (None, None))
