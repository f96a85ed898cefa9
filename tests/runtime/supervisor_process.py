"""A web process that does nothing but supervise: `python -m tests.runtime.supervisor_process DATA`."""

import sys
import time
from pathlib import Path

from app.jobs.database import Database
from app.jobs.engines import EngineRegister
from app.jobs.folders import DataFolders
from app.runtime.supervisor import Supervisor, SupervisorOptions


def main() -> None:
    data = Path(sys.argv[1])
    command = (sys.executable, "-m", "tests.runtime.engine_process", "--data", str(data))
    with (
        Database(DataFolders(data).database) as database,
        Supervisor(EngineRegister(database), SupervisorOptions(command=command)),
    ):
        time.sleep(600)


if __name__ == "__main__":
    main()
