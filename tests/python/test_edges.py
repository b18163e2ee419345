"""The house's walls: who may depend on whom, and how large a piece may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = {
    "units": set(),
    "fields": {"units"},
    "counting": set(),
    "system": {"units"},
    "mqtt": {"units"},
    "mqttsn": {"units", "mqtt"},
    "zmtp": {"units"},
    "framing": set(),
    "net": {"units", "fields"},
    "tcp": {"units", "fields"},
    "plan": {"units", "fields", "net", "mqtt", "mqttsn", "zmtp", "framing", "tcp"},
    "scenario": {"units", "fields", "net", "tcp", "plan"},
    "rows": {"units", "net", "mqtt", "mqttsn", "zmtp"},
    "recording": {"units", "mqtt", "rows"},
    "capture": {"units", "mqtt", "framing", "recording", "mqttsn", "zmtp"},
    "client": {"units", "mqtt", "plan", "rows", "mqttsn", "zmtp", "framing"},
    "run": {"units", "net", "plan", "rows"},
    "servers": {"units", "system", "mqtt", "mqttsn", "zmtp", "plan"},
    "live": {"units", "system", "mqtt", "net", "plan", "client", "run", "recording", "mqttsn", "zmtp", "framing"},
    "sim": {"units", "mqtt", "mqttsn", "zmtp", "framing", "net", "tcp", "plan", "client", "run", "recording"},
    "import": {"units", "mqtt", "mqttsn", "plan", "capture", "recording"},
    "derived": {"units", "plan", "recording"},
    "engine": {"units", "system", "plan", "run", "live", "sim", "capture", "import", "recording", "derived", "servers"},
}
PURE = ("units", "fields", "mqtt", "mqttsn", "zmtp", "framing", "net", "tcp", "rows", "client", "run")
# Crates that do neither input nor output.
HARMLESS = {"base64", "num-bigint", "num-rational", "num-traits", "schemars", "serde", "serde_json", "sha1"}
# Every room may raise the package's errors, read files, make some that go again, make the text of others fit to be
# shown, and know the engine's words.
EVERYWHERE = {"digits", "errors", "files", "foreign", "mistaken", "plurals", "samples", "scratch", "secrets",
              "toml_reader", "version", "words"}
# By module or package of python/mqttlab; each has a row.
PYTHON = {
    "errors": set(),
    "version": set(),
    "words": set(),
    "files": set(),
    "mistaken": set(),
    "digits": set(),
    "plurals": set(),
    "samples": set(),
    "scratch": set(),
    "control_groups": set(),
    "secrets": set(),
    "toml_reader": set(),
    "memory": set(),
    "foreign": set(),
    "terminal": set(),
    "console": {"terminal"},
    "sheets": set(),
    "schemas": set(),
    "quantity": set(),
    "networks": {"quantity"},
    "brokers": set(),
    "plan": set(),
    "scenario": {"quantity", "networks", "brokers", "plan", "memory"},
    "engine": {"plan"},
    "runs": {"engine", "plan", "checks"},
    "fired": {"runs", "scenario"},
    "imports": {"engine", "runs"},
    "scrubbing": {"engine", "runs", "scenario", "checks"},
    "checks": set(),
    "recorded": {"plurals", "plan"},
    "layout": {"recorded"},
    "recording": {"engine", "plan", "checks", "layout", "recorded"},
    "statistics": set(),
    "metrics": {"recording", "plan", "statistics"},
    "comparison": {"recording", "metrics", "statistics", "plan"},
    "analysis": {"metrics", "statistics"},
    "figures": {"statistics"},
    "report": {"scenario", "recording", "metrics", "statistics", "comparison", "analysis", "figures", "plan", "console",
               "sheets", "schemas"},
    "explanation": {"recording", "metrics", "figures"},
    "export": {"engine", "catalog", "recording", "metrics", "plan", "sheets"},
    "calibration": {"recording", "plan"},
    "analysed": {"analysis", "experiments", "recording"},
    "experiment_answers": {"analysed", "experiments", "report"},
    "interface": {"analysed", "analysis", "comparison", "experiments", "metrics", "recording", "report"},
    "catalog": {"quantity", "engine", "recording", "metrics"},
    "queue": {"engine", "runs", "catalog"},
    "studies": {"experiments", "networks", "scenario", "engine", "runs", "recording", "metrics", "statistics", "plan"},
    "experiments": {"quantity", "networks", "plan", "scenario", "engine", "runs", "recording", "metrics", "statistics"},
    "gallery": set(),
    "trial": {"quantity", "networks", "scenario", "experiments", "statistics", "comparison"},
    "dashboard": {"recording", "runs", "metrics", "figures", "report", "explanation", "catalog", "engine", "scenario",
                  "networks", "brokers", "comparison", "experiments", "queue", "studies", "statistics", "analysis",
                  "analysed", "experiment_answers", "export", "fired", "sheets", "plan"},
    "reference": {"networks", "scenario", "metrics", "experiments", "schemas"},
    "cli": {"quantity", "networks", "brokers", "engine", "plan", "scenario", "runs", "imports", "recording", "metrics",
            "comparison", "analysis", "analysed", "experiment_answers", "report", "explanation", "export",
            "calibration", "catalog", "queue", "studies", "experiments", "statistics", "dashboard", "fired",
            "gallery", "trial", "memory", "scrubbing", "console",
             "terminal", "sheets", "control_groups", "schemas"},
    "__main__": {"cli", "memory"},
}
# Circles between modules of a crate that are there still. This list may only get shorter.
CIRCLES = {
}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 700


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).is_file()]


def sources(suffix: str, folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob(f"*{suffix}"))


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_depends_only_on_the_rooms_below_it(crate: str) -> None:
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
    rooms = {name.removeprefix("mqttlab-") for name in manifest["dependencies"] if name.startswith("mqttlab-")}
    assert rooms <= CRATES[crate]


@pytest.mark.parametrize("crate", PURE)
def test_a_pure_crate_brings_nothing_that_touches_the_world(crate: str) -> None:
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
    others = {name for name in manifest["dependencies"] if not name.startswith("mqttlab-")}
    assert others <= HARMLESS
    for path in sources(".rs", f"crates/{crate}/src"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"std::(net|thread|fs|process)\b|SystemTime|Instant::now|HashMap|HashSet", text), path


def test_make_check_tests_the_pure_crates() -> None:
    shown = subprocess.run(["make", "--dry-run", "--no-print-directory", "test-rust-pure"], cwd=ROOT, text=True,
                           capture_output=True, check=True).stdout
    assert set(re.findall(r"--package mqttlab-(\S+)", shown)) == set(PURE)


def python_modules() -> dict[str, Path]:
    """Every module of the package by its full name."""
    package = ROOT / "python" / "mqttlab"
    names = {path: [*path.relative_to(package.parent).with_suffix("").parts] for path in sorted(package.rglob("*.py"))}
    return {".".join(name[:-1] if name[-1] == "__init__" else name): path for path, name in names.items()}


def imports(path: Path, modules: Collection[str]) -> set[str]:
    """Modules of this package that a module imports, inside functions and for type checkers only, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {inner if (inner := f"{node.module}.{alias.name}") in modules else str(node.module)
                      for alias in node.names}
    return found & set(modules)


def room_of(module: str) -> str:
    return [*module.split("."), ""][1]


def test_every_python_room_has_a_row() -> None:
    assert {room_of(module) for module in python_modules()} - {""} == set(PYTHON)


@pytest.mark.parametrize("room", PYTHON)
def test_a_python_room_imports_only_the_rooms_below_it(room: str) -> None:
    modules = python_modules()
    for name, path in modules.items():
        if room_of(name) == room:
            rooms = {room_of(module) for module in imports(path, modules)} - {"", room}
            assert rooms <= PYTHON[room] | EVERYWHERE, path


def test_no_import_in_a_function_or_for_type_checkers_hides_a_circle() -> None:
    modules = python_modules()
    assert circles({name: imports(path, modules) - {name} for name, path in modules.items()}) == []


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Sets of nodes each of which leads to all others of its set (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in path:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            part = {path.pop()}
            while node not in part:
                part.add(path.pop())
            found.extend([part] if len(part) > 1 else [])

    for node in edges:
        if node not in number:
            visit(node)
    return found


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, circles(edges))) == [["a", "b", "c"], ["d", "e"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def rust_edges(crate: str) -> dict[str, set[str]]:
    """Which modules of a crate name which others of it, in functions, too.

    A module depends on what is in its folder: it declares it, and hands its names on. What is in the folder may name
    the module that it is in, without an edge.
    """
    source = ROOT / "crates" / crate / "src"
    modules = {}
    for path in source.rglob("*.rs"):
        parts = [part for part in path.relative_to(source).with_suffix("").parts if part not in ("mod", "lib", "main")]
        modules["::".join(parts)] = path
    edges: dict[str, set[str]] = {}
    for name, path in modules.items():
        body = re.split(r"\n#\[cfg\(test\)\]", path.read_text(encoding="utf-8"))[0]
        edges[name] = inner_modules(name, body) & set(modules)
        for parts in rust_paths(body, name.split("::") if name else []):
            places = ["::".join(parts[:count]) for count in range(len(parts), 0, -1)]
            named = next((place for place in places if place in modules), name)
            edges[name] |= set() if f"{name}::".startswith(f"{named}::") else {named}
    return edges


def inner_modules(name: str, body: str) -> set[str]:
    """The modules that a module declares; those of a crate's root are no part of one module, and left out."""
    declared = re.findall(r"^(?:pub(?:\([a-z ]+\))? )?mod (\w+);", body, re.MULTILINE)
    return {f"{name}::{inner}" for inner in declared} if name else set()


def test_a_module_depends_on_what_is_in_its_folder() -> None:
    # recorder -> folding, folding::state -> validity, validity -> recorder: a circle by way of a folder.
    folder = inner_modules("folding", "mod state;\npub(crate) mod sums;\nuse crate::layout;\n")
    assert folder == {"folding::state", "folding::sums"} and inner_modules("", "mod folding;") == set()
    assert circles({"recorder": {"folding"}, "folding": folder, "folding::state": {"validity"},
                    "validity": {"recorder"}}) == [{"recorder", "folding", "folding::state", "validity"}]


def rust_paths(body: str, here: list[str]) -> Iterator[list[str]]:
    """The paths from the crate's root that a module's code names, those within braces one by one."""
    body = re.sub(r"//[^\n]*", "", body)
    for found in re.finditer(r"\b(crate|(?:super::)*super)::", body):
        # What a module calls `super` is what its folder is.
        above = [] if found[1] == "crate" else here[: max(0, len(here) - found[1].count("super"))]
        for path in branches(body, found.end()):
            yield [*above, *path]


def branches(body: str, place: int) -> list[list[str]]:
    """The paths that a path's rest from a place on stands for: `a::{b, c::{d, e}}` are three."""
    word = re.compile(r"\s*([A-Za-z_0-9]+)").match(body, place)
    if word is not None:
        rest = branches(body, word.end() + 2) if body.startswith("::", word.end()) else [[]]
        return [[word[1], *path] for path in rest]
    if not body.startswith("{", place):
        return [[]]
    parts, depth, start = [], 0, place + 1
    for end in range(place, len(body)):
        depth += {"{": 1, "}": -1}.get(body[end], 0)
        if depth == 0 or (depth == 1 and body[end] == ","):
            parts.append(start)
            start = end + 1
        if depth == 0:
            break
    return [path for part in parts for path in branches(body, part)]


def test_paths_in_braces_and_above_are_seen() -> None:
    body = "use crate::{a, b::C as D, e::{f, g}};\nuse super::h;\nlet x = super::super::i::j();"
    found = list(rust_paths(body, ["k", "l"]))
    assert ["a"] in found and ["b", "C"] in found and ["k", "h"] in found and ["i", "j"] in found


@pytest.mark.parametrize("crate", CRATES)
def test_modules_of_a_crate_name_each_other_in_no_new_circle(crate: str) -> None:
    known = CIRCLES.get(crate, [])
    assert [circle for circle in circles(rust_edges(crate)) if not any(circle <= old for old in known)] == []


@pytest.mark.parametrize("crate", CRATES)
def test_links_in_comments_lead_to_modules_and_names_of_their_crate(crate: str) -> None:
    source = ROOT / "crates" / crate / "src"
    dead = []
    for path in sorted(source.rglob("*.rs")):
        comments = "\n".join(re.findall(r"^\s*//[/!](.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        dead += [f"{path.relative_to(ROOT)}: {link}" for link in re.findall(r"\[`?(crate::[\w:]+)", comments)
                 if not is_there(source, link.split("::")[1:])]
    assert dead == []


def is_there(source: Path, parts: list[str]) -> bool:
    """Whether a path from a crate's root is a module, or a name that the last module on the way has in its code."""
    place = source
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.rs").is_file():
        file = place / f"{parts.pop(0)}.rs"
    else:
        file = next(each for each in (place / "mod.rs", place / "lib.rs", place / "main.rs") if each.is_file())
    code = re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8"))
    return not parts or re.search(rf"\b{parts[0]}\b", code) is not None


def test_a_link_to_a_module_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod join;\npub use join::Table;\n// gather\n", encoding="utf-8")
    (tmp_path / "join.rs").write_text("pub struct Table;\n", encoding="utf-8")
    links = ("join", "join::Table", "Table", "gather", "join::Row")
    assert [link for link in links if not is_there(tmp_path, link.split("::"))] == ["gather", "join::Row"]


def test_unsafe_code_stands_where_it_has_a_reason() -> None:
    # The compiler refuses it elsewhere: Cargo.toml denies it, and every crate takes its lints from there.
    allowing = {str(path.relative_to(ROOT / "crates")) for path in sources(".rs", "crates")
                if "allow(unsafe_code" in path.read_text(encoding="utf-8")}
    assert allowing == {
        "system/src/lib.rs", "counting/src/lib.rs", "recording/src/encoding.rs", "engine/src/memory.rs"}
    manifests = {crate: tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
                 for crate in CRATES}
    assert all(manifest["lints"] == {"workspace": True} for manifest in manifests.values())
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    assert workspace["lints"]["rust"]["unsafe_code"] == "deny"


def rust_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Functions and their lengths, as rustfmt's indentation shows them."""
    start: tuple[str, str, int] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        if start is None:
            heading = re.match(r"(\s*)(?:pub(?:\([a-z ]+\))? )?(?:const |async |unsafe |extern \"C\" )*fn (\w+)", line)
            if heading and not line.rstrip().endswith((";", "}")):
                start = (heading[2], heading[1], number)
        elif line == f"{start[1]}}}":
            yield start[0], number - start[2] + 1
            start = None


def test_no_package_gives_a_name_of_its_modules_to_something_else() -> None:
    # `from package import name` would be one thing before `package.name` is first imported, and another after it.
    doubles = []
    for init in sorted((ROOT / "python" / "mqttlab").rglob("__init__.py")):
        package = ".".join(init.parent.relative_to(ROOT / "python").parts)
        for node in ast.walk(ast.parse(init.read_text())):
            if isinstance(node, ast.ImportFrom):
                doubles += [f"{package}: {alias.asname or alias.name} of {node.module}" for alias in node.names
                            if (init.parent / f"{alias.asname or alias.name}.py").exists()
                            and node.module not in (package, f"{package}.{alias.asname or alias.name}")]
    assert doubles == []


def test_no_rust_function_is_longer_than_a_page() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines"
        for path in sources(".rs", "crates") if "/src/" in str(path)
        for name, lines in rust_functions(path) if lines > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_no_python_function_is_longer_than_a_page() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sources(".py", "python")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_no_file_grows_into_a_monster() -> None:
    paths = [p for p in (*sources(".rs", "crates"), *sources(".py", "python")) if "tests" not in p.parts]
    # Written by scripts/plan-types: it is as long as the plan has fields.
    paths.remove(ROOT / "python" / "mqttlab" / "plan" / "types.py")
    assert [str(p) for p in paths if len(p.read_text(encoding="utf-8").splitlines()) > FILE_LINES_MAX] == []


def test_every_module_says_what_it_is() -> None:
    silent = [p for p in sources(".rs", "crates") if not p.read_text(encoding="utf-8").startswith(("//!", "#!["))]
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(".py", "python")}
    silent += [path for path, module in modules.items() if ast.get_docstring(module) is None]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_files_that_comments_and_pages_name_are_there() -> None:
    files = [str(path.relative_to(ROOT)) for path in tracked("*")]
    missing = []
    for path in tracked("*.rs", "*.py", "docs/*.md", "ARCHITECTURE.md"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if path.suffix != ".rs" or "//" in line:
                missing += [f"{path.relative_to(ROOT)}: {name}" for name in re.findall(r"`([\w/-]+\.(?:rs|py))`", line)
                            if not any(f"/{file}".endswith(f"/{name}") for file in files)]
    assert missing == []


def test_no_file_names_a_place_of_one_machine() -> None:
    # Assembled here, so that this file does not name them.
    places = [f"/{name}/" for name in ("work", "root")]
    named = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in tracked() if path.suffix in {".rs", ".py", ".md", ".toml", ".sh", ""}
        for place in places if place in path.read_text(encoding="utf-8", errors="ignore")
    ]
    assert named == []
