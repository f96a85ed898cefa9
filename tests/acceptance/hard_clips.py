"""Short clips that are hard to follow, made of pictures that come inside packages, with what each frame shows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray, transform_points
from app.core.types import Face
from tests.acceptance.following import TrueFace

Rgb = NDArray[np.uint8]
SIZE_WH = (640, 360)
CLEAR_SHARE = 0.8
"""So much of a face's box must be in the picture and free of other heads for the face to count as seen."""
SMALLEST_PX = 20
_HEAD_PX = 220
"""Height of a cut-out: a face of it is some 100 pixels wide."""


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """A head, cut out: pixels, how much of each is the head, and its face."""

    person: int
    image: Rgb
    mask: FloatArray
    box: FloatArray
    kps: FloatArray

    def mirrored(self) -> "Actor":
        """The same person as a mirror shows it."""
        flip = np.array([[-1, 0, self.image.shape[1]], [0, 1, 0]], np.float32)
        x0, y0, x1, y1 = self.box.tolist()
        points = transform_points(self.kps, flip)[[1, 0, 2, 4, 3]]
        w = self.image.shape[1]
        return Actor(
            self.person,
            np.ascontiguousarray(self.image[:, ::-1]),
            np.ascontiguousarray(self.mask[:, ::-1]),
            np.array([w - x1, y0, w - x0, y1], np.float32),
            points,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Where an actor stands in a frame: the middle of the head, its size against `_HEAD_PX`, and its roll."""

    actor: Actor
    xy: tuple[float, float]
    scale: float = 1.0
    roll_deg: float = 0.0

    @property
    def affine(self) -> FloatArray:
        h, w = self.actor.image.shape[:2]
        affine = cv2.getRotationMatrix2D((w / 2, h / 2), self.roll_deg, self.scale)
        affine[:, 2] += np.array(self.xy) - (w / 2, h / 2)
        return np.asarray(affine, np.float32)


Scene = Callable[[Sequence[Actor], int], Sequence[Pose]]
"""From all actors and a frame's number to who stands where, the farthest first."""


def actor(person: int, image: Rgb, face: Face) -> Actor:
    """Cut the head around a face out."""
    x0, y0, x1, y1 = face.bbox_xyxy
    pad_x, pad_y = 0.35 * (x1 - x0), 0.35 * (y1 - y0)
    h, w = image.shape[:2]
    left, top = max(0, int(x0 - pad_x)), max(0, int(y0 - 1.3 * pad_y))
    cut = image[top : min(h, int(y1 + 0.7 * pad_y)), left : min(w, int(x1 + pad_x))]
    k = _HEAD_PX / cut.shape[0]
    sized = cv2.resize(
        cut, None, fx=k, fy=k, interpolation=cv2.INTER_AREA if k < 1 else cv2.INTER_CUBIC
    )
    mask = np.zeros(sized.shape[:2], np.float32)
    middle = sized.shape[1] // 2, sized.shape[0] // 2
    cv2.ellipse(mask, middle, (middle[0] - 3, middle[1] - 3), 0, 0, 360, 1.0, -1)
    corner = np.array([left, top], np.float32)
    return Actor(
        person,
        np.asarray(sized, np.uint8),
        np.asarray(cv2.GaussianBlur(mask, (0, 0), 2), np.float32),
        ((face.bbox_xyxy.reshape(2, 2) - corner) * k).reshape(4).astype(np.float32),
        ((face.kps - corner) * k).astype(np.float32),
    )


def drawn(background: Rgb, poses: Sequence[Pose]) -> Rgb:
    """One frame."""
    canvas = background.astype(np.float32)
    size_wh = background.shape[1], background.shape[0]
    for pose in poses:
        image = cv2.warpAffine(
            pose.actor.image,
            pose.affine,
            size_wh,
            flags=cv2.INTER_AREA,
            borderMode=cv2.BORDER_REPLICATE,
        )
        mask = cv2.warpAffine(pose.actor.mask, pose.affine, size_wh)[..., None]
        canvas += mask * (image - canvas)
    return np.asarray(np.rint(canvas), np.uint8)


def shown(poses: Sequence[Pose], size_wh: tuple[int, int] = SIZE_WH) -> list[TrueFace]:
    """What is to be found in a frame."""
    heads = [cv2.warpAffine(pose.actor.mask, pose.affine, size_wh) for pose in poses]
    faces = []
    for at, pose in enumerate(poses):
        box = _box_of(pose)
        low, high = np.clip(np.rint(box.reshape(2, 2)).astype(int), 0, size_wh)
        if (high <= low).any():
            continue
        place = slice(low[1], high[1]), slice(low[0], high[0])
        free = np.prod([1 - head[place] for head in heads[at + 1 :]], axis=0)
        seen = float(np.broadcast_to(free, heads[at][place].shape).sum()) / _area(box)
        points = transform_points(pose.actor.kps, pose.affine)
        is_clear = seen >= CLEAR_SHARE and box[2] - box[0] >= SMALLEST_PX
        faces.append(TrueFace(person=pose.actor.person, box=box, points=points, is_clear=is_clear))
    return faces


def _box_of(pose: Pose) -> FloatArray:
    """The box around the oval of a face, turned."""
    corners = pose.actor.box.reshape(2, 2)
    (x, y), (a, b) = (
        transform_points(corners.mean(0, keepdims=True), pose.affine)[0],
        (corners[1] - corners[0]) / 2 * pose.scale,
    )
    turn = np.deg2rad(pose.roll_deg)
    half_w = np.hypot(a * np.cos(turn), b * np.sin(turn))
    half_h = np.hypot(a * np.sin(turn), b * np.cos(turn))
    return np.array([x - half_w, y - half_h, x + half_w, y + half_h], np.float32)


def _area(box: FloatArray) -> float:
    return float((box[2:] - box[:2]).prod())


def written(path: Path, frames: Iterator[Rgb], times_s: Sequence[Fraction]) -> Path:
    """Encode frames with their times."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=25, options={"crf": "18", "preset": "veryfast"}
        )
        stream.width, stream.height, stream.pix_fmt = *SIZE_WH, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 12000)
        for image, time_s in zip(frames, times_s, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = round(time_s * 12000), Fraction(1, 12000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def steady(rate: int | Fraction, frames: int) -> list[Fraction]:
    """The times of frames at one rate."""
    return [Fraction(at) / rate for at in range(frames)]
