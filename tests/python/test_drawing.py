"""Figures as Plotly's JavaScript reads them: what is merged, what is left out, and what must not end a script."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mqttlab import figures
from mqttlab.figures import comparison
from mqttlab.figures.drawing import Figure, panels, plotly_js, trace


def test_fields_are_merged_and_nothing_takes_them_away() -> None:
    figure = Figure(layout={"title": "one", "margin": {"l": 1, "r": 2}})
    other = figure.copy().update_layout(title=None, margin={"l": 5})
    assert other.layout == {"margin": {"l": 5, "r": 2}} and not other.layout.title.text
    assert figure.layout == {"title": {"text": "one"}, "margin": {"l": 1, "r": 2}}


def test_axes_are_updated_all_or_one() -> None:
    figure = Figure(layout=panels(3))
    figure.update_xaxes(type="category").update_xaxes(panel=2, title="second").update_yaxes(panel=1, title="y")
    assert [figure.layout[f"xaxis{name}"].type for name in ("", "2", "3")] == ["category"] * 3
    assert [figure.layout[f"xaxis{name}"].title.text for name in ("2", "3")] == ["second", {}]
    assert figure.layout.yaxis.title.text == "y" and figure.layout.yaxis3.matches == "y"
    assert figure.layout.xaxis3.domain[1] == pytest.approx(1)
    assert figure.add_trace(trace("bar", x=[1]), panel=3).data[0] == {
        "type": "bar", "x": [1], "xaxis": "x3", "yaxis": "y3"}


@pytest.mark.parametrize(("kind", "place"), [("log", math.log10(250)), ("linear", 250)])
def test_a_labels_place_is_that_of_its_line(kind: str, place: float) -> None:
    figure = Figure(layout={"xaxis": {}, "yaxis": {"type": kind}})
    figure.add_line("y", 250, {"width": 1}, {"text": "bound"}).add_line("x", 3, {"width": 1})
    assert [shape.y0 for shape in figure.layout.shapes] == [250, 0] and figure.layout.shapes[1].x1 == 3
    assert [words.y for words in figure.layout.annotations] == [pytest.approx(place)]


def test_what_is_no_number_is_nothing_and_no_text_ends_a_script() -> None:
    figure = Figure([trace("scatter", x=np.array([1.0, np.inf]), y=[float("nan"), np.float64(2)], name="</script>")])
    text = figure.to_json({"responsive": True})
    assert "<" not in text and "NaN" not in text and "Infinity" not in text
    drawn = json.loads(text)
    assert drawn["data"] == [{"type": "scatter", "x": [1.0, None], "y": [None, 2.0], "name": "&lt;/script>"}]
    assert drawn["config"] == {"responsive": True}


def test_the_script_is_of_the_version_of_plotlys_package() -> None:
    dashboard = Path(figures.__file__).parents[1] / "dashboard"
    found = importlib.util.find_spec("plotly")
    assert found is not None and found.submodule_search_locations
    whole = Path(found.submodule_search_locations[0], "package_data", "plotly.min.js").read_text(encoding="utf-8")
    [version] = re.findall(r"plotly.js v([\d.]+)", whole[:200])
    assert f"plotly.js (cartesian - minified) v{version}\n" in plotly_js()[:200]
    for asks in ("downloads.py", "assets/a-figures.js"):
        assert f"plotly-{version}.js" in (dashboard / asks).read_text(encoding="utf-8")


@pytest.mark.parametrize(("slowest", "said"), [(9_999.0, None), (301_250.0, "301 s"), (1_085_630.0, "18.1 min")])
def test_a_point_of_ten_seconds_is_not_told_in_milliseconds(slowest: float, said: str | None) -> None:
    """Once "301250.000 ms" stood under the mouse, beside pages that say 301 s."""
    samples = pl.DataFrame({"qos": [1, 1, 1], "intended_s": [0.0, 1.0, 2.0], "latency_ms": [40.0, 50.0, slowest],
                            "first_ms": [1.0, 2.0, slowest], "second_ms": [1.0, 2.0, 3.0], "reason": ["r"] * 3})
    shifts = pl.DataFrame({"flow": ["f"], "quantile": ["p99"], "shift_ms": [-slowest], "low_ms": [None],
                           "high_ms": [None]})
    trips = pl.DataFrame({"towards": ["to_broker"] * 3, "at_s": [0.0, 1.0, 2.0], "rtt_ms": [1.0, 2.0, slowest]})
    parts = pl.DataFrame({"qos": [1], "part": ["sender_nagle_ns"], "mean_ms": [slowest], "level": ["a"]})
    drawn = [
        figures.latency_over_time(samples), figures.latency_cdf(samples), figures.round_trips_over_time(trips),
        comparison.latency_cdf_of_sides({"a": samples}), comparison.latency_in_both(samples),
        comparison.quantile_shifts(shifts), figures.attribution_stack(parts, {"sender_nagle_ns": "Nagle"}),
    ]
    for figure in drawn:
        for one in (part for part in figure.data if part.hovertemplate):
            assert ("ms" in one.hovertemplate) == (said is None), one
            if said is not None:
                assert any(said in words for words in one.hovertext), one.hovertext
