"""What an experiment says: from its tidy table to estimates, effects, verdicts, trends and recommendations.

Numbers are those of :mod:`mqttlab.statistics`; this room knows points, blocks and responses, and no files.
"""

from mqttlab.analysis.analysis import Analysis, LeftOut, analyse
from mqttlab.analysis.answered import COSTS, SERVERS, Cost, Judged, Total, costs_of, totals
from mqttlab.analysis.design import ExperimentDesign, Factor
from mqttlab.analysis.methods import methods
from mqttlab.analysis.recommendation import AsGood, Recommendation, Recommendations
from mqttlab.analysis.responses import Compared, Line, PointEstimate, Response

__all__ = ["COSTS", "SERVERS", "Analysis", "AsGood", "Compared", "Cost", "ExperimentDesign", "Factor", "Judged",
           "LeftOut", "Line", "PointEstimate", "Recommendation", "Recommendations", "Response", "Total", "analyse",
           "costs_of", "methods", "totals"]
