"""What the application saw: messages offered, sent, delivered, lost; how long they took."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab.metrics import flow, sums
from mqttlab.metrics.flow import FLOW
from mqttlab.metrics.undelivered import with_undelivered
from mqttlab.metrics.window import Window, is_measured, measurement
from mqttlab.recording import Recording, looked_up
from mqttlab.statistics import batch_correlation, batch_means_ci95
from mqttlab.words import EXPECTED_FATES

NS_PER_MS = 1e6
FIRST_DELIVERY = pl.col("fate") == "delivered"
# A publisher and a sequence in one number, which is quicker to tell apart.
MESSAGE = pl.col("publisher").cast(pl.UInt64) * 2**32 + pl.col("sequence")
# What the latencies of some deliveries say, in the order of a table's columns.
LATENCIES = ("latency_ms_min", "latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99",
             "latency_ms_max", "latency_ms_std", "latency_ms_mean_ci95", "latency_batches_correlation")
# Columns that name a group of the scenario.
OF_GROUPS = ("group", "name", "publisher_group", "subscriber_group")
DELIVERED = (*FLOW, "intended_s", "latency_ms")
# Columns of which most runs have one value.
ALIKE = (*FLOW, "_whole")
# So many parts of a table are taken out of it one after the other, so that all of them are never there beside it.
PARTS_ONE_BY_ONE = 16
# Copies from a broker's store, which say nothing of the way of a message, and how long ago it was sent.
RETAINED = pl.col("fate") == "retained"
AGE_S = (pl.col("received_ns").cast(pl.Int64) - pl.col("sent_ns").cast(pl.Int64)) / 1e9
# What was to be delivered, whatever became of it.
EXPECTED = pl.col("fate").is_in(EXPECTED_FATES)


def deliveries(recording: Recording, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """First deliveries of the measurement's messages, in the order of their intended sending.

    Columns: those of :data:`mqttlab.metrics.flow.FLOW`, ``intended_s`` (since the measurement began),
    ``latency_ms``; or only those of them that are asked for.
    """
    names = flow.names(recording)
    words = {name: pl.Enum(list(dict.fromkeys(each))) for name, each in names.items()}
    if not has_messages(recording):
        kinds: tuple[Any, ...] = (*words.values(), pl.UInt8, pl.Float64, pl.Float64)
        empty = pl.DataFrame(schema=dict(zip(DELIVERED, kinds, strict=True)))
        return empty if columns is None else empty.select(columns)
    delivered = _delivered(recording)
    if columns is None or "intended_s" in columns:
        delivered = delivered.with_columns(_intended_s(recording))
    found = delivered.lazy()
    if delivered["latency_ms"].null_count() or ("qos" not in _constants(recording) and delivered["qos"].null_count()):
        # A run that was killed, or goes on, may have written a delivery and not yet what was sent.
        found = found.filter(pl.col("latency_ms").is_not_null(), pl.col("qos").is_not_null())
    found = found.select(
        *(looked_up(name, pl.Series(each, dtype=words[name])) if each else pl.lit(None, words[name]).alias(name)
          for name, each in names.items()), pl.exclude(*names))
    # Of those that are not asked for none is made.
    return found.select(DELIVERED if columns is None else columns).collect()


def flow_latencies(recording: Recording) -> Iterator[tuple[flow.Key, pl.Series]]:
    """Each flow, and its latencies in ms in the order of sending; nothing of a run with a sample of them."""
    if not has_messages(recording) or sums.is_summed(recording):
        return
    for key, part in _parts(_delivered(recording), list(FLOW), _constants(recording)):
        yield flow.key_of(key, recording), part["latency_ms"].drop_nulls()


def application(recording: Recording, by: Sequence[str] = ("qos",)) -> pl.DataFrame:
    """The application-layer table: a row for each value of ``by``, in order.

    Args:
        by: any of :data:`mqttlab.metrics.flow.FLOW`, and ``topic``; none for one row of everything.
    """
    return recording.derived(f"application by {', '.join(by)}", functools.partial(_application, tuple(by)))


def _application(by: tuple[str, ...], recording: Recording) -> pl.DataFrame:
    if not has_messages(recording):
        return pl.DataFrame()
    if set(by) < set(FLOW):
        finest = application(recording, FLOW)
        # Most runs have one group of publishers at each QoS level, or one in all: then the rows are the same ones.
        if finest.height == (finest.n_unique(by) if by and finest.height else 1):
            return in_order(recording, finest.select(*by, pl.exclude(FLOW)), by) if by else finest.drop(FLOW)
    keys = list(by) or ["_whole"]
    if sums.is_summed(recording):
        return _of_sums(recording, keys)
    messages = measured(recording)
    table = recording.collect(_counts(messages, keys, is_once=is_once(recording)))
    if table.is_empty():
        return pl.DataFrame()
    table = with_undelivered(recording, messages, table, keys)
    delivered = _delivered(recording) if "topic" not in by else _in_order(recording, "topic")
    latencies = _latencies(delivered, keys, _constants(recording))
    window = measurement(recording)
    for part in (latencies, _received(recording, keys, window), _written(recording, keys, window)):
        table = table.join(part, on=keys, how="left", nulls_equal=True)
    table = table.with_columns(
        pl.col("throughput_per_s", "goodput_kbit_s", "effective_throughput_kbit_s").fill_null(0.0))
    table = _with_disconnects(recording, messages, table, keys)
    return in_order(recording, flow.with_names(table, recording), keys).drop("_whole", strict=False)


def _of_sums(recording: Recording, keys: list[str]) -> pl.DataFrame:
    if "topic" in keys:
        # Sums are not by topic.
        return pl.DataFrame()
    table = sums.counts(recording, keys, measurement(recording).seconds)
    if table.is_empty():
        return table
    table = _with_disconnects(recording, sums.taking_part(recording, keys), table, keys)
    return in_order(recording, table, keys).drop("_whole", strict=False)


def in_order(recording: Recording, table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A table sorted by its keys; names of groups and publications are in the order in which the scenario has them, as
    everywhere."""
    names = flow.group_names(recording)
    known = dict.fromkeys(OF_GROUPS, names) | {"publication": flow.publications(recording)}

    def place(key: str) -> pl.Expr:
        if key not in known:
            return pl.col(key)
        places = {name: place for place, name in enumerate(known[key])}
        return pl.col(key).replace_strict(places, default=len(places), return_dtype=pl.UInt32)

    return table.sort([place(key) for key in keys], maintain_order=True)


def has_messages(recording: Recording) -> bool:
    """Whether a message was recorded."""
    return "fate" in recording.scan("messages").collect_schema()


def _grouped(recording: Recording, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    """The messages, or so many of their rows, with what names their flows as numbers."""
    return flow.numbered(recording.scan("messages").slice(first, length), recording).with_columns(_whole=pl.lit(True))


def measured(recording: Recording, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    """Rows of the measurement's messages, of so many of all rows. A will is no message of a client's."""
    return _grouped(recording, first, length).filter(is_measured(recording), pl.col("fate") != "will")


def _first_deliveries(recording: Recording, column: str, first: int = 0, length: int | None = None) -> pl.LazyFrame:
    return measured(recording, first, length).filter(FIRST_DELIVERY).select(column)


def _delivered(recording: Recording) -> pl.DataFrame:
    """First deliveries in the measurement, in the order of intended sending: what tables of latencies are made of."""
    return recording.derived("delivered in the measurement", _in_order)


def _in_order(recording: Recording, *more: str) -> pl.DataFrame:
    """Of them the groups' numbers, ``qos``, ``latency_ms``, and more.

    A column of one value takes no room. Of ten million deliveries these tables are what a report holds.
    """
    constants = _constants(recording)
    # One column at a time is read and put in its place: sorted at once, the table needs three times its room.
    places = _places(_column(recording, "intended_ns"))
    latencies = _column(recording, "latency_ns")
    latency_ms = np.empty(len(latencies))
    latency_ms[places] = latencies
    del latencies
    latency_ms /= NS_PER_MS
    columns = [pl.Series("latency_ms", latency_ms, nan_to_null=True)]
    varying = [name for name in (*ALIKE, *more) if name not in constants]
    if varying:
        order = pl.Series(np.argsort(places).astype(np.uint32))
        del places
        columns += [recording.collect(_first_deliveries(recording, name))[name].gather(order) for name in varying]
    return pl.DataFrame(columns).with_columns(constants.values())


def _intended_s(recording: Recording) -> pl.DataFrame:
    """When they were to be sent, since the measurement began, in the same order; in a table of their own, as much of
    what is made of latencies does without."""
    intended_s = np.nan_to_num(_column(recording, "intended_ns"), copy=False, nan=-1)
    intended_s.sort()
    unknown = int(np.searchsorted(intended_s, 0))
    intended_s -= measurement_began_ns(recording)
    intended_s /= 1e9
    intended_s[:unknown] = np.nan
    return pl.DataFrame({"intended_s": pl.Series(intended_s, nan_to_null=True)})


def _column(recording: Recording, name: str) -> NDArray[np.float64]:
    """A column of the first deliveries in the measurement, in the order of the table."""
    return recording.read_column("messages", functools.partial(_first_deliveries, recording, name))


def _places(instants: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Where each row lies when they are in the order of these instants, of which unknown ones come first."""
    # The table is in the order of publisher and sequence, which a stable sort keeps.
    order = np.argsort(np.nan_to_num(instants, copy=False, nan=-1), kind="stable")
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    return places


def _constants(recording: Recording) -> dict[str, pl.Expr]:
    """Those of :data:`ALIKE` that are the same for all deliveries in the measurement, as columns."""
    if "constants" not in recording.remembered:
        delivered = measured(recording).filter(FIRST_DELIVERY)
        kinds = delivered.collect_schema()
        told = recording.collect(delivered.select(
            pl.col(ALIKE).min(), pl.col(ALIKE).max().name.suffix("_most"),
            pl.col(ALIKE).null_count().name.suffix("_unknown"), rows=pl.len())).row(0, named=True)
        recording.remembered["constants"] = {
            name: pl.lit(told[name], dtype=kinds[name]).alias(name) for name in ALIKE
            if told[name] == told[f"{name}_most"] and told[f"{name}_unknown"] in (0, told["rows"])}
    known: dict[str, pl.Expr] = recording.remembered["constants"]
    return known


def is_once(recording: Recording) -> bool:
    """Whether no message has two rows: then messages need not be told apart to be counted."""
    if "is once" not in recording.remembered:
        messages = recording.scan("messages").select(message=MESSAGE)
        before = pl.col("message").shift()
        told = recording.collect(messages.select(
            alike=(pl.col("message") == before).any(), is_in_order=(pl.col("message") >= before).all(),
            unknown=pl.col("message").null_count(), rows=pl.len())).row(0, named=True)
        # Engines write them in this order: those of one number are neighbours then, and nothing need be hashed.
        if told["is_in_order"] and not told["unknown"]:
            recording.remembered["is once"] = not told["alike"]
        else:
            numbers = recording.collect(messages.select(pl.col("message").n_unique())).item()
            recording.remembered["is once"] = numbers == told["rows"]
    return bool(recording.remembered["is once"])


def has_both_ways(recording: Recording) -> bool:
    """Whether some messages come back to their publisher and others reach somebody else: no mean is of both."""
    if "sources" not in recording.plan or not has_messages(recording):
        return False
    back = (pl.col("publisher") == pl.col("subscriber")).fill_null(False)
    delivered = measured(recording).filter(FIRST_DELIVERY).select(back=back.sum(), all=pl.len())
    counted = recording.collect(delivered).row(0, named=True)
    return bool(0 < counted["back"] < counted["all"])


def clients(recording: Recording) -> pl.DataFrame:
    """One row per client: who it is, its counts and its timings, as recorded."""
    return recording.clients


def measurement_began_ns(recording: Recording) -> int:
    """When the first message of the measurement was to be sent, in run time; 0 where there was none."""
    if sums.is_summed(recording):
        return sums.span(recording)[0] or 0
    return recording.collect(measured(recording).select(pl.col("intended_ns").min())).item() or 0


def _counts(messages: pl.LazyFrame, keys: list[str], *, is_once: bool) -> pl.LazyFrame:
    def of_messages(which: pl.Expr) -> pl.Expr:
        return which.sum() if is_once else MESSAGE.filter(which).n_unique()

    return (
        messages.group_by(keys)
        .agg(
            messages_offered=of_messages(~pl.col("fate").is_in(["duplicate", "foreign"])),
            messages_unsent=of_messages(pl.col("fate") == "unsent"),
            deliveries_expected=EXPECTED.sum(),
            messages_delivered=FIRST_DELIVERY.sum(),
            messages_lost=(pl.col("fate") == "lost").sum(),
            messages_under_way=(pl.col("fate") == "under_way").sum(),
            messages_unknown=(pl.col("fate") == "unknown").sum(),
            messages_not_decided=(pl.col("fate") == "not_decided").sum(),
            duplicates=(pl.col("fate") == "duplicate").sum(),
            retained_copies=RETAINED.sum(),
            retained_age_s_mean=AGE_S.filter(RETAINED).mean(),
            out_of_order=pl.col("out_of_order").sum(),
            late=pl.col("late").sum(),
        )
        .with_columns(
            messages_sent=pl.col("messages_offered") - pl.col("messages_unsent"),
            messages_lost_percent=pl.when(pl.col("deliveries_expected") > 0).then(
                100.0 * pl.col("messages_lost") / pl.col("deliveries_expected")),
        )
    )


def _latencies(
    delivered: pl.DataFrame, keys: list[str], constants: Collection[str],
) -> pl.DataFrame:
    kinds = {key: delivered.schema[key] for key in keys} | dict.fromkeys(LATENCIES, pl.Float64)
    rows = [key + _of_latencies(part) for key, part in _parts(delivered, keys, constants)]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _parts(
    delivered: pl.DataFrame, keys: list[str], constants: Collection[str],
) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The rows of each value of the keys; without a copy, where there is but one, or of one at a time."""
    varying = [key for key in keys if key not in constants]
    if delivered.height and not varying:
        yield delivered.head(1).select(keys).row(0), delivered
        return
    needed = delivered.lazy().select(*keys, "latency_ms")
    values = delivered.select(keys).unique(maintain_order=True)
    if values.height > PARTS_ONE_BY_ONE:
        yield from needed.collect().partition_by(keys, as_dict=True, include_key=False).items()
        return
    for value in values.rows():
        this = [pl.col(key).eq_missing(pl.lit(part)) for key, part in zip(keys, value, strict=True) if key in varying]
        yield value, needed.filter(this).drop(keys).collect()


def _of_latencies(part: pl.DataFrame) -> tuple[float | None, ...]:
    """The values of :data:`LATENCIES` of deliveries in the order of their sending."""
    # Of a run that was killed it may not be known when a message that came was to be sent.
    known = part["latency_ms"].drop_nulls()
    values: tuple[Any, ...] = (
        known.min(), known.mean(), *(known.quantile(share, "linear") for share in (0.5, 0.95, 0.99)), known.max(),
        known.std(), batch_means_ci95(known.to_numpy()), batch_correlation(known.to_numpy()))
    return tuple(None if value is None else float(value) for value in values)


def _received(recording: Recording, keys: list[str], window: Window) -> pl.DataFrame:
    """What subscribers had for the first time within the window, whenever it was due: a queue that is full when the
    measurement begins is emptied in it, and another one after it."""
    received = _grouped(recording).filter(FIRST_DELIVERY, window.holds(pl.col("received_ns")))
    # 32 bits, as they are stored, hold the sum of some minutes on a quick link.
    payload = pl.col("payload_bytes").cast(pl.Int64).sum()
    return recording.collect(received.group_by(keys).agg(
        throughput_per_s=pl.len() / window.seconds, goodput_kbit_s=payload * 8 / 1000 / window.seconds))


def _written(recording: Recording, keys: list[str], window: Window) -> pl.DataFrame:
    """What publishers could write in the window: as perez2005 counts it, topic, payload and one byte a message."""
    within = window.holds(pl.coalesce("written_ns", "sent_ns"))
    application = (pl.col("topic").str.len_bytes() + pl.col("payload_bytes") + 1).cast(pl.Int64)
    written_rows = _grouped(recording).filter(within).select(*keys, "publisher", "sequence", application=application)
    if not is_once(recording):
        written_rows = written_rows.unique([*keys, "publisher", "sequence"])
    return recording.collect(written_rows.group_by(keys).agg(
        effective_throughput_kbit_s=pl.col("application").sum() * 8 / 1000 / window.seconds))


def _with_disconnects(
    recording: Recording, messages: pl.LazyFrame, table: pl.DataFrame, keys: list[str]
) -> pl.DataFrame:
    """Count unplanned disconnects of the publishers and subscribers that a row is about."""
    events = recording.events
    lost = pl.DataFrame(schema={"client": pl.Int64})
    if not events.is_empty():
        ended = pl.col("kind") == "disconnect"
        if recording.stage is not None:
            ended &= measurement(recording).holds(pl.col("at_ns"))
        lost = events.filter(ended).select(pl.col("client").cast(pl.Int64))
    if lost.is_empty():
        return table.with_columns(disconnects=pl.lit(0, pl.UInt32))
    roles = [messages.select(*keys, client=pl.col(role).cast(pl.Int64)) for role in ("publisher", "subscriber")]
    taking_part = recording.collect(pl.concat(roles).unique())
    counts = taking_part.join(lost, on="client", how="inner").group_by(keys).agg(disconnects=pl.len())
    return table.join(counts, on=keys, how="left", nulls_equal=True).with_columns(
        pl.col("disconnects").fill_null(0)
    )


def _two_percentiles(name: str, samples: NDArray[np.float64]) -> dict[str, float | None]:
    """Of the samples that are numbers. Their order is lost: of all acknowledgements a copy would be large."""
    unknown = np.isnan(samples)
    known = samples[~unknown] if unknown.any() else samples
    p50, p99 = np.quantile(known, [0.5, 0.99], overwrite_input=True).tolist() if known.size else (None, None)
    return {f"{name}_ms_p50": p50, f"{name}_ms_p99": p99}
