"""An engine in a process of its own, over a fake executor: `python -m tests.runtime.engine_process --data DIR ...`."""

import argparse
import os
from pathlib import Path

from app.jobs.database import Database
from app.jobs.engines import EngineRegister
from app.jobs.folders import DataFolders
from app.jobs.store import JobStore, LeaseTerms
from app.runtime.engine import EngineOptions, EngineParts, run_engine
from app.runtime.stopping import stop_when_asked
from tests.jobs.fakes import FakeDesk, FakeExecutor


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="engine-0")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--step-s", type=float, default=0.01)
    parser.add_argument("--lease-s", type=float, default=15.0)
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--call-steps", type=int, default=1)
    parser.add_argument("--parent-fd", type=int)
    parser.add_argument("--tell", type=Path, help="Where to write which GPU it may use.")
    asked = parser.parse_args()
    if asked.tell is not None:
        asked.tell.write_text(os.environ["CUDA_VISIBLE_DEVICES"])
    folders = DataFolders(asked.data)
    terms = LeaseTerms(lease_s=asked.lease_s, max_attempts=asked.attempts)
    with stop_when_asked(asked.parent_fd) as stop, Database(folders.database) as database:
        run_engine(
            EngineParts(
                store=JobStore(database, terms=terms),
                engines=EngineRegister(database),
                folders=folders,
                executor=FakeExecutor(steps=asked.steps, step_s=asked.step_s),
                desk=FakeDesk(steps=asked.call_steps, step_s=0.05),
                options=EngineOptions(name=asked.name, idle_s=0.02, tick_s=0.05, beat_s=0.2),
            ),
            should_stop=stop,
        )


if __name__ == "__main__":
    main()
