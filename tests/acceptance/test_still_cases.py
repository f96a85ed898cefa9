"""Every still of the shared hard cases: looked at, swapped, and compared with what it was made to be."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps

from app.core.errors import AppError, UnsupportedOutputError
from app.labelling.verify import read_label
from app.pipeline.progress import RenderResult
from app.pipeline.spec import RenderSpec
from app.workbench import Workbench
from tests.media.heif_files import heif_file, hevc_item

pytestmark = [pytest.mark.slow, pytest.mark.weights]

FAMILIES = ("img_", "names/", "broken_", "bomb", "wrong_extension_png")
NO_STILLS = (".mp4",)
MADE_HERE = ("img_photo.heic",)
"""Cases whose maker is seldom installed: they are made as the media tests make theirs."""

WRITTEN_AS = {".bmp": ".png", ".heic": ".jpg"}
"""What cannot carry a label, or is not written."""

REFUSED_BY_PROBE = {
    "broken_zero_byte.png": "media.empty",
    "broken_text.jpg": "media.unsupported_type",
    "bomb_30000x30000.png": "media.too_large",
    "img_1x1.png": "media.bad_dimensions",
}
REFUSED_BY_THE_SWAP = {
    "broken_truncated.jpg": "media.truncated",
    # Its one face-less picture opens: the checksum of pixels is not asked, as in every browser.
    "broken_png_bad_crc.png": "face.none_in_target",
    "img_tall_8x4000.png": "face.none_in_target",
    "img_black.png": "face.none_in_target",
    "img_noise.png": "face.none_in_target",
}
TURNED = {f"img_rotated_{degrees:03}.jpg" for degrees in (45, 90, 135, 180, 270)}
"""Faces that lie on their side: found, or said to be not found, but never swapped wrongly."""

NOTICES = {
    "img_palette_transparency.png": ("still.depth_raised",),
    "img_multipage.tiff": ("still.first_picture_only",),
    # Gray pixels with a profile for RGB.
    "img_grey_alpha.png": ("still.profile_dropped",),
}
LAYOUTS = {
    "L": "gray",
    "LA": "ya8",
    "P": "rgba",
    "RGBA": "rgba",
    "CMYK": "rgb24",
}
"""What Pillow's pixel types become; the one palette among the cases has a clear entry."""

Pixels = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of the manifest."""

    path: Path
    expect: dict[str, Any]


@pytest.fixture(scope="module")
def still_cases(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """All cases by name; `FACEDOCK_CASES_DIR` names a folder where they have been made already."""
    kept = os.environ.get("FACEDOCK_CASES_DIR")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("stills")
    if not (folder / "manifest.json").is_file():
        if shutil.which("ffmpeg") is None:
            pytest.skip("ffmpeg, which makes the cases, is not installed")
        command = [sys.executable, str(assets / "make_cases.py"), str(folder), "--only", *FAMILIES]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    lines = json.loads((folder / "manifest.json").read_text())
    found = {
        line["file"]: Case(path=folder / line["file"], expect=line["expect"])
        for line in lines
        if line["file"].startswith(FAMILIES) and not line["file"].endswith(NO_STILLS)
        if not line.get("skipped") or line["file"] in MADE_HERE
    }
    for name in MADE_HERE:
        if not found[name].path.is_file():
            path = tmp_path_factory.mktemp("made") / name
            _make_heic(path, assets)
            found[name] = replace(found[name], path=path)
    return found


def _make_heic(path: Path, assets: Path) -> None:
    with Image.open(assets / "stills" / "frontal_astronaut.png") as photo:
        pixels = np.asarray(photo.convert("RGB"))
    path.write_bytes(heif_file(hevc_item(pixels, chroma="420")))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a case: a result and its file, or the code of a refusal."""

    result: RenderResult | None
    code: str = ""

    @property
    def path(self) -> Path:
        assert self.result is not None
        return self.result.output


Swap = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def swap(
    still_cases: dict[str, Case],
    workbench: Workbench,
    assets: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Swap:
    """Swap a case once, whoever asks."""
    folder = tmp_path_factory.mktemp("swapped")
    done: dict[str, Outcome] = {}

    def run(name: str) -> Outcome:
        if name not in done:
            suffix = Path(name).suffix.lower() or ".png"
            spec = RenderSpec(
                sources=(assets / "stills" / "frontal_astronaut.png",),
                target=still_cases[name].path,
                output=folder / f"{len(done)}{WRITTEN_AS.get(suffix, suffix)}",
                consent="permission",
            )
            try:
                done[name] = Outcome(result=workbench.render(spec))
            except AppError as error:
                done[name] = Outcome(result=None, code=error.code)
        return done[name]

    return run


def swapped(cases: dict[str, Case], swap: Swap) -> dict[str, tuple[Case, Outcome]]:
    """The cases that have a result."""
    found = {name: (case, swap(name)) for name, case in cases.items()}
    return {name: pair for name, pair in found.items() if pair[1].result is not None}


def swapped_and_known_to_pillow(
    cases: dict[str, Case], swap: Swap
) -> dict[str, tuple[Case, Outcome]]:
    """Those of them whose input can be looked at by other means than ours."""
    found = swapped(cases, swap)
    return {name: pair for name, pair in found.items() if not name.endswith(".heic")}


def stored_pixels(path: Path) -> Pixels:
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image))


def test_there_are_as_many_cases_as_ever(still_cases: dict[str, Case]) -> None:
    assert len(still_cases) >= 55


def test_the_header_tells_what_each_case_was_made_to_be(
    still_cases: dict[str, Case], workbench: Workbench
) -> None:
    for name, case in still_cases.items():
        if name in REFUSED_BY_PROBE:
            continue
        info = workbench.probe(case.path)
        expect = case.expect
        size = expect.get("shown_size") or expect.get("stored_size")
        assert info.kind == "still", name
        assert size is None or list(info.size_wh) == size, name
        assert info.bits == expect.get("bit_depth", 8), name
        if "mode" in expect:
            assert info.pixel_format == LAYOUTS[expect["mode"]], name


def test_what_cannot_be_a_result_is_refused_by_its_code(
    still_cases: dict[str, Case], workbench: Workbench, swap: Swap
) -> None:
    for name in REFUSED_BY_PROBE.keys() & still_cases.keys():
        with pytest.raises(AppError) as caught:
            workbench.probe(still_cases[name].path)
        assert caught.value.code == swap(name).code == REFUSED_BY_PROBE[name], name
    for name in REFUSED_BY_THE_SWAP:
        assert swap(name).code == REFUSED_BY_THE_SWAP[name], name


def test_every_other_case_is_swapped_and_says_what_was_not_kept(
    still_cases: dict[str, Case], swap: Swap
) -> None:
    refused = {*REFUSED_BY_PROBE, *REFUSED_BY_THE_SWAP}
    for name, case in still_cases.items():
        if name in refused:
            continue
        outcome = swap(name)
        if name in TURNED and outcome.result is None:
            assert outcome.code == "face.none_in_target", name
            continue
        assert outcome.result is not None, (name, outcome.code)
        assert outcome.result.faces_swapped == case.expect.get("faces", 1), name
        codes = tuple(notice.code for notice in outcome.result.notices)
        assert codes == NOTICES.get(name, ()), name


def test_size_depth_and_pixel_type_stay(
    still_cases: dict[str, Case], swap: Swap, workbench: Workbench
) -> None:
    for name, (case, outcome) in swapped(still_cases, swap).items():
        before, after = workbench.probe(case.path), workbench.probe(outcome.path)
        assert after.size_wh == before.size_wh, name
        assert (after.pixel_format, after.bits) == (before.pixel_format, before.bits), name
        assert (after.rotation_deg, after.is_mirrored) == (0, False), name
        assert read_label(outcome.path).aigc, name


def test_alpha_stays_byte_for_byte(still_cases: dict[str, Case], swap: Swap) -> None:
    checked = 0
    for name, (case, outcome) in swapped_and_known_to_pillow(still_cases, swap).items():
        with Image.open(case.path) as image:
            has_alpha = image.has_transparency_data
            alpha = np.asarray(image.convert("RGBA"))[..., 3]
        if has_alpha:
            with Image.open(outcome.path) as image:
                np.testing.assert_array_equal(np.asarray(image.convert("RGBA"))[..., 3], alpha)
            checked += 1
            assert outcome.path.suffix == case.path.suffix, name
    assert checked >= 3


def test_profiles_stay_byte_for_byte(still_cases: dict[str, Case], swap: Swap) -> None:
    checked = 0
    for name, (case, outcome) in swapped_and_known_to_pillow(still_cases, swap).items():
        with Image.open(case.path) as before, Image.open(outcome.path) as after:
            icc = before.info.get("icc_profile")
            is_kept = icc is not None and "still.profile_dropped" not in NOTICES.get(name, ())
            assert (before.mode == "CMYK") == (after.mode == "CMYK"), name
            if is_kept:
                assert after.info.get("icc_profile") == icc, name
                checked += 1
            else:
                assert "icc_profile" not in after.info, name
    assert checked >= 1


def test_a_jpeg_keeps_its_tables_and_its_sampling(still_cases: dict[str, Case], swap: Swap) -> None:
    for name, (case, outcome) in swapped(still_cases, swap).items():
        if not name.endswith(".jpg") or name.startswith("wrong"):
            continue
        with Image.open(case.path) as before, Image.open(outcome.path) as after:
            assert before.info.get("progressive") == after.info.get("progressive"), name
            if name in {f"img_exif_{n}.jpg" for n in (5, 6, 7, 8)}:
                continue
            assert list(after.quantization.values()) == list(before.quantization.values()), name


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_heic_becomes_what_can_carry_a_label(
    suffix: str, still_cases: dict[str, Case], workbench: Workbench, assets: Path, tmp_path: Path
) -> None:
    photo = assets / "stills" / "frontal_astronaut.png"
    spec = RenderSpec(
        sources=(photo,),
        target=still_cases["img_photo.heic"].path,
        output=tmp_path / f"out{suffix}",
        consent="permission",
    )
    result = workbench.render(spec)
    with Image.open(result.output) as image, Image.open(photo) as before:
        assert image.format == {".jpg": "JPEG", ".png": "PNG"}[suffix]
        apart = np.asarray(image).astype(int)[:64] - np.asarray(before.convert("RGB"))[:64]
    assert np.abs(apart).mean() < 3
    with pytest.raises(UnsupportedOutputError, match=r"\.jpg, \.png"):
        workbench.render(spec.model_copy(update={"output": tmp_path / "out.heic"}))


def test_all_eight_orientations_give_the_same_upright_picture(
    still_cases: dict[str, Case], swap: Swap
) -> None:
    first = stored_pixels(swap("img_exif_1.jpg").path).astype(int)
    for number in range(2, 9):
        outcome = swap(f"img_exif_{number}.jpg")
        with Image.open(outcome.path) as image:
            assert image.getexif().get(0x0112) is None
        other = stored_pixels(outcome.path).astype(int)
        assert np.abs(other - first).mean() < 3, number


def test_lossless_pictures_change_in_the_face_only(
    still_cases: dict[str, Case], swap: Swap, workbench: Workbench
) -> None:
    checked = 0
    for name, (case, outcome) in swapped(still_cases, swap).items():
        if case.path.suffix.lower() in (".jpg", ".avif", ".heic", "") or name == "img_photo.webp":
            continue
        (face,) = workbench.find_faces(case.path).faces
        x0, y0, x1, y1 = face.bbox_xyxy
        pad = 0.35 * max(x1 - x0, y1 - y0)
        before, after = _rgba(case.path), _rgba(outcome.path)
        inside = np.zeros(before.shape[:2], bool)
        rows = slice(max(0, int(y0 - pad)), int(y1 + pad))
        inside[rows, max(0, int(x0 - pad)) : int(x1 + pad)] = True
        assert (before[~inside] == after[~inside]).all(), name
        assert (before[inside] != after[inside]).any(), name
        checked += 1
    assert checked >= 15


def _rgba(path: Path) -> Pixels:
    with Image.open(path) as image:
        # Pillow clips 16-bit gray on the way to RGB; as it is, it can be compared too.
        deep = np.asarray(image)
        return deep if image.mode == "I;16" else np.asarray(image.convert("RGBA"))


def test_turned_faces_are_found_where_they_are(
    still_cases: dict[str, Case], swap: Swap, workbench: Workbench
) -> None:
    truths = {name: case for name, case in still_cases.items() if case.expect.get("truth")}
    assert len(truths) == 7
    for name, case in truths.items():
        outcome = swap(name)
        if outcome.result is None:
            continue
        truth = json.loads((case.path.parent / "truth" / f"{case.path.stem}.json").read_text())
        points = np.array(truth["faces"][0]["points"])
        (face,) = workbench.find_faces(case.path).faces
        apart = np.linalg.norm(face.kps - points, axis=1).max()
        eyes = np.linalg.norm(points[0] - points[1])
        assert apart < 0.35 * eyes, (name, apart, eyes)
