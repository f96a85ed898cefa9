"""How fast a whole swap runs: 720p, one face, embedded models, x264 `veryfast`, sound copied.

    python -m benchmarks.throughput [CLIP FACE]

Without arguments a moving clip is made of scikit-image's astronaut. The same clip is decoded and encoded by bare PyAV
with the same encoder settings, alternating with the swap, so that the ratio says what the faces cost.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import skimage.data
from PIL import Image

from app import bootstrap
from app.config import Settings
from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec
from benchmarks.tables import write_table

SIZE_WH = (1280, 720)
FRAMES = 150
RUNS = 3


def make_clip(path: Path) -> None:
    """A portrait that sways and zooms before a gradient, 25 frames a second."""
    portrait = np.asarray(skimage.data.astronaut())[:420, 60:440]
    base = np.linspace(60, 160, SIZE_WH[0], dtype=np.float32)
    plain = np.repeat(np.repeat(base[None, :, None], SIZE_WH[1], 0), 3, 2).astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=25, options={"preset": "veryfast", "crf": "18"}
        )
        stream.width, stream.height, stream.pix_fmt = *SIZE_WH, "yuv420p"
        for index in range(FRAMES):
            phase = 2 * np.pi * index / 75
            affine = cv2.getRotationMatrix2D(
                (190, 130), 6 * np.sin(phase), 1.7 + 0.1 * np.cos(phase)
            )
            affine[:, 2] += (450 + 60 * np.sin(phase), 180)
            image = cv2.warpAffine(portrait, affine, SIZE_WH, dst=plain.copy(),
                                   borderMode=cv2.BORDER_TRANSPARENT)  # fmt: skip
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def transcode(clip: Path, output: Path, crf: int) -> int:
    """Decode and encode with nothing between; returns the number of frames."""
    frames = 0
    with av.open(str(clip)) as source, av.open(str(output), "w", format="mp4") as target:
        video = source.streams.video[0]
        video.thread_type = "AUTO"
        options = {"preset": "veryfast", "crf": str(crf)}
        stream = target.add_stream(
            "libx264", rate=video.average_rate or Fraction(25), options=options
        )
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p"
        for frame in source.decode(video):
            frame.pict_type = av.video.frame.PictureType.NONE
            for packet in stream.encode(frame):
                target.mux(packet)
            frames += 1
        for packet in stream.encode():
            target.mux(packet)
    return frames


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Measure and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if len(sys.argv) > 2:
            clip, face = Path(sys.argv[1]), Path(sys.argv[2])
        else:
            clip, face = work / "clip.mp4", work / "face.png"
            make_clip(clip)
            Image.fromarray(np.asarray(skimage.data.astronaut())).save(face)
        workbench = bootstrap.workbench(Settings())
        spec = RenderSpec(
            sources=(face,), target=clip, output=work / "out.mp4", consent="public-domain"
        )

        def swap() -> RenderResult:
            return workbench.render(spec)

        swap()  # opens the models
        swaps, bare = [], []
        for _ in range(RUNS):
            swaps.append(timed(swap))
            bare.append(timed(lambda: transcode(clip, work / "bare.mp4", 18)))
        result = swap()
        frames = transcode(clip, work / "bare.mp4", 18)
        rows = [row("bare transcode", bare, frames), row("swap, one face", swaps, result.frames)]
        wall = statistics.median(s[0] for s in swaps) / statistics.median(b[0] for b in bare)
        note = (
            f"{result.frames} frames, {result.frames_swapped} with a swapped face. The swap takes {wall:.2f} times the "
            "wall time of the bare transcode of the same clip, measured alternating in one run. Opening the models is "
            "counted apart."
        )
        write_table("throughput", "Whole swap at 720p, embedded models",
                    ("what", "frames", "fps, median (min to max)", "processor s, median"), rows, note)  # fmt: skip


def row(name: str, runs: list[tuple[float, float]], frames: int) -> tuple[object, ...]:
    """One line of the table."""
    rates = sorted(frames / wall for wall, _ in runs)
    cpu = statistics.median(cpu for _, cpu in runs)
    return (
        name,
        frames,
        f"{statistics.median(rates):.1f} ({rates[0]:.1f} to {rates[-1]:.1f})",
        f"{cpu:.1f}",
    )


if __name__ == "__main__":
    main()
