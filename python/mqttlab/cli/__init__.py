"""The command line: ``mqttlab check | run | import | report | export | list | networks | doctor``.

Exit status: 0 done; 1 failed; 2 the user's mistake, nothing was started; 3 a run ended early and what it recorded is
kept.
"""

# A group of commands that adds itself.
from mqttlab.cli import imports as imports
from mqttlab.cli.main import main

__all__ = ["main"]
