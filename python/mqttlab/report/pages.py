"""What every HTML page is made of: one file with everything in it, so that it can be mailed and still be opened in
ten years.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import scratch
from mqttlab.figures.drawing import Figure, plotly_js
from mqttlab.figures.style import DARK
from mqttlab.foreign import markup
from mqttlab.report.text import heading, meaning, number, unit


def page_of(title: str, description: str, sections: Sequence[str], footer: str) -> str:
    """A page of its sections; title, description and footer are text, sections are HTML.

    A list of contents stands below the first section, which has the answer.
    """
    first, rest, contents = _with_contents(sections)
    body = first + contents + rest
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{markup(title)} – mqttlab</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<style>{STYLE}</style><script>{plotly_js()}</script><script>{DRAW}</script></head><body><main>"
        f"<header><h1>{markup(title)}</h1><p>{markup(description)}</p></header>{body}"
        f"<footer>{markup(footer)}</footer></main>{FIT}</body></html>"
    )


def _with_contents(sections: Sequence[str]) -> tuple[str, str, str]:
    """The first section, the others with a name for each of their headings, and links to these."""
    first, *others = [section for section in sections if section]
    titles: list[str] = []

    def named(found: re.Match[str]) -> str:
        titles.append(found[1])
        return f'<h2 id="part-{len(titles)}">{found[1]}</h2>'

    # A heading is this module's or its callers': the text of others has no tags.
    rest = re.sub(r"<h2>(.*?)</h2>", named, "".join(others))
    if len(titles) < CONTENTS_LEAST:
        return first, rest, ""
    links = "".join(f'<li><a href="#part-{place}">{title}</a></li>' for place, title in enumerate(titles, start=1))
    return first, rest, f'<nav class="contents" aria-label="Contents"><b>Contents</b><ul>{links}</ul></nav>'


def html_table(frame: pl.DataFrame, columns: tuple[str, ...]) -> str:
    """A frame as an HTML table whose headings explain themselves."""
    present = [column for column in columns if column in frame.columns]
    text = {name: ' class="text"' for name, kind in frame.schema.items() if kind == pl.String}
    head = "".join(
        f'<th{text.get(c, "")} title="{markup(meaning(c))}">{markup(heading(c))}<small>{unit(c)}</small></th>'
        for c in present
    )
    body = "".join(
        "<tr>" + "".join(cell(value) for value in row) + "</tr>" for row in frame.select(present).rows()
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table of text; its first ``left`` columns are words, the others numbers."""
    kinds = [TEXT if place < left else "" for place in range(len(head))]
    top = "".join(f"<th{kind}>{markup(column)}</th>" for column, kind in zip(head, kinds, strict=True))
    body = "".join("<tr>" + "".join(f"<td{kind}>{markup(value)}</td>" for value, kind in zip(row, kinds, strict=True))
                   + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(value: Any) -> str:
    """A value as a cell of a table."""
    kind = ' class="text"' if isinstance(value, str) else ""
    return f"<td{kind}>{markup(number(value))}</td>"


def grid(drawn: Sequence[Figure], name: str) -> str:
    """Figures side by side, as far as the page is wide; ``name`` is unique on the page."""
    return '<div class="figures">' + "".join(figure_html(f, f"{name}-{i}") for i, f in enumerate(drawn)) + "</div>"


def figure_html(figure: Figure, identifier: str) -> str:
    """A figure as a division under its title; the page brings Plotly itself."""
    title = markup(str(figure.layout.title.text or ""))
    # A legend takes the room that it needs above the axes.
    drawn = figure.copy().update_layout(title=None, margin={"t": 14, "b": 50})
    for trace in drawn.data:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
    height = int(drawn.layout.height or 400)
    return (f'<div class="figure"><h3>{title}</h3><div id="{identifier}" class="plotly-graph-div" '
            f'style="height:{height}px;width:100%"></div>'
            f'<script>draw("{identifier}",{drawn.to_json(CONFIG)})</script></div>')


def write_whole(out: Path, text: str) -> None:
    """All or nothing: a full disk must not leave half a report in the place of a good one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with scratch.unfinished(out) as made:
        made.write_text(text, encoding="utf-8")


TEXT = ' class="text"'
# A figure is drawn before the page around it has its final width. Where that leaves its legend fewer rows, Plotly moves
# the axes up and leaves lines and shades where they were, cut: they are drawn anew.
FIT = ("<script>document.querySelectorAll('.js-plotly-plot').forEach(p=>new ResizeObserver(()=>{"
       "const top=p._fullLayout._size.t;Plotly.Plots.resize(p).then(()=>{"
       "if(p._fullLayout._size.t!==top)Plotly.redraw(p)})}).observe(p.parentElement))</script>")
CONFIG = {"displaylogo": False, "responsive": True}
# Fewer headings than these need no list.
CONTENTS_LEAST = 4
# Figures have the colours of the ground that the reader's system asks for, and those of paper when they are printed.
DRAW = f"const DARK={json.dumps(DARK, separators=(',', ':'))};" + """
const drawn=[],dark=matchMedia('screen and (prefers-color-scheme: dark)'),named=/color$/i;
function coloured(part,name){
if(typeof part==='string')return named.test(name)&&DARK[part.toUpperCase()]||part;
if(Array.isArray(part))return named.test(name)||typeof part[0]==='object'?part.map(one=>coloured(one,name)):part;
if(!part||typeof part!=='object')return part;
return Object.fromEntries(Object.entries(part).map(([key,one])=>[key,coloured(one,key)]))}
function show([id,figure],isDark){const {data,layout,config}=isDark?coloured(figure,''):figure;
Plotly.react(id,data,layout,config)}
function draw(id,figure){drawn.push([id,figure]);show(drawn.at(-1),dark.matches)}
function all(isDark){drawn.forEach(one=>show(one,isDark))}
dark.addEventListener('change',()=>all(dark.matches));
addEventListener('beforeprint',()=>{if(dark.matches)all(false)});
addEventListener('afterprint',()=>{if(dark.matches)all(true)})"""
STYLE = """
:root{--ink:#1c2733;--faint:#51606f;--ground:#f4f6f8;--panel:#fff;--line:#dfe4ea;--line-2:#c9d1d9;--hover:#f4f8fb;
--shade:#5b6b7c88;--accent:#00629b;--first:#f0f7fc;--good:#009e73;--warn:#e69f00;--bad:#d55e00;--bad-text:#8a2b06;
--broken:#b3261e;--undecided:#6b4e00;--held:#00674b;color-scheme:light;
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;color:var(--ink);
background:var(--ground)}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6ebf0;--faint:#aab6c2;--ground:#10161d;--panel:#18212b;
--line:#2b3743;--line-2:#3d4b59;--hover:#212d39;--shade:#0009;--accent:#6cb8ea;--first:#1c3040;--good:#3fc79a;
--warn:#f0b44a;--bad:#ff8f5a;--bad-text:#ff8f5a;
--broken:#ff7b6b;--undecided:#f0b44a;--held:#3fc79a;color-scheme:dark}}
body{margin:0}main{max-width:1280px;margin:0 auto;padding:24px}a{color:var(--accent)}
h1{margin:.2em 0 0;font-size:28px;overflow-wrap:anywhere}h2{font-size:19px;margin:.2em 0 .6em}
h3{font-size:15px;margin:.8em 0 .2em}
header p{margin:.2em 0 1em;color:var(--faint);max-width:75ch}
section{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:16px 20px;margin:0 0 18px}
.contents{font-size:14px;margin:0 0 18px;padding:0 20px;color:var(--faint)}
.contents ul{display:inline;margin:0;padding:0}
.contents li{display:inline-block;margin-left:14px}
.verdict{border-left:6px solid var(--good)}.verdict.not-valid{border-left-color:var(--bad)}
.verdict.undecided{border-left-color:#8a8f98}.verdict.worse{border-left-color:var(--bad)}
.verdict.incomplete{border-left-color:var(--bad)}.verdict p{margin:0 0 .4em}
dl{display:flex;flex-wrap:wrap;gap:10px 32px;margin:.6em 0 0}
dt{font-size:12px;color:var(--faint)}dd{margin:0;font-weight:600}
dl.told{display:block}dl.told dt{font-size:13px;color:var(--ink);font-weight:600;margin-top:8px}
dl.told dd{font-weight:400;font-size:13px;margin:0 0 0 16px}
.scroll{overflow-x:auto;margin-bottom:12px;scrollbar-width:thin;
background:linear-gradient(90deg,var(--panel) 40%,transparent),
linear-gradient(90deg,transparent,var(--panel) 60%) 100% 0,linear-gradient(90deg,var(--shade),transparent),
linear-gradient(90deg,transparent,var(--shade)) 100% 0;
background-repeat:no-repeat;background-size:40px 100%,40px 100%,16px 100%,16px 100%;
background-attachment:local,local,scroll,scroll}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap;font-size:13px}
th,td{padding:4px 7px;text-align:right;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--faint);cursor:help;white-space:normal;
border-bottom:2px solid var(--line-2);vertical-align:bottom}
th small{display:block;font-weight:400}td.text,th.text{text-align:left}
tbody tr:hover{background:var(--hover)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(520px,1fr));gap:12px}
.figure{min-width:0;break-inside:avoid}.figure:last-child:nth-child(odd){grid-column:1/-1}
details pre{overflow:auto;max-height:600px;font-size:12px}
footer{color:var(--faint);font-size:13px}@media(max-width:640px){.figures{grid-template-columns:1fr}main{padding:10px}
.verdict td.text{white-space:normal}.contents{padding:0 4px}}
@media print{.contents{display:none}}
"""
