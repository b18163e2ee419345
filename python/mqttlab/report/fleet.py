"""What a page shows of many links, connections and devices: their sum, how they are distributed, and the worst."""

from __future__ import annotations

import polars as pl

from mqttlab import metrics
from mqttlab.foreign import markup, visible
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report.pages import html_table, text_table
from mqttlab.report.text import heading, number, unit

# More rows of one kind than these are summed up.
LISTED = 20
WORST = 10
SHARES = (0.0, 0.5, 0.95, 1.0)
DISTRIBUTED = ("undelivered_percent", "latency_ms_mean", "latency_ms_p50", "latency_ms_max", "ip_kb_per_device_hour_up",
               "ip_kb_per_device_hour_down")


def links(table: pl.DataFrame, columns: tuple[str, ...]) -> str:
    """A table of links."""
    if table.height <= LISTED:
        return html_table(table, columns)
    whole = pl.DataFrame({"of": [f"all {table.height} links"], **{
        name: [table[name].sum()] for name in ("frames", "bytes", "frames_dropped")}})
    worst = table.sort("frames_dropped", "queue_wait_ms_max", descending=True, nulls_last=True).head(WORST)
    return (html_table(whole, tuple(whole.columns))
            + f"<h3>The {WORST} links that dropped most</h3>" + html_table(worst, columns))


def without_many(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of a table with a column ``scope`` the rows that are listed, and the worst of the links where these are many."""
    of_links = table.filter(pl.col("scope") == "link")
    if of_links.height <= LISTED:
        return table, of_links.clear()
    return table.filter(pl.col("scope") != "link"), most_repeated(of_links)


def most_repeated(table: pl.DataFrame) -> pl.DataFrame:
    """The rows with the most segments that were sent again, then with the most bytes."""
    order = [name for name in ("retransmissions", "tcp_analysis_retransmissions", "bytes") if name in table.columns]
    return table.sort(order, descending=True, nulls_last=True, maintain_order=True).head(WORST)


def members(table: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows of :func:`mqttlab.metrics.members` that are listed, where there are many those with the fewest and the
    most messages, and what is to be said of them."""
    words = "Who got the messages of the measurement."
    if table.height <= LISTED:
        return table, words
    ordered = table.sort("messages_delivered", maintain_order=True)
    shown = pl.concat([ordered.head(LISTED // 2), ordered.tail(LISTED // 2)])
    return shown, f"{words} Of {number(table.height)} members the {LISTED // 2} with the least and with the most."


def devices(recording: Recording) -> str:
    """A section on single clients: those of groups that have many as a distribution, with the worst ones, and the worst
    ones of all others; empty where there are no two."""
    each = metrics.messages_by_device(recording)
    if each.is_empty():
        return ""
    rates = metrics.by_device(recording)
    if not rates.is_empty():
        each = each.join(rates.drop("group"), on="client", how="left", maintain_order="left")
    groups = [each.filter(pl.col("group") == group) for group in each["group"].unique(maintain_order=True)]
    parts = [_group(of["group"][0], of) for of in groups if of.height > WORST]
    if few := [of for of in groups if of.height <= WORST]:
        rows = pl.concat(few)
        shown, words = worst(rows)
        if rows.height > 1:
            parts.append(f"<h2>Clients</h2><p>{markup(words)}</p>"
                         + html_table(shown, ("client", "group", *_counted(shown))))
    return f"<section>{''.join(parts)}</section>" if parts else ""


def worst(each: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The clients that are shown of :func:`mqttlab.metrics.messages_by_device`, the worst first, and what is to be said
    of them."""
    which = f"the {WORST} worst" if each.height > WORST else "all"
    return metrics.worst_first(each).head(WORST), (
        f"Of {counted(each.height, 'client')} {which}: least delivered first, then the largest median. Who publishes "
        "is judged by what was sent, any other by what it received.")


def _known(each: pl.DataFrame) -> list[str]:
    return [name for name in DISTRIBUTED if name in each.columns and each[name].null_count() < each.height]


def _counted(each: pl.DataFrame) -> tuple[str, ...]:
    return ("deliveries_expected", "messages_delivered", *_known(each))


def _title(name: str) -> str:
    title = f"{heading(name)} latency" if name.startswith("latency") else heading(name)
    return f"{title} ({unit(name)})" if unit(name) else title


def _group(group: str, each: pl.DataFrame) -> str:
    known = _known(each)
    rows = [(_title(name), *(number(float(each[name].quantile(share, "linear") or 0), 3) for share in SHARES))
            for name in known]
    some = each.filter(pl.col("undelivered_percent") > 0).height
    words = (f"{counted(some, 'device')} of {number(each.height)} did not have all messages delivered." if some
             else f"All messages of all {number(each.height)} devices were delivered.")
    return (f"<h2>{markup(visible(f'Devices: {group}'))}</h2><p>{markup(words)}</p>"
            + text_table(("over devices", "least", "median", "p95", "most"), rows)
            + f"<h3>The {WORST} worst: least delivered, then slowest</h3>" + html_table(
                metrics.worst_first(each).head(WORST), ("client", *_counted(each))))
