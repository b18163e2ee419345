"""The house's walls: who may depend on whom, and how large a piece may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = {
    "units": set(),
    "mqtt": {"units"},
    "net": {"units"},
    "tcp": {"units"},
    "plan": {"units", "net", "mqtt", "tcp"},
    "recording": {"units"},
    "capture": {"units", "mqtt", "recording"},
    "live": {"units", "mqtt", "net", "plan", "recording"},
    "sim": {"units", "mqtt", "net", "tcp", "plan", "recording"},
    "engine": {"units", "mqtt", "plan", "live", "sim", "capture", "recording"},
}
PURE = ("units", "mqtt", "net", "tcp")
# Crates that do neither input nor output.
HARMLESS = {"serde"}
# Every room may raise the package's errors.
EVERYWHERE = {"errors"}
PYTHON = {
    "errors": set(),
    "quantity": set(),
    "networks": {"quantity"},
    "brokers": set(),
    "scenario": {"quantity", "networks", "brokers"},
    "runs": set(),
    "imports": {"runs"},
    "recording": set(),
    "metrics": {"recording"},
    "figures": set(),
    "report": {"recording", "metrics", "figures"},
    "export": {"recording", "metrics"},
    "calibration": {"recording"},
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


def imports(path: Path) -> Iterator[str]:
    """Modules of this package that a module imports when it is loaded."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mqttlab"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


@pytest.mark.parametrize("room", PYTHON)
def test_a_python_room_imports_only_the_rooms_below_it(room: str) -> None:
    package = ROOT / "python" / "mqttlab"
    single = package / f"{room}.py"
    paths = [single] if single.is_file() else sorted((package / room).rglob("*.py"))
    assert paths
    for path in paths:
        assert set(imports(path)) - {room} <= PYTHON[room] | EVERYWHERE, path


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
    assert [str(p) for p in paths if len(p.read_text(encoding="utf-8").splitlines()) > FILE_LINES_MAX] == []


def test_every_module_says_what_it_is() -> None:
    silent = [p for p in sources(".rs", "crates") if not p.read_text(encoding="utf-8").startswith(("//!", "#!["))]
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(".py", "python")}
    silent += [path for path, module in modules.items() if ast.get_docstring(module) is None]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_no_file_names_a_place_of_one_machine() -> None:
    # Assembled here, so that this file does not name them.
    places = [f"/{name}/" for name in ("work", "root")]
    named = [
        f"{path.relative_to(ROOT)}: {place}"
        for path in tracked() if path.suffix in {".rs", ".py", ".md", ".toml", ".sh", ""}
        for place in places if place in path.read_text(encoding="utf-8", errors="ignore")
    ]
    assert named == []
