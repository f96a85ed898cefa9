"""The content gate: looks at sources, target and result, and lets nothing pass that it cannot look at.

The network is open_nsfw (Yahoo, 2016): one score a picture, 0 harmless to 1 intimate. It makes errors both ways. Its
authors call scores under 0.2 safe with high probability and scores over 0.8 intimate with high probability. The rule
stops at one picture of the latter kind, or at three close to each other that lean that way: the photos of a source are
close, and so are 60 looks into a video, a minute or less. Over the length of a film weaker hits would add up by
themselves: of 46 looks into harmless clips one, a blurred dark stage at a cut, scored 0.6.

It fails closed. Whatever goes wrong inside, a missing model, a device that breaks, numbers that make no sense, becomes
`GateUnavailableError`, and there is no option that turns the gate off.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from app.core.errors import GateUnavailableError, IntimateContentError
from app.core.picture import Picture
from app.core.types import FloatArray, RgbImage, check_shape
from app.inference.feeds import picture_feed
from app.inference.spec import InputContract, ModelId, ModelZoo, Session

MODEL = ModelId("open-nsfw")
Where = Literal["source", "target", "result"]

CERTAIN_SCORE = 0.8
"""One picture with this score is enough."""
LIKELY_SCORE = 0.6
LIKELY_COUNT = 3
LIKELY_AMONG = 60
"""So many pictures with at least `LIKELY_SCORE`, among so many looks in a row, are enough too."""

LOOK_SIDE_PX = 640
"""More than twice what the network sees, from where it shrinks area-true; a whole part of usual sizes, which is
several times faster to reach than others."""

_BATCH = 2
"""Larger batches gain nothing where looks are a second apart, and frames wait behind them."""
_SIDE_PX = 256
_CROP_PX = 224
EVERY_S = 1.0
EMPTY_EVERY_S = 2.0
"""Where no face is, nothing is made: such a stretch can only tell what kind of film it is."""

_SHORTEST_S = 0.2
_SCENE_SIDE_PX = 16
_SCENE_CHANGE = 24.0
"""Mean difference of two pictures of 16 x 16 pixels, of 255: cuts are mostly over 40, people who move under 15."""

_WHAT: dict[Where, str] = {
    "source": "A photo of the face to put on",
    "target": "The picture or video to change",
    "result": "The result",
}


class ContentGate:
    """Scores pictures and refuses intimate ones.

    Args:
        zoo: Has the model `open-nsfw`; opened at the first look, so that a missing one is a refusal, not a crash.
    """

    def __init__(self, zoo: ModelZoo) -> None:
        self._zoo = zoo

    def check(self, pictures: Sequence[RgbImage], where: Where) -> float:
        """Look at all pictures of one thing.

        Args:
            pictures: `(H, W, 3)` uint8 RGB, at least one; `LOOK_SIDE_PX` a side is enough.
            where: What they are, for the message.

        Returns:
            The highest score.

        Raises:
            IntimateContentError: A picture is intimate, or several look like it.
            GateUnavailableError: The gate could not look.
        """
        watch = GateWatch(self, where)
        for picture in pictures:
            watch.add(picture)
        return watch.finish()

    def scores(self, pictures: Sequence[RgbImage]) -> FloatArray:
        """Score pictures without judging them.

        Args:
            pictures: `(H, W, 3)` uint8 RGB.

        Returns:
            `(n,)` float32, 0 harmless to 1 intimate.

        Raises:
            GateUnavailableError: The gate could not look.
        """
        with _failing_closed():
            spec, session = self._zoo.spec(MODEL), self._zoo.session(MODEL)
            crops = [_center_crop(picture) for picture in pictures]
            parts = [
                _batch_scores(np.stack(crops[at : at + _BATCH]), spec.input, session)
                for at in range(0, len(crops), _BATCH)
            ]
            return np.concatenate(parts) if parts else np.zeros(0, np.float32)


class GateWatch:
    """Looks at a video as its frames pass: every second or two, and whenever the picture has changed much.

    Frames are compared with the last one that was looked at, so a cut, a fade and a person who walks in all count;
    five looks a second are the most. The choice depends on the frames alone. Nothing but the pictures of one batch is
    kept, and those only until they are scored. Not for several threads at once.

    Args:
        gate: Does the looking.
        where: What the frames are, for the message.
    """

    def __init__(self, gate: ContentGate, where: Where) -> None:
        self._gate = gate
        self._where: Where = where
        self._waiting: list[RgbImage] = []
        self._last: NDArray[np.uint8] | None = None
        self._last_s = 0.0
        self._looks = 0
        self._recent: deque[bool] = deque(maxlen=LIKELY_AMONG)
        self._highest = 0.0

    @property
    def looks(self) -> int:
        """How many pictures were chosen so far."""
        return self._looks

    def feed(self, time_s: float, picture: Picture, *, every_s: float = EVERY_S) -> None:
        """Show the next frame; it is looked at if it is due.

        Args:
            time_s: Its time in the video.
            picture: The whole frame; only what is needed of it is converted.
            every_s: How long ago the last look may be, even if the picture has not changed much.

        Raises:
            IntimateContentError: The frames so far are refused.
            GateUnavailableError: The gate could not look.
        """
        passed_s = time_s - self._last_s
        if self._last is not None and 0 <= passed_s < _SHORTEST_S:
            return
        small = picture.glimpse(_SCENE_SIDE_PX)
        # Written so that a time that runs backwards, or is no number, is due.
        if not 0 <= passed_s < every_s or self._has_changed(small):
            self._last, self._last_s = small, time_s
            self.add(picture.thumbnail(LOOK_SIDE_PX)[0])

    def add(self, picture: RgbImage) -> None:
        """Look at a picture whether it is due or not.

        Raises:
            IntimateContentError: The pictures so far are refused.
            GateUnavailableError: The gate could not look.
        """
        self._looks += 1
        self._waiting.append(picture)
        if len(self._waiting) == _BATCH:
            self._look()

    def finish(self) -> float:
        """Look at what is still waiting.

        Returns:
            The highest score of all.

        Raises:
            IntimateContentError: The pictures are refused.
            GateUnavailableError: The gate could not look, or was shown nothing.
        """
        if self._waiting:
            self._look()
        if not self._looks:
            raise GateUnavailableError(
                f"the content gate was shown no picture of the {self._where}, so nothing is given out"
            )
        return self._highest

    def _has_changed(self, small: NDArray[np.uint8]) -> bool:
        return self._last is None or float(cv2.absdiff(small, self._last).mean()) > _SCENE_CHANGE

    def _look(self) -> None:
        scores = self._gate.scores(self._waiting)
        self._waiting.clear()
        for score in scores.tolist():
            self._judge(score)

    def _judge(self, score: float) -> None:
        self._highest = max(self._highest, score)
        self._recent.append(score >= LIKELY_SCORE)
        if score >= CERTAIN_SCORE or sum(self._recent) >= LIKELY_COUNT:
            raise IntimateContentError(
                f"{_WHAT[self._where]} seems to show intimate content. FaceDock does not work on such pictures; "
                "filters err at times, so if this one is harmless, try another picture. No picture was kept."
            )


@contextmanager
def _failing_closed() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise GateUnavailableError(
            "the content gate could not look, so nothing is processed; "
            "`python -m app models pull embedded` installs its model, `python -m app doctor` says more"
        ) from error


def _center_crop(picture: RgbImage) -> RgbImage:
    """The middle 224 pixels of the picture squeezed to 256 x 256, as the network was trained (open_nsfw, Yahoo)."""
    check_shape("picture", picture, (None, None, 3))
    shrinks = max(picture.shape[:2]) > _SIDE_PX
    square = cv2.resize(
        picture,
        (_SIDE_PX, _SIDE_PX),
        interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
    )
    start = (_SIDE_PX - _CROP_PX) // 2
    inner = np.s_[start : start + _CROP_PX]
    return np.asarray(square[inner, inner], np.uint8)


def _batch_scores(crops: RgbImage, contract: InputContract, session: Session) -> FloatArray:
    """Scores of one batch.

    Raises:
        ValueError: The network's answer is not two probabilities a picture.
    """
    (answer,) = session.run({contract.name: picture_feed(crops, contract)}).values()
    check_shape("answer", answer, (len(crops), 2))
    rows = np.asarray(answer, np.float64)
    if not (
        np.isfinite(rows).all() and np.abs(rows.sum(1) - 1).max() < 1e-2 and rows.min() >= -1e-3
    ):
        raise ValueError("the content gate's answer is not two probabilities a picture")
    return rows[:, 1].astype(np.float32)
