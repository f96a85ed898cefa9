"""Renders a spec in a process whose files may not grow beyond so many bytes, and tells the error: `SPEC BYTES`.

The limit holds for the whole process, so that other tests' threads could not write in it either.
"""

import resource
import sys

from app.pipeline.spec import RenderSpec
from tests.runtime.test_executor import BreakingZoo, render


def main() -> None:
    spec = RenderSpec.model_validate_json(sys.argv[1])
    size, most = int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    outcome = render(BreakingZoo(), spec)
    sys.stdout.write(type(outcome.error).__name__)


if __name__ == "__main__":
    main()
