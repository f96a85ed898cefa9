"""Swap faces: the source's skin and proportions on the target's head, pose, light and expression.

The model `mesh` is an algorithm, not a network: it needs nothing but the landmarks and runs everywhere.
What it does is told in `app/processors/mesh`. Any other model is an installed network, see `app/processors/neural`.
"""

from collections import OrderedDict
from functools import cache
from typing import Literal

import numpy as np
from pydantic import Field

from app.core.mesh_topology import load_topology
from app.core.types import CropSpec, FaceBatch, Identity, IdentityId
from app.inference.spec import ModelId, ModelZoo
from app.processors.base import (
    FaceProcessor,
    Needs,
    ProcessorOptions,
    ProcessorSpec,
    model_field,
)
from app.processors.mesh.atlas import Atlas, build_atlas
from app.processors.mesh.face_model import FaceModel, build_face_model
from app.processors.mesh.looks import LookMemory
from app.processors.mesh.swap import SwapChoices, TargetFace, swap_face
from app.processors.neural.swapper import NeuralSwapper, swap_crop, swap_model

MESH = "mesh"
MAX_ATLASES = 32
"""Identities kept ready; an atlas takes at most 7 MB and a fifth of a second to make."""


class Options(ProcessorOptions):
    """What a person may choose for a swap."""

    model: str = model_field(
        "face_swap",
        built_in=MESH,
        title="Model",
        description="mesh: landmarks and a texture, on any machine; others are networks that are installed here",
    )
    shape: float = Field(
        default=0.8,
        ge=0,
        le=1,
        title="Identity shape",
        description="how far eyes, nose and mouth take the source's proportions; mesh only",
    )
    shading: float = Field(
        default=0.75,
        ge=0,
        le=1,
        title="Light",
        description="how much of the target's light and shade falls on the new face; mesh only",
    )
    eyes: Literal["target", "source"] = Field(
        default="source",
        title="Eyes from",
        description="source is more alike, and looks and blinks as the target does; target keeps its own eyeballs; "
        "mesh only",
    )
    keep_inner_mouth: bool = Field(
        default=True,
        title="Keep open mouth",
        description="teeth and tongue of an open mouth stay the target's; mesh only",
    )
    occlusion: Literal["auto", "off"] = Field(
        default="auto",
        title="Things in front",
        description="auto keeps what covers the face, such as a microphone or a mask",
    )


class MeshSwapper:
    """Draws each identity's texture on the target's mesh; see `app/processors/mesh`.

    It keeps the textures it has made and the last look of each track, so one swapper serves one thread and one video.
    """

    def __init__(self, options: Options) -> None:
        self._model = _face_model()
        self._choices = SwapChoices(
            shape=options.shape,
            shading=options.shading,
            keeps_eyes=options.eyes == "target",
            keeps_mouth=options.keep_inner_mouth,
        )
        self._atlases: OrderedDict[IdentityId, Atlas] = OrderedDict()
        self._memories = LookMemory()

    def process(self, batch: FaceBatch) -> FaceBatch:
        """Swap every row.

        Args:
            batch: `native` crops; never written to.

        Returns:
            The rows in the same order; a face too small to be drawn comes back as it was, with an empty mask.
        """
        crops = np.empty_like(batch.crops)
        masks = np.empty(batch.masks.shape, np.float32)
        for row, identity in enumerate(batch.identities):
            face = TargetFace(batch.crops[row], batch.masks[row], batch.landmarks[row])
            track_id = batch.track_ids[row] if batch.track_ids else None
            key = None if track_id is None else (track_id, identity.id)
            crops[row], masks[row] = swap_face(
                face,
                self._atlas(identity),
                model=self._model,
                choices=self._choices,
                memory=self._memories.of(key),
            )
        return FaceBatch(
            crops=crops,
            masks=masks,
            affine=batch.affine,
            landmarks=batch.landmarks,
            identities=batch.identities,
            track_ids=batch.track_ids,
        )

    @property
    def known_identities(self) -> tuple[IdentityId, ...]:
        """Identities whose atlas is ready, the one that will go first in front."""
        return tuple(self._atlases)

    def _atlas(self, identity: Identity) -> Atlas:
        """The identity's atlas, made once; the one that has not been used for longest makes room."""
        if identity.id not in self._atlases:
            self._atlases[identity.id] = build_atlas(identity, self._model)
            if len(self._atlases) > MAX_ATLASES:
                self._atlases.popitem(last=False)
        self._atlases.move_to_end(identity.id)
        return self._atlases[identity.id]


@cache
def _face_model() -> FaceModel:
    """Made once: it depends on nothing, and takes as long as the encoding of a frame."""
    return build_face_model(load_topology())


def build(options: Options, zoo: ModelZoo) -> FaceProcessor:
    """Make the swapper that the options name; the mesh needs none of the models.

    Raises:
        UnknownModelError: The options name no swap network.
        MissingModelError: It is not installed.
    """
    if options.model == MESH:
        return MeshSwapper(options)
    return NeuralSwapper(zoo, swap_model(zoo, ModelId(options.model)))


def needs(options: Options, zoo: ModelZoo) -> Needs:
    """What the options' model needs; see `ProcessorSpec.needs`."""
    if options.model == MESH:
        return Needs()
    spec = swap_model(zoo, ModelId(options.model))
    return Needs(crop=swap_crop(spec), recognizer=spec.recognizer)


PROCESSOR = ProcessorSpec(
    id="face_swapper",
    title="Swap faces",
    order=10,
    crop=CropSpec(template="native", size_px=32, margin=0.05),
    options=Options,
    build=build,
    keeps_occluders=lambda options: options.occlusion == "auto",
    needs=needs,
)
