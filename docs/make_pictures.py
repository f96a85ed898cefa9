"""Makes the README's picture: two public-domain portraits, and each with the other's face.

    python docs/make_pictures.py

Eileen Collins: NASA, by way of scikit-image. Grace Hopper: United States Navy, by way of matplotlib's sample data.
"""

import tempfile
from pathlib import Path

import cv2
import matplotlib.cbook
import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from app import bootstrap
from app.config import Settings
from app.pipeline.spec import RenderSpec

OUTPUT = Path(__file__).parent / "pictures" / "before_after.jpg"
SIDE_PX = 360
GAP_PX = 8


def portraits(folder: Path) -> tuple[Path, Path]:
    """Write both portraits, cut to the head and shoulders, at a like size."""
    collins = np.asarray(skimage.data.astronaut())[0:300, 80:380]
    with matplotlib.cbook.get_sample_data("grace_hopper.jpg") as file, Image.open(file) as image:
        hopper = np.asarray(image.convert("RGB"))[0:400, 60:460]
    paths = folder / "collins.png", folder / "hopper.png"
    for path, picture in zip(paths, (collins, hopper), strict=True):
        sized = cv2.resize(picture, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_CUBIC)
        Image.fromarray(sized).save(path)
    return paths


def swapped(face: Path, target: Path) -> NDArray[np.uint8]:
    """The target with another face."""
    output = target.with_name(f"{target.stem}_swapped.png")
    spec = RenderSpec(sources=(face,), target=target, output=output, consent="public-domain")
    bootstrap.workbench(Settings()).render(spec)
    with Image.open(output) as image:
        return np.asarray(image.convert("RGB"))


def main() -> None:
    """Lay the four pictures side by side."""
    with tempfile.TemporaryDirectory() as name:
        collins, hopper = portraits(Path(name))
        panels = []
        for face, target in ((hopper, collins), (collins, hopper)):
            with Image.open(target) as image:
                panels.append(np.asarray(image.convert("RGB")))
            panels.append(swapped(face, target))
    gap = np.full((SIDE_PX, GAP_PX, 3), 255, np.uint8)
    row = np.hstack([part for panel in panels for part in (panel, gap)][:-1])
    Image.fromarray(row).save(OUTPUT, quality=88, optimize=True)


if __name__ == "__main__":
    main()
