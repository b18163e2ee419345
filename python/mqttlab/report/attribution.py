"""What the reports show of where the time of the messages went."""

from __future__ import annotations

import polars as pl

from mqttlab import figures, metrics
from mqttlab.digits import duration, plain
from mqttlab.figures.drawing import Figure
from mqttlab.recording import Recording
from mqttlab.report import captured
from mqttlab.report.text import number

# In the terminal a part has a row where it takes this much of some QoS level's mean latency.
SHOWN_PERCENT = 0.1


def by_qos(of: Recording | pl.DataFrame, least_percent: float = 0.0) -> pl.DataFrame:
    """One row per part, in the order in which they pass: for each QoS level the mean in ms and the share in %.

    Args:
        of: a recording, or rows of :func:`mqttlab.metrics.attribution`.
        least_percent: parts with a smaller share at every level are left out; :func:`left_out` names them. Parts that
            no message spent any time in always are.
    """
    means = metrics.attribution_by_qos(of)
    if means.is_empty():
        return pl.DataFrame()
    levels = means["qos"].unique().sort().to_list()
    columns = [pl.col("part")]
    wide = means.pivot("qos", index="part", values=["mean_ms", "share_percent"])
    for level in levels:
        columns += [pl.col(f"mean_ms_{level}").round(4).alias(f"QoS {level} (ms)"),
                    pl.col(f"share_percent_{level}").round(1).alias(f"QoS {level} (%)")]
    share = pl.max_horizontal(f"share_percent_{level}" for level in levels)
    return wide.filter((share > 0) & (share >= least_percent)).select(columns)


def left_out(recording: Recording, parts: pl.DataFrame, least_percent: float = 0.0) -> str:
    """A sentence that names the parts which a table of :func:`by_qos` does not have; empty when it has all, and of an
    import: a capture does not tell that a part was nothing."""
    if captured.is_import(recording):
        return ""
    missing = [title for part, title in metrics.part_titles(recording).items() if part not in parts["part"].to_list()]
    if not missing:
        return ""
    how_much = "No time" if least_percent == 0 else f"Less than {plain(least_percent)} % of the time"
    return f"{how_much} went to: {', '.join(missing)}."


def below(recording: Recording, parts: pl.DataFrame) -> list[str]:
    """What is said below the terminal's table of :func:`by_qos`."""
    return [words for words in (left_out(recording, parts, SHOWN_PERCENT), coverage(recording)) if words]


def coverage(recording: Recording) -> str:
    """A sentence on how many of the delivered messages are attributed, and why the others are not."""
    covered = metrics.attribution_coverage(recording)
    words = f"Covers {number(covered.attributed)} of {number(covered.delivered)} deliveries of the run."
    if covered.by_clients:
        words += (f" Of {number(covered.by_clients)} of these no frames were recorded on a client's connection: "
                  "when its socket took and it read their packets is known, network and broker are one part.")
    if not covered.complete:
        reasons = "; ".join(f"{reason} ({number(count)})" for reason, count in covered.reasons.items())
        words += f" Of the others {reasons}."
    return f"{words} {silence(recording)}".rstrip()


def silence(recording: Recording) -> str:
    """A sentence on the groups whose control packets nobody could write down; empty when there are none."""
    silent = metrics.silent_groups(recording)
    if not silent:
        return ""
    told = "; ".join(f"{why} ({', '.join(groups)})" for why, groups in silent.items())
    return f"No frames recorded for some groups, and no rows in control_packets: {told}."


def drawn(recording: Recording) -> list[Figure]:
    """A stacked bar for each QoS level, and for each band of its latency."""
    titles = metrics.part_titles(recording)
    return [figures.attribution_stack(metrics.attribution_by_qos(recording), titles),
            figures.attribution_stack(metrics.attribution_by_band(recording), titles)]


def accuracy(recording: Recording) -> str:
    """A sentence on how far the parts can be trusted, or why there are none."""
    gap = metrics.attribution_gap(recording) is not None
    known = pl.Series() if gap else recording.summary("attribution", ["adjusted_ns"])["adjusted_ns"].drop_nulls()
    if known.is_empty():
        return f"Where the time went is not known. {coverage(recording)}"
    worst = float(known.quantile(0.999) or 0)
    agree = "do not contradict each other"
    if worst:
        agree = f"disagree by at most {duration(worst)} in 99.9 % of these deliveries"
    return (f"{coverage(recording)} The parts of each message add up to its latency. They were read from instants that "
            f"{agree}.")
