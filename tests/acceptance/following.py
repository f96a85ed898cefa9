"""What the truth of a made clip says, and how well tracks agree with it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from app.core.geometry import FloatArray, bbox_iou
from app.core.types import Face, Frame
from app.faces.person import Person
from app.media.decode import VideoReader
from app.media.limits import DEFAULT_LIMITS
from app.pipeline.stages import into_windows
from app.pipeline.tools import Tools

_SAME_IOU = 0.3
_BRIDGED_S = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueFace:
    """One face of one frame.

    Attributes:
        box: Where it is.
        points: The five key points, where they are known.
        is_clear: Whether it must be found: whole enough, and nobody before it.
        is_region: The box is no more than a part of the picture in which there is no other face.
    """

    person: int
    box: FloatArray
    points: FloatArray | None = None
    is_clear: bool = True
    is_region: bool = False


Truth = list[list[TrueFace]]


def truth_of(path: Path, frames: int) -> Truth:
    """What each frame of a made clip shows."""
    told = json.loads((path.parent / "truth" / f"{path.stem}.json").read_text())
    if "frames" in told and "faces" in told["frames"][0]:
        return [_exact(row["faces"]) for row in told["frames"]]
    whole = np.array([0, 0, 1e5, 1e5], np.float32)
    if "people" in told and "first_frame_of_shot" not in told:
        regions = [(person["id"], person["region"]) for person in told["people"]]
        faces = [_in_region(i, np.array(r, np.float32)) for i, r in regions]
        return [faces] * frames
    if "first_frame_of_shot" in told:
        _, second, third = told["first_frame_of_shot"]
        people = [0] * second + [-1] * (third - second) + [2] * (frames - third)
        return [[_in_region(p, whole)] if p >= 0 else [] for p in people]
    dark = {at for at, gain in enumerate(told.get("gain", [])) if gain < 0.15}
    hidden = dark | set(told.get("white_frames", []))
    return [[_in_region(0, whole, is_clear=at not in hidden)] for at in range(frames)]


def _in_region(person: int, box: FloatArray, *, is_clear: bool = True) -> TrueFace:
    return TrueFace(person=person, box=box, is_clear=is_clear, is_region=True)


def _exact(rows: Sequence[Mapping[str, Any]]) -> list[TrueFace]:
    boxes = [np.array(row["box"], np.float32) for row in rows]
    faces = []
    for row, box in zip(rows, boxes, strict=True):
        front = [
            other
            for each, other in zip(rows, boxes, strict=True)
            if each.get("in_front") and each is not row
        ]
        is_clear = row.get("visible", 1.0) >= 0.75 and all(_covered(box, f) < 0.2 for f in front)
        points = np.array(row["points"], np.float32)
        faces.append(TrueFace(person=row["id"], box=box, points=points, is_clear=is_clear))
    return faces


def _covered(box: FloatArray, front: FloatArray) -> float:
    """How much of a box lies behind another, whose head is larger than its face."""
    pad = 0.15 * (front[2] - front[0])
    low = np.maximum(box[:2], front[:2] - pad)
    high = np.minimum(box[2:], front[2:] + pad)
    return float(np.clip(high - low, 0, None).prod() / (box[2:] - box[:2]).prod())


@dataclass(kw_only=True)
class Score:
    """How tracks and truth agree, over one clip."""

    name: str
    frames: int
    clear: int = 0
    found: int = 0
    strays: int = 0
    switches: int = 0
    mixed_tracks: int = 0
    broken: int = 0
    point_errors: list[float] = field(default_factory=list)
    ious: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / max(self.clear, 1)

    def line(self) -> str:
        errors, ious = self.point_errors or [0.0], self.ious or [1.0]
        return (
            f"{self.name:36} {self.frames:4} frames  found {self.found:4}/{self.clear:4}"
            f"  strays {self.strays:2}  switches {self.switches:2}  mixed {self.mixed_tracks:2}"
            f"  broken {self.broken:2}  points {np.mean(errors):.3f} max {np.max(errors):.3f}"
            f"  iou {np.mean(ious):.2f} min {np.min(ious):.2f}"
        )


def tracked(path: Path, tools: Tools) -> list[Frame]:
    """The frames of a clip with their faces, without their pictures."""
    tracker, frames = tools.tracker("video"), []
    with VideoReader(path, DEFAULT_LIMITS) as reader:
        for window in into_windows(reader.frames()):
            frames += tracker.track(window)
    return frames


def scored(name: str, frames: Sequence[Frame], truth: Truth, people: Sequence[Person]) -> Score:
    """Compare tracks with the truth, and with the people that a look through the file found."""
    score = Score(name=name, frames=len(frames))
    seen: dict[int, list[tuple[int, Face]]] = defaultdict(list)
    for at, (frame, true_faces) in enumerate(zip(frames, truth, strict=True)):
        pairs = _matched(frame.faces, true_faces)
        if true_faces:
            score.strays += len(frame.faces) - len(pairs)
        score.clear += sum(true.is_clear for true in true_faces)
        for face, true in pairs:
            seen[true.person].append((at, face))
            if true.is_clear:
                score.found += 1
                _measure(score, face, true)
    _judge_continuity(score, frames, truth, seen)
    _judge_people(score, seen, people)
    return score


def _matched(faces: Sequence[Face], true_faces: Sequence[TrueFace]) -> list[tuple[Face, TrueFace]]:
    """The pairs that overlap most, one to one; a region takes the largest face in it."""
    scores = []
    for row, face in enumerate(faces):
        for column, true in enumerate(true_faces):
            overlap = _overlap(face, true)
            if overlap > _SAME_IOU:
                scores.append((overlap, -row, -column))
    pairs, rows, columns = [], set(), set()
    for _, row, column in sorted(scores, reverse=True):
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            pairs.append((faces[-row], true_faces[-column]))
    return pairs


def _overlap(face: Face, true: TrueFace) -> float:
    if not true.is_region:
        return float(bbox_iou(face.bbox_xyxy[None], true.box[None])[0, 0])
    x, y = (face.bbox_xyxy[:2] + face.bbox_xyxy[2:]) / 2
    is_inside = true.box[0] <= x <= true.box[2] and true.box[1] <= y <= true.box[3]
    return 0.5 + 1e-4 * float(face.bbox_xyxy[2] - face.bbox_xyxy[0]) if is_inside else 0.0


def _measure(score: Score, face: Face, true: TrueFace) -> None:
    if true.points is None:
        return
    width = float(true.box[2] - true.box[0])
    apart = np.linalg.norm(face.kps - true.points, axis=1).mean()
    score.point_errors.append(float(apart) / width)
    score.ious.append(float(bbox_iou(face.bbox_xyxy[None], true.box[None])[0, 0]))


def _judge_continuity(
    score: Score,
    frames: Sequence[Frame],
    truth: Truth,
    seen: Mapping[int, Sequence[tuple[int, Face]]],
) -> None:
    """Count clear frames in holes that are short enough to be bridged, where nothing else breaks the row."""
    for person, rows in seen.items():
        numbers = [at for at, _ in rows]
        for before, after in pairwise(numbers):
            hole = range(before + 1, after)
            is_short = frames[after].time_s - frames[before].time_s < _BRIDGED_S
            clear = [any(t.person == person and t.is_clear for t in truth[at]) for at in hole]
            if is_short:
                score.broken += sum(clear)


def _judge_people(
    score: Score, seen: Mapping[int, Sequence[tuple[int, Face]]], people: Sequence[Person]
) -> None:
    owners: dict[int, set[int]] = defaultdict(set)
    for person, rows in seen.items():
        numbers = [_nearest(face, people) for _, face in rows]
        score.switches += sum(a != b for a, b in pairwise(numbers))
        for _, face in rows:
            assert face.track_id is not None
            owners[face.track_id].add(person)
    score.mixed_tracks = sum(len(each) > 1 for each in owners.values())


def _nearest(face: Face, people: Sequence[Person]) -> int:
    assert face.embedding is not None
    cosines = [float((person.normed_embeddings @ face.embedding).max()) for person in people]
    return people[int(np.argmax(cosines))].number
