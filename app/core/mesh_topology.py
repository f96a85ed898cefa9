"""The canonical face of MediaPipe's face mesh: 468 points, how they hang together, and which of them are refined.

Figures from MediaPipe (Google, Apache-2.0); `data/README.md` says where each comes from. Left and right are the
viewer's, with the face upright.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

MESH_POINTS = 468
"""Points of the mesh. Landmarks have ten more behind them: five of the left iris, five of the right."""

LIPS_REFINED = (
    *(61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291),
    *(185, 40, 39, 37, 0, 267, 269, 270, 409),
    *(78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308),
    *(191, 80, 81, 82, 13, 312, 311, 310, 415),
    *(76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306),
    *(184, 74, 73, 72, 11, 302, 303, 304, 408),
    *(62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292),
    *(183, 42, 41, 38, 12, 268, 271, 272, 407),
)
"""The 80 points that the output `lips` places better, in its order: four rings, each from the lower lip."""

LEFT_EYE_REFINED = (
    *(33, 7, 163, 144, 145, 153, 154, 155, 133),
    *(246, 161, 160, 159, 158, 157, 173),
    *(130, 25, 110, 24, 23, 22, 26, 112, 243),
    *(247, 30, 29, 27, 28, 56, 190),
    *(226, 31, 228, 229, 230, 231, 232, 233, 244),
    *(113, 225, 224, 223, 222, 221, 189),
    *(35, 124, 46, 53, 52, 65),
    *(143, 111, 117, 118, 119, 120, 121, 128, 245),
    *(156, 70, 63, 105, 66, 107, 55, 193),
)
"""The 71 points of the output `left_eye`: 16 of the eye itself, then its surroundings up to the brow."""

RIGHT_EYE_REFINED = (
    *(263, 249, 390, 373, 374, 380, 381, 382, 362),
    *(466, 388, 387, 386, 385, 384, 398),
    *(359, 255, 339, 254, 253, 252, 256, 341, 463),
    *(467, 260, 259, 257, 258, 286, 414),
    *(446, 261, 448, 449, 450, 451, 452, 453, 464),
    *(342, 445, 444, 443, 442, 441, 413),
    *(265, 353, 276, 283, 282, 295),
    *(372, 340, 346, 347, 348, 349, 350, 357, 465),
    *(383, 300, 293, 334, 296, 336, 285, 417),
)
"""The 71 points of the output `right_eye`, mirrored in order."""

_Number = TypeVar("_Number", bound=np.generic)

_FILE = Path(__file__).parent / "data" / "face_mesh_468.npz"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MeshTopology:
    """The table of figures; nobody may write into its arrays.

    Attributes:
        vertices: `(468, 3)` float32, centimeters: x to the right, y up, z towards the viewer.
        uv: `(468, 2)` float32, place on the flat texture, 0 to 1 from its top left corner: x right, y down.
        triangles: `(898, 3)` int32, points of each triangle, counter-clockwise as the viewer sees `vertices`.
    """

    vertices: NDArray[np.float32]
    uv: NDArray[np.float32]
    triangles: NDArray[np.int32]


def load_topology() -> MeshTopology:
    """Read the table from the file that comes with the code."""
    with np.load(_FILE) as table:
        return MeshTopology(
            vertices=_frozen(table["vertices_xyz"]),
            uv=_frozen(table["uv"]),
            triangles=_frozen(table["triangles"]),
        )


def _frozen(array: NDArray[_Number]) -> NDArray[_Number]:
    array.setflags(write=False)
    return array
