"""What every plan of a process shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from app.core.errors import NotFoundError
from app.core.picture import Picture
from app.core.types import Face, Frame, Identity
from app.faces.detector import FaceDetector
from app.faces.landmarks import FaceLandmarker
from app.faces.mask_networks import best_masker
from app.faces.masks import FaceMasker
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.inference.spec import ModelZoo
from app.media.limits import MediaLimits
from app.pipeline.analysis import (
    AnalysisChoice,
    face_landmarker,
    face_recognizer,
    still_detector,
    video_detector,
)
from app.pipeline.device_landmarks import FaceCutter
from app.pipeline.recent import RecentFaces
from app.processors.base import ProcessorSpec
from app.safety.gate import ContentGate

LoadSavedFace = Callable[[str], Identity]

_EMBEDDED = AnalysisChoice()


def no_saved_face(face_id: str) -> Identity:
    """Where there is no face library.

    Raises:
        NotFoundError: Always.
    """
    raise NotFoundError("no face is saved here; give photos instead")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """What every plan of this process shares.

    Attributes:
        detector: For frames of a video; `still_detector` looks more closely.
        saved_face: Gives a face of the face library by its id, or raises `NotFoundError`.
        recent_faces: Faces made of photos lately.
    """

    zoo: ModelZoo
    processors: Mapping[str, ProcessorSpec]
    limits: MediaLimits
    detector: FaceDetector
    still_detector: FaceDetector
    landmarker: FaceLandmarker
    recognizer: FaceRecognizer
    gate: ContentGate
    saved_face: LoadSavedFace
    recent_faces: RecentFaces = field(default_factory=RecentFaces)

    @classmethod
    def over(
        cls,
        zoo: ModelZoo,
        processors: Mapping[str, ProcessorSpec],
        limits: MediaLimits,
        *,
        saved_face: LoadSavedFace = no_saved_face,
        analysis: AnalysisChoice = _EMBEDDED,
        crops: FaceCutter | None = None,
    ) -> "Tools":
        """Put the tools over one set of models; `crops` cuts faces, without it the processor does.

        Raises:
            UnknownModelError: `analysis` names a model that does something else.
            MissingModelError: A model is not installed.
        """
        return cls(
            zoo=zoo,
            processors=processors,
            limits=limits,
            detector=video_detector(zoo, analysis.detector),
            still_detector=still_detector(zoo, analysis.detector),
            landmarker=face_landmarker(zoo, analysis.landmarker, crops),
            recognizer=face_recognizer(zoo, analysis.recognizer),
            gate=ContentGate(zoo),
            saved_face=saved_face,
        )

    def masker(self) -> FaceMasker:
        """Says what lies in front of a face, with the networks that are installed now: a plan asks once."""
        return best_masker(self.zoo)

    def tracker(self, kind: Literal["still", "video"]) -> FaceTracker:
        """A tracker for one file; a still is looked at more closely, since it is only one."""
        detector = self.still_detector if kind == "still" else self.detector
        return FaceTracker(detector, self.landmarker, self.recognizer, searches=kind == "video")

    def faces_of(self, picture: Picture) -> tuple[Face, ...]:
        """The faces of one picture, left to right, ties top to bottom."""
        still = Frame(index=0, pts=0, time_base=Fraction(1), picture=picture, is_cut=True)
        return self.tracker("still").track((still,))[0].faces
