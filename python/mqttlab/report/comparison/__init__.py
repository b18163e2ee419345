"""Reports of a comparison: on the terminal, and as one HTML page."""

from mqttlab.report.comparison.page import write_comparison
from mqttlab.report.comparison.terminal import print_comparison

__all__ = ["print_comparison", "write_comparison"]
