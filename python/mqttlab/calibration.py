"""What a recording says about a broker's service time, for the simulated broker to have the same.

The simulated broker takes ``per_packet`` for each control packet that arrives, then ``per_copy`` for each copy of the
message, one after the other: copy k of a message leaves ``per_packet + k * per_copy`` after the message was complete.
Both are read off messages behind which nothing waited:

- the broker was idle: it had sent every copy of the message before, and no other control packet came to it until the
  last copy of this one had left;
- every copy could leave at once: when the message came, all that had been sent on the copy's connection was
  acknowledged (Nagle's algorithm waits for that), or, where the plan says that Nagle's algorithm is off, all but
  less than an initial window.

Medians over messages keep a scheduler's hiccups out. The jitter is what is left of the time to the last copy,
interquartile range over 1.349 (a normal distribution's standard deviation), in units of what the model makes of a
jitter of 1. Times contain what the operating system and the network's emulation add at the broker's end.

Not looked at: QoS 2, whose copies wait for the publisher's PUBREL; retained messages; copies that were sent again.

Raises:
    CalibrationError: nothing in the recording shows a service time.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mqttlab.errors import MqttlabError
from mqttlab.plan import StoredServer, broker_of, brokers, clients_of
from mqttlab.recording import Recording

NORMAL_QUARTILES = 1.349
SEQUENCE_SPACE = 2**32
ACK = 16
MESSAGES_MIN = 10
# RFC 6928 §2. What is not acknowledged also uses up the window.
INITIAL_WINDOW_BYTES = 14_600
MESSAGE = ("publisher", "sequence", "topic")


class CalibrationError(MqttlabError):
    """A recording shows no service time. The message says what it would need."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The service time of a broker."""

    per_packet_us: float
    per_copy_us: float | None
    """None where no message had two copies: it is in ``per_packet_us`` then."""
    jitter_percent: float
    messages: int
    """Messages that were used."""
    messages_busy: int
    """Left out: the broker was at something else."""
    messages_held: int
    """Left out: a copy was behind data that was not acknowledged."""
    copies: int
    residual_us: tuple[float, float, float, float, float]
    """Measured less modelled time to each copy: 1st, 25th, 50th, 75th and 99th percentile."""
    server: str = "broker"
    """Whose it is."""

    def toml(self) -> str:
        """``[broker.service]`` of a scenario, or the line for its ``[[servers]]``, with its evidence as comments."""
        low, first, median, third, high = self.residual_us
        lines = [
            f"# From {self.messages} messages and their {self.copies} copies; left out:",
            f"# {self.messages_busy} for which the broker was busy, {self.messages_held} with a copy behind data not "
            "yet acknowledged.",
            f"# Measured less modelled time of a copy: median {median:.1f} us,",
            f"# half of them {first:.1f} to {third:.1f} us, 98 % {low:.1f} to {high:.1f} us.",
        ]
        if self.per_copy_us is None:
            lines.append("# No message had two copies: what a copy takes is in per_packet.")
        times = [
            f'per_packet = "{self.per_packet_us:.1f} us"',
            f'per_copy = "{self.per_copy_us or 0:.1f} us"',
            f'jitter = "{min(self.jitter_percent, 100):.1f} %"',
        ]
        if self.server == "broker":
            return "\n".join([*lines, "[broker.service]", *times])
        return "\n".join([f"# For [[servers]] named {self.server!r}.", *lines, f"service = {{ {', '.join(times)} }}"])


def calibrate(recording: Recording, server: str | None = None) -> Calibration:
    """The service time that a recording shows of a broker.

    Args:
        recording: of an emulated network, with packets.
        server: the broker's name; may be left out where there is one.

    Raises:
        CalibrationError: too few messages were served while nothing waited, or there is no such broker.
    """
    if "sources" in recording.plan:
        raise CalibrationError(f"{recording.name} was imported: a capture does not say how its broker was set; "
                               "calibrate a run of mqttlab")
    broker = _the_broker(recording, server)
    packets, segments = _its_packets(recording, broker), recording.packets
    if packets.is_empty() or segments.is_empty():
        raise CalibrationError(f"{recording.name}: no packets were recorded; calibration needs an emulated network, "
                               "such as one with a delay of 1 ms, and `recording.detail = \"full\"`")
    copies = _copies(packets)
    idle = _served_alone(packets, copies)
    settings = (broker_of(broker) or {}).get("settings")
    nagle = settings is None or not settings["tcp_nodelay"]
    host = recording.layout["hosts"][broker["host"]]
    held = _held(segments, host, copies, 0 if nagle else INITIAL_WINDOW_BYTES - 1).join(idle, on=MESSAGE, how="semi")
    used = copies.join(idle, on=MESSAGE, how="semi").join(held, on=MESSAGE, how="anti")
    messages = used.select(MESSAGE).n_unique()
    if messages < MESSAGES_MIN:
        raise CalibrationError(
            f"{recording.name}: {messages} messages at QoS 0 or 1 were served by an idle broker, but {MESSAGES_MIN} "
            "are needed; publish more of them, more slowly")
    return _fit(used, messages, server=broker["name"], busy=copies.select(MESSAGE).n_unique() - idle.height,
                held=held.select(MESSAGE).n_unique())


def _the_broker(recording: Recording, server: str | None) -> StoredServer:
    """The broker of this name, or the one that there is: of several, each has a service time of its own.

    Raises:
        CalibrationError: there is none, or several, or none of this name.
    """
    found = {broker["name"]: broker for broker in brokers(recording.plan)}
    known = ", ".join(found) or "none"
    if server is None and len(found) == 1:
        return next(iter(found.values()))
    if server is None and not found:
        raise CalibrationError(f"{recording.name}: no broker was recorded; calibrate a run that has one")
    if server is None:
        raise CalibrationError(f"{recording.name} has {len(found)} brokers, each with a service time of its own: "
                               f"{known}; say which with --server")
    if server not in found:
        raise CalibrationError(f"{recording.name} has no broker {server!r}; known: {known}")
    return found[server]


def _its_packets(recording: Recording, broker: StoredServer) -> pl.DataFrame:
    """Control packets between a broker and its clients. With a single server they need not be known to be its."""
    packets = recording.collect(recording.scan_captured())
    if packets.is_empty() or len(recording.plan["servers"]) < 2:
        return packets
    groups = clients_of(recording.plan, broker)
    numbers = recording.layout["clients"].of_groups(groups)
    return packets.filter(pl.col("client").is_in(numbers))


def _copies(packets: pl.DataFrame) -> pl.DataFrame:
    """Each copy that the broker sent: ``arrived_ns`` of its message, ``took_ns`` since, ``nth`` of the message's."""
    publishes = packets.filter(
        pl.col("kind") == "PUBLISH", ~pl.col("dup"), ~pl.col("retain"), pl.col("publisher").is_not_null())
    arrived = publishes.filter(
        pl.col("direction") == "to_broker", pl.col("qos") < 2, pl.col("complete_ns").is_not_null(),
    ).unique(MESSAGE, keep="first").select(*MESSAGE, arrived_ns="complete_ns")
    return (
        publishes.filter(pl.col("direction") == "to_client")
        .select(*MESSAGE, "connection", "stream_start", "first_sent_ns")
        .join(arrived, on=MESSAGE)
        .filter(pl.col("first_sent_ns") >= pl.col("arrived_ns"))
        .with_columns(
            took_ns=pl.col("first_sent_ns") - pl.col("arrived_ns"),
            nth=pl.col("first_sent_ns").rank("ordinal").over(MESSAGE).cast(pl.Int64),
        )
    )


def _served_alone(packets: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Messages between whose arrival and last copy the broker got nothing else and had nothing else to send."""
    served = copies.group_by(MESSAGE).agg(pl.col("arrived_ns").first(), last_ns=pl.col("first_sent_ns").max())
    requests = (
        packets.filter(pl.col("direction") == "to_broker", pl.col("complete_ns").is_not_null())
        .select(*MESSAGE, arrived_ns="complete_ns")
        .join(served, on=[*MESSAGE, "arrived_ns"], how="left", nulls_equal=True)
        .sort("arrived_ns")
        .with_columns(busy_until_ns=pl.col("last_ns").fill_null(pl.col("arrived_ns")))
    )
    before, after = pl.col("busy_until_ns").cum_max().shift(1), pl.col("arrived_ns").shift(-1)
    alone = (before < pl.col("arrived_ns")).fill_null(True) & (after > pl.col("busy_until_ns")).fill_null(True)
    return requests.filter(alone, pl.col("last_ns").is_not_null()).select(MESSAGE)


def _held(segments: pl.DataFrame, broker: str, copies: pl.DataFrame, allowed_bytes: int) -> pl.DataFrame:
    """Messages that came while more than so many bytes before one of their copies were not acknowledged.

    As they came, not as the copy left: one that waits for an acknowledgement leaves when everything is acknowledged.
    """
    data = segments.filter(pl.col("from_host") == broker, pl.col("hop") == 0, pl.col("stream_offset").is_not_null(),
                           pl.col("payload_bytes") > 0)
    first_byte = (pl.col("seq").cast(pl.Int64) - pl.col("stream_offset")) % SEQUENCE_SPACE
    origins = data.group_by("connection").agg(origin=first_byte.first())
    acknowledged = (
        segments.filter(pl.col("to_host") == broker, pl.col("hop") + 1 == pl.col("hops"),
                        pl.col("fate") == "delivered", pl.col("flags") & ACK != 0)
        .join(origins, on="connection")
        .select("connection", at_ns="delivered_ns",
                acknowledged=(pl.col("ack").cast(pl.Int64) - pl.col("origin")) % SEQUENCE_SPACE)
        .sort("at_ns")
    )
    sent = copies.sort("arrived_ns")
    known = sent.join_asof(acknowledged, left_on="arrived_ns", right_on="at_ns", by="connection",
                           check_sortedness=False)
    waiting_bytes = pl.col("stream_start") - pl.col("acknowledged").fill_null(0)
    return known.filter(waiting_bytes > allowed_bytes).select(MESSAGE)


def _fit(used: pl.DataFrame, messages: int, *, server: str, busy: int, held: int) -> Calibration:
    """The two times, and what they leave unexplained."""
    by_message = used.sort("nth").group_by(MESSAGE).agg(
        first=pl.col("took_ns").first(), last=pl.col("took_ns").last(), count=pl.len().cast(pl.Int64))
    several = by_message.filter(pl.col("count") > 1)
    slope = several.select(((pl.col("last") - pl.col("first")) / (pl.col("count") - 1)).median()).item()
    per_copy = max(0.0, slope) if slope is not None else 0.0
    per_packet = max(0.0, by_message.select(pl.col("first").median()).item() - per_copy)
    modelled = per_packet + pl.col("nth") * per_copy
    residuals = used.select(us=(pl.col("took_ns") - modelled) / 1000)["us"]
    low, first, median, third, high = (
        float(residuals.quantile(part, "linear") or 0.0) for part in (0.01, 0.25, 0.5, 0.75, 0.99))
    return Calibration(
        per_packet_us=per_packet / 1000, per_copy_us=None if slope is None else per_copy / 1000,
        jitter_percent=100 * _jitter(by_message, per_packet, per_copy), messages=messages, messages_busy=busy,
        messages_held=held, copies=used.height, residual_us=(low, first, median, third, high), server=server,
    )


def _jitter(by_message: pl.DataFrame, per_packet: float, per_copy: float) -> float:
    """The relative deviation of each single service time that explains how the time to the last copy varies."""
    one = (per_packet**2 + by_message["count"] * per_copy**2).sqrt()
    if not one.min():
        return 0.0
    scaled = (by_message["last"] - (per_packet + by_message["count"] * per_copy)) / one
    quartiles = [float(scaled.quantile(part, "linear") or 0.0) for part in (0.25, 0.75)]
    return (quartiles[1] - quartiles[0]) / NORMAL_QUARTILES
