"""``mqttlab try``: a load in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mqttlab.cli.main import CATALOG, RUNS, SET, main, overrides_of
from mqttlab.cli.problems import Command, writable_file
from mqttlab.errors import UsageError

# Option, placeholder, help. Each may have several values, with commas between them.
LOAD = (
    ("clients", "N", "Devices behind the network.  [default: 10]"),
    ("every", "TIME", "Time between two messages of a client, such as 5s.  [default: 1 s]"),
    ("rate", "RATE", "Messages of a client per time, such as 10/s; instead of --every."),
    ("qos", "0|1|2", "Quality of service, for publishers and subscribers.  [default: 0]"),
    ("payload", "SIZE", "Size of a message, such as 100B; or gps, or image.  [default: 100 B]"),
    ("subscribers", "N", "Subscribers beside the broker, each to all messages; fan-in only.  [default: 1]"),
    ("publishers", "N", "Publishers beside the broker; fan-out only.  [default: 1]"),
)
NETWORK = (
    ("network", "MODEL", "Network of the devices, such as lte; mqttlab networks lists them.  [default: one without "
                         "delay, rate limit or loss]"),
    ("loss", "PERCENT", "Loss in each direction, such as 2%; also in place of the model's."),
    ("delay", "TIME", "Delay in each direction, such as 50ms; also in place of the model's."),
    ("jitter", "TIME", "Standard deviation of the delay."),
    ("bandwidth", "RATE", "Data rate in each direction, such as 1Mbit/s."),
    ("link", "each|shared", "A link for each device, or one for all.  [default: each]"),
    ("nat", "TIMEOUT", "A NAT between devices and broker that forgets connections which are silent for so long."),
)
PROTOCOL = (
    ("mqtt", "VERSION", "3.1, 3.1.1 or 5.  [default: 3.1.1]"),
    ("keep-alive", "TIME", "Keep-alive.  [default: 60 s]"),
    ("ping", "RULE", "When clients ping: silence as libmosquitto does, interval as paho-mqtt does, or sent: after a "
                     "keep-alive without anything sent.  [default: silence]"),
    ("will", "TOPIC", "Topic of a last will, which every client has."),
    ("username", "NAME", "User name of all clients; {client} stands for a client's number."),
    ("password-env", "VARIABLE", "The environment variable that has the password."),
    ("transport", "NAME", "tcp, tls, websocket or wss.  [default: tcp]"),
    ("broker", "HOST:PORT", "A broker that runs already, over the network as it is.  [default: a Mosquitto of its "
                            "own]"),
    ("ca", "FILE", "With --broker and TLS: certificates of the authorities to trust (PEM)."),
)
RUN = (
    ("duration", "TIME", "Time that is measured.  [default: 1 min, or ten intervals where that is longer]"),
    ("repetitions", "N", "Runs, each with its own seed.  [default: 1; 5 of simulations that are compared]"),
    ("seed", "N", "Seed of all random numbers.  [default: 1]"),
)


class Try(Command):
    """The command, with an answer to options that it does not have."""

    def instead_of_option(self, option: str) -> str | None:
        """The option, or the field of the scenario, that is meant."""
        from mqttlab.trial.unknown import instead_of

        return instead_of(option)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that the scenario's parser reads, in the order of the tables above."""
    for name, metavar, words in reversed((*LOAD, *NETWORK, *PROTOCOL, *RUN)):
        command = click.option(f"--{name}", f"given_{name.replace('-', '_')}", metavar=metavar, help=words)(command)
    return command


@main.command(name="try", cls=Try)
@_options
@SET
@click.option("--shape", type=click.Choice(["fan-in", "fan-out", "own"]), default="fan-in", show_default=True,
              help="fan-in: devices publish, subscribers beside the broker get all; fan-out: publishers beside the "
                   "broker send to all devices; own: each device gets its own messages.")
@click.option("--simulate", is_flag=True, help="Simulate it, in virtual time: no broker, no privileges.")
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE",
              help="Keep the scenario, or the experiment of a comparison, in this file.")
@RUNS
@click.option("--html/--no-html", default=None, show_default="--html; --no-html with --json",
              help="Write report.html into the directory of a recording.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; docs/reference/output.md describes it.")
@CATALOG
def try_(
    shape: str, simulate: bool, save: Path | None, runs: Path, html: bool | None, as_json: bool, catalog: str | None,
    settings: tuple[str, ...], **given: str | None,
) -> None:
    """Run a load that the options describe, without a file.

    An option with several values (--qos 0,1,2) compares them: one row for each. Units and limits are those of a
    scenario. --set writes any other field. The scenario is printed; --save writes it to a file.

    \b
      mqttlab try --simulate
      mqttlab try --clients 200 --every 5s --qos 1 --payload 100B --network lte --loss 2% --simulate
      mqttlab try --clients 200 --every 5s --network lte --loss 2% --qos 0,1,2 --simulate
      mqttlab try --clients 50 --network lte,nb-iot --simulate --save networks.toml
      mqttlab try --shape fan-out --clients 100 --rate 10/s
      mqttlab try --broker 192.0.2.1:1883 --clients 100 --rate 10/s
      mqttlab try --broker broker.example:8883 --transport tls --ca ca.pem --username lab --password-env LAB_PASSWORD
      mqttlab try --clients 50 --network lte-m --nat 2min --set groups[0].publish.retain=true --simulate
    """
    from mqttlab.cli.trial import show_trial, trial_of
    from mqttlab.scenario.transport import TRANSPORTS

    if save is not None:
        writable_file(save, "--save")
    written = {name.removeprefix("given_").replace("_", "-"): value for name, value in given.items()
               if value is not None}
    for one, other in (("every", "rate"), ("broker", "network"), ("broker", "link"), ("broker", "loss"),
                       ("broker", "delay"), ("broker", "jitter"), ("broker", "bandwidth"), ("broker", "nat")):
        if one in written and other in written:
            raise UsageError(f"--{one} and --{other} exclude each other; keep one")
    for option, needed in (("subscribers", "fan-in"), ("publishers", "fan-out")):
        if option in written and shape != needed:
            raise UsageError(f"--{option} goes with --shape {needed}; leave it out")
    if "broker" in written and simulate:
        raise UsageError("--broker names a broker that runs, which cannot be simulated; leave --simulate out")
    if "ca" in written and "broker" not in written:
        raise UsageError("--ca goes with --broker; the broker of a run has certificates of its own")
    over_tls = any("tls" in TRANSPORTS.get(name, ()) for name in written.get("transport", "tcp").split(","))
    if "broker" in written and "ca" not in written and over_tls:
        raise UsageError("--transport over TLS needs --ca with --broker: a PEM file with the authorities to trust, "
                         "such as /etc/ssl/certs/ca-certificates.crt")
    trial = trial_of(shape, simulate, written, overrides_of(settings, None))
    sys.exit(show_trial(trial, runs, save=save, as_json=as_json,
                        html=not as_json if html is None else html, catalog=catalog))
