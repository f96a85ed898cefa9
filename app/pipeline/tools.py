"""What every plan of a process shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from app.core.picture import Picture
from app.core.types import Face, Frame
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.landmarks import FaceLandmarker
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.faces.turning import TurningDetector
from app.inference.spec import ModelZoo
from app.media.limits import MediaLimits
from app.processors.base import ProcessorSpec
from app.safety.gate import ContentGate


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What every plan of this process shares: the networks, the processors, the limits."""

    zoo: ModelZoo
    processors: Mapping[str, ProcessorSpec]
    limits: MediaLimits
    detector: FaceDetector
    still_detector: FaceDetector
    landmarker: FaceLandmarker
    recognizer: FaceRecognizer
    gate: ContentGate

    @classmethod
    def over(
        cls, zoo: ModelZoo, processors: Mapping[str, ProcessorSpec], limits: MediaLimits
    ) -> "Tools":
        """Put the tools over one set of models."""
        return cls(
            zoo=zoo,
            processors=processors,
            limits=limits,
            detector=FaceDetector(zoo),
            still_detector=TurningDetector(zoo, sides_px=STILL_SIDES_PX),
            landmarker=FaceLandmarker(zoo),
            recognizer=FaceRecognizer(zoo),
            gate=ContentGate(zoo),
        )

    def tracker(self, kind: Literal["still", "video"]) -> FaceTracker:
        """A tracker for one file; a still is looked at more closely, since it is only one."""
        detector = self.still_detector if kind == "still" else self.detector
        return FaceTracker(detector, self.landmarker, self.recognizer)

    def faces_of(self, picture: Picture) -> tuple[Face, ...]:
        """The faces of one picture, left to right, ties top to bottom."""
        still = Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        return self.tracker("still").track((still,))[0].faces
