"""Native planes in, native planes out: what was not changed comes back bit for bit."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.color import (
    BT601,
    BT709,
    BT2020,
    ColorTags,
    rgb_to_yuv_matrix,
    yuv_to_rgb_matrix,
)
from app.core.picture import PIXEL_FORMATS, Picture, PixelBox, PixelFormat
from app.core.planes import row_bands

SIZES_WH = [(32, 24), (31, 23), (33, 1), (2, 40)]
BOXES = [
    PixelBox(0, 0, 1, 1),
    PixelBox(0, 0, 9, 7),
    PixelBox(3, 5, 10, 12),
    PixelBox(4, 6, 20, 16),
    PixelBox(17, 11, 31, 23),
]

every_format = pytest.mark.parametrize("name", sorted(PIXEL_FORMATS))
every_yuv_format = pytest.mark.parametrize(
    "name", sorted(name for name, fmt in PIXEL_FORMATS.items() if fmt.family == "yuv")
)


def noise_picture(name: str, size_wh: tuple[int, int], tags: ColorTags | None = None) -> Picture:
    fmt = PIXEL_FORMATS[name]
    rng = np.random.default_rng(7)
    planes = tuple(
        rng.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
        for shape in fmt.plane_shapes(size_wh)
    )
    return Picture(planes, fmt, tags)


def smooth_picture(name: str, size_wh: tuple[int, int], tags: ColorTags | None = None) -> Picture:
    """A picture of colors that every format can hold: a slow gradient round a skin tone."""
    w, h = size_wh
    x, y = np.linspace(0, 1, w), np.linspace(0, 1, h)[:, None]
    rgb = np.stack([130 + 60 * x + 0 * y, 110 + 40 * y + 0 * x, 90 + 30 * x * y], axis=-1)
    fmt = PIXEL_FORMATS[name]
    blank = Picture(
        tuple(np.full(s, _middle(fmt), fmt.dtype) for s in fmt.plane_shapes(size_wh)), fmt, tags
    )
    blank.write(blank.box, np.rint(rgb).astype(np.uint8))
    return blank


def _middle(fmt: PixelFormat) -> int:
    return 1 << (fmt.bits - 1)


def planes_of(picture: Picture) -> list[NDArray[np.generic]]:
    return [plane.copy() for plane in picture.planes]


def boxes_in(size_wh: tuple[int, int]) -> list[PixelBox]:
    whole = PixelBox(0, 0, *size_wh)
    inside = [box.clipped_to(size_wh) for box in BOXES]
    return [whole, *(box for box in inside if not box.is_empty)]


@every_format
@pytest.mark.parametrize("size_wh", SIZES_WH, ids=str)
def test_writing_back_what_was_read_changes_no_bit(name: str, size_wh: tuple[int, int]) -> None:
    picture = noise_picture(name, size_wh)
    before = planes_of(picture)
    for box in boxes_in(size_wh):
        picture.write(box, picture.read(box))
    assert all(np.array_equal(a, b) for a, b in zip(before, picture.planes, strict=True))


@every_format
@pytest.mark.parametrize("size_wh", SIZES_WH, ids=str)
def test_a_mask_of_zero_changes_no_bit(name: str, size_wh: tuple[int, int]) -> None:
    picture = noise_picture(name, size_wh)
    before = planes_of(picture)
    for box in boxes_in(size_wh):
        w, h = box.size_wh
        picture.write(box, np.full((h, w, 3), 255, np.uint8), np.zeros((h, w), np.float32))
    assert all(np.array_equal(a, b) for a, b in zip(before, picture.planes, strict=True))


@every_format
@pytest.mark.parametrize("size_wh", SIZES_WH, ids=str)
def test_a_part_reads_the_same_as_in_the_whole(name: str, size_wh: tuple[int, int]) -> None:
    picture = noise_picture(name, size_wh)
    whole = picture.read(picture.box)
    for box in boxes_in(size_wh):
        assert np.array_equal(picture.read(box), whole[box.y0 : box.y1, box.x0 : box.x1])


@every_format
@pytest.mark.parametrize("size_wh", SIZES_WH, ids=str)
def test_nothing_changes_outside_the_box_and_its_chroma_samples(
    name: str, size_wh: tuple[int, int]
) -> None:
    fmt = PIXEL_FORMATS[name]
    for box in boxes_in(size_wh):
        picture = noise_picture(name, size_wh)
        before = planes_of(picture)
        w, h = box.size_wh
        picture.write(box, np.random.default_rng(1).integers(0, 256, (h, w, 3), np.uint8))
        for index, (old, new) in enumerate(zip(before, picture.planes, strict=True)):
            sx, sy = fmt.chroma_shift_xy if index in (1, 2) and fmt.family == "yuv" else (0, 0)
            outside = np.ones(old.shape[:2], bool)
            outside[box.y0 >> sy : -(-box.y1 >> sy), box.x0 >> sx : -(-box.x1 >> sx)] = False
            assert np.array_equal(old[outside], new[outside])


@pytest.mark.parametrize("name", sorted(n for n, f in PIXEL_FORMATS.items() if f.has_alpha))
def test_alpha_is_never_touched(name: str) -> None:
    picture = noise_picture(name, (16, 12))
    before = planes_of(picture)
    picture.write(picture.box, np.full((12, 16, 3), 200, np.uint8))
    old, new = before[-1], picture.planes[-1]
    if picture.pixel_format.family == "rgb":
        old, new = old[..., 3], new[..., 3]
    assert np.array_equal(old, new)


@every_format
@pytest.mark.parametrize("size_wh", [(32, 24), (31, 23)], ids=str)
def test_what_is_written_is_read_back(name: str, size_wh: tuple[int, int]) -> None:
    picture = smooth_picture(name, size_wh)
    w, h = size_wh
    x, y = np.linspace(0, 1, w), np.linspace(0, 1, h)[:, None]
    wanted = np.stack([150 - 40 * x + 0 * y, 100 + 30 * x + 20 * y, 120 + 0 * x * y], axis=-1)
    if picture.pixel_format.family == "gray":
        wanted = np.repeat(wanted.mean(2, keepdims=True), 3, axis=2)
    patch = np.rint(wanted).astype(np.uint8)
    picture.write(picture.box, patch)
    assert np.abs(picture.read(picture.box).astype(int) - patch).max() <= 4


@pytest.mark.parametrize("name", ["rgb24", "rgba", "rgb48le"])
def test_packed_pictures_hold_exactly_what_was_written(name: str) -> None:
    picture = noise_picture(name, (13, 9))
    patch = np.random.default_rng(3).integers(0, 256, (9, 13, 3), np.uint8)
    picture.write(picture.box, patch)
    assert np.array_equal(picture.read(picture.box), patch)


def test_half_a_mask_goes_half_the_way() -> None:
    picture = Picture.from_rgb(np.full((8, 8, 3), 100, np.uint8)).copy()
    picture.write(picture.box, np.full((8, 8, 3), 200, np.uint8), np.full((8, 8), 0.5, np.float32))
    assert np.unique(picture.read(picture.box)).tolist() == [150]


def test_deep_pictures_take_on_steps_finer_than_8_bits() -> None:
    picture = smooth_picture("yuv444p10le", (16, 16))
    before = picture.planes[0].astype(int)
    patch = picture.read(picture.box)
    patch[...] = np.clip(patch.astype(int) + 8, 0, 255)
    picture.write(picture.box, patch, np.full((16, 16), 0.03, np.float32))
    assert np.unique(picture.planes[0].astype(int) - before).tolist() == [1]


@every_yuv_format
@pytest.mark.parametrize("is_full_range", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize("matrix", [BT601, BT709, BT2020], ids=["601", "709", "2020"])
def test_plain_colors_read_as_the_standard_says(
    name: str, matrix: int, is_full_range: bool
) -> None:
    fmt = PIXEL_FORMATS[name]
    tags = ColorTags(matrix=matrix, is_full_range=is_full_range)
    for rgb in itertools.product((20, 128, 235), repeat=3):
        code = np.rint(reference_yuv(np.array(rgb), matrix, is_full_range, fmt.bits))
        shapes = fmt.plane_shapes((6, 4))
        values = [*code, 0] if fmt.has_alpha else [*code]
        planes = tuple(np.full(s, v, fmt.dtype) for s, v in zip(shapes, values, strict=True))
        read = Picture(planes, fmt, tags).read(PixelBox(1, 1, 5, 3))
        assert np.abs(read.astype(int) - rgb).max() <= 2


def reference_yuv(
    rgb: NDArray[np.int_], matrix: int, is_full_range: bool, bits: int
) -> NDArray[np.float64]:
    """Y'CbCr codes written out from the recommendations' own equations."""
    kr, kb = {BT601: (0.299, 0.114), BT709: (0.2126, 0.0722), BT2020: (0.2627, 0.0593)}[matrix]
    r, g, b = rgb / 255
    luma = kr * r + (1 - kr - kb) * g + kb * b
    cb, cr = (b - luma) / (2 * (1 - kb)), (r - luma) / (2 * (1 - kr))
    if is_full_range:
        top = 2**bits - 1
        return np.array([luma * top, cb * top + 2 ** (bits - 1), cr * top + 2 ** (bits - 1)])
    unit = 2 ** (bits - 8)
    return np.array([219 * luma + 16, 224 * cb + 128, 224 * cr + 128]) * unit


@pytest.mark.parametrize("bits", [8, 10, 12])
@pytest.mark.parametrize("is_full_range", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize("matrix", [BT601, BT709, BT2020], ids=["601", "709", "2020"])
def test_matrices_agree_with_the_equations(matrix: int, is_full_range: bool, bits: int) -> None:
    forth = rgb_to_yuv_matrix(matrix, is_full_range=is_full_range, bits=bits)
    back = yuv_to_rgb_matrix(matrix, is_full_range=is_full_range, bits=bits)
    for rgb in itertools.product((0, 64, 255), repeat=3):
        yuv = reference_yuv(np.array(rgb), matrix, is_full_range, bits)
        assert np.allclose(forth @ [*rgb, 1], yuv, atol=1e-9)
        assert np.allclose(back @ [*yuv, 1], rgb, atol=1e-9)


@pytest.mark.parametrize(
    ("matrix", "height_px", "expected"),
    [
        pytest.param(BT601, 1080, BT601, id="a tag is believed"),
        pytest.param(2, 719, BT601, id="untagged below HD"),
        pytest.param(2, 720, BT709, id="untagged HD"),
    ],
)
def test_the_matrix_follows_tag_or_height(matrix: int, height_px: int, expected: int) -> None:
    assert ColorTags(matrix=matrix).effective_matrix(height_px) == expected


@every_format
def test_a_copy_shares_no_memory(name: str) -> None:
    picture = noise_picture(name, (8, 6))
    other = picture.copy()
    assert not any(
        np.shares_memory(a, b) for a, b in zip(picture.planes, other.planes, strict=True)
    )
    assert other.tags == picture.tags


@pytest.mark.parametrize("side_px", [8, 64, 1000])
def test_thumbnails_shrink_and_never_grow(side_px: int) -> None:
    small, scale = smooth_picture("yuv420p", (128, 96)).thumbnail(side_px)
    assert max(small.shape[:2]) == min(side_px, 128)
    assert scale == pytest.approx(min(side_px, 128) / 128)


def test_shrinking_averages_areas() -> None:
    checks = np.indices((64, 64)).sum(0) % 2 * 255
    picture = Picture.from_rgb(np.repeat(checks[..., None], 3, 2).astype(np.uint8))
    assert np.abs(picture.read(picture.box, (16, 16)).astype(int) - 127.5).max() <= 1


@pytest.mark.parametrize(
    "box",
    [
        pytest.param(PixelBox(0, 0, 0, 4), id="empty"),
        pytest.param(PixelBox(-1, 0, 4, 4), id="left of the picture"),
        pytest.param(PixelBox(4, 4, 17, 8), id="right of the picture"),
    ],
)
def test_boxes_that_do_not_fit_are_refused(box: PixelBox) -> None:
    picture = noise_picture("rgb24", (16, 16))
    with pytest.raises(ValueError, match="box"):
        picture.read(box)
    with pytest.raises(ValueError, match="box"):
        picture.write(box, np.zeros((4, 4, 3), np.uint8))


def test_a_patch_of_another_size_is_refused() -> None:
    picture = noise_picture("rgb24", (16, 16))
    with pytest.raises(ValueError, match=r"got \(3, 4\), wanted \(4, 4\)"):
        picture.write(PixelBox(0, 0, 4, 4), np.zeros((3, 4, 3), np.uint8))


def test_planes_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="yuv420p"):
        Picture((np.zeros((4, 4), np.uint8),), PIXEL_FORMATS["yuv420p"])


@pytest.mark.parametrize("name", PIXEL_FORMATS)
def test_a_glimpse_is_the_picture_made_tiny(name: str) -> None:
    fmt = PIXEL_FORMATS[name]
    top = (1 << fmt.bits) - 1
    planes = []
    for shape in fmt.plane_shapes((333, 251)):
        ramp = np.linspace(0.2, 0.8, shape[1])[None, :] * np.linspace(0.6, 1, shape[0])[:, None]
        ramp = ramp if len(shape) == 2 else np.repeat(ramp[..., None], shape[2], 2)
        planes.append((ramp * top).astype(fmt.dtype))
    picture = Picture(tuple(planes), fmt)
    glimpse = picture.glimpse(16)
    assert glimpse.shape == (16, 16, 3)
    exact = picture.read(picture.box, (16, 16)).astype(int)
    assert np.abs(glimpse - exact).max() <= 6


def test_a_picture_smaller_than_a_glimpse_of_it_is_enlarged() -> None:
    picture = Picture.from_rgb(np.full((2, 3, 3), 77, np.uint8))
    assert np.unique(picture.glimpse(16)).tolist() == [77]


@pytest.mark.parametrize(
    "name", ["yuv420p", "yuv422p10le", "yuv440p", "yuv444p", "rgb48le", "gray"]
)
@pytest.mark.parametrize("box", [PixelBox(3, 5, 900, 777), PixelBox(0, 0, 1001, 801)])
def test_large_patches_are_written_in_bands_as_if_whole(name: str, box: PixelBox) -> None:
    """Bands keep to the cache; where they meet, chroma must be seen as it was before the first was written."""
    random = np.random.default_rng(3)
    fmt = PIXEL_FORMATS[name]
    planes = tuple(
        random.integers(0, 1 << fmt.bits, shape).astype(fmt.dtype)
        for shape in fmt.plane_shapes((1001, 801))
    )
    w, h = box.size_wh
    patch = random.integers(0, 256, (h, w, 3), dtype=np.uint8)
    alpha = random.random((h, w)).astype(np.float32)
    banded, narrow = (Picture(planes, fmt).copy() for _ in range(2))
    banded.write(box, patch, alpha)
    assert len(list(row_bands(box.size_wh))) > 5
    # So narrow that a band holds the whole height: strips on the chroma grid, the last one first.
    for x0 in reversed(range(box.x0 // 2 * 2, box.x1, 26)):
        strip = PixelBox(max(x0, box.x0), box.y0, min(x0 + 26, box.x1), box.y1)
        assert len(list(row_bands(strip.size_wh))) == 1
        own = Picture(planes, fmt).copy()
        part = np.s_[:, strip.x0 - box.x0 : strip.x1 - box.x0]
        own.write(strip, patch[part], alpha[part])
        shift_x, _ = fmt.chroma_shift_xy
        for index, plane in enumerate(own.planes):
            shift = shift_x if fmt.family == "yuv" and index in (1, 2) else 0
            columns = np.s_[:, strip.x0 >> shift : -(-strip.x1 >> shift)]
            narrow.planes[index][columns] = plane[columns]
    for got, wanted in zip(banded.planes, narrow.planes, strict=True):
        assert np.array_equal(got, wanted)
