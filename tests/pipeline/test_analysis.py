"""Which networks look at faces is a choice."""

import pytest

from app.core.errors import UnknownModelError
from app.faces.zoo_detector import TurningZooDetector, ZooDetector
from app.faces.zoo_landmarks import FanLandmarker
from app.faces.zoo_recognizer import ArcFaceRecognizer
from app.inference.spec import ModelId
from app.media.limits import MediaLimits
from app.pipeline.analysis import AnalysisChoice
from app.pipeline.tools import Tools
from tests.processors.neural.fakes import SwapZoo, echoed


def tools(**chosen: str) -> Tools:
    ids = {role: ModelId(model_id) for role, model_id in chosen.items()}
    return Tools.over(SwapZoo(echoed), {}, MediaLimits(), analysis=AnalysisChoice(**ids))


def test_networks_of_the_zoo_take_the_embedded_ones_places() -> None:
    made = tools(detector="yoloface-8n", landmarker="2dfan4", recognizer="arcface-w600k-r50")
    assert type(made.detector) is ZooDetector
    assert type(made.still_detector) is TurningZooDetector
    assert type(made.landmarker) is FanLandmarker
    assert type(made.recognizer) is ArcFaceRecognizer


def test_the_embedded_ones_are_used_unless_somebody_says_otherwise() -> None:
    made = tools()
    for tool in (made.detector, made.still_detector, made.landmarker, made.recognizer):
        assert not type(tool).__module__.startswith("app.faces.zoo_")


@pytest.mark.parametrize("role", ["detector", "landmarker", "recognizer"])
def test_a_model_for_something_else_is_refused(role: str) -> None:
    with pytest.raises(UnknownModelError, match=f"{role}: inswapper-128"):
        tools(**{role: "inswapper-128"})
