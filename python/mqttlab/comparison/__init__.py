"""Two runs, or two groups of runs, side by side: differences with intervals, shifts of quantiles, message by message.

Whoever made the recordings, what is compared is the same. The first side is the reference.

Raises:
    ComparisonError: the runs cannot be compared as asked.
"""

from mqttlab.comparison.changes import Change, change
from mqttlab.comparison.changes import words as words_of_change
from mqttlab.comparison.headlines import Compared
from mqttlab.comparison.messages import ByMessage
from mqttlab.comparison.quantiles import Shift, shifts
from mqttlab.comparison.result import Comparison, compare
from mqttlab.comparison.roles import Role, Roles
from mqttlab.comparison.scenarios import scenario_changes
from mqttlab.comparison.sides import ComparisonError, Side, changed, gather, of_stage, pairs, side
from mqttlab.comparison.values import Row, rows

__all__ = ["ByMessage", "Change", "Compared", "Comparison", "ComparisonError", "Role", "Roles", "Row", "Shift", "Side",
           "change", "changed", "compare", "gather", "of_stage", "pairs", "rows", "scenario_changes", "shifts", "side",
           "words_of_change"]
