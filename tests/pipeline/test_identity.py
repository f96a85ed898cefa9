"""A processor that gives its crop back unchanged, with a full mask, leaves every sample of every file as it is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from app.core.color import ColorTags
from app.core.picture import PIXEL_FORMATS, Picture
from app.core.types import (
    CropSpec,
    Face,
    FaceBatch,
    Identity,
    IdentityId,
    RgbImage,
    SourceView,
)
from app.faces.assign import Assigner, Treatment
from app.inference.spec import ModelZoo
from app.media.decode import VideoReader
from app.media.encoders import ENCODERS
from app.media.limits import MediaLimits
from app.media.still import read_still, write_still
from app.media.still_encode import StillEncoding
from app.media.still_types import StillFormat
from app.pipeline.stages import assigned, processed, tracked
from app.pipeline.tools import Tools
from tests.pipeline.lossless import assert_same, given, in_format, rendered, through, write_ffv1

XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>ours</x:xmpmeta>"
CROP = CropSpec(template="native", size_px=16)
SIDE_PX = 97
MakeFace = Callable[..., Face]


class Unchanged:
    """Gives every crop back, and wants all of it to be put into the picture."""

    def __init__(self) -> None:
        self.rows = 0

    def process(self, batch: FaceBatch) -> FaceBatch:
        self.rows += len(batch)
        return replace(batch, masks=np.ones_like(batch.masks))


def identity() -> Identity:
    embedding = np.full(128, 128**-0.5, np.float32)
    view = SourceView(
        crop=np.zeros((4, 4, 3), np.uint8),
        landmarks=np.zeros((478, 3), np.float32),
        normed_embedding=embedding,
    )
    return Identity(
        id=IdentityId("someone"), label="source", views=(view,), normed_embedding=embedding
    )


@pytest.fixture
def photo(astronaut: RgbImage) -> RgbImage:
    """97 pixels a side: odd, so that chroma has half a sample at the edges."""
    return np.ascontiguousarray(astronaut[70 : 70 + SIDE_PX, 180 : 180 + SIDE_PX])


@pytest.fixture
def faces(make_face: MakeFace) -> tuple[Face, ...]:
    """One at an odd place inside, and one that reaches beyond the corner."""

    def face(cx: float, cy: float) -> Face:
        spread = np.random.default_rng(3).uniform(-16, 16, (478, 3))
        landmarks = (spread + np.array([cx, cy, 0])).astype(np.float32)
        return make_face(cx=cx, cy=cy, side=32, landmarks=landmarks, identity=identity())

    return face(33.5, 41.0), face(92.0, 95.0)


TAGS = [
    pytest.param(None, id="untagged"),
    pytest.param(ColorTags(matrix=1, is_full_range=False), id="BT.709 limited"),
    pytest.param(ColorTags(matrix=6, is_full_range=True), id="BT.601 full"),
    pytest.param(
        ColorTags(matrix=9, is_full_range=False, primaries=9, transfer=16), id="BT.2020 PQ"
    ),
]


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("name", PIXEL_FORMATS)
def test_no_sample_of_any_pixel_format_changes(
    name: str, tags: ColorTags | None, photo: RgbImage, faces: tuple[Face, ...]
) -> None:
    before, processor = in_format(photo, name, tags), Unchanged()
    (frame,) = through([before], given(faces), processed(processor, CROP))
    assert processor.rows == frame.faces_swapped == 2
    assert frame.picture is not before
    assert_same(before, frame.picture)


STILLS = [
    *(
        pytest.param(name, kind, id=f"{name} as {kind}")
        for kind in ("png", "tiff")
        for name in ("gray", "ya8", "rgb24", "rgba", "gray16le", "ya16le", "rgb48le", "rgba64le")
        # TIFF has no 16-bit gray with alpha that others open: it is written as RGB.
        if (name, kind) != ("ya16le", "tiff")
    ),
    *(pytest.param(name, "webp", id=f"{name} as webp") for name in ("rgb24", "rgba")),
]


@pytest.mark.parametrize(("name", "kind"), STILLS)
def test_a_lossless_still_comes_back_sample_for_sample(
    name: str, kind: StillFormat, photo: RgbImage, faces: tuple[Face, ...], tmp_path: Path
) -> None:
    def write(picture: Picture, path: Path) -> None:
        write_still(path, first, picture, xmp=XMP, encoding=StillEncoding(format=kind))

    Image.fromarray(photo).save(tmp_path / "any.png")
    first = read_still(tmp_path / "any.png", MediaLimits())
    write(in_format(photo, name), tmp_path / "before")
    before = read_still(tmp_path / "before", MediaLimits()).picture
    assert before.pixel_format.name == name
    (frame,) = through([before], given(faces), processed(Unchanged(), CROP))
    write(frame.picture, tmp_path / "after")
    assert_same(before, read_still(tmp_path / "after", MediaLimits()).picture)


@pytest.mark.parametrize("name", [n for n in ENCODERS["ffv1"].formats if n.startswith("yuv")])
def test_a_lossless_clip_comes_back_sample_for_sample(
    name: str, photo: RgbImage, faces: tuple[Face, ...], tmp_path: Path
) -> None:
    pictures = [in_format(np.roll(photo, 5 * i, 1), name) for i in range(3)]
    write_ffv1(tmp_path / "in.mkv", pictures)
    before, after = rendered(
        tmp_path / "in.mkv", tmp_path / "out.mkv", given(faces), processed(Unchanged(), CROP)
    )
    assert len(before) == len(after) == 3
    for made, a, b in zip(pictures, before, after, strict=True):
        assert_same(a, b)
        for plane, other in zip(made.planes, b.planes, strict=True):
            np.testing.assert_array_equal(plane, other)


@pytest.mark.parametrize(
    ("codec", "container_format", "name", "wanted"),
    [
        pytest.param("png", "avi", "rgb24", "rgb24", id="PNG"),
        pytest.param("png", "avi", "rgba", "rgba", id="PNG with alpha"),
        pytest.param("png", "avi", "rgb48be", "rgb48le", id="16-bit PNG"),
        pytest.param("png", "avi", "gray", "gray", id="gray PNG"),
        pytest.param("qtrle", "mov", "argb", "rgba", id="QuickTime Animation with alpha"),
        pytest.param("ffv1", "avi", "bgr0", "rgb24", id="FFV1 in RGB"),
        pytest.param("ffv1", "avi", "gbrp12le", "rgb48le", id="FFV1 in deep RGB"),
    ],
)
def test_clips_of_lossless_rgb_pictures_reach_the_encoder_as_they_are(
    codec: str,
    container_format: str,
    name: str,
    wanted: str,
    photo: RgbImage,
    faces: tuple[Face, ...],
    tmp_path: Path,
) -> None:
    path = tmp_path / "in"
    with av.open(str(path), "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = SIDE_PX, SIDE_PX, name
        for _ in range(2):
            frame = av.VideoFrame.from_ndarray(photo, format="rgb24").reformat(format=name)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with VideoReader(path, MediaLimits()) as reader:
        before = [frame.picture for frame in reader.frames()]
    after = through(before, given(faces), processed(Unchanged(), CROP))
    assert [picture.pixel_format.name for picture in before] == [wanted] * 2
    for picture, frame in zip(before, after, strict=True):
        assert frame.faces_swapped == 2
        assert_same(picture, frame.picture)


@pytest.fixture(scope="module")
def tools(zoo: ModelZoo) -> Tools:
    return Tools.over(zoo, {}, MediaLimits())


@pytest.fixture
def portrait(astronaut: RgbImage) -> RgbImage:
    """201 x 251 pixels with one face."""
    return np.ascontiguousarray(astronaut[10:261, 120:321])


@pytest.mark.weights
@pytest.mark.parametrize("name", PIXEL_FORMATS)
def test_a_face_that_is_really_found_changes_no_sample(
    name: str, portrait: RgbImage, tools: Tools
) -> None:
    before, processor = in_format(portrait, name), Unchanged()
    (frame,) = through(
        [before],
        tracked(tools.tracker("still")),
        assigned(Assigner([], others=Treatment(identity=identity()), threshold=0.363)),
        processed(processor, CROP),
    )
    assert processor.rows == frame.faces_swapped == 1
    assert_same(before, frame.picture)


@pytest.mark.weights
@pytest.mark.parametrize("name", ["yuv420p", "yuv422p10le", "yuv444p12le", "yuva420p"])
def test_a_face_that_is_followed_through_a_clip_changes_no_sample(
    name: str, portrait: RgbImage, tools: Tools, tmp_path: Path
) -> None:
    pictures = [in_format(np.roll(portrait, 2 * i, 1), name) for i in range(4)]
    write_ffv1(tmp_path / "in.mkv", pictures)
    processor = Unchanged()
    before, after = rendered(
        tmp_path / "in.mkv",
        tmp_path / "out.mkv",
        tracked(tools.tracker("video")),
        assigned(Assigner([], others=Treatment(identity=identity()), threshold=0.363)),
        processed(processor, CROP),
    )
    assert processor.rows == len(after) == 4
    for a, b in zip(before, after, strict=True):
        assert_same(a, b)
