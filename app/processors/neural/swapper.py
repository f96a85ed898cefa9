"""Swaps faces with a network: one call for all faces of all frames of a window, each with its own person's vector."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, cast, get_args

import numpy as np

from app.core.errors import ModelError, UnknownModelError
from app.core.mesh_topology import MESH_POINTS
from app.core.types import CropSpec, FaceBatch, FloatArray, Identity, IdentityId, Template
from app.inference.spec import ModelId, ModelSpec, ModelZoo
from app.processors.neural.box_mask import face_box_mask
from app.processors.neural.swapping import SwapNetwork, inswapper_latents, unit_latents

_MAX_LATENTS = 256

ToLatents = Callable[[FloatArray], FloatArray]


def _of_inswapper(zoo: ModelZoo, model_id: ModelId) -> ToLatents:
    emap = zoo.last_matrix(model_id)
    return lambda vectors: inswapper_latents(vectors, emap)


_LATENTS: Final[Mapping[str, Callable[[ModelZoo, ModelId], ToLatents]]] = MappingProxyType(
    {"inswapper": _of_inswapper, "hyperswap": lambda *_: unit_latents}
)
"""By the manifest's `adapter`: how a recognizer's vectors become what the network takes."""


def swap_model(zoo: ModelZoo, model_id: ModelId) -> ModelSpec:
    """The entry of a swap network that can be run.

    Raises:
        UnknownModelError: No entry has this id, or it is not one of a swap network that is known here.
    """
    spec = zoo.spec(model_id)
    if spec.task != "face_swap" or spec.adapter not in _LATENTS or spec.recognizer is None:
        raise UnknownModelError(
            f"{model_id} is no network that swaps faces; `python -m app processors` lists those that are installed"
        )
    return spec


def swap_crop(spec: ModelSpec) -> CropSpec:
    """The crop that a swap network was trained with.

    Raises:
        ModelError: Its entry names no alignment that is known here.
    """
    if spec.crop is None or spec.crop.template not in get_args(Template):
        named = "none" if spec.crop is None else repr(spec.crop.template)
        raise ModelError(
            f"{spec.id}: the manifest's crop template is {named}, wanted one of {', '.join(get_args(Template))}"
        )
    return CropSpec(template=cast("Template", spec.crop.template), size_px=spec.crop.size)


class NeuralSwapper:
    """Swaps with one network; see `app.processors.base.FaceProcessor`.

    Args:
        zoo: Has the network.
        spec: Its entry, as `swap_model` gives it.

    Raises:
        MissingModelError: It is not installed.
        ModelError: Its file lacks the matrix that it needs.
    """

    def __init__(self, zoo: ModelZoo, spec: ModelSpec) -> None:
        assert spec.recognizer is not None
        self._recognizer = spec.recognizer
        self._network = SwapNetwork(zoo, spec.id)
        self._to_latents = _LATENTS[spec.adapter](zoo, spec.id)
        self._latents: OrderedDict[IdentityId, FloatArray] = OrderedDict()

    def process(self, batch: FaceBatch) -> FaceBatch:
        """Swap every row in one call.

        Args:
            batch: Crops as `swap_crop` says, identities with an embedding by the network's recognizer.

        Returns:
            The rows in the same order; the masks are soft boxes around the faces, without what was masked before. A
            face of which the network makes nothing comes back as it was, with an empty mask.
        """
        if not len(batch):
            return batch
        latents = np.stack([self._latent(identity) for identity in batch.identities])
        side_px = batch.crops.shape[1]
        masks = np.empty(batch.masks.shape, np.float32)
        for mask, known, points in zip(masks, batch.masks, batch.landmarks, strict=True):
            np.multiply(face_box_mask(points[:MESH_POINTS, :2], side_px), known, out=mask)
        crops, is_sound = self._network.swap(batch.crops, latents)
        masks[~is_sound] = 0
        return replace(batch, crops=crops, masks=masks)

    def _latent(self, identity: Identity) -> FloatArray:
        """The identity's vector as the network takes it, made once."""
        known = self._latents.get(identity.id)
        if known is None:
            vector = identity.embedding_by(self._recognizer)
            (known,) = self._to_latents(vector[None])
            self._latents[identity.id] = known
            if len(self._latents) > _MAX_LATENTS:
                self._latents.popitem(last=False)
        return known
