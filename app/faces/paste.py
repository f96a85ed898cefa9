"""Put changed crops back into the pictures they were cut from.

A picture is copied once, and only if one of its faces was really changed; then only the boxes are written in
which a mask is not zero. A crop that was merely cut out goes back pixel on pixel. A warped one is warped back, inside
the box of its own mask.

Faces that touch: crops are cut from the unchanged picture, but each is blended over what the faces before it
left, weighted with its own mask. So a square that holds a piece of a neighbor cannot bring that piece's old
pixels back: its mask is zero there. Faces are laid far to near, the larger one being the nearer. What a nearer
face covers is cut out of the masks behind it, whether that face is changed or not: else the farther face would show
through the soft edge of the nearer one, or lie over somebody who was to be left alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from app.core.geometry import FloatArray, invert_affine, transform_points
from app.core.mesh_regions import FACE_OVAL
from app.core.picture import Picture, PixelBox
from app.core.types import FaceBatch, Frame, RgbImage, Window
from app.faces.align import AlignedFaces

VISIBLE = 0.5 / 255
"""A mask below this changes no 8-bit pixel."""

_AS_NEAR = 1.02
"""A face that is no larger than this is not nearer; it may be the very face that was changed."""


@dataclass(frozen=True, slots=True)
class _Patch:
    """One changed face: its crop, mask and affine, and its size in picture pixels."""

    crop: RgbImage
    mask: FloatArray
    affine: FloatArray
    size_px: float


def paste(
    window: Window, aligned: Sequence[AlignedFaces], processed: Sequence[FaceBatch]
) -> Window:
    """Blend processed crops into their frames.

    Args:
        window: The frames that `align` was given; they are not written to.
        aligned: What `align` returned.
        processed: One batch for each of `aligned`, rows in the same order.

    Returns:
        The window; frames without a changed face are the same objects. `faces_swapped` counts the faces whose
        mask is not empty; after several steps it is the highest count of any one step.

    Raises:
        ValueError: A processed batch has not the shape of its aligned one.
    """
    by_frame: dict[int, list[_Patch]] = defaultdict(list)
    for faces, batch in zip(aligned, processed, strict=True):
        _check_rows(faces.batch, batch)
        for row, slot in enumerate(faces.slots):
            patch = _patch(batch, row)
            if patch is not None:
                by_frame[slot.frame].append(patch)
    return tuple(
        _with_patches(frame, by_frame[index]) if index in by_frame else frame
        for index, frame in enumerate(window)
    )


def _check_rows(before: FaceBatch, after: FaceBatch) -> None:
    if before.crops.shape != after.crops.shape:
        raise ValueError(
            f"processed crops: got {after.crops.shape}, wanted {before.crops.shape}; "
            "a processor keeps the number, order and size of its rows"
        )


def _patch(batch: FaceBatch, row: int) -> _Patch | None:
    mask = batch.masks[row]
    if float(mask.max()) < VISIBLE:
        return None
    affine = batch.affine[row]
    # In the picture, where it is compared with faces that may be turned otherwise: a crop may stand upright.
    points = transform_points(batch.landmarks[row, :, :2], invert_affine(affine))
    return _Patch(batch.crops[row], mask, affine, _size_px(points))


def _with_patches(frame: Frame, patches: list[_Patch]) -> Frame:
    picture = frame.picture.copy()
    sized = [(f.landmarks, _size_px(f.landmarks)) for f in frame.faces if f.landmarks is not None]
    for patch in sorted(patches, key=lambda each: each.size_px):
        _put_inplace(picture, _behind_nearer(patch, sized))
    return replace(frame, picture=picture, faces_swapped=max(frame.faces_swapped, len(patches)))


def _behind_nearer(patch: _Patch, faces: Sequence[tuple[FloatArray, float]]) -> _Patch:
    """The patch without what nearer faces of its frame cover; `faces` are landmarks and sizes."""
    mask = patch.mask
    nearer = [points for points, size_px in faces if size_px > patch.size_px * _AS_NEAR]
    if not nearer:
        return patch
    x, y, w, h = _visible_box(mask)
    for points in nearer:
        outline = transform_points(points[list(FACE_OVAL), :2], patch.affine)
        low, high = outline.min(0), outline.max(0)
        if high[0] < x or high[1] < y or low[0] > w or low[1] > h:
            continue
        mask = mask * (1 - _oval(outline, mask.shape[0]))
    return patch if mask is patch.mask else replace(patch, mask=mask)


def _oval(outline: FloatArray, side_px: int) -> FloatArray:
    """A face's outline, filled, with an edge of a pixel or two."""
    canvas = np.zeros((side_px, side_px), np.uint8)
    cv2.fillPoly(canvas, [np.rint(outline * 16).astype(np.int32)], (255,), cv2.LINE_AA, 4)
    return np.asarray(cv2.GaussianBlur(canvas, (0, 0), 1.0), np.float32) / np.float32(255)


def _size_px(landmarks: FloatArray) -> float:
    return float(np.ptp(landmarks[:, :2], axis=0).max())


def _put_inplace(picture: Picture, patch: _Patch) -> None:
    if np.array_equal(patch.affine[:, :2], np.eye(2)) and _is_whole(patch.affine[:, 2]):
        _put_copied_inplace(picture, patch)
    else:
        _put_warped_inplace(picture, patch)


def _is_whole(shift: FloatArray) -> bool:
    return bool((shift == np.rint(shift)).all())


def _put_copied_inplace(picture: Picture, patch: _Patch) -> None:
    dx, dy = (int(value) for value in patch.affine[:, 2])
    part = _visible_box(patch.mask)
    box = PixelBox(part.x0 - dx, part.y0 - dy, part.x1 - dx, part.y1 - dy)
    box = box.clipped_to(picture.size_wh)
    if box.is_empty:
        return
    window = np.s_[box.y0 + dy : box.y1 + dy, box.x0 + dx : box.x1 + dx]
    picture.write(box, patch.crop[window], patch.mask[window])


def _put_warped_inplace(picture: Picture, patch: _Patch) -> None:
    back = invert_affine(patch.affine)
    box = _on_chroma_grid(_box_behind(_visible_box(patch.mask), back)).clipped_to(picture.size_wh)
    if box.is_empty:
        return
    back[:, 2] -= (box.x0, box.y0)
    picture.write(box, *_warped(*_shrunk(patch, back), size_wh=box.size_wh))


def _warped(
    rgb: RgbImage, mask: FloatArray, back: FloatArray, *, size_wh: tuple[int, int]
) -> tuple[RgbImage, FloatArray]:
    """A crop and its mask as they lie in the picture."""
    if _is_free_of_border(mask):
        # Four channels at once take a third of the time of three and one; to the eighth bit the mask is the same.
        eight = cv2.convertScaleAbs(mask, alpha=255)
        four = cv2.merge([*cv2.split(rgb), eight])
        whole = cv2.warpAffine(four, back, size_wh, borderMode=cv2.BORDER_REPLICATE)
        *colors, alpha = cv2.split(whole)
        return np.asarray(cv2.merge(colors), np.uint8), alpha.astype(np.float32) / np.float32(255)
    warped = cv2.warpAffine(rgb, back, size_wh, borderMode=cv2.BORDER_REPLICATE)
    alpha = cv2.warpAffine(mask, back, size_wh)
    return np.asarray(warped, np.uint8), np.asarray(alpha, np.float32)


def _is_free_of_border(mask: FloatArray) -> bool:
    """Whether nothing shows at the crop's border, so that whatever lies beyond it is the same."""
    return not (mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any())


def _on_chroma_grid(box: PixelBox) -> PixelBox:
    """Grown to even pixels: what lies between would have to be read twice."""
    x0, y0, x1, y1 = box
    return PixelBox(x0 - x0 % 2, y0 - y0 % 2, x1 + x1 % 2, y1 + y1 % 2)


def _shrunk(patch: _Patch, back: FloatArray) -> tuple[RgbImage, FloatArray, FloatArray]:
    """Bring a crop larger than its face down to the picture's scale area-true, before it is warped back."""
    side = patch.crop.shape[0]
    scale = min(1.0, float(np.sqrt(abs(np.linalg.det(back[:, :2])))))
    small = max(1, round(side * scale))
    mask = np.ascontiguousarray(patch.mask)
    if small == side:
        return patch.crop, mask, back
    rgb = cv2.resize(patch.crop, (small, small), interpolation=cv2.INTER_AREA)
    soft = cv2.resize(mask, (small, small), interpolation=cv2.INTER_AREA)
    step = side / small
    shift = back[:, :2] @ np.full(2, (step - 1) / 2) + back[:, 2]
    affine = np.column_stack([back[:, :2] * step, shift]).astype(np.float32)
    return np.asarray(rgb, np.uint8), np.asarray(soft, np.float32), affine


def _visible_box(mask: FloatArray) -> PixelBox:
    x, y, w, h = cv2.boundingRect((mask >= VISIBLE).astype(np.uint8))
    return PixelBox(x, y, x + w, y + h)


def _box_behind(box: PixelBox, back: FloatArray) -> PixelBox:
    """The upright box in the picture that holds a box of the crop."""
    corners = np.array(
        [[box.x0, box.y0], [box.x1, box.y0], [box.x1, box.y1], [box.x0, box.y1]], np.float32
    )
    points = corners @ back[:, :2].T + back[:, 2]
    low, high = np.floor(points.min(0)) - 1, np.ceil(points.max(0)) + 1
    return PixelBox(int(low[0]), int(low[1]), int(high[0]), int(high[1]))
