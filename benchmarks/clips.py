"""Clips to measure with: x264 and a tone, as both measures of the whole path want them."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

RATE = 25
_SOUND_RATE = 48_000


def write_with_tone(
    path: Path, size_wh: tuple[int, int], frames: Iterable[av.VideoFrame], *, count: int
) -> None:
    """Write frames, `RATE` a second, as x264 `veryfast` at CRF 18, with a tone; `count` is how many."""
    with av.open(str(path), "w") as container:
        video = container.add_stream(
            "libx264", rate=RATE, options={"preset": "veryfast", "crf": "18"}
        )
        video.width, video.height, video.pix_fmt = *size_wh, "yuv420p"
        sound = container.add_stream("aac", rate=_SOUND_RATE)
        sound.codec_context.layout = "stereo"
        wave = np.sin(np.arange(_SOUND_RATE * count // RATE) * 0.05) * 8000
        tone = av.AudioFrame.from_ndarray(wave.astype(np.int16)[None], format="s16", layout="mono")
        tone.sample_rate = _SOUND_RATE
        container.mux(sound.encode(tone))
        container.mux(sound.encode(None))
        for index, frame in enumerate(frames):
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            container.mux(video.encode(frame))
        container.mux(video.encode(None))
