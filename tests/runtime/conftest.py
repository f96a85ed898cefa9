from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.fakes import Volume, open_volume


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    with open_volume(tmp_path / "data") as opened:
        yield opened
