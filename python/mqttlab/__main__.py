"""``python -m mqttlab``, and the ``mqttlab`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it in one line, while modules are loaded too."""
    try:
        from mqttlab.cli import main as commands

        commands(prog_name="mqttlab")
    except KeyboardInterrupt:
        sys.stderr.write("mqttlab: interrupted\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
