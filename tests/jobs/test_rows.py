"""What a job has made is read back as it was written, by this release and by earlier ones."""

import json
from pathlib import Path

from app.core.types import Notice
from app.jobs.rows import result_json, result_of
from app.pipeline.progress import PersonCount, RenderResult

RESULT = RenderResult(
    output=Path("/results/1/result.mp4"),
    frames=10,
    frames_swapped=8,
    faces_swapped=12,
    notices=(Notice("face.photo_shares", "photo 1: 100%"),),
    people=(PersonCount(who="person 2", frames=8), PersonCount(who="reference 1", frames=4)),
)


def test_a_result_is_read_back() -> None:
    assert result_of(result_json(RESULT), RESULT.output) == RESULT


def test_a_result_of_an_earlier_release_names_nobody() -> None:
    values = json.loads(result_json(RESULT))
    del values["people"]
    assert result_of(json.dumps(values), RESULT.output).people == ()
