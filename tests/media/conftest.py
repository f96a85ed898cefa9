"""A maker of small videos for every test of this folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.media.clips import Clip, write_clip

MakeClip = Callable[..., Path]


@pytest.fixture
def make_clip(tmp_path: Path) -> MakeClip:
    """Write a clip: `make_clip("name.mp4", frames=10, sounds=(Sound(),))`."""

    def build(name: str, **wishes: Any) -> Path:
        path = tmp_path / name
        write_clip(path, Clip(**wishes))
        return path

    return build
