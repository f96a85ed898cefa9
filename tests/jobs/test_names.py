from pathlib import Path

import pytest

from app.core.errors import BadNameError
from app.jobs.names import (
    MAX_NAME_BYTES,
    display_name,
    media_type,
    result_suffix,
    suffix_for,
    swapped_name,
)
from app.media.animation_write import animation_format_of
from app.media.encoders import container_of
from app.media.sniff import MediaKind
from app.media.still import output_format


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param("", "file", id="empty"),
        pytest.param("me.png", "me.png", id="plain"),
        pytest.param("../../etc/passwd", "passwd", id="climbing"),
        pytest.param("C:\\photos\\me.png", "me.png", id="Windows path"),
        pytest.param("C:", "file", id="Windows drive"),
        pytest.param("/abs/me.png", "me.png", id="absolute"),
        pytest.param("..", "file", id="dots"),
        pytest.param("folder/", "file", id="folder"),
        pytest.param("%03d.png", "%03d.png", id="pattern"),
        pytest.param(";rm -rf ~", ";rm -rf ~", id="shell"),
        pytest.param("照片 1.jpg", "照片 1.jpg", id="Chinese"),
        pytest.param("e\u0301.png", "\u00e9.png", id="composed"),
        pytest.param("👩‍👧.mp4", "👩‍👧.mp4", id="joined emoji"),
        pytest.param("a" * 251 + ".png", "a" * 251 + ".png", id="longest"),
    ],
)
def test_names_are_reduced_to_what_is_safe_to_show(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("a\0.png", id="NUL"),
        pytest.param("a\n.png", id="newline"),
        pytest.param("a\u2028.png", id="line separator"),
        pytest.param("gpj.\u202eexe", id="right-to-left override"),
        pytest.param("a\ud800.png", id="half a character"),
        pytest.param("a" * 5000, id="5000 bytes"),
        pytest.param("照" * 90, id="too many bytes in few characters"),
        pytest.param("x/" * 5000 + "a", id="endless path"),
    ],
)
def test_names_that_no_file_may_have_are_refused(raw: str) -> None:
    with pytest.raises(BadNameError):
        display_name(raw)


@pytest.mark.parametrize(
    ("container", "name", "suffix"),
    [
        pytest.param("jpeg", "me.JPEG", ".jpeg", id="own ending that fits"),
        pytest.param("jpeg", "me.png", ".jpg", id="ending that lies"),
        pytest.param("png", "me", ".png", id="no ending"),
        pytest.param("mp4", "a.b.m4v", ".m4v", id="several dots"),
        pytest.param("matroska", "clip.webm", ".mkv", id="matroska is not webm"),
        pytest.param("unheard-of", "x.abc", ".abc", id="unknown container"),
    ],
)
def test_the_ending_says_what_the_file_is(container: str, name: str, suffix: str) -> None:
    assert suffix_for(container, name) == suffix


@pytest.mark.parametrize(
    ("name", "suffix", "swapped"),
    [
        pytest.param("party.mp4", ".mp4", "party_swapped.mp4", id="plain"),
        pytest.param("party.tar.mp4", ".mp4", "party.tar_swapped.mp4", id="several dots"),
        pytest.param("me", ".png", "me_swapped.png", id="no ending"),
        pytest.param(".hidden", ".png", ".hidden_swapped.png", id="only an ending"),
    ],
)
def test_results_are_named_after_their_target(name: str, suffix: str, swapped: str) -> None:
    assert swapped_name(name, suffix) == swapped


def test_a_long_name_is_cut_at_a_whole_character() -> None:
    name = swapped_name("照" * 84 + ".mp4", ".mp4")
    assert len(name.encode()) <= MAX_NAME_BYTES
    assert name.endswith("照_swapped.mp4")


def test_every_ending_that_is_made_has_a_media_type() -> None:
    for container in (
        "jpeg",
        "png",
        "webp",
        "mp4",
        "mov",
        "matroska",
        "webm",
        "avif",
        "tiff",
        "gif",
    ):
        assert media_type(suffix_for(container, "")).split("/")[0] in ("image", "video")
    assert media_type(".exe") == "application/octet-stream"


@pytest.mark.parametrize("kind", list(MediaKind), ids=str)
def test_a_result_has_an_ending_that_can_be_written(kind: MediaKind) -> None:
    suffix = result_suffix(str(kind), "holiday.weird")
    if kind.is_still:
        output_format(Path(f"result{suffix}"), "png")
    elif animation_format_of(Path(f"result{suffix}")) is None:
        container_of(Path(f"result{suffix}"))
