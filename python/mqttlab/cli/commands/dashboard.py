"""``mqttlab dashboard``: recordings in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from mqttlab.cli.main import CATALOG, RUNS, main
from mqttlab.cli.problems import WithTables
from mqttlab.errors import UsageError
from mqttlab.terminal import keep_log, say


@main.command(cls=WithTables)
@RUNS
@CATALOG
@click.option("--listen", default="127.0.0.1:8350", show_default=True, metavar="ADDRESS[:PORT]",
              help="Where to listen. Beyond 127.0.0.1 others reach it, who need the token; port 0 takes a free one.")
@click.option("--host-name", "names", multiple=True, metavar="NAME",
              help="A name under which browsers may call it, where it listens beyond 127.0.0.1.")
@click.option("--queue", type=click.Path(path_type=Path), envvar="MQTTLAB_QUEUE", show_envvar=True, metavar="DIR",
              help="Another queue than the user's own, for runs of the dashboard.")
@click.option("--password-file", type=click.Path(path_type=Path, dir_okay=False),
              help="File whose first line is the token, instead of a generated one.")
def dashboard(
    runs: Path, catalog: str | None, listen: str, names: tuple[str, ...], queue: Path | None,
    password_file: Path | None,
) -> None:
    """Show recordings in a browser.

    Prints an address with a token; open it in a browser of this machine. Later this browser needs only the address,
    without the token. Ctrl-C ends the dashboard; runs go on.

    \b
      mqttlab dashboard                            recordings in runs/
      mqttlab dashboard --listen 0.0.0.0 --host-name lab.example    for others, who need the token
    """
    try:
        from mqttlab.catalog.place import url_of
        from mqttlab.dashboard.address import Listen, read_secret
        from mqttlab.dashboard.server import Dashboard
    except ModuleNotFoundError as error:
        raise UsageError(f"the dashboard needs the package {error.name}; install it with make setup-dashboard, or "
                         "pip install 'mqttlab[dashboard]'") from error
    where = Listen.read(listen, names)
    kept = Path.home() / ".local" / "state" / "mqttlab" / "dashboard-token"
    served = Dashboard(runs, where, read_secret(password_file, kept), queue,
                       url_of(catalog) if catalog and catalog != "none" else catalog)
    if not where.loopback:
        say(f"With the token, every host that reaches {where.host} can read all recordings in {runs} and start runs. "
            "The connection is not encrypted: beyond a network that you trust, put it behind SSH or a proxy "
            "with TLS.", err=True)
    shown = served.url if password_file is None else served.url.partition("?")[0]
    say(f"The dashboard of {runs} is at {shown}")
    say("Ctrl-C ends it.")
    keep_log()
    served.serve()
