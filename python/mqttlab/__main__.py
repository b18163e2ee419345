"""``python -m mqttlab``, and the ``mqttlab`` command."""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder

# What polars reads when it is loaded: memory that a step has freed is given back before the next one, and one group of
# rows is read ahead. That costs no time that can be measured, and a third less memory.
MEMORY = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0", "POLARS_ROW_GROUP_PREFETCH_SIZE": "1"}
# Nothing that happens to be installed has a say in how a scenario is read; to look for it, pydantic reads the entry
# points of every package that is installed, a tenth of the time of a check.
READING = {"PYDANTIC_DISABLE_PLUGINS": "__all__"}


# Their threads and arithmetic take memory when they are loaded, and end the process where there is none.
READERS_OF_TABLES = {"numpy", "polars", "scipy", "plotly"}


class Asking(MetaPathFinder):
    """Asks whether there is memory for what is about to be loaded, whichever command loads it."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Find nothing: others do."""
        if fullname in READERS_OF_TABLES:
            from mqttlab.memory import need_for_tables

            need_for_tables()


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, while modules are loaded too."""
    for name, value in (MEMORY | READING).items():
        os.environ.setdefault(name, value)
    sys.meta_path.insert(0, Asking())
    try:
        from mqttlab.cli import main as commands

        commands(prog_name="mqttlab")
    except KeyboardInterrupt:
        sys.stderr.write("mqttlab: interrupted\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
