"""The reference pages, generated from the code they describe: ``python -m mqttlab.reference`` writes them.

A test holds the pages in ``docs`` to what this module makes.
"""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mqttlab import metrics
from mqttlab.digits import plain
from mqttlab.experiments.model import ExperimentFile
from mqttlab.networks import MODELS, PLACEMENTS, PROFILES, WITHOUT_MODEL, implied, place, stacks
from mqttlab.networks.trace import about_shipped, read_trace, shipped, title_of
from mqttlab.scenario import Scenario
from mqttlab.schemas import definitions

DOCS = Path(__file__).resolve().parents[2] / "docs"
OUTPUT = "reference/output.md"
TABLE = re.compile(r"^(<!-- schema: ([\w ]+) -->\n)\n*(?:\|.*\n)*\n*", re.MULTILINE)
"""Where a table of a page belongs: the definitions whose fields it has."""
PLAIN = {"string": "text", "integer": "whole number", "boolean": "true or false"}
UNITS = "Quantities are written with their unit: `\"550 ms\"`, `\"250 kbit/s\"`, `\"1 kB\"`, `\"100 /s\"`, `\"1 %\"`. "


WINDOWS = (
    "Each metric covers a *window*. Numerator and denominator of a rate, a share or a mean cover the same window. The "
    "measurement begins when the warm-up has ended; with `sim.detect_transient`, when the flow was found steady. It "
    "ends where no more messages are due. A run that was cut short ends with the last instant of its messages. An "
    "import's window is as long as its evidence. [Stages](../how-to/stages.md) that are not measured are not in the "
    "window; `metrics.summary(recording, stage=\"busy\")` has one stage for its window."
)


NOT_DELIVERED = (
    "`undelivered_percent` counts a message under way at the end as not delivered. The report names two cases. With a "
    "cool-down shorter than three times the p99 of its flow, the message may only have been slow; try a longer "
    "cool-down. With a longer cool-down, something held it up. A bound on `messages_lost_percent` is judged by "
    "`undelivered_percent`.\n\n"
    "A live run is not valid if the broker or the network stood still. Then more than half of its deliveries were "
    "under way at the end, although the cool-down lasted three times the p99 of those that arrived. Or a twentieth was "
    "under way, and nothing arrived in the whole cool-down. Deliveries do not count there that [an event, a translator "
    "of addresses, a policer or the server's answers explain](recording.md#validity-and-end)."
)


FRAME_SIZES = (
    "A frame is as large as its link counts it: the IP packet and the link's `overhead`, padded to `minimum_frame`. "
    "With `overhead` left at 0, frames are IP packets, and efficiencies are those of IP. Wireshark shows 14 B on "
    "Ethernet. The MAC bytes of perez2005 are frames with header and check sequence: `overhead = \"18 B\"` and "
    "`minimum_frame = \"64 B\"` on Ethernet. On a radio they are its stations' counters, with RTS, CTS and "
    "acknowledgements.\n\n"
    "The network layer is counted over the whole run, connecting and cooling down included, as a capture shows it. "
    "Messages are those of the measurement. Efficiencies are counted over the measurement, on a radio over the whole "
    "run."
)


ROUND_TRIPS = (
    "A *round trip* (`rtt_ms`) begins when a segment with data comes to its first link and ends when its exact "
    "acknowledgement has arrived at the sender's host. Segments that were sent again have none (RFC 6298, Karn). The "
    "time-out `rto_ms` follows from the round trips by RFC 6298. Wireshark's round trip at the place of capture lacks "
    "the way back; it is `tcp_analysis_ack_rtt_s`. The metric `out_of_order` counts deliveries of messages; "
    "`tcp_analysis_out_of_order` counts segments."
)


def scenario_page() -> str:
    """Every field of a scenario, with type, default and meaning."""
    lines = [
        "# Scenario reference", "",
        "Generated from the scenario's own definition. " + UNITS + "`k` is 1000, `Ki` is 1024. Underscores may stand "
        "between digits, as in `\"1_000 B\"`. A number without its unit is an error, as is an unknown field. The "
        "errors and warnings for scenarios are listed in [messages.md](messages.md).", "",
        "Editors complete and check scenarios by a JSON Schema. Write it with `mqttlab schema > scenario.schema.json`, "
        "and begin a scenario with the line `#:schema scenario.schema.json`. Editors with taplo (Even Better TOML in "
        "VS Code) read that line. The command `mqttlab schema experiment` prints the schema of experiments. On the "
        "command line, `taplo lint --schema file://$PWD/scenario.schema.json demo.toml` checks a scenario. Only "
        "`mqttlab check` finds mistakes that involve several fields. The command `mqttlab-engine schema` prints the "
        "schema of the plan (`mqttlab check --plan`).", "",
        "A length of time is at most 8784 h (366 days), a delay 1 h, a rate of messages 1000000 /s, a payload 10 MB. A "
        "run has at most 65,535 hosts, 65,000 links, 1,000,000 clients and 5,000,000 topics (clients × `topics`). "
        "Beyond 100,000 messages/s in all `check` warns. On a busy machine of two cores, Mosquitto and 32 clients on "
        "loopback carried 99,032 to 100,000 /s at QoS 0 with 20 B, when 100,000 and 200,000 /s were offered.", "",
    ]
    for place_, model in _models(Scenario, ""):
        lines += [f"## {f'`{place_}`' if place_ else 'Top level'}", "", (model.__doc__ or "").strip(), "",
                  "| field | type | default | meaning |", "|---|---|---|---|"]
        lines += [_field_row(field.alias or name, field) for name, field in model.model_fields.items()]
        lines.append("")
    return "\n".join(lines)


def experiment_page() -> str:
    """Every field of an experiment file, with type, default and meaning."""
    lines = [
        "# Experiment reference", "",
        "Generated from the experiment file's own definition; [experiment.md](../how-to/experiment.md) explains it "
        "with examples, [messages-experiment.md](messages-experiment.md) shows what is said of wrong files. Quantities "
        "are written as in scenarios.", "",
    ]
    for place_, model in _models(ExperimentFile, ""):
        lines += [f"## {f'`{place_}`' if place_ else 'Top level'}", "", (model.__doc__ or "").strip(), "",
                  "| field | type | default | meaning |", "|---|---|---|---|"]
        lines += [_field_row(field.alias or name, field) for name, field in model.model_fields.items()]
        lines.append("")
    return "\n".join(lines)


def networks_page() -> str:
    """The named networks, placements, traces and TCP profiles."""
    lines = ["# Networks", "", "## Models", "",
             "| name | rate up / down | delay up / down | loss | placement |", "|---|---|---|---|---|"]
    for model in MODELS.values():
        up, down = model.up, model.down
        loss = "bursts" if down.burst_loss else f"{plain(100 * down.loss[0] / down.loss[1])} %"
        lines.append(
            f"| `{model.name}` {model.title} | {_kbit(up.rate)} / {_kbit(down.rate)} kbit/s "
            f"| {_ms(up)} / {_ms(down)} ms | {loss} | {model.placement} |")
    lines += ["", "A named model shapes both directions, unless a `placement` says otherwise. It can be adjusted in "
                  "place: `model = \"lte\"` with `up.loss = \"2 %\"` is LTE that loses frames on the way to the "
                  "broker. With `link = \"each\"` each client has links of its own, with `link = \"shared\"` all of "
                  "them have the same.",
              "", "Without a model:", ""]
    lines += [f"- {name}: {why}." for name, why in WITHOUT_MODEL.items()]
    lines += ["", "## Sources", ""]
    lines += [f"- `{model.name}`: {model.source}." for model in MODELS.values()]
    lines += ["", "## Placements", "", "| name | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {words} |" for name, words in PLACEMENTS.items()]
    lines += ["", "## What each placement implies", "",
              "Delays in ms without serialisation: one way up, one way down, round trip.", "",
              "| model | " + " | ".join(PLACEMENTS) + " |", "|---|" + "---|" * len(PLACEMENTS)]
    for model in MODELS.values():
        cells = []
        for placement in PLACEMENTS:
            figures = implied(place(model, placement))
            cells.append(", ".join(map(plain, (figures.up_ms, figures.down_ms, figures.round_trip_ms))))
        lines.append(f"| `{model.name}` | " + " | ".join(cells) + " |")
    lines += _traces()
    lines += ["", "## TCP profiles", "", "| name | meaning |", "|---|---|"]
    lines += [f"| `{profile.name}` | {profile.meaning} |" for profile in PROFILES.values()]
    return "\n".join(lines) + "\n"


def _traces() -> list[str]:
    lines = ["", "## Traces", "",
             "A link follows one with `trace = \"name\"`, or `\"name/up\"` and `\"name/down\"` for one direction. For "
             "files of your own see [Follow a trace](../how-to/traces.md).", "",
             "| name | rate up / down | lasts |", "|---|---|---|"]
    for name in shipped():
        ways = [read_trace(f"{name}/{way}", None) for way in ("up", "down")]
        rates = ["{} to {}".format(*(_kbit(bit_s) for bit_s in way.span("rate"))) for way in ways]
        lines.append(f"| `{name}` {title_of(name)} | {' / '.join(rates)} kbit/s | "
                     f"{plain(ways[1].length_ns / 1e9)} s |")
    return [*lines, "", *(f"- `{name}`: {about_shipped(name)}" for name in shipped())]


def metrics_page() -> str:
    """The catalogue: every metric, with unit, scopes, meaning, source and implementation."""
    words = (
        "The catalogue, generated from the one place where metrics are declared: "
        "`python/mqttlab/metrics/catalogue.py`, and `crates/capture/src/metrics/table.rs` for those that the engine "
        "counts. Each name stands for one thing. `metrics.summary(recording)` gives the values in long form, with the "
        "columns `scope`, `name`, `metric`, `value` and `unit`; exports have it as `summary`."
    )
    windows = [f"- *{name}*: {covers}." for name, covers in metrics.WINDOWS.items()]
    lines = ["# Metrics", "", words, "", WINDOWS, "", *windows, "", NOT_DELIVERED, "", FRAME_SIZES, "", ROUND_TRIPS, ""]
    for family in metrics.FAMILIES:
        lines += [f"## {family.title}", "", _family(family), "",
                  "| metric | unit | better | window | meaning | source |", "|---|---|---|---|---|---|"]
        lines += [f"| `{m.name}` | {m.unit} | {m.better} | {m.window} | {m.meaning} | {m.source} |"
                  for m in family.metrics]
        lines.append("")
    return "\n".join([*lines, *_counted_by_the_engine()])


def _family(family: metrics.Family) -> str:
    scopes = ", ".join(scope.replace("_", " ") for scope in family.scopes)
    return f"`{family.table}`, by {scopes}; computed by {family.implementation}."


def _counted_by_the_engine() -> list[str]:
    """The engine's counters, a row for all statistics of one."""
    entries = metrics.counted()
    own = {m.name for family in metrics.FAMILIES for m in family.metrics}
    words = ("Their window is *run*; of rates in bit/s it is *frames*. Where names above stand in `network_metrics` as "
             "well, they are the same numbers; a test holds them equal.")
    lines = [f"## {metrics.ENGINE.title}", "", f"{_family(metrics.ENGINE)} {words}", "",
             "| metric | unit | statistics | meaning | source |", "|---|---|---|---|---|"]
    for entry in entries:
        if {entry["name"] + suffix for suffix in entry["statistics"]} <= own:
            continue
        statistics = ", ".join(suffix.removeprefix("_") for suffix in entry["statistics"]) or "–"
        cells = (f"`{entry['name']}`", entry["unit"], statistics, entry["definition"], entry["source"])
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def output_page() -> str:
    """What commands print with ``--json``: the page as it is, with its tables made from the schemas."""
    page = (DOCS / OUTPUT).read_text(encoding="utf-8")
    known, links = definitions(), dict[str, str]()
    for found in TABLE.finditer(page):
        heading = re.findall(r"^#+ (.*)$", page[:found.start()], re.MULTILINE)[-1]
        anchor = re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        links |= {name: f"[{name.replace('_', ' ')}](#{anchor})" for name in found[2].split()}

    def table(found: re.Match[str]) -> str:
        rows = [row for name in found[2].split() for row in _output_rows(known[name], known, links)]
        return "\n".join((f"{found[1]}\n| field | type | meaning |", "|---|---|---|", *rows, "", ""))

    return TABLE.sub(table, page).rstrip() + "\n"


def _output_rows(
    schema: dict[str, Any], known: dict[str, Any], links: dict[str, str], at: str = "",
) -> Iterator[str]:
    """A row for each field of an object, and of the objects within it that have no table of their own."""
    patterns = {f"{pattern.lstrip('^')}…": field for pattern, field in schema.get("patternProperties", {}).items()}
    columns = schema.get("additionalProperties")
    of_factors = {"FACTOR": columns} if isinstance(columns, dict) and schema.get("properties") else {}
    for name, field in {**schema.get("properties", {}), **patterns, **of_factors}.items():
        own = _resolved(field, known)
        kind = _output_type(field, known, links) + (f" ({own['unit']})" if "unit" in own else "")
        yield f"| `{at}{name}` | {kind} | {own['description']} |"
        inner, below = (own["items"], f"{at}{name}[].") if isinstance(own.get("items"), dict) else (own, f"{at}{name}.")
        if _table_of(field, links) is None and _table_of(inner, links) is None:
            yield from _output_rows(_resolved(inner, known), known, links, below)


def _resolved(field: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A field with what it refers to; its own words come first."""
    for variant in (field, *field.get("anyOf", ())):
        if "$ref" in variant:
            return {**known[variant["$ref"].rpartition("/")[2]], **field}
    return field


def _table_of(field: dict[str, Any], links: dict[str, str]) -> str | None:
    """The link to the table of what a field refers to."""
    references = (variant.get("$ref", "") for variant in (field, *field.get("anyOf", ())))
    return next((links[name] for name in (each.rpartition("/")[2] for each in references) if name in links), None)


def _output_type(field: dict[str, Any], known: dict[str, Any], links: dict[str, str]) -> str:
    own = _resolved(field, known)
    kinds = own.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_null = "null" in kinds or {"type": "null"} in own.get("anyOf", ()) or None in own.get("enum", ())
    values = [own["const"]] if "const" in own else own.get("enum", ())
    if values:
        word = ", ".join(f"`{value}`" for value in values if value is not None)
    elif link := _table_of(field, links):
        word = link
    elif "array" in kinds:
        items = _output_type(own["items"], known, links) if isinstance(own.get("items"), dict) else ""
        word = f"array of {'objects' if items == 'object' else items}" if items else "array"
    else:
        word = " or ".join(PLAIN.get(kind, kind) for kind in kinds if kind != "null") or "object"
    return f"{word} or null" if is_null else word


def tcp_stacks() -> str:
    """Every TCP profile as the plan has it: the fields of a host, and the behaviour that has none."""
    known = {name: [profile.plan({}), stacks({name})[name]] for name, profile in PROFILES.items()}
    return json.dumps(known, indent=1) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "reference/scenario.md": scenario_page, "reference/experiment-reference.md": experiment_page,
    "reference/networks.md": networks_page, "reference/metrics.md": metrics_page, OUTPUT: output_page,
}
# What the tests of the simulator's TCP read.
TCP_STACKS = "crates/tcp/tests/stacks.json"


def _models(model: type[BaseModel], at: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield at, model
    for name, field in model.model_fields.items():
        inner, suffix = _inner(field.annotation)
        if inner is not None:
            yield from _models(inner, f"{at}.{name}{suffix}" if at else f"{name}{suffix}")


def _inner(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin = typing.get_origin(annotation)
    for argument in typing.get_args(annotation):
        model, suffix = _inner(argument)
        if model is not None:
            return model, {list: "[]", dict: ".NAME"}.get(origin, "") + suffix
    return None, ""


def _field_row(name: str, field: FieldInfo) -> str:
    meaning = field.description or "Quality of service: 0, 1 or 2."
    return f"| `{name}` | {_type(field)} | {_default(field)} | {meaning} |"


def _type(field: FieldInfo) -> str:
    for extra in field.metadata:
        schema = getattr(extra, "json_schema", None)
        if isinstance(schema, dict) and "examples" in schema:
            return f"`\"{schema['examples'][0]}\"`"
    return _words(field.annotation)


def _words(annotation: Any) -> str:
    for extra in getattr(annotation, "__metadata__", ()):
        if "examples" in (getattr(extra, "json_schema", None) or {}):
            return f"`\"{extra.json_schema['examples'][0]}\"`"
    model, suffix = _inner(annotation)
    if model is not None and int in typing.get_args(annotation):
        return "whole number, or table"
    if model is not None:
        return {"[]": "array of tables", ".NAME": "tables by name"}.get(suffix, "table")
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value!r}`".replace("'", '"') for value in arguments)
    if origin is typing.Annotated:
        return _words(arguments[0])
    if origin in (dict, list, tuple):
        return "table" if origin is dict else "array"
    if arguments:
        return " or ".join(dict.fromkeys(_words(argument) for argument in arguments if argument is not type(None)))
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path", Any: "any value"}
    return names.get(annotation, "text")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, (list, dict)):
        return "–"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, tuple)) and (written := _written(value, _type(field).strip('`"'))):
        return written
    return f"`{value}`" if value != "" else "empty"


def _written(value: int | tuple[int, ...], example: str) -> str:
    """A default as a scenario would have it, from what is read of it and an example of how it is written."""
    unit = example.rpartition(" ")[2]
    if isinstance(value, tuple):
        return f"{plain(100 * value[0] / value[1])} %" if unit == "%" else " x ".join(
            f"{plain(side / 1000)} m" for side in value)
    if unit in ("s", "ms"):
        return f"{plain(value / 1e9)} s"
    steps = {"us": 1000, "B": 1, "m": 1000, "m/s": 1000, "uA": 1000, "dBm": 1000, "dB": 1000}
    return f"{plain(value / steps[unit])} {unit}" if unit in steps else ""


def _kbit(rate: int | None) -> str:
    return "∞" if rate is None else plain(rate / 1000)


def _ms(link: Any) -> str:
    return f"{plain(link.delay / 1e6)}" + (f" ± {plain(link.jitter / 1e6)}" if link.jitter else "")


if __name__ == "__main__":
    for page, make in PAGES.items():
        (DOCS / page).write_text(make(), encoding="utf-8")
    (DOCS.parent / TCP_STACKS).write_text(tcp_stacks(), encoding="utf-8")
