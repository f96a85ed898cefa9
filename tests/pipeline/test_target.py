"""A video in, as a request wants it: a part, another rate, another kind of file; the label is always there."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from app.command_values import parse_timing
from app.core.errors import UsageError
from app.labelling.verify import read_label
from app.media.info import MediaInfo
from app.media.limits import DEFAULT_LIMITS
from app.media.probe import probe
from app.pipeline.output import labelled_output, new_label
from app.pipeline.spec import OutputChoices, RenderSpec, Timing
from app.pipeline.target import open_wanted_target


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Two seconds at 25 frames a second, each frame brighter than the one before."""
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(50):
            image = np.full((48, 64, 3), index * 5, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return path


Make = Callable[..., MediaInfo]


@pytest.fixture
def make(clip: Path, tmp_path: Path) -> Make:
    """Copy the clip into a labeled file: `make("out.gif", timing=Timing(...))`."""

    def build(name: str, target: Path = clip, **wishes: object) -> MediaInfo:
        output = tmp_path / name
        spec = RenderSpec(  # type: ignore[arg-type]
            sources=(clip,), target=target, output=output, consent="self", **wishes
        )
        label = new_label()
        with (
            open_wanted_target(spec, DEFAULT_LIMITS) as opened,
            labelled_output(output, label, opened.info) as hidden,
            opened.sink(hidden, spec, label) as sink,
        ):
            for frame in opened.frames():
                sink.write(frame)
        assert read_label(output).aigc == (label.aigc_json,)
        return probe(output)

    return build


@pytest.mark.parametrize(
    "suffix", [".mp4", ".mov", ".mkv", ".webm", ".gif", ".webp", ".apng", ".png"]
)
def test_every_kind_of_output_holds_all_frames_and_one_label(suffix: str, make: Make) -> None:
    info = make(f"out{suffix}")
    assert info.frames == 50
    assert info.duration_s == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png"])
def test_an_animation_becomes_another_one_or_a_video(
    suffix: str, make: Make, tmp_path: Path
) -> None:
    make(f"first{suffix}", timing=Timing(end_s=0.4))
    for name in ("second.gif", "second.webp", "second.png", "second.mp4"):
        info = make(name, target=tmp_path / f"first{suffix}")
        assert info.frames == 10
        assert info.duration_s == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("timing", "frames", "duration_s"),
    [
        (Timing(start_s=0.4), 40, 1.6),
        (Timing(start_s=0.4, end_s=0.8), 10, 0.4),
        (Timing(fps=10), 20, 2.0),
        (Timing(start_s=1, fps=50), 50, 1.0),
        (Timing(start_s=0.1, end_s=0.3, fps=12.5), 3, 0.24),
    ],
)
def test_a_part_and_a_rate_are_exact(
    timing: Timing, frames: int, duration_s: float, make: Make
) -> None:
    info = make("out.mp4", timing=timing)
    assert info.frames == frames
    assert info.duration_s == pytest.approx(duration_s, abs=0.001)
    if timing.fps:
        assert info.rate == Fraction(str(timing.fps))


def test_a_named_codec_is_taken(make: Make) -> None:
    assert make("out.mp4", encoding=OutputChoices(codec="hevc")).codec == "hevc"
    assert make("out.mkv", encoding=OutputChoices(codec="like-input")).codec == "h264"


def test_like_the_input_means_its_quality_too(make: Make, tmp_path: Path) -> None:
    """Whatever number stands in the request: it may be a preset's."""
    rng, grainy = np.random.default_rng(1), tmp_path / "grainy.mp4"
    with av.open(str(grainy), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"crf": "24"})
        stream.width, stream.height, stream.pix_fmt = 192, 144, "yuv420p"
        for index in range(50):
            ramp = np.arange(192)[None, :, None] + 2 * index + rng.normal(0, 9, (144, 192, 3))
            image = np.clip(ramp, 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())

    def size(choices: OutputChoices) -> float:
        make("out.mp4", target=grainy, encoding=choices)
        return (tmp_path / "out.mp4").stat().st_size / grainy.stat().st_size

    assert size(OutputChoices(codec="h264", quality=30)) < 0.4
    assert 0.7 < size(OutputChoices(codec="like-input", quality=30)) < 1.4


@pytest.mark.parametrize(
    ("start", "end", "fps", "timing"),
    [
        (None, None, None, Timing()),
        ("1.5", None, None, Timing(start_s=1.5)),
        ("1:02", "1:02:03.5", 25, Timing(start_s=62, end_s=3723.5, fps=25)),
    ],
)
def test_times_are_seconds_or_have_colons(
    start: str | None, end: str | None, fps: float | None, timing: Timing
) -> None:
    assert parse_timing(start, end, fps) == timing


@pytest.mark.parametrize(
    ("start", "end", "fps"),
    [("x", None, None), ("-1", None, None), ("2", "1", None), (None, None, 0), ("nan", None, None)],
)
def test_nonsense_is_refused(start: str | None, end: str | None, fps: float | None) -> None:
    with pytest.raises(UsageError, match="wanted times"):
        parse_timing(start, end, fps)
