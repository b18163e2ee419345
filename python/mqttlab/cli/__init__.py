"""The command line: ``mqttlab check | run | import | report | export | list | networks | doctor``.

Exit statuses are those of :mod:`mqttlab.cli.status`.
"""

from mqttlab.cli import commands, imports
from mqttlab.cli.main import main

EXIT_STATUS = ("Exit status: 0 done; 1 failed; 2 wrong input, nothing was made; 3 a run ended early, its recording is "
               "kept.")

# In the list of commands a first sentence would be cut off.
SHORT = {
    "calibrate": "Estimate a broker's service time from a recording.",
    "catalog": "Find, export and annotate recordings.",
    "compare": "Compare two runs, or groups of runs.",
    "doctor": "Print what this machine can do.",
    "experiment": "Run a scenario at every point of a design.",
    "explain": "Explain where a message's time went, frame by frame.",
    "export": "Export a recording for other programs.",
    "import": "Make recordings from captures and logs.",
    "list": "List recordings.",
    "networks": "List the named networks, or measure one.",
    "new": "Write a commented scenario from the gallery.",
    "report": "Print the tables of a recording, and write its page.",
    "run": "Run a scenario and report it.",
    "schema": "Print the JSON Schema of scenarios or experiments.",
    "study": "Rerun a published experiment.",
}
for name, words in SHORT.items():
    main.commands[name].short_help = words

for command in (main, *main.commands.values(), *imports.import_.commands.values(),
                *commands.catalog.catalog.commands.values(), *commands.queue.queue.commands.values()):
    # Where a command's own help lists its statuses, the general line would contradict it.
    if "Exit status, of several" not in (command.help or ""):
        command.epilog = EXIT_STATUS

__all__ = ["EXIT_STATUS", "main"]
