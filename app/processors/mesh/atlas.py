"""A source's skin, laid flat: made once from all its photos, then drawn on any number of targets.

Its mouth does not travel, see `closable_lips`. The texture is kept in several sizes, so that drawing it small does
not alias.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.types import Identity, SourceView
from app.processors.mesh.face_model import (
    REGION_SIDE_PX,
    FaceModel,
    texture_ids,
    texture_points,
)
from app.processors.mesh.filters import FloatArray, blurred, dilated, filled, ramp, resized
from app.processors.mesh.gaze import SourceEyes, source_eyes
from app.processors.mesh.layers import Layer, likely_skin, mesh_points, sampled_layer
from app.processors.mesh.lips import closable_lips
from app.processors.mesh.merging import completed, merged
from app.processors.mesh.shape import proportions, rigid_pose
from app.processors.mesh.skin import Strictness

_SIDES_PX = (256, 384, 512, 768, 1024)
_LEVEL_STEP = 0.7071
_SMALLEST_LEVEL_PX = 48
_USABLE = (0.15, 0.65)
_LIGHT_SIDE_PX, _LIGHT_REACH = 64, 0.2
_LIGHT_GAIN = (0.6, 1.7)

_SKIN = Strictness(surely=3.0, never=4.4)
_SKIN_COLOR = Strictness(surely=1.5, never=3.0)
_SKIN_BRIGHTNESS = (0.45, 0.65)
"""Against the mean of the skin: below is hair for sure, above is skin."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Atlas:
    """The source as the swap needs it.

    Attributes:
        levels: The texture in falling sizes, each `(n, n, 3)` uint8 RGB.
        traits: `(256, 256, 4)` uint8, how surely a texel may be used, is plain skin, has the color of
            skin, and lies where hair may fall.
        shape: `(468, 3)` float32, the source's proportions in the canonical frame.
        eyes: Where its eyes look.
    """

    levels: tuple[NDArray[np.uint8], ...]
    traits: NDArray[np.uint8]
    shape: FloatArray
    eyes: SourceEyes

    def level(self, side_px: float) -> NDArray[np.uint8]:
        """The smallest texture with at least this side, so that drawing it does not alias; else the largest."""
        fitting = [level for level in self.levels if level.shape[0] >= side_px]
        return fitting[-1] if fitting else self.levels[0]


def build_atlas(identity: Identity, model: FaceModel) -> Atlas:
    """Make the atlas of one identity from all its views."""
    ids = texture_ids(model.uv, model.triangles, _texture_side(identity.views))
    layers = [sampled_layer(view, model, ids) for view in identity.views]
    whole = _evenly_lit(completed(merged(layers)), model)
    rgb = np.rint(np.clip(closable_lips(whole.rgb, model), 0, 255)).astype(np.uint8)
    return Atlas(
        levels=_levels(rgb),
        traits=_traits(rgb, whole.seen, model),
        shape=_shape(identity.views, model),
        eyes=source_eyes(identity.views[0].landmarks, model.uv, model.triangles),
    )


def _texture_side(views: tuple[SourceView, ...]) -> int:
    """A texture about as fine as the largest photo."""
    largest = max(float(np.ptp(mesh_points(view)[:, :2], axis=0).max()) for view in views)
    return next((side for side in _SIDES_PX if side >= largest), _SIDES_PX[-1])


def _shape(views: tuple[SourceView, ...], model: FaceModel) -> FloatArray:
    """The views' mean proportions; those from the front count most, because depth is guessed."""
    shapes = [proportions(mesh_points(view), model) for view in views]
    poses = [rigid_pose(mesh_points(view), model.canonical) for view in views]
    weights = [max(float(pose.rotation[2, 2]), 0.1) ** 4 for pose in poses]
    return np.asarray(np.average(shapes, axis=0, weights=weights), dtype=np.float32)


def _evenly_lit(layer: Layer, model: FaceModel) -> Layer:
    """Take half of the difference between the halves of the face out of each: light from a side is the photo's."""
    side = layer.rgb.shape[0]
    size_wh = (_LIGHT_SIDE_PX, _LIGHT_SIDE_PX)
    sure = resized(layer.seen, size_wh) * resized(model.painted.skin, size_wh)
    sure = (sure * sure[:, ::-1])[..., None] + np.float32(1e-3)
    soft = blurred(resized(layer.rgb, size_wh) * sure, _LIGHT_REACH * _LIGHT_SIDE_PX) + 1e-3
    gain = np.clip((soft[:, ::-1] / soft) ** np.float32(0.5), *_LIGHT_GAIN)
    return Layer(layer.rgb * resized(np.asarray(gain, np.float32), (side, side)), layer.seen)


def _traits(rgb: NDArray[np.uint8], seen: FloatArray, model: FaceModel) -> NDArray[np.uint8]:
    usable = resized(ramp(seen, _USABLE), (REGION_SIDE_PX, REGION_SIDE_PX))
    plain = model.painted.skin * likely_skin(rgb, seen, model, _SKIN)
    traits = [usable, plain, _skin_colored(rgb, seen, model), model.painted.hair_zone]
    return np.asarray(np.rint(np.dstack(traits) * 255), dtype=np.uint8)


def _skin_colored(rgb: NDArray[np.uint8], seen: FloatArray, model: FaceModel) -> FloatArray:
    """All but dark hair, and brows and lips where they differ from skin."""
    size_wh = (REGION_SIDE_PX, REGION_SIDE_PX)
    strict = likely_skin(rgb, seen, model, _SKIN_COLOR)
    contours = (regions.LEFT_BROW, regions.RIGHT_BROW, regions.LIPS_OUTER)
    features = filled(contours, texture_points(model.uv, REGION_SIDE_PX), size_wh)
    features = blurred(dilated(features, 3), 1.5)
    luma = resized(rgb, size_wh).mean(2)
    skin_luma = float((luma * strict).sum() / max(float(strict.sum()), 1.0))
    dark = 1 - ramp(luma / max(skin_luma, 1.0), _SKIN_BRIGHTNESS)
    return 1 - (1 - strict) * np.maximum(features, dark)


def _levels(rgb: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], ...]:
    sides = [rgb.shape[0]]
    while sides[-1] * _LEVEL_STEP >= _SMALLEST_LEVEL_PX:
        sides.append(round(sides[-1] * _LEVEL_STEP))
    return tuple(resized(rgb, (side, side)) for side in sides)
