"""The source drawn on the target's reshaped mesh, at working size.

Everything that varies slowly (map, masks, light) is worked out on a small copy of the face and enlarged
later, so its cost does not grow with the picture.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import mesh_regions as regions
from app.core.mesh_topology import MESH_POINTS
from app.core.picture import PixelBox
from app.core.types import RgbImage
from app.processors.mesh.atlas import Atlas
from app.processors.mesh.face_model import FaceModel, texture_scale
from app.processors.mesh.filters import FloatArray, resized, sampled
from app.processors.mesh.gaze import Gaze
from app.processors.mesh.raster import (
    IntArray,
    dense_map,
    draw_triangles,
    far_to_near,
    grown,
    triangle_maps,
)
from app.processors.mesh.shape import reshaped

_WORK_PX = 224
_MIN_FACE_PX = 16
_BORDER_PX = 2


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Target:
    """One target face, cut to its box.

    Attributes:
        box: Where the face lies in the crop.
        full: `(H, W, 3)` uint8 RGB, the box at full resolution.
        small: `(h, w, 3)` uint8 RGB, the same at working size.
        valid: `(h, w)` float32, 0 where the crop reaches beyond the picture.
        landmarks: `(478, 3)` float32, pixels of `small`.
        face_px: Size of the face in pixels of `small`.
    """

    box: PixelBox
    full: RgbImage
    small: RgbImage
    valid: FloatArray
    landmarks: FloatArray
    face_px: float

    @property
    def points(self) -> FloatArray:
        """The mesh without the irises, `(468, 3)`."""
        return self.landmarks[:MESH_POINTS]

    @property
    def size_wh(self) -> tuple[int, int]:
        """Working size."""
        h, w = self.small.shape[:2]
        return w, h

    @property
    def enlargement_xy(self) -> FloatArray:
        """Full pixels per working pixel, `(2,)`."""
        (full_w, full_h), (w, h) = self.box.size_wh, self.size_wh
        return np.array([full_w / w, full_h / h], np.float32)

    def enlarged(self, image: FloatArray) -> FloatArray:
        """From working size to full size."""
        return resized(image, self.box.size_wh)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Drawing:
    """The source on the target's mesh.

    Attributes:
        points: `(468, 3)` float32, the reshaped mesh.
        ids: `(h, w)` int32, triangles.
        uv: `(h, w, 2)` float32, texture coordinates.
        texture: `(h, w, 3)` uint8 RGB.
        traits: `(h, w, 4)` float32, 0 to 1, as in `Atlas.traits`.
    """

    points: FloatArray
    ids: IntArray
    uv: FloatArray
    texture: NDArray[np.uint8]
    traits: FloatArray


def prepare_target(crop: RgbImage, mask: FloatArray, landmarks: FloatArray) -> Target | None:
    """Cut a face to its box and make the small copy.

    Args:
        crop: `(S, S, 3)` uint8 RGB.
        mask: `(S, S)` float32, 0 where the crop reaches beyond the picture.
        landmarks: `(478, 3)` float32, crop pixels.

    Returns:
        The target; `None` if the face is too small to be drawn or not in the crop.
    """
    points = landmarks[:MESH_POINTS]
    box = _face_box(points, (crop.shape[1], crop.shape[0]))
    if min(box.size_wh) < _MIN_FACE_PX:
        return None
    cut = np.s_[box.y0 : box.y1, box.x0 : box.x1]
    scale = min(1.0, _WORK_PX / max(box.size_wh))
    size_wh = round(box.size_wh[0] * scale), round(box.size_wh[1] * scale)
    small_points = _scaled(landmarks, box, size_wh)
    oval = small_points[list(regions.FACE_OVAL), :2]
    return Target(
        box=box,
        full=crop[cut],
        small=resized(crop[cut], size_wh),
        valid=resized(mask[cut], size_wh),
        landmarks=small_points,
        face_px=float(np.sqrt(np.ptp(oval, axis=0).prod())),
    )


def draw(
    target: Target, atlas: Atlas, model: FaceModel, *, shape: float, gaze: Gaze | None = None
) -> Drawing:
    """Draw the source on the target's mesh.

    Args:
        target: The target.
        atlas: The source.
        model: The canonical face.
        shape: 0 to 1, how far the target's features follow the source's proportions.
        gaze: Where the source's eyes shall look; without it they look where they did.
    """
    points = reshaped(target.points, atlas.shape, model, shape)
    here, triangles = points[:, :2], model.triangles
    ids = draw_triangles(here, triangles, target.size_wh, far_to_near(points, triangles))
    uv = dense_map(grown(ids), triangle_maps(here, model.uv, triangles))
    if gaze is not None:
        gaze.follow_inplace(uv, points)
    return Drawing(
        points=points,
        ids=ids,
        uv=uv,
        texture=textured(atlas.level(texture_scale(points, model)), uv),
        traits=textured(atlas.traits, uv).astype(np.float32) * np.float32(1 / 255),
    )


def textured(texture: NDArray[np.uint8], uv: FloatArray) -> NDArray[np.uint8]:
    """Sample a texture of any size at texture coordinates, `(h, w, c)` uint8."""
    return sampled(texture, uv * np.float32(texture.shape[0]) - np.float32(0.5))


def _face_box(points: FloatArray, size_wh: tuple[int, int]) -> PixelBox:
    low = np.floor(points[:, :2].min(0)).astype(int) - _BORDER_PX
    high = np.ceil(points[:, :2].max(0)).astype(int) + _BORDER_PX
    return PixelBox(int(low[0]), int(low[1]), int(high[0]), int(high[1])).clipped_to(size_wh)


def _scaled(points: FloatArray, box: PixelBox, size_wh: tuple[int, int]) -> FloatArray:
    """Crop pixels to working pixels; centers lie at whole numbers, depth scales with the width."""
    across, down = size_wh[0] / box.size_wh[0], size_wh[1] / box.size_wh[1]
    scale = np.array([across, down, across], np.float32)
    center = np.array([0.5, 0.5, 0], np.float32)
    return (points - np.array([box.x0, box.y0, 0], np.float32) + center) * scale - center
