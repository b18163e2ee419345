"""Whether a recording's tables are such as an engine writes: kinds of columns, and numbers that name something.

Recordings come by mail and lie on disks for years. What is wrong with one is said in one line that names it: before a
table is read where its bytes (``mqttlab.checks``) or its columns tell, and afterwards, where what was read has led
nowhere (:func:`damage`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.plurals import counted

# What Polars raises of a damaged file; of some it panics.
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# Columns that hold words, yes or no, and numbers. A test holds them to the docs.
TEXTS = {table: frozenset(names.split()) for table, names in {
    "messages": "topic fate cause phase identified",
    "packets": "direction fate cause sack mqtt marks",
    "control_packets": "seen_by transport protocol direction kind topic",
    "network_metrics": "scope direction metric",
    "events": "kind detail",
    "resources": "process",
    "clients": "name group host",
    "tcp_state": "end",
    "positions": "source",
    "payloads": "source",
    "message_sums": "publisher_group subscriber_group phase fate cause",
    "latency_sums": "quantity",
    "attribution": "seen_by unattributed",
    "legs": "topic",
    "holds": "part",
    "named_packets": "identified",
    "frame_sums": "scope group direction",
    "link_sums": "drops_by_cause",
    "slices": "direction",
    "round_trips": "towards",
    "sent_again": "sent_again",
    "carriers": "direction",
    "group_frames": "group",
    "packet_sums": "direction kind",
    "topic_sums": "topic",
}.items()}
FLAGS = {table: frozenset(names.split()) for table, names in {
    "messages": "retain retained dup out_of_order late",
    "control_packets": "dup retain",
    "legs": "relayed at_sender at_broker",
}.items()}
NUMBERS = {table: frozenset(names.split()) for table, names in {
    "messages":
        "publisher sequence publication subscriber qos qos_delivered payload_bytes intended_ns sent_ns "
        "written_ns acknowledged_ns received_ns latency_ns",
    "packets":
        "link hop hops frame from_host to_host entered_ns start_ns sent_ns delivered_ns frame_bytes ip_bytes "
        "protocol source_port destination_port connection seq ack flags window payload_bytes tsval tsecr "
        "stream_offset ack_rtt_ns repetition ecn",
    "control_packets":
        "connection client qos packet_id reason publisher sequence stream_start stream_end fixed_header_bytes "
        "topic_bytes packet_id_bytes property_bytes payload_bytes first_sent_ns complete_ns segments "
        "written_ns read_ns",
    "network_metrics": "connection client value",
    "events": "at_ns client took_ns",
    "resources":
        "at_ns cpu_user_s cpu_system_s rss_bytes switches_voluntary switches_involuntary pressure_cpu_us "
        "pressure_memory_us pressure_io_us run_queue_s faults_minor faults_major steal_s server",
    "clients":
        "client connect_ns suback_ns sent unsent acknowledged acknowledged_mean_ns delivered lost under_way "
        "unknown duplicates out_of_order late foreign disconnects reconnects",
    "tcp_state":
        "at_ns client connection rto_ns srtt_ns congestion_window_bytes slow_start_threshold_bytes "
        "unsent_bytes unacknowledged_bytes",
    "positions": "at_ns client host link x_m y_m longitude_deg latitude_deg altitude_m",
    "payloads": "received_ns subscriber publisher sequence start_bytes kept_bytes",
    "message_sums":
        "publication qos count messages messages_first payload_bytes out_of_order late received received_bytes "
        "written_bytes written_first_bytes wanted intended_first_ns intended_last_ns received_last_ns age_mean_ns "
        "latencies latency_sum_ns latency_deviation_ns latency_least_ns latency_most_ns acknowledged",
    "latency_sums": "sum from_ns to_ns count",
    "attribution":
        "row schedule_ns session_ns sleep_ns register_ns sender_nagle_ns sender_socket_ns retry_ns "
        "queue_to_broker_ns wire_to_broker_ns retransmission_to_broker_ns gateway_ns handshake_ns "
        "undivided_ns broker_ns broker_window_ns broker_nagle_ns broker_socket_ns queue_to_subscriber_ns "
        "wire_to_subscriber_ns retransmission_to_subscriber_ns release_ns delivery_ns sender_unconnected_ns "
        "link_down_ns nat_forgot_ns broker_paused_ns subscriber_unconnected_ns reader_stopped_ns adjusted_ns legs",
    "holds": "leg from_ns until_ns",
    "legs":
        "before up_client begins_ns handed_ns up_packet up_connection up_packet_id up_first_sent_ns "
        "up_ready_ns up_written_ns up_window_ns up_window_packet up_nagle_until_ns up_socket_until_ns "
        "up_held_until_ns up_release_frame up_tried_ns up_resumed_ns up_tail_nagle_until_ns "
        "up_tail_socket_until_ns up_tail_held_until_ns up_tail_release_frame up_frame up_went_ns "
        "up_started_ns up_arrived_ns up_complete_ns up_release_packet up_release_ns ingress_ns down_packet "
        "down_connection down_packet_id down_first_sent_ns down_ready_ns down_window_ns down_window_packet "
        "down_nagle_until_ns down_socket_until_ns down_held_until_ns down_release_frame down_tried_ns "
        "down_resumed_ns down_tail_nagle_until_ns down_tail_socket_until_ns down_tail_held_until_ns "
        "down_tail_release_frame down_frame down_went_ns down_started_ns down_arrived_ns down_complete_ns "
        "down_read_ns down_release_packet down_release_ns handed_on_ns sn_up_packet sn_up_ready_ns "
        "sn_up_sleep_from_ns sn_up_sleep_until_ns sn_up_register_from_ns sn_up_register_until_ns "
        "sn_up_tried_ns sn_up_first_sent_ns sn_up_frame sn_up_went_ns sn_up_started_ns sn_up_complete_ns "
        "sn_down_packet sn_down_sleep_from_ns sn_down_sleep_until_ns sn_down_register_from_ns "
        "sn_down_register_until_ns sn_down_tried_ns sn_down_first_sent_ns sn_down_frame sn_down_went_ns "
        "sn_down_started_ns sn_down_complete_ns sn_down_release_packet sn_down_release_ns qos",
    "named_packets": "packet publisher sequence",
    "frame_sums":
        "connection client link frames bytes ip_bytes tcp_payload_bytes sent_bytes first_ns last_ns "
        "frame_bytes_min frame_bytes_max publish_segments publish_frame_bytes publish_frame_bytes_min "
        "publish_frame_bytes_max connections resets window_reductions segments_with_payload segments_with_data "
        "retransmissions retransmissions_fast retransmissions_timer_or_probe retransmissions_spurious "
        "retransmissions_unknown tcp_analysis_retransmissions tcp_analysis_fast_retransmissions "
        "tcp_analysis_spurious_retransmissions "
        "tcp_analysis_out_of_order tcp_analysis_duplicate_acks tcp_analysis_zero_windows mqtt_packets "
        "publish_packets round_trips rtt_ms_min rtt_ms_mean rtt_ms_p95 rtt_ms_max rto_ms_mean",
    "link_sums":
        "link frames bytes frames_delivered frames_dropped frames_marked sent_bytes busy_ns span_ns frames_waited "
        "wait_ns wait_max_ns rows rows_bytes",
    "slices": "link at_ns length_ns busy_ns link_bytes frame_bytes ip_bytes payload_bytes mqtt_payload_bytes",
    "round_trips": "connection client at_ns rtt_ns rto_ms",
    "sent_again": "frame",
    "carriers": "packets segments segments_measured",
    "group_frames": "frames_sent frames_sent_bytes frames_received frames_received_bytes",
    "packet_sums":
        "qos segments packets fixed_header_bytes topic_bytes packet_id_bytes property_bytes payload_bytes "
        "stream_bytes",
    "topic_sums": "publish_to_broker publish_to_client payload_bytes",
}.items()}
# Of these the ones that may be no whole numbers.
FRACTIONS = {table: frozenset(names.split()) for table, names in {
    "network_metrics": "value",
    "resources": "cpu_user_s cpu_system_s run_queue_s steal_s",
    "clients": "acknowledged_mean_ns",
    "positions": "x_m y_m longitude_deg latitude_deg altitude_m",
    "message_sums": "age_mean_ns latency_deviation_ns",
    "frame_sums": "rtt_ms_min rtt_ms_mean rtt_ms_p95 rtt_ms_max rto_ms_mean",
    "round_trips": "rto_ms",
}.items()}
# Columns in which a row may have nothing.
OPTIONAL = {table: frozenset(names.split()) for table, names in {
    "messages":
        "publisher sequence topic publication subscriber cause qos qos_delivered identified intended_ns sent_ns "
        "written_ns acknowledged_ns received_ns latency_ns",
    "packets":
        "start_ns sent_ns delivered_ns cause source_port destination_port connection seq ack flags window tsval "
        "tsecr sack stream_offset mqtt marks ack_rtt_ns repetition ecn",
    "control_packets":
        "client qos packet_id reason topic publisher sequence first_sent_ns complete_ns segments written_ns "
        "read_ns",
    "network_metrics": "connection client direction",
    "events": "client took_ns detail",
    "resources": "run_queue_s faults_minor faults_major steal_s server",
    "clients": "connect_ns suback_ns acknowledged_mean_ns",
    "tcp_state": "client connection srtt_ns slow_start_threshold_bytes",
    "positions": "client host link x_m y_m longitude_deg latitude_deg altitude_m",
    "payloads": "publisher sequence",
    "message_sums":
        "publisher_group publication subscriber_group qos cause intended_first_ns intended_last_ns received_last_ns "
        "age_mean_ns latency_deviation_ns latency_least_ns latency_most_ns",
    "attribution":
        "schedule_ns session_ns sleep_ns register_ns sender_nagle_ns sender_socket_ns retry_ns queue_to_broker_ns "
        "wire_to_broker_ns retransmission_to_broker_ns gateway_ns handshake_ns undivided_ns broker_ns "
        "broker_window_ns broker_nagle_ns broker_socket_ns queue_to_subscriber_ns wire_to_subscriber_ns "
        "retransmission_to_subscriber_ns release_ns delivery_ns sender_unconnected_ns link_down_ns nat_forgot_ns "
        "broker_paused_ns subscriber_unconnected_ns reader_stopped_ns adjusted_ns seen_by unattributed",
    "legs":
        "before relayed up_client topic begins_ns handed_ns up_packet up_connection up_packet_id up_first_sent_ns "
        "up_ready_ns up_written_ns up_window_ns up_window_packet up_nagle_until_ns up_socket_until_ns "
        "up_held_until_ns up_release_frame up_tried_ns up_resumed_ns up_tail_nagle_until_ns "
        "up_tail_socket_until_ns up_tail_held_until_ns up_tail_release_frame up_frame up_went_ns up_started_ns "
        "up_arrived_ns up_complete_ns up_release_packet up_release_ns ingress_ns down_packet down_connection "
        "down_packet_id down_first_sent_ns down_ready_ns down_window_ns down_window_packet down_nagle_until_ns "
        "down_socket_until_ns down_held_until_ns down_release_frame down_tried_ns down_resumed_ns "
        "down_tail_nagle_until_ns down_tail_socket_until_ns down_tail_held_until_ns down_tail_release_frame "
        "down_frame down_went_ns down_started_ns down_arrived_ns down_complete_ns down_read_ns "
        "down_release_packet down_release_ns handed_on_ns sn_up_packet sn_up_ready_ns sn_up_sleep_from_ns "
        "sn_up_sleep_until_ns sn_up_register_from_ns sn_up_register_until_ns sn_up_tried_ns sn_up_first_sent_ns "
        "sn_up_frame sn_up_went_ns sn_up_started_ns sn_up_complete_ns sn_down_packet sn_down_sleep_from_ns "
        "sn_down_sleep_until_ns sn_down_register_from_ns sn_down_register_until_ns sn_down_tried_ns "
        "sn_down_first_sent_ns sn_down_frame sn_down_went_ns sn_down_started_ns sn_down_complete_ns "
        "sn_down_release_packet sn_down_release_ns qos",
    "frame_sums":
        "connection client link group direction frame_bytes_min frame_bytes_max publish_frame_bytes_min "
        "publish_frame_bytes_max segments_with_data retransmissions retransmissions_fast "
        "retransmissions_timer_or_probe retransmissions_spurious retransmissions_unknown rtt_ms_min rtt_ms_mean "
        "rtt_ms_p95 rtt_ms_max rto_ms_mean",
    "link_sums": "busy_ns wait_max_ns drops_by_cause",
    "round_trips": "client",
    "carriers": "direction",
    "packet_sums": "qos",
    "topic_sums": "topic",
}.items()}
# Columns that number what `layout.json` lists.
INDICES = {"publisher": "clients", "subscriber": "clients", "client": "clients", "up_client": "clients",
           "link": "links", "from_host": "hosts", "to_host": "hosts"}
# Words that are read again as numbers (RFC 2018's blocks), and those of which there are a few.
WORDS = {("packets", "sack"): r"^(\d{1,10}-\d{1,10}( |$))*$", ("tcp_state", "end"): "^(client|server)$",
         ("packets", "direction"): "^(up|down)$", ("control_packets", "direction"): "^to_(broker|client)$"}
# Times are of a run: of less than a century.
TIME_NS_MOST = 100 * 366 * 86_400 * 10**9
# What every reader relies on.
LAYOUT = {"hosts": [str], "links": [str], "clients": [{"name": str, "group": str, "host": int}],
          "measurement_end_ns": int, "warm_up_end_ns": int}
PLAN = {"name": str, "groups": [{"name": str, "count": int}], "hosts": [{"name": str}],
        "phases": {"warm_up_ns": int, "duration_ns": int, "cool_down_ns": int}, "network": {"kind": str}}

EVENT = {"at_ns": int, "name": str, "change": {"kind": str}}
TRACE = {"name": str, "links": [str], "begins_at_ns": int, "course": {"kind": str}}
# What an event acts on, and how a plan has that.
TARGETS: dict[str, Any] = {"links": [str], "server": str, "clients": [int]}


def kinds_wrong(table: str, columns: Mapping[str, pl.DataType]) -> str | None:
    """The first column that holds something else than it should; of tables that are not known nothing is said."""
    if table not in TEXTS:
        return None
    for name, kind in columns.items():
        if kind == pl.Null:
            continue
        if name in TEXTS[table]:
            right, what = isinstance(kind, (pl.String, pl.Categorical, pl.Enum)), "text"
        elif name in FLAGS.get(table, ()):
            right, what = kind == pl.Boolean, "yes or no"
        elif name in NUMBERS[table] - FRACTIONS.get(table, frozenset()):
            right, what = kind.is_integer(), "whole numbers"
        else:
            right, what = kind.is_numeric(), "numbers"
        if not right:
            return f"its column {name!r} is of the kind {kind}, but must hold {what}"
    return None


def first_line(error: BaseException) -> str:
    """An error in one line: those of Polars have its query below."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def damage(
    directory: Path, plan: Any, layout: Any, tables: Iterable[tuple[str, pl.LazyFrame]],
    added: Mapping[str, Collection[str]],
) -> str | None:
    """What is wrong with a recording that could not be evaluated: something is missing, or names what is not there.

    Args:
        directory: the recording's.
        plan: ``plan.json``.
        layout: ``layout.json``, as :func:`mqttlab.layout.read` has it: what is wrong with it is said there.
        tables: its tables by name.
        added: columns of tables that earlier recordings do not have.
    """
    if problem := unlike(plan, PLAN):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    if problem := _events_wrong(plan.get("events")):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    if problem := _traces_wrong(plan["network"].get("traces")):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    for name, table in tables:
        columns = table.collect_schema().names()
        expected = TEXTS.get(name, frozenset()) | FLAGS.get(name, frozenset()) | NUMBERS.get(name, frozenset())
        always = expected - OPTIONAL.get(name, frozenset()) - set(added.get(name, ()))
        problem = (
            next((f"it has no column {column!r}" for column in sorted(expected - set(columns)) if columns), None)
            or _missing(table.select(sorted(always & set(columns))))
            or _words_wrong(name, table, columns)
            or _numbers_wrong(table, columns, layout))
        if problem is not None:
            return f"{directory / name}.parquet is damaged: {problem}"
    return None


def _events_wrong(events: Any) -> str | None:
    """What is wrong with the plan's events; plans of before there were any have none."""
    if events is None:
        return None
    if problem := unlike({"events": events}, {"events": [EVENT]}):
        return problem
    for place, event in enumerate(events):
        target = next((name for name in TARGETS if name in event), None)
        if target is None:
            return f"`events[{place}]` acts on nothing"
        if problem := unlike(event, {target: TARGETS[target]}):
            return f"`events[{place}]`: {problem}"
        if target == "links" and event["change"]["kind"] not in ("down", "up", "spec"):
            return f"`events[{place}]` changes links in an unknown way"
    return None


def _traces_wrong(traces: Any) -> str | None:
    """What is wrong with the plan's traces; plans of before there were any have none."""
    if traces is None:
        return None
    if problem := unlike({"network.traces": traces}, {"network.traces": [TRACE]}):
        return problem
    for place, one in enumerate(traces):
        course, whole = one["course"], f"`network.traces[{place}]`"
        columns: dict[str, Any] = {"opportunities": {"at_ms": [int], "bytes": int}, "values": {"at_ns": [int]}}
        if course["kind"] not in columns:
            return f"{whole} is of an unknown kind"
        if problem := unlike(course, columns[course["kind"]]):
            return f"{whole}: {problem}"
        rows = course.get("at_ms") or course.get("at_ns") or []
        rates, delays = course.get("rate_bit_s"), course.get("delay_ns")
        for column in (rates, delays):
            if column is not None and (unlike({"": column}, {"": [int]}) or len(column) != len(rows)):
                return f"{whole} has a column that is not of whole numbers, one for each row"
        if not rows or one.get("period_ns") == 0 or unlike({"": one.get("period_ns") or 1}, {"": int}):
            return f"{whole} has no rows, or takes no time"
        if course["kind"] == "values" and not {"rate_bit_s", "delay_ns"} <= set(course):
            return f"{whole} says nothing of a rate or a delay"
    return None


def _missing(table: pl.LazyFrame) -> str | None:
    """A column without a value in a row, of those that have one in each."""
    counts = table.null_count().collect()
    return next((f"its column {column!r} has no value in {counted(counts[column][0], 'row')}, but must have one in each"
                 for column in counts.columns if counts[column][0]), None)


def _words_wrong(name: str, table: pl.LazyFrame, columns: Collection[str]) -> str | None:
    for (of, column), pattern in WORDS.items():
        if of == name and column in columns:
            words = pl.col(column).cast(pl.String)
            strange = table.filter(~words.str.contains(pattern)).select(words).head(1).collect()
            if strange.height:
                return f"its column {column!r} has {strange.item()[:80]!r}"
    return None


def _numbers_wrong(table: pl.LazyFrame, columns: Collection[str], layout: Any) -> str | None:
    least = {column: 0 for column in columns if column in INDICES}
    most = {column: len(layout[INDICES[column]]) - 1 for column in least}
    times = [column for column in columns if column.endswith("_ns")]
    least |= dict.fromkeys(times, -TIME_NS_MOST)
    most |= dict.fromkeys(times, TIME_NS_MOST)
    if not most:
        return None
    ends = table.select(*(pl.col(column).cast(pl.Float64).min().alias(f"{column}<") for column in most),
                        *(pl.col(column).cast(pl.Float64).max().alias(f"{column}>") for column in most)).collect()
    for column, end in most.items():
        low, high = ends[f"{column}<"][0], ends[f"{column}>"][0]
        if low is not None and (low < least[column] or high > end):
            return (f"its column {column!r} goes from {low:.0f} to {high:.0f}, but must be within {least[column]} "
                    f"and {end}")
    return None


def unlike(value: Any, right: Any, place: str = "") -> str | None:
    """Where a value of JSON is not of the shape that it should have."""
    if isinstance(right, dict):
        if not isinstance(value, dict):
            return f"`{place}` must be an object" if place else "it must be an object"
        within = ((value.get(name), part, f"{place}.{name}".lstrip(".")) for name, part in right.items())
    elif isinstance(right, list):
        if not isinstance(value, list):
            return f"`{place}` must be an array"
        within = ((part, right[0], f"{place}[{number}]") for number, part in enumerate(value))
    else:
        fits = isinstance(value, right) and not (right is int and (isinstance(value, bool) or value < 0))
        return None if fits else f"`{place}` must be {'text' if right is str else 'a whole number of 0 or more'}"
    return next((problem for part in within if (problem := unlike(*part))), None)
