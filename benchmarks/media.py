"""What the whole path costs when there is no face: against a bare decode and encode of the same clip.

    python -m benchmarks.media [RUNS]

The clips are made of moving gradients, a zone plate and noise, with sound. Both ways use the same encoder with the same
settings, and take turns in one run, so that a busy machine disturbs both.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from app import bootstrap
from app.config import Settings
from app.media.encoders import VideoEncoding, encoder_for
from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec
from benchmarks.clips import RATE, write_with_tone
from benchmarks.tables import write_table
from benchmarks.throughput import timed

TARGET = 1.15
CLIPS = (
    ("1080p", (1920, 1080), 750, {}),
    ("1080p, short", (1920, 1080), 200, {}),
    ("4K", (3840, 2160), 75, {"rc-lookahead": "5"}),
)
"""Name, size, frames, and what the program tells the encoder beside quality and preset, so that both ways do. Half a
minute shows what a film costs; the short ones, what beginning costs too."""
ENCODING = VideoEncoding()
RUNS = 3


def test_picture(size_wh: tuple[int, int]) -> NDArray[np.uint8]:
    """Rings of rising frequency in the middle, gradients around, and grain over all of it."""
    w, h = size_wh
    y, x = np.mgrid[0:h, 0:w].astype(np.float32)
    rings = 60 * np.cos(((x - w / 2) ** 2 + (y - h / 2) ** 2) * (np.pi / (2 * w)))
    inside = np.hypot(x - w / 2, y - h / 2) < h / 3
    base = np.stack([x * (160 / w) + 40, y * (160 / h) + 40, 200 - x * (120 / w)], -1)
    base += (rings * inside)[..., None]
    grain = np.random.default_rng(0).normal(0, 3, (h, w, 1))
    return np.asarray(np.clip(base + grain, 0, 255), np.uint8)


def make_clip(path: Path, size_wh: tuple[int, int], frames: int) -> None:
    """The picture, which pans by two pixels a frame, and a tone."""
    picture = test_picture(size_wh)
    panned = (np.ascontiguousarray(np.roll(picture, 2 * index, 1)) for index in range(frames))
    shown = (av.VideoFrame.from_ndarray(moved, format="rgb24") for moved in panned)
    write_with_tone(path, size_wh, shown, count=frames)


def transcode(clip: Path, output: Path, options: dict[str, str]) -> int:
    """Decode and encode with nothing between, sound copied; returns the number of frames."""
    frames = 0
    with av.open(str(clip)) as source, av.open(str(output), "w", format="mp4") as target:
        video, sound = source.streams.video[0], source.streams.audio[0]
        video.thread_type = "AUTO"
        stream = target.add_stream(
            "libx264", rate=video.average_rate or Fraction(RATE), options=options
        )
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p"
        copied = target.add_stream_from_template(sound)
        for packet in source.demux(video, sound):
            if packet.stream is sound:
                if packet.dts is not None:
                    packet.stream = copied
                    target.mux(packet)
                continue
            for frame in packet.decode():
                frame.pict_type = av.video.frame.PictureType.NONE
                target.mux(stream.encode(frame))
                frames += 1
        target.mux(stream.encode(None))
    return frames


def measured(
    name: str, whole: Callable[[], RenderResult], bare: Callable[[], int], runs: int
) -> tuple[object, ...]:
    """One line of the table: both ways in turns, the first round left out."""
    result, frames = whole(), bare()
    assert result.frames == frames
    assert result.frames_swapped == 0
    ours, plain = [], []
    for _ in range(runs):
        plain.append(timed(bare))
        ours.append(timed(whole))
    wall = [statistics.median(run[0] for run in each) for each in (ours, plain)]
    ratios = sorted(a[0] / b[0] for a, b in zip(ours, plain, strict=True))
    cpu = statistics.median(run[1] for run in ours) / statistics.median(run[1] for run in plain)
    return (
        name,
        frames,
        f"{frames / wall[1]:.1f}",
        f"{frames / wall[0]:.1f}",
        f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        f"{cpu:.2f}",
    )


def main() -> None:
    """Measure and write the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rows = []
    usual = encoder_for(ENCODING).codec_options(ENCODING)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        face = work / "face.png"
        Image.fromarray(np.asarray(skimage.data.astronaut())).save(face)
        workbench = bootstrap.workbench(Settings())
        for name, size_wh, frames, extra in CLIPS:
            clip = work / f"{name}.mp4"
            make_clip(clip, size_wh, frames)
            spec = RenderSpec(
                sources=(face,), target=clip, output=work / "out.mp4", consent="public-domain"
            )

            def whole(spec: RenderSpec = spec) -> RenderResult:
                return workbench.render(spec)

            def bare(clip: Path = clip, extra: dict[str, str] = extra) -> int:
                return transcode(clip, work / "bare.mp4", {**usual, **extra})

            rows.append(measured(name, whole, bare, runs))
    note = (
        f"No face is in the clips; at most {TARGET} times the wall time is the aim. The whole path reads the source "
        "photo, looks at the film for faces and for content that is refused, labels the output and reads it back."
    )
    write_table("media", "The whole path without a face against a bare decode and encode",
                ("clip", "frames", "bare, fps", "whole path, fps", "wall time, times", "processor time, times"),
                rows, note)  # fmt: skip


if __name__ == "__main__":
    main()
