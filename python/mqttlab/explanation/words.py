"""A story in words: the sentence that names the cause, the table of parts, the ladder as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mqttlab.digits import LONG_NS, duration
from mqttlab.explanation.story import MAKES_ROOM, Arrow, Release, Story
from mqttlab.metrics import CAPTURED_WORDS, PARTS
from mqttlab.metrics.attribution.transport import SLACK_NS
from mqttlab.metrics.fates import DROPS
from mqttlab.plurals import counted

# A part that takes this share of the latency is its cause.
DOMINATES = 0.4
# Another one that takes this share is told, too.
ALSO = 0.25
NAGLE = ("sender_nagle_ns", "broker_nagle_ns")
# So many parts are named where none is.
NAMED = 3
# An acknowledgement kept back longer than this was delayed on purpose: Linux waits 40 ms at least, others up to 500.
DELAYED_NS = 5_000_000


def title(story: Story, part: str) -> str:
    """A part's short name."""
    return story.titles[part].replace("broker", story.names["server"])


def ms(nanoseconds: int) -> str:
    """A length of time in milliseconds, to the microsecond where that shows; from 10 s on as everywhere."""
    value = nanoseconds / 1e6
    if nanoseconds >= LONG_NS:
        return duration(nanoseconds)
    return f"{value:.3f} ms" if value < 10 else f"{value:.1f} ms"


def head(story: Story) -> str:
    """Which message this is about."""
    names = story.names
    return (f"Message {story.publisher}:{story.sequence} from {names['publisher']} to {names['subscriber']}: "
            f"{story.topic}, QoS {story.qos}, {story.payload_bytes} B, {ms(story.latency_ns)}.")


def parts_table(story: Story) -> list[tuple[str, str, str]]:
    """Part, time and share of the latency, in the order in which they pass; parts of nothing are left out."""
    rows = []
    for part in PARTS:
        took = story.parts[part]
        if took:
            rows.append((title(story, part), ms(took), f"{100 * took / max(story.latency_ns, 1):.1f} %"))
    return rows


def cause(story: Story) -> str:
    """A sentence that names the cause where one part, or Nagle's algorithm at both ends, dominates; and one for each
    other part that took much."""
    nagle = sum(story.parts[part] for part in NAGLE)
    part = max(PARTS, key=lambda name: story.parts[name])
    if nagle >= DOMINATES * story.latency_ns and nagle > 0:
        first, told = _nagle(story), set(NAGLE)
    elif story.parts[part] >= DOMINATES * story.latency_ns:
        first, told = _sentence(story, part), set(NAGLE) if part in NAGLE else {part}
    else:
        return _largest(story)
    resent = _resent(story)
    for other in PARTS:
        if other not in told and story.parts[other] >= ALSO * story.latency_ns and story.parts[other]:
            words = _sentence(story, other)
            first += f" {words.removesuffix(resent) if resent and resent in first else words}"
    return first


def _largest(story: Story) -> str:
    """What took longest where no part dominates, and what those mean that a capture does not divide."""
    longest = sorted((name for name in PARTS if story.parts[name]), key=lambda name: -story.parts[name])[:NAMED]
    named = ", ".join(f"{title(story, name)} {ms(story.parts[name])}" for name in longest)
    meant = [f" {title(story, name).capitalize()} is the time {CAPTURED_WORDS[story.captured[name]]}."
             for name in longest if name in story.captured]
    return f"No single part dominates. The largest: {named}.{''.join(meant)}"


def _nagle(story: Story) -> str:
    """Where Nagle's algorithm held the message, and for whose acknowledgement."""
    places = [(part, story.parts[part]) for part in ("sender_nagle_ns", "broker_nagle_ns")]
    longest = max(places, key=lambda place: place[1])[0]
    whole = sum(took for _, took in places)
    shares = [took for _, took in places if took >= 0.05 * whole]
    where = {"sender_nagle_ns": "in the sender's socket", "broker_nagle_ns": f"at the {story.names['broker']}"}
    at = " and ".join(where[part] for part, took in places if took >= 0.05 * whole)
    held = f"Held for {ms(whole)} by Nagle's algorithm {at}" + (", in all," if len(shares) > 1 else "")
    spans = {span.part: span for span in sorted(story.spans, key=lambda span: span.length_ns)}
    release = _release(story, longest, spans[longest].to_ns)
    settings = {"sender_nagle_ns": "on the clients (`nagle = false` in their group)",
                "broker_nagle_ns": "on the broker (`broker.nagle = false`)"}
    advice = " and ".join(settings[part] for part, took in places if took >= 0.05 * whole)
    return f"{held} {_until(release)}; set TCP_NODELAY {advice}."


def _release(story: Story, part: str, at_ns: int) -> Release | None:
    """The acknowledgement that ended the longest wait of a part."""
    arrows = {arrow.frame: arrow for arrow in story.arrows}
    found = [release for release in story.releases if release.part == part]
    return min(found, key=lambda release: abs(arrows[release.frame].ended_ns - at_ns), default=None)


def _until(release: Release | None) -> str:
    if release is None:
        return "until a segment was full"
    if release.awaited is None:
        return f"until the ACK in frame {release.frame} came"
    awaited = f"frame {release.awaited.frame} ({release.awaited.label()})"
    if release.awaited.again:
        return f"until the ACK of {awaited} came, which had been lost and was sent again"
    if release.withheld_ns is not None and release.withheld_ns > DELAYED_NS:
        return (f"until the delayed ACK of {awaited} came: its receiver kept it back for "
                f"{ms(release.withheld_ns)}")
    return f"until the ACK of {awaited} came, a round trip later"


def _resent(story: Story) -> str:
    """What was sent again, and whether a connection broke."""
    again = [arrow.frame for arrow in story.arrows if arrow.again]
    words = f" Frame {again[0]} was sent again." if len(again) == 1 else ""
    words = words or (f" Frames {', '.join(str(frame) for frame in again)} were sent again." if again else "")
    broken = _broken(story)
    words += f" Meanwhile {broken} connections broke." if broken > 1 else ""
    return words + (" Meanwhile the connection broke, and it was sent again on a new one." if broken == 1 else "")


def _broken(story: Story) -> int:
    return sum("lost its connection" in happening.text for happening in story.happenings)


def _sentence(story: Story, part: str) -> str:
    if part in NAGLE:
        return _nagle(story)
    took = ms(story.parts[part])
    if part in story.captured:
        return f"Spent {took} {CAPTURED_WORDS[story.captured[part]]}."
    names, resent = story.names, _resent(story)
    sentences = {
        "schedule_ns": f"Handed over {took} after its time: the publisher was late{_host(story)}.",
        "session_ns": f"Waited {took} in the session of {names['publisher']} or of a relay: "
                      f"{_session(story)}.{resent if _broken(story) else ''}",
        "sleep_ns": f"Waited {took} for a sleeping client to be awake: it wakes up at intervals (`mqtt_sn.sleep`).",
        "register_ns": f"Waited {took} until its topic was registered: a round trip between client and gateway, and "
                       f"T_retry where a datagram was lost ({_frames(story)}). Predefined and short topics need none.",
        "retry_ns": f"Waited {took} until its datagram was sent again, which had been lost ({_frames(story)}): it is "
                    f"repeated when T_retry is over (`mqtt_sn.retry`).{resent}",
        "gateway_ns": f"Spent {took} inside the gateway: it was busy, its window or connection to the broker was not "
                      "free, or an earlier message to the same client was not acknowledged.",
        "sender_socket_ns": f"Waited {took} in the sender's socket{_room(story, part)}.",
        "queue_to_broker_ns": f"Waited {took} in link queues on the way to the broker, behind what the link had to "
                              "send before.",
        "wire_to_broker_ns": f"Travelled {took} to the broker: the links' delay and rate.",
        "retransmission_to_broker_ns": f"Waited {took} on the way to the broker for {_missing(story)}.{resent}",
        "handshake_ns": f"Waited {took} at the broker for its PUBREL, one more round trip: the broker hands a QoS 2 "
                        "message on when the PUBREL has come.",
        "undivided_ns": f"Spent {took} in the network and the broker, which nothing parts: a client's frames were not "
                        "recorded.",
        "broker_ns": f"Spent {took} inside the broker, from the PUBLISH that came to the one that went; no frame shows "
                     "what for.",
        "broker_window_ns": f"Waited {took} in the broker for room in the in-flight window towards "
                            f"{names['subscriber']} (`broker.max_inflight`).",
        "broker_socket_ns": f"Waited {took} in the broker's socket{_room(story, part)}.",
        "queue_to_subscriber_ns": f"Waited {took} in link queues on the way to {names['subscriber']}, behind what the "
                                  "link had to send before.",
        "wire_to_subscriber_ns": f"Travelled {took} to {names['subscriber']}: the links' delay and rate.",
        "retransmission_to_subscriber_ns": f"Waited {took} on the way to {names['subscriber']} for "
                                           f"{_missing(story)}.{resent}",
        "release_ns": f"Waited {took} at {names['subscriber']} for its PUBREL: the client hands a QoS 2 message on "
                      "when the PUBREL has come (`mqtt.deliver_qos2_on`).",
        "delivery_ns": f"Waited {took} at the host of {names['subscriber']} until the application read it"
                       f"{_host(story)}.",
        "sender_unconnected_ns": f"Waited {took} at {names['publisher']} or a relay, which had no connection.",
        "link_down_ns": f"Waited {took} for a link that an event of the scenario had taken down.{resent}",
        "nat_forgot_ns": f"Waited {took} on a connection that a NAT had forgotten, from the first frame that it "
                         f"dropped until the client gave the connection up{_dropped_by_nat(story)}.{resent}",
        "broker_paused_ns": f"Waited {took} for the broker or a gateway, which an event of the scenario had paused.",
        "subscriber_unconnected_ns": f"Waited {took} at the broker while {names['subscriber']} had no connection.",
        "reader_stopped_ns": f"Waited {took} for {names['subscriber']}, which an event of the scenario had stop "
                             "reading.",
    }
    return sentences[part].replace("the broker", f"the {names['server']}")


def _host(story: Story) -> str:
    """What of a client's delay its machine may have to do with it: nothing in a simulation, and it is not in frames."""
    return "" if story.simulated else "; whether the machine was too busy, the timing in the report tells"


def _room(story: Story, part: str) -> str:
    """What bytes in a socket waited for: the acknowledgement that made room for them, if there was one."""
    found = max((release for release in story.releases if release.part == part), key=lambda one: one.frame,
                default=None)
    if found is None:
        return "; no acknowledgement shows what for"
    return f" for room in the congestion or receive window, until the ACK in frame {found.frame} made some"


def _missing(story: Story) -> str:
    """What a segment waited for."""
    return f"data that had been lost ({_frames(story)})" if any(arrow.lost for arrow in story.arrows) else (
        "a segment that was sent again or came late; no lost frame was recorded")


def _session(story: Story) -> str:
    """Which of the causes of a wait in a session its frames and events show."""
    spans = [span for span in story.spans if span.part == "session_ns"]

    def within(at_ns: int) -> bool:
        return any(span.from_ns <= at_ns <= span.to_ns + SLACK_NS for span in spans)

    hosts = {span.host for span in spans}
    if any(within(one.at_ns) and one.host in hosts and one.text.startswith(f"{story.names['publisher']} ")
           for one in story.happenings):
        return "it was not connected"
    ends = [arrow for arrow in story.arrows if MAKES_ROOM in arrow.remarks and within(arrow.ended_ns)]
    if ends:
        last = max(ends, key=lambda arrow: arrow.ended_ns)
        return (f"its in-flight window was full (`mqtt.max_inflight`) until {last.label()} in frame {last.frame} made "
                "room")
    # QoS 0 has no window. At the others no frame tells a window from a socket.
    return "its socket was full" if story.qos == 0 else "its in-flight window or its socket was full"


def _frames(story: Story) -> str:
    """How many frames were lost, and why, as far as the recording knows; the most frequent cause first."""
    lost = [arrow.lost for arrow in story.arrows if arrow.lost]
    if not lost:
        return "no lost frame was recorded"
    why = Counter(known for one in lost if (known := DROPS.get(one.replace(" ", "_"))))
    words = [cause if count == len(lost) else f"{count} {cause}" for cause, count in why.most_common()]
    return counted(len(lost), "lost frame") + (f": {', '.join(words)}" if words else "")


def _dropped_by_nat(story: Story) -> str:
    count = sum(arrow.lost == "nat forgot" for arrow in story.arrows)
    return f"; it dropped {counted(count, 'frame')}" if count else ""


def ladder(story: Story) -> list[str]:
    """The message sequence as lines of text: frames and waits in the order of their beginning."""
    rows: list[tuple[int, int, tuple[str, str, str]]] = []
    shortest = story.latency_ns / 1000
    for span in story.spans:
        if "wire" not in span.part and span.length_ns >= shortest:
            text = f"· {title(story, span.part)}: {ms(span.length_ns)}"
            rows.append((span.from_ns, 0, (_time(story, span.from_ns), f"   {span.host}", text)))
    for happening in story.happenings:
        row = (_time(story, happening.at_ns), f"   {happening.host}", f"· {happening.text}")
        rows.append((happening.at_ns, 0, row))
    for arrow in story.arrows:
        rows.append((arrow.sent_ns, 1, _arrow_row(story, arrow)))
    rows.append((story.ends_ns, 2, (_time(story, story.ends_ns), f"   {story.names['subscriber_host']}", "· received")))
    cells = [cell for _, _, cell in sorted(rows)]
    wide, after = max(len(path) for _, path, _ in cells), max(12, *(len(at) for at, _, _ in cells))
    return [f"{at:>{after}}  {path:<{wide}}  {text}".rstrip() for at, path, text in cells]


def _time(story: Story, at_ns: int) -> str:
    """An instant in a line of text, in ms, or with its unit where that is another."""
    unit = axis_unit(story)
    return axis_time(story, at_ns) + ("" if unit == "ms" else f" {unit}")


def axis_unit(story: Story) -> str:
    """The unit of all times beside a ladder: ms, or s where it lasts 10 s or longer."""
    return "s" if story.ends_ns - story.begins_ns >= LONG_NS else "ms"


def length(story: Story, nanoseconds: int) -> str:
    """How long something lasted, in the unit of the ladder's axis; from 10 s on as everywhere."""
    if axis_unit(story) == "ms" or nanoseconds >= LONG_NS:
        return ms(nanoseconds)
    return f"{nanoseconds / 1e9:.6f}".rstrip("0").rstrip(".") + " s"


def axis_time(story: Story, at_ns: int) -> str:
    """An instant in :func:`axis_unit` after the intended time of sending, to the microsecond: ``+0.120``."""
    after = at_ns - story.begins_ns
    return f"{after / 1e9:+.6f}" if axis_unit(story) == "s" else f"{after / 1e6:+.3f}"


def _arrow_row(story: Story, arrow: Arrow) -> tuple[str, str, str]:
    # A client lives at one end of its connection; at the other are broker or gateway.
    between = {story.names["broker"], *(host for host in story.hosts if not story.clients_at.get(host))}
    ends = [host if host in between else arrow.client or host for host in (arrow.from_host, arrow.to_host)]
    if arrow.from_host == arrow.to_host and arrow.client:
        # A client beside its broker: one host is both ends.
        ends[0 if arrow.to_broker else 1] = arrow.client
    path = f"{'▶' if arrow.own else ' '} {ends[0]} {'──✕' if arrow.lost else '──►'} {ends[1]}"
    return _time(story, arrow.sent_ns), path, f"{arrow.label()}  [{'; '.join(_details(story, arrow))}]"


def _details(story: Story, arrow: Arrow) -> Iterator[str]:
    numbers = [f"frame {arrow.frame}"]
    numbers += [f"seq {arrow.offset}", f"len {arrow.data_bytes}"] if arrow.offset is not None else []
    numbers += [f"ack {arrow.acked}"] if arrow.acked is not None else []
    yield " ".join(numbers)
    if arrow.again:
        yield "sent again"
    if arrow.queue_ns >= 1000:
        yield f"queued {ms(arrow.queue_ns)}"
    yield f"lost: {arrow.lost}" if arrow.lost else f"arrives {_time(story, arrow.ended_ns)}"
    yield from arrow.remarks
