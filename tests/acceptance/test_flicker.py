"""Swapped faces are as calm as the clips they are in, as sharp, and the same in every run."""

import hashlib
from pathlib import Path

import pytest

from app.faces.detector import FaceDetector
from app.inference.session import OrtModelZoo
from app.pipeline.spec import RenderSpec
from app.workbench import Workbench
from benchmarks.flicker import Original, rgb_frames

LIMIT = 1.2
SHARP_ENOUGH = 0.35
"""The eyes, which are the sharpest of a face, are the source's; the astronaut's photo shows them on a few pixels."""
ASTRONAUT, DARK = "frontal_astronaut.png", "dark_skin_portrait_a.jpg"
ELDERLY, BEARDED = "elderly_man.jpg", "beard_man.jpg"
PAIRS = (
    ("glasses_man_expressions.mp4", ASTRONAUT),
    ("glasses_man_expressions.mp4", DARK),
    ("glasses_man_expressions.mp4", ELDERLY),
    ("halfbody_woman_720p_audio.mp4", ASTRONAUT),
    ("halfbody_woman_720p_audio.mp4", DARK),
    ("halfbody_woman_720p_audio.mp4", ELDERLY),
    ("halfbody_woman_720p_audio.mp4", BEARDED),
    ("man_greenscreen_silent.mp4", ASTRONAUT),
    ("street_people_leave_frame.mp4", ASTRONAUT),
    ("talk_woman_flag_audio.mp4", ASTRONAUT),
    ("woman_head_turn.mp4", ASTRONAUT),
    ("woman_head_turn.mp4", DARK),
)
"""The hardest of those that benchmarks/results/flicker.md lists, and one of each clip."""


def swap(
    workbench: Workbench, assets: Path, clip: str, output: Path, *, source: str = ASTRONAUT
) -> Path:
    workbench.render(
        RenderSpec(
            sources=(assets / "stills" / source,),
            target=assets / "clips" / clip,
            output=output,
            consent="public-domain",
        )
    )
    return output


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize(("clip", "source"), PAIRS)
def test_a_swapped_clip_hardly_flickers_more_and_is_not_blurred(
    clip: str, source: str, workbench: Workbench, zoo: OrtModelZoo, assets: Path, tmp_path: Path
) -> None:
    output = swap(workbench, assets, clip, tmp_path / "out.mp4", source=source)
    verdict = Original(assets / "clips" / clip, FaceDetector(zoo)).verdict(output)
    assert verdict.ratio <= LIMIT
    assert verdict.sharpness > SHARP_ENOUGH


@pytest.mark.weights
def test_two_runs_give_the_same_pixels(workbench: Workbench, assets: Path, tmp_path: Path) -> None:
    digests = []
    for name in ("one.mp4", "two.mp4"):
        digest = hashlib.sha256()
        for rgb in rgb_frames(
            swap(workbench, assets, "man_greenscreen_silent.mp4", tmp_path / name)
        ):
            digest.update(rgb.tobytes())
        digests.append(digest.hexdigest())
    assert digests[0] == digests[1]
