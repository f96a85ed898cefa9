"""Swapped faces are as calm as the clips they are in, as sharp, and the same in every run."""

import hashlib
from pathlib import Path

import pytest

from app.faces.detector import FaceDetector
from app.inference.session import OrtModelZoo
from app.pipeline.spec import RenderSpec
from app.workbench import Workbench
from benchmarks.flicker import Original, rgb_frames

LIMITS = {
    "glasses_man_expressions.mp4": 1.2,
    "halfbody_woman_720p_audio.mp4": 1.25,
    "man_greenscreen_silent.mp4": 1.2,
    "street_people_leave_frame.mp4": 1.27,
    "talk_woman_flag_audio.mp4": 1.2,
    "woman_head_turn.mp4": 1.2,
}
"""1.2 is the aim; the clips above it are told of in docs/limits.md."""


def swap(workbench: Workbench, assets: Path, clip: str, output: Path) -> Path:
    source = assets / "stills" / "frontal_astronaut.png"
    workbench.render(
        RenderSpec(
            sources=(source,),
            target=assets / "clips" / clip,
            output=output,
            consent="public-domain",
        )
    )
    return output


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize(("clip", "limit"), LIMITS.items(), ids=LIMITS)
def test_a_swapped_clip_hardly_flickers_more_and_is_not_blurred(
    clip: str, limit: float, workbench: Workbench, zoo: OrtModelZoo, assets: Path, tmp_path: Path
) -> None:
    output = swap(workbench, assets, clip, tmp_path / "out.mp4")
    verdict = Original(assets / "clips" / clip, FaceDetector(zoo)).verdict(output)
    assert verdict.ratio <= limit
    assert verdict.sharpness > 0.4


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
