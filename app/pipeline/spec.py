"""What a person asked for: frozen, validated at the door, kept as JSON."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Preset = Literal["ultrafast", "veryfast", "medium", "slow"]
ConsentBasis = Literal["self", "permission", "fictional", "public-domain"]


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Step(_Asked):
    """One processor with its options; the options are validated by the processor's own class."""

    processor: str
    options: dict[str, Any] = Field(default_factory=dict)


class FaceMap(_Asked):
    """Which people of the target get the source face.

    Attributes:
        person: Number of one person, from 0, left to right (ties top to bottom) in the first frame that shows a face;
            `None` is everybody.
    """

    person: int | None = Field(default=None, ge=0)


class OutputChoices(_Asked):
    """How the result is encoded.

    Attributes:
        quality: 0 to 100, mapped to each encoder's own scale.
        preset: Speed of a video encoder.
    """

    quality: int = Field(default=80, ge=0, le=100, title="Quality")
    preset: Preset = Field(default="veryfast", title="Encoder speed")


class RenderSpec(_Asked):
    """One job: these faces, on that target, with these steps, into that file."""

    sources: tuple[Path, ...] = Field(min_length=1)
    target: Path
    output: Path
    consent: ConsentBasis
    steps: tuple[Step, ...] = Field(default=(Step(processor="face_swapper"),), min_length=1)
    face_map: FaceMap = Field(default_factory=FaceMap)
    encoding: OutputChoices = Field(default_factory=OutputChoices)
