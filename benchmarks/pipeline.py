"""What the pipeline itself costs: four faces a frame, networks that cost next to nothing.

    python -m benchmarks pipeline [--stubs DIR] [--runs N] [--only 1080p,4K,bound,memory]

The networks are stubs with the contracts of the public zoo (`make_stub_models.py`, see `--maker`): a detector, 68
landmarks, a recognizer, a swapper, a box mask. The bare way decodes and encodes the same clip with PyAV, decoder and
encoder in their own threads, as the whole path has them. Both take turns, so that a busy machine disturbs both. The
source photo is found by the embedded detector: a stub sees four faces in it.
"""

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import skimage.data
from PIL import Image

from app import bootstrap
from app.config import ROOT, Settings
from app.faces.detector import STILL_SIDES_PX
from app.faces.turning import TurningDetector
from app.inference.install import Installer
from app.inference.session import OrtModelZoo
from app.inference.spec import ModelId
from app.media.encoders import VideoEncoding, encoder_for
from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec, Step
from app.pipeline.tools import Tools
from app.runtime.benchmark import peak_bytes
from app.runtime.executor import LocalExecutor
from benchmarks.clips import RATE, write_with_tone
from benchmarks.tables import write_table
from benchmarks.throughput import timed

FACES = 4
SWAPPER = ModelId("inswapper-128")
ENCODING = VideoEncoding()
QUEUED = 8
MAKER = ROOT.parent / "shared" / "tools" / "make_stub_models.py"


@dataclass(frozen=True, slots=True)
class Size:
    """A clip, what the program tells the encoder for it, and the aims: wall and processor time, in times the bare."""

    name: str
    size_wh: tuple[int, int]
    frames: int
    extra: dict[str, str]
    aims: tuple[float, float]


SIZES = (
    Size("1080p", (1920, 1080), 200, {}, (1.25, 1.5)),
    Size("4K", (3840, 2160), 75, {"rc-lookahead": "5"}, (1.1, 1.25)),
)
MEMORY_FRAMES = (100, 600)
BOUND_FRAMES = 12


def make_clip(path: Path, size_wh: tuple[int, int], frames: int) -> None:
    """FFmpeg's `testsrc2` with a tone, x264 `veryfast` at CRF 18."""
    graph = av.filter.Graph()
    source = graph.add("testsrc2", f"size={size_wh[0]}x{size_wh[1]}:rate={RATE}")
    planar, sink = graph.add("format", "pix_fmts=yuv420p"), graph.add("buffersink")
    source.link_to(planar)
    planar.link_to(sink)
    graph.configure()
    shown = (graph.vpull() for _ in range(frames))
    write_with_tone(path, size_wh, shown, count=frames)


def transcode(clip: Path, output: Path, options: dict[str, str]) -> int:
    """Decode in one thread and encode in another, sound copied; returns the number of frames."""
    waiting: queue.Queue[av.VideoFrame | av.Packet | None] = queue.Queue(QUEUED)
    with av.open(str(clip)) as source, av.open(str(output), "w", format="mp4") as target:
        video, sound = source.streams.video[0], source.streams.audio[0]
        video.thread_type = "AUTO"
        stream = target.add_stream(
            "libx264", rate=video.average_rate or Fraction(RATE), options=options
        )
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p"
        copied = target.add_stream_from_template(sound)

        def decode() -> None:
            for packet in source.demux(video, sound):
                for item in [packet] if packet.stream is sound else packet.decode():
                    waiting.put(item)
            waiting.put(None)

        decoder = threading.Thread(target=decode)
        decoder.start()
        frames = 0
        while (item := waiting.get()) is not None:
            if isinstance(item, av.Packet):
                if item.dts is not None:
                    item.stream = copied
                    target.mux(item)
                continue
            item.pict_type = av.video.frame.PictureType.NONE
            target.mux(stream.encode(item))
            frames += 1
        decoder.join()
        target.mux(stream.encode(None))
    return frames


def install_stubs(folder: Path, stubs: Path | None, maker: Path, *, real: bool = False) -> Path:
    """A models folder: the embedded ones, and stubs as `models adopt` installs them."""
    settings = Settings()
    models = folder / ("models_real" if real else "models")
    shutil.copytree(settings.models_path, models)
    if stubs is None:
        stubs = folder / ("stubs_real" if real else "stubs")
        command = [
            sys.executable,
            str(maker),
            str(stubs),
            str(FACES),
            *(["--real"] if real else []),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    known = bootstrap.manifest(settings)
    ids = [ModelId(name) for name in ("yoloface-8n", "2dfan4", "arcface-w600k-r50", SWAPPER)]
    Installer(known, models).adopt(stubs, ids, unpinned=True)
    return models


@contextmanager
def zoo_tools(models: Path) -> Iterator[tuple[OrtModelZoo, Tools]]:
    """The whole path over the stubs, as the program wires it."""
    settings = Settings(
        models_dir=models,
        detector="yoloface-8n",
        landmarker="2dfan4",
        recognizer="arcface-w600k-r50",
        device="cpu",
    )
    with bootstrap.model_zoo(settings) as zoo:
        tools = bootstrap.tools_over(zoo, settings)
        yield zoo, replace(tools, still_detector=TurningDetector(zoo, sides_px=STILL_SIDES_PX))


def spec_for(work: Path, clip: Path) -> RenderSpec:
    """Swap all four, with the box mask alone."""
    face = work / "face.png"
    if not face.exists():
        Image.fromarray(np.asarray(skimage.data.astronaut())).save(face)
    step = Step(processor="face_swapper", options={"model": SWAPPER, "occlusion": "off"})
    return RenderSpec(
        sources=(face,),
        target=clip,
        output=work / "out.mp4",
        consent="public-domain",
        steps=(step,),
    )


def compared(work: Path, models: Path, size: Size, runs: int) -> tuple[object, ...]:
    """One line of the table: both ways in turns, the first round left out."""
    clip = work / f"{size.name}.mp4"
    make_clip(clip, size.size_wh, size.frames)
    options = {**encoder_for(ENCODING).codec_options(ENCODING), **size.extra}
    with zoo_tools(models) as (_, tools):
        executor = LocalExecutor(tools)

        def whole() -> RenderResult:
            return executor.render(spec_for(work, clip), on_progress=lambda _: None)

        def bare() -> int:
            return transcode(clip, work / "bare.mp4", options)

        result, frames = whole(), bare()
        assert (result.frames, result.faces_swapped) == (frames, FACES * frames)
        ours, plain = [], []
        for _ in range(runs):
            plain.append(timed(bare))
            ours.append(timed(whole))
    return _line(size, ours, plain)


def _line(
    size: Size, ours: list[tuple[float, float]], plain: list[tuple[float, float]]
) -> tuple[object, ...]:
    wall, cpu = ([a[kind] / b[kind] for a, b in zip(ours, plain, strict=True)] for kind in (0, 1))
    extra_ms = [1000 * (a[1] - b[1]) / size.frames for a, b in zip(ours, plain, strict=True)]
    seconds = [
        f"{statistics.median(run[kind] for run in each):.1f}"
        for kind in (0, 1)
        for each in (plain, ours)
    ]
    return (
        f"{size.name}, {size.frames} frames",
        f"{seconds[0]} / {seconds[1]}",
        f"{statistics.median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f}), aim {size.aims[0]}",
        f"{seconds[2]} / {seconds[3]}",
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f}), aim {size.aims[1]}",
        f"{statistics.median(extra_ms):.0f}",
    )


def bound_line(work: Path, models: Path, runs: int) -> str:
    """How near the whole path comes to the swapper alone, where that costs what the real one does."""
    clip = work / "bound.mp4"
    make_clip(clip, SIZES[0].size_wh, BOUND_FRAMES)
    random = np.random.default_rng(0)
    with zoo_tools(models) as (zoo, tools):
        session, executor = zoo.session(SWAPPER), LocalExecutor(tools)
        batch = {
            "target": random.random((FACES, 3, 128, 128)).astype(np.float32),
            "source": random.standard_normal((FACES, 512)).astype(np.float32),
        }

        def bare() -> None:
            for _ in range(BOUND_FRAMES):
                session.run(batch)

        def whole() -> RenderResult:
            return executor.render(spec_for(work, clip), on_progress=lambda _: None)

        session.run(batch)
        pairs = [(timed(bare), timed(whole)) for _ in range(runs)]
    wall, cpu = ([a[kind] / b[kind] for a, b in pairs] for kind in (0, 1))
    per_face = statistics.median(a[0] for a, _ in pairs) / (FACES * BOUND_FRAMES)
    return (
        f"With a swapper of the real one's size ({per_face:.2f} s a face, alone) the whole path reaches "
        f"{statistics.median(wall):.1%} of the bare session's throughput by wall time (aim 97 %), and the session is "
        f"{statistics.median(cpu):.1%} of its processor time; {BOUND_FRAMES} frames, start and end of the job included."
    )


def fresh(work: Path, models: Path, frames: int) -> dict[str, float]:
    """Peak memory and start-up of a fresh process that renders so many frames."""
    clip = work / f"memory-{frames}.mp4"
    make_clip(clip, SIZES[0].size_wh, frames)
    command = [
        sys.executable,
        "-m",
        "benchmarks.pipeline",
        "--child",
        str(work),
        str(models),
        str(clip),
        str(time.time()),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(work: Path, models: Path, clip: Path, began_s: float) -> None:
    """In a fresh process, started at `began_s`: open everything, render, tell."""
    with zoo_tools(models) as (_, tools):
        ready_s = time.time() - began_s
        LocalExecutor(tools).render(spec_for(work, clip), on_progress=lambda _: None)
    print(json.dumps({"ready_s": ready_s, "peak_mb": peak_bytes() / 1e6}))


def memory_line(work: Path, models: Path) -> str:
    """Peak memory over length."""
    told = [fresh(work, models, frames) for frames in MEMORY_FRAMES]
    peaks = ", ".join(
        f"{each['peak_mb']:.0f} MB for {frames} frames"
        for each, frames in zip(told, MEMORY_FRAMES, strict=True)
    )
    return (
        f"Peak memory of a fresh process at 1080p: {peaks} (aim 700 MB, flat). "
        f"From its start until all models are open it takes "
        f"{told[0]['ready_s']:.1f} s (aim 3), which is not part of the times above."
    )


def loaded() -> str:
    """How busy the machine was, besides."""
    return (
        f"Load average at the end: {os.getloadavg()[1]:.0f}. Above the number of cores wall times say little, and "
        "processor times are too long: threads find their caches used by others."
    )


def main() -> None:
    """Measure and write the table."""
    if sys.argv[1:2] == ["--child"]:
        child(*map(Path, sys.argv[2:5]), float(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline")
    parser.add_argument("--stubs", type=Path, help="folder that the maker has filled")
    parser.add_argument("--maker", type=Path, default=MAKER, help="make_stub_models.py")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="1080p,4K,bound,memory", help="parts, comma-separated")
    asked = parser.parse_args()
    parts = asked.only.split(",")
    notes = [
        "Detector, 68 landmarks, recognizer, swapper and box mask of stub models; four faces in every frame. The "
        "extra milliseconds are processor time a frame over the bare decode and encode. Tracking, the content gate, "
        "the label and its reading back are in; opening the models is not."
    ]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        models = install_stubs(work, asked.stubs, asked.maker)
        rows = [compared(work, models, size, asked.runs) for size in SIZES if size.name in parts]
        if "memory" in parts:
            notes.append(memory_line(work, models))
        if "bound" in parts:
            real = install_stubs(work, None, asked.maker, real=True)
            notes.append(bound_line(work, real, 1))
    write_table(
        "pipeline",
        "The pipeline itself: four faces a frame, networks that cost next to nothing",
        (
            "clip",
            "wall s, bare / whole",
            "wall, times",
            "processor s, bare / whole",
            "processor, times",
            "extra ms a frame",
        ),
        rows,
        "\n\n".join([*notes, loaded()]),
    )


if __name__ == "__main__":
    main()
