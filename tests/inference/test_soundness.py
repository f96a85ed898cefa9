"""A network that gives nothing is told of, not believed."""

import numpy as np
import pytest

from app.core.errors import ModelError
from app.core.picture import Picture
from app.core.types import FloatArray
from app.faces.recognizer import FaceRecognizer
from app.inference.soundness import require_sound
from app.inference.spec import ModelId
from tests.conftest import MakeFace
from tests.faces.fakes import FakeZoo

MODEL = ModelId("sface")
SOUND = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_numbers_go_through_as_they_are() -> None:
    assert require_sound(SOUND, MODEL) is SOUND
    assert require_sound(SOUND[:0], MODEL).shape == (0, 3)


@pytest.mark.parametrize(
    "bad", [[1, 2, np.nan], [1, 2, np.inf], [0, 0, 0]], ids=["NaN", "infinite", "zeros"]
)
def test_one_bad_row_is_enough(bad: list[float]) -> None:
    rows = np.concatenate([SOUND, np.array([bad], np.float32)])
    with pytest.raises(ModelError) as error:
        require_sound(rows, MODEL)
    assert error.value.code == "model.failed"
    assert "sface" in error.value.message


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_recognizer_that_gives_nothing_makes_no_vector(value: float, make_face: MakeFace) -> None:
    def broken(feed: FloatArray) -> dict[str, FloatArray]:
        return {"fc1": np.full((len(feed), 128), value, np.float32)}

    picture = Picture.from_rgb(np.zeros((128, 128, 3), np.uint8))
    with pytest.raises(ModelError):
        FaceRecognizer(FakeZoo(broken)).embed([(picture, make_face())])
