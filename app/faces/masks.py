"""What lies in front of a face and has to stay: a hand, a microphone, a medical mask, a bar that passes.

A masker says for each pixel of a crop how surely it shows the face itself. The embedded one goes by color: what the
cheeks, the nose and the forehead agree on is this face's skin, under this light. Something whose hue does not belong
to that skin, that begins with a clear edge, and that covers more than a speck, lies in front of it. From there it
is followed over eyes and lips too, by its own color.

How far that honestly goes: bars, cloths, masks, cups, gloves and colored or gray microphones are kept. A bare hand
has the color of the face and is not seen; neither is black hair over a bearded cheek, nor a black microphone before
a beard, nor anything in a picture without colors. It rather shows too much of the new face than eats lips, brows,
beards, make-up or shadows. A network for occlusion, where one is installed, knows better; see `network_masks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.types import FloatArray, RgbImage, TrackId

_WORK_PX = 128
_FEATURE_REACH = 0.035
"""How far around eyes, brows and lips colors are not judged by themselves, in face sizes."""

_MIN_CHROMA, _CLEAR_CHROMA = 11.0, 14.0
"""Units of 8-bit LAB; a skin nearer to gray than the first has no hue to compare with, one below the second cannot be
told from gray things."""

_COLORED = 4.0
_OPPOSITE = -0.2
_NEUTRAL = 0.25
_ODD_HUE, _MIN_ODD_HUE = 1.3, 16.0
"""Across the skin's own hue: in units of its chroma, and at least in LAB units."""

_DARK, _BRIGHT = 0.45, 1.12
"""Against the skin's lightness: beyond them a missing hue means shadow or highlight."""

_CLIPPED = 238.0
_MIN_SHARE = 0.012
_MIN_EDGE = 12.0
"""Mean step in LAB per working pixel at the border of what covers a face; a lamp's border is softer."""

_HUED, _USUAL_CHROMA = 0.35, 20.0
"""Share of the strongest hue, at most of a usual skin's, below which a place has none."""

_NEARER = 0.8
_OWN_REACH = (14.0, 32.0)
"""How far from its own color something is followed, LAB units: thrice its own spread, within these."""

_SOFT_PX = 0.8


class FaceMasker(Protocol):
    """Says what of a crop is the face, and what lies in front of it."""

    def masks(
        self, crops: RgbImage, landmarks: FloatArray, track_ids: Sequence[TrackId | None]
    ) -> FloatArray:
        """Look at a batch of crops.

        Args:
            crops: `(n, S, S, 3)` uint8 RGB.
            landmarks: `(n, 478, 3)` float32, crop pixels.
            track_ids: One a crop, or none at all; the crops of a track in the order of time.

        Returns:
            `(n, S, S)` float32, 1 where the face is to be seen, 0 where something covers it. What lies beyond the
            face counts as uncovered.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Small:
    """A face at working size.

    Attributes:
        lab: `(h, w, 3)` float32; lightness 0 to 255, a and b around 0.
        points: `(468, 2)` float32.
        face_px: Size of the face.
    """

    lab: FloatArray
    points: FloatArray
    face_px: float

    @property
    def size_wh(self) -> tuple[int, int]:
        h, w = self.lab.shape[:2]
        return w, h

    def area(self, *contours: tuple[int, ...], grown_px: float = 0) -> NDArray[np.bool_]:
        """Contours of mesh points, filled."""
        canvas = np.zeros(self.size_wh[::-1], np.uint8)
        for contour in contours:
            hull = cv2.convexHull(np.rint(self.points[list(contour)]).astype(np.int32))
            cv2.fillConvexPoly(canvas, hull, (1,))
        side = 2 * round(grown_px) + 1
        if side > 1:
            canvas = np.asarray(cv2.dilate(canvas, np.ones((side, side), np.uint8)), np.uint8)
        return canvas > 0


class ColorMasker:
    """The embedded masker: by the colors of the face itself. Needs no network and holds nothing from call to call."""

    def masks(
        self, crops: RgbImage, landmarks: FloatArray, track_ids: Sequence[TrackId | None]
    ) -> FloatArray:
        """See `FaceMasker.masks`."""
        found = [_uncovered(crop, points) for crop, points in zip(crops, landmarks, strict=True)]
        if all(mask is None for mask in found):
            # All ones without the memory, as `align` gives them.
            return np.broadcast_to(np.ones(1, np.float32), crops.shape[:3])
        side = crops.shape[1]
        return np.stack([_ones(side) if mask is None else mask for mask in found])


def _ones(side_px: int) -> FloatArray:
    return np.broadcast_to(np.ones(1, np.float32), (side_px, side_px))


def _uncovered(crop: RgbImage, landmarks: FloatArray) -> FloatArray | None:
    """The mask of one crop, `(S, S)` float32; `None` where nothing covers the face."""
    small = _small(crop, landmarks)
    cover = None if small is None else _cover(small)
    if cover is None or not cover.any():
        return None
    side = crop.shape[0]
    soft = cv2.GaussianBlur(cover.astype(np.float32), (0, 0), _SOFT_PX)
    full = cv2.resize(1 - np.minimum(soft * 1.25, 1), (side, side), interpolation=cv2.INTER_LINEAR)
    return np.asarray(full, dtype=np.float32)


def _small(crop: RgbImage, landmarks: FloatArray) -> _Small | None:
    side = crop.shape[0]
    work = min(side, _WORK_PX)
    rgb = cv2.resize(crop, (work, work), interpolation=cv2.INTER_AREA)
    points = (landmarks[:468, :2] + np.float32(0.5)) * np.float32(work / side) - np.float32(0.5)
    face_px = float(np.sqrt(np.ptp(points[list(regions.FACE_OVAL)], axis=0).prod()))
    if face_px < 24:
        return None
    lab = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB).astype(np.float32) - np.array(
        [0, 128, 128], np.float32
    )
    return _Small(lab, points, face_px)


def _cover(face: _Small) -> NDArray[np.bool_] | None:
    """What lies in front of the face; `None` if nothing, or if that cannot be told."""
    skin = _skin_color(face)
    if skin is None:
        return None
    oval = face.area(regions.FACE_OVAL)
    sure, likely = _strangers(face, skin)
    if (sure & oval).sum() < _MIN_SHARE * oval.sum():
        return None
    features = face.area(
        *regions.FEATURES, *regions.NOSTRILS, grown_px=_FEATURE_REACH * face.face_px
    )
    sure &= oval & ~features
    if sure.sum() < _MIN_SHARE * oval.sum():
        return None
    return _grown_components(face, sure, likely & oval, skin=skin)


def _skin_color(face: _Small) -> FloatArray | None:
    """LAB of the skin, `(3,)`: the median of what cheeks, nose and forehead say, so that one of them may be covered.

    A medical mask covers all but the forehead. So a place without hue has no say where another one clearly has some,
    nor has a cold one where another is warm, as skin of any tone is but under colored lamps.
    """
    voices = [face.lab[face.area(patch)] for patch in regions.SKIN_PATCHES]
    medians = [np.median(voice, axis=0) for voice in voices if len(voice) >= 8]
    if len(medians) < 2:
        return None
    chromas = [float(np.hypot(*median[1:])) for median in medians]
    least = _HUED * min(max(chromas), _USUAL_CHROMA)
    hued = [median for median, chroma in zip(medians, chromas, strict=True) if chroma > least]
    warm = [median for median in hued if median[1] + median[2] > 0]
    skin = np.median(warm or hued or medians, axis=0).astype(np.float32)
    return None if float(np.hypot(skin[1], skin[2])) < _MIN_CHROMA else skin


def _strangers(face: _Small, skin: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Pixels whose hue surely, and perhaps, does not belong to the skin."""
    lightness, a, b = np.moveaxis(face.lab, 2, 0)
    chroma = float(np.hypot(skin[1], skin[2]))
    along = (a * skin[1] + b * skin[2]) / chroma**2
    across = np.abs(a * skin[2] - b * skin[1]) / chroma
    is_told = chroma > _CLEAR_CHROMA
    is_lit = (lightness > _DARK * skin[0]) & (lightness < min(_CLIPPED, _BRIGHT * skin[0] + 20))
    beard = _below_nose(face)
    colored = np.hypot(a, b) > _COLORED
    odd = across > max(_ODD_HUE * chroma, _MIN_ODD_HUE)
    sure = (along < _OPPOSITE) & colored | odd | (along < _NEUTRAL) & is_lit & ~beard & is_told
    return sure, (along < _NEUTRAL + 0.15) | (across > 0.6 * max(_ODD_HUE * chroma, _MIN_ODD_HUE))


def _below_nose(face: _Small) -> NDArray[np.bool_]:
    """Where a beard may be, which has no hue either: below the nose, seen along the face's own axis."""
    top, chin, nose = (face.points[index] for index in (10, 152, 2))
    axis = (chin - top) / max(float(np.linalg.norm(chin - top)), 1e-3)
    w, h = face.size_wh
    x, y = np.meshgrid(np.arange(w, dtype=np.float32), np.arange(h, dtype=np.float32))
    return np.asarray((x - nose[0]) * axis[0] + (y - nose[1]) * axis[1] > 0, dtype=np.bool_)


def _grown_components(
    face: _Small, sure: NDArray[np.bool_], likely: NDArray[np.bool_], *, skin: FloatArray
) -> NDArray[np.bool_]:
    """Strangers that are large enough and begin with an edge, followed by their own color wherever they go."""
    cover = np.zeros(sure.shape, np.bool_)
    oval = face.area(regions.FACE_OVAL)
    edges = _edges(face.lab)
    count, labels = cv2.connectedComponents((sure | (likely & oval)).astype(np.uint8))
    for label in range(1, count):
        seeds = (labels == label) & sure
        if seeds.sum() < _MIN_SHARE * oval.sum():
            continue
        color = np.median(face.lab[seeds], axis=0)
        own = np.linalg.norm(face.lab - color, axis=2)
        reach = float(np.clip(3 * np.median(own[seeds]), *_OWN_REACH))
        nearer = own < _NEARER * np.linalg.norm(face.lab - skin, axis=2)
        grown = oval & nearer & (own < reach)
        part = _connected(grown, seeds)
        if _edge_strength(part, oval, edges) >= _MIN_EDGE:
            cover |= part
    return cover


def _connected(area: NDArray[np.bool_], seeds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The parts of an area that hold a seed, their holes closed."""
    _, labels = cv2.connectedComponents(area.astype(np.uint8))
    part = np.isin(labels, np.unique(labels[seeds & area]))
    closed = cv2.morphologyEx(part.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8))
    return np.asarray(closed > 0, dtype=np.bool_)


def _edges(lab: FloatArray) -> FloatArray:
    """Step of color per pixel."""
    soft = cv2.GaussianBlur(lab, (0, 0), 0.8)
    along = [cv2.Sobel(soft, cv2.CV_32F, *order) for order in ((1, 0), (0, 1))]
    return np.asarray(np.sqrt(sum((each * each).sum(2) for each in along)) / 8, dtype=np.float32)


def _edge_strength(part: NDArray[np.bool_], oval: NDArray[np.bool_], edges: FloatArray) -> float:
    """Median step along the border of a part inside the face; 0 without such a border."""
    kernel = np.ones((3, 3), np.uint8)
    grown = cv2.dilate(part.astype(np.uint8), kernel) > 0
    inner = cv2.erode(oval.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
    strongest = np.asarray(cv2.dilate(edges, kernel), dtype=np.float32)
    border = grown & ~part & inner
    return float(np.median(strongest[border])) if border.any() else 0.0
