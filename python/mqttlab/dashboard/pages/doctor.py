"""Doctor: what this machine can do, and what each missing thing costs."""

from __future__ import annotations

from dash import html

from mqttlab.brokers import ADAPTERS
from mqttlab.dashboard.panels import Head, facts, written_table
from mqttlab.engine import doctor

HEADS = (Head("what", text=True), Head("here", text=True), Head("detail", text=True),
         Head("effect if missing", text=True))


def page() -> html.Div:
    """The page, from what the engine finds now."""
    found = doctor()
    rows = [[one["name"].replace("_", " "), "yes" if one["available"] else "no", str(one["detail"]),
             "" if one["available"] else str(one.get("costs") or "")] for one in found["capabilities"]]
    for name, adapter in ADAPTERS.items():
        if name in ("external", "program"):
            continue
        program = adapter.found(None)
        detail = f"{program} {adapter.version()}" if program else f"install {name}"
        rows.append([f"broker {name}", "yes" if program else "no", detail, "" if program else f"no runs on {name}"])
    known = [("engine", str(found["engine"])), ("kernel", str(found["kernel"])),
             ("processors", str(found["processors"])),
             ("congestion control", ", ".join(found["congestion_control"]))]
    able = written_table("What this machine can do", HEADS, rows, wraps=True)
    return html.Div([html.H1("Doctor"), facts(known), html.Section([able], className="panel")])
