"""A chosen network swaps all faces of a batch, each with its own person's vector."""

from dataclasses import replace

import numpy as np
import pytest

from app.core.errors import MissingModelError, ModelError, UnknownModelError, UsageError
from app.core.types import CropSpec, FaceBatch, Identity, IdentityId
from app.inference.spec import ModelId
from app.processors import discover
from app.processors.base import checked_options
from app.processors.face_swapper import PROCESSOR, Options
from app.processors.neural.swapper import swap_crop
from tests.processors.conftest import MakeBatch
from tests.processors.neural.fakes import SwapZoo, echoed, painted

RECOGNIZER = "arcface-w600k-r50"
COLORS = {"red": (0.9, 0.1, 0.2), "blue": (0.1, 0.2, 0.9), "green": (0.2, 0.8, 0.1)}


def person(name: str, like: Identity) -> Identity:
    """Somebody whose vector begins with a color."""
    vector = np.zeros(512, np.float32)
    vector[:3] = COLORS[name]
    vector[3] = np.sqrt(1 - np.square(vector).sum()) if np.square(vector).sum() < 1 else 0
    views = (replace(like.views[0], embeddings={RECOGNIZER: vector * 20}),)
    return replace(like, id=IdentityId(name), views=views)


def batch_of(make_batch: MakeBatch, *names: str) -> FaceBatch:
    batch = make_batch(len(names), side_px=128, face_px=90)
    people = tuple(person(name, batch.identities[0]) for name in names)
    return replace(batch, identities=people)


@pytest.mark.parametrize("model", ["inswapper-128", "hyperswap-1a-256"])
def test_the_options_model_says_what_crop_and_vectors_it_needs(model: str) -> None:
    needs = PROCESSOR.needs(Options(model=model), SwapZoo(echoed))
    side = int(model.rsplit("-", 1)[1])
    assert needs.crop == CropSpec(template="arcface_128", size_px=side)
    assert needs.recognizer == RECOGNIZER


def test_the_mesh_needs_nothing_of_others() -> None:
    needs = PROCESSOR.needs(Options(), SwapZoo(echoed))
    assert (needs.crop, needs.recognizer) == (None, None)


def test_each_row_gets_its_own_persons_face_in_one_call(make_batch: MakeBatch) -> None:
    zoo = SwapZoo(painted)
    swapper = PROCESSOR.build(Options(model="inswapper-128"), zoo)
    names = ["blue", "red", "blue", "green"]
    out = swapper.process(batch_of(make_batch, *names))
    for crop, name in zip(out.crops, names, strict=True):
        vector = person(name, out.identities[0]).embedding_by(RECOGNIZER)
        assert np.abs(crop.astype(float) - vector[:3] * 255).max() <= 1
    assert [feeds["target"].shape for feeds in zoo.fed] == [(4, 3, 128, 128)]


def test_a_vector_is_made_once_an_identity_and_the_matrix_read_once(make_batch: MakeBatch) -> None:
    emap = np.eye(512, dtype=np.float32)[::-1] * 2
    zoo = SwapZoo(echoed, emap)
    swapper = PROCESSOR.build(Options(model="inswapper-128"), zoo)
    batch = batch_of(make_batch, "red", "blue")
    for _ in range(3):
        swapper.process(batch)
    assert zoo.matrices_read == 1
    wanted = batch.identities[0].embedding_by(RECOGNIZER)[::-1]
    assert np.allclose(zoo.fed[-1]["source"][0], wanted, atol=1e-6)


def test_a_network_that_changes_nothing_changes_nothing(make_batch: MakeBatch) -> None:
    swapper = PROCESSOR.build(Options(model="inswapper-128"), SwapZoo(echoed))
    batch = batch_of(make_batch, "red", "green", "blue")
    out = swapper.process(batch)
    assert np.array_equal(out.crops, batch.crops)


def test_what_was_masked_before_stays_masked(make_batch: MakeBatch) -> None:
    batch = batch_of(make_batch, "red")
    masks = batch.masks.copy()
    masks[:, :, 64:] = 0
    swapper = PROCESSOR.build(Options(model="inswapper-128"), SwapZoo(echoed))
    out = swapper.process(replace(batch, masks=masks))
    assert out.masks[0, :, 64:].max() == 0
    assert out.masks[0, 64, 60] == 1


@pytest.mark.parametrize("rubbish", [np.nan, np.inf], ids=["not a number", "infinite"])
def test_a_face_of_which_the_network_makes_nothing_stays(
    make_batch: MakeBatch, rubbish: float
) -> None:
    def sometimes(target: np.ndarray, source: np.ndarray) -> np.ndarray:
        made = painted(target, source).copy()
        made[1, 0, 5, 5] = rubbish
        return made

    batch = batch_of(make_batch, "red", "blue", "green")
    out = PROCESSOR.build(Options(model="inswapper-128"), SwapZoo(sometimes)).process(batch)
    assert np.array_equal(out.crops[1], batch.crops[1])
    assert out.masks.max((1, 2)).tolist() == [1, 0, 1]
    assert np.abs(out.crops[2, 64, 64] - np.rint(np.float32(COLORS["green"]) * 255)).max() <= 2


def test_an_empty_batch_asks_no_network(make_batch: MakeBatch) -> None:
    zoo = SwapZoo(echoed)
    swapper = PROCESSOR.build(Options(model="inswapper-128"), zoo)
    assert len(swapper.process(make_batch(0))) == 0
    assert zoo.fed == []


def test_a_face_that_nobody_described_is_told(make_batch: MakeBatch) -> None:
    swapper = PROCESSOR.build(Options(model="inswapper-128"), SwapZoo(echoed))
    with pytest.raises(ValueError, match=RECOGNIZER):
        swapper.process(make_batch(1, side_px=128))


@pytest.mark.parametrize(
    ("model", "error"),
    [
        pytest.param("nobody", UnknownModelError, id="unknown"),
        pytest.param("yunet", UnknownModelError, id="does something else"),
        pytest.param("inswapper-128-fp16", MissingModelError, id="not installed"),
    ],
)
def test_a_model_that_cannot_be_used_is_told(model: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=model):
        PROCESSOR.build(Options(model=model), SwapZoo(echoed))


@pytest.mark.parametrize("model", ["", "../x", "A", "x" * 65, 3])
def test_only_ids_are_models(model: object) -> None:
    with pytest.raises(UsageError, match=r"face_swapper\.model"):
        checked_options(discover(), "face_swapper", {"model": model})


def test_an_alignment_that_nobody_knows_is_told() -> None:
    spec = SwapZoo(echoed).spec(ModelId("inswapper-128"))
    odd = spec.model_copy(update={"crop": spec.crop.model_copy(update={"template": "moon"})})  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="moon"):
        swap_crop(odd)
