"""The command line: ``mqttlab check | run | report | export | list | networks | doctor``.

Exit status: 0 done; 1 failed; 2 the user's mistake, nothing was started; 3 a run ended early and what it recorded is
kept.
"""

from mqttlab.cli.main import main

__all__ = ["main"]
