"""``mqttlab new``: a scenario to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from mqttlab.cli.main import main
from mqttlab.cli.problems import writable_file
from mqttlab.errors import UsageError
from mqttlab.terminal import say


@main.command()
@click.argument("template", required=False)
@click.option("--list", "list_all", is_flag=True, help="List the templates.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE",
              help="The file to write  [default: TEMPLATE.toml]")
def new(template: str | None, list_all: bool, out: Path | None) -> None:
    """Write a commented scenario from the gallery, to be run and changed.

    The comments say what to look at and what to change. A file that is there already is never overwritten.

    \b
      mqttlab new --list
      mqttlab new lte-m-fleet
      mqttlab new lte-m-fleet --out fleet.toml
      mqttlab run fleet.toml
    """
    from mqttlab.gallery import templates, write

    known = templates()
    if list_all or template is None:
        if list_all and (template is not None or out is not None):
            raise UsageError("--list goes alone; leave the rest out")
        if out is not None:
            raise UsageError(f"--out needs a template; known: {', '.join(known)}")
        width = max(map(len, known))
        for name, each in known.items():
            say(f"{name:<{width}}  {each.title}")
        return
    found = known.get(template)
    if found is None:
        from mqttlab.mistaken import did_you_mean

        raise UsageError(f"unknown template {template!r}; {did_you_mean(template, list(known))}")
    out = out or Path(found.path.name)
    for path in write(found, writable_file(out, "--out")):
        say(f"written  {path}")
    say("read it  its first lines say what to look at and what to change")
    if found.command:
        say(f"run it   mqttlab {found.command} {out}")
