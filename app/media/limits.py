"""How much of a file we are willing to decode, decided from its header."""

from dataclasses import dataclass

from app.core.errors import BadDimensionsError, MediaTooLargeError


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaLimits:
    """The budget of one file.

    Attributes:
        max_still_pixels: Width times height of a still.
        max_side_px: Longest side of a still or video.
        max_duration_s: Longest video.
        max_streams: Most streams of all kinds in one file.
        max_frames: Most frames of a video; `None` leaves it to `max_duration_s`.
        max_animation_frames: Most frames of an animated picture.
    """

    max_still_pixels: int = 100_000_000
    max_side_px: int = 8192
    max_duration_s: float = 36_000.0
    max_streams: int = 64
    max_frames: int | None = None
    max_animation_frames: int = 100_000

    def check_size(self, size_wh: tuple[int, int]) -> None:
        """Refuse a picture or video by its sides.

        Raises:
            BadDimensionsError: A side is not positive.
            MediaTooLargeError: A side is over `max_side_px`.
        """
        w, h = size_wh
        if w <= 0 or h <= 0:
            raise BadDimensionsError(f"size: got {w} x {h} pixels, wanted both above 0")
        if max(w, h) > self.max_side_px:
            raise MediaTooLargeError(
                f"size: got {w} x {h} pixels, at most {self.max_side_px} a side is allowed; scale it down first"
            )

    def check_still(self, size_wh: tuple[int, int]) -> None:
        """Refuse a still by its sides and its area.

        Raises:
            BadDimensionsError: A side is not positive.
            MediaTooLargeError: A side is over `max_side_px`, or the area over `max_still_pixels`.
        """
        self.check_size(size_wh)
        pixels = size_wh[0] * size_wh[1]
        if pixels > self.max_still_pixels:
            raise MediaTooLargeError(
                f"area: got {pixels} pixels, at most {self.max_still_pixels} are allowed; scale it down first"
            )

    def check_length(self, duration_s: float | None, frames: int | None) -> None:
        """Refuse a video by its length, as far as its header tells it.

        Raises:
            MediaTooLargeError: It is longer than `max_duration_s` or `max_frames`.
        """
        if duration_s is not None and duration_s > self.max_duration_s:
            raise MediaTooLargeError(
                f"length: got {duration_s:.0f} s, at most {self.max_duration_s:.0f} s are allowed; cut it first"
            )
        if self.max_frames is not None and frames is not None and frames > self.max_frames:
            raise MediaTooLargeError(
                f"length: got {frames} frames, at most {self.max_frames} are allowed; cut it first"
            )

    def check_animation(self, frames: int) -> None:
        """Refuse an animated picture by its length, or by as much of it as was counted.

        Raises:
            MediaTooLargeError: It has more than `max_animation_frames`.
        """
        if frames > self.max_animation_frames:
            raise MediaTooLargeError(
                f"length: got at least {frames} frames, at most {self.max_animation_frames} are allowed in an "
                "animation; cut it first"
            )

    def check_streams(self, count: int) -> None:
        """Refuse a file with too many streams.

        Raises:
            MediaTooLargeError: There are more than `max_streams`.
        """
        if count > self.max_streams:
            raise MediaTooLargeError(
                f"streams: got {count}, at most {self.max_streams} are allowed; remove some first"
            )


DEFAULT_LIMITS = MediaLimits()
"""What holds when an operator has set nothing."""
