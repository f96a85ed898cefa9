"""The shipped list of models."""

from pathlib import Path

from app.inference.manifest import Manifest

MANIFEST = Manifest.load(Path(__file__).resolve().parents[2] / "models" / "manifest.toml")
