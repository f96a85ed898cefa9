"""What the pipeline itself costs: four faces a frame, networks that cost next to nothing.

    python -m benchmarks pipeline [--stubs DIR] [--runs N] [--only 1080p,4K,bound,memory]

The networks are stubs with the contracts of the public zoo (`make_stub_models.py`, see `--maker`): a detector, 68
landmarks, a recognizer, a swapper, a box mask. The bare way decodes and encodes the same clip with PyAV, decoder and
encoder in their own threads, as the whole path has them. Both take turns, so that a busy machine disturbs both. The
source photo is found by the embedded detector: a stub sees four faces in it.
"""

import queue
import shutil
import statistics
import subprocess
import sys
import threading
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
from app.runtime.executor import LocalExecutor
from benchmarks.throughput import timed

RATE = 25
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
    with av.open(str(path), "w") as container:
        video = container.add_stream(
            "libx264", rate=RATE, options={"preset": "veryfast", "crf": "18"}
        )
        video.width, video.height, video.pix_fmt = *size_wh, "yuv420p"
        sound = container.add_stream("aac", rate=48_000)
        sound.codec_context.layout = "stereo"
        wave = np.sin(np.arange(48_000 * frames // RATE) * 0.05) * 8000
        tone = av.AudioFrame.from_ndarray(wave.astype(np.int16)[None], format="s16", layout="mono")
        tone.sample_rate = 48_000
        container.mux(sound.encode(tone))
        container.mux(sound.encode(None))
        for index in range(frames):
            frame = graph.vpull()
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))


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
    return (
        f"{size.name}, {size.frames} frames",
        *(
            f"{statistics.median(run[kind] for run in each):.2f}"
            for each in (plain, ours)
            for kind in (0, 1)
        ),
        f"{statistics.median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f})",
        f"{size.aims[0]}",
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f})",
        f"{size.aims[1]}",
        f"{statistics.median(extra_ms):.1f}",
    )
