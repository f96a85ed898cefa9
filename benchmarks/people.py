"""What several faces in one picture cost: milliseconds a frame for 1, 2, 4 and 6, batched and one at a time.

    python -m benchmarks.people

The clip is made of scikit-image's astronaut, many times beside each other, each swaying a little. Only the work on
faces is timed (find, measure, follow, swap, put back), in processor time of one thread, because decoding and
encoding cost the same for any number. "One at a time" is the same work with windows of one frame and one
face a call of the processor.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import cv2
import numpy as np
import skimage.data

from app.config import Settings
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import FaceBatch, Frame, Identity, RgbImage, Window
from app.faces.detector import FaceDetector
from app.faces.landmarks import FaceLandmarker
from app.faces.masks import ColorMasker
from app.faces.people import IdentityBuilder
from app.faces.recognizer import FaceRecognizer
from app.faces.tracker import FaceTracker
from app.inference.manifest import Manifest
from app.inference.session import OrtModelZoo
from app.pipeline.stages import into_windows, processed
from app.processors.base import FaceProcessor
from app.processors.face_swapper import PROCESSOR, Options
from benchmarks.tables import write_table

SIZES_WH = ((1280, 720), (1920, 1080))
COUNTS = (1, 2, 4, 6)
FRAMES = 16
RUNS = 2


class OneByOne:
    """A processor that is given one face a call."""

    def __init__(self, inner: FaceProcessor) -> None:
        self._inner = inner

    def process(self, batch: FaceBatch) -> FaceBatch:
        """Split, work, and put together again."""
        rows = [self._inner.process(_row(batch, at)) for at in range(len(batch))]
        crops, masks = (
            np.concatenate([getattr(row, name) for row in rows]) for name in ("crops", "masks")
        )
        return replace(batch, crops=crops, masks=masks)


def _row(batch: FaceBatch, at: int) -> FaceBatch:
    one = slice(at, at + 1)
    return FaceBatch(
        crops=batch.crops[one], masks=batch.masks[one], affine=batch.affine[one], landmarks=batch.landmarks[one],
        identities=batch.identities[one], track_ids=batch.track_ids[one],
    )  # fmt: skip


def clip(size_wh: tuple[int, int], count: int) -> list[Frame]:
    """Portraits in a grid of three columns, each of the same size whatever their number."""
    portrait = np.asarray(skimage.data.astronaut())[:260, 90:350]
    w, h = size_wh
    scale = h / 2 / 260
    frames = []
    for index in range(FRAMES):
        image = np.full((h, w, 3), 120, np.uint8)
        for at in range(count):
            phase = 2 * np.pi * index / 40 + at
            affine = cv2.getRotationMatrix2D((130, 130), 5 * np.sin(phase), scale * 0.95)
            affine[:, 2] += (
                w / 6 * (2 * (at % 3) + 1) - 130 + 8 * np.sin(phase),
                h / 4 * (2 * (at // 3) + 1) - 130,
            )
            image = cv2.warpAffine(
                portrait, affine, size_wh, dst=image, borderMode=cv2.BORDER_TRANSPARENT
            )
        frames.append(
            Frame(
                index=index,
                pts=index,
                time_base=Fraction(1, 25),
                picture=as_yuv(np.asarray(image, np.uint8)),
            )
        )
    return frames


def as_yuv(rgb: RgbImage) -> Picture:
    """What a decoder would give."""
    h, w = rgb.shape[:2]
    flat = cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420)
    chroma = flat[h:].reshape(2, h // 2, w // 2)
    planes = (np.ascontiguousarray(flat[:h]), chroma[0].copy(), chroma[1].copy())
    return Picture(planes, PIXEL_FORMATS["yuv420p"])


class Bench:
    """The real modules over one thread."""

    def __init__(self) -> None:
        settings = Settings()
        zoo = OrtModelZoo(
            Manifest.load(settings.manifest), settings.models_path, device="cpu", threads=1
        )
        self._zoo = zoo
        self._tools = FaceDetector(zoo), FaceLandmarker(zoo), FaceRecognizer(zoo)
        astronaut = Picture.from_rgb(np.asarray(skimage.data.astronaut()))
        self._identity: Identity = IdentityBuilder(*self._tools).build([astronaut], "source")[0]

    def run(self, frames: list[Frame], *, is_batched: bool) -> tuple[float, int]:
        """Processor milliseconds a frame, and how many faces were swapped in the last one."""
        tracker = FaceTracker(*self._tools)
        swapper = PROCESSOR.build(Options(), self._zoo)
        stage = processed(
            swapper if is_batched else OneByOne(swapper), PROCESSOR.crop, masker=ColorMasker()
        )
        windows = into_windows(frames) if is_batched else ((frame,) for frame in frames)
        start = time.process_time()
        swapped = [
            frame.faces_swapped
            for window in stage(self._chosen(tracker, windows))
            for frame in window
        ]
        return 1000 * (time.process_time() - start) / len(frames), swapped[-1]

    def _chosen(self, tracker: FaceTracker, windows: Iterator[Window]) -> Iterator[Window]:
        for window in windows:
            yield tuple(
                replace(
                    frame,
                    faces=tuple(replace(face, identity=self._identity) for face in frame.faces),
                )
                for frame in tracker.track(window)
            )


def main() -> None:
    """Measure and write the table."""
    cv2.setNumThreads(1)
    bench, rows = Bench(), []
    for size_wh in SIZES_WH:
        clips = {count: clip(size_wh, count) for count in COUNTS}
        times: dict[tuple[int, bool], list[float]] = {}
        for _ in range(RUNS):  # in turns, so that a busy machine slows all alike
            for count in COUNTS:
                for is_batched in (True, False):
                    spent, swapped = bench.run(clips[count], is_batched=is_batched)
                    assert swapped == count
                    times.setdefault((count, is_batched), []).append(spent)
        medians = {key: statistics.median(values) for key, values in times.items()}
        for count in COUNTS:
            batched, single = medians[count, True], medians[count, False]
            rows.append(
                (
                    f"{size_wh[1]}p",
                    count,
                    f"{batched:.0f}",
                    f"{batched / medians[1, True]:.2f}",
                    f"{single:.0f}",
                )
            )
    write_table(
        "people", "What several faces cost: processor milliseconds a frame",
        ("picture", "faces", "batched, ms", "times one face", "one at a time, ms"), rows,
        "Finding, following, swapping and putting back, one thread, without decoding and encoding; embedded models. "
        "All faces are of one size, a third of the picture's height. Batched: windows of several frames and all their "
        "faces together; one at a time: windows of one frame, one face a call.",
    )  # fmt: skip


if __name__ == "__main__":
    main()
