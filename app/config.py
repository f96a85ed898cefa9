"""What the operator sets: read once from the environment, in `bootstrap`."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parents[1]


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
    max_upload_bytes: int = Field(default=4 << 30, gt=0, description="largest upload")
    max_queued_jobs: int = Field(default=100, gt=0, description="jobs that may wait")
    max_still_pixels: int = Field(default=100_000_000, gt=0, description="pixels of a still")
    max_side_px: int = Field(default=8192, gt=0, description="longest side of a picture or video")
    max_duration_s: float = Field(default=36_000, gt=0, description="longest video")
    device: Literal["auto", "cuda", "cpu"] = Field(default="auto", description="where networks run")
    threads: int = Field(
        default=0, ge=0, description="threads of one network on the CPU; 0 is one a core"
    )

    @property
    def models_path(self) -> Path:
        """The folder of installed models."""
        return self.models_dir or self.data_dir / "models"
