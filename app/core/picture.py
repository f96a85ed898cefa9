"""A picture that keeps the planes it was decoded to.

Nothing outside the boxes that somebody writes is ever converted: it reaches the encoder bit for bit.
`write` adds the *change* of the patch to the planes instead of replacing them, so that a pixel which the
caller did not change comes out unchanged even inside the box, whatever chroma subsampling or rounding lies between.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import cv2
import numpy as np
from cv2.typing import MatLike
from numpy.typing import NDArray

from app.core.color import ColorConversion, ColorTags, rgb_to_yuv_matrix, yuv_to_rgb_matrix
from app.core.planes import (
    Plane,
    add_change_inplace,
    multiplied,
    one_ahead,
    padded_to_chroma,
    part_of,
    resized,
    row_bands,
    thinned,
    to_8_bits,
)
from app.core.tone import ToneCurve, tone_curve


class PixelBox(NamedTuple):
    """Whole pixels: x0 and y0 belong to the box, x1 and y1 do not."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def size_wh(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.x1 - self.x0, self.y1 - self.y0

    def clipped_to(self, size_wh: tuple[int, int]) -> "PixelBox":
        """The part of the box inside a picture; may be empty, then `x1 <= x0` or `y1 <= y0`."""
        return PixelBox(
            max(self.x0, 0), max(self.y0, 0), min(self.x1, size_wh[0]), min(self.y1, size_wh[1])
        )

    def rows(self, part: slice) -> "PixelBox":
        """Some rows of the box, counted from its top."""
        return PixelBox(self.x0, self.y0 + part.start, self.x1, self.y0 + part.stop)

    @property
    def is_empty(self) -> bool:
        """True when no pixel lies in the box."""
        return self.x1 <= self.x0 or self.y1 <= self.y0


@dataclass(frozen=True, kw_only=True, slots=True)
class PixelFormat:
    """How the planes of a picture are laid out; `name` is FFmpeg's.

    Attributes:
        family: `yuv` has one array a plane; `rgb` one packed `(H, W, 3 or 4)` array; `gray` one `(H, W)` array,
            and a second one for alpha.
        bits: Significant bits, at the low end of the array's elements.
        chroma_shift_xy: log2 of the chroma subsampling.
    """

    name: str
    family: Literal["yuv", "rgb", "gray"]
    bits: int = 8
    chroma_shift_xy: tuple[int, int] = (0, 0)
    has_alpha: bool = False

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """Element type of the planes."""
        return np.uint8 if self.bits <= 8 else np.uint16

    def plane_shapes(self, size_wh: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
        """The shape of each plane of a picture of this size."""
        w, h = size_wh
        if self.family == "rgb":
            return ((h, w, 4 if self.has_alpha else 3),)
        if self.family == "gray":
            return ((h, w),) * (2 if self.has_alpha else 1)
        sx, sy = self.chroma_shift_xy
        chroma = (-(-h >> sy), -(-w >> sx))
        return ((h, w), chroma, chroma, *(((h, w),) if self.has_alpha else ()))


def _yuv(name: str, bits: int, shift: tuple[int, int], *, alpha: bool = False) -> PixelFormat:
    return PixelFormat(name=name, family="yuv", bits=bits, chroma_shift_xy=shift, has_alpha=alpha)


_SUBSAMPLINGS = {"420": (1, 1), "422": (1, 0), "440": (0, 1), "444": (0, 0)}

PIXEL_FORMATS: dict[str, PixelFormat] = {
    fmt.name: fmt
    for fmt in (
        *(_yuv(f"yuv{tag}p", 8, shift) for tag, shift in _SUBSAMPLINGS.items()),
        *(
            _yuv(f"yuv{tag}p{bits}le", bits, shift)
            for tag, shift in _SUBSAMPLINGS.items()
            for bits in (10, 12)
        ),
        *(_yuv(f"yuva{tag}p", 8, _SUBSAMPLINGS[tag], alpha=True) for tag in ("420", "422", "444")),
        *(
            _yuv(f"yuva{tag}p{bits}le", bits, _SUBSAMPLINGS[tag], alpha=True)
            for tag in ("422", "444")
            for bits in (10, 12)
        ),
        PixelFormat(name="rgb24", family="rgb"),
        PixelFormat(name="rgba", family="rgb", has_alpha=True),
        PixelFormat(name="rgb48le", family="rgb", bits=16),
        PixelFormat(name="rgba64le", family="rgb", bits=16, has_alpha=True),
        PixelFormat(name="gray", family="gray"),
        PixelFormat(name="gray16le", family="gray", bits=16),
        PixelFormat(name="ya8", family="gray", has_alpha=True),
        PixelFormat(name="ya16le", family="gray", bits=16, has_alpha=True),
    )
}


class Picture:
    """Native planes of one upright picture.

    Args:
        planes: One array a plane, shapes as `PixelFormat.plane_shapes`; the picture takes them over, read-only views
            of a decoder's memory are fine.
        pixel_format: Layout of the planes.
        tags: Colour tags as the file states them.
        conversion: Where the planes' RGB is not sRGB: how to get there. The planes stay in their own space; what is
            read is sRGB, and of what is written the change is brought back.

    Raises:
        ValueError: The planes do not fit the format.
    """

    __slots__ = ("conversion", "pixel_format", "planes", "tags")

    def __init__(
        self,
        planes: tuple[Plane, ...],
        pixel_format: PixelFormat,
        tags: ColorTags | None = None,
        conversion: ColorConversion | None = None,
    ) -> None:
        self.planes = planes
        self.pixel_format = pixel_format
        self.tags = tags or ColorTags()
        self.conversion = conversion
        wanted = pixel_format.plane_shapes(self.size_wh)
        if tuple(plane.shape for plane in planes) != wanted:
            raise ValueError(
                f"planes of {pixel_format.name}: got {[p.shape for p in planes]}, wanted {wanted}"
            )

    @classmethod
    def from_rgb(cls, rgb: NDArray[np.uint8]) -> "Picture":
        """A picture over `(H, W, 3)` uint8 RGB, without a copy."""
        return cls((np.ascontiguousarray(rgb),), PIXEL_FORMATS["rgb24"])

    @property
    def size_wh(self) -> tuple[int, int]:
        """Width and height of the upright picture in pixels."""
        h, w = self.planes[0].shape[:2]
        return w, h

    @property
    def box(self) -> PixelBox:
        """The whole picture as a box."""
        return PixelBox(0, 0, *self.size_wh)

    def copy(self) -> "Picture":
        """A picture of its own memory, to write into."""
        planes = tuple(plane.copy() for plane in self.planes)
        return Picture(planes, self.pixel_format, self.tags, self.conversion)

    def read(self, box: PixelBox, size_wh: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        """A part of the picture as RGB.

        Args:
            box: Whole pixels inside the picture, not empty.
            size_wh: Size to scale the part to on the way, area-true when it shrinks; native size without it.

        Returns:
            `(h, w, 3)` uint8 RGB, its own memory.

        Raises:
            ValueError: The box is empty or reaches beyond the picture.
        """
        self._check_box(box)
        own = self._read_own(box, size_wh or box.size_wh)
        return own if self.conversion is None else self.conversion.to_srgb(own)

    def read_deep(self, box: PixelBox) -> NDArray[np.uint16]:
        """A part of a picture that is not gray as `(h, w, 3)` RGB code values of 16 bits: no profile, no curve.

        Raises:
            ValueError: As `read`.
        """
        self._check_box(box)
        return np.clip(np.rint(self._code_values(box) * 257), 0, 65_535).astype(np.uint16)

    def _read_own(self, box: PixelBox, size_wh: tuple[int, int]) -> NDArray[np.uint8]:
        if self.pixel_format.family == "yuv":
            return self._read_yuv(box, size_wh)
        part = part_of(self.planes[0], box)
        rgb = part[..., :3] if self.pixel_format.family == "rgb" else np.stack([part] * 3, -1)
        curve = self._tone_curve()
        if curve is not None:
            seen = curve.seen(self._of_255(resized(cast("Plane", rgb), size_wh)))
            return np.asarray(np.clip(np.rint(seen), 0, 255), dtype=np.uint8)
        eight = to_8_bits(rgb, self.pixel_format.bits)
        scaled = resized(eight, size_wh)
        return np.ascontiguousarray(
            scaled.copy() if np.shares_memory(scaled, self.planes[0]) else scaled
        )

    def thumbnail(self, side_px: int) -> tuple[NDArray[np.uint8], float]:
        """The whole picture as RGB, its long side at most `side_px`; never enlarged.

        Returns:
            `(h, w, 3)` uint8 RGB, and the factor from picture to thumbnail pixels.
        """
        w, h = self.size_wh
        scale = min(1.0, side_px / max(w, h))
        small_wh = max(1, round(w * scale)), max(1, round(h * scale))
        return self.read(self.box, small_wh), scale

    def glimpse(self, side_px: int) -> NDArray[np.uint8]:
        """The whole picture as a rough square, to compare frames by: rows and columns are skipped before averaging.

        Each pixel is the mean of 16 places or a few more; `read` would look at every one, for the price of encoding.

        Returns:
            `(side_px, side_px, 3)` uint8 RGB.
        """
        size_wh = side_px, side_px
        if self.pixel_format.family == "yuv":
            thin = [resized(thinned(plane, side_px), size_wh) for plane in self.planes[:3]]
            return self.rgb_of(cv2.merge(thin))
        planes = tuple(thinned(plane, side_px) for plane in self.planes)
        small = Picture(planes, self.pixel_format, self.tags)
        return small.read(small.box, size_wh)

    def write(
        self, box: PixelBox, rgb: NDArray[np.uint8], alpha: NDArray[np.float32] | None = None
    ) -> None:
        """Blend a patch into this picture's planes, in place: only on a picture that `copy` made.

        Args:
            box: Whole pixels inside the picture, not empty.
            rgb: `(h, w, 3)` uint8 RGB of the box's size.
            alpha: `(h, w)` float32, 0 keeps the picture, 1 takes the patch; 1 everywhere without it.

        Raises:
            ValueError: The box or the patch does not fit.
        """
        self._check_box(box)
        if rgb.shape[:2] != box.size_wh[::-1]:
            raise ValueError(f"patch: got {rgb.shape[:2]}, wanted {box.size_wh[::-1]}")
        if self.pixel_format.family == "yuv" and any(self.pixel_format.chroma_shift_xy):
            box, rgb, alpha = self._grown_to_chroma_grid(box, rgb, alpha)
        add = self._add_yuv if self.pixel_format.family == "yuv" else self._add_rgb
        changes = (
            (
                part := box.rows(rows),
                self._change(part, rgb[rows], None if alpha is None else alpha[rows]),
            )
            for rows in row_bands(box.size_wh)
        )
        # One band ahead: where chroma is coarser, neighbors are read as they were.
        for part, change in one_ahead(changes):
            add(part, change)

    def _change(
        self, box: PixelBox, rgb: NDArray[np.uint8], alpha: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        """What a patch changes, `(h, w, 3)` in the picture's own RGB, 0 to 255."""
        before = self.read(box)
        if self.conversion is not None:
            rgb, before = self.conversion.from_srgb(rgb), self.conversion.from_srgb(before)
        change = np.asarray(cv2.subtract(rgb, before, dtype=cv2.CV_32F), np.float32)
        change = change if alpha is None else multiplied(change, alpha)
        curve = self._tone_curve()
        return change if curve is None else curve.carried_back(self._code_values(box), change)

    def _check_box(self, box: PixelBox) -> None:
        if box.is_empty or box.clipped_to(self.size_wh) != box:
            raise ValueError(f"box {tuple(box)} is empty or reaches beyond {self.size_wh}")

    def _tone_curve(self) -> ToneCurve | None:
        """What lies between an HDR picture's code values and the RGB that is read; `None` for SDR."""
        return tone_curve(self.tags.transfer) if self.pixel_format.family != "gray" else None

    def _chroma_box(self, box: PixelBox) -> PixelBox:
        sx, sy = self.pixel_format.chroma_shift_xy
        return PixelBox(box.x0 >> sx, box.y0 >> sy, -(-box.x1 >> sx), -(-box.y1 >> sy))

    def _read_yuv(self, box: PixelBox, size_wh: tuple[int, int]) -> NDArray[np.uint8]:
        return self.rgb_of(self._merged(box, size_wh))

    def rgb_of(self, merged: MatLike) -> NDArray[np.uint8]:
        """RGB, in the picture's own space, of luma and chroma that lie together, `(h, w, 3)`."""
        curve = self._tone_curve()
        if curve is None and self.pixel_format.bits == 8:
            return np.asarray(cv2.transform(merged, self._to_rgb_matrix()), dtype=np.uint8)
        rgb = self._code_values_of(merged)
        seen = rgb if curve is None else curve.seen(rgb)
        return np.asarray(np.clip(np.rint(seen), 0, 255), dtype=np.uint8)

    def _code_values(self, box: PixelBox) -> NDArray[np.float32]:
        """R'G'B' of a part as coded, 0 to 255 from black to white, neither rounded nor clipped."""
        if self.pixel_format.family == "rgb":
            return self._of_255(part_of(self.planes[0], box)[..., :3])
        return self._code_values_of(self._merged(box, box.size_wh))

    def _of_255(self, rgb: Plane) -> NDArray[np.float32]:
        return rgb.astype(np.float32) * np.float32(255 / ((1 << self.pixel_format.bits) - 1))

    def _code_values_of(self, merged: MatLike) -> NDArray[np.float32]:
        return np.asarray(cv2.transform(merged.astype(np.float32), self._to_rgb_matrix()))

    def _merged(self, box: PixelBox, size_wh: tuple[int, int]) -> MatLike:
        """Luma and chroma of a part, `(h, w, 3)`."""
        luma = resized(self.planes[0][box.y0 : box.y1, box.x0 : box.x1], size_wh)
        parts: list[MatLike] = [luma]
        for plane in self.planes[1:3]:
            if size_wh == box.size_wh:
                parts.append(self._upsampled_chroma(plane, box))
            else:
                chroma = self._chroma_box(box)
                part = plane[chroma.y0 : chroma.y1, chroma.x0 : chroma.x1]
                parts.append(resized(part, size_wh, is_fine=False))
        return cv2.merge(parts)

    def _upsampled_chroma(self, plane: Plane, box: PixelBox) -> Plane:
        """Chroma at luma resolution; read with one sample around, so that no value depends on the box's border."""
        sx, sy = self.pixel_format.chroma_shift_xy
        chroma = self._chroma_box(box)
        plane_wh = plane.shape[1], plane.shape[0]
        wide = PixelBox(chroma.x0 - 1, chroma.y0 - 1, chroma.x1 + 1, chroma.y1 + 1)
        wide = wide.clipped_to(plane_wh)
        part = plane[wide.y0 : wide.y1, wide.x0 : wide.x1]
        full = resized(part, (part.shape[1] << sx, part.shape[0] << sy))
        dx, dy = box.x0 - (wide.x0 << sx), box.y0 - (wide.y0 << sy)
        w, h = box.size_wh
        return full[dy : dy + h, dx : dx + w]

    def _to_rgb_matrix(self) -> NDArray[np.float64]:
        return yuv_to_rgb_matrix(
            self.tags.effective_matrix(self.size_wh[1]),
            is_full_range=bool(self.tags.is_full_range),
            bits=self.pixel_format.bits,
        )

    def _grown_to_chroma_grid(
        self, box: PixelBox, rgb: NDArray[np.uint8], alpha: NDArray[np.float32] | None
    ) -> tuple[PixelBox, NDArray[np.uint8], NDArray[np.float32] | None]:
        sx, sy = self.pixel_format.chroma_shift_xy
        grid = self._chroma_box(box)
        grown = PixelBox(grid.x0 << sx, grid.y0 << sy, grid.x1 << sx, grid.y1 << sy).clipped_to(
            self.size_wh
        )
        pads = box.y0 - grown.y0, grown.y1 - box.y1, box.x0 - grown.x0, grown.x1 - box.x1
        if not any(pads):
            return box, rgb, alpha
        shown = np.ones(rgb.shape[:2], np.float32) if alpha is None else np.ascontiguousarray(alpha)
        return grown, *(
            cv2.copyMakeBorder(each, *pads, cv2.BORDER_CONSTANT, value=0) for each in (rgb, shown)
        )  # type: ignore[return-value]

    def _add_yuv(self, box: PixelBox, change: NDArray[np.float32]) -> None:
        matrix = rgb_to_yuv_matrix(
            self.tags.effective_matrix(self.size_wh[1]),
            is_full_range=bool(self.tags.is_full_range),
            bits=self.pixel_format.bits,
        )
        luma, *deltas = cv2.split(cv2.transform(change, matrix[:, :3]))
        bits, chroma = self.pixel_format.bits, self._chroma_box(box)
        add_change_inplace(part_of(self.planes[0], box), luma, bits)
        for plane, delta in zip(self.planes[1:3], deltas, strict=True):
            even = padded_to_chroma(delta, *self.pixel_format.chroma_shift_xy)
            # Plane by plane: of three channels together the exact average takes four times as long.
            small = cv2.resize(even, chroma.size_wh, interpolation=cv2.INTER_AREA)
            add_change_inplace(part_of(plane, chroma), small, bits)

    def _add_rgb(self, box: PixelBox, change: NDArray[np.float32]) -> None:
        bits = self.pixel_format.bits
        change *= ((1 << bits) - 1) / 255.0
        if self.pixel_format.family == "gray":
            change = change @ np.array([0.299, 0.587, 0.114], np.float32)
            add_change_inplace(part_of(self.planes[0], box), change, bits)
        else:
            add_change_inplace(part_of(self.planes[0], box)[..., :3], change, bits)
