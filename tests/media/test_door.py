"""What is refused is refused at once and for next to nothing, and no file makes another one be opened."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

from app.core.errors import UnsupportedTypeError
from app.media.decode import VideoReader
from app.media.limits import MediaLimits
from app.media.probe import probe
from app.media.still import read_still
from tests.media.bombs import BOMBS, LONG
from tests.media.conftest import MakeClip

ROOT = Path(__file__).resolve().parents[2]
MOST_S = 0.2
MOST_COUNTING_S = 1.0
"""Of frames that no header counts: 0.15 to 0.3 s for the 100 000 that are allowed, where all took 1.8 to 6 s."""
MOST_BYTES = 50_000_000

CODES = {
    "PNG one pixel high": "media.bad_dimensions",
    # The decoders themselves find these out from the header.
    "AVIF": "media.damaged",
    "GIF": "media.damaged",
    "APNG": "media.damaged",
    "wide video": "media.damaged",
}


class Cost(NamedTuple):
    code: str
    seconds: float
    peak_bytes: int


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cost]:
    """What the door says to each bomb, and what that took."""
    folder = tmp_path_factory.mktemp("bombs")
    warm = folder / "warm.png"
    Image.new("RGB", (16, 16)).save(warm)
    bombs = {**BOMBS, **LONG}
    paths = [folder / f"{index}.mp4" for index in range(len(bombs))]
    for make, path in zip(bombs.values(), paths, strict=True):
        make(path)
    command = [sys.executable, "-m", "tests.media.door_process", str(warm), *map(str, paths)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120).stdout
    return dict(zip(bombs, (Cost(*row) for row in json.loads(told)), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_anything_is_unpacked(name: str, costs: dict[str, Cost]) -> None:
    cost = costs[name]
    assert cost.code == CODES.get(name, "media.too_large")
    assert cost.seconds < MOST_S
    assert cost.peak_bytes < MOST_BYTES


@pytest.mark.parametrize("name", LONG)
def test_frames_are_counted_no_further_than_the_budget(name: str, costs: dict[str, Cost]) -> None:
    cost = costs[name]
    assert cost.code == "media.too_large"
    assert cost.seconds < MOST_COUNTING_S
    assert cost.peak_bytes < MOST_BYTES


TRICKS = [
    pytest.param("#EXTM3U\n#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n", id="playlist"),
    pytest.param("\ufeff#EXTM3U\n#EXTINF:1,\n{}\n", id="playlist after a mark of byte order"),
    pytest.param("\n\n#EXTM3U\n#EXTINF:1,\n{}\n", id="playlist after empty lines"),
    pytest.param("ffconcat version 1.0\nfile '{}'\n", id="list of files"),
    pytest.param("v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n", id="session description"),
    pytest.param("<?xml version='1.0'?><MPD><BaseURL>{}</BaseURL></MPD>", id="DASH manifest"),
    pytest.param("<svg xmlns='http://www.w3.org/2000/svg'><image href='{}'/></svg>", id="SVG"),
    pytest.param("<smil><video src='{}'/></smil>", id="SMIL"),
    pytest.param("[playlist]\nFile1={}\n", id="PLS"),
    pytest.param("RIFF0000AVI #EXTM3U\n#EXTINF:1,\n{}\n", id="playlist after four letters of AVI"),
]


@pytest.mark.parametrize("suffix", [".mp4", ".png", ".m3u8", ""])
@pytest.mark.parametrize("content", TRICKS)
def test_no_file_opens_another_file(
    content: str, suffix: str, tmp_path: Path, make_clip: MakeClip
) -> None:
    other = make_clip("other.mkv", frames=2)
    path = tmp_path / f"holiday{suffix}"
    path.write_text(content.format(other))
    limits = MediaLimits()
    for door in (probe, read_still, VideoReader):
        with pytest.raises(Exception, match=r"\w") as caught:
            door(path, limits)
        assert isinstance(caught.value, UnsupportedTypeError) or content.startswith("RIFF")


def test_a_film_that_keeps_its_pictures_elsewhere_does_not_get_them(
    tmp_path: Path, make_clip: MakeClip
) -> None:
    """QuickTime can name another file as the place of its samples; that file is not opened."""
    path = make_clip("reference.mov", frames=2)
    other = tmp_path / "other.mov"
    other.write_bytes(path.read_bytes())
    data = path.read_bytes()
    at = data.index(b"dref")
    size = int.from_bytes(data[at - 4 : at], "big")
    assert b"url " in data[at : at + size] or b"alis" in data[at : at + size]
    external = data[: at + 16] + data[at + 16 :].replace(b"\0\0\0\1", b"\0\0\0\0", 1)
    path.write_bytes(external)
    with VideoReader(path, MediaLimits()) as reader:
        assert len(list(reader.frames())) == 2
