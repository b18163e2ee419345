"""The numbers of a run that people ask for first, flow by flow: what every surface shows before anything else.

Flows are those of :mod:`mqttlab.metrics.flow`. Their counts and latencies are those of
:func:`mqttlab.metrics.application`, their bytes those of :func:`mqttlab.metrics.device_bytes`; nothing is computed
twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from mqttlab.metrics import fates, sums
from mqttlab.metrics.acknowledgements import PACKETS, acknowledgements, round_trips_to_broker
from mqttlab.metrics.application import (
    EXPECTED,
    FIRST_DELIVERY,
    MESSAGE,
    application,
    flow_latencies,
    measured,
)
from mqttlab.metrics.attribution.captured_parts import captured_parts
from mqttlab.metrics.attribution.flows import attribution_by_flow
from mqttlab.metrics.attribution.loss_events import REPEATED, loss_events
from mqttlab.metrics.copies import Copies, copies
from mqttlab.metrics.device_bytes import MONTH, RATES, device_bytes
from mqttlab.metrics.disconnections import disconnections
from mqttlab.metrics.energy import energy
from mqttlab.metrics.flow import FLOW, Key, key_of
from mqttlab.metrics.kept_wills import Wills, broken_wills
from mqttlab.metrics.promises import Broken, broken
from mqttlab.metrics.quantiles import QUANTILES, Bounded, Latency, bounds, latencies
from mqttlab.metrics.stored_copies import StoredCopies, stored_copies
from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording

TYPICAL, SLOWEST = "p0–50", "p99–100"
NAGLE = ("sender_nagle_ns", "broker_nagle_ns")
# Two AA cells, which many devices have: 2,500 mAh at 3 V. Given with every battery life.
BATTERY_WH = 7.5
WHY_UNSENT = "no connection, or the client's queue was full"
WHY_DECLINED = "the broker's CONNACK forbids it"
UNKNOWN_ENDS = ("unknown publisher", "no known subscriber")
"""What the ends of a flow are called that nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Acknowledged:
    """What stands in for deliveries of a flow that has no subscriber in the evidence."""

    packet: str | None
    """``PUBACK`` or ``PUBCOMP``; ``None`` at QoS 0, where MQTT acknowledges nothing."""
    count: int
    missing: int
    """Messages sent of which no acknowledgement is in the evidence; 0 at QoS 0."""
    receivers_known: bool
    """Whether all clients are the run's own, so that nobody was subscribed; else no subscriber was recorded."""
    latency: dict[str, Latency]
    """From the first packet to the last acknowledgement, by ``p50``, ``p95``, ``p99`` and ``max``; empty at QoS 0."""
    round_trip_ms_p50: float | None
    """At QoS 0 TCP's round trip to the broker, of all segments of the group; ``None`` where no segment tells."""
    round_trip_ms_p95: float | None
    round_trips: int = 0
    """Of how many segments these are."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """A part of latencies and its share of their mean."""

    part: str
    percent: float


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Why deliveries of a flow did not happen, and how many."""

    words: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """Kilobytes an hour of one device of a group, on its own access link; ``None`` where no frame tells."""

    group: str
    devices: int
    ip_up: float | None
    ip_down: float | None
    link_up: float | None
    link_down: float | None
    month_mb: float | None = None
    """Megabytes of IP packets in 30 days, both ways."""


@dataclass(frozen=True, kw_only=True)
class Energy:
    """What the radio of one station of a group draws, and how long a battery of ``BATTERY_WH`` would last on that."""

    group: str
    stations: int
    mean_mw: float
    battery_days: float


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What one group publishes for another at one QoS; ``None`` stands for an end that is not known."""

    publishers: str | None
    publication: str | None
    """Which of its publications; ``None`` where it has one, and where that is not known."""
    subscribers: str | None
    qos: int | None
    sent: int
    waiting: int
    """Of those sent, the ones that had not left their client when the run ended: they wait in its session."""
    unsent: int
    """Messages that were due and never sent."""
    retained: int
    """Copies that came from the broker's store. They are no deliveries."""
    stored: StoredCopies | None
    """What new subscriptions were owed from the store; ``None`` where nothing was, or that is not known."""
    expected: int
    delivered: int
    undelivered_percent: float | None
    causes: tuple[Cause, ...]
    latency: dict[str, Latency]
    """By ``p50``, ``p95``, ``p99`` and ``max``."""
    per_s: float
    disconnects: int
    typical: tuple[Share, ...]
    """Where the time of the faster half went, the largest share first; empty where that is not known."""
    slowest: tuple[Share, ...]
    """The same of the slowest hundredth."""
    nagle_percent: tuple[float, float] | None
    """The shares of the mean latency in which Nagle's algorithm held messages back, at the sender and at the broker;
    ``None`` where that is not known."""
    loss_events: int | None
    """On how many events of loss the 99th percentile rests; ``None`` where it rests on something else, or that is not
    known."""
    copies: Copies | None
    """What came more than once; ``None`` where nothing did."""
    broken: Broken | None
    """What was promised and did not happen, beside copies; ``None`` where all was kept."""
    untold: int
    """Deliveries of messages with equal contents, of which cannot be told which is which: they have no latency."""
    acknowledged: Acknowledged | None = None
    """Where no delivery can be seen, as nobody subscribed to these messages, or no subscriber was recorded; else
    ``None``."""
    why_unsent: str = WHY_UNSENT
    late: int = 0
    """Deliveries later than :attr:`late_after_ns`."""
    late_after_ns: int | None = None
    """After how long they are late: of what its two groups say the shorter. ``None`` where neither says so."""

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return Key(self.publishers, self.publication, self.subscribers, self.qos)

    @property
    def wanted(self) -> int:
        """Deliveries that there should have been, also of messages that were never sent; of those of which none
        arrived, the ones that were sent."""
        missing = (self.undelivered_percent or 0.0) / 100
        return self.expected if missing >= 1 else max(self.expected, round(self.delivered / (1 - missing)))

    @property
    def left(self) -> int:
        """Messages that left their clients."""
        return self.sent - self.waiting

    @property
    def never_sent(self) -> bool:
        """Whether it has nothing but messages that were never sent: nobody's subscription tells who would get them."""
        return bool(self.unsent) and not self.sent and not self.expected


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The numbers of a run."""

    flows: tuple[Flow, ...]
    bytes: tuple[Bytes, ...]
    energy: tuple[Energy, ...]
    foreign: int
    """Deliveries that no publisher of the run has sent."""
    wills: tuple[Wills, ...]
    """Wills that came late or not at all."""
    disconnections: tuple[dict[str, Any], ...]
    """Rows of :func:`mqttlab.metrics.disconnections`."""
    measured_s: float


def headline(recording: Recording) -> Headline:
    """The numbers of a recording, whoever made it and however it ended.

    Raises:
        RecordingError: a table cannot be read.
    """
    if "headline" not in recording.remembered:
        recording.remembered["headline"] = Headline(
            flows=_flows(recording), bytes=_bytes(recording),
            # What radios drew is counted over the whole run.
            energy=_energy(recording) if recording.stage is None else (),
            foreign=foreign(recording), wills=broken_wills(recording) if recording.stage is None else (),
            disconnections=tuple(disconnections(recording).to_dicts()), measured_s=measurement(recording).seconds)
    found: Headline = recording.remembered["headline"]
    return found


def foreign(recording: Recording) -> int:
    """Deliveries that no publisher of the run has sent: no table counts them."""
    return int((recording.run.get("messages") or {}).get("foreign") or 0)


def _flows(recording: Recording) -> tuple[Flow, ...]:
    table = application(recording, FLOW)
    if table.is_empty():
        return ()
    causes, timed, parts = _causes(recording), _timed(recording), attribution_by_flow(recording)
    declined = fates.declined(recording)
    if not parts.is_empty():
        parts = parts.with_columns(pl.col("part").cast(pl.String).replace(captured_parts(recording)))
    flows = [replace(_flow(row, causes, timed, parts, declined), late=row["late"],
                     late_after_ns=_late_after(recording, row["publisher_group"], row["subscriber_group"]))
             for row in table.rows(named=True)]
    flows = _with_untold(recording, _with_broken(recording, _with_copies(recording, flows, table), table))
    # Foreign messages alone are no flow of this run: a note counts them.
    flows = [flow for flow in flows if flow.publishers or flow.sent or flow.unsent or flow.expected or flow.delivered]
    return tuple(_with_acknowledged(recording, _with_loss_events(recording, flows)))


def _with_acknowledged(recording: Recording, flows: list[Flow]) -> list[Flow]:
    """Flows that have no receiver get what the broker acknowledged; only for them is it looked up."""
    unseen = [flow for flow in flows if flow.subscribers is None and flow.publishers is not None and flow.sent
              and not flow.expected and not flow.delivered]
    unseen = [flow for flow in unseen if (flow.publishers, flow.qos) not in _had_subscribers(recording)]
    if not unseen:
        return flows
    of_flows = acknowledgements(recording) if any(flow.qos in PACKETS for flow in unseen) else {}
    of_groups = round_trips_to_broker(recording) if any(flow.qos == 0 for flow in unseen) else {}

    plan = recording.plan
    is_known = "sources" not in plan and not any(group.get("program") for group in plan.get("groups") or ())

    def seen(flow: Flow) -> Acknowledged | None:
        found = of_flows.get(flow.key)
        if found is not None:
            return Acknowledged(packet=PACKETS[flow.qos or 0], count=found.acknowledged, receivers_known=is_known,
                                missing=found.sent - found.acknowledged, latency=found.latency, round_trip_ms_p50=None,
                                round_trip_ms_p95=None)
        if flow.qos != 0:
            return None
        trips = of_groups.get(flow.publishers or "")
        return Acknowledged(packet=None, count=0, missing=0, latency={}, receivers_known=is_known,
                            round_trip_ms_p50=trips.p50 if trips else None,
                            round_trip_ms_p95=trips.p95 if trips else None,
                            round_trips=trips.count if trips else 0)

    return [replace(flow, acknowledged=seen(flow)) if flow in unseen else flow for flow in flows]


def _had_subscribers(recording: Recording) -> set[tuple[str | None, int | None]]:
    """By publishers and QoS, the flows to topics that all had subscribers at another time: then nobody was there, and
    none is missing from the evidence. Sums are not by topic, and tell of none."""
    layout = recording.layout
    known = {topic["name"] for topic in layout.get("topics") or () if isinstance(topic, dict)
             and (topic.get("shares") or layout["receivers"][topic["receivers"]])}
    table = application(recording, ("publisher_group", "qos", "topic")) if known else pl.DataFrame()
    if table.is_empty():
        return set()
    topics: dict[tuple[str | None, int | None], set[str]] = {}
    for group, qos, topic in table.select("publisher_group", "qos", "topic").rows():
        topics.setdefault((group, qos), set()).add(topic)
    return {flow for flow, names in topics.items() if names <= known}


def _with_loss_events(recording: Recording, flows: list[Flow]) -> list[Flow]:
    """Only flows of which something was sent again are looked through once more."""
    p99_ms = {flow.key: value for flow in flows
              if (value := flow.latency["p99"].value) is not None and flow.latency["p99"].is_quantile
              and any(share.part in REPEATED for share in flow.slowest)}
    found = loss_events(recording, p99_ms)
    return [replace(flow, loss_events=found.get(flow.key)) for flow in flows]


def _with_copies(recording: Recording, flows: list[Flow], table: pl.DataFrame) -> list[Flow]:
    """Only where something came more than once packets are looked through."""
    extra = {Key.of(row): row["duplicates"] for row in table.rows(named=True)}
    if not any(extra.values()):
        return flows
    found = {} if sums.is_summed(recording) else copies(recording)
    of_sums = {key: Copies(messages=None, extra=count, why=(), at_qos_2=key.qos == 2)
               for key, count in extra.items() if count}
    known = of_sums | found
    return [replace(flow, copies=known.get(flow.key)) for flow in flows]


def _with_broken(recording: Recording, flows: list[Flow], table: pl.DataFrame) -> list[Flow]:
    """What was promised and did not happen. Only where messages were lost, or came out of order, all are looked
    through."""
    found = broken(recording, out_of_order=bool(table["out_of_order"].sum()), lost=bool(table["messages_lost"].sum()))
    # Subscriptions and the store belong to the run, not to a stage of it.
    stored = stored_copies(recording) if recording.stage is None else {}
    waiting = waiting_messages(recording)
    return [replace(flow, broken=found.get(flow.key), stored=stored.get(flow.key), waiting=waiting.get(flow.key, 0))
            for flow in flows]


def waiting_messages(recording: Recording) -> dict[Key, int]:
    """Messages that were handed to their clients' sessions and had not left these when the run ended, by flow.

    Only clients of our own complete runs say when a message was written.
    """
    plan = recording.plan
    programs = any(group.get("program") for group in plan.get("groups") or ())
    if "sources" in plan or programs or not recording.complete or sums.is_summed(recording):
        return {}
    rows = measured(recording).filter(
        pl.col("fate").is_in(["under_way", "unknown", "no_receiver"]), pl.col("sent_ns").is_not_null(),
        pl.col("written_ns").is_null(), pl.col("acknowledged_ns").is_null()).group_by(FLOW).agg(MESSAGE.n_unique())
    return {key_of(key, recording): count for *key, count in recording.collect(rows).rows()}


def _with_untold(recording: Recording, flows: list[Flow]) -> list[Flow]:
    """Only deliveries that were traced by contents, of imports and of programs as clients, can be untold."""
    traced = "sources" in recording.plan or any(group.get("program") for group in recording.plan.get("groups") or ())
    if not traced or sums.is_summed(recording):
        return flows
    untold = measured(recording).filter(FIRST_DELIVERY, pl.col("identified").cast(pl.String) == "ambiguous")
    found = {key_of(key, recording): count for *key, count in
             recording.collect(untold.group_by(FLOW).agg(pl.len())).rows()}
    return [replace(flow, untold=found.get(flow.key, 0)) for flow in flows]


def _late_after(recording: Recording, *groups: str | None) -> int | None:
    said = recording.layout.get("late_after_ns")
    # One number was for all groups.
    return said if isinstance(said, int) else min(
        (said[group] for group in groups if said and group in said), default=None)


def _flow(row: dict[str, Any], causes: dict[Key, tuple[Cause, ...]], timed: dict[Key, _Timed], parts: pl.DataFrame,
          declined: set[str]) -> Flow:
    key = Key.of(row)
    # Sums have no single latencies, and one of each delivery.
    known = timed.get(key) or _Timed(n=row["messages_delivered"], alike=None, bounds={})
    quantiles: dict[str, Bounded] = {name: (row[f"latency_ms_{name}"], *known.bounds.get(name, (None, None)))
                                     for name in QUANTILES}
    latency = latencies(quantiles, row["latency_ms_max"], known.n, known.alike)
    why = causes.get(key, ())
    why_unsent = WHY_DECLINED if row["publisher_group"] in declined else WHY_UNSENT
    if row["messages_unsent"]:
        why = (*why, Cause(words=f"never sent: {why_unsent}", count=row["messages_unsent"]))
    return Flow(
        **key._asdict(), sent=row["messages_sent"], unsent=row["messages_unsent"], expected=row["deliveries_expected"],
        delivered=row["messages_delivered"],
        undelivered_percent=row["undelivered_percent"], causes=why, latency=latency, per_s=row["throughput_per_s"],
        disconnects=row["disconnects"], typical=_shares(parts, key, TYPICAL), slowest=_shares(parts, key, SLOWEST),
        nagle_percent=_nagle_percent(parts, key), loss_events=None, copies=None, broken=None,
        untold=0, waiting=0, retained=row["retained_copies"], stored=None, why_unsent=why_unsent)


def _causes(recording: Recording) -> dict[Key, tuple[Cause, ...]]:
    refused = fates.refusals(recording)
    if sums.is_summed(recording):
        of_sums: dict[Key, list[Cause]] = {}
        for row in sums.absent(recording, FLOW).rows(named=True):
            why = Cause(words=fates.in_words(row["fate"], row["cause"], refused.get(row["publisher_group"], "")),
                        count=row["count"])
            of_sums.setdefault(Key.of(row), []).append(why)
        return {key: tuple(told) for key, told in of_sums.items()}
    missing = measured(recording).filter(EXPECTED, ~FIRST_DELIVERY).group_by(*FLOW, "fate", "cause").agg(
        count=pl.len())
    found: dict[Key, list[Cause]] = {}
    rows = recording.collect(missing).with_columns(pl.col("fate", "cause").cast(pl.String)).sort(
        "count", "fate", "cause", descending=[True, False, False])
    for *flow, fate, cause, count in rows.rows():
        key = key_of(flow, recording)
        words = fates.in_words(fate, cause, refused.get(key.publishers, ""))
        found.setdefault(key, []).append(Cause(words=words, count=count))
    return {key: tuple(told) for key, told in found.items()}


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """What a flow's latencies say beside the table."""

    n: int
    alike: int | None
    """How many are as large as the largest."""
    bounds: dict[str, tuple[float | None, float | None]]
    """Of each quantile the 95 % interval."""


def _timed(recording: Recording) -> dict[Key, _Timed]:
    """What latencies say of each flow."""
    return {key: _Timed(n=len(its), alike=int((its == its.max()).sum()), bounds=bounds(its.to_numpy())) if len(its) else
            _Timed(n=0, alike=None, bounds={}) for key, its in flow_latencies(recording)}


def _of_flow(parts: pl.DataFrame, key: Key) -> pl.DataFrame:
    return parts.filter(
        pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(FLOW, key, strict=True))


def _nagle_percent(parts: pl.DataFrame, key: Key) -> tuple[float, float] | None:
    if parts.is_empty():
        return None
    time = pl.col("mean_ms") * pl.col("messages")
    whole, sender, broker = _of_flow(parts, key).select(
        time.sum().alias("whole"), *(time.filter(pl.col("part") == part).sum().alias(part) for part in NAGLE)).row(0)
    return (100 * sender / whole, 100 * broker / whole) if whole else None


def _shares(parts: pl.DataFrame, key: Key, band: str) -> tuple[Share, ...]:
    if parts.is_empty():
        return ()
    its = _of_flow(parts, key).filter(pl.col("band") == band)
    told = its.filter(pl.col("share_percent") > 0).sort("share_percent", descending=True, maintain_order=True)
    return tuple(Share(part=part, percent=percent) for part, percent in told.select("part", "share_percent").rows())


def _bytes(recording: Recording) -> tuple[Bytes, ...]:
    table = device_bytes(recording)
    if table.is_empty():
        return ()
    ip_up, ip_down, link_up, link_down = RATES
    return tuple(Bytes(group=row["name"], devices=row["devices"], ip_up=row[ip_up], ip_down=row[ip_down],
                       link_up=row[link_up], link_down=row[link_down], month_mb=row[MONTH])
                 for row in table.rows(named=True) if any(row[name] is not None for name in RATES))


def _energy(recording: Recording) -> tuple[Energy, ...]:
    table = energy(recording)
    if table.is_empty():
        return ()
    found = []
    for row in table.filter(pl.col("scope") == "group").rows(named=True):
        observed_s = row["radio_active_s"] * 100 / row["radio_active_percent"] if row["radio_active_percent"] else 0
        if observed_s and row["stations"]:
            watts = row["energy_j"] / observed_s
            found.append(Energy(group=row["name"], stations=row["stations"], mean_mw=1e3 * watts,
                                battery_days=BATTERY_WH / watts / 24 if watts else math.inf))
    return tuple(found)
