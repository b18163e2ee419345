"""The gallery of ``mqttlab new``: scenarios to begin with, each with what to look at and what to change.

A template is a file of ``templates``; its first line says what it answers. One that is an experiment has its scenario
beside it, as ``NAME-scenario.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mqttlab.errors import MqttlabError

TEMPLATES = Path(__file__).parent / "templates"
SCENARIO = "-scenario"
ORDER = ("lte-m-fleet", "satcom-command", "dashboard-fan-out", "fleet-reconnect", "sleeping-sensors", "tls-thin-link",
         "radio-cell", "broker-settings", "image-bursts", "capture", "link-outage", "broker-restart", "reconnect-storm",
         "rain-fade", "fleet-at-the-hour", "nat-timeout")


class GalleryError(MqttlabError):
    """There is no such template, or its file would overwrite another one."""


@dataclass(frozen=True)
class Template:
    """A file to begin with."""

    name: str
    path: Path

    @property
    def title(self) -> str:
        """What it answers, from its first line."""
        with self.path.open(encoding="utf-8") as lines:
            return next(lines).lstrip("# ").rstrip()

    @property
    def scenario(self) -> Path | None:
        """The scenario of a template that is an experiment."""
        beside = TEMPLATES / f"{self.name}{SCENARIO}.toml"
        return beside if beside.is_file() else None

    @property
    def command(self) -> str | None:
        """The command that runs its file; none where there is nothing to run."""
        if self.path.suffix != ".toml":
            return None
        return "experiment" if self.scenario is not None else "run"


def templates() -> dict[str, Template]:
    """All templates by name, in the order in which they are listed."""
    found = {path.stem: Template(path.stem, path) for path in sorted(TEMPLATES.iterdir())
             if path.suffix in (".toml", ".md") and not path.stem.endswith(SCENARIO)}
    return {name: found[name] for name in sorted(found, key=lambda name: (
        ORDER.index(name) if name in ORDER else len(ORDER), name))}


def write(template: Template, out: Path) -> list[Path]:
    """Write a template's files; the second one, of an experiment, beside ``out``.

    Raises:
        GalleryError: a file is there already; nothing was written.
    """
    beside = out.with_name(f"{out.stem}{SCENARIO}.toml")
    files = {out: template.path} | ({} if template.scenario is None else {beside: template.scenario})
    for path in files:
        if path.exists():
            raise GalleryError(f"{path} is there already; name another file with --out")
    for path, source in files.items():
        text = source.read_text(encoding="utf-8")
        if template.scenario is not None:
            text = text.replace("{scenario}", beside.name).replace("{file}", str(out))
        path.write_text(text, encoding="utf-8")
    return list(files)
