"""Reports of a comparison: on the terminal, and as one HTML page."""

from mqttlab.report.comparison.answer import document
from mqttlab.report.comparison.page import write_comparison, write_several
from mqttlab.report.comparison.terminal import print_comparison, print_several

__all__ = ["document", "print_comparison", "print_several", "write_comparison", "write_several"]
