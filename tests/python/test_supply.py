"""What others wrote: locked by hash, from where it should be, under licences that fit; and who may start what."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(ROOT.glob("requirements*.lock"))
CRATES = "registry+https://github.com/rust-lang/crates.io-index"


def entries(lock: Path) -> dict[str, list[str]]:
    """Packages of a lock with their hashes."""
    found: dict[str, list[str]] = {}
    for line in lock.read_text(encoding="utf-8").splitlines():
        if named := re.match(r"([A-Za-z0-9._-]+)==[^ ;]+", line):
            found[named[1]] = []
        found_hash = re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line)
        if found_hash:
            found[[*found][-1]].append(found_hash[1])
        assert named or found_hash or line.startswith("#") or not line, f"{lock.name}: {line}"
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_its_hashes_and_no_address(lock: Path) -> None:
    found = entries(lock)
    assert found and all(found.values()), [name for name, hashes in found.items() if not hashes]
    assert not re.search(r"https?:|--index|--find-links|--trusted", lock.read_text(encoding="utf-8"))


def test_all_that_is_declared_is_locked() -> None:
    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in extras if name != "cluster" for one in extras[name])]
    locked = {plain(name) for lock in LOCKS for name in entries(lock)}
    names = {plain(re.match(r"[A-Za-z0-9._-]+", one)[0]) for one in wanted}  # type: ignore[index]
    assert names <= locked, names - locked


def test_nothing_is_installed_without_hashes() -> None:
    for path in (ROOT / "Makefile", *(ROOT / ".ci").iterdir(), *(ROOT / "scripts").iterdir()):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
                # Of a package by name or lock; the project itself has no hash.
                named = re.search(r"pip install(?! \.`)", line)
                assert not named or "--require-hashes" in line, f"{path.name}: {line}"


@pytest.fixture(scope="module")
def metadata() -> dict[str, Any]:
    done = subprocess.run(["cargo", "metadata", "--format-version=1", "--locked", "--offline"], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cargo has not all crates here: {done.stderr.splitlines()[-1:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    return tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))


def fits(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression is satisfied (AND binds closer than OR)."""
    words = re.findall(r"[()]|[^\s()/]+|/", expression)

    def either() -> bool:
        found = both()
        while words and words[0] in ("OR", "/"):
            words.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        word = words.pop(0)
        if word == "(":
            found = either()
            words.pop(0)
            return found
        if words and words[0] == "WITH":
            del words[:2]
            return False
        return word in allowed

    return either()


def test_an_expression_of_licences_is_read_as_it_is_meant() -> None:
    assert fits("(MIT OR Apache-2.0) AND NCSA", {"MIT", "NCSA"}) and not fits("(MIT OR X) AND NCSA", {"MIT"})
    assert fits("MIT/X", {"MIT"}) and not fits("X WITH Y", {"X"}) and fits("X AND Y OR MIT", {"MIT"})


def test_every_crates_licence_is_one_of_those_that_are_allowed(
        metadata: dict[str, Any], asked: dict[str, Any]) -> None:
    allowed = set(asked["licenses"]["allow"])
    assert not {f"{one['name']}: {one['license']}" for one in metadata["packages"]
                if not fits(one["license"] or "none", allowed)}


def test_crates_come_from_one_registry_and_once_each(metadata: dict[str, Any], asked: dict[str, Any]) -> None:
    assert {one["source"] for one in metadata["packages"]} <= {None, CRATES}
    # The lock also has crates for features that nobody asks for; cargo-deny leaves them out, and so does `cargo tree`.
    done = subprocess.run(["cargo", "tree", "--locked", "--offline", "--workspace", "--all-features", "--target=all",
                           "--duplicates", "--prefix=none", "--depth=0"],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name, _ in set(re.findall(r"^(\S+) v(\S+)", done.stdout, re.MULTILINE))]
    twice = {name for name in names if names.count(name) > 1}
    assert twice == {one["crate"] for one in asked["bans"]["skip"]}
    assert asked["sources"] == {"unknown-registry": "deny", "unknown-git": "deny"}


def test_every_crate_keeps_the_workspaces_lints_and_no_unsafe_is_without_its_reason() -> None:
    lints = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["lints"]
    assert lints["clippy"]["undocumented_unsafe_blocks"] == lints["clippy"]["missing_safety_doc"] == "deny"
    assert lints["rust"]["unsafe_op_in_unsafe_fn"] == "deny"
    for manifest in [*ROOT.glob("crates/*/Cargo.toml")]:
        assert tomllib.loads(manifest.read_text(encoding="utf-8"))["lints"]["workspace"] is True, manifest
        # Its own file of clippy's replaces the workspace's, which asks for the reason of private functions, too.
        if (manifest.parent / "clippy.toml").exists():
            sources = [path.read_text(encoding="utf-8") for path in manifest.parent.rglob("*.rs")]
            assert not any(re.search(r"\bunsafe fn\b", text) for text in sources), manifest


def test_the_audits_script_reads_the_licences_of_an_environment() -> None:
    audit = runpy.run_path(str(ROOT / "scripts" / "audit"))
    assert audit["licences"](sys.executable) == []


def test_a_list_of_known_faults_that_cannot_be_read_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    audit = runpy.run_path(str(ROOT / "scripts" / "audit"))
    audit["asked"].__globals__["WITHIN_S"] = 0.01
    assert audit["asked"](["sleep", "60"]) == ""
    audit["asked"].__globals__["WITHIN_S"] = 60
    unreached = "failed to fetch advisory database: Could not resolve host"
    assert audit["asked"](["sh", "-c", f"echo '{unreached}' >&2; exit 1"]) == ""
    assert capsys.readouterr().out.count("NOT CHECKED") == 2
    found = "RUSTSEC-2026-0001: a fault; the network has nothing to do with it"
    assert found in audit["asked"](["sh", "-c", f"echo '{found}' >&2; exit 1"])


def test_a_lock_is_read_package_by_package() -> None:
    lock = runpy.run_path(str(ROOT / "scripts" / "lock"))
    text = "# words\nA.b_c==1 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\nd==2 \\\n    --hash=sha256:2\n"
    found = lock["blocks"](text)
    assert [*found] == ["a-b-c", "d"] and "".join(found.values()) == text.partition("\n")[2]


def test_an_audit_says_which_list_it_could_not_ask(capsys: pytest.CaptureFixture[str]) -> None:
    audit = runpy.run_path(str(ROOT / "scripts" / "audit"))
    assert audit["asked"](["cargo", "a-tool-that-is-not-here", "--locked", "check", "advisories"]) == ""
    assert "NOT CHECKED, cargo-a-tool-that-is-not-here is not here" in capsys.readouterr().out
