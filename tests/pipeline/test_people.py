"""Who is in a file, found by the installed models in pictures that come inside packages."""

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.core.errors import MediaNotFoundError
from app.inference.spec import ModelZoo
from app.media.limits import DEFAULT_LIMITS
from app.pipeline.people import PeopleFound, find_people, find_people_of_all
from app.pipeline.tools import Tools

pytestmark = pytest.mark.weights

Rgb = NDArray[np.uint8]


@pytest.fixture(scope="module")
def tools(zoo: ModelZoo) -> Tools:
    return Tools.over(zoo, {}, DEFAULT_LIMITS)


def write_video(path: Path, shots: list[tuple[Rgb, int]]) -> Path:
    """Shots of pictures that stand still, 25 frames a second."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=Fraction(25), options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 512, 400, "yuv420p"
        for image, count in shots:
            sized = np.asarray(image[:400, :512], np.uint8)
            for _ in range(count):
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(sized), format="rgb24")
                output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory, astronaut: Rgb, grace_hopper: Rgb) -> Path:
    """She, then another one for 12 frames, then nobody, then she again."""
    wall = np.full((400, 512, 3), 90, np.uint8)
    wall[:, ::32] = 200
    folder = tmp_path_factory.mktemp("people")
    shots = [(astronaut, 30), (grace_hopper, 12), (wall, 15), (astronaut, 20)]
    return write_video(folder / "shots.mp4", shots)


def test_each_person_of_a_video_is_found_once(video: Path, tools: Tools) -> None:
    shares: list[float] = []
    found = find_people(video, tools, on_progress=shares.append)
    assert found.size_wh == (512, 400)
    assert found.duration_s == pytest.approx(3.08, abs=0.1)
    she, other = found.people
    assert (she.first_s, other.first_s) == (0, pytest.approx(1.2))
    assert she.last_s > 2.3
    assert she.share > other.share
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_people_of_a_still_are_numbered_left_to_right(six_people_path: Path, tools: Tools) -> None:
    found = find_people(six_people_path, tools)
    lefts = [float(person.places[0].bbox_xyxy[0]) for person in found.people]
    assert lefts == sorted(lefts)
    assert len(lefts) == 6
    assert found.duration_s == 0


def test_a_photo_and_a_video_of_one_person_are_one_person(
    video: Path, astronaut: Rgb, tmp_path: Path, tools: Tools
) -> None:
    photo = tmp_path / "photo.png"
    bright = cv2.convertScaleAbs(astronaut, alpha=0.8, beta=30)
    Image.fromarray(np.asarray(bright, np.uint8)).save(photo)
    found = find_people_of_all([photo, video], tools)
    assert len(found.people) == 2
    assert {place.file for place in found.people[0].places} == {0, 1}


def test_two_runs_find_the_same(video: Path, tools: Tools) -> None:
    one, two = (find_people(video, tools) for _ in range(2))
    assert one.to_json() == two.to_json()
    for a, b in zip(one.people, two.people, strict=True):
        assert np.array_equal(a.normed_embeddings, b.normed_embeddings)
        assert np.array_equal(a.thumbnail, b.thumbnail)


def test_nobody_is_found_where_nobody_is(tmp_path: Path, tools: Tools) -> None:
    path = tmp_path / "wall.png"
    Image.new("RGB", (300, 200), (120, 110, 90)).save(path)
    found = find_people(path, tools)
    assert found == PeopleFound(size_wh=(300, 200), duration_s=0.0, people=())
    assert found.to_json() == {"size_wh": [300, 200], "duration_s": 0.0, "people": []}


def test_a_missing_file_is_told(tmp_path: Path, tools: Tools) -> None:
    with pytest.raises(MediaNotFoundError):
        find_people(tmp_path / "none.mp4", tools)
