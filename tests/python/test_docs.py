"""The reference pages are in step with the code, and the pages' links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BeforeValidator

from mqttlab.reference import PAGES, TCP_STACKS, _default, _models, _type, tcp_stacks
from mqttlab.scenario.model import Scenario

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
OTHERS = sorted(path for folder in ("benches", "experiments", "python", "tests")
                for path in (ROOT / folder).rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_in_step(page: str) -> None:
    committed = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert committed == PAGES[page](), "run: python -m mqttlab.reference"


def test_the_simulators_tests_read_the_stacks_that_are_declared() -> None:
    assert (ROOT / TCP_STACKS).read_text(encoding="utf-8") == tcp_stacks(), "run: python -m mqttlab.reference"


@pytest.mark.parametrize("path", [*WRITTEN, *DOCS, *OTHERS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    # No link stands in a block of code, or between backquotes.
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        led = path.parent / target if target else path
        assert led.exists(), target
        assert not anchor or anchor in anchors(led), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings; of two headings of one text the second has a number behind it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+)$", text, re.MULTILINE):
        name = slug = slug_of(heading)
        number = 0
        while name in found:
            number += 1
            name = f"{slug}_{number}"
        found |= {name, name.replace("_", "-")}
    return found


def slug_of(heading: str) -> str:
    """A heading's anchor, as MkDocs and forges make it."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").strip().lower()
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", words))


def test_a_link_to_no_heading_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `page`, of two\n[here](#one-page-of-two)\n", encoding="utf-8")
    test_links_lead_somewhere(page)
    page.write_text("# One\n[here](#two)\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="#two"):
        test_links_lead_somewhere(page)


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    named = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)\)", index.read_text("utf-8"))}
    assert {page.relative_to(ROOT).as_posix() for page in {*DOCS} - {index} - named} == set()


def test_the_site_is_built_strictly_and_loads_nothing_from_a_network(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # Strict: a link to no page or heading, and a page that is in no menu, are failures.
    for page in DOCS:
        built = tmp_path / page.relative_to(ROOT / "docs").with_suffix(".html")
        loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?:\w+:)?//[^\"]*", built.read_text("utf-8"))
        assert not loaded, (page, loaded)
    for style in tmp_path.rglob("*.css"):
        assert not re.search(r"url\([\"']?(\w+:)?//", style.read_text(encoding="utf-8")), style


def test_every_room_on_the_map_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for place in re.findall(r"^\| `((?:crates|python)/[^`]*)`", text, re.MULTILINE):
        assert (ROOT / place).exists(), place


def test_a_default_is_written_as_a_scenario_may_have_it() -> None:
    checked = 0
    for _, model in _models(Scenario, ""):
        for field in model.model_fields.values():
            readers = [extra.func for extra in field.metadata if isinstance(extra, BeforeValidator)]
            shown = _default(field)
            if '"' in _type(field) and readers and shown not in ("–", "required"):
                assert readers[0](shown) == field.get_default(call_default_factory=True), shown  # type: ignore[call-arg]
                checked += 1
    assert checked > 60
