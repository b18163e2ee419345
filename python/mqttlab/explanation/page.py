"""A story as a page of its own: the sentence, the parts, the diagram, the ladder as text. One file, nothing outside."""

from __future__ import annotations

from pathlib import Path

from mqttlab import scratch
from mqttlab.explanation.diagram import Ladder
from mqttlab.explanation.story import Story
from mqttlab.explanation.words import cause, head, ladder, ms, title
from mqttlab.figures import PART_COLOURS
from mqttlab.foreign import markup
from mqttlab.metrics import ALL, CAPTURED_WORDS, PARTS


def write(story: Story, directory: Path, name: str) -> tuple[Path, Path]:
    """Write ``name``.html and ``name``.svg and return their paths.

    Raises:
        OSError: a file cannot be written.
    """
    diagram = Ladder(story)
    page, drawing = directory / f"{name}.html", directory / f"{name}.svg"
    for path, text in ((drawing, diagram.draw()), (page, html(story, diagram))):
        with scratch.unfinished(path) as made:
            made.write_text(text, encoding="utf-8")
    return page, drawing


def html(story: Story, diagram: Ladder) -> str:
    """The page."""
    text = markup("\n".join(ladder(story)))
    adjusted = (f'<p class="note">The recorded instants disagree by {ms(story.adjusted_ns)} in all; no part is further '
                "off than that.</p>" if story.adjusted_ns else "")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{markup(head(story))}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}</style></head><body><main><h1>{markup(head(story))}</h1>"
        f'<p class="cause">{markup(cause(story))}</p>{_bar(story)}{_table(story)}{adjusted}'
        f'<figure tabindex="0"><div style="{_size(diagram)}">{diagram.draw()}</div></figure>'
        f'<h2>The same as text</h2><pre tabindex="0">{text}</pre>'
        "<footer>Made by mqttlab from the recording alone. seq and ack count the bytes of the connection's streams "
        "from 0.</footer></main></body></html>"
    )


def _meaning(story: Story, part: str) -> str:
    if part in story.captured:
        return f"The time {CAPTURED_WORDS[story.captured[part]]}."
    return ALL[part].meaning


def _size(diagram: Ladder) -> str:
    return f"max-width:{diagram.width:.0f}px;min-width:{diagram.smallest:.0f}px"


def _bar(story: Story) -> str:
    """The latency as one bar, cut into its parts."""
    pieces = "".join(
        f'<span style="flex:{story.parts[part]} 0 0;background:{PART_COLOURS[part]}" '
        f'title="{markup(title(story, part))}: {ms(story.parts[part])}"></span>'
        for part in PARTS if story.parts[part]
    )
    return f'<div class="bar">{pieces}</div>'


def _table(story: Story) -> str:
    rows = "".join(
        f'<tr title="{markup(_meaning(story, part))}"><td><i style="background:{PART_COLOURS[part]}"></i>'
        f"{markup(title(story, part))}</td><td>{ms(story.parts[part])}</td>"
        f"<td>{100 * story.parts[part] / max(story.latency_ns, 1):.1f} %</td></tr>"
        for part in PARTS if story.parts[part]
    )
    return f"<table><thead><tr><th>part</th><th>time</th><th>share</th></tr></thead><tbody>{rows}</tbody></table>"


# The picture shrinks as far as its words can be read, then it scrolls, and a shadow at the edge is seen through it. It
# has the colours of paper, which a dark ground turns around, as the dashboard does.
STYLE = """
:root{--ink:#1c2733;--faint:#51606f;--ground:#f4f6f8;--panel:#fff;--line:#dfe4ea;--mark:#e69f00;
--shade:#5b6b7c88;color-scheme:light;
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;color:var(--ink);background:var(--ground)}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6ebf0;--faint:#aab6c2;--ground:#10161d;--panel:#18212b;
--line:#2b3743;--mark:#f0b44a;--shade:#0009;color-scheme:dark}}
body{margin:0}main{max-width:1280px;margin:0 auto;padding:24px;box-sizing:border-box}
h1{font-size:20px;margin:.2em 0 .4em;overflow-wrap:anywhere}
h2{font-size:16px;margin:1.2em 0 .4em}.cause{font-size:17px;border-left:6px solid var(--mark);background:var(--panel);
padding:10px 14px;margin:0 0 14px}.bar{display:flex;height:22px;border-radius:4px;overflow:hidden;margin:0 0 12px}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;background:var(--panel)}
th,td{padding:4px 12px;text-align:right;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}
td i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:8px}
figure{margin:14px 0;background:linear-gradient(90deg,var(--panel) 40%,transparent),
linear-gradient(90deg,transparent,var(--panel) 60%) 100% 0,linear-gradient(90deg,var(--shade),transparent),
linear-gradient(90deg,transparent,var(--shade)) 100% 0,var(--panel);background-repeat:no-repeat;
background-size:40px 100%,40px 100%,16px 100%,16px 100%,100% 100%;
background-attachment:local,local,scroll,scroll,scroll;
border:1px solid var(--line);border-radius:8px;padding:8px;overflow-x:auto}
figure div{margin:auto}figure svg{display:block;width:100%;height:auto;mix-blend-mode:multiply}
pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px;overflow-x:auto;font-size:12px}
@media screen and (prefers-color-scheme:dark){
figure svg{filter:invert(1) hue-rotate(180deg);mix-blend-mode:screen}}
.note,footer{color:var(--faint);font-size:13px}@media(max-width:640px){main{padding:10px}}
"""
