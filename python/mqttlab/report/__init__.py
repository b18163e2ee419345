"""Reports: a terminal table and a self-contained HTML page, from a recording and nothing else."""

from mqttlab.report.html import write_html
from mqttlab.report.terminal import terminal

__all__ = ["terminal", "write_html"]
