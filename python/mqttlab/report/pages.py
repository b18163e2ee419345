"""What every HTML page is made of: one file with everything in it, so that it can be mailed and still be opened in
ten years.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import scratch
from mqttlab.figures.drawing import Figure, plotly_js
from mqttlab.foreign import markup
from mqttlab.report.text import heading, meaning, number, unit


def page_of(title: str, description: str, sections: Sequence[str], footer: str) -> str:
    """A page of its sections; title, description and footer are text, sections are HTML."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{markup(title)} – mqttlab</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><script>{plotly_js()}</script></head><body><main>"
        f"<header><h1>{markup(title)}</h1><p>{markup(description)}</p></header>{''.join(sections)}"
        f"<footer>{markup(footer)}</footer></main>{FIT}</body></html>"
    )


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
    drawn = figure.copy().update_layout(title=None)
    height = int(drawn.layout.height or 400)
    return (f'<div class="figure"><h3>{title}</h3><div id="{identifier}" class="plotly-graph-div" '
            f'style="height:{height}px;width:100%"></div>'
            f'<script>Plotly.newPlot("{identifier}",{drawn.to_json(CONFIG)})</script></div>')


def write_whole(out: Path, text: str) -> None:
    """All or nothing: a full disk must not leave half a report in the place of a good one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with scratch.unfinished(out) as made:
            made.write_text(text, encoding="utf-8")
    except OSError as error:
        # Nobody has asked for the file that was to get its name.
        error.filename = str(out)
        raise


TEXT = ' class="text"'
# A figure is drawn before the page around it has its final width.
FIT = ("<script>document.querySelectorAll('.js-plotly-plot').forEach(p=>"
       "new ResizeObserver(()=>Plotly.Plots.resize(p)).observe(p.parentElement))</script>")
CONFIG = {"displaylogo": False, "responsive": True}
STYLE = """
:root{font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;color:#1c2733;background:#f4f6f8}
body{margin:0}main{max-width:1280px;margin:0 auto;padding:24px}
h1{margin:.2em 0 0;font-size:28px}h2{font-size:19px;margin:.2em 0 .6em}
h3{font-size:15px;margin:.8em 0 .2em}
header p{margin:.2em 0 1em;color:#51606f;max-width:75ch}
section{background:#fff;border:1px solid #dfe4ea;border-radius:8px;padding:16px 20px;margin:0 0 18px}
.verdict{border-left:6px solid #009e73}.verdict.not-valid{border-left-color:#e69f00}
.verdict.undecided{border-left-color:#8a8f98}.verdict.worse{border-left-color:#d55e00}
.verdict.incomplete{border-left-color:#d55e00}.verdict p{margin:0 0 .4em}
dl{display:flex;flex-wrap:wrap;gap:10px 32px;margin:.6em 0 0}
dt{font-size:12px;color:#51606f}dd{margin:0;font-weight:600}
dl.told{display:block}dl.told dt{font-size:13px;color:#1c2733;font-weight:600;margin-top:8px}
dl.told dd{font-weight:400;font-size:13px;margin:0 0 0 16px}
.scroll{overflow-x:auto;margin-bottom:12px;scrollbar-width:thin;background:linear-gradient(90deg,#fff 40%,#fff0),
linear-gradient(90deg,#fff0,#fff 60%) 100% 0,linear-gradient(90deg,#5b6b7c88,#fff0),
linear-gradient(90deg,#fff0,#5b6b7c88) 100% 0;
background-repeat:no-repeat;background-size:40px 100%,40px 100%,16px 100%,16px 100%;
background-attachment:local,local,scroll,scroll}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;white-space:nowrap;font-size:13px}
th,td{padding:4px 7px;text-align:right;border-bottom:1px solid #e6e8eb}
th{font-weight:600;color:#51606f;cursor:help;border-bottom:2px solid #c9d1d9;vertical-align:bottom}
th small{display:block;font-weight:400}td.text,th.text{text-align:left}
tbody tr:hover{background:#f4f8fb}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(520px,1fr));gap:12px}
.figure{min-width:0}.figure:last-child:nth-child(odd){grid-column:1/-1}
details pre{overflow:auto;max-height:600px;font-size:12px}
footer{color:#51606f;font-size:13px}@media(max-width:640px){.figures{grid-template-columns:1fr}
main{padding:10px}.verdict td.text{white-space:normal}}
"""
