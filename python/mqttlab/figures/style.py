"""What all figures share: one palette, one font, one kind of axes.

A QoS level has the same colour on every page, and so has a part of a message's time. The colours are Okabe and Ito's,
safe for colour blindness.
"""

from __future__ import annotations

from typing import Any

from mqttlab.figures.drawing import Figure

QOS_COLOURS = {0: "#0072B2", 1: "#E69F00", 2: "#009E73"}
SERIES_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# Parts of a message's time: waits in a socket are red and orange, links yellow and blue, handshakes green; a gateway's
# brown, sleep as dark as the night.
PART_COLOURS = {
    "schedule_ns": "#B0B7C0", "session_ns": "#8A63B8", "sleep_ns": "#3B4A6B", "register_ns": "#7FB069",
    "sender_nagle_ns": "#D55E00", "sender_socket_ns": "#F2B48C", "retry_ns": "#C0504D", "gateway_ns": "#A0826D",
    "queue_to_broker_ns": "#D9B300", "wire_to_broker_ns": "#0072B2", "retransmission_to_broker_ns": "#A5123A",
    "handshake_ns": "#009E73", "undivided_ns": "#8C9AA8", "broker_ns": "#5B6572", "broker_window_ns": "#B79AD6",
    "broker_nagle_ns": "#F07F2E",
    "broker_socket_ns": "#F7D0B0", "queue_to_subscriber_ns": "#F0E442", "wire_to_subscriber_ns": "#56B4E9",
    "retransmission_to_subscriber_ns": "#DE6B86", "release_ns": "#66C9A8", "delivery_ns": "#D3D8DE",
    "sender_unconnected_ns": "#2F5D8A", "link_down_ns": "#6E2C00", "nat_forgot_ns": "#7D6608",
    "broker_paused_ns": "#4A235A", "subscriber_unconnected_ns": "#5DADE2", "reader_stopped_ns": "#117864",
}
# What each colour becomes on a dark ground: text and axes, and what has a contrast below 3 or little more there.
DARK_INK, DARK_PANEL = "#E6EBF0", "#18212B"
DARK = {
    "WHITE": DARK_PANEL, "#1C2733": DARK_INK, "#8A8F98": "#9AA7B4", "#E6E8EB": "#34414E", "#2A3F5F": "#9AA7B4",
    "#E5ECF6": DARK_PANEL, "#000000": "#FFFFFF", "#0072B2": "#4C8DFF", "#3B4A6B": "#7F93C4", "#5B6572": "#7A8696",
    "#8A63B8": "#A583D4", "#A5123A": "#FF4F7A",
    "#2F5D8A": "#6FA3D8", "#6E2C00": "#C9793E", "#7D6608": "#C9AC3A", "#4A235A": "#B07CC6", "#117864": "#3FB59B",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


# Larger titles of axes do not fit a telephone's screen.
AXIS_TITLE = {"standoff": 15, "font": {"size": 13}}
# What of Plotly's own template these figures use. All of it is 7 kB, copied several times for each figure.
TEMPLATE: dict[str, Any] = {
    "layout": {
        "autotypenumbers": "strict", "hoverlabel": {"align": "left"},
        "xaxis": {"automargin": True, "title": AXIS_TITLE, "zerolinecolor": "white", "zerolinewidth": 2},
        "yaxis": {"automargin": True, "title": AXIS_TITLE, "zerolinecolor": "white", "zerolinewidth": 2},
        "shapedefaults": {"line": {"color": "#2a3f5f"}},
        "annotationdefaults": {"arrowcolor": "#2a3f5f", "arrowhead": 0, "arrowwidth": 1}, "title": {"x": 0.05},
    },
    "data": {"bar": [{"type": "bar", "error_x": {"color": "#2a3f5f"}, "error_y": {"color": "#2a3f5f"},
                      "marker": {"line": {"color": "#E5ECF6", "width": 0.5}}}]},
}


def blank(title: str, x: str, y: str) -> Figure:
    """A figure without data: its title and those of its axes."""
    axis: dict[str, Any] = {
        "showline": True, "linecolor": "#8a8f98", "gridcolor": "#e6e8eb", "zeroline": False, "ticks": "outside",
    }
    return Figure(
        layout={
            "template": TEMPLATE,
            "title": {"text": title},
            "font": {"family": FONT, "size": 13, "color": "#1c2733"},
            "xaxis": {**axis, "title": x}, "yaxis": {**axis, "title": y},
            "paper_bgcolor": "white", "plot_bgcolor": "white", "margin": {"l": 70, "r": 20, "t": 58, "b": 55},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
            "height": 400, "hovermode": "closest",
        }
    )
