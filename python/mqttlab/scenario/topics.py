"""Topics and filters with placeholders: which are valid (MQTT 5 §4.7), and which filter may match which topic.

A pattern is checked before its placeholders are filled in; ``{client}`` and ``{topic}`` become numbers, ``{group}`` the
group's name, none of which holds a separator or a wildcard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mqttlab.mistaken import closest
from mqttlab.quantity import shown

MQTT_TEXT_MAX = 65_535
"""Bytes of a string in MQTT, whose length is a 16-bit number (MQTT 5 §1.5.4)."""
PROPERTY_TEXT_MAX = 60_000
"""Bytes of a text among the properties of a packet, as a plan has it."""
# A group's name has up to 40 characters and a number up to 10 digits.
_FILLED_MAX = 60
TOPIC_PLACEHOLDERS = ("{group}", "{client}", "{topic}")
FILTER_PLACEHOLDERS = ("{group}", "{client}")


def published_topic(topic: str) -> str:
    """A topic that can be published to.

    Raises:
        ValueError: why it cannot.
    """
    _text(topic, TOPIC_PLACEHOLDERS, "topic")
    if any(character in topic for character in "+#"):
        raise ValueError(f"is {shown(topic)}, but only filters in `subscribe` may have the wildcards `+` and `#`")
    if topic.startswith("$"):
        raise ValueError(f"is {shown(topic)}, but topics that begin with `$` belong to the broker; "
                         f"write {shown(topic.lstrip('$') or 'a')}")
    return topic


def topic_of_answers(topic: str) -> str:
    """A topic that answers can be published to; what is filled in is known to every message of a client.

    Raises:
        ValueError: it cannot be published to.
    """
    if (problem := placeholders(topic, FILTER_PLACEHOLDERS)) is not None:
        raise ValueError(problem)
    return published_topic(topic)


def property_data(text: str) -> str:
    """Data that tells answers apart, written as text.

    Raises:
        ValueError: why it cannot stand in a packet.
    """
    _text(text, FILTER_PLACEHOLDERS, "text")
    return text


def property_text(text: str) -> str:
    """A text among the properties of a packet, in which nothing is filled in.

    Raises:
        ValueError: why it cannot stand there.
    """
    _without_nul(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > PROPERTY_TEXT_MAX:
        raise ValueError(f"has {size} B, but may have at most {PROPERTY_TEXT_MAX} B")
    return text


def will_topic(topic: str) -> str:
    """The topic of a last will, in which nothing is filled in.

    Raises:
        ValueError: it cannot be published to.
    """
    if (problem := placeholders(topic, ())) is not None:
        raise ValueError(problem)
    return published_topic(topic)


def topic_suffix(suffix: str) -> str:
    """What a relay appends to a topic.

    Raises:
        ValueError: it cannot be part of a topic.
    """
    _text(suffix, (), "suffix")
    if any(character in suffix for character in "+#"):
        raise ValueError(f"is {shown(suffix)}, but a topic cannot have the wildcards `+` and `#`")
    return suffix


def topic_filter(text: str) -> str:
    """A filter that can be subscribed to.

    Raises:
        ValueError: why it cannot.
    """
    _text(text, FILTER_PLACEHOLDERS, "filter")
    levels = text.split("/")
    if levels[0] == "$share":
        # MQTT 5 §4.8.2: $share/NAME/FILTER.
        if len(levels) < 3 or not levels[1] or not "/".join(levels[2:]):
            raise ValueError(f"is {shown(text)}, but a shared subscription is `$share/NAME/FILTER`, such as "
                             "\"$share/pool/a/#\"")
        if "+" in levels[1] or "#" in levels[1]:
            raise ValueError(f"is {shown(text)}, but the name of a shared subscription cannot have wildcards")
        levels = levels[2:]
    for index, level in enumerate(levels):
        if (level != "+" and "+" in level) or (level != "#" and "#" in level):
            raise ValueError(f"is {shown(text)}, but `+` and `#` must be alone in their level, such as \"a/+/b\" or "
                             "\"a/#\"")
        if level == "#" and index != len(levels) - 1:
            raise ValueError(f"is {shown(text)}, but `#` may only be the last level; use `+` for one level")
    return text


def _without_nul(text: str) -> None:
    # MQTT 5, §1.5.4.
    if "\0" in text:
        raise ValueError(f"is {shown(text)}, but MQTT does not allow the character NUL")


def _text(text: str, known: Sequence[str], what: str) -> None:
    if not text:
        raise ValueError(f"is empty, but a {what} has at least 1 character")
    _without_nul(text)
    size = len(text.encode("utf-8", "surrogatepass")) + _FILLED_MAX * text.count("{")
    if size > MQTT_TEXT_MAX:
        raise ValueError(f"has {size} B with its placeholders filled in, but MQTT allows {MQTT_TEXT_MAX} B")
    if (problem := placeholders(text, known)) is not None:
        raise ValueError(problem)


def placeholders(text: str, known: Sequence[str]) -> str | None:
    """What is wrong with the placeholders of a text, if anything is."""
    rest = text
    for placeholder in re.findall(r"\{[^{}]*\}", text):
        if placeholder not in known:
            close = closest(placeholder, known)
            words = f"known: {', '.join(known)}" if known else "there are none here"
            return f"has the unknown placeholder {shown(placeholder)}; " + (
                f"did you mean {close}?" if close else words)
        rest = rest.replace(placeholder, "", 1)
    if "{" in rest or "}" in rest:
        return f"is {shown(text)}, which has an unmatched brace; " + (
            f"placeholders are {', '.join(known)}" if known else "braces cannot be used here")
    return None


@dataclass(slots=True)
class _Level:
    """What filters have behind the levels up to here."""

    fixed: dict[str, _Level] = field(default_factory=dict)
    varying: dict[str, _Level] = field(default_factory=dict)
    """Below levels with placeholders."""
    any: _Level | None = None
    """Below `+`."""
    ends: list[str] = field(default_factory=list)
    """Filters that end here."""
    rest: list[str] = field(default_factory=list)
    """Filters that end with `#` here."""
    known: dict[str, list[_Level]] = field(default_factory=dict)
    """Levels below, by the text that they match."""

    def below(self, text: str, *, wild: bool) -> list[_Level]:
        """The levels below that match a topic's."""
        found = self.known.get(text)
        if found is None:
            if "{" in text:
                found = [level for part, level in (*self.fixed.items(), *self.varying.items()) if _alike(part, text)]
            else:
                found = [self.fixed[text]] if text in self.fixed else []
                found += [level for part, level in self.varying.items() if _alike(part, text)]
            self.known[text] = found
        return [*found, self.any] if wild and self.any is not None else found


class Filters:
    """Many filters, of which those are found that may match a topic, as :func:`may_match` has it of each."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._top = _Level()
        for pattern in dict.fromkeys(patterns):
            self._add(pattern)

    def _add(self, pattern: str) -> None:
        levels, here = pattern.split("/"), self._top
        for text in levels[2:] if levels[0] == "$share" else levels:
            if text == "#":
                here.rest.append(pattern)
                return
            if text == "+":
                here.any = here.any or _Level()
                here = here.any
            else:
                here = (here.varying if "{" in text else here.fixed).setdefault(text, _Level())
        here.ends.append(pattern)

    def matching(self, topic: str) -> list[str]:
        """The filters that may match."""
        found, reached = list[str](), [self._top]
        for number, text in enumerate(topic.split("/")):
            # Wildcards do not match topics of the broker's own (MQTT 5 §4.7.2).
            wild = number > 0 or not topic.startswith("$")
            if wild:
                found += [pattern for level in reached for pattern in level.rest]
            reached = [level for above in reached for level in above.below(text, wild=wild)]
        return found + [pattern for level in reached for pattern in (*level.ends, *level.rest)]


class Prefixes:
    """The subscriptions of ZeroMQ, as :class:`Filters` are those of MQTT.

    Each is a beginning of topics, with or without `#` at its end (ZeroMQ RFC 29, "The PUB Socket Type").
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = list(dict.fromkeys(patterns))

    def matching(self, topic: str) -> list[str]:
        """The subscriptions that may match."""
        return [pattern for pattern in self._patterns if _may_begin(topic, pattern.removesuffix("#"))]


def _may_begin(topic: str, prefix: str) -> bool:
    """Whether a topic begins with a prefix for some clients."""
    (fixed, varies, _), wanted = topic.partition("{"), prefix.partition("{")[0]
    if fixed.startswith(wanted):
        return True
    # What varies of a topic is a number, or a group's name.
    behind = wanted.removeprefix(fixed)
    return bool(varies) and wanted.startswith(fixed) and (
        topic.startswith("{group}", len(fixed)) or behind[0].isdigit())


def may_match(pattern: str, topic: str) -> bool:
    """Whether a filter matches a topic for some clients; placeholders stand for any one level's text."""
    wanted, given = pattern.split("/"), topic.split("/")
    if wanted[0] == "$share":
        wanted = wanted[2:]
    if wanted[0] in "+#" and topic.startswith("$"):
        return False
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(given):
            return False
        if level != "+" and not _alike(level, given[index]):
            return False
    return len(wanted) == len(given)


def _alike(first: str, second: str) -> bool:
    """Whether two levels can be the same text, once their placeholders are filled in."""
    if "{" not in first and "{" not in second:
        return first == second
    if "{" not in first:
        return _matches(second, first)
    if "{" not in second:
        return _matches(first, second)
    # Both vary: their fixed beginnings and ends must agree.
    (head, tail), (other_head, other_tail) = _ends(first), _ends(second)
    return ((head.startswith(other_head) or other_head.startswith(head))
            and (tail.endswith(other_tail) or other_tail.endswith(tail)))


def _matches(pattern: str, text: str) -> bool:
    parts = {"{client}": r"\d+", "{topic}": r"\d+", "{group}": ".+"}
    escaped = re.escape(pattern)
    for placeholder, expression in parts.items():
        escaped = escaped.replace(re.escape(placeholder), expression)
    return re.fullmatch(escaped, text) is not None


def _ends(pattern: str) -> tuple[str, str]:
    return pattern.partition("{")[0], pattern.rpartition("}")[2]
