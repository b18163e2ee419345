"""The HTML report of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqttlab import figures, metrics
from mqttlab.foreign import markup
from mqttlab.metrics import flow, sums
from mqttlab.recording import Recording
from mqttlab.report import attribution, captured, cards, changes, coverage, fleet, headline, network, probe, stages
from mqttlab.report.facts import of_run
from mqttlab.report.pages import TEXT, cell, grid, html_table, page_of, text_table, write_whole
from mqttlab.report.text import (
    ANSWERS_SHOWN,
    answers_title,
    disconnections_title,
    lateness,
    meaning,
    number,
    verdict,
)

DISCONNECTIONS_SHOWN = 10
# Of each list in the plan.
PLAN_ENTRIES = 20


def write_html(recording: Recording, out: Path) -> Path:
    """Write a run's report to ``out`` and return it.

    Raises:
        RecordingError: a table cannot be read.
        OSError: the file cannot be written; whatever was there before is still there.
    """
    write_whole(out, page(recording))
    return out


def page(recording: Recording) -> str:
    """A run's report as one HTML document."""
    sections = [
        cards.section(recording),
        _verdict_section(recording),
        _stages_section(recording),
        _changes_section(recording),
        _disconnections_section(recording),
        _answers_section(recording),
        _application_section(recording),
        _members_section(recording),
        fleet.devices(recording),
        _figure_section(recording),
        _attribution_section(recording),
        _link_section(recording),
        _network_section(recording),
        _captured_section(recording),
        _setup_section(recording),
        _plan_section(recording),
    ]
    return page_of(
        recording.name, headline.described(recording), sections,
        "Made by mqttlab from the recording alone; every number is defined by the tooltip of its heading.")


def _verdict_section(recording: Recording) -> str:
    word, reasons = verdict(recording)
    listed = "".join(f"<li>{markup(reason)}</li>" for reason in reasons)
    facts = "".join(
        f"<div><dt>{markup(label)}</dt><dd>{markup(value)}</dd></div>"
        for label, value in [*of_run(recording), *lateness(recording)]
    )
    imported = captured.is_import(recording)
    words = {
        "valid": "The evidence has no known gap." if imported else
        "Simulated: nothing was late. docs/explanation/simulator.md says how accurate the model is."
        if recording.plan.get("backend") == "sim" else
        "The numbers can be trusted as far as the lateness below says.",
        "not valid": "Read this before you trust the numbers." if imported else
        "The run did not measure what its scenario asks for. Read why before you use a number.",
        "incomplete": "The evidence ends early. The results below cover what there is." if imported else
        "The run ended early. The results below cover what it recorded.",
    }[word]
    return (
        f'<section class="verdict {word.replace(" ", "-")}"><h2>{word.capitalize()}</h2><p>{words}</p><ul>{listed}</ul>'
        f"<details><summary>Timing, machine, and what was run</summary><dl>{facts}</dl></details></section>"
    )


def _stages_section(recording: Recording) -> str:
    head, rows = stages.table(recording)
    if not rows:
        return ""
    return f"<section><h2>Stages</h2><p>{markup(stages.words(recording))}</p>{text_table(head, rows)}</section>"


def _changes_section(recording: Recording) -> str:
    table = metrics.changes(recording)
    if table.is_empty():
        return ""
    words = " ".join(filter(None, (
        "Times count from the beginning of the measurement. What followed counts until the next event.",
        changes.left_out(recording))))
    shown = html_table(table, ("event", *metrics.family("changes").columns("page")))
    return f"<section><h2>Events</h2><p>{markup(words)}</p>{shown}</section>"


def _application_section(recording: Recording) -> str:
    by_qos = metrics.application(recording)
    if by_qos.is_empty():
        return "<section><h2>Messages</h2><p>No message was measured.</p></section>"
    by_group = metrics.application(recording, metrics.FLOW)
    keys = flow.shown(by_group)
    both_ways = metrics.has_both_ways(recording)
    columns = captured.known(recording, by_group, metrics.family("application").columns("page"))
    covered = "".join(f"<p>{markup(said)}</p>" for said in coverage.application(recording, by_qos))
    parts = ["<section>"]
    if not both_ways:
        parts += ["<h2>Messages by QoS</h2>", covered, html_table(by_qos, ("qos", *cards.first(columns)))]
    if both_ways or by_group.height > by_qos.height:
        parts += ["<h2>Messages by group</h2>", covered, html_table(by_group, (*keys, *cards.first(columns)))]
    bursts = metrics.bursts(recording)
    if not bursts.is_empty():
        parts += ["<h2>Bursts</h2>", html_table(bursts, (*keys, *metrics.family("bursts").columns("page")))]
    return "".join(parts) + "</section>"


def _members_section(recording: Recording) -> str:
    table = metrics.members(recording)
    if table.is_empty():
        return ""
    shown, words = fleet.members(table)
    return (f"<section><h2>Members of shared subscriptions</h2><p>{markup(words)}</p>"
            f"{html_table(shown, tuple(shown.columns))}</section>")


def _disconnections_section(recording: Recording) -> str:
    ended = metrics.disconnections(recording)
    if ended.is_empty():
        return ""
    shown = ended.head(DISCONNECTIONS_SHOWN)
    table = html_table(shown, tuple(ended.columns))
    return f"<section><h2>{disconnections_title(ended, shown)}</h2>{table}</section>"


def _answers_section(recording: Recording) -> str:
    answered = metrics.answers(recording)
    if answered.is_empty():
        return ""
    shown = answered.head(ANSWERS_SHOWN)
    table = html_table(shown, tuple(answered.columns))
    return f"<section><h2>{answers_title(answered, shown)}</h2>{table}</section>"


def _figure_section(recording: Recording) -> str:
    samples = metrics.deliveries(recording, ("publication", "qos", "intended_s", "latency_ms"))
    if samples.is_empty():
        return ""
    drawn = [figures.latency_over_time(samples, network.POINTS_DRAWN), figures.latency_cdf(samples),
             figures.latency_box(samples)]
    title = f"<h2>Latency{sums.of_sample(recording)}</h2>"
    return f"<section>{title}{grid(changes.marked(recording, drawn), 'latency')}</section>"


def _attribution_section(recording: Recording) -> str:
    if not metrics.has_deliveries(recording):
        return ""
    words = f"<h2>Where the time went</h2><p>{markup(attribution.accuracy(recording))}</p>"
    parts = attribution.by_qos(recording)
    if parts.is_empty():
        return f"<section>{words}</section>"
    titles, meant = metrics.part_titles(recording), metrics.captured_parts(recording)
    rows = "".join(
        f'<tr><td class="text" title="{markup(_meaning(part, meant))}">{markup(titles[part])}</td>'
        + "".join(cell(value) for value in values) + "</tr>"
        for part, *values in parts.rows()
    )
    head = "".join(f'<th{"" if place else TEXT}>{markup(column)}</th>' for place, column in enumerate(parts.columns))
    shown = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    shown += f"<p>{markup(attribution.left_out(recording, parts))}</p>"
    return f"<section>{words}{shown}{grid(attribution.drawn(recording), 'attribution')}</section>"


def _meaning(part: str, meant: Mapping[str, str]) -> str:
    return f"The time {metrics.CAPTURED_WORDS[meant[part]]}." if part in meant else meaning(part)


def _link_section(recording: Recording) -> str:
    table = metrics.links(recording)
    if table.is_empty():
        return "<section><h2>Links</h2><p>The network was direct, or frames were not recorded.</p></section>"
    columns = ("link", *metrics.family("links").columns("page"))
    words = coverage.links(recording, table)
    slices = network.slices_drawn(recording, metrics.slices(recording))
    busiest = network.busiest(table, network.LINKS_DRAWN)
    drawn = [figures.link_utilisation(slices), figures.link_throughput(slices, network.traced(recording, slices))]
    known = [network.some_drawn(recording, figure) for figure in drawn if figure.data]
    not_drawn = markup(network.left_out(table, busiest, "drawn").strip())
    not_drawn = f"<p>{not_drawn}</p>" if not_drawn else ""
    return (f"<section><h2>Links</h2><p>{markup(words)}</p>{fleet.links(table, columns)}{not_drawn}"
            f"{grid(changes.marked(recording, known), 'link')}{_probe(recording)}</section>")


def _probe(recording: Recording) -> str:
    found = (recording.run.get("details") or {}).get("probe")
    if not found:
        return ""
    remarks = "".join(f"<p>{markup(text)}</p>" for text in probe.remarks(found))
    words = "<h2>The emulated network, measured before the run</h2>"
    return f"{words}{html_table(probe.table(found), probe.COLUMNS)}{remarks}"


def _network_section(recording: Recording) -> str:
    table = network.labelled(metrics.network(recording))
    if table.is_empty():
        return ""
    listed, worst = fleet.without_many(table)
    columns = ("of", *network.columns(table, network.COLUMNS))
    parts = ["<section><h2>Network layer</h2>", f"<p>{markup(network.covered(recording, table))}</p>",
             html_table(listed, columns)]
    if not worst.is_empty():
        parts += ["<h3>The links that sent most again</h3>", html_table(worst, columns)]
    overhead = network.overhead(recording)
    if not overhead.is_empty():
        columns = network.columns(overhead, network.OVERHEAD_COLUMNS)
        parts += ["<h2>Overhead</h2>", html_table(overhead, ("of", *columns))]
    efficiency = metrics.efficiency(recording)
    words = f"{network.EFFICIENCY_WORDS} {coverage.efficiency(efficiency)}"
    parts += ["<h2>Efficiency</h2>", f"<p>{markup(words)}</p>",
              html_table(efficiency, network.columns(efficiency, network.EFFICIENCY_COLUMNS))]
    mqtt_sn = network.mqtt_sn(recording)
    if not mqtt_sn.is_empty():
        columns = network.columns(mqtt_sn, metrics.family("mqtt_sn").columns("page"))
        parts += ["<h2>MQTT-SN</h2>", f"<p>{markup(coverage.mqtt_sn(mqtt_sn))}</p>",
                  html_table(mqtt_sn, ("of", *columns))]
    energy = network.energy(recording)
    if not energy.is_empty():
        columns = network.columns(energy, metrics.family("energy").columns("page"))
        parts += ["<h2>Energy</h2>", f"<p>{markup(coverage.energy(recording))}</p>",
                  html_table(energy, ("of", *columns))]
    parts.append(grid(changes.marked(recording, network.drawn(recording)), "network"))
    return "".join(parts) + _connections(recording) + "</section>"


def _connections(recording: Recording) -> str:
    table = network.labelled(metrics.connections(recording))
    # Each has a row for each direction.
    is_many = table.height > 2 * fleet.LISTED
    shown = fleet.most_repeated(table) if is_many else table
    count = table["connection"].n_unique() if "connection" in table.columns else 0
    words = (f"Of {number(count)} connections the {shown.height} directions that sent most again"
             if is_many else f"The connections one by one ({number(count)})")
    columns = ("connection", "of", *network.columns(shown, network.COLUMNS))
    return f"<details><summary>{words}</summary>{html_table(shown, columns)}</details>"


def _captured_section(recording: Recording) -> str:
    shown = [captured.cut(title, table, captured.SHOWN) for title, table in captured.tables(recording)]
    if not shown:
        return ""
    parts = [f"<h2>{markup(title)}</h2>{html_table(table, tuple(table.columns))}" for title, table in shown]
    return f"<section>{''.join(parts)}</section>"


def _setup_section(recording: Recording) -> str:
    timings = metrics.setup(recording)
    # Parts of connecting that no connection here has are left out.
    timings = timings.drop([
        name for name in timings.columns if name.startswith("connect_") and timings[name].is_null().all()])
    table = f"<p>{markup(coverage.setup(timings))}</p>{html_table(timings, metrics.family('setup').columns('page'))}"
    samples, states = recording.resources, recording.tcp_state
    made = [figures.resources(samples)] if not samples.is_empty() else []
    if not states.is_empty():
        names = recording.layout["clients"].names
        made += [figures.congestion_windows(states, names), figures.outstanding_bytes(states, names)]
    drawn = grid(changes.marked(recording, made), "resources") if made else ""
    if words := coverage.processor(recording):
        drawn = f"<p>{markup(words)}</p>{drawn}"
    return f"<section><h2>Connections and machine</h2>{table}{drawn}</section>"


def _shortened(value: Any) -> Any:
    """A plan whose long lists end after some entries: 10,000 links are 29 MB of text."""
    if isinstance(value, dict):
        return {name: _shortened(part) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    left = len(value) - PLAN_ENTRIES
    more = [f"… {left:,} more; run.json has all"] if left > 0 else []
    return [*map(_shortened, value[:PLAN_ENTRIES]), *more]


def _plan_section(recording: Recording) -> str:
    text = markup(json.dumps(_shortened(recording.plan), indent=1))
    return f"<section><details><summary>The plan, as run</summary><pre>{text}</pre></details></section>"
