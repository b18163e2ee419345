"""The command line: ``mqttlab check | run | import | report | export | list | networks | doctor``.

Exit statuses are those of :mod:`mqttlab.cli.status`.
"""

from mqttlab.cli import imports
from mqttlab.cli.commands import catalog, dashboard, experiment, new, queue, trial
from mqttlab.cli.main import main

EXIT_STATUS = ("Exit status: 0 done; 1 failed; 2 wrong input, nothing was made; 3 a run ended early, and what it "
               "recorded is kept.")

for command in (main, *main.commands.values(), *imports.import_.commands.values(),
                *catalog.catalog.commands.values(), *queue.queue.commands.values()):
    command.epilog = EXIT_STATUS

__all__ = ["EXIT_STATUS", "dashboard", "experiment", "main", "new", "trial"]
