"""Networks that cost nothing and find faces in fixed places: what is left is the cost of everything around them.

They keep the contracts of the embedded detector, mesh, recognizer and gate. They are for measuring and testing, never
for a result that somebody wants.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError, UnknownModelError
from app.core.mesh_topology import load_topology
from app.inference.manifest import Manifest
from app.inference.spec import Feeds, ModelId, ModelSpec, Outputs, Session, Task

_STRIDES_PX = (8, 16, 32)
_LANDMARKS = Path(__file__).parent / "convert" / "data" / "proof_landmarks.npz"
_FACE_ASPECT = 0.75
_WIDE = 1.2
_KPS = ((0.30, 0.38), (0.70, 0.38), (0.50, 0.58), (0.34, 0.78), (0.66, 0.78))
"""Eyes, nose and mouth corners in a face's box."""

Run = Callable[[Feeds], Outputs]
Floats = NDArray[np.float32]


class StubZoo:
    """A zoo of stubs.

    Args:
        manifest: For the entries; nothing is opened.
        centers: Where faces are, in widths and heights of a wide picture; a square one has one in its middle, as the
            photo of a source has.
        face_height: Of a face, in heights of the picture.
        aspect: Width of the pictures by their height; the detector sees them with a border.
    """

    def __init__(
        self,
        manifest: Manifest,
        centers: tuple[tuple[float, float], ...],
        *,
        face_height: float = 0.35,
        aspect: float = 16 / 9,
    ) -> None:
        self._manifest = manifest
        self._centers = centers
        self._face_height = face_height
        self._aspect = aspect
        mesh, safe = _mesh_outputs(), np.array([[1, 0]], np.float32)
        self._runs: Mapping[str, Run] = MappingProxyType(
            {
                "yunet": self._detect,
                "face-mesh-attention": lambda feeds: _repeated(mesh, _rows(feeds)),
                "sface": lambda feeds: {"fc1": np.ones((_rows(feeds), 128), np.float32)},
                "open-nsfw": lambda feeds: _repeated({"score": safe}, _rows(feeds)),
            }
        )

    def spec(self, model_id: ModelId) -> ModelSpec:
        """The manifest's entry; see `ModelZoo.spec`."""
        return self._manifest.get(model_id)

    def session(self, model_id: ModelId) -> Session:
        """A stub; see `ModelZoo.session`.

        Raises:
            UnknownModelError: There is no stub of this model.
        """
        if model_id not in self._runs:
            raise UnknownModelError(
                f"there is no stub of {model_id}; there are: {', '.join(self._runs)}"
            )
        return _StubSession(self._runs[model_id])

    def last_matrix(self, model_id: ModelId) -> Floats:
        """No stub has one; see `ModelZoo.last_matrix`.

        Raises:
            ModelError: Always.
        """
        raise ModelError(f"{model_id}: the stub carries no matrix")

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        """Nothing but what every swap needs; see `ModelZoo.installed`."""
        return tuple(
            spec for spec in self._manifest.models if spec.task == task and spec.id in self._runs
        )

    def _detect(self, feeds: Feeds) -> Outputs:
        (picture,) = feeds.values()
        rows, _, height_px, width_px = picture.shape
        outputs: dict[str, Floats] = {}
        for stride in _STRIDES_PX:
            across, down = width_px // stride, height_px // stride
            cells = across * down
            for name, length in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)):
                outputs[f"{name}_{stride}"] = np.zeros((rows, cells, length), np.float32)
        if width_px > _WIDE * height_px:
            for center in self._centers:
                self._put_inplace(outputs, center, (width_px, width_px / self._aspect))
        else:
            self._put_inplace(outputs, (0.5, 0.5), (width_px, width_px))
        return outputs

    def _put_inplace(
        self,
        outputs: dict[str, Floats],
        center: tuple[float, float],
        size_wh: tuple[float, float],
    ) -> None:
        """Propose one face in the cell of the coarsest grid that it is in."""
        stride = _STRIDES_PX[-1]
        across = int(size_wh[0]) // stride
        size = np.array([_FACE_ASPECT, 1], np.float32) * (self._face_height * size_wh[1])
        place = np.array(center, np.float32) * np.array(size_wh, np.float32)
        corner = np.asarray(place // stride, np.float32)
        cell = int(corner[1]) * across + int(corner[0])
        points = place - size / 2 + np.array(_KPS, np.float32) * size
        outputs[f"cls_{stride}"][:, cell] = outputs[f"obj_{stride}"][:, cell] = 0.95
        outputs[f"bbox_{stride}"][:, cell, :2] = place / stride - corner
        outputs[f"bbox_{stride}"][:, cell, 2:] = np.log(size / stride)
        outputs[f"kps_{stride}"][:, cell] = (points / stride - corner).ravel()


class _StubSession:
    def __init__(self, run: Run) -> None:
        self._run = run

    def run(self, feeds: Feeds) -> Outputs:
        return self._run(feeds)


def _rows(feeds: Feeds) -> int:
    return len(next(iter(feeds.values())))


def _mesh_outputs() -> dict[str, Floats]:
    """The mesh of the drawn face, in its crop; depth is that of the canonical face."""
    with np.load(_LANDMARKS, allow_pickle=False) as file:
        points = {
            name: np.asarray(file[name], np.float32) for name in file.files if name != "affine"
        }
    vertices = load_topology().vertices
    scale = np.ptp(points["mesh"][:, 0]) / np.ptp(vertices[:, 0])
    points["mesh"] = np.column_stack([points["mesh"], -vertices[:, 2] * scale]).astype(np.float32)
    # The points that the stored mesh lacks are those over which the lips and eyes are written.
    filled = {name: np.nan_to_num(each, nan=96.0)[None] for name, each in points.items()}
    return {**filled, "presence": np.full((1, 1), 9, np.float32)}


def _repeated(outputs: Mapping[str, Floats], rows: int) -> Outputs:
    return {name: np.repeat(values, rows, axis=0) for name, values in outputs.items()}
