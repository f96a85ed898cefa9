"""How fast this machine is: networks alone, whole videos, one preview; and how much memory that takes."""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np

from app.core.errors import AppError
from app.core.picture import Picture
from app.core.types import Frame, RgbImage
from app.inference.convert import proof_face
from app.inference.spec import ModelId, ModelZoo
from app.media.encode import VideoWriter
from app.media.encoders import VideoEncoding
from app.media.info import MediaInfo
from app.media.sniff import MediaKind
from app.pipeline.spec import RenderSpec
from app.pipeline.tools import Tools
from app.runtime.crop_times import CropTime, crop_lines
from app.runtime.executor import LocalExecutor

FACE_HEIGHT = 0.35
_NETWORK_HEADER = ("network", "batch", "ms a batch", "ms a picture")
_RATE = 25
_UPSCALED_PX, _DETECTED_PX = 64, 640
_DRAWN_FACE_HEIGHT = 0.62
"""Of the drawn picture's height, how much the face takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkPlan:
    """What is measured.

    Attributes:
        batches: Sizes of batches for networks alone.
        network_s: Time for one network; larger batches are left out after it.
        sizes_wh: Of the videos, with their frames.
        faces: Faces a frame.
        previews: Previews of which the median is told.
    """

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    network_s: float = 4.0
    sizes_wh: tuple[tuple[int, int, int], ...] = (
        (1280, 720, 64),
        (1920, 1080, 48),
        (3840, 2160, 16),
    )
    faces: tuple[int, ...] = (1, 4)
    previews: int = 5


QUICK = BenchmarkPlan(
    batches=(1, 4), network_s=0.5, sizes_wh=((320, 180, 8),), faces=(1,), previews=2
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkTime:
    """One network at one batch."""

    model: str
    batch: int
    batch_ms: float

    @property
    def row_ms(self) -> float:
        """Of one picture."""
        return self.batch_ms / self.batch


@dataclass(frozen=True, kw_only=True, slots=True)
class PathTime:
    """One whole video: decoded, swapped, encoded, labelled."""

    width: int
    height: int
    faces: int
    frames: int
    faces_swapped: int
    fps: float
    processor_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Benchmark:
    """All that was measured.

    Attributes:
        machine: Processor, device and versions.
        preview_ms: Median time of one swapped picture of the second largest size.
        peak_bytes: Most memory that this process had at once; device memory apart.
        load: How many programs wanted to run on average in the last minutes; more than there are cores, and wall
            times say little. Processor times hold.
        skipped: Networks that could not be measured, and why.
        crops: Cutting faces out of a frame on the processor, and where the networks run.
    """

    machine: str
    models: str
    networks: tuple[NetworkTime, ...]
    paths: tuple[PathTime, ...]
    preview_ms: float
    peak_bytes: int
    load: float = 0.0
    skipped: dict[str, str] = field(default_factory=dict)
    crops: tuple[CropTime, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    def to_markdown(self) -> str:
        """A page of tables for people."""
        networks = [
            (n.model, n.batch, f"{n.batch_ms:.1f}", f"{n.row_ms:.2f}") for n in self.networks
        ]
        paths = [
            (f"{p.width}x{p.height}", p.faces, p.frames, p.faces_swapped, f"{p.fps:.1f}",
             f"{1000 * p.processor_s / p.frames:.0f}")
            for p in self.paths
        ]  # fmt: skip
        skipped = [f"{name} was not measured: {why}." for name, why in self.skipped.items()]
        lines = [
            f"# Benchmark, {self.models} models", "", f"Machine: {self.machine}. Load average: {self.load:.1f}.", "",
            "## Whole videos", "",
            *_table(("size", "faces a frame", "frames", "faces swapped", "fps", "processor ms a frame"), paths),
            "", f"A preview of one picture takes {self.preview_ms:.0f} ms (median). "
            f"Peak memory of the process: {self.peak_bytes / 1e6:.0f} MB.", "",
            *(["## Networks alone", ""] if networks else []),
            *(_table(_NETWORK_HEADER, networks) if networks else []), "", *crop_lines(self.crops), *skipped,
        ]  # fmt: skip
        return "\n".join(lines).rstrip() + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def centers(faces: int) -> tuple[tuple[float, float], ...]:
    """Where the faces of a measured video are, in widths and heights."""
    return tuple(((index + 0.5) / faces, 0.5) for index in range(faces))


def measure(
    tools_for: Callable[[int], Tools],
    networks: Sequence[ModelId],
    plan: BenchmarkPlan,
    *,
    machine: str,
    models: str,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Benchmark:
    """Measure everything; takes a minute or a few.

    Args:
        tools_for: The tools for videos with so many faces a frame.
        networks: Measured alone, those that are installed.
        plan: What is measured.
        machine: Said in the result.
        models: Which models, for the title.
        on_progress: Told what comes next.

    Raises:
        AppError: A whole video failed.
    """
    skipped: dict[str, str] = {}
    times: list[NetworkTime] = []
    zoo = tools_for(1).zoo
    for model_id in networks:
        on_progress(f"network {model_id}")
        try:
            times += _network_times(zoo, model_id, plan)
        except AppError as error:
            skipped[str(model_id)] = error.message
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            _path_time(tools_for(faces), Path(folder), size, faces, on_progress)
            for size in plan.sizes_wh
            for faces in plan.faces
        ]
        on_progress("previews")
        preview_ms = _preview_ms(tools_for(1), Path(folder), plan)
    return Benchmark(
        machine=machine,
        models=models,
        networks=tuple(times),
        paths=tuple(paths),
        preview_ms=preview_ms,
        peak_bytes=peak_bytes(),
        load=os.getloadavg()[1],
        skipped=skipped,
    )


def peak_bytes() -> int:
    """The most memory that this process has had.

    On Linux from /proc: there ``getrusage`` begins with the peak of the process that started this one.
    """
    told = Path("/proc/self/status")
    if told.exists():
        line = next(each for each in told.read_text().splitlines() if each.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _network_times(zoo: ModelZoo, model_id: ModelId, plan: BenchmarkPlan) -> Iterator[NetworkTime]:
    spec, session = zoo.spec(model_id), zoo.session(model_id)
    usual = _UPSCALED_PX if spec.task == "frame_upscale" else _DETECTED_PX
    side_px = spec.crop.size if spec.crop is not None else usual
    picture = (side_px, side_px, 3) if spec.input.layout == "nhwc" else (3, side_px, side_px)
    random, started_s = np.random.default_rng(0), time.perf_counter()
    for batch in plan.batches:
        feeds = {spec.input.name: random.random((batch, *picture)).astype(np.float32)}
        for name in spec.other_inputs:
            feeds[name] = random.standard_normal((batch, 512)).astype(np.float32)
        warm_s = time.perf_counter()
        session.run(feeds)
        warm_s = time.perf_counter() - warm_s
        times_s = []
        for _ in range(1 if warm_s > plan.network_s / 4 else 3):
            before_s = time.perf_counter()
            session.run(feeds)
            times_s.append(time.perf_counter() - before_s)
        median_ms = 1000 * statistics.median(times_s)
        yield NetworkTime(model=model_id, batch=batch, batch_ms=median_ms)
        if time.perf_counter() - started_s > plan.network_s:
            return


def _path_time(
    tools: Tools,
    folder: Path,
    size: tuple[int, int, int],
    faces: int,
    on_progress: Callable[[str], None],
) -> PathTime:
    width, height, frames = size
    on_progress(f"{width}x{height}, {faces} faces")
    spec = _spec(folder, folder / f"{width}-{faces}.mp4")
    write_clip(spec.target, (width, height), faces, frames)
    executor = LocalExecutor(tools)
    wall_s, processor_s = time.perf_counter(), time.process_time()
    result = executor.render(spec, on_progress=lambda _: None)
    wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    return PathTime(
        width=width,
        height=height,
        faces=faces,
        frames=result.frames,
        faces_swapped=result.faces_swapped,
        fps=result.frames / wall_s,
        processor_s=processor_s,
    )


def _preview_ms(tools: Tools, folder: Path, plan: BenchmarkPlan) -> float:
    width, height, _ = plan.sizes_wh[len(plan.sizes_wh) // 2]
    target = folder / "preview.png"
    _write_png(target, frame_of((width, height), 1, 0))
    spec = _spec(folder, target)
    executor = LocalExecutor(tools)
    times_ms = []
    for _ in range(1 + plan.previews):
        before_s = time.perf_counter()
        executor.render(spec, on_progress=lambda _: None)
        times_ms.append(1000 * (time.perf_counter() - before_s))
    return statistics.median(times_ms[1:])


def _spec(folder: Path, target: Path) -> RenderSpec:
    source = folder / "face.png"
    if not source.exists():
        _write_png(source, np.asarray(cv2.resize(proof_face.draw(), (512, 512)), np.uint8))
    output = folder / f"swapped{target.suffix}"
    return RenderSpec(sources=(source,), target=target, output=output, consent="fictional")


def write_clip(path: Path, size_wh: tuple[int, int], faces: int, frames: int) -> None:
    """Write a video of drawn faces that sway a little."""
    info = MediaInfo(
        kind="video",
        container=MediaKind.MP4,
        size_wh=size_wh,
        pixel_format="yuv420p",
        rate=Fraction(_RATE),
        time_base=Fraction(1, _RATE),
    )
    encoding = VideoEncoding(preset="ultrafast", quality=90)
    with VideoWriter(path, source=None, info=info, encoding=encoding, metadata={}) as writer:
        for index in range(frames):
            image = frame_of(size_wh, faces, index)
            frame = Frame(
                index=index,
                pts=index,
                time_base=Fraction(1, _RATE),
                picture=Picture.from_rgb(image),
            )
            writer.write(replace(frame, is_cut=index == 0))


def frame_of(size_wh: tuple[int, int], faces: int, index: int) -> RgbImage:
    """Drawn faces in a row before a gradient."""
    width, height = size_wh
    shade = np.linspace(70, 150, width, dtype=np.float32)
    image = np.ascontiguousarray(np.broadcast_to(shade[None, :, None], (height, width, 3))).astype(
        np.uint8
    )
    side = min(round(height * FACE_HEIGHT / _DRAWN_FACE_HEIGHT), width // faces)
    face = np.asarray(cv2.resize(proof_face.draw(), (side, side), interpolation=cv2.INTER_AREA))
    sway = round(0.004 * width * np.sin(index / 4))
    for x, y in centers(faces):
        left = min(max(0, round(x * width - side / 2) + sway), width - side)
        top = min(max(0, round(y * height - side / 2)), height - side)
        image[top : top + side, left : left + side] = face
    return image


def _write_png(path: Path, image: RgbImage) -> None:
    cv2.imwrite(str(path), image[..., ::-1])
