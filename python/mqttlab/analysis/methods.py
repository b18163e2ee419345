"""The methods of an analysis as a paragraph that can be pasted into a paper."""

from __future__ import annotations

from mqttlab.analysis.analysis import Analysis
from mqttlab.digits import plain


def methods(analysis: Analysis) -> str:
    """How the experiment was done and judged, in full sentences; nothing in it that was not done."""
    design = analysis.design
    counts = sorted({len(point.values) for each in analysis.responses for point in each.points})
    points = max((len(each.points) for each in analysis.responses), default=0)
    said = [f"The experiment {design.name} is a {design.kind} design of {_factors(analysis)}: {points} points, "
            f"{_range(counts)} runs of each, {analysis.runs} runs that count."]
    if design.resolution is not None:
        said.append(f"The design has resolution {design.resolution}; " + "; ".join(design.aliases) + ".")
    said.append("Runs were done in blocks that hold every point once, in random order." if
                design.order == "random-blocks" else "Runs were done in the order of the points.")
    if design.common_seeds:
        said.append("All points of a block have the same random streams, so that points are compared in pairs.")
    if design.stopping:
        said.append(f"Repetitions ended by rule: {design.stopping}.")
    if analysis.controls:
        said.append(f"{analysis.controls} control runs of the reference were interspersed to measure drift.")
    said += [f"{words}: {value}." for words, value in design.names.items()]
    said.append(_left_out(analysis))
    used = sorted({point.interval.method for each in analysis.responses for point in each.points} - {"none"})
    said.append(f"The run is the unit of analysis. Intervals are of {plain(100 * design.confidence)} % "
                f"({', '.join(used) or 'none'}).")
    if analysis.comparisons:
        said.append(
            "Each point was compared with the reference by the difference of means and their ratio (Fieller; latencies "
            "as logarithms, whose ratios are of geometric means); "
            f"equivalence within {plain(100 * design.margin)} % of the reference by two one-sided tests. The p values "
            f"of all {len(analysis.comparisons)} comparisons were adjusted by Holm's method, family-wise "
            f"{plain(design.family)}.")
    modelled = [each for each in analysis.responses if each.model is not None]
    if modelled:
        logs = [each.name for each in modelled if each.logarithm]
        said.append("Effects are of a linear model with main effects, two-way interactions and the block, sums of "
                    "squares of type II" + (f", fitted to the logarithms of {', '.join(logs)}." if logs else "."))
    if any(each.lines for each in analysis.responses):
        said.append("Trends were chosen among constant, linear, logarithmic, power and segmented by AICc.")
    exploratory = [each.name for each in analysis.responses if not each.declared]
    if exploratory:
        said.append(f"Named before the runs were all responses but {', '.join(exploratory)}, which are exploratory.")
    return " ".join(said)


def _factors(analysis: Analysis) -> str:
    factors = analysis.design.factors
    words = [f"{factor.name} ({', '.join(factor.levels[:6])}{', …' if len(factor.levels) > 6 else ''})"
             for factor in factors]
    return ", ".join(words) or "no factor"


def _range(counts: list[int]) -> str:
    return "no" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _left_out(analysis: Analysis) -> str:
    if not analysis.left_out:
        return "No run was left out."
    states: dict[str, int] = {}
    for run in analysis.left_out:
        states[run.state] = states.get(run.state, 0) + 1
    words = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"Runs that failed or were not valid were left out before results were looked at: {words}."
