"""Statistics of experiments: estimates with intervals, effects, verdicts, models and trends. Pure: numbers in,
numbers out.

The run is the unit: every function that takes "values" takes one number a run, unless it says that its samples are of
one run. Where data allow no answer, the answer says so (an infinite bound with a note, ``None``); wrong input is a
``ValueError``. Nothing here knows metrics, recordings or experiments.
"""

from mqttlab.statistics.coverage import WARN_BELOW, batches_coverage, mean_coverage, proportion_coverage
from mqttlab.statistics.distributions import t_quantile
from mqttlab.statistics.drift import Drift, drift
from mqttlab.statistics.effects import Difference, cliffs_delta, difference, hodges_lehmann, ratio_interval
from mqttlab.statistics.factorial import Effect, Factorial, Term, factorial
from mqttlab.statistics.interval import CONFIDENCE, Interval
from mqttlab.statistics.means import (
    batch_correlation,
    batch_means_ci95,
    mean_interval,
    skewed,
    skewness,
    skewness_error,
)
from mqttlab.statistics.planning import runs_for_half_width, smallest_difference
from mqttlab.statistics.proportions import proportion_exact, proportion_interval
from mqttlab.statistics.quantiles import median_interval, quantile_interval, quantile_intervals, samples_needed
from mqttlab.statistics.selection import Selection
from mqttlab.statistics.trends import Fit, Trend, theil_sen, trend
from mqttlab.statistics.verdicts import Direction, Verdict, holm, judge, runs_needed

__all__ = [
    "CONFIDENCE",
    "WARN_BELOW",
    "Difference",
    "Direction",
    "Drift",
    "Effect",
    "Factorial",
    "Fit",
    "Interval",
    "Selection",
    "Term",
    "Trend",
    "Verdict",
    "batch_correlation",
    "batch_means_ci95",
    "batches_coverage",
    "cliffs_delta",
    "difference",
    "drift",
    "factorial",
    "hodges_lehmann",
    "holm",
    "judge",
    "mean_coverage",
    "mean_interval",
    "median_interval",
    "proportion_coverage",
    "proportion_exact",
    "proportion_interval",
    "quantile_interval",
    "quantile_intervals",
    "ratio_interval",
    "runs_for_half_width",
    "runs_needed",
    "samples_needed",
    "skewed",
    "skewness",
    "skewness_error",
    "smallest_difference",
    "t_quantile",
    "theil_sen",
    "trend",
]
