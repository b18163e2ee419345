"""What an event of a scenario is called, and told in a sentence."""

from __future__ import annotations

from typing import Any

from mqttlab.digits import plain
from mqttlab.foreign import shortened
from mqttlab.plurals import counted
from mqttlab.quantity import rate_words
from mqttlab.scenario.event import ENDS, ChangedPublish, Event

DONE = {"stop": "stops", "kill": "is killed", "pause": "is paused", "continue": "continues", "start": "starts",
        "disconnect": "disconnect", "vanish": "vanish", "return": "return", "stop-reading": "stop reading",
        "continue-reading": "read again", "subscribe": "subscribe to {}", "unsubscribe": "unsubscribe from {}",
        "stop-publishing": "stop publishing", "continue-publishing": "publish again", "burst": "publish {} at once",
        "switch-on": "is switched on", "switch-off": "is switched off", "radio-off": "falls silent",
        "radio-on": "speaks again"}
SINGULAR = {"disconnect": "disconnects", "vanish": "vanishes", "return": "returns", "stop-reading": "stops reading",
            "continue-reading": "reads again", "subscribe": "subscribes to {}", "unsubscribe": "unsubscribes from {}",
            "stop-publishing": "stops publishing", "continue-publishing": "publishes again",
            "burst": "publishes {} at once"}
NAME_MAX = 80


def begins(event: Event) -> str:
    """The name of an event when it begins."""
    return event.name or shortened(what(event), NAME_MAX)


def ends(event: Event) -> str:
    """The name of its end."""
    if event.name is not None:
        return f"end of {event.name}"
    if event.network is not None:
        return f"{_links(event)} {'up' if event.down else 'as before'}"
    if event.publish is not None:
        return shortened(f"{_publishing(event)} as before", NAME_MAX)
    if event.position is not None:
        return f"{event.station} back in its place"
    return shortened(_action(event, ENDS[str(event.do)]), NAME_MAX)


def what(event: Event) -> str:
    """What happens, in a few words."""
    if event.publish is not None:
        return f"{_publishing(event)} {_published(event.publish)}"
    if event.position is not None:
        x, y = (plain(mm / 1000) for mm in event.position)
        return f"{event.station} moves to {x}, {y} m"
    if event.network is None:
        return _action(event, str(event.do))
    if event.down is not None:
        return f"{_links(event)} {'down' if event.down else 'up'}"
    return f"{_links(event)} {', '.join(_field(name, value) for name, value in event.changed.items())}"


def told(event: Event, times: range) -> str:
    """An event in a sentence, as ``check`` tells it."""
    named = f"{event.name}: " if event.name is not None else ""
    words = f"at {seconds(times[0])}"
    if event.when is not None:
        after = "with" if not event.at else f"{seconds(abs(event.at))} {'after' if event.at > 0 else 'before'}"
        words = f"{after} {event.when}, {words}"
    if len(times) > 1:
        words += f" and every {seconds(times[1] - times[0])}, {len(times)} times"
    if event.lasts is not None:
        words += f", for {seconds(event.lasts)}"
    queue = ""
    if event.down:
        queue = ", waiting frames " + ("are kept" if event.queued == "keep" else "are dropped")
    return f"{named}{words}: {what(event)}{queue}"


def seconds(ns: int) -> str:
    """A time or a length of time."""
    return f"{plain(ns / 1e9)} s" if ns == 0 or abs(ns) >= 10**9 else f"{plain(ns / 1e6)} ms"


def _links(event: Event) -> str:
    one_way = event.direction in ("up", "down")
    return f"{event.network}/{event.direction}" if one_way else str(event.network)


def _action(event: Event, do: str) -> str:
    if event.group is None:
        return f"{event.server or event.interferer or event.station} {DONE[do]}"
    about = event.filter if do != "burst" else counted(event.messages or 1, "message")
    done = (DONE if event.client is None else SINGULAR)[do].format(about)
    return f"{_publisher(event)} {done}"


def _publisher(event: Event) -> str:
    """The clients, and of several publications which."""
    if event.client is not None:
        who = f"{event.group} {event.client}"
    else:
        share = "" if event.share is None else f"{plain(100 * event.share[0] / event.share[1], 3)} % of "
        who = f"{share}{event.group}"
    if isinstance(event.publication, int):
        return f"{who} (publication {event.publication})"
    return who if event.publication is None else f"{who} ({event.publication})"


def _publishing(event: Event) -> str:
    return f"{_publisher(event)} {'publish' if event.client is None else 'publishes'}"


def _published(publish: ChangedPublish) -> str:
    """What messages are from now on."""
    words = []
    if publish.every is not None:
        often = f"at {plain(round(1e9 / publish.every, 3), 10)} /s" if 0 < publish.every < 10**9 else (
            f"every {seconds(publish.every)}")
        words.append("nothing" if publish.every == 0 else often)
    if publish.payload is not None:
        size = publish.payload.size
        words.append(publish.payload.kind if size is None else f"{size} B")
    if publish.qos is not None:
        words.append(f"at QoS {publish.qos}")
    return ", ".join(words)


def _field(name: str, value: Any) -> str:
    """A field of a link with its value, where that is short."""
    if name == "rate":
        return f"rate {rate_words(value)}"
    if name in ("delay", "jitter"):
        return f"{name} {plain(value / 1e6)} ms"
    if name in ("loss", "duplicate", "corrupt", "correlation"):
        return f"{name} {plain(100 * value[0] / value[1], 3)} %"
    if name == "queue":
        return f"queue {value.words()}"
    if name == "policer":
        return f"policer {rate_words(value.rate)}"
    if name == "discipline":
        return f"discipline {value.kind}"
    return name.replace("_", " ")
