"""Studies: what others have published beside what is simulated here, cell by cell, with every claim's verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dash import html

from mqttlab.dashboard.panels import (
    ROWS_OPEN,
    Act,
    Content,
    Head,
    Link,
    address,
    facts,
    link,
    notice,
    written_table,
)
from mqttlab.dashboard.store import Store, UnknownRun
from mqttlab.plurals import counted
from mqttlab.report.text import number
from mqttlab.studies import Study
from mqttlab.studies.catalogue import known
from mqttlab.studies.claims import claims_of

SIGNS = {"held": "✓ held", "refuted": "✕ refuted", "not reproduced": "≠ not reproduced", "undecided": "? undecided",
         "not judged yet": "– not judged yet"}
# What results that were written before say.
BEFORE = {"holds": "held", "does not hold": "refuted", "not decided": "not judged yet"}
# The tables that have no cells.
OTHERS = ("Claims", "Fit", "Readings")
# Simulated over published: what is near, and what is not far.
NEAR, NOT_FAR = 0.10, 0.25
# Longer tables are closed: a study has thousands of cells.
CELLS_OPEN = 12
NUMBERS = ("published", "simulated", "ours", "± 95 %", "deviation", "never received", "ratio", "values",
           "median ratio", "within 10 %", "within 25 %")


@dataclass
class Results:
    """What ``results.md`` of a study says: a table for each of its headings."""

    tables: dict[str, tuple[list[str], list[list[str]]]] = field(default_factory=dict)

    def rows(self, title: str) -> list[list[str]]:
        """The rows of a table; none where there is none."""
        return self.tables.get(title, ([], []))[1]


def read_results(path: Path) -> Results:
    """The tables of a study's results, as ``mqttlab study --output`` writes them."""
    found, title = Results(), ""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        if line.startswith("## "):
            title = line.removeprefix("## ").strip()
        elif line.startswith("|"):
            cells = [cell.strip().replace("**", "") for cell in line.strip().strip("|").split("|")]
            if set("".join(cells)) <= set("-: "):
                continue
            if title not in found.tables:
                found.tables[title] = (cells, [])
            else:
                found.tables[title][1].append(cells)
    return found


def page() -> html.Div:
    """All studies that are installed."""
    rows = []
    for name, study in known().items():
        verdicts = _verdicts(read_results(study.directory / "results.md"))
        counts = ", ".join(f"{verdicts.count(word)} {word}" for word in SIGNS if word in verdicts)
        rows.append([Link(name, address(f"/study/{name}")), study.title, len(study.cases(study.published, ())),
                     len(claims_of(study.published)), counts or "not rerun yet"])
    heads = [Head("study", text=True), Head("published as", text=True), Head("scenarios"), Head("claims"),
             Head("verdicts", text=True)]
    return html.Div([html.H1("Studies"), html.P(
        "Published experiments, rerun here: what was printed, what is simulated, and whether each claim holds.",
        className="lead"),
                     html.Section([written_table("Studies", heads, rows, wraps=True)], className="panel")])


def one(store: Store, name: str) -> html.Div:
    """One study: claims, fit, every cell, and the scenarios behind them.

    Raises:
        UnknownRun: there is none of this name.
    """
    study = known().get(name)
    if study is None:
        raise UnknownRun(f"there is no study {name!r}; known: {', '.join(known())}")
    results = read_results(study.directory / "results.md")
    body: Content = [_claims(study, results)]
    if not results.tables:
        body.insert(0, notice("note", "Its scenarios have not been compared with the published values yet.",
                              [f"mqttlab study {name} does that."]))
    if results.rows("Fit"):
        body.append(_table("Fit", results))
    body += [_cells(title, results) for title in results.tables if title not in OTHERS]
    return html.Div([
        html.P([link("Studies", "/studies"), " › ", name], className="crumbs"),
        html.H1(name), html.P(study.title, className="lead"), _counts(results), *body, _cases(store, name, study)])


def _counts(results: Results) -> html.Dl:
    verdicts = _verdicts(results)
    ratios = [value for title, (heads, lines) in results.tables.items() if title not in OTHERS
              for row in lines if (value := _ratio(heads, row)) is not None]
    rows = [(f"claims: {word}", number(verdicts.count(word))) for word in SIGNS if word in verdicts]
    if ratios:
        near = sum(abs(ratio - 1) <= NEAR for ratio in ratios)
        rows.append(("cells within 10 %", f"{number(near)} of {number(len(ratios))}"))
    return facts(rows)


def _claims(study: Study, results: Results) -> html.Section:
    # A claim is told with its name before it, or by its words alone.
    columns = results.tables.get("Claims", ([], []))[0]
    judged = {row[0].partition("` ")[2] or row[0]: dict(zip(columns, row, strict=False))
              for row in results.rows("Claims")}
    rows = []
    for claim in claims_of(study.published):
        text = " ".join(claim["text"].split())
        found = judged.get(text, {})
        word = found.get("verdict", "not judged yet")
        word = BEFORE.get(word, word)
        rows.append([text, SIGNS.get(word, word), found.get("held, if", claim["rule"]), found.get("numbers", ""),
                     found.get("reason", "").replace("<br>", " ")])
    heads = [Head(words, text=True) for words in ("claim", "verdict", "held, if", "numbers", "reason")]
    return html.Section([html.H2("Claims"), written_table("Claims", heads, rows, wraps=True)], className="panel")


def _table(title: str, results: Results) -> html.Section:
    heads, rows = results.tables[title]
    return html.Section([html.H2(title), written_table(
        title, [Head(words, text=words not in NUMBERS) for words in heads], rows)], className="panel")


def _cells(title: str, results: Results) -> html.Section:
    """A published table: what was printed and what is simulated, and how near they are in words, too."""
    heads, rows = results.tables[title]
    made, near = [], 0
    for row in rows:
        ratio = _ratio(heads, row)
        away = None if ratio is None else abs(ratio - 1)
        said = "" if away is None else "near" if away <= NEAR else "not far" if away <= NOT_FAR else "apart"
        near += said == "near"
        made.append([*row, said])
    words = f" {counted(len(made), 'row')}, {number(near)} within 10 %"
    return html.Section([html.Details([html.Summary([html.H2(title), words]), written_table(
        title, [*(Head(words, text=words not in NUMBERS) for words in heads), Head("is", text=True)], made)],
        open=len(made) <= CELLS_OPEN)], className="panel")


def _verdicts(results: Results) -> list[str]:
    """The verdicts of the claims, in today's words."""
    return [BEFORE.get(row[1], row[1]) for row in results.rows("Claims") if len(row) > 1]


def _ratio(heads: list[str], row: list[str]) -> float | None:
    """Ours over the published value, from whichever column tells it."""
    cells = dict(zip(heads, row, strict=False))
    try:
        if "deviation" in cells:
            return 1 + float(cells["deviation"].removesuffix("%").replace("−", "-")) / 100
        return float(cells.get("ratio", ""))
    except ValueError:
        return None


def _cases(store: Store, name: str, study: Study) -> html.Section:
    """The scenarios behind the cells: each can be run here, and leads to its runs."""
    runs = store.runs()
    rows = []
    for case in study.cases(study.published, ()):
        scenario = str(case.scenario(study.quick).get("name", case.name))
        there = runs.filter(name=scenario)["run"].to_list() if not runs.is_empty() else []
        rows.append([case.name, Act("Run it", "study-case", f"{name} {case.name}", f"Run {case.name}"), len(there),
                     Link("the latest", address(f"/run/{there[0]}"), f"latest run of {case.name}") if there else ""])
    heads = [Head("scenario", text=True), Head("", text=True), Head("runs here"), Head("", text=True)]
    return html.Section([html.Details([
        html.Summary([html.H2("Scenarios behind the cells"), f" {number(len(rows))}"]),
        html.P("Each is simulated at the study's quick effort when it is run here; its recording stays."),
        written_table("Scenarios behind the cells", heads, rows, filtered=len(rows) > ROWS_OPEN)])], className="panel")
