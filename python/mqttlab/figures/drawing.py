"""What a figure is: traces and a layout, as Plotly's JavaScript reads them.

Plotly's Python package checks and copies every field in classes of its own, and takes longer to load than a small
report to be written. Nothing of that is needed for figures that this package draws itself: a figure is nested
dictionaries.

What is not here: checking. A field that Plotly does not know is drawn by nobody; their list is
https://plotly.com/javascript/reference.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from mqttlab import foreign

Axis = Literal["x", "y"]
# Plotly's cartesian bundle (plotly/README.md).
PLOTLY_CARTESIAN = Path(__file__).parent / "plotly" / "plotly-cartesian.min.js"
# The text between <script> and </script> must not end it.
UNSAFE = (("<", "\\u003c"), (">", "\\u003e"), ("/", "\\u002f"))


class Part(dict[str, Any]):
    """A part of a figure, its fields by key or by attribute. One that is not there is an empty part."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, Part())

    def put(self, fields: Mapping[str, Any]) -> None:
        """Set fields; parts are merged, and ``None`` takes a field away. A ``title`` may be given as its text."""
        for name, value in fields.items():
            if value is None:
                self.pop(name, None)
                continue
            if name == "title" and isinstance(value, str):
                value = {"text": value}
            if not isinstance(value, Mapping):
                self[name] = value
                continue
            known = self.get(name)
            merged = known if isinstance(known, Part) else Part()
            merged.put(value)
            self[name] = merged


class Figure:
    """Traces, and a layout with at least the axes ``xaxis`` and ``yaxis``."""

    def __init__(self, data: Sequence[Mapping[str, Any]] = (), layout: Mapping[str, Any] | None = None) -> None:
        self.data: tuple[Part, ...] = tuple(_part(fields) for fields in data)
        self.layout = _part(layout or {})

    def copy(self) -> Figure:
        """The same figure; to change one does not change the other, but for the lists of numbers in it."""
        return Figure(self.data, self.layout)

    def add_trace(self, fields: Mapping[str, Any], *, panel: int = 1) -> Self:
        """Add a trace, in one of several panels from 1 on."""
        which = {} if panel == 1 else {"xaxis": f"x{panel}", "yaxis": f"y{panel}"}
        self.data = (*self.data, _part({**fields, **which}))
        return self

    def update_layout(self, layout: Mapping[str, Any] | None = None, **fields: Any) -> Self:
        """Set fields of the layout; parts are merged, and ``None`` takes a field away."""
        self.layout.put({**(layout or {}), **fields})
        return self

    def update_xaxes(self, *, panel: int | None = None, **fields: Any) -> Self:
        """Set fields of all horizontal axes, or of that of one panel."""
        return self._update_axes("x", panel, fields)

    def update_yaxes(self, *, panel: int | None = None, **fields: Any) -> Self:
        """Set fields of all vertical axes, or of that of one panel."""
        return self._update_axes("y", panel, fields)

    def _update_axes(self, axis: Axis, panel: int | None, fields: Mapping[str, Any]) -> Self:
        known = [name for name in self.layout if re.fullmatch(rf"{axis}axis\d*", name)] or [f"{axis}axis"]
        one = f"{axis}axis{'' if panel == 1 else panel}"
        return self.update_layout(dict.fromkeys(known if panel is None else [one], fields))

    def add_line(
        self, axis: Axis, value: float, line: Mapping[str, Any], label: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw a line across the whole figure where an axis has this value, with a label (``text``, ``font``) beside
        it: at the left end of a horizontal line, at the upper end of a vertical one."""
        across: Axis = "y" if axis == "x" else "x"
        shape = {"type": "line", "line": dict(line), f"{axis}ref": axis, f"{axis}0": value, f"{axis}1": value,
                 f"{across}ref": f"{across} domain", f"{across}0": 0, f"{across}1": 1}
        self.layout["shapes"] = [*self.layout.get("shapes", ()), _part(shape)]
        if label is None:
            return self
        # Shapes take what a logarithmic axis shows, annotations its logarithm.
        log = self.layout[f"{axis}axis"].get("type") == "log" and value > 0
        side = {"x": 0, "yanchor": "bottom"} if axis == "y" else {"y": 1, "yanchor": "top"}
        return self.add_annotation(**{
            "showarrow": False, "xanchor": "left", **side, axis: math.log10(value) if log else value,
            f"{axis}ref": axis, f"{across}ref": f"{across} domain", **label})

    def add_band(self, axis: Axis, begin: float, end: float, fill: Mapping[str, Any]) -> Self:
        """Shade a stretch of an axis (``color``, ``opacity``), behind the traces."""
        across: Axis = "y" if axis == "x" else "x"
        shape = {"type": "rect", "layer": "below", "line": {"width": 0}, "fillcolor": fill["color"],
                 "opacity": fill["opacity"], f"{axis}ref": axis, f"{axis}0": begin, f"{axis}1": end,
                 f"{across}ref": f"{across} domain", f"{across}0": 0, f"{across}1": 1}
        self.layout["shapes"] = [*self.layout.get("shapes", ()), _part(shape)]
        return self

    def add_annotation(self, **fields: Any) -> Self:
        """Write words into the figure."""
        self.layout["annotations"] = [*self.layout.get("annotations", ()), _part(fields)]
        return self

    def to_dict(self) -> dict[str, Any]:
        """``data`` and ``layout``, as Plotly's JavaScript takes them."""
        return {"data": list(self.data), "layout": self.layout}

    def to_json(self, config: Mapping[str, Any] | None = None) -> str:
        """The same as JSON, what is no number being nothing, with Plotly's ``config`` if given. It may stand in a
        script."""
        drawn = _words(self.to_dict()) | ({} if config is None else {"config": config})
        try:
            text = json.dumps(drawn, default=_plain, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(_numbers(drawn), default=_plain, separators=(",", ":"))
        for letter, instead in UNSAFE:
            text = text.replace(letter, instead)
        return text


def trace(kind: str, /, **fields: Any) -> Part:
    """A trace of one of Plotly's types, such as ``scatter``."""
    return _part({"type": kind, **fields})


def panels(count: int, spacing: float = 0.03) -> dict[str, dict[str, Any]]:
    """Axes of panels side by side that share the vertical one, each as high as the figure."""
    width = (1 - spacing * (count - 1)) / count
    axes: dict[str, dict[str, Any]] = {}
    for place in range(count):
        name = str(place + 1) if place else ""
        left = place * (width + spacing)
        axes[f"xaxis{name}"] = {"anchor": f"y{name}", "domain": [left, min(1.0, left + width)]}
        axes[f"yaxis{name}"] = {"anchor": f"x{name}", "domain": [0, 1],
                                **({"matches": "y", "showticklabels": False} if place else {})}
    return axes


def plotly_js() -> str:
    """Plotly's JavaScript: the 1.5 MB that draw lines, bars, boxes and heat maps without WebGL."""
    return PLOTLY_CARTESIAN.read_text(encoding="utf-8")


def _words(value: Any) -> Any:
    """The same with its text as text, of which Plotly would make links and hidden characters."""
    if isinstance(value, str):
        return foreign.drawn(value)
    if isinstance(value, Mapping):
        return {name: _words(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)) and not (value and isinstance(value[0], float)):
        return [_words(part) for part in value]
    return value


def _part(fields: Mapping[str, Any]) -> Part:
    part = Part()
    part.put(fields)
    return part


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy's."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _numbers(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _numbers(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(part) for part in value]
    return _numbers(value.tolist()) if hasattr(value, "tolist") else value
