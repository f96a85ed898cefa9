"""GIFs hold only what changes from frame to frame, and still show every pixel of every frame."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from app.media.animation_write import AnimationWriter
from app.media.decode import VideoReader
from app.media.gif_file import GifFile, gif_indexed
from tests.media.test_animation import pillow_frames, visible

RgbaImage = NDArray[np.uint8]
H, W = 60, 90


def written(path: Path, frames: Sequence[RgbaImage]) -> int:
    with path.open("wb") as file:
        gif = GifFile(file, (frames[0].shape[1], frames[0].shape[0]), plays=0, xmp=b"<x/>")
        for frame in frames:
            gif.add(frame, 5)
        gif.finish()
    return path.stat().st_size


def blocks(rng: np.random.Generator, *, see_through: float) -> RgbaImage:
    """Squares of few colors, some of them empty."""
    colors = rng.integers(0, 4, (6, 9, 3), np.uint8) * 80
    alpha = np.where(rng.random((6, 9)) < see_through, 0, 255).astype(np.uint8)
    return np.dstack([colors, alpha]).repeat(10, axis=0).repeat(10, axis=1)


def wandering(index: int, background: RgbaImage) -> RgbaImage:
    frame = background.copy()
    frame[20:32, 5 * index : 5 * index + 12] = (250, 20, 20, 255)
    return frame


def still_then_gone(index: int, background: RgbaImage) -> RgbaImage:
    frame = background.copy()
    if index % 3 == 2:
        frame[10:40, 20:60] = 0
    return frame


def alike(index: int, background: RgbaImage) -> RgbaImage:
    return background


def growing(index: int, background: RgbaImage) -> RgbaImage:
    frame = np.zeros_like(background)
    frame[: 5 * index + 1] = background[: 5 * index + 1]
    return frame


@pytest.mark.parametrize("see_through", [0, 0.3], ids=["opaque", "see-through"])
@pytest.mark.parametrize("scene", [wandering, still_then_gone, alike, growing])
def test_two_readers_see_every_pixel(
    scene: Callable[[int, RgbaImage], RgbaImage], see_through: float, tmp_path: Path
) -> None:
    background = blocks(np.random.default_rng(4), see_through=see_through)
    frames = [scene(index, background) for index in range(9)]
    written(tmp_path / "a.gif", frames)
    seen = pillow_frames(tmp_path / "a.gif")
    with VideoReader(tmp_path / "a.gif") as reader:
        read = [np.asarray(frame.picture.planes[0]) for frame in reader.frames()]
    assert len(seen) == len(read) == 9
    for frame, (_, image), ours in zip(frames, seen, read, strict=True):
        np.testing.assert_array_equal(visible(image), visible(frame))
        np.testing.assert_array_equal(visible(ours), visible(frame))


@pytest.mark.parametrize("seed", range(12))
def test_frames_of_any_kind_come_back(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    frames = [blocks(rng, see_through=rng.choice([0, 0.2, 1])) for _ in range(8)]
    written(tmp_path / "a.gif", frames)
    with VideoReader(tmp_path / "a.gif") as reader:
        for frame, now in zip(frames, reader.frames(), strict=True):
            np.testing.assert_array_equal(
                visible(np.asarray(now.picture.planes[0])), visible(frame)
            )


def test_256_colors_on_top_of_others_are_exact(tmp_path: Path) -> None:
    ramp = np.zeros((16, 16, 4), np.uint8)
    ramp[..., 3] = 255
    ramp[..., 0] = np.arange(256).reshape(16, 16)
    other = ramp[::-1, ::-1].copy()
    other[..., 1] = 77
    written(tmp_path / "a.gif", [ramp, other, ramp])
    for wanted, (_, image) in zip(
        [ramp, other, ramp], pillow_frames(tmp_path / "a.gif"), strict=True
    ):
        np.testing.assert_array_equal(image, wanted)


def test_a_still_background_costs_once(tmp_path: Path) -> None:
    background = blocks(np.random.default_rng(1), see_through=0)
    noise = np.random.default_rng(2).integers(0, 4, (H, W), np.uint8) * 9
    background[..., 0] += noise
    one = written(tmp_path / "one.gif", [background])
    many = written(tmp_path / "many.gif", [wandering(index, background) for index in range(15)])
    assert many < 3 * one


def test_an_optimized_gif_does_not_grow(tmp_path: Path, astronaut: NDArray[np.uint8]) -> None:
    photo = Image.fromarray(astronaut[:200, :240]).quantize(200)
    frames = []
    for index in range(20):
        frame = photo.convert("RGB")
        frame.paste((250, 250, 0), (10 * index, 80, 10 * index + 30, 110))
        frames.append(frame.quantize(220))
    source, path = tmp_path / "a.gif", tmp_path / "b.gif"
    frames[0].save(source, save_all=True, append_images=frames[1:], duration=50, loop=0)
    with (
        VideoReader(source) as reader,
        AnimationWriter(path, info=reader.info, kind="gif", quality=80, xmp=b"") as writer,
    ):
        for each in reader.frames():
            writer.write(each)
    assert path.stat().st_size < 1.4 * source.stat().st_size
    for (_, was), (_, now) in zip(pillow_frames(source), pillow_frames(path), strict=True):
        np.testing.assert_array_equal(was, now)


def test_grain_too_fine_to_see_is_not_written_again(
    tmp_path: Path, astronaut: NDArray[np.uint8]
) -> None:
    """A photo of more than 256 colors, whose samples move by one from frame to frame."""
    photo = astronaut[:160, :200]
    rng = np.random.default_rng(3)
    frames = [
        np.clip(photo.astype(int) + rng.integers(-1, 2, photo.shape), 0, 255).astype(np.uint8)
        for _ in range(10)
    ]
    one = written(tmp_path / "one.gif", frames[:1])
    many = written(tmp_path / "many.gif", frames)
    assert many < 2 * one
    *_, (_, last) = pillow_frames(tmp_path / "many.gif")
    shown, wanted = (
        each[..., :3].astype(int).reshape(16, 10, 20, 10, 3).mean((1, 3)) for each in (last, photo)
    )
    assert np.abs(shown - wanted).mean() < 3


def test_hidden_pixels_take_no_color_away() -> None:
    ramp = np.zeros((16, 17, 4), np.uint8)
    ramp[:, :16, 0] = np.arange(256).reshape(16, 16)
    ramp[:, :16, 3] = 255
    ramp[0, 0, 3] = 0
    indexed = gif_indexed(ramp)
    assert indexed.is_exact
    assert indexed.see_through == 255
    buffer = io.BytesIO()
    indexed.image.save(buffer, "GIF", transparency=255)
    with Image.open(buffer) as image:
        np.testing.assert_array_equal(visible(np.asarray(image.convert("RGBA"))), visible(ramp))
