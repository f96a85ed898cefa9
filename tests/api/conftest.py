from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.options import ApiOptions
from tests.jobs.fakes import Volume, open_volume

LIMITS = ApiOptions(max_upload_bytes=1 << 20, max_body_bytes=4096, poll_s=0.02)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with open_volume(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def client(volume: Volume) -> Iterator[TestClient]:
    with TestClient(create_app(volume.studio, LIMITS)) as opened:
        yield opened
