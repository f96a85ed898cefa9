"""What every processor promises; a new file in the folder is tested the moment it exists."""

import numpy as np
import pytest
from pydantic import ValidationError

from app.core.errors import MissingModelError
from app.inference.spec import ModelId, ModelSpec, Session
from app.processors import discover
from app.processors.base import FaceProcessor, ProcessorSpec
from tests.processors.conftest import MakeBatch

SPECS = discover()
every_processor = pytest.mark.parametrize("spec", SPECS.values(), ids=list(SPECS))


class EmptyZoo:
    """No model is installed."""

    def spec(self, model_id: ModelId) -> ModelSpec:
        raise MissingModelError(model_id)

    def session(self, model_id: ModelId) -> Session:
        raise MissingModelError(model_id)


def built(spec: ProcessorSpec) -> FaceProcessor:
    return spec.build(spec.options(), EmptyZoo())


def test_the_swapper_is_found() -> None:
    assert "face_swapper" in SPECS


def test_processors_come_in_the_order_of_their_steps() -> None:
    orders = [spec.order for spec in SPECS.values()]
    assert orders == sorted(orders)


@every_processor
def test_id_and_file_agree(spec: ProcessorSpec) -> None:
    assert spec.build.__module__ == f"app.processors.{spec.id}"
    assert SPECS[spec.id] is spec


@every_processor
def test_options_have_defaults_titles_and_descriptions(spec: ProcessorSpec) -> None:
    spec.options()
    for name, field in spec.options.model_fields.items():
        assert field.title and field.description, name


@every_processor
def test_options_refuse_unknown_keys_and_changes(spec: ProcessorSpec) -> None:
    with pytest.raises(ValidationError):
        spec.options(no_such_option=1)
    options = spec.options()
    with pytest.raises(ValidationError):
        setattr(options, next(iter(spec.options.model_fields)), None)


@every_processor
@pytest.mark.parametrize("n", [0, 1, 3])
def test_rows_keep_number_order_size_and_type(
    spec: ProcessorSpec, n: int, make_batch: MakeBatch
) -> None:
    batch = make_batch(n)
    out = built(spec).process(batch)
    assert out.crops.shape == batch.crops.shape
    assert (out.crops.dtype, out.masks.dtype) == (np.uint8, np.float32)
    assert np.array_equal(out.affine, batch.affine)
    assert out.identities == batch.identities
    assert n == 0 or (out.masks.min() >= 0 and out.masks.max() <= 1)


@every_processor
def test_the_batch_is_not_written_to(spec: ProcessorSpec, make_batch: MakeBatch) -> None:
    batch = make_batch(2)
    for array in (batch.crops, batch.masks, batch.affine, batch.landmarks):
        array.setflags(write=False)
    built(spec).process(batch)


@every_processor
def test_a_row_comes_out_the_same_alone_and_in_company(
    spec: ProcessorSpec, make_batch: MakeBatch
) -> None:
    together = built(spec).process(make_batch(3))
    alone = built(spec).process(make_batch(1))
    assert np.array_equal(together.crops[0], alone.crops[0])
    assert np.array_equal(together.masks[0], alone.masks[0])
