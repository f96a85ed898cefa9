"""What a person asked for: frozen, validated at the door, kept as JSON."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.media.choices import CodecChoice

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
        codec: `auto` plays everywhere unless the input needs more; `like-input` is the input's own where
            possible, and then at about the input's quality, whatever `quality` says.
        encoder: Who encodes; hardware only where it works.
        dynamic_range: `sdr` makes 8-bit BT.709 of HDR video; SDR video is left alone by both.
    """

    quality: int = Field(default=80, ge=0, le=100, title="Quality")
    preset: Preset = Field(default="veryfast", title="Encoder speed")
    codec: CodecChoice = Field(default="auto", title="Video codec")
    encoder: Literal["software", "hardware"] = Field(default="software", title="Encoder")
    dynamic_range: Literal["keep", "sdr"] = Field(default="keep", title="HDR video")


class Timing(_Asked):
    """Which part of a video is made, and how many frames a second it gets.

    Attributes:
        start_s: The first frame shown at or after it becomes the first one.
        end_s: Frames from here on are left out; `None` is the end.
        fps: A steady rate; `None` keeps every frame and its time.
    """

    start_s: float = Field(default=0, ge=0, allow_inf_nan=False)
    end_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    fps: float | None = Field(default=None, gt=0, le=240, allow_inf_nan=False)

    @model_validator(mode="after")
    def _ends_behind_its_start(self) -> "Timing":
        if self.end_s is not None and self.end_s <= self.start_s:
            raise ValueError("end_s must be behind start_s")
        return self


class RenderSpec(_Asked):
    """One job: these faces, on that target, with these steps, into that file."""

    sources: tuple[Path, ...] = Field(min_length=1)
    target: Path
    output: Path
    consent: ConsentBasis
    steps: tuple[Step, ...] = Field(default=(Step(processor="face_swapper"),), min_length=1)
    face_map: FaceMap = Field(default_factory=FaceMap)
    encoding: OutputChoices = Field(default_factory=OutputChoices)
    timing: Timing = Field(default_factory=Timing)
