"""What stands around every page: where one can go, the theme, the export of the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from mqttlab.dashboard.panels import link


def shell(pages: Sequence[tuple[str, str]], page: Any = None) -> html.Div:
    """The frame: navigation above, the page below; it stays while pages change.

    Args:
        pages: address and name of each page.
        page: what stands on the page when it opens.
    """
    return html.Div(
        [
            html.A("Skip to the page", href="#page", className="skip"),
            dcc.Location(id="location", refresh=False),
            dcc.Store(id="theme", storage_type="local"),
            # What a button has asked for last, and what of it is done.
            dcc.Store(id="asked"), dcc.Store(id="done"),
            # The address of the table of runs that a search typed there has led to: the page follows it as it is.
            dcc.Store(id="typed"),
            html.Header(
                [
                    link("mqttlab", "/", className="page-link brand"),
                    html.Nav([link(name, to) for to, name in pages], **{"aria-label": "Pages"}),
                    html.Div(
                        [html.Button("Export screen", id="export", type="button",
                                     title="What is on the screen as one HTML file"),
                         html.Button("Theme", title="Dark or light", id="toggle-theme", type="button")],
                        className="tools"),
                ],
                className="bar",
            ),
            html.Main(page, id="page", tabIndex=-1),
            html.Div(id="status", role="status", className="status", **{"aria-live": "polite"}),
        ]
    )
