"""A story as a picture: one vertical line for each host, a slanted arrow for each frame, a bar for each wait."""

from __future__ import annotations

from dataclasses import dataclass

from mqttlab.explanation.layout import CLEAR, LINE, Place, scale
from mqttlab.explanation.story import Arrow, Story
from mqttlab.explanation.words import axis_time, axis_unit, length, title
from mqttlab.figures import FONT, PART_COLOURS
from mqttlab.foreign import markup

FAINT = "#51606f"
OWN, OTHER, AGAIN, LOST = "#0072B2", "#6b7682", "#C77E00", "#C0392B"
AXIS_LEAST = 78
LEFT, RIGHT_LEAST = 30, 60
TOP = 84
BOTTOM = 58
LANE_LEAST = 300
# Of DejaVu Sans at 12 px, the widest of the fonts that browsers take.
CHARACTER = 7.4
BOLD_CHARACTER = 8.3
BAR = 8
NAME_SIZE = 15
# A wait shorter than this part of the latency has a bar and no label.
LABELLED = 0.01
LOST_AT = 0.6
# On a narrower page the picture is as small as this share of its size; it scrolls where that is not enough.
SMALLEST = 0.8


@dataclass(frozen=True)
class _Label:
    """A label beside a host's line: of a wait, or of something that happened there."""

    host: str
    at_ns: int
    text: str
    colour: str


class Ladder:
    """The geometry of one story's diagram, and its drawing."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.labels = _labels(story)
        self.lines = {arrow.frame: _arrow_lines(story, arrow) for arrow in story.arrows}
        # Each end of a lane has room for the labels of frames that set out there; its left end for waits, too.
        lane = max(LANE_LEAST, sum(self._widest(side) * BOLD_CHARACTER + BAR + 20 for side in ("right", "left")))
        self.right = self._right()
        instants = _instants(story)
        longest = max(len(axis_time(story, instant)) for instant in instants)
        self.axis = max(AXIS_LEAST, longest * CHARACTER + 16)
        # The picture begins where there is something to see, for a telephone shows its left end: no label stands left
        # of the first line but its own names, across it.
        left = max(LEFT, self._names_half(story.hosts[0]) - self.axis)
        self.x = {host: self.axis + left + place * lane for place, host in enumerate(story.hosts)}
        self.width = self.axis + left + self.right + (len(story.hosts) - 1) * lane
        self.pixels = scale(instants, [*self._arrow_places(), *self._label_places()])
        self.height = TOP + max(self.pixels.values()) + BOTTOM

    @property
    def smallest(self) -> float:
        """The least width at which it can be read, in pixels."""
        return SMALLEST * self.width

    def y(self, instant: int) -> float:
        """The pixel of an instant."""
        return TOP + self.pixels[instant]

    def draw(self) -> str:
        """The whole picture as SVG."""
        arrows = self.story.arrows
        body = [*self._ticks(), *self._hosts(), *self._waits(), *map(self._arrow, arrows), *self._arrow_labels(),
                *self._wait_labels(), self._legend()]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}" font-family="{markup(FONT)}" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/>{DEFINITIONS}{"".join(body)}</svg>'
        )

    def _widest(self, side: str) -> int:
        """Of how many characters the longest label is that stands on this side of a line, before the last line."""
        places = {host: place for place, host in enumerate(self.story.hosts)}
        found = [len(words) for arrow in self.story.arrows for words, _ in self.lines[arrow.frame]
                 if (places[arrow.to_host] > places[arrow.from_host]) == (side == "right")]
        if side == "right":
            found += [len(label.text) for label in self.labels if label.host != self.story.hosts[-1]]
        return max(found, default=0)

    def _right(self) -> float:
        """The room that the labels beside the last line need."""
        longest = max([len(label.text) for label in self.labels if label.host == self.story.hosts[-1]], default=0)
        return max(RIGHT_LEAST, longest * BOLD_CHARACTER + BAR + 16)

    def _names_half(self, host: str) -> float:
        """Half the width of what stands above a line."""
        return max(len(host) * BOLD_CHARACTER * NAME_SIZE / 12, len(self._clients(host)) * CHARACTER) / 2

    def _clients(self, host: str) -> str:
        clients = ", ".join(self.story.clients_at.get(host, ()))
        return clients if clients != host else ""

    def _towards(self, arrow: Arrow) -> str:
        return "right" if self.x[arrow.to_host] > self.x[arrow.from_host] else "left"

    def _arrow_places(self) -> list[Place]:
        return [Place(slot=(arrow.from_host, self._towards(arrow)), at_ns=arrow.sent_ns,
                      lines=len(self.lines[arrow.frame]), above=True) for arrow in self.story.arrows] + [
            # The next label at the line where it ends stands below its head, not across it.
            Place(slot=(arrow.to_host, "left" if self._towards(arrow) == "right" else "right"), at_ns=arrow.ended_ns,
                  lines=0, above=False) for arrow in self.story.arrows if not arrow.lost]

    def _label_places(self) -> list[Place]:
        return [Place(slot=(label.host, "right"), at_ns=label.at_ns, lines=1, above=False)
                for label in self.labels]

    def _hosts(self) -> list[str]:
        drawn = []
        for host, x in self.x.items():
            foot = self.height - BOTTOM + 12
            drawn.append(f'<line x1="{x:.1f}" y1="{TOP - 14}" x2="{x:.1f}" y2="{foot:.1f}" stroke="#1c2733" '
                         'stroke-width="1.4"/>')
            drawn.append(_text(x, 26, host, size=NAME_SIZE, weight=600, anchor="middle"))
            drawn.append(_text(x, 44, self._clients(host), colour=FAINT, anchor="middle"))
        return drawn

    def _ticks(self) -> list[str]:
        drawn = [_text(self.axis - 8, TOP - 22, f"time ({axis_unit(self.story)})", colour=FAINT, anchor="end",
                       size=11)]
        right = self.width - self.right
        for instant in self.pixels:
            y = self.y(instant)
            drawn.append(f'<line x1="{self.axis:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#edf0f3"/>')
            drawn.append(_text(self.axis - 8, y + 4, axis_time(self.story, instant), colour=FAINT, anchor="end",
                               size=11))
        return drawn

    def _waits(self) -> list[str]:
        drawn = []
        for span in self.story.spans:
            if "wire" in span.part:
                continue
            x = self.x[span.host] + 3
            y, end = self.y(span.from_ns), self.y(span.to_ns)
            words = markup(f"{title(self.story, span.part)}: {length(self.story, span.length_ns)}")
            drawn.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{BAR}" height="{max(end - y, 1):.1f}" rx="2" '
                         f'fill="{PART_COLOURS[span.part]}"><title>{words}</title></rect>')
        return drawn

    def _wait_labels(self) -> list[str]:
        drawn = []
        stacked: dict[tuple[str, int], int] = {}
        for label in self.labels:
            x = self.x[label.host] + BAR + 9
            row = stacked.get((label.host, label.at_ns), 0)
            stacked[label.host, label.at_ns] = row + 1
            drawn.append(_text(x, self.y(label.at_ns) + 12 + row * (LINE + CLEAR), label.text, colour=label.colour,
                               weight=600))
        return drawn

    def _arrow(self, arrow: Arrow) -> str:
        x1, x2 = self.x[arrow.from_host], self.x[arrow.to_host]
        y1, y2 = self.y(arrow.sent_ns), self.y(arrow.ended_ns)
        colour = _colour(arrow)
        if arrow.lost:
            x2, y2 = x1 + LOST_AT * (x2 - x1), y1 + LOST_AT * (y2 - y1)
        end = "" if arrow.lost else f' marker-end="url(#{_marker(arrow)})"'
        dash = ' stroke-dasharray="6 4"' if arrow.lost else ""
        width = 2 if arrow.own else 1.2
        details = markup(f"frame {arrow.frame}: {', '.join(arrow.packets) or arrow.label()}")
        line = (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                f'stroke-width="{width}"{dash}{end}><title>{details}</title></line>')
        return line + (_cross(x2, y2) if arrow.lost else "")

    def _arrow_labels(self) -> list[str]:
        """Above the beginning of each arrow, what it carries; of arrows that begin together, one above the other."""
        drawn = []
        stacked: dict[tuple[str, str, int], int] = {}
        for arrow in reversed(self.story.arrows):
            right = self._towards(arrow) == "right"
            x = self.x[arrow.from_host] + (BAR + 9 if right else -BAR - 9)
            key = (arrow.from_host, self._towards(arrow), arrow.sent_ns)
            for words, colour in reversed(self.lines[arrow.frame]):
                row = stacked.get(key, 0)
                stacked[key] = row + 1
                drawn.append(_text(x, self.y(arrow.sent_ns) - 4 - row * LINE, words, colour=colour,
                                   anchor="start" if right else "end", weight=600 if arrow.own else 400))
        return drawn

    def _legend(self) -> str:
        y = self.height - 14
        entries = ((OWN, "carries the message"), (AGAIN, "sent again"), (LOST, "lost"), (OTHER, "decides its fate"))
        drawn, x = [], self.axis
        for colour, words in entries:
            drawn.append(f'<line x1="{x:.1f}" y1="{y - 4}" x2="{x + 22:.1f}" y2="{y - 4}" stroke="{colour}" '
                         'stroke-width="2"/>')
            drawn.append(_text(x + 28, y, words, colour=FAINT, size=11))
            x += 28 + len(words) * CHARACTER + 22
        drawn.append(_text(self.axis, y - 17,
                           "Short spans are drawn longer than they are; the axis has the true times.", colour=FAINT,
                           size=11))
        return "".join(drawn)


def _labels(story: Story) -> list[_Label]:
    names = story.names
    labels = [_Label(names["publisher_host"], story.begins_ns, "intended", FAINT)]
    labels += [
        _Label(span.host, span.from_ns, f"{title(story, span.part)} {length(story, span.length_ns)}", "#1c2733")
        for span in story.spans if "wire" not in span.part and span.length_ns >= LABELLED * story.latency_ns
    ]
    labels += [_Label(event.host, event.at_ns, event.text, LOST) for event in story.happenings]
    return [*labels, _Label(names["subscriber_host"], story.ends_ns, "received", FAINT)]


def _instants(story: Story) -> list[int]:
    instants = [story.begins_ns, story.ends_ns]
    for arrow in story.arrows:
        instants += [arrow.sent_ns, arrow.ended_ns]
    for span in story.spans:
        instants += [span.from_ns, span.to_ns]
    return instants + [event.at_ns for event in story.happenings]


def _arrow_lines(story: Story, arrow: Arrow) -> list[tuple[str, str]]:
    """The lines of an arrow's label, each with its colour."""
    colour = _colour(arrow)
    state = f" ✕ {arrow.lost}" if arrow.lost else " again" if arrow.again else ""
    # Where several clients live on one host, its line does not tell whose frame it is.
    shared = any(len(story.clients_at.get(host, ())) > 1 for host in (arrow.from_host, arrow.to_host))
    who = f"{arrow.client}: " if shared else ""
    lines = [(f"{who}{arrow.label(1)}{state} · frame {arrow.frame}", colour)]
    return [*lines, *((remark, FAINT) for remark in arrow.remarks if remark != "not acknowledged yet")]


def _colour(arrow: Arrow) -> str:
    if arrow.lost:
        return LOST
    return AGAIN if arrow.again else OWN if arrow.own else OTHER


def _marker(arrow: Arrow) -> str:
    return {OWN: "own", AGAIN: "again", OTHER: "other"}[_colour(arrow)]


def _cross(x: float, y: float) -> str:
    return (f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="{LOST}" stroke-width="2.4" '
            'fill="none"/>')


def _text(x: float, y: float, words: str, *, colour: str = "#1c2733", anchor: str = "start", size: int = 12,
          weight: int = 400) -> str:
    return (f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}" stroke="white" stroke-width="3" paint-order="stroke">{markup(words)}</text>')


def _arrowhead(name: str, colour: str) -> str:
    return (f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>')


DEFINITIONS = ("<defs>" + _arrowhead("own", OWN) + _arrowhead("again", AGAIN) + _arrowhead("other", OTHER)
               + "</defs>")
