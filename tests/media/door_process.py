"""Probes files, each in a fork of one warm process, and tells what each cost as JSON: code, seconds, bytes.

A fork starts with the memory that its parent holds, so its peak over that of a fork which does nothing is the file's.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from app.core.errors import AppError
from app.media.limits import MediaLimits
from app.media.probe import probe


def cost(path: Path | None) -> tuple[str, float, int]:
    """Code of the refusal, wall seconds and peak memory of a fork that probes the file."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code, begin = "", time.perf_counter()
        try:
            if path is not None:
                probe(path, MediaLimits())
        except AppError as error:
            code = error.code
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(writer, json.dumps((code, time.perf_counter() - begin, peak)).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as told:
        code, seconds, peak = json.loads(told.read())
    return code, seconds, peak


def main() -> None:
    warm, *paths = (Path(name) for name in sys.argv[1:])
    probe(warm, MediaLimits())
    idle = cost(None)[2]
    # The better of two: a busy machine must not look like a slow door.
    rows = [min(cost(path), cost(path)) for path in paths]
    told = json.dumps([(code, seconds, peak - idle) for code, seconds, peak in rows])
    sys.stdout.write(told)


if __name__ == "__main__":
    main()
