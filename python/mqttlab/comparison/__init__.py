"""Two runs, or two groups of runs, side by side: differences with intervals, shifts of quantiles, message by message.

Whoever made the recordings, what is compared is the same. The first side is the reference.

Raises:
    ComparisonError: the runs cannot be compared as asked.
"""

from mqttlab.comparison.messages import ByMessage
from mqttlab.comparison.quantiles import Shift, shifts
from mqttlab.comparison.result import Comparison, compare
from mqttlab.comparison.scenarios import scenario_changes
from mqttlab.comparison.sides import ComparisonError, Side, changed, gather, pairs, side
from mqttlab.comparison.values import Row, rows

__all__ = ["ByMessage", "Comparison", "ComparisonError", "Row", "Shift", "Side", "changed", "compare", "gather",
           "pairs", "rows", "scenario_changes", "shifts", "side"]
