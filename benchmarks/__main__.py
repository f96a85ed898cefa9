"""`python -m benchmarks [NAME]`: one benchmark by its module's name; without one, the table that needs no media."""

import importlib
import sys

NAMES = ("throughput", "flicker", "identity", "media", "people", "pipeline", "startup")


def main() -> None:
    """Run the module whose name comes first; what follows is for the module."""
    name = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in NAMES else NAMES[0]
    importlib.import_module(f"benchmarks.{name}").main()


main()
