"""What the operator sets: read once from the environment, in `bootstrap`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

ROOT = Path(__file__).resolve().parents[1]
DeviceChoice = Literal["auto", "tensorrt", "cuda", "openvino", "directml", "coreml", "cpu"]
_OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")


class Settings(BaseSettings):
    """Process settings; each is an environment variable `FACEDOCK_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="FACEDOCK_", frozen=True, extra="ignore")

    data_dir: Path = Field(default=ROOT / "data", description="uploads, jobs, results")
    models_dir: Path | None = Field(
        default=None, description="installed models; DATA_DIR/models without it"
    )
    manifest: Path = Field(
        default=ROOT / "models" / "manifest.toml", description="the list of known models"
    )
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8080, ge=1, le=65535, description="port to listen on")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="host names to answer to, comma-separated; * is any; this machine's own without it",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="what goes to the log"
    )
    max_upload_bytes: int = Field(default=4 << 30, gt=0, description="largest upload")
    max_queued_jobs: int = Field(default=100, gt=0, description="jobs that may wait")
    max_still_pixels: int = Field(default=100_000_000, gt=0, description="pixels of a still")
    max_side_px: int = Field(default=8192, gt=0, description="longest side of a picture or video")
    max_duration_s: float = Field(default=36_000, gt=0, description="longest video")
    max_streams: int = Field(default=64, gt=0, description="streams of all kinds in one file")
    max_animation_frames: int = Field(
        default=100_000, gt=0, description="frames of an animated picture"
    )
    detector: str = Field(default="yunet", description="id of the model that finds faces")
    landmarker: str = Field(
        default="face-mesh-attention", description="id of the model that measures faces"
    )
    recognizer: str = Field(default="sface", description="id of the model that tells people apart")
    device: DeviceChoice = Field(default="auto", description="where networks run")
    require_gpu: bool = Field(default=False, description="refuse to start where only the CPU works")
    precision: Literal["auto", "full", "half"] = Field(
        default="auto", description="of networks; auto is half on a GPU where a self-test allows it"
    )
    cuda_graphs: bool = Field(
        default=False, description="record runs on CUDA, network by network where that gains"
    )
    device_crops: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="cut faces where networks run; auto is on CUDA where that is quicker, on works on the CPU too",
    )
    device_memory_bytes: int = Field(
        default=0, ge=0, description="memory of the device for networks; 0 is what is free"
    )
    engines: int = Field(
        default=0, ge=0, le=64, description="engine processes; 0 is one for each GPU, or one"
    )
    threads: int = Field(
        default=0,
        ge=0,
        description="threads of one network on the CPU; 0 is half the cores, shared by the engines",
    )

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return (
            tuple(filter(None, value.replace(" ", "").split(",")))
            if isinstance(value, str)
            else value
        )

    @property
    def answered_hosts(self) -> tuple[str, ...]:
        """Host names that the server answers to, in lower case; empty is any.

        A foreign page whose name suddenly points to this machine (DNS rebinding) could otherwise use the API.
        Whoever listens beyond loopback is reached by names that nobody here can know, unless they are listed.
        """
        if "*" in self.allowed_hosts:
            return ()
        if self.allowed_hosts:
            return tuple(name.lower() for name in self.allowed_hosts)
        return _OWN_NAMES if self.host in _OWN_NAMES or self.host == "::1" else ()

    @property
    def models_path(self) -> Path:
        """The folder of installed models: the one that is set, the data folder's, or where `make` installs them."""
        own, usual = self.data_dir / "models", ROOT / "data" / "models"
        return self.models_dir or (usual if usual.is_dir() and not own.is_dir() else own)
