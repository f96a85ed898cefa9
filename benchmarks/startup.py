"""How long a stranger waits: from a fresh clone with nothing cached to a served page, and the second time.

python -m benchmarks.startup
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from app.config import ROOT
from benchmarks.tables import write_table

GIVE_UP_S = 900


def started_s(clone: Path) -> float:
    """Seconds from `make run` until the page's engine is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1"}
    began = time.monotonic()
    process = subprocess.Popen(
        ["make", "run", f"PORT={port}"], cwd=clone, env=environment, start_new_session=True
    )
    try:
        while time.monotonic() - began < GIVE_UP_S:
            try:
                with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=5):
                    return time.monotonic() - began
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the page did not come up")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)


def main() -> None:
    """Measure and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "facedock"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = [
            (name, f"{started_s(clone):.1f}")
            for name in ("first start: packages, models, page", "second start", "third start")
        ]
    write_table("startup", "From `make run` to a ready page", ("what", "seconds"), rows,
                "Fresh clone, no package cache; packages come over this machine's network.")  # fmt: skip


if __name__ == "__main__":
    main()
