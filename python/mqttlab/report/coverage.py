"""How many messages each table of a report covers, in a sentence."""

from __future__ import annotations

import polars as pl

from mqttlab import metrics
from mqttlab.metrics import fates, sums
from mqttlab.plurals import counted
from mqttlab.recording import CARRIERS, Recording
from mqttlab.report.text import number
from mqttlab.statistics import WARN_BELOW, batches_coverage

# The cool-down tells of what did not arrive that it was held up where it lasted so many times the p99.
ENOUGH = 3


def application(recording: Recording, table: pl.DataFrame) -> list[str]:
    """What is said below a table of :func:`mqttlab.metrics.application`, a sentence each."""
    told = (messages(table), absent(recording, table), under_way(recording, table), correlated(table))
    return [words for words in told if words]


def messages(table: pl.DataFrame) -> str:
    """Of a table of :func:`mqttlab.metrics.application`."""
    if table.is_empty():
        return ""
    sent, expected, delivered = (int(table[name].sum()) for name in (
        "messages_sent", "deliveries_expected", "messages_delivered"))
    return (f"Covers the messages of the measurement: {number(sent)} sent, "
            f"{counted(expected, 'delivery', 'deliveries')} expected; latencies are those of the {number(delivered)} "
            "that happened.")


def absent(recording: Recording, table: pl.DataFrame) -> str:
    """Of such a table: why what was expected did not arrive, the most frequent reason first; empty where all has."""
    if table.is_empty() or not int((table["deliveries_expected"] - table["messages_delivered"]).sum()):
        return ""
    rows = fates.absent(recording).rows()
    refused = fates.refusals(recording).get(None, "")
    told = ", ".join(f"{number(count)} {fates.in_words(fate, cause, refused)}" for fate, cause, count in rows)
    return f"Of the expected deliveries that did not happen: {told}."


def under_way(recording: Recording, table: pl.DataFrame) -> str:
    """Of such a table: whether the cool-down was long enough to tell of what was under way at the end that it was held
    up, or whether it may only have been slow; empty where nothing was, and where there was no cool-down."""
    window = metrics.measurement(recording)
    if table.is_empty() or not int(table["messages_under_way"].sum()) or recording.events.is_empty():
        return ""
    ended = recording.events["at_ns"].max()
    assert isinstance(ended, int)
    cool_down_ms = (ended - window.until_ns) / 1e6
    if not recording.complete or cool_down_ms < 0:
        return ""
    flows = metrics.application(recording, metrics.FLOW)
    told = (pl.col("latency_ms_p99") * ENOUGH <= cool_down_ms).fill_null(False)
    held = int(flows.filter(told)["messages_under_way"].sum())
    slow = int(flows.filter(~told)["messages_under_way"].sum())
    words = [f"the cool-down of {number(cool_down_ms / 1000)} s was shorter than three times the p99 of their flow for "
             f"{number(slow)}: lengthen it to learn whether they arrive" if slow else "",
             f"it was longer for {number(held)}: something held them up" if slow and held else
             f"the cool-down of {number(cool_down_ms / 1000)} s was longer than three times the p99 of their flow: "
             "something held them up" if held else ""]
    return f"Of those under way at the end, which count as not delivered, {'; '.join(filter(None, words))}."


def correlated(table: pl.DataFrame) -> str:
    """What is to be read before intervals of mean latencies are trusted, of such a table; empty where nothing is."""
    if "latency_batches_correlation" not in table.columns:
        return ""
    most = table["latency_batches_correlation"].max()
    if not isinstance(most, float):
        return ""
    covered = batches_coverage(most)
    if covered is None or covered >= WARN_BELOW:
        return ""
    return (f"Latencies are correlated over more than a twentieth of the run (its batches by {most:.2f}): intervals of "
            f"the mean (± 95 %) cover it in about {100 * covered:.0f} % of such runs, not in 95 %; measure longer, or "
            "repeat.")


def links(recording: Recording, table: pl.DataFrame) -> str:
    """Of :func:`mqttlab.metrics.links`."""
    return f"Covers the whole run: {counted(int(table['frames'].sum()), 'frame')}, {_published(recording)}."


def setup(table: pl.DataFrame) -> str:
    """Of :func:`mqttlab.metrics.setup`."""
    row = table.row(0, named=True)
    return (f"Covers the whole run: {counted(row['connects'], 'connect')}, "
            f"{counted(row['subscriptions'], 'subscription')}, "
            f"{counted(row['messages_acknowledged'], 'acknowledged message')}.")


def efficiency(table: pl.DataFrame) -> str:
    """Of :func:`mqttlab.metrics.efficiency`."""
    sent, received = (int(table[name].sum()) for name in ("messages_sent", "messages_received"))
    return f"Covers {counted(sent, 'message')} sent and {number(received)} received."


def mqtt_sn(table: pl.DataFrame) -> str:
    """Of :func:`mqttlab.metrics.mqtt_sn`."""
    whole = table.filter(pl.col("scope") == "run")
    return f"Covers the whole run: {counted(int(whole['datagrams'].sum()), 'datagram')} between clients and gateways."


def energy(recording: Recording) -> str:
    """Of :func:`mqttlab.metrics.energy`."""
    if sums.is_summed(recording):
        return "Covers the whole run."
    messages = recording.scan("messages")
    delivered = 0
    if "fate" in messages.collect_schema():
        delivered = recording.collect(messages.filter(pl.col("fate") == "delivered").select(pl.len())).item()
    return f"Covers the whole run: {counted(delivered, 'first delivery', 'first deliveries')}."


def processor(recording: Recording) -> str:
    """Of :func:`mqttlab.metrics.processor`; empty where nothing is known."""
    for row in metrics.processor(recording).iter_rows(named=True):
        each = row["server_cpu_us_per_delivery"]
        words = "too little to divide" if each is None else f"{number(each, 3)} µs for each first delivery"
        return f"Processor time of the servers in the measurement: {number(row['server_cpu_s'], 3)} s, {words}."
    return ""


def control_packets(recording: Recording, count: int) -> str:
    """So many control packets of the network layer's count, and those that carry a message."""
    spoken = protocol(recording)
    one, several = ("MQTT packet", "MQTT packets") if spoken == "MQTT" else (
        f"packet of {spoken}", f"packets of {spoken}")
    return f"{counted(count, one, several)}, of which {_published(recording)}"


def carrier(recording: Recording) -> str:
    """What a packet that carries a message is called in the protocol that was spoken."""
    spoken = protocol(recording)
    return {"MQTT": "PUBLISH packet", "ZeroMQ": "ZMTP message"}.get(spoken, f"{spoken} message")


def protocol(recording: Recording) -> str:
    """The protocol that was spoken on the connections to servers."""
    kinds = _carriers(recording)
    return "ZeroMQ" if kinds and set(kinds) == {"MESSAGE"} else "MQTT"


def _published(recording: Recording) -> str:
    return counted(sum(_carriers(recording).values()), carrier(recording))


def _carriers(recording: Recording) -> dict[str, int]:
    sums = recording.summary("packet_sums")
    if sums.is_empty():
        return {}
    kinds = sums.with_columns(pl.col("kind").cast(pl.String)).filter(pl.col("kind").is_in(CARRIERS))
    return dict(kinds.group_by("kind").agg(pl.col("packets").sum()).rows())

