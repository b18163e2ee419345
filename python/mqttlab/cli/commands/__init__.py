"""Command lines of the larger commands: options and help, and nothing that takes time to load."""

from mqttlab.cli.commands import catalog, dashboard, experiment, new, queue, trial

__all__ = ["catalog", "dashboard", "experiment", "new", "queue", "trial"]
