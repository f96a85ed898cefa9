"""Who gets what, judged from outside: by two networks that know the sources, and pixel by pixel.

SFace is what FaceDock itself uses; the MobileFaceNet had no part in any of its choices.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from PIL import Image

from app.core.geometry import similarity, template_points
from app.core.picture import Picture
from app.core.types import Face
from app.faces.recognizer import FaceRecognizer, normed
from app.faces.sampling import sample_square
from app.inference.spec import ModelZoo
from app.media.decode import VideoReader
from app.workbench import Workbench

GAINED, KEPT = 0.15, 0.7
"""Likeness to the source that a swap adds at least, and likeness to what it was that it leaves at most."""
SOURCES = ("frontal_astronaut.png", "ai_generated_woman.jpg", "black_white_man.jpg", "beard_man.jpg",
           "open_mouth_man.jpg", "glasses_curly_hair.jpg")  # fmt: skip
SURELY_SWAPPED = 1.7
"""Farther than this from the middle of a face, in halves of its box, a swap changes nothing."""
CORE = 0.5
"""Nearer than this, the same way, is nothing but face."""

Rgb = NDArray[np.uint8]
Embed = Callable[[Rgb, NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """One face of one picture: its box and its five points."""

    box: NDArray[np.float32]
    kps: NDArray[np.float32]

    @property
    def width_px(self) -> float:
        return float(self.box[2] - self.box[0])

    def zone(self, shape: Sequence[int], grown: float) -> NDArray[np.bool_]:
        """The pixels within so many half boxes of its middle."""
        x0, y0, x1, y1 = self.box.tolist()
        x, y, half = (x0 + x1) / 2, (y0 + y1) / 2, max(x1 - x0, y1 - y0) / 2 * grown
        rows, columns = np.ogrid[: shape[0], : shape[1]]
        return np.asarray((abs(columns - x) <= half) & (abs(rows - y) <= half))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one network says of a face before and after.

    Attributes:
        likest: The source that the face now is nearest to.
        likeness: To the source that it was to become.
        gained: By how much the likeness to that source grew.
        kept: Likeness to what it was.
    """

    network: str
    likest: str
    likeness: float
    gained: float
    kept: float


@dataclass(frozen=True, slots=True)
class Judges:
    """The two networks and what they know of the sources."""

    embeds: Mapping[str, Embed]
    sources: Mapping[str, Mapping[str, NDArray[np.float32]]]

    def verdicts(
        self, source: str, before: Sequence[Rgb], after: Sequence[Rgb], spots: Sequence[Spot]
    ) -> list[Verdict]:
        """One a network, over all pictures together."""
        found = []
        for network, embed in self.embeds.items():
            was = normed(sum(embed(*pair) for pair in _seen(before, spots)))
            became = normed(sum(embed(*pair) for pair in _seen(after, spots)))
            known = self.sources[network]
            alike = {name: float(vector @ became) for name, vector in known.items()}
            found.append(
                Verdict(
                    network=network,
                    likest=max(alike, key=lambda name: alike[name]),
                    likeness=alike[source],
                    gained=alike[source] - float(known[source] @ was),
                    kept=float(was @ became),
                )
            )
        return found

    def assert_became(
        self, source: str, before: Sequence[Rgb], after: Sequence[Rgb], spots: Sequence[Spot]
    ) -> None:
        """To both networks the face is liker its source than any other, and much liker than it was."""
        for verdict in self.verdicts(source, before, after, spots):
            assert verdict.likest == source, verdict
            assert verdict.gained > GAINED, verdict
            assert verdict.kept < KEPT, verdict


def _seen(
    pictures: Sequence[Rgb], spots: Sequence[Spot]
) -> Iterator[tuple[Rgb, NDArray[np.float32]]]:
    return zip(pictures, (spot.kps for spot in spots), strict=True)


def judges_of(stills: Path, shared_models: Path, zoo: ModelZoo, workbench: Workbench) -> Judges:
    """Show both networks every source."""
    session = ort.InferenceSession(
        shared_models / "mobilefacenet_128d_112.onnx", providers=["CPUExecutionProvider"]
    )
    recognizer = FaceRecognizer(zoo)

    def sface(image: Rgb, kps: NDArray[np.float32]) -> NDArray[np.float32]:
        face = Face(bbox_xyxy=np.zeros(4, np.float32), kps=kps, det_score=1.0)
        return recognizer.embed([(Picture.from_rgb(image), face)])[0]

    def mobilefacenet(image: Rgb, kps: NDArray[np.float32]) -> NDArray[np.float32]:
        affine = similarity(kps, template_points("arcface_112", 112))
        crop = sample_square(Picture.from_rgb(image), affine, 112)
        feed = (crop.transpose(2, 0, 1)[None].astype(np.float32) - 127.5) / 128
        return normed(session.run(None, {session.get_inputs()[0].name: feed})[0][0])

    embeds: dict[str, Embed] = {"SFace": sface, "MobileFaceNet": mobilefacenet}
    photos = {name: stills / name for name in SOURCES}
    meant = {
        name: max(workbench.find_faces(path).faces, key=lambda face: float(np.ptp(face.kps)))
        for name, path in photos.items()
    }
    return Judges(
        embeds,
        {
            network: {name: embed(pixels(path), meant[name].kps) for name, path in photos.items()}
            for network, embed in embeds.items()
        },
    )


def pixels(path: Path) -> Rgb:
    with Image.open(path) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB")))


def frames_of(path: Path) -> Iterator[Rgb]:
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


def times_of(path: Path) -> list[float]:
    """When each frame is shown, as `Frame.time_s` has it."""
    with VideoReader(path) as reader:
        return [frame.time_s for frame in reader.frames()]
