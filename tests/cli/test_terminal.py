"""What the command line shows of a job."""

import json
from pathlib import Path

import pytest

from app.pipeline.progress import Busy, RenderResult
from app.terminal import busy_words, show_result

BUSY: Busy = {
    "decode": 0.054,
    "find_faces": 1.0,
    "change_faces": 0.4,
    "device": 0.966,
    "encode": 0.0,
}


def result(frames: int) -> RenderResult:
    return RenderResult(
        output=Path("out.mp4"), frames=frames, frames_swapped=1, faces_swapped=1, busy=BUSY
    )


def test_how_busy_each_part_is_reads_in_the_order_of_a_frames_way() -> None:
    assert busy_words(BUSY) == (
        "reading 5% · finding faces 100% · changing faces 40% · networks 97% · writing 0%"
    )
    assert busy_words({}) == ""


@pytest.mark.parametrize(("frames", "is_told"), [(1, False), (250, True)])
def test_a_finished_video_says_what_set_the_pace(
    frames: int, is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    show_result(result(frames), as_json=False)
    assert ("finding faces 100%" in capsys.readouterr().out) == is_told


def test_programs_get_the_shares_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    show_result(result(1), as_json=True)
    assert json.loads(capsys.readouterr().out)["busy"] == BUSY
