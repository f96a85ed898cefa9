"""Which detection is which track: by place where that is clear, by looks where places compete or pixels differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.geometry import FloatArray
from app.faces.landmarks import CropRegion, Located, region_from_landmarks
from app.faces.matching import best_pairs
from app.faces.resemblance import look_alike
from app.faces.tracks import Candidate, Track, region_cost

# Limits in the unit of `region_cost`: sides of the crop, 1.5 times a face.
_MAX_COST = 0.6
_MAX_TURN_RAD = 1.0
"""Nobody turns over between two looks: a face that hangs is often detected as if it stood, eyes for mouth."""
_RIVALRY = 0.35
"""Two places whose costs differ by less compete; then looks decide."""
_MAX_FAR_COST = 2.5
"""How far from its place a lost face is still looked for, by its looks alone."""
_UNKNOWN = 0.5
"""What unlikeness costs where looks are not known."""
_SURELY_ANOTHER = 0.15
_PROBABLY_ANOTHER = 0.2
"""The same where the pixels have changed too."""
_SURELY_SAME = 0.5
_CLEARLY_LESS = 0.3


class Clues(Protocol):
    """What may be asked about one key frame; each question costs something, so none is asked in vain."""

    def measure(self, regions: Sequence[CropRegion]) -> Located:
        """Measure regions of the frame."""
        ...

    def carried(self, regions: Sequence[CropRegion]) -> list[CropRegion] | None:
        """Regions of the key frame before, carried along by the motion of the picture; `None` without one."""
        ...

    def proven(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Which detections are faces, for those that would begin a track."""
        ...

    def looks_of(self, candidates: Sequence[Candidate]) -> Sequence[FloatArray | None]:
        """What whole faces look like, see `face_gray`; `None` for those that the border cuts."""
        ...

    def likeness(self, tracks: Sequence[Track], candidates: Sequence[Candidate]) -> FloatArray:
        """Cosines `(tracks, candidates)` of looks; NaN where a track's looks are not known."""
        ...


@dataclass(frozen=True, slots=True)
class Links:
    """Who is who in one key frame.

    Attributes:
        pairs: Indices of a track and of the candidate that it is.
        strangers: The same of those who lie where the track should be and are somebody else.
    """

    pairs: tuple[tuple[int, int], ...]
    strangers: frozenset[tuple[int, int]]


def associated(
    tracks: Sequence[Track],
    expected: Sequence[Sequence[CropRegion]],
    candidates: Sequence[Candidate],
    clues: Clues,
) -> Links:
    """Give detections to tracks, one to one.

    Place decides where it is clear. Where two tracks or two detections compete for one place their looks count too,
    and what is left over on both sides is paired by looks alone, in a wider neighborhood. A face whose pixels have
    changed since the last look may be another one in the same place, after a cut that nothing else shows: then looks
    can refuse it.

    Args:
        tracks: Whom to look for.
        expected: One or more places a track.
        candidates: What was detected.
        clues: Compares looks, where places do not tell.
    """
    columns = [index for index, each in enumerate(candidates) if each.may_continue_track]
    seen = [candidates[index] for index in columns]
    table = _costs(expected, [region_from_landmarks(each.landmarks) for each in seen])
    cost = _settled(table, tracks, seen, clues)
    refused = np.argwhere((table <= _MAX_COST) & np.isinf(cost)).tolist()
    pairs = best_pairs(cost, _MAX_COST + 1)
    pairs += _far_pairs(table, pairs, (tracks, seen), clues)
    return Links(
        tuple((row, columns[column]) for row, column in pairs),
        frozenset((row, columns[column]) for row, column in refused),
    )


def _costs(expected: Sequence[Sequence[CropRegion]], found: Sequence[CropRegion]) -> FloatArray:
    rows = [[min(_cost(a, b) for a in places) for b in found] for places in expected]
    return np.array(rows, np.float32).reshape(len(expected), len(found))


def _cost(expected: CropRegion, found: CropRegion) -> float:
    turn = (found.roll_rad - expected.roll_rad + np.pi) % (2 * np.pi) - np.pi
    return region_cost(expected, found) if abs(turn) < _MAX_TURN_RAD else np.inf


def _settled(
    table: FloatArray, tracks: Sequence[Track], seen: Sequence[Candidate], clues: Clues
) -> FloatArray:
    """Costs of place, and of looks where places compete; infinite where nothing may be paired."""
    cost = np.where(table <= _MAX_COST, table, np.inf).astype(np.float32)
    disputed = np.isfinite(cost) & (_rivals(cost)[:, None] | _rivals(cost.T)[None, :])
    changed = np.isfinite(cost) & _changed(tracks, seen)
    is_cut = np.array([each.look is None for each in seen], bool)
    asked = disputed | changed | (np.isfinite(cost) & is_cut & (table > _RIVALRY))
    if asked.any():
        around = asked | (asked.any(0) & (table <= _MAX_FAR_COST))
        alike = _likeness(around, tracks, seen, clues)
        unlike = np.where(np.isnan(alike), _UNKNOWN, 1 - alike)
        cost[disputed] += unlike[disputed]
        cost[asked & _others(alike, changed)] = np.inf
    return cost


def _others(alike: FloatArray, changed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pairs that looks refuse: somebody else, or somebody less than one who is surely the same."""
    known = np.nan_to_num(alike, nan=1.0)
    best = np.nan_to_num(alike, nan=-1.0).max(0, initial=-1.0)
    is_anothers = (best >= _SURELY_SAME) & (known < best - _CLEARLY_LESS)
    limit = np.where(changed, _PROBABLY_ANOTHER, _SURELY_ANOTHER)
    return np.asarray((known < limit) | is_anothers)


def _changed(tracks: Sequence[Track], seen: Sequence[Candidate]) -> NDArray[np.bool_]:
    """Where a candidate does not look like its track did, as far as pixels tell; `(tracks, candidates)`."""
    return np.array(
        [
            [
                old is not None and new.look is not None and not look_alike(old, new.look)
                for new in seen
            ]
            for old in (track.last.look for track in tracks)
        ],
        bool,
    ).reshape(len(tracks), len(seen))


def _rivals(cost: FloatArray) -> NDArray[np.bool_]:
    """Rows whose two cheapest cells cost about the same."""
    if cost.shape[1] < 2:
        return np.zeros(len(cost), bool)
    cheapest = np.sort(cost, axis=1)[:, :2]
    with np.errstate(invalid="ignore"):
        return np.asarray(cheapest[:, 1] - cheapest[:, 0] < _RIVALRY)


def _far_pairs(
    table: FloatArray,
    pairs: Sequence[tuple[int, int]],
    sides: tuple[Sequence[Track], Sequence[Candidate]],
    clues: Clues,
) -> list[tuple[int, int]]:
    """Pairs of what is left over whose looks are surely the same."""
    is_open = table <= _MAX_FAR_COST
    for row, column in pairs:
        is_open[row], is_open[:, column] = False, False
    is_open &= np.array([each.may_begin_track for each in sides[1]], bool)
    if not is_open.any():
        return []
    unlike = 1 - _likeness(is_open, *sides, clues)
    return best_pairs(
        np.where(is_open, np.nan_to_num(unlike, nan=np.inf), np.inf), 1 - _SURELY_SAME
    )


def _likeness(
    wanted: NDArray[np.bool_], tracks: Sequence[Track], seen: Sequence[Candidate], clues: Clues
) -> FloatArray:
    """Cosines of the wanted pairs, NaN elsewhere; only who is in one of them is looked at."""
    rows, columns = np.flatnonzero(wanted.any(1)), np.flatnonzero(wanted.any(0))
    result = np.full(wanted.shape, np.nan, np.float32)
    result[np.ix_(rows, columns)] = clues.likeness(
        [tracks[int(row)] for row in rows], [seen[int(column)] for column in columns]
    )
    return result
