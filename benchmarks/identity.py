"""How much a swapped face looks like its source, judged by two networks.

    python -m benchmarks.identity [STILLS_FOLDER [SECOND_NETWORK.onnx [SHEETS_FOLDER]]]

Every source is put on every target that shows somebody else. SFace is the network that FaceDock itself uses; the
second one, a MobileFaceNet, had no part in choosing any setting. Both see the face cut out by the detector's five
points. The level to beat is how alike different people look to each network. With a folder for sheets, the results
are also laid side by side as pictures, one file a target.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from PIL import Image

from app.config import ROOT, Settings
from app.core.geometry import similarity, template_points
from app.core.picture import Picture, PixelBox
from app.core.types import Face, Frame, Identity, RgbImage
from app.faces.align import align
from app.faces.detector import FaceDetector
from app.faces.landmarks import FaceLandmarker, bbox_from_landmarks
from app.faces.paste import paste
from app.faces.people import IdentityBuilder
from app.faces.recognizer import SAME_PERSON_COSINE, FaceRecognizer, normed
from app.faces.sampling import sample_square
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from app.processors.face_swapper import PROCESSOR, Options
from benchmarks.tables import write_table

SHARED = ROOT.parent / "shared"
SOURCES = (
    "frontal_astronaut.png",
    "ai_generated_woman.jpg",
    "beard_man.jpg",
    "dark_skin_portrait_a.jpg",
    "elderly_man.jpg",
    "black_white_man.jpg",
)
TARGETS = (
    "open_mouth_man.jpg",
    "closed_eyes_woman.jpg",
    "glasses_curly_hair.jpg",
    "beard_man.jpg",
    "ai_generated_woman.jpg",
    "elderly_man.jpg",
    "black_white_man.jpg",
    "dark_skin_speech_a2.jpg",
)
SAME_PERSON = {frozenset({"dark_skin_portrait_a.jpg", "dark_skin_speech_a2.jpg"})}
SHEET_PX = 400

Embed = Callable[[Picture, Face], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """A photo and its largest face."""

    name: str
    picture: Picture
    face: Face


@dataclass(frozen=True, slots=True, eq=False)
class Swapped:
    """One result and the two faces it came from."""

    source: Person
    target: Person
    result: Person


class Studio:
    """The real modules, in a row."""

    def __init__(self, zoo: OrtModelZoo) -> None:
        self._detector = FaceDetector(zoo)
        self._landmarker = FaceLandmarker(zoo)
        self._recognizer = FaceRecognizer(zoo)
        self._builder = IdentityBuilder(self._detector, self._landmarker, self._recognizer)
        self._swapper = PROCESSOR.build(Options(), zoo)

    def sface(self, picture: Picture, face: Face) -> NDArray[np.float32]:
        """The first network."""
        return np.asarray(self._recognizer.embed([(picture, face)])[0])

    def person(self, path: Path) -> Person:
        """A photo with its largest face measured."""
        with Image.open(path) as image:
            picture = Picture.from_rgb(np.asarray(image.convert("RGB")))
        faces = self._detector.detect([picture])[0]
        face = max(faces, key=lambda each: float((each.bbox_xyxy[2:] - each.bbox_xyxy[:2]).prod()))
        landmarks, _ = self._landmarker.locate_faces([(picture, face)])
        return Person(path.name, picture, replace(face, landmarks=landmarks[0]))

    def identity(self, person: Person) -> Identity:
        """The person as a source."""
        return self._builder.build([person.picture], "source")[0]

    def swap(self, target: Person, identity: Identity) -> Person:
        """The target with the identity's face."""
        face = replace(target.face, identity=identity)
        frame = Frame(index=0, pts=0, time_base=Fraction(1), picture=target.picture, faces=(face,))
        aligned = align((frame,), PROCESSOR.crop)
        processed = [self._swapper.process(each.batch) for each in aligned]
        picture = paste((frame,), aligned, processed)[0].picture
        return Person(target.name, picture, self._nearest(picture, target.face))

    def _nearest(self, picture: Picture, face: Face) -> Face:
        """The face as the detector sees it in the result; where it sees none, where it was."""
        found = self._detector.detect([picture])[0]
        return min(found, key=lambda each: float(np.abs(each.kps - face.kps).sum()), default=face)


def mobilefacenet(path: Path) -> Embed:
    """The second network: ArcFace's crop, RGB, (x - 127.5) / 128."""
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def embed(picture: Picture, face: Face) -> NDArray[np.float32]:
        crop = sample_square(
            picture, similarity(face.kps, template_points("arcface_112", 112)), 112
        )
        feed = (crop.transpose(2, 0, 1)[None].astype(np.float32) - 127.5) / 128
        return normed(session.run(None, {name: feed})[0][0])

    return embed


def row(
    name: str, embed: Embed, swaps: Sequence[Swapped], people: Sequence[Person]
) -> list[object]:
    """One network's verdict."""
    known = {person.name: embed(person.picture, person.face) for person in people}
    results = [embed(each.result.picture, each.result.face) for each in swaps]
    before = [float(known[each.source.name] @ known[each.target.name]) for each in swaps]
    after = [
        float(known[each.source.name] @ vector) for each, vector in zip(swaps, results, strict=True)
    ]
    kept = [
        float(known[each.target.name] @ vector) for each, vector in zip(swaps, results, strict=True)
    ]
    strangers = [
        float(known[a] @ known[b])
        for a, b in combinations(known, 2)
        if frozenset({a, b}) not in SAME_PERSON
    ]
    level = SAME_PERSON_COSINE if name == "SFace" else max(strangers)
    share = float(np.mean(np.array(after) >= level))
    return [
        name, f"{np.mean(before):.2f}", f"{np.mean(after):.3f}", f"{min(after):.2f}", f"{level:.3f}", f"{share:.0%}",
        f"{np.mean(kept):.2f}", f"{np.mean(strangers):.2f} / {max(strangers):.2f}",
    ]  # fmt: skip


def save_sheet(swaps: Sequence[Swapped], folder: Path) -> None:
    """Target and results side by side, cut to the face."""
    tiles = [_tile(swaps[0].target.picture, swaps[0].target.face)]
    tiles += [_tile(each.result.picture, swaps[0].target.face) for each in swaps]
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.hstack(tiles)).save(folder / f"{Path(swaps[0].target.name).stem}.png")


def _tile(picture: Picture, face: Face) -> RgbImage:
    assert face.landmarks is not None
    x0, y0, x1, y1 = bbox_from_landmarks(face.landmarks).tolist()
    half, x, y = 0.65 * max(x1 - x0, y1 - y0), (x0 + x1) / 2, (y0 + y1) / 2
    box = PixelBox(int(x - half), int(y - half), int(x + half), int(y + half)).clipped_to(
        picture.size_wh
    )
    return picture.read(box, (SHEET_PX, SHEET_PX))


def main() -> None:
    """Swap all pairs, ask both networks, write the table."""
    folders = [Path(argument) for argument in sys.argv[1:]]
    defaults = [SHARED / "assets" / "stills", SHARED / "models" / "mobilefacenet_128d_112.onnx"]
    stills, second = [*folders, *defaults[len(folders) :]][:2]
    settings = Settings()
    studio = Studio(
        OrtModelZoo(Manifest.load(settings.manifest), settings.models_path, device="cpu")
    )
    people = {name: studio.person(stills / name) for name in {*SOURCES, *TARGETS}}
    identities = {name: studio.identity(people[name]) for name in SOURCES}
    swaps, seconds = [], []
    for target in TARGETS:
        chosen = [
            name for name in SOURCES
            if name != target and frozenset({name, target}) not in SAME_PERSON
        ]  # fmt: skip
        for name in chosen:
            start = time.process_time()
            result = studio.swap(people[target], identities[name])
            seconds.append(time.process_time() - start)
            swaps.append(Swapped(people[name], people[target], result))
        if len(folders) > 2:
            save_sheet(swaps[-len(chosen) :], folders[2])
    write_table(
        "identity",
        "Likeness of swapped faces to their source, model `mesh`",
        ["network", "pair before", "result to source", "lowest", "level", "at or above",
         "result to target", "strangers, mean / highest"],
        [row("SFace", studio.sface, swaps, list(people.values())),
         row("MobileFaceNet", mobilefacenet(second), swaps, list(people.values()))],
        f"Cosines over {len(swaps)} pairs, {len(SOURCES)} sources and {len(TARGETS)} targets, stills. The level is the "
        "published same-person threshold for SFace, and for MobileFaceNet the highest cosine between any two different "
        "people of these photos. Median processor time of a swap with detection in the result: "
        f"{np.median(seconds) * 1e3:.0f} ms. The swapper's settings were chosen on these very pairs, by eye and by "
        "SFace: expect less on other photos.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
