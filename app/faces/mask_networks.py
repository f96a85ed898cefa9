"""Maskers that ask a network: an occlusion model, or a parsing model that names the parts of a face.

A model of the tasks `face_occlude` and `face_parse` is used as soon as it is installed, instead of the embedded
masker; where several are, a pixel must be face to all of them. The faces of a batch go through each network
together, upright and at the size it was trained on.
"""

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np

from app.core.geometry import invert_affine
from app.core.picture import Picture
from app.core.types import FloatArray, RgbImage, TrackId
from app.faces.landmarks import CROP_PX, region_from_landmarks
from app.faces.masks import ColorMasker, FaceMasker
from app.faces.sampling import sample_square
from app.inference.feeds import picture_feed
from app.inference.spec import ModelSpec, ModelZoo, Task

_TASKS: tuple[Literal["face_occlude", "face_parse"], ...] = ("face_occlude", "face_parse")
_SIDES_PX: dict[Task, int] = {"face_occlude": 256, "face_parse": 512}
_FACE_CLASSES = (1, 2, 3, 4, 5, 10, 11, 12, 13)
"""Of CelebAMask-HQ's 19: skin, brows, eyes, nose, mouth, lips. Glasses, hair, hats, ears and cloth are not the face."""

_BATCH = 8
_SOFT_SHARE = 0.012


def best_masker(zoo: ModelZoo) -> FaceMasker:
    """The networks for occlusion that are installed, or the embedded masker."""
    specs = [spec for task in _TASKS for spec in zoo.installed(task)]
    return NetworkMasker(zoo, specs) if specs else ColorMasker()


class NetworkMasker:
    """Asks one or more networks.

    Args:
        zoo: Has them.
        specs: Which; of the tasks `face_occlude` (output: probability of face, `(n, S, S, 1)` or `(n, 1, S, S)`) and
            `face_parse` (output: a logit for each of 19 classes, `(n, 19, S, S)`).
    """

    def __init__(self, zoo: ModelZoo, specs: Sequence[ModelSpec]) -> None:
        self._networks = [(spec, zoo.session(spec.id)) for spec in specs]

    def masks(
        self, crops: RgbImage, landmarks: FloatArray, track_ids: Sequence[TrackId | None]
    ) -> FloatArray:
        """See `FaceMasker.masks`."""
        masks = np.ones(crops.shape[:3], np.float32)
        for start in range(0, len(crops), _BATCH):
            rows = slice(start, start + _BATCH)
            for spec, _ in self._networks:
                found = self._asked(spec, crops[rows], landmarks[rows])
                masks[rows] = np.minimum(masks[rows], found)
        return masks

    def _asked(self, spec: ModelSpec, crops: RgbImage, landmarks: FloatArray) -> FloatArray:
        session = next(session for known, session in self._networks if known is spec)
        side = spec.crop.size if spec.crop else _SIDES_PX[spec.task]
        affines = [
            region_from_landmarks(points).affine * np.float32(side / CROP_PX)
            for points in landmarks
        ]
        seen = [
            sample_square(Picture.from_rgb(crop), affine, side)
            for crop, affine in zip(crops, affines, strict=True)
        ]
        outputs = session.run({spec.input.name: picture_feed(np.stack(seen), spec.input)})
        faces = face_share(spec.task, np.asarray(next(iter(outputs.values())), np.float32))
        return np.stack(
            [
                _put_back(face, affine, crops.shape[1])
                for face, affine in zip(faces, affines, strict=True)
            ]
        )


def face_share(task: Task, output: FloatArray) -> FloatArray:
    """What a network's output says of each pixel, `(n, S, S)` float32, 0 covered to 1 face.

    Raises:
        ValueError: The output has not the shape that the task promises.
    """
    if output.ndim != 4:
        raise ValueError(f"{task}: got an output of shape {output.shape}, wanted four axes")
    if task == "face_parse":
        return np.isin(output.argmax(1), _FACE_CLASSES).astype(np.float32)
    if 1 not in (output.shape[1], output.shape[3]):
        raise ValueError(f"{task}: got an output of shape {output.shape}, wanted one channel")
    probability = output[:, 0] if output.shape[1] == 1 else output[..., 0]
    # Below an even chance it is no face; above, the network's doubt is the softness of the edge.
    return np.asarray(np.clip(2 * probability - 1, 0, 1), dtype=np.float32)


def _put_back(face: FloatArray, affine: FloatArray, side_px: int) -> FloatArray:
    """From the network's square to the crop; what it did not see counts as uncovered."""
    soft = cv2.GaussianBlur(face, (0, 0), max(0.8, _SOFT_SHARE * len(face)))
    back = cv2.warpAffine(
        soft,
        invert_affine(affine),
        (side_px, side_px),
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=1,
    )
    return np.asarray(back, dtype=np.float32)
