"""One face: the source's texture on the target's mesh, in the target's light, and how much of it shows.

Only sampling the texture, coloring it and comparing its fineness touch every pixel. The target's eyeballs
and open mouth move along with the reshaped mesh, so that lids and lips close round them.
"""

from dataclasses import dataclass

import cv2
import numpy as np

from app.core.mesh_topology import MESH_POINTS
from app.core.picture import PixelBox
from app.core.types import RgbImage
from app.processors.mesh import masks
from app.processors.mesh.atlas import Atlas
from app.processors.mesh.color import ColorMatch, FacePair, match_color
from app.processors.mesh.drawing import Drawing, Target, draw, prepare_target, textured
from app.processors.mesh.exposure import expose
from app.processors.mesh.face_model import FaceModel, texture_scale
from app.processors.mesh.filters import FloatArray, sampled
from app.processors.mesh.gaze import Gaze
from app.processors.mesh.looks import FaceMemory
from app.processors.mesh.raster import dense_map, grown, triangle_maps
from app.processors.mesh.relief import broad_detail, halved, relief_change
from app.processors.mesh.seam import seam_change
from app.processors.mesh.sharpness import fine_change, fineness_ratio, match_sharpness
from app.processors.mesh.skin import Strictness, skin_likelihood

_SKIN = Strictness(surely=3.0, never=4.4)
_MOVING_TEXTURE = 0.7
"""Texels per pixel in a moving picture: a texture as fine as the pixels changes with where its texels fall."""

_FEATURES_PX = 160
"""Texture that carries all features; a small face needs no less."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SwapChoices:
    """What a person may choose.

    Attributes:
        shape: 0 to 1, how far the target's features follow the source's proportions.
        shading: 0 to 1, how much of the target's light and shade is taken over.
        keeps_eyes: The target's eyeballs stay; else the source's look where they looked.
        keeps_mouth: What an open mouth shows stays the target's.
    """

    shape: float
    shading: float
    keeps_eyes: bool
    keeps_mouth: bool


@dataclass(frozen=True, slots=True, eq=False)
class TargetFace:
    """One row of a batch.

    Attributes:
        crop: `(S, S, 3)` uint8 RGB.
        mask: `(S, S)` float32, 0 where the crop reaches beyond the picture.
        landmarks: `(478, 3)` float32 in crop pixels.
    """

    crop: RgbImage
    mask: FloatArray
    landmarks: FloatArray


def swap_face(
    face: TargetFace, atlas: Atlas, *, model: FaceModel, choices: SwapChoices, memory: FaceMemory
) -> tuple[RgbImage, FloatArray]:
    """Put a source's face on one target face.

    Args:
        face: The target.
        atlas: The source.
        model: The canonical face.
        choices: What a person chose.
        memory: Of the face's track; a new one for a still.

    Returns:
        The crop with the new face, and its mask; the mask is 0 everywhere if the face is too small to be drawn.
    """
    crop, alpha = face.crop.copy(), np.zeros(face.mask.shape, np.float32)
    target = prepare_target(face.crop, face.mask, face.landmarks)
    if target is None:
        return crop, alpha
    gaze = Gaze(target.landmarks, model.uv, model.triangles, source=atlas.eyes)
    drawing = draw(target, atlas, model, shape=choices.shape, gaze=gaze)
    pair = _pair(target, drawing, model)
    full_side_px = texture_scale(drawing.points, model) * float(target.enlargement_xy.max())
    if memory.moves:
        full_side_px = max(full_side_px * _MOVING_TEXTURE, min(full_side_px, _FEATURES_PX))
    drawn = textured(atlas.level(full_side_px), target.enlarged(drawing.uv))
    color = memory.steady_color(match_color(pair, choices.shading))
    shown = _matched(color, drawn, target, pair, memory=memory)
    eyeballs = (1.0, 1.0) if choices.keeps_eyes else gaze.kept
    for part in _kept_parts(target, drawing, choices, eyeballs=eyeballs):
        _lay_part_inplace(shown, part, target, _origin(part.box, target, drawing, model))
    cut = np.s_[target.box.y0 : target.box.y1, target.box.x0 : target.box.x1]
    crop[cut] = np.rint(np.clip(shown, 0, 255, out=shown), out=shown)
    alpha[cut] = target.enlarged(pair.alpha) * face.mask[cut]
    return crop, alpha * _inside_face_box(face)


def _inside_face_box(face: TargetFace) -> FloatArray:
    """1 in the box that the face's landmarks fill: whoever is told that box may rely on nothing else changing."""
    points = face.landmarks[:MESH_POINTS, :2]
    x0, y0 = np.floor(points.min(0)).astype(int).clip(min=0)
    x1, y1 = np.ceil(points.max(0)).astype(int)
    inside = np.zeros(face.mask.shape, np.float32)
    inside[y0:y1, x0:x1] = 1
    return inside


def _pair(target: Target, drawing: Drawing, model: FaceModel) -> FacePair:
    """Work out the mask, and where both faces show plain skin."""
    seeds = masks.skin_seeds(target.points, target.size_wh) & (target.valid > 0.5)
    likely = skin_likelihood(target.small, seeds, _SKIN)
    usable, plain, colored, hair_zone = np.moveaxis(drawing.traits, 2, 0)
    alpha = masks.edge_mask(drawing.ids, target.face_px) * usable
    alpha *= masks.facing_share(target.points, model.canonical)
    alpha *= masks.hair_free(likely, hair_zone, target.points, target.face_px)
    return FacePair(
        texture=drawing.texture,
        target=target.small,
        weights=(drawing.ids >= 0) * usable * plain * likely * target.valid,
        colored=colored,
        alpha=alpha,
        face_px=target.face_px,
    )


def _matched(
    color: ColorMatch, drawn: RgbImage, target: Target, pair: FacePair, *, memory: FaceMemory
) -> FloatArray:
    """The drawn face at full resolution, in the target's light, relief and fineness."""
    shown = color.apply(drawn)
    shown += target.enlarged(_light_change(color.apply(pair.texture), pair, memory))
    if memory.moves:
        shown += target.enlarged(_relief(color, target, pair))[..., None]
    skin = target.enlarged(pair.weights)
    face_px = target.face_px * float(target.enlargement_xy.max())
    ratio = memory.steady_number(fineness_ratio(shown, target.full, skin))
    shown = match_sharpness(shown, target.full, skin=skin, face_px=face_px, ratio=ratio)
    if memory.moves:
        bare = target.enlarged(pair.weights * pair.colored)
        shown += fine_change(shown, target.full, skin=bare, face_px=face_px)[..., None]
    return shown


def _light_change(lit: FloatArray, pair: FacePair, memory: FaceMemory) -> FloatArray:
    """What the lit texture lacks at working size to have an even edge and the target's exposure."""
    change = seam_change(lit, pair)
    even = lit + change
    exposure = memory.steady_exposure(expose(even, pair))
    return change + exposure.change(even, pair.colored)


def _relief(color: ColorMatch, target: Target, pair: FacePair) -> FloatArray:
    """What brings the texture's folds down to the target's; a still may keep them, it does not shimmer."""
    ours = broad_detail(color.apply(halved(pair.texture)), target.face_px)
    theirs = broad_detail(halved(target.small), target.face_px)
    return relief_change(ours, theirs, drawn=pair.alpha, skin=pair.weights, face_px=target.face_px)


def _kept_parts(
    target: Target, drawing: Drawing, choices: SwapChoices, *, eyeballs: tuple[float, ...]
) -> list[masks.Part]:
    where = (drawing.points, target.points, target.size_wh)
    eyes = masks.eye_parts(*where, face_px=target.face_px, kept=eyeballs)
    mouth = masks.mouth_parts(*where, target.face_px) if choices.keeps_mouth else []
    return eyes + mouth


def _origin(box: PixelBox, target: Target, drawing: Drawing, model: FaceModel) -> FloatArray:
    """Where the skin of a part lay before the mesh was reshaped, `(h, w, 2)` in working pixels."""
    ids = grown(drawing.ids[box.y0 : box.y1, box.x0 : box.x1])
    maps = triangle_maps(drawing.points[:, :2], target.points[:, :2], model.triangles)
    return dense_map(ids, maps, (box.x0, box.y0))


def _lay_part_inplace(
    shown: FloatArray, part: masks.Part, target: Target, origin: FloatArray
) -> None:
    """Lay a part of the target over the drawn face."""
    box, to_small = _full_box(part.box, target)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    share = cv2.warpAffine(part.share, to_small, box.size_wh, flags=flags)
    repeat = cv2.BORDER_REPLICATE
    place = cv2.warpAffine(origin, to_small, box.size_wh, flags=flags, borderMode=repeat)
    place = (place + np.float32(0.5)) * target.enlargement_xy - np.float32(0.5)
    kept = sampled(target.full, np.asarray(place, dtype=np.float32))
    region = shown[box.y0 : box.y1, box.x0 : box.x1]
    region += (kept - region) * share[..., None]


def _full_box(box: PixelBox, target: Target) -> tuple[PixelBox, FloatArray]:
    """The part's box in full pixels, and the `(2, 3)` affine from its pixels to the part's own."""
    across, down = target.enlargement_xy.tolist()
    full = PixelBox(
        int(box.x0 * across),
        int(box.y0 * down),
        int(box.x1 * across) + 1,
        int(box.y1 * down) + 1,
    ).clipped_to(target.box.size_wh)
    shift_x = (full.x0 + 0.5) / across - 0.5 - box.x0
    shift_y = (full.y0 + 0.5) / down - 0.5 - box.y0
    return full, np.array([[1 / across, 0, shift_x], [0, 1 / down, shift_y]], np.float32)
