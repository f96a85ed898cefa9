"""Renders one clip with the whole program and tells its peak memory: `FACE CLIP OUTPUT MODELS`."""

import json
import sys
from pathlib import Path

from app import bootstrap
from app.config import Settings
from app.pipeline.spec import RenderSpec
from app.runtime.benchmark import peak_bytes


def main() -> None:
    face, clip, output, models = (Path(each) for each in sys.argv[1:])
    workbench = bootstrap.workbench(Settings(models_dir=models))
    spec = RenderSpec(sources=(face,), target=clip, output=output, consent="public-domain")
    result = workbench.render(spec)
    told = {"frames": result.frames, "swapped": result.frames_swapped, "peak_bytes": peak_bytes()}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
