"""Each person of a file in turn gets another face: that person becomes it, and nobody else changes by one level.

Two networks judge: SFace, which FaceDock itself uses, and a MobileFaceNet that had no part in any of its choices.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.geometry import similarity, template_points
from app.core.picture import Picture
from app.core.types import Face
from app.faces.recognizer import FaceRecognizer, normed
from app.faces.sampling import sample_square
from app.inference.spec import ModelZoo
from app.pipeline.progress import RenderResult
from app.pipeline.spec import FaceMap, OutputChoices, PersonChoice, RenderSpec, SourceFace, Timing
from app.workbench import Workbench
from tests.acceptance.conftest import SHARED

pytestmark = [pytest.mark.slow, pytest.mark.weights]

SOURCES = ("frontal_astronaut.png", "ai_generated_woman.jpg", "black_white_man.jpg", "beard_man.jpg",
           "open_mouth_man.jpg", "glasses_curly_hair.jpg")  # fmt: skip
GROUPS = {"group_six_t1.jpg": 6, "glasses_three_people.jpg": 3, "two_people_profileish.jpg": 2}
GAINED, KEPT = 0.15, 0.7
"""Likeness to the source that a swap adds at least, and likeness to what it was that it leaves at most."""
SURELY_SWAPPED = 1.7
"""Farther than this from the middle of a face, in halves of its box, a swap changes nothing."""

Rgb = NDArray[np.uint8]
Embed = Callable[[Rgb, NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """One face of one picture: its box and its five points."""

    box: NDArray[np.float32]
    kps: NDArray[np.float32]

    def zone(self, shape: Sequence[int], grown: float) -> NDArray[np.bool_]:
        """The pixels within so many half boxes of its middle."""
        x0, y0, x1, y1 = self.box.tolist()
        x, y, half = (x0 + x1) / 2, (y0 + y1) / 2, max(x1 - x0, y1 - y0) / 2 * grown
        rows, columns = np.ogrid[: shape[0], : shape[1]]
        return np.asarray((abs(columns - x) <= half) & (abs(rows - y) <= half))


@dataclass(frozen=True, slots=True)
class Judges:
    """The two networks and what they know of the sources."""

    embeds: Mapping[str, Embed]
    sources: Mapping[str, Mapping[str, NDArray[np.float32]]]

    def assert_became(
        self, source: str, before: Sequence[Rgb], after: Sequence[Rgb], spots: Sequence[Spot]
    ) -> None:
        """Over all pictures together the face is liker its source than any other, and much liker than it was."""
        for name, embed in self.embeds.items():
            was = normed(sum(embed(*pair) for pair in self._seen(before, spots)))
            became = normed(sum(embed(*pair) for pair in self._seen(after, spots)))
            alike = {known: float(vector @ became) for known, vector in self.sources[name].items()}
            gained = alike[source] - float(self.sources[name][source] @ was)
            assert max(alike, key=lambda known: alike[known]) == source, (name, alike)
            assert gained > GAINED, (name, gained)
            assert float(was @ became) < KEPT, (name, float(was @ became))

    @staticmethod
    def _seen(
        pictures: Sequence[Rgb], spots: Sequence[Spot]
    ) -> Iterator[tuple[Rgb, NDArray[np.float32]]]:
        return zip(pictures, (spot.kps for spot in spots), strict=True)


@pytest.fixture(scope="module")
def judges(assets: Path, zoo: ModelZoo, workbench: Workbench) -> Judges:
    path = SHARED / "models" / "mobilefacenet_128d_112.onnx"
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
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
    photos = {name: assets / "stills" / name for name in SOURCES}
    largest = {
        name: max(workbench.find_faces(path).faces, key=lambda face: float(np.ptp(face.kps)))
        for name, path in photos.items()
    }
    return Judges(
        embeds,
        {
            network: {name: embed(pixels(path), largest[name].kps) for name, path in photos.items()}
            for network, embed in embeds.items()
        },
    )


def pixels(path: Path) -> Rgb:
    with Image.open(path) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB")))


Swap = Callable[..., RenderResult]


@pytest.fixture
def swap(workbench: Workbench, assets: Path) -> Swap:
    """Put sources on people by number, leaving everybody else alone."""

    def run(
        target: Path, output: Path, given: Mapping[int, str], end_s: float | None = None
    ) -> RenderResult:
        choices = tuple(
            PersonChoice[Path](
                person=person, action=SourceFace[Path](photos=(assets / "stills" / name,))
            )
            for person, name in given.items()
        )
        spec = RenderSpec(
            target=target,
            output=output,
            consent="permission",
            face_map=FaceMap[Path](choices=choices, others="leave"),
            encoding=OutputChoices(codec="ffv1" if output.suffix == ".mkv" else "auto"),
            timing=Timing(end_s=end_s),
        )
        return workbench.render(spec)

    return run


def spots_in(workbench: Workbench, path: Path) -> list[Spot]:
    return [Spot(face.bbox_xyxy, face.kps) for face in workbench.find_faces(path).faces]


@pytest.mark.parametrize(
    ("name", "person"),
    [
        pytest.param(name, person, id=f"{name}, person {person}")
        for name, count in GROUPS.items()
        for person in range(1, count + 1)
    ],
)
def test_one_person_of_a_picture_changes_and_nobody_else(
    name: str,
    person: int,
    assets: Path,
    tmp_path: Path,
    workbench: Workbench,
    swap: Swap,
    judges: Judges,
) -> None:
    target, output = assets / "stills" / name, tmp_path / "out.png"
    source = SOURCES[person - 1]
    result = swap(target, output, {person: source})
    assert [(each.who, each.frames) for each in result.people] == [(f"person {person}", 1)]
    before, after, spots = pixels(target), pixels(output), spots_in(workbench, target)
    spot = spots[person - 1]
    assert (before == after)[~spot.zone(before.shape, SURELY_SWAPPED)].all()
    judges.assert_became(source, [before], [after], [spot])


@pytest.mark.parametrize("name", GROUPS)
def test_everybody_in_a_picture_gets_their_own_face(
    name: str, assets: Path, tmp_path: Path, workbench: Workbench, swap: Swap, judges: Judges
) -> None:
    target, output = assets / "stills" / name, tmp_path / "out.png"
    given = {person: SOURCES[person - 1] for person in range(1, GROUPS[name] + 1)}
    swap(target, output, given)
    before, after = pixels(target), pixels(output)
    for (_, source), spot in zip(given.items(), spots_in(workbench, target), strict=True):
        judges.assert_became(source, [before], [after], [spot])


@pytest.fixture(scope="module")
def clips() -> Path:
    folder = Path(os.environ.get("FACEDOCK_CASES_DIR", ""))
    if not (folder / "motion_two_people_swap_sides.mp4").is_file():
        pytest.skip("FACEDOCK_CASES_DIR names no folder with the made clips")
    return folder


CLIPS = {
    # The astronaut is one of the two.
    "motion_two_people_swap_sides.mp4": (SOURCES[1:3], None),
    "motion_group_pan_zoom.mp4": (SOURCES, 0.6),
}
WEAKEST = ("motion_two_people_swap_sides.mp4", 1)
TOO_LIKE_BEFORE = pytest.mark.xfail(
    reason="the astronaut stays nearer to herself (SFace 0.39) than to the new face (0.34); see docs/limits.md"
)
MISSED = 0.3
"""Of the frames, where a fast camera makes the tracker lose somebody for a moment."""


@pytest.mark.parametrize(
    ("name", "person"),
    [
        pytest.param(
            name,
            person,
            id=f"{name}, person {person}",
            marks=[TOO_LIKE_BEFORE] if (name, person) == WEAKEST else [],
        )
        for name, (sources, _) in CLIPS.items()
        for person in range(1, len(sources) + 1)
    ],
)
def test_one_person_of_a_video_changes_and_nobody_else(
    name: str, person: int, clips: Path, tmp_path: Path, swap: Swap, judges: Judges
) -> None:
    sources, end_s = CLIPS[name]
    source, output = sources[person - 1], tmp_path / "out.mkv"
    swap(clips / name, output, {person: source}, end_s=end_s)
    after = frames_of(output)
    before = frames_of(clips / name)[: len(after)]
    truth = json.loads((clips / "truth" / name).with_suffix(".json").read_text())["frames"]
    swapped = []
    for was, now, row in zip(before, after, truth[: len(after)], strict=True):
        spots = {face["id"]: spot_of(face) for face in row["faces"] if is_whole(face, was)}
        spot = spots.get(person - 1)
        if spot is None:
            continue
        assert (was == now)[~spot.zone(was.shape, SURELY_SWAPPED)].all()
        if all(apart(spot, other) for id, other in spots.items() if id != person - 1):
            swapped.append((was, now, spot))
    changed = [
        (was, now, spot)
        for was, now, spot in swapped
        if np.abs(was.astype(int) - now)[spot.zone(was.shape, 0.5)].mean() > 1
    ]
    assert len(changed) >= max(1, (1 - MISSED) * len(swapped))
    judges.assert_became(source, *zip(*changed[:: max(1, len(changed) // 8)], strict=True))


def frames_of(path: Path) -> list[Rgb]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def spot_of(face: Mapping[str, Sequence[float]]) -> Spot:
    return Spot(np.array(face["box"], np.float32), np.array(face["points"], np.float32))


def is_whole(face: Mapping[str, Sequence[float]], image: Rgb) -> bool:
    x0, y0, x1, y1 = face["box"]
    return x0 >= 0 and y0 >= 0 and x1 <= image.shape[1] and y1 <= image.shape[0]


def apart(a: Spot, b: Spot) -> bool:
    return bool((a.box[2:] < b.box[:2]).any() or (b.box[2:] < a.box[:2]).any())
