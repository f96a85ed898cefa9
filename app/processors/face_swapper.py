"""Swap faces: put the source's face on the target's, frame by frame."""

from typing import Literal

import numpy as np
from pydantic import Field

from app.core.mesh_topology import load_topology
from app.core.types import CropSpec, FaceBatch, Identity, IdentityId
from app.inference.spec import ModelZoo
from app.processors.base import ProcessorOptions, ProcessorSpec
from app.processors.mesh.atlas import Atlas, build_atlas
from app.processors.mesh.face_model import build_face_model
from app.processors.mesh.swap import SwapChoices, swap_face


class Options(ProcessorOptions):
    """What a person may choose."""

    model: Literal["mesh"] = Field(
        default="mesh", title="Model", description="mesh is built in and needs no download"
    )
    shape: float = Field(
        default=0.6,
        ge=0,
        le=1,
        title="Face shape",
        description="How far eyes, nose and mouth follow the source's proportions",
    )
    shading: float = Field(
        default=0.75,
        ge=0,
        le=1,
        title="Light of the target",
        description="How much of the target's light and shade is taken over",
    )
    eyes: Literal["target", "source"] = Field(
        default="target",
        title="Eyes",
        description="The target's eyes keep gaze and blinks; the source's look more like the source in photos",
    )
    keep_mouth: bool = Field(
        default=True,
        title="Keep the open mouth",
        description="Teeth and tongue of an open mouth stay the target's",
    )


class MeshSwapper:
    """Wraps the source's texture round the mesh of each target face.

    Args:
        options: What a person chose.
        zoo: Unused: the algorithm needs no network of its own.
    """

    def __init__(self, options: Options, zoo: ModelZoo) -> None:
        self._model = build_face_model(load_topology())
        self._atlases: dict[IdentityId, Atlas] = {}
        self._choices = SwapChoices(
            shape=options.shape,
            shading=options.shading,
            keeps_eyes=options.eyes == "target",
            keeps_mouth=options.keep_mouth,
        )

    def process(self, batch: FaceBatch) -> FaceBatch:
        """Swap each row to its identity; see `FaceProcessor`."""
        crops, masks = batch.crops.copy(), np.zeros(batch.masks.shape, np.float32)
        for row, identity in enumerate(batch.identities):
            crops[row], masks[row] = swap_face(
                batch.crops[row],
                batch.masks[row],
                batch.landmarks[row],
                atlas=self._atlas(identity),
                model=self._model,
                choices=self._choices,
            )
        return FaceBatch(
            crops=crops,
            masks=masks,
            affine=batch.affine,
            landmarks=batch.landmarks,
            identities=batch.identities,
        )

    def _atlas(self, identity: Identity) -> Atlas:
        if identity.id not in self._atlases:
            self._atlases[identity.id] = build_atlas(identity, self._model)
        return self._atlases[identity.id]


PROCESSOR = ProcessorSpec(
    id="face_swapper",
    title="Swap faces",
    order=10,
    crop=CropSpec(template="native", size_px=32, margin=0.1),
    options=Options,
    build=MeshSwapper,
)
