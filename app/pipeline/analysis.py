"""Which networks find, measure and recognize faces: the embedded ones, or others that are installed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from app.core.errors import UnknownModelError
from app.faces import detector, landmarks, recognizer
from app.faces.detector import STILL_SIDES_PX, FaceDetector
from app.faces.landmarks import FaceLandmarker
from app.faces.recognizer import FaceRecognizer
from app.faces.turning import TurningDetector
from app.faces.zoo_detector import DECODERS, TurningZooDetector, ZooDetector
from app.faces.zoo_landmarks import FanLandmarker
from app.faces.zoo_recognizer import ArcFaceRecognizer
from app.inference.spec import ModelId, ModelZoo
from app.pipeline.device_landmarks import DeviceLandmarker, FaceCutter

_T = TypeVar("_T")
_Makers = Mapping[str, Callable[[ModelZoo, ModelId], _T]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnalysisChoice:
    """Ids of the models; the embedded ones unless somebody says otherwise."""

    detector: ModelId = detector.MODEL
    landmarker: ModelId = landmarks.MODEL
    recognizer: ModelId = recognizer.MODEL


_VIDEO_DETECTORS: Final[_Makers[FaceDetector]] = MappingProxyType(
    {"yunet": lambda zoo, _: FaceDetector(zoo), **dict.fromkeys(DECODERS, ZooDetector)}
)
_STILL_DETECTORS: Final[_Makers[FaceDetector]] = MappingProxyType(
    {
        "yunet": lambda zoo, _: TurningDetector(zoo, sides_px=STILL_SIDES_PX),
        **dict.fromkeys(DECODERS, TurningZooDetector),
    }
)
_LANDMARKERS: Final[_Makers[FaceLandmarker]] = MappingProxyType(
    {"attention_mesh": lambda zoo, _: FaceLandmarker(zoo), "fan_68": FanLandmarker}
)
_RECOGNIZERS: Final[_Makers[FaceRecognizer]] = MappingProxyType(
    {"sface": lambda zoo, _: FaceRecognizer(zoo), "arcface": ArcFaceRecognizer}
)


def video_detector(zoo: ModelZoo, model_id: ModelId) -> FaceDetector:
    """A detector for the frames of a video.

    Raises:
        UnknownModelError: This is no model that finds faces.
        MissingModelError: It is not installed.
    """
    return _made(_VIDEO_DETECTORS, zoo, model_id, role="detector")


def still_detector(zoo: ModelZoo, model_id: ModelId) -> FaceDetector:
    """A detector that takes its time, for stills; see `video_detector`."""
    return _made(_STILL_DETECTORS, zoo, model_id, role="detector")


def face_landmarker(
    zoo: ModelZoo, model_id: ModelId, crops: FaceCutter | None = None
) -> FaceLandmarker:
    """What measures faces, on crops of the device where there are such; see `video_detector`."""
    made = _made(_LANDMARKERS, zoo, model_id, role="landmarker")
    return made if crops is None else DeviceLandmarker(made, crops)


def face_recognizer(zoo: ModelZoo, model_id: ModelId) -> FaceRecognizer:
    """What tells people apart; see `video_detector`."""
    return _made(_RECOGNIZERS, zoo, model_id, role="recognizer")


def _made(makers: _Makers[_T], zoo: ModelZoo, model_id: ModelId, *, role: str) -> _T:
    make = makers.get(zoo.spec(model_id).adapter)
    if make is None:
        raise UnknownModelError(
            f"{role}: {model_id} is a model for something else; `python -m app models list` shows all"
        )
    return make(zoo, model_id)
