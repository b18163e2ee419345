"""The command line: ``mqttlab check | run | import | report | export | list | networks | doctor``.

Exit statuses are those of :mod:`mqttlab.cli.status`.
"""

from mqttlab.cli import commands, imports
from mqttlab.cli.main import main
from mqttlab.cli.status import in_help

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

main.epilog = "Exit status: mqttlab COMMAND --help lists those of each command."
for name, command in main.commands.items():
    command.epilog = in_help(name)
for group in (imports.import_, commands.catalog.catalog, commands.queue.queue):
    for name, command in group.commands.items():
        command.epilog = in_help(f"{group.name} {name}")

__all__ = ["main"]
