"""A source's skin, laid flat: made once from all its photos, then drawn on any number of targets.

Every texel is sampled from each photo through the mesh. A photo counts where it sees the skin squarely; a photo from the left
gives the left cheek, one from the right the right cheek. The photos are first brought to the first one's color, then mixed in two
bands: broad shades blend softly, so that no seam shows; fine structure comes from the photo that sees it best, so that two
slightly misplaced photos do not blur each other. Where no photo sees the skin, the other half of the face is mirrored in.

Two things of the source shall not travel: a fringe over its forehead (its texels are marked, and the target's own forehead shows there),
and its teeth or open mouth (painted over with the color of the lips; an open mouth is the target's to show).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.types import Identity, SourceView
from app.processors.mesh import regions
from app.processors.mesh.face_model import (
    REGION_SIDE_PX,
    FaceModel,
    painted,
    texture_ids,
    texture_points,
)
from app.processors.mesh.raster import (
    FloatArray,
    IntArray,
    dense_map,
    facing,
    grown,
    triangle_maps,
)
from app.processors.mesh.shape import proportions
from app.processors.mesh.skin import lab, skin_likelihood, skin_tone

_SIDES_PX = (256, 384, 512, 768, 1024)
_LEVEL_STEP = 0.7071
_SMALLEST_LEVEL_PX = 48
_SEEN = (0.2, 0.5)
"""Cosines from which skin is seen at all, and seen well."""

_MIRRORED_TRUST = 0.9
_FINE_BAND = 0.01
"""Blur that parts the two bands, in texture sides."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Atlas:
    """The source as the swap needs it.

    Attributes:
        levels: The texture in falling sizes, each `(n, n, 4)` uint8: RGB, and how far the texel may be used.
        skin: `(256, 256, 2)` uint8, how surely a texel is skin and neither beard nor make-up, and how surely it has skin's color.
        shape: `(468, 3)` float32, the source's proportions in the canonical frame.
    """

    levels: tuple[NDArray[np.uint8], ...]
    skin: NDArray[np.uint8]
    shape: FloatArray

    def level(self, side_px: float) -> NDArray[np.uint8]:
        """The smallest texture with at least this side, so that drawing it small does not alias."""
        fitting = [level for level in self.levels if level.shape[0] >= side_px]
        return fitting[-1] if fitting else self.levels[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """One photo on the texture: `(n, n, 3)` float32 RGB, and `(n, n)` float32 how well it is seen, 0 to 1."""

    rgb: FloatArray
    seen: FloatArray


def build_atlas(identity: Identity, model: FaceModel) -> Atlas:
    """Make the atlas of one identity from all its views."""
    side = _texture_side(identity.views)
    ids = texture_ids(model, side)
    layers = [_sampled(view, model, ids) for view in identity.views]
    rgb, seen = _completed(_merged(layers))
    rgb = _without_mouth(rgb, model)
    usable = np.clip((seen - 0.15) / 0.5, 0, 1)
    return Atlas(
        levels=_levels(rgb, usable),
        skin=_skin_kinds(rgb, model),
        shape=np.mean([proportions(_mesh(view), model) for view in identity.views[:1]], axis=0),
    )


def texture_scale(points: FloatArray, model: FaceModel) -> float:
    """Side of the texture in pixels at which its texels are as large as the pixels of a face drawn at these points."""
    corners = points[list(regions.FACE_OVAL), :2]
    size_px = np.sqrt(np.ptp(corners, axis=0).prod())
    size_uv = np.sqrt(np.ptp(model.uv[list(regions.FACE_OVAL)], axis=0).prod())
    return float(size_px / size_uv)


def _mesh(view: SourceView) -> FloatArray:
    return view.landmarks[: regions.MESH_POINTS]


def _texture_side(views: Sequence[SourceView]) -> int:
    """A texture about as fine as the largest photo."""
    largest = max(float(np.ptp(_mesh(view)[:, :2], axis=0).max()) for view in views)
    return next((side for side in _SIDES_PX if side >= largest), _SIDES_PX[-1])


def _sampled(view: SourceView, model: FaceModel, ids: IntArray) -> _Layer:
    side = ids.shape[0]
    crop, points = _at_texture_scale(view, model, side)
    here = texture_points(model.uv, side)
    place = grown(dense_map(ids, triangle_maps(here, points[:, :2], model.triangles)), ids)
    sampled = cv2.remap(crop, place, None, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    rgb = sampled.astype(np.float32)
    seen = _closed(_seen(points, model, ids) * _bare(rgb, model)) * (_inside(place, crop) & (ids >= 0))
    seen = cv2.GaussianBlur(seen.astype(np.float32), (0, 0), side / 60)
    return _Layer(rgb, seen)


def _at_texture_scale(
    view: SourceView, model: FaceModel, side_px: int
) -> tuple[NDArray[np.uint8], FloatArray]:
    """Shrink a photo that is finer than the texture, area-true; sampling would alias."""
    points = _mesh(view)
    scale = side_px / texture_scale(points, model)
    if scale >= 1:
        return view.crop, points
    size_wh = tuple(max(1, round(side * scale)) for side in view.crop.shape[1::-1])
    crop = cv2.resize(view.crop, size_wh, interpolation=cv2.INTER_AREA)
    moved = points * np.float32(scale)
    moved[:, :2] += np.float32(0.5 * scale - 0.5)
    return np.asarray(crop, dtype=np.uint8), moved


def _seen(points: FloatArray, model: FaceModel, ids: IntArray) -> FloatArray:
    """How squarely the camera saw each texel; the mean over the triangles of a point makes it smooth."""
    low, high = _SEEN
    cosines = facing(points, model.triangles)
    shares = np.bincount(model.triangles.ravel(), np.repeat(cosines, 3), len(points))
    smooth = shares / np.maximum(np.bincount(model.triangles.ravel(), minlength=len(points)), 1)
    here = texture_points(model.uv, ids.shape[0])
    both = np.column_stack([smooth, smooth]).astype(np.float32)
    cosine = dense_map(ids, triangle_maps(here, both, model.triangles))[..., 0]
    seen = np.clip((cosine - low) / (high - low), 0, 1) * (ids >= 0)
    return np.asarray(seen, dtype=np.float32)


def _closed(seen: FloatArray) -> FloatArray:
    """Fill small holes: the underside of the nose is edge-on in every photo, and so it is in the target."""
    width = 2 * (seen.shape[0] // 16) + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (width, width))
    return cv2.morphologyEx(seen, cv2.MORPH_CLOSE, kernel)


def _inside(place: FloatArray, crop: NDArray[np.uint8]) -> NDArray[np.bool_]:
    h, w = crop.shape[:2]
    x, y = place[..., 0], place[..., 1]
    return (x >= 0) & (y >= 0) & (x <= w - 1) & (y <= h - 1)


def _merged(layers: Sequence[_Layer]) -> _Layer:
    """Mix all photos, the first one's color holding."""
    first = layers[0]
    if len(layers) == 1:
        return first
    toned = [first, *(_toned(layer, first) for layer in layers[1:])]
    broad = [_blurred(layer.rgb, _FINE_BAND) for layer in toned]
    soft = _shares([layer.seen for layer in toned], power=2)
    sharp = _shares([layer.seen * _detail(layer) for layer in toned], power=8)
    rgb = sum(
        share[..., None] * wide + pick[..., None] * (layer.rgb - wide)
        for layer, wide, share, pick in zip(toned, broad, soft, sharp, strict=True)
    )
    return _Layer(
        np.asarray(np.clip(rgb, 0, 255), dtype=np.float32),
        np.max([layer.seen for layer in toned], axis=0),
    )


def _shares(weights: Sequence[FloatArray], power: int) -> list[FloatArray]:
    raised = [weight**power + 1e-6 for weight in weights]
    total = np.sum(raised, axis=0)
    return [cv2.GaussianBlur(each / total, (0, 0), total.shape[0] / 100) for each in raised]


def _detail(layer: _Layer) -> float:
    """How fine a photo is, 0.5 to 1: a small or soft photo shall not win over a sharp one."""
    fine = layer.rgb - _blurred(layer.rgb, _FINE_BAND)
    energy = float((np.abs(fine).mean(2) * layer.seen).sum() / max(float(layer.seen.sum()), 1.0))
    return float(np.clip(energy / 6, 0.5, 1))


def _toned(layer: _Layer, like: _Layer) -> _Layer:
    """Give a layer the broad colors of another, learned where both are seen and continued beyond."""
    return _Layer(np.clip(layer.rgb * _gain(layer, like), 0, 255), layer.seen)


def _gain(layer: _Layer, like: _Layer) -> FloatArray:
    both = (layer.seen * like.seen)[..., None]
    near, far = (
        [_blurred(image * both, radius) for image in (like.rgb, layer.rgb, both)]
        for radius in (0.06, 0.3)
    )
    trust = np.clip(near[2] * 2, 0, 1)
    local = (near[0] + 1e-3) / (near[1] + 1e-3)
    broad = (far[0] + 1e-3) / (far[1] + 1e-3)
    return np.asarray(np.clip(local * trust + broad * (1 - trust), 0.4, 2.5), dtype=np.float32)


def _blurred(image: FloatArray, radius: float) -> FloatArray:
    """Blur by a share of the side; wide blurs on a small copy."""
    side = image.shape[0]
    small_side = min(side, max(32, round(4 / radius)))
    small = cv2.resize(image, (small_side, small_side), interpolation=cv2.INTER_AREA)
    soft = cv2.GaussianBlur(small, (0, 0), radius * small_side)
    back = cv2.resize(soft, (side, side), interpolation=cv2.INTER_LINEAR)
    return back.reshape(image.shape)


def _completed(layer: _Layer) -> tuple[FloatArray, FloatArray]:
    """Fill what no photo saw from the other half of the face, in the seen half's colors."""
    flipped = _toned(_Layer(layer.rgb[:, ::-1], layer.seen[:, ::-1]), layer)
    mirrored = flipped.seen * _MIRRORED_TRUST
    best = np.maximum(layer.seen, mirrored)
    share = (layer.seen + 0.03) / (best + 0.03)
    share = np.where(layer.seen > 0.85, 1, share).astype(np.float32)
    share = cv2.GaussianBlur(share, (0, 0), share.shape[0] / 60)[..., None]
    return np.asarray(layer.rgb * share + flipped.rgb * (1 - share), dtype=np.float32), best


def _without_mouth(rgb: FloatArray, model: FaceModel) -> FloatArray:
    """Paint over what lies between the lips: teeth drawn on a closed mouth show as a white line."""
    side = rgb.shape[0]
    points = texture_points(model.uv, side)
    mouth = cv2.dilate(painted((regions.LIPS_INNER,), points, side), _square(2 * (side // 256) + 1))
    lips = np.clip(painted((regions.LIPS_OUTER,), points, side) - mouth, 0, 1)
    color = (rgb * lips[..., None]).sum((0, 1)) / max(float(lips.sum()), 1.0)
    soft = cv2.GaussianBlur(mouth, (0, 0), side / 250)[..., None]
    return np.asarray(rgb * (1 - soft) + color * _GAP_SHADE * soft, dtype=np.float32)


_GAP_SHADE = 0.6
"""The line between closed lips against the lips themselves."""


def _bare(rgb: FloatArray, model: FaceModel) -> FloatArray:
    """0 where hair lies over the face, else 1.

    Hair is looked for where it falls; elsewhere at the sides a texel counts as covered when it is no skin but its mirror image
    is: a strand, or the background behind a cheek that the mesh overshoots. Brows and beards, dark on both sides, pass.
    """
    likely = _likely_skin(rgb, model, surely=1.9, never=3.3)
    points = texture_points(model.uv, REGION_SIDE_PX)
    brows = painted((regions.LEFT_BROW, regions.RIGHT_BROW), points, REGION_SIDE_PX)
    likely = np.maximum(likely, cv2.dilate(brows, _square(5)))
    bare = cv2.GaussianBlur(cv2.erode(likely, _square(13)), (0, 0), 4)
    bare = np.clip((bare - 0.3) / 0.6, 0, 1)
    one_sided = (1 - cv2.erode(likely, _square(5))) * cv2.erode(likely[:, ::-1], _square(7))
    one_sided = cv2.GaussianBlur(one_sided, (0, 0), 2)
    hair_zone, sides = (model.regions[..., i].astype(np.float32) / 255 for i in (1, 2))
    cover = (1 - hair_zone * (1 - bare)) * (1 - sides * one_sided)
    return cv2.resize(cover, rgb.shape[1::-1], interpolation=cv2.INTER_LINEAR)


def _likely_skin(rgb: FloatArray, model: FaceModel, *, surely: float, never: float) -> FloatArray:
    """Likelihood of skin over the texture, `(256, 256)` float32."""
    side = REGION_SIDE_PX
    small = cv2.resize(rgb, (side, side), interpolation=cv2.INTER_AREA)
    image = lab(np.clip(small, 0, 255).astype(np.uint8))
    seeds = painted(regions.SKIN_PATCHES, texture_points(model.uv, side), side) > 0.5
    return skin_likelihood(image, skin_tone(image, seeds), surely, never)


def _skin_kinds(rgb: FloatArray, model: FaceModel) -> NDArray[np.uint8]:
    """Surely skin, and what has skin's color: all but dark hair, and brows and lips where they differ from skin."""
    side = REGION_SIDE_PX
    points = texture_points(model.uv, side)
    loose = _likely_skin(rgb, model, surely=3.0, never=4.4)
    strict = _likely_skin(rgb, model, surely=1.5, never=3.0)
    features = painted((regions.LEFT_BROW, regions.RIGHT_BROW, regions.LIPS_OUTER), points, side)
    features = cv2.GaussianBlur(cv2.dilate(features, _square(3)), (0, 0), 1.5)
    luma = cv2.resize(rgb, (side, side), interpolation=cv2.INTER_AREA).mean(2)
    skin_luma = float((luma * strict).sum() / max(float(strict.sum()), 1.0))
    dark = np.clip((0.65 - luma / max(skin_luma, 1.0)) / 0.2, 0, 1)
    colored = 1 - (1 - strict) * np.maximum(features, dark)
    return np.rint(np.dstack([loose, colored]) * 255).astype(np.uint8)


def _square(side: int) -> NDArray[np.uint8]:
    return np.ones((side, side), np.uint8)


def _levels(rgb: FloatArray, usable: FloatArray) -> tuple[NDArray[np.uint8], ...]:
    finest = np.dstack([np.clip(rgb, 0, 255), usable * 255])
    sides = [finest.shape[0]]
    while sides[-1] * _LEVEL_STEP >= _SMALLEST_LEVEL_PX:
        sides.append(round(sides[-1] * _LEVEL_STEP))
    return tuple(
        np.rint(cv2.resize(finest, (side, side), interpolation=cv2.INTER_AREA)).astype(np.uint8)
        for side in sides
    )
