"""Reports: a terminal table and a self-contained HTML page, from a recording and nothing else."""

from mqttlab.report.html import write_html
from mqttlab.report.terminal import comparison, terminal

__all__ = ["comparison", "terminal", "write_html"]
