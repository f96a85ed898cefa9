"""Answers to what the linker may ask about one key frame of a window."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from app.core.errors import DegenerateKpsError
from app.core.geometry import FloatArray
from app.core.picture import Picture
from app.core.types import Face, Frame
from app.faces.drift import Motion
from app.faces.landmarks import (
    CropRegion,
    FaceLandmarker,
    Located,
    kps_from_landmarks,
    region_from_landmarks,
    share_inside,
)
from app.faces.looks import LooksBook
from app.faces.proving import FaceProver
from app.faces.resemblance import face_gray
from app.faces.tracks import Candidate, Track

_WHOLE_SHARE = 0.9
"""Of a face that the border cuts by more there is too little to compare."""


class KeyClues:
    """One key frame, to be asked about.

    Args:
        number: Its running number.
        frames: The window's frames by running number.
        landmarker: Measures.
        prover: Says what is no face.
        motion: From the key frame before to this one; `None` where that is unknown.
        looks: What tracks of earlier windows look like; `None` where nobody is to be recognized.
    """

    def __init__(
        self,
        number: int,
        frames: Mapping[int, Frame],
        landmarker: FaceLandmarker,
        *,
        prover: FaceProver,
        motion: Motion | None,
        looks: LooksBook | None,
    ) -> None:
        self._picture = frames[number].picture
        self._frames = frames
        self._landmarker = landmarker
        self._motion = motion
        self._prover = prover
        self._looks = looks

    def measure(self, regions: Sequence[CropRegion]) -> Located:
        """Measure regions of the frame."""
        return self._landmarker.locate([(self._picture, region) for region in regions])

    def carried(self, regions: Sequence[CropRegion]) -> list[CropRegion] | None:
        """Regions of the key frame before, carried along by the motion of the picture; `None` without one."""
        return None if self._motion is None else self._motion.carried(regions)

    def proven(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Which detections are faces."""
        return self._prover.proven([(self._picture, each) for each in candidates])

    def looks_of(self, candidates: Sequence[Candidate]) -> Sequence[FloatArray | None]:
        """What whole faces look like, see `face_gray`; `None` for those that the border cuts."""
        size_wh = self._picture.size_wh
        whole = [share_inside(each.landmarks, size_wh) >= _WHOLE_SHARE for each in candidates]
        regions = [region_from_landmarks(each.landmarks) for each in candidates]
        crops = iter(
            self._landmarker.cut(
                [
                    (self._picture, region)
                    for region, is_whole in zip(regions, whole, strict=True)
                    if is_whole
                ]
            )
        )
        return [face_gray(next(crops)) if is_whole else None for is_whole in whole]

    def likeness(self, tracks: Sequence[Track], candidates: Sequence[Candidate]) -> FloatArray:
        """Cosines `(tracks, candidates)` of looks; NaN where a track's looks are not known."""
        unknown = np.full((len(tracks), len(candidates)), np.nan, np.float32)
        if self._looks is None:
            return unknown
        faces = [replace(each.face, kps=kps_from_landmarks(each.landmarks)) for each in candidates]
        try:
            there = self._looks.describe([(self._picture, face) for face in faces])
        except DegenerateKpsError:
            return unknown
        rows = [self._of(track, self._looks) for track in tracks]
        return np.array(
            [[np.nan] * len(there) if row is None else there @ row for row in rows], np.float32
        ).reshape(unknown.shape)

    def _of(self, track: Track, looks: LooksBook) -> FloatArray | None:
        """A track's looks; one that began in this window is described by where it was seen last."""
        known = looks.of(track.id)
        seen = self._last_seen(track) if known is None else None
        return known if seen is None else looks.describe([seen])[0]

    def _last_seen(self, track: Track) -> tuple[Picture, Face] | None:
        for sighting in reversed(track.sightings):
            if sighting.kps is not None and sighting.number in self._frames:
                face = Face(
                    bbox_xyxy=np.zeros(4, np.float32),
                    kps=sighting.kps,
                    det_score=sighting.det_score,
                )
                return self._frames[sighting.number].picture, face
        return None
