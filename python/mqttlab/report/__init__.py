"""Reports: the headline, tables for a terminal, and a self-contained HTML page, from a recording and nothing else."""

from mqttlab.report.answer import answer
from mqttlab.report.html import write_html
from mqttlab.report.terminal import terminal

__all__ = ["answer", "terminal", "write_html"]
