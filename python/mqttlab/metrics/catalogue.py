"""The catalogue: every metric, declared once, with its name, unit, scope, definition, source and implementation.

The columns of the tables in this package are the names declared here; documentation, report and export take unit, title
and meaning from here, and a test refuses a column that is not declared. Metrics that the engine counts while frames
pass it are declared beside their implementation, in ``crates/capture/src/metrics/table.rs``; ``counted.json`` is that
declaration, and a test holds the two equal. A name stands for one thing: declaring it twice is an error.
"""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from typing import Any

from mqttlab.metrics.declaration import Family, Metric, Shown
from mqttlab.words import words_of


def counted() -> list[dict[str, Any]]:
    """What the engine counts, as it declares it.

    Each has ``name``, ``unit``, ``statistics`` (suffixes of the name), ``definition`` and ``source``.
    """
    text = resources.files(__package__).joinpath("counted.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)
    return entries


def _read_counted() -> tuple[Metric, ...]:
    return tuple(
        Metric(name=entry["name"] + suffix, unit=entry["unit"], source=entry["source"], shown="data",
               window="frames" if entry["unit"] == "bit/s" else "run",
               title=entry["name"].replace("_", " ") + STATISTICS[suffix],
               meaning=entry["definition"] + MEANINGS[suffix])
        for entry in counted() for suffix in entry["statistics"]
    )


STATISTICS = {"": "", "_count": " (count)", "_min": " min", "_mean": " mean", "_p50": " median", "_p95": " p95",
              "_p99": " p99", "_max": " max"}
MEANINGS = {"": "", "_count": " How many.", "_min": " The smallest.", "_mean": " The mean.", "_p50": " The median.",
            "_p95": " The 95th percentile.", "_p99": " The 99th percentile.", "_max": " The largest."}
COUNTED: tuple[Metric, ...] = _read_counted()


def _counted(name: str, **changes: Any) -> Metric:
    """What the engine counts too, for rows that its own table does not have: of groups and links."""
    [found] = [metric for metric in COUNTED if metric.name == name]
    return replace(found, shown="page", **changes)


def _latency(statistic: str, title: str, words: str, shown: Shown) -> Metric:
    return Metric(
        name=f"latency_ms_{statistic}",
        unit="ms",
        title=title,
        meaning=f"{words} of the time from a message's intended sending to its first delivery.",
        better="lower", shown=shown,
    )


def _burst(what: str, statistic: str, title: str, words: str) -> Metric:
    return Metric(name=f"burst_{what}_ms_{statistic}", unit="ms", title=f"{what} {title}", meaning=f"{words}.",
                  source="Varsani 2021, 3.2.2", better="lower")


BURST_STATISTICS = (("mean", "mean", "The mean"), ("p50", "median", "The median"),
                    ("p99", "p99", "The 99th percentile (linear interpolation)"), ("max", "max", "The maximum"))


def _overhead(part: str, title: str, words: str, source: str) -> Metric:
    return Metric(
        name=f"overhead_{part}_bytes",
        unit="B",
        title=title,
        meaning=f"{words}: bytes per PUBLISH packet, on average.",
        source=source,
        better="lower",
    )


def _efficiency(name: str, title: str, words: str) -> Metric:
    return Metric(name=name, unit="ratio", title=title, meaning=f"{words}.", source="Perez 2005", better="higher")


def _flag(name: str, title: str) -> Metric:
    return _counted(f"tcp_analysis_{name}", title=title, unit="segments", better="lower")


APPLICATION: tuple[Metric, ...] = (
    Metric(name="messages_offered", shown="data", unit="messages", title="offered",
           meaning="Messages that the schedule wanted sent within the measurement."),
    Metric(name="messages_sent", shown="narrow", unit="messages", title="sent", better="higher",
           meaning="Offered messages that were handed to the publisher's session."),
    Metric(name="messages_unsent", unit="messages", title="unsent", better="lower",
           meaning="Offered messages that were not: no connection, or the client's queue was full."),
    Metric(name="deliveries_expected", shown="wide", unit="deliveries", title="expected",
           meaning="Sent messages times the subscribers whose filters match; a shared subscription counts as one."),
    Metric(name="messages_delivered", shown="narrow", unit="deliveries", title="delivered", better="higher",
           meaning="Expected deliveries that happened at least once before the recording ended."),
    Metric(name="messages_lost", shown="narrow", unit="deliveries", title="lost", better="lower",
           meaning="Expected deliveries that will not happen: the message was dropped, or the session that had to "
                   "deliver it ended, or a later one of the same publisher, topic and QoS arrived. "
                   "`messages.cause` says which.",
           source="MQTT 5, 4.6"),
    Metric(name="messages_under_way", shown="narrow", unit="deliveries", title="under way", better="lower",
           meaning="Expected deliveries that had neither happened nor been lost when the recording ended."),
    Metric(name="messages_unknown", shown="narrow", unit="deliveries", title="unknown", better="lower",
           meaning="Expected deliveries of which the evidence does not show whether they happened."),
    Metric(name="messages_not_decided", shown="narrow", unit="deliveries", title="not decided",
           meaning="Messages that did not come to a client which was about to subscribe or unsubscribe when the broker "
                   "had them, by an event of the scenario, and deliveries with Retain As Published that may be stored "
                   "copies or not. They are not expected."),
    Metric(name="undelivered_percent", shown="wide", unit="%", title="undelivered %", better="lower",
           meaning="Expected deliveries that did not happen, as a percentage of the expected ones: lost, expired, "
                   "under way at the end, of unknown fate, or never sent. Thresholds, searches and "
                   "recommendations use it."),
    Metric(name="messages_lost_percent", unit="%", title="lost %", better="lower",
           meaning="Lost deliveries as a percentage of the expected ones, without those under way at the end. Bounds "
                   "on it are judged by `undelivered_percent`."),
    Metric(name="duplicates", shown="wide", unit="deliveries", title="dup", better="lower",
           meaning="Deliveries of a message to a subscriber that had received it already."),
    Metric(name="retained_copies", unit="deliveries", title="retained",
           meaning="Deliveries from the broker's store because a client subscribed. They are in no other count and "
                   "have no latency.",
           source="MQTT 5, 3.3.1.3"),
    Metric(name="retained_age_s_mean", unit="s", title="retained age",
           meaning="From the sending of a retained message to the delivery of its copy, the mean."),
    Metric(name="out_of_order", unit="deliveries", title="out of order", better="lower",
           meaning="First deliveries that came after a later message of the same publisher and topic."),
    Metric(name="late", unit="deliveries", title="late", better="lower",
           meaning="First deliveries later than `late_after` of the publisher's or the receiver's group: the "
                   "shorter one of both."),
    Metric(name="disconnects", window="run", shown="narrow", unit="connections", title="disconnects", better="lower",
           meaning="Connections of the group's clients that ended unplanned."),
    _latency("min", "min", "The minimum", "narrow"),
    _latency("mean", "mean", "The mean", "narrow"),
    Metric(name="latency_ms_mean_ci95", shown="wide", unit="ms", title="± 95 %", better="lower",
           meaning="Half width of the 95 % confidence interval of the mean latency, by batch means (20 batches in "
                   "the order of intended sending, Student's t), which allows for the correlation of neighbours.",
           source="Law, Simulation Modeling and Analysis, 9.5.3"),
    Metric(name="latency_batches_correlation", shown="data", unit="ratio", title="batches' correlation",
           meaning="How far the means of neighbouring batches still depend on each other (lag 1): from 0.3 on the "
                   "interval of the mean latency is too narrow, and reports warn.",
           source="Law, Simulation Modeling and Analysis, 9.5.3"),
    _latency("p50", "median", "The median", "narrow"),
    _latency("p95", "p95", "The 95th percentile (linear interpolation)", "wide"),
    _latency("p99", "p99", "The 99th percentile (linear interpolation)", "narrow"),
    _latency("max", "max", "The maximum", "narrow"),
    _latency("std", "std", "The standard deviation", "data"),
    Metric(name="throughput_per_s", shown="wide", unit="deliveries/s", title="per s", better="higher",
           window="measurement",
           meaning="First deliveries that happened within the measurement, divided by its length."),
    Metric(name="goodput_kbit_s", window="measurement", unit="kbit/s", title="kbit/s", better="higher",
           meaning="Payload bits of these deliveries, divided by the measurement's length."),
    Metric(name="effective_throughput_kbit_s", window="measurement", unit="kbit/s", title="effective kbit/s",
           better="higher", source="Perez 2005, 5.1.5",
           meaning="Bits of topic, payload and one more byte of the messages that the row's publishers wrote to their "
                   "connections within the measurement, divided by its length."),
)

BURSTS: tuple[Metric, ...] = (
    Metric(name="bursts", unit="bursts", title="bursts",
           meaning="Bursts of the measurement, once for each client that was to receive from them: a publisher's "
                   "messages that `burst` makes due together."),
    Metric(name="bursts_complete", unit="bursts", title="complete", better="higher",
           meaning="Those of which every expected delivery to this client happened; the times are those of them."),
    *(_burst("completion", statistic, title, f"{words} of the time from when a burst's first message was due until the "
                                             "last of its messages had arrived at the client")
      for statistic, title, words in BURST_STATISTICS),
    *(_burst("spread", statistic, title, f"{words} of the time from the arrival of a burst's first message until that "
                                         "of its last one")
      for statistic, title, words in BURST_STATISTICS),
)

CHANGES: tuple[Metric, ...] = (
    Metric(name="change_at_s", unit="s", title="at", shown="narrow",
           meaning="When the event took place, from the beginning of the measurement."),
    Metric(name="change_lasted_s", unit="s", title="lasted", shown="narrow",
           meaning="From the event until the one that ended it; none where nothing did."),
    Metric(name="change_connections_lost", unit="clients", title="connections lost", better="lower", shown="narrow",
           meaning="Clients whose connection ended unplanned in the event's window, and those that disconnected or "
                   "vanished by it."),
    Metric(name="change_reconnected_s_p50", unit="s", title="connected again, median", better="lower", shown="wide",
           meaning="From the event's end (its begin, where it did not end) until these clients had a CONNACK again: "
                   "the median; 0 for those that had it before. Counted until the next event, else until the "
                   "recording's end."),
    Metric(name="change_reconnected_s_max", unit="s", title="connected again, last", better="lower", shown="narrow",
           meaning="The same of the last one; none while a client was not connected again."),
    Metric(name="change_not_reconnected", unit="clients", title="not connected again", better="lower", shown="narrow",
           meaning="Those that were not connected again until the next event, else until the recording's end."),
    Metric(name="change_backlog", unit="messages", title="backlog", better="lower", shown="narrow",
           meaning="Messages, once for each subscriber, that were due before the event's end and had not come by then, "
                   "and were late or never came. Those that never came count from the event's begin on."),
    Metric(name="change_backlog_through_s", unit="s", title="backlog through", better="lower", shown="narrow",
           meaning="From the event's end (its begin, where it did not end) until the last of them came, also after the "
                   "measurement; none while one did not."),
    Metric(name="change_backlog_undelivered", unit="messages", title="backlog, not delivered", better="lower",
           shown="narrow",
           meaning="Those that never came: lost, under way at the end, of unknown fate, or never sent."),
    Metric(name="change_undelivered", unit="messages", title="not delivered", better="lower", shown="narrow",
           meaning="Messages that were due in the event's window and did not arrive: lost, under way at the end, of "
                   "unknown fate, or never sent."),
    Metric(name="change_late", unit="messages", title="late", better="lower", shown="narrow",
           meaning="Messages that were due in the event's window and took longer than any of their flow (publishing "
                   "group, subscribing group, QoS) that was due and came in the measurement before the first event, by "
                   "more than 1 ms and by more than 5 %: a valid live run may be as late by itself. A flow of which "
                   "none came before it has the limit of the slowest flow; none where there is none."),
    Metric(name="change_silence_s", unit="s", title="silence", shown="wide", better="lower",
           meaning="The longest time without a delivery of any flow, from the last one before the event until the end "
                   "of its window."),
    Metric(name="change_flow_back_s_p50", unit="s", title="flow back, median", better="lower", shown="wide",
           meaning="From the event's end (its begin, where it did not end) until a subscriber had the first message "
                   "from a publisher that was due after it: the median of all pairs of a publisher and a subscriber "
                   "with such messages. A publisher's interval is part of it."),
    Metric(name="change_flow_back_s_max", unit="s", title="flow back, last", better="lower", shown="wide",
           meaning="The same of the last pair; none while a pair had no such message."),
    Metric(name="change_flows_not_back", unit="pairs", title="not back", better="lower", shown="wide",
           meaning="Pairs that had none of these messages within the event's window."),
    Metric(name="change_duplicates", unit="messages", title="duplicates", better="lower", shown="wide",
           meaning="Further deliveries of messages that were due in the event's window."),
    Metric(name="change_connects_per_s_max", unit="clients", title="connects in a second, most", better="lower",
           shown="wide",
           meaning="CONNACKs within one second of the event's window, where they are most: the load on the server."),
    Metric(name="change_waiting_max", unit="deliveries", title="waiting, most", better="lower", shown="wide",
           meaning="Deliveries that were due and had not come, at the instant of the event's window at which they were "
                   "most: what waited in clients, network and servers together. Those that never came are left out."),
    Metric(name="change_server_cpu_percent_max", unit="%", title="server's processor, most", better="lower",
           shown="wide",
           meaning="Processor time that a server took between two samples in the event's window, where it was most, in "
                   "percent of one processor. Not known of simulations and imports."),
    Metric(name="change_wills", unit="deliveries", title="wills", shown="wide",
           meaning="Wills that came in the event's window, where a client with a will lost its connection in it: once "
                   "for each subscriber."),
    Metric(name="change_will_s_p50", unit="s", title="until the will, median", better="lower", shown="wide",
           meaning="From the event until such a delivery, the median: at once for a connection that was reset; after "
                   "1.5 times the keep-alive for a client that fell silent (MQTT 5, 3.1.2.10)."),
    Metric(name="change_will_s_max", unit="s", title="until the will, last", better="lower", shown="wide",
           meaning="The same of the last one."),
    Metric(name="change_retained_again", unit="deliveries", title="retained again", better="lower", shown="wide",
           meaning="Retained messages that servers sent from their store, in the event's window, to clients whose "
                   "connection had ended in it and who subscribed again."),
)

LINK: tuple[Metric, ...] = (
    replace(_counted("frames", title="frames", unit="frames"), shown="narrow"),
    Metric(name="bytes", shown="wide", unit="B", title="bytes",
           meaning="Their bytes as the link counts them, with its own headers."),
    Metric(name="frames_delivered", unit="frames", title="delivered", better="higher",
           meaning="Frames that arrived, damaged ones and the link's own copies included."),
    Metric(name="frames_dropped", shown="narrow", unit="frames", title="dropped", better="lower",
           meaning="Frames that did not arrive."),
    Metric(name="frames_marked", shown="narrow", unit="frames", title="marked", better="lower", source="RFC 3168",
           meaning="Frames that the link marked instead of dropping them (ECN). Left out where there are none."),
    Metric(name="drops_by_cause", shown="wide", unit="", title="causes", meaning="Dropped or damaged frames by cause."),
    Metric(name="data_rate_kbit_s", window="frames", shown="narrow", unit="kbit/s", title="kbit/s",
           meaning="Bits of the frames that were sent, divided by the time from the first frame to the last."),
    Metric(name="utilisation_percent", window="frames", shown="narrow", unit="%", title="used %",
           meaning="Share of the time from the first frame to the last that the transmitter was busy."),
    Metric(name="queue_wait_ms_mean", shown="wide", unit="ms", title="wait", better="lower",
           meaning="Mean time between a frame's arrival at the queue and its first bit going out."),
    Metric(name="queue_wait_ms_max", shown="narrow", unit="ms", title="wait max", better="lower",
           meaning="Longest time in the queue."),
    Metric(name="frame_bytes_mean", unit="B", title="size", meaning="Mean frame size."),
)

SETUP: tuple[Metric, ...] = (
    Metric(name="connects", unit="connections", title="connects",
           meaning="CONNACK packets that accept; of ZeroMQ handshakes that were completed."),
    Metric(name="connects_per_s", window="measurement", unit="connections/s", title="connects/s",
           meaning="Of these the ones within the measurement, divided by its length."),
    Metric(name="connects_refused", unit="connections", title="refused", better="lower",
           meaning="CONNACK packets that refuse."),
    Metric(name="connect_ms_p50", unit="ms", title="connect p50", better="lower",
           meaning="Median time from opening the TCP connection to a CONNACK that accepts."),
    Metric(name="connect_ms_p99", unit="ms", title="connect p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="connect_tcp_ms_p50", unit="ms", title="TCP p50", better="lower",
           meaning="Median time until the TCP connection was open, of connections with something on it."),
    Metric(name="connect_tcp_ms_p99", unit="ms", title="TCP p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="connect_tls_ms_p50", unit="ms", title="TLS p50", better="lower",
           meaning="Median time from the open TCP connection to the end of a full handshake of TLS."),
    Metric(name="connect_tls_ms_p99", unit="ms", title="TLS p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="connect_tls_resumed_ms_p50", unit="ms", title="TLS resumed p50", better="lower",
           meaning="Median time from the open TCP connection to the end of a handshake that resumes a session."),
    Metric(name="connect_tls_resumed_ms_p99", unit="ms", title="TLS resumed p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="connect_websocket_ms_p50", unit="ms", title="WebSocket p50", better="lower",
           meaning="Median time from open TCP or TLS to the end of the upgrade to WebSocket (RFC 6455)."),
    Metric(name="connect_websocket_ms_p99", unit="ms", title="WebSocket p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="connect_mqtt_ms_p50", unit="ms", title="CONNECT p50", better="lower",
           meaning="Median time from the last layer's being open to a CONNACK that accepts."),
    Metric(name="connect_mqtt_ms_p99", unit="ms", title="CONNECT p99", better="lower",
           meaning="99th percentile of it."),
    *(Metric(name=f"connect_to_{what}_ms_{statistic}", unit="ms", title=f"to first {title} {statistic}", better="lower",
             meaning=meaning)
      for what, title, until in (
          ("delivered", "delivery",
           "the first delivery, to any subscriber, of the first message that was sent over it"),
          ("acknowledged", "ack", "the last acknowledgement of the first message that was sent over it, at QoS 1 or 2"))
      for statistic, meaning in (
          ("p50", f"Median time from opening the TCP connection to {until}. Left out is the time after the CONNACK in "
                  "which the client had nothing to send. Not known where `recording.detail` was \"summary\"."),
          ("p99", "99th percentile of it."))),
    Metric(name="subscriptions", unit="packets", title="subscriptions", meaning="SUBACK packets."),
    Metric(name="subscribe_ms_p50", unit="ms", title="subscribe p50", better="lower",
           meaning="Median time from SUBSCRIBE to SUBACK."),
    Metric(name="subscribe_ms_p99", unit="ms", title="subscribe p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="unsubscriptions", unit="packets", title="unsubscriptions", meaning="UNSUBACK packets."),
    Metric(name="unsubscribe_ms_p50", unit="ms", title="unsubscribe p50", better="lower",
           meaning="Median time from UNSUBSCRIBE to UNSUBACK."),
    Metric(name="unsubscribe_ms_p99", unit="ms", title="unsubscribe p99", better="lower",
           meaning="99th percentile of it."),
    Metric(name="messages_acknowledged", unit="messages", title="acknowledged",
           meaning="QoS 1 and 2 messages whose last acknowledgement came back to the publisher."),
    Metric(name="acknowledge_ms_p50", unit="ms", title="acknowledge p50", better="lower",
           meaning="Median time from handing over a QoS 1 or 2 message to its last acknowledgement."),
    Metric(name="acknowledge_ms_p99", unit="ms", title="acknowledge p99", better="lower",
           meaning="99th percentile of it."),
)

NETWORK: tuple[Metric, ...] = (
    _counted("ip_bytes", title="IP bytes"),
    _counted("tcp_payload_bytes", title="TCP payload"),
    Metric(name="frame_bytes_min", unit="B", title="size min", meaning="Smallest frame."),
    Metric(name="frame_bytes_max", unit="B", title="size max", meaning="Largest frame."),
    Metric(name="publish_frame_bytes_min", unit="B", title="PUBLISH min", source="Andersen 2021, tables 5.1 to 5.9",
           meaning="Smallest frame with which a PUBLISH packet became complete."),
    Metric(name="publish_frame_bytes_mean", unit="B", title="PUBLISH mean", source="Andersen 2021, tables 5.1 to 5.9",
           meaning="Mean size of the frames with which a PUBLISH packet became complete."),
    Metric(name="publish_frame_bytes_max", unit="B", title="PUBLISH max", source="Andersen 2021, tables 5.1 to 5.9",
           meaning="Largest frame with which a PUBLISH packet became complete."),
    _counted("connections", title="connections", unit="connections"),
    _counted("resets", title="resets", unit="segments", better="lower"),
    _counted("segments_with_payload", title="data segments", unit="segments"),
    Metric(name="retransmissions", unit="segments", title="sent again", better="lower", source="RFC 9293, RFC 6298",
           meaning="Segments with data, SYN or FIN that their sender sent again, as sequence numbers on the first link "
                   "show; of a client's connection what the kernel counts as `tcpi_total_retrans`. A link's copies are "
                   "not among them. Not available in imports."),
    Metric(name="retransmissions_percent", unit="%", title="sent again %", better="lower",
           meaning="These as a percentage of the segments with data, SYN or FIN, every copy."),
    Metric(name="retransmissions_fast", unit="segments", title="fast", better="lower", source="RFC 5681, 6675, 8985",
           meaning="Of these, not spurious, those before which acknowledgements had come back that indicated a loss: "
                   "of something sent after the copy before, or three that repeat the segment's number."),
    Metric(name="retransmissions_timer_or_probe", unit="segments", title="timer or probe", better="lower",
           source="RFC 6298, RFC 8985",
           meaning="Of these, not spurious, those for which no acknowledgement had given a reason: a retransmission "
                   "timer or a loss probe sent them; frames do not tell which."),
    Metric(name="retransmissions_spurious", unit="segments", title="spurious", better="lower",
           meaning="Of these, those of which every byte had arrived undamaged at the receiver's host before they came "
                   "to their first link."),
    Metric(name="retransmissions_unknown", unit="segments", title="unknown", better="lower",
           meaning="Of these, those of which the recording has no earlier copy."),
    Metric(name="window_reductions", unit="segments", title="reduced by ECN", better="lower", source="RFC 3168",
           meaning="Segments with CWR and without SYN: their sender has reduced its congestion window. Left out where "
                   "there are none."),
    _flag("retransmissions", "retrans. (W)"),
    _flag("fast_retransmissions", "fast (W)"),
    _flag("spurious_retransmissions", "spurious (W)"),
    _flag("out_of_order", "out of order (W)"),
    _flag("duplicate_acks", "dup. ACKs (W)"),
    _flag("zero_windows", "zero window (W)"),
    Metric(name="rtt_ms_min", unit="ms", title="RTT min", better="lower", source="RFC 6298",
           meaning="Shortest round trip of the row's data: from a segment's coming to its first link until its "
                   "acknowledgement has arrived; segments that were sent once only."),
    Metric(name="rtt_ms_mean", unit="ms", title="RTT mean", better="lower", source="RFC 6298",
           meaning="Mean of these round trips; the receiver's delayed acknowledgements are in them."),
    Metric(name="rtt_ms_p95", unit="ms", title="RTT p95", better="lower", source="RFC 6298",
           meaning="95th percentile of these round trips (linear interpolation)."),
    Metric(name="rtt_ms_max", unit="ms", title="RTT max", better="lower", source="RFC 6298",
           meaning="Longest of these round trips."),
    Metric(name="rto_ms_mean", unit="ms", title="RTO mean", better="lower", source="RFC 6298, section 2",
           meaning="Mean retransmission timeout that the senders would compute after each of these round trips, "
                   "before any back-off, with the scenario's lower bound on four variations, as in Linux."),
    _counted("mqtt_packets", title="packets", unit="packets"),
    Metric(name="publish_packets", unit="packets", title="PUBLISH", source="MQTT 5, section 3.3",
           meaning="PUBLISH packets among them."),
    _counted("publish_per_segment_mean", title="per segment", unit="packets"),
)

TRAFFIC: tuple[Metric, ...] = (
    Metric(name="bytes_per_s", window="slice", unit="B/s", title="B/s",
           meaning="Bytes that crossed a link in one direction within a time slice, divided by its length: of frames, "
                   "IP packets, payload of TCP and UDP (every copy) or payload of messages (once)."),
    Metric(name="segments_percent", unit="%", title="segments %",
           meaning="The segments that complete so many PUBLISH packets as a percentage of the direction's segments "
                   "with any."),
    Metric(name="packets_percent", unit="%", title="PUBLISH %",
           meaning="The PUBLISH packets that took so many segments as a percentage of the direction's."),
)

EFFICIENCY: tuple[Metric, ...] = (
    Metric(name="clients", unit="clients", title="clients", meaning="Clients of the group."),
    _efficiency("s", "S, bytes", "Application bytes sent over link bytes sent"),
    _efficiency("r", "R, bytes", "Application bytes received over link bytes received or overheard"),
    _efficiency("t", "T, bytes", "Application bytes sent and received over link bytes sent, received and overheard"),
    _efficiency("s_messages", "S, messages", "Messages sent over frames sent"),
    _efficiency("r_messages", "R, messages", "Messages received over frames received or overheard"),
    _efficiency("t_messages", "T, messages", "Messages sent and received over frames sent, received and overheard"),
    Metric(name="application_sent_bytes", unit="B", title="application sent", source="Perez 2005",
           meaning="Application bytes of the messages sent: topic, payload and one more for each."),
    Metric(name="messages_received", unit="deliveries", title="received", source="Perez 2005",
           meaning="First deliveries to the group's clients."),
    Metric(name="application_received_bytes", unit="B", title="application received", source="Perez 2005",
           meaning="Application bytes of these deliveries."),
    Metric(name="frames_sent", unit="frames", title="frames sent", source="Perez 2005",
           meaning="Frames that the group's hosts sent, acknowledgements and retransmissions too."),
    Metric(name="frames_sent_bytes", unit="B", title="bytes sent", source="Perez 2005", meaning="Their bytes."),
    Metric(name="frames_received", unit="frames", title="frames received", source="Perez 2005",
           meaning="Frames that arrived at the group's hosts."),
    Metric(name="frames_received_bytes", unit="B", title="bytes received", source="Perez 2005",
           meaning="Their bytes."),
    Metric(name="frames_overheard", unit="frames", title="overheard", source="Perez 2005",
           meaning="Frames for others that the radios of the group's hosts received."),
    Metric(name="frames_overheard_bytes", unit="B", title="bytes overheard", source="Perez 2005",
           meaning="Their bytes."),
)

OVERHEAD: tuple[Metric, ...] = (
    Metric(name="payload_bytes_mean", unit="B", title="payload",
           meaning="Mean application payload of the row's PUBLISH packets."),
    _overhead("fixed_header", "fixed header", "Fixed header", "MQTT 5, section 2.1.1"),
    _overhead("topic", "topic", "Topic name with its length", "MQTT 5, section 3.3.2.1"),
    _overhead("packet_id", "packet id", "Packet identifier", "MQTT 5, section 2.2.1"),
    _overhead("properties", "properties", "MQTT 5 properties with their length", "MQTT 5, section 2.2.2"),
    _overhead("acknowledgements", "acknowledgements", "PUBACK, or PUBREC, PUBREL and PUBCOMP", "MQTT 5, section 4.3"),
    Metric(name="overhead_bytes", unit="B", title="overhead", better="lower", source="Schuhmacher 2018",
           meaning="Sum of these parts: all bytes that MQTT adds to a message on one connection."),
    Metric(name="overhead_percent", unit="%", title="overhead %", better="lower", source="Schuhmacher 2018",
           meaning="Overhead as a percentage of payload and overhead."),
)

ATTRIBUTION: tuple[Metric, ...] = tuple(
    Metric(name=part, unit="ns", title=said["title"], meaning=said["meaning"], source=said.get("source", "mqttlab"),
           better="lower")
    for part, said in words_of("latency_part").items())
PARTS: tuple[str, ...] = tuple(metric.name for metric in ATTRIBUTION)

ADJUSTED = Metric(
    name="adjusted_ns", unit="ns", title="adjusted", better="lower",
    meaning="Sum of the negative differences between neighbouring instants of a message's chain: how far the "
            "tables of the recording disagree. No part's error is larger, and the parts add up in any case.")

MQTT: tuple[Metric, ...] = (
    Metric(name="packets", unit="packets", title="packets",
           meaning="MQTT control packets of the row's type; of a segment: PUBLISH packets."),
    Metric(name="packet_bytes_mean", unit="B", title="mean size", meaning="Their mean size, fixed header included."),
    Metric(name="publish_to_broker", unit="packets", title="PUBLISH to the broker",
           meaning="PUBLISH packets of this topic to the broker, repetitions included."),
    Metric(name="publish_to_client", unit="packets", title="PUBLISH to the clients",
           meaning="PUBLISH packets of this topic from the broker, repetitions included."),
    Metric(name="keep_alive_s", unit="s", title="keep alive",
           meaning="The keep-alive interval in force: the server's of the CONNACK, else that of the CONNECT."),
    Metric(name="keep_alive_asked_s", unit="s", title="keep alive asked", meaning="That of the CONNECT."),
    Metric(name="connected_s", unit="s", title="connected at",
           meaning="When the CONNECT was sent, since the start of the recording."),
    Metric(name="ended_s", unit="s", title="ended at", meaning="When the connection ended, since the same start."),
)

MQTT_SN: tuple[Metric, ...] = (
    Metric(name="datagrams", unit="datagrams", title="datagrams", shown="narrow",
           meaning="Datagrams with an MQTT-SN packet that clients and gateways sent, repetitions included."),
    Metric(name="datagram_bytes", unit="B", title="bytes", shown="narrow", better="lower",
           meaning="Bytes of their frames on the first link."),
    Metric(name="datagrams_sent_again", unit="datagrams", title="sent again", shown="narrow", better="lower",
           source="MQTT-SN 1.2, 6.13", meaning="Of these, those that repeat a packet with the same identifier."),
    Metric(name="datagrams_lost", unit="datagrams", title="lost", shown="narrow", better="lower",
           meaning="Of these, those that did not arrive."),
    Metric(name="registrations", unit="packets", title="REGISTER", shown="wide", better="lower",
           source="MQTT-SN 1.2, 5.4.10", meaning="REGISTER packets, of clients and gateways, repetitions included."),
    Metric(name="datagram_bytes_per_delivery", unit="B", title="bytes per delivery", shown="wide", better="lower",
           meaning="Bytes of their frames divided by the first deliveries, of the whole run, of which the row's "
                   "clients were publisher or receiver."),
    Metric(name="register_bytes_per_delivery", unit="B", title="REGISTER bytes per delivery", better="lower",
           meaning="The part of this that REGISTER and REGACK have."),
    Metric(name="gateway_wait_ms_mean", unit="ms", title="in the gateway", shown="wide", better="lower",
           meaning="Mean time from the arrival of a message at the gateway, from the broker, until it is first sent to "
                   "its client: the gateway's queue, the registration of its topic, and the client's sleep."),
    Metric(name="gateway_wait_ms_p95", unit="ms", title="p95", better="lower", meaning="95th percentile of that time."),
    Metric(name="gateway_wait_ms_max", unit="ms", title="max", better="lower", meaning="Longest of these times."),
    Metric(name="awake_s", unit="s", title="awake", shown="wide", better="lower", source="MQTT-SN 1.2, 6.14",
           meaning="Time from a client's first CONNECT to its end in which it did not sleep, mean of the clients that "
                   "slept; empty where none did."),
    Metric(name="awake_percent", unit="%", title="awake %", better="lower",
           meaning="This as a percentage of the time from their first CONNECT to their end."),
    Metric(name="awakenings", unit="times", title="awakenings", better="lower", source="MQTT-SN 1.2, 6.14",
           meaning="Times that they woke up, mean of the clients."),
)

PROCESSOR: tuple[Metric, ...] = (
    Metric(name="server_cpu_s", unit="s", title="servers' processor time", better="lower",
           meaning="Processor time, user and system, that the run's servers took from the first sample within the "
                   "measurement to the last. The kernel counts it in ticks of 10 ms. Not known of simulations, imports "
                   "and servers that run elsewhere."),
    Metric(name="server_cpu_us_per_delivery", unit="µs", title="servers' processor time per delivery", better="lower",
           meaning="This time divided by the first deliveries between the same two samples. Not known below 0.1 s, "
                   "which the ticks are too coarse for."),
)

ENERGY: tuple[Metric, ...] = (
    Metric(name="stations", unit="stations", title="stations", meaning="Stations of the radio channel in the row."),
    Metric(name="energy_j", unit="J", title="energy", better="lower", source="Perez 2005, 5.1.5",
           meaning="What their radios drew over the whole run, by the currents of `radio.energy` and "
                   "`radio.sleep_current`."),
    Metric(name="energy_mj_per_delivery", unit="mJ", title="energy per delivery", better="lower",
           source="Perez 2005, 5.1.5",
           meaning="This energy divided by the first deliveries, of the whole run, of which their clients were "
                   "publisher or receiver."),
    Metric(name="radio_active_s", unit="s", title="radio active", better="lower", source="Perez 2005, 5.1.5",
           meaning="Time that their radios spent with sending, receiving or sensing a busy channel, summed."),
    Metric(name="radio_active_percent", unit="%", title="radio active %", better="lower",
           meaning="This as a percentage of the time that they were observed."),
    Metric(name="radio_asleep_s", unit="s", title="radio asleep", better="higher", source="MQTT-SN 1.2, 6.14",
           meaning="Time that their radios were off because all clients of their hosts slept, summed."),
    Metric(name="wake_ups", unit="times", title="wake-ups", better="lower", source="Perez 2005, 5.1.5",
           meaning="Times that their radios went from listening to silence over to sending, receiving or sensing a "
                   "busy channel; after the short space within an exchange of frames, too."),
)



def _of_device(layer: str, way: str, title: str, words: str) -> Metric:
    return Metric(name=f"{layer}_kb_per_device_hour_{way}", unit=DEVICE_RATE, title=title, better="lower",
                  meaning=f"{words} that a device's own access link transmitted {WAYS[way]} it within the measurement: "
                          "messages, acknowledgements, keep-alives, repetitions and what the link lost, in 1,000 B per "
                          "hour of the measurement's length, mean of the devices.")


DEVICE_RATE = "kB/device/h"
"""The unit of a device's bytes, as every surface writes it."""
DEVICE_MONTH = "MB/device/month"
"""The same of 30 days."""
WAYS = {"up": "from", "down": "to"}
DEVICES: tuple[Metric, ...] = (
    Metric(name="devices", unit="devices", title="devices",
           meaning="Clients of the group."),
    _of_device("ip", "up", f"{DEVICE_RATE} up", "Bytes of IP packets"),
    _of_device("ip", "down", f"{DEVICE_RATE} down", "Bytes of IP packets"),
    _of_device("link", "up", f"link {DEVICE_RATE} up", "Link bytes of frames"),
    _of_device("link", "down", f"link {DEVICE_RATE} down", "Link bytes of frames"),
    Metric(name="ip_mb_per_device_month", unit=DEVICE_MONTH, title=DEVICE_MONTH, better="lower",
           meaning="Bytes of IP packets in 30 days of 24 hours at these rates, both ways together, in 1,000,000 B, "
                   "mean of the devices. Not known where one way is not."),
)

_METRICS = "mqttlab.metrics"
FAMILIES: tuple[Family, ...] = (
    Family(table="application", window="due", title="Messages", scopes=("run", "qos", "groups"),
           implementation=f"{_METRICS}.application", metrics=APPLICATION),
    Family(table="bursts", window="due", title="Bursts", scopes=("groups",),
           implementation=f"{_METRICS}.bursts", metrics=BURSTS),
    Family(table="changes", window="event", title="Events of the scenario", scopes=("event",),
           implementation=f"{_METRICS}.changes", metrics=CHANGES),
    Family(table="setup", window="run", title="Connections", scopes=("run",),
           implementation=f"{_METRICS}.setup", metrics=SETUP),
    Family(table="links", window="run", title="Links", scopes=("link",),
           implementation=f"{_METRICS}.links", metrics=LINK),
    Family(table="network", window="run", title="Network layer",
           scopes=("run", "direction", "link", "group", "connection"),
           implementation=f"{_METRICS}.network", metrics=NETWORK),
    Family(table="throughput", window="run", title="Throughput and segments", scopes=("time", "direction"),
           implementation=f"{_METRICS}.throughput, publish_per_segment, segments_per_publish", metrics=TRAFFIC),
    Family(table="mqtt", window="run", title="MQTT", scopes=("packet_type", "topic", "connection"),
           implementation=f"{_METRICS}.packet_types, topics, mqtt_connections", metrics=MQTT),
    Family(table="mqtt_sn", window="run", title="MQTT-SN", scopes=("run", "group", "packet_type"),
           implementation=f"{_METRICS}.mqtt_sn", metrics=MQTT_SN),
    Family(table="overhead", window="run", title="Overhead", scopes=("direction",),
           implementation=f"{_METRICS}.overhead", metrics=OVERHEAD),
    Family(table="efficiency", window="radio", title="Efficiency", scopes=("group",),
           implementation=f"{_METRICS}.efficiency", metrics=EFFICIENCY),
    Family(table="devices", window="measurement", title="Bytes of each device", scopes=("group",),
           implementation=f"{_METRICS}.device_bytes", metrics=DEVICES),
    Family(table="processor", window="measurement", title="Processor time", scopes=("run",),
           implementation=f"{_METRICS}.processor", metrics=PROCESSOR),
    Family(table="energy", window="run", title="Energy", scopes=("run", "group", "station"),
           implementation=f"{_METRICS}.energy", metrics=ENERGY),
    Family(table="attribution", window="due", title="Where the time of a message went", scopes=("message", "qos"),
           implementation=f"{_METRICS}.attribution", metrics=(*ATTRIBUTION, ADJUSTED)),
)
"""What is computed from a recording's tables; in the order of the reference page."""

_OWN = {metric.name for family in FAMILIES for metric in family.metrics}
ENGINE = Family(
    table="counted", window="run", title="Counted by the analyser", scopes=("run", "direction", "connection"),
    implementation="the engine, crates/capture/src/metrics, stored in network_metrics",
    metrics=tuple(metric for metric in COUNTED if metric.name not in _OWN),
)


def _all() -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for family in (*FAMILIES, ENGINE):
        for metric in family.metrics:
            assert metric.name not in found, f"{metric.name} is declared twice"
            found[metric.name] = metric
    return found


ALL: dict[str, Metric] = _all()


def called(metric: str) -> str:
    """A metric's title where no table says what it is of: ``latency p99`` and not ``p99``; another name as it is."""
    title = ALL[metric].title if metric in ALL else metric
    return f"latency {title}" if metric.startswith("latency_ms") else title


def called_beside_a_value(metric: str) -> str:
    """The same without a unit at its end, for sentences whose value has the unit: ``undelivered below 1 %``."""
    title, unit = called(metric), ALL[metric].unit if metric in ALL else ""
    return title.removesuffix(f" {unit}") if unit else title


def family(table: str) -> Family:
    """The family of this name."""
    [found] = [family for family in (*FAMILIES, ENGINE) if family.table == table]
    return found
