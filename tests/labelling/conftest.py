"""Small labeled and unlabeled videos."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

WriteVideo = Callable[..., Path]


@pytest.fixture
def write_video(tmp_path: Path) -> WriteVideo:
    """A video of five gray frames with the given tags."""

    def write(suffix: str, tags: dict[str, str], movflags: str = "use_metadata_tags") -> Path:
        path = tmp_path / f"clip{suffix}"
        options = {"movflags": movflags} if suffix in (".mp4", ".mov") else {}
        with av.open(str(path), "w", options=options) as out:
            stream = out.add_stream("libvpx-vp9" if suffix == ".webm" else "mpeg4", rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.time_base = Fraction(1, 25)
            out.metadata.update(tags)
            for i in range(5):
                pixels = np.full((48, 64, 3), 40 * i, np.uint8)
                out.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            out.mux(stream.encode())
        return path

    return write
