"""One face: draw the source's texture on the target's mesh, in the target's light, and say how much of it shall be seen.

Everything that varies slowly (map, masks, light) is worked out on a small copy of the face and enlarged; only sampling the texture,
coloring it and comparing its fineness touch every pixel. The target's eyeballs and open mouth move along with the reshaped
mesh, so that lids and lips close round them.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.picture import PixelBox
from app.core.types import RgbImage
from app.processors.mesh import masks, regions
from app.processors.mesh.atlas import Atlas, texture_scale
from app.processors.mesh.color import FacePair, match_color
from app.processors.mesh.face_model import FaceModel
from app.processors.mesh.raster import (
    FloatArray,
    IntArray,
    dense_map,
    draw_triangles,
    front_to_back,
    grown,
    triangle_maps,
)
from app.processors.mesh.shape import reshaped
from app.processors.mesh.sharpness import match_sharpness
from app.processors.mesh.skin import lab, skin_likelihood, skin_tone

WORK_PX = 224
_MIN_FACE_PX = 16
_BORDER_PX = 2
_SURELY_SKIN, _NEVER_SKIN = 3.0, 4.4


@dataclass(frozen=True, kw_only=True, slots=True)
class SwapChoices:
    """What a person may choose.

    Attributes:
        shape: 0 to 1, how far the target's features follow the source's proportions.
        shading: 0 to 1, how much of the target's light and shade is taken over.
        keeps_eyes: The target's eyeballs stay.
        keeps_mouth: What an open mouth shows stays the target's.
    """

    shape: float
    shading: float
    keeps_eyes: bool
    keeps_mouth: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Target:
    """One target face, cut to its box.

    Attributes:
        box: Where the face lies in the crop.
        full: `(H, W, 3)` uint8 RGB, the box at full resolution.
        small: `(h, w, 3)` uint8 RGB, the same at working size.
        valid: `(h, w)` float32, 0 where the crop reaches beyond the picture.
        points: `(468, 3)` float32, pixels of `small`.
        face_px: Size of the face in pixels of `small`.
    """

    box: PixelBox
    full: RgbImage
    small: RgbImage
    valid: FloatArray
    points: FloatArray
    face_px: float

    @property
    def size_wh(self) -> tuple[int, int]:
        """Working size."""
        h, w = self.small.shape[:2]
        return w, h

    @property
    def enlargement(self) -> float:
        """Full pixels per working pixel."""
        return self.full.shape[1] / self.small.shape[1]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Drawing:
    """The source drawn on the target's reshaped mesh, at working size.

    Attributes:
        points: `(468, 3)` float32, the reshaped mesh.
        ids: `(h, w)` int32, triangles.
        uv: `(h, w, 2)` float32, texture coordinates.
        origin: `(h, w, 2)` float32, the same skin's place in the target before reshaping.
        texture: `(h, w, 4)` uint8: RGB, and how far the texel may be used.
        skin: `(h, w)` float32, 1 where both the model and the source have plain skin.
        plain: `(h, w)` float32, 1 where the source's color is that of its skin.
        hair_zone: `(h, w)` float32, 1 where hair may fall.
    """

    points: FloatArray
    ids: IntArray
    uv: FloatArray
    origin: FloatArray
    texture: NDArray[np.uint8]
    skin: FloatArray
    plain: FloatArray
    hair_zone: FloatArray


def swap_face(
    crop: RgbImage, mask: FloatArray, landmarks: FloatArray, *, atlas: Atlas, model: FaceModel, choices: SwapChoices
) -> tuple[RgbImage, FloatArray]:
    """Put a source's face on one target face.

    Args:
        crop: `(S, S, 3)` uint8 RGB.
        mask: `(S, S)` float32, 0 where the crop reaches beyond the picture.
        landmarks: `(478, 3)` float32, crop pixels.
        atlas: The source.
        model: The canonical face.
        choices: What a person chose.

    Returns:
        The crop with the new face, and its mask; the mask is 0 everywhere if the face is too small to be drawn.
    """
    target = _target(crop, mask, landmarks)
    out, alpha = crop.copy(), np.zeros(mask.shape, np.float32)
    if target is None:
        return out, alpha
    drawing = _drawing(target, atlas, model, choices.shape)
    pair = _pair(target, drawing)
    face = _colored(target, drawing, pair, atlas=atlas, model=model, shading=choices.shading)
    face = _with_target_parts(face, target, drawing, choices)
    inside = np.s_[target.box.y0 : target.box.y1, target.box.x0 : target.box.x1]
    out[inside] = np.rint(np.clip(face, 0, 255)).astype(np.uint8)
    alpha[inside] = _enlarged(pair.alpha, target) * mask[inside]
    return out, alpha


def _target(crop: RgbImage, mask: FloatArray, landmarks: FloatArray) -> Target | None:
    points = landmarks[: regions.MESH_POINTS]
    oval = points[list(regions.FACE_OVAL), :2]
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    box = PixelBox(*(np.floor(low) - _BORDER_PX).astype(int), *(np.ceil(high) + _BORDER_PX).astype(int))
    box = box.clipped_to((crop.shape[1], crop.shape[0]))
    if box.is_empty or min(box.size_wh) < _MIN_FACE_PX:
        return None
    full = crop[box.y0 : box.y1, box.x0 : box.x1]
    scale = min(1.0, WORK_PX / max(box.size_wh))
    size_wh = tuple(round(side * scale) for side in box.size_wh)
    scales = np.array([*(size_wh[i] / box.size_wh[i] for i in (0, 1)), scale], np.float32)
    moved = (points - [box.x0, box.y0, 0] + [0.5, 0.5, 0]) * scales - [0.5, 0.5, 0]
    small = full if scale == 1 else cv2.resize(full, size_wh, interpolation=cv2.INTER_AREA)
    valid = cv2.resize(mask[box.y0 : box.y1, box.x0 : box.x1], size_wh, interpolation=cv2.INTER_AREA)
    return Target(
        box=box,
        full=full,
        small=small,
        valid=valid,
        points=moved.astype(np.float32),
        face_px=float(np.sqrt(np.ptp(oval, axis=0).prod())) * scale,
    )


def _drawing(target: Target, atlas: Atlas, model: FaceModel, shape: float) -> Drawing:
    points = reshaped(target.points, atlas.shape, model, shape)
    here = points[:, :2]
    order = front_to_back(points, model.triangles)
    ids = draw_triangles(here, model.triangles, target.size_wh, order)
    uv = grown(dense_map(ids, triangle_maps(here, model.uv, model.triangles)), ids)
    origin = dense_map(ids, triangle_maps(here, target.points[:, :2], model.triangles))
    painted, own = _textured(model.regions, uv), _textured(atlas.skin, uv)
    return Drawing(
        points=points,
        ids=ids,
        uv=uv,
        origin=origin,
        texture=_textured(atlas.level(texture_scale(points, model)), uv),
        skin=painted[..., 0].astype(np.float32) * own[..., 0] / np.float32(255 * 255),
        plain=own[..., 1].astype(np.float32) / 255,
        hair_zone=painted[..., 1].astype(np.float32) / 255,
    )


def _textured(texture: NDArray[np.uint8], uv: FloatArray) -> NDArray[np.uint8]:
    side = texture.shape[0]
    place = uv * np.float32(side) - np.float32(0.5)
    sampled = cv2.remap(texture, place, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(sampled, dtype=np.uint8)


def _pair(target: Target, drawing: Drawing) -> FacePair:
    """Work out the mask, and where both faces show plain skin."""
    image = lab(target.small)
    tone = skin_tone(image, masks.skin_seeds(target.points, target.size_wh) & (target.valid > 0.5))
    likely = skin_likelihood(image, tone, _SURELY_SKIN, _NEVER_SKIN)
    usable = drawing.texture[..., 3].astype(np.float32) / 255
    alpha = masks.edge_mask(drawing.ids, target.face_px) * usable
    alpha *= masks.bare_skin(likely, drawing.hair_zone, target.points, target.face_px)
    weights = (drawing.ids >= 0) * usable * drawing.skin * likely * target.valid
    return FacePair(
        texture=np.ascontiguousarray(drawing.texture[..., :3]),
        target=target.small,
        weights=np.asarray(weights, dtype=np.float32),
        plain=drawing.plain,
        alpha=alpha,
        face_px=target.face_px,
    )


def _colored(
    target: Target, drawing: Drawing, pair: FacePair, *, atlas: Atlas, model: FaceModel, shading: float
) -> FloatArray:
    match = match_color(pair, shading)
    level = atlas.level(texture_scale(drawing.points, model) * target.enlargement)
    texture = _textured(level[..., :3], _enlarged(drawing.uv, target))
    face_px = target.face_px * target.enlargement
    return match_sharpness(match.apply(texture), target.full, _enlarged(pair.weights, target), face_px)


def _with_target_parts(
    face: FloatArray, target: Target, drawing: Drawing, choices: SwapChoices
) -> FloatArray:
    """Lay the target's eyeballs and open mouth over the drawn face."""
    keep = np.zeros(target.size_wh[::-1], np.float32)
    if choices.keeps_eyes:
        keep = np.maximum(keep, masks.eye_mask(drawing.points, target.size_wh, target.face_px))
    if choices.keeps_mouth:
        keep = np.maximum(keep, masks.mouth_mask(drawing.points, target.size_wh, target.face_px))
    keep *= drawing.ids >= 0
    share = _enlarged(keep, target)[..., None]
    place = _enlarged(drawing.origin, target) 
    scale = np.float32(target.enlargement)
    place = (place + 0.5) * scale - 0.5
    moved = cv2.remap(target.full, place, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return face + (moved - face) * share


def _enlarged(image: FloatArray, target: Target) -> FloatArray:
    """From working size to full size."""
    return cv2.resize(image, target.full.shape[1::-1], interpolation=cv2.INTER_LINEAR)
