"""Pictures in every pixel format, and clips that lose nothing."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from app.core.color import ColorTags
from app.core.picture import Picture
from app.core.types import Face, Frame, RgbImage, Window
from app.media.decode import VideoReader
from app.media.encode import VideoEncoding, VideoWriter
from app.media.frames import frame_of, picture_of
from app.media.limits import MediaLimits
from app.pipeline.stages import Stage, into_windows


def in_format(rgb: RgbImage, name: str, tags: ColorTags | None = None) -> Picture:
    """The picture in a pixel format, with noise in its lowest bits, so that no rounding can hide."""
    made = picture_of(av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=name))
    rng = np.random.default_rng(len(name))
    planes = []
    for plane in made.planes:
        top = (1 << made.pixel_format.bits) - 1
        noisy = plane.astype(np.int64) + rng.integers(-3, 4, plane.shape)
        planes.append(np.clip(noisy, 0, top).astype(plane.dtype))
    if made.pixel_format.has_alpha and made.pixel_format.family == "rgb":
        planes[0][..., 3] = rng.integers(0, top + 1, planes[0].shape[:2])
    return Picture(tuple(planes), made.pixel_format, tags)


def given(faces: tuple[Face, ...]) -> Stage:
    """A stage in a tracker's place."""

    def stage(windows: Iterator[Window]) -> Iterator[Window]:
        for window in windows:
            yield tuple(replace(frame, faces=faces) for frame in window)

    return stage


def through(pictures: list[Picture], *stages: Stage) -> list[Frame]:
    frames = [
        Frame(index=i, pts=i, time_base=Fraction(1, 25), picture=picture)
        for i, picture in enumerate(pictures)
    ]
    windows: Iterator[Window] = into_windows(frames)
    for stage in stages:
        windows = stage(windows)
    return [frame for window in windows for frame in window]


def assert_same(a: Picture, b: Picture) -> None:
    assert a.pixel_format == b.pixel_format
    assert a.tags == b.tags
    for plane, other in zip(a.planes, b.planes, strict=True):
        np.testing.assert_array_equal(plane, other)


def write_ffv1(path: Path, pictures: list[Picture]) -> None:
    """A lossless clip made without the program's own writer."""
    with av.open(str(path), "w", format="matroska") as container:
        stream = container.add_stream("ffv1", rate=25, options={"level": "3"})
        stream.width, stream.height = pictures[0].size_wh
        stream.pix_fmt = pictures[0].pixel_format.name
        tags = pictures[0].tags
        stream.codec_context.colorspace = tags.matrix
        stream.codec_context.color_range = {None: 0, False: 1, True: 2}[tags.is_full_range]
        for index, picture in enumerate(pictures):
            frame = frame_of(picture)
            frame.pts, frame.time_base = index, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def rendered(path: Path, output: Path, *stages: Stage) -> tuple[list[Picture], list[Picture]]:
    """The pictures of a clip, and those of what the stages make of it."""
    limits = MediaLimits()
    with VideoReader(path, limits) as reader:
        before = [frame.picture for frame in reader.frames()]
        windows: Iterator[Window] = into_windows(reader.frames())
        for stage in stages:
            windows = stage(windows)
        encoding = VideoEncoding(container="matroska", codec="ffv1")
        with VideoWriter(
            output, source=path, info=reader.info, encoding=encoding, metadata={}
        ) as writer:
            for window in windows:
                for frame in window:
                    writer.write(frame)
    with VideoReader(output, limits) as reader:
        return before, [frame.picture for frame in reader.frames()]
