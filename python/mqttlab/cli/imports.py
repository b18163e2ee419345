"""``mqttlab import``: recordings from captures, logs and tables that somebody else made."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mqttlab.cli.main import CATALOG, FULL, HTML, JSON, RUNS, main
from mqttlab.cli.problems import Imports, WithTables, writable_directory

if TYPE_CHECKING:
    from mqttlab.imports import Evidence

FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
OUTPUT = click.option("--output", type=click.Path(path_type=Path), metavar="DIR",
                      help="Directory of the recording  [default: a new directory among the runs]")


class Size(click.ParamType[int]):
    """A number of bytes, with its unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it."""
        from mqttlab.quantity import size_bytes

        try:
            return size_bytes(value)
        except ValueError as error:
            self.fail(f"{str(value)!r} {error}", param, ctx)


UNPACKED = click.option("--unpacked-max", type=Size(), metavar="SIZE",
                        help="Size that compressed files may unpack to, such as '2 GB'.  [default: 256 MB, or 200 "
                             "times their own]")
NAME = click.option("--name", help="Name shown in reports  [default: the first file's name]")


@main.group(name="import", cls=Imports)
def import_() -> None:
    """Make recordings from captures and logs of other tools.

    The result is a recording like that of a run: report, export and compare read it.

    \b
      mqttlab import capture broker.pcapng           every frame, every MQTT packet, the messages
      mqttlab import log client1.log client2.log     logs of Schuhmacher 2018: sender and relay
      mqttlab import log mosquitto.log               the log of a broker
      mqttlab import log messages.csv                a table of messages
      mqttlab report runs/broker-...

    Files may be compressed (gzip, Zstandard). `-` is standard input. docs/how-to/import.md has the
    details.
    """


@import_.command(cls=WithTables)
@FILES
@OUTPUT
@RUNS
@NAME
@click.option("--broker-port", "ports", type=click.IntRange(1, 65535), multiple=True, metavar="PORT",
              help="Port on which brokers listen; repeatable. Connections to other ports are recognised by "
                   "their CONNECT.  [default: 1883]")
@click.option("--gateway-port", "gateway_ports", type=click.IntRange(1, 65535), multiple=True, metavar="PORT",
              help="UDP port on which MQTT-SN gateways listen; repeatable. Others are recognised by their clients' "
                   "CONNECT.")
@click.option("--captured-at", type=click.Choice(["broker", "clients", "between"]),
              help="Where the capture was taken.  [default: as the round trips to both ends say]")
@click.option("--one-broker", is_flag=True,
              help="Take all servers in the capture for one broker: a message published at one of them is expected at "
                   "all of them.  [default: as deliveries say]")
@click.option("--separate-brokers", is_flag=True,
              help="Take each server in the capture for a broker of its own.  [default: as deliveries say]")
@click.option("--key-log", "key_logs", type=click.Path(path_type=Path, exists=True, dir_okay=False), multiple=True,
              metavar="FILE",
              help="Secrets of TLS connections, as clients and brokers log them (SSLKEYLOGFILE); repeatable. Those in "
                   "the capture itself are read, too.")
@click.option("--deliver-on", type=click.Choice(["release", "publish"]), default="release", show_default=True,
              help="Whether a message at QoS 2 is delivered at its PUBREL, as Paho does, or already at its PUBLISH.")
@UNPACKED
@HTML
@FULL
@JSON
@CATALOG
def capture(
    files: tuple[Path, ...], output: Path | None, runs: Path, name: str | None, ports: tuple[int, ...],
    gateway_ports: tuple[int, ...], captured_at: str | None, one_broker: bool, separate_brokers: bool,
    key_logs: tuple[Path, ...], deliver_on: str, unpacked_max: int | None, html: bool | None, full: bool,
    as_json: bool, catalog: str | None,
) -> None:
    """Import captures (pcapng, pcap) into one recording.

    Reads MQTT over TCP, WebSocket and TLS (with its secrets), and MQTT-SN over UDP. Messages that a gateway passes on
    are counted once.

    Several captures are merged by time: of one interface one after the other, or of several links side by side. Frames
    that crossed two links are recognised. Missing values stay empty. The report says where a capture ends early or has
    gaps.

    \b
      mqttlab import capture broker.pcapng
      tcpdump -i any -w - port 1883 | mqttlab import capture -
      mqttlab import capture --broker-port 8884 --output runs/field field.pcap.gz --full
      mqttlab import capture --key-log keys.log tls.pcapng
    """
    if one_broker and separate_brokers:
        raise click.UsageError("--one-broker and --separate-brokers exclude each other")
    options = ["--deliver-on", deliver_on]
    if captured_at is not None:
        options += ["--captured-at", captured_at]
    if one_broker:
        options += ["--one-broker"]
    if separate_brokers:
        options += ["--separate-brokers"]
    for port in ports:
        options += ["--broker-port", str(port)]
    for port in gateway_ports:
        options += ["--gateway-port", str(port)]
    for file in key_logs:
        options += ["--key-log", str(file)]
    options += [] if unpacked_max is None else ["--unpacked-max", str(unpacked_max)]
    _import("capture", files, output, runs, name, options, html, as_json, catalog, full=full)


@import_.command(cls=WithTables)
@FILES
@OUTPUT
@RUNS
@NAME
@click.option("--utc-offset", default="Z", metavar="+HH:MM",
              help="UTC offset of times without a zone  [default: +00:00]")
@UNPACKED
@HTML
@FULL
@JSON
@CATALOG
def log(
    files: tuple[Path, ...], output: Path | None, runs: Path, name: str | None, utc_offset: str,
    unpacked_max: int | None, html: bool | None, full: bool, as_json: bool, catalog: str | None,
) -> None:
    """Import logs of brokers, message logs, or tables of messages (.csv), into one recording.

    What a file is is known by its content. The logs of Mosquitto (log_type all, or -v) and EMQX (level debug, traces)
    are read, rotated files in any order, and the records of MQTTLoader. Output of tools that has no single messages is
    named.

    A message log has lines of `date,time,action,topic,qos,size,id`, one file for each client; a relay's log belongs
    beside its sender's.

    A table has a header line and a line for each delivery; its columns are, in any order: message, publisher,
    subscriber, topic, qos, payload_bytes, intended, sent, received. Times are ISO 8601 or seconds, or numbers in the
    unit that the column's name ends with (sent_ms, received_ns). `received` is empty where a message did not
    arrive, `sent` where it was never sent.

    \b
      mqttlab import log --utc-offset +02:00 roundtrip-client1.log roundtrip-client2.log
      mqttlab import log messages.csv
      docker logs -t mosquitto 2>&1 | mqttlab import log -
    """
    from mqttlab.imports import evidence_of

    options = ["--utc-offset", utc_offset]
    options += [] if unpacked_max is None else ["--unpacked-max", str(unpacked_max)]
    _import(evidence_of(files), files, output, runs, name, options, html, as_json, catalog, full=full)


def _import(
    evidence: Evidence, files: Sequence[Path], output: Path | None, runs: Path, name: str | None,
    options: list[str], html: bool | None, as_json: bool, catalog: str | None, *, full: bool,
) -> None:
    from mqttlab.cli.catalogs import remember
    from mqttlab.cli.outcome import print_document, report_run, run_document
    from mqttlab.cli.progress import ImportProgress
    from mqttlab.cli.status import status_of
    from mqttlab.console import Console
    from mqttlab.imports import directory_for, import_evidence

    where = writable_directory(runs, "--runs") if output is None else writable_directory(output, "--output")
    made = [path for path in (where, *where.parents) if not path.exists()]
    if name is not None:
        options += ["--name", name]
    try:
        with contextlib.ExitStack() as taken, ImportProgress(Console(stderr=True)) as progress:
            directory = output or taken.enter_context(directory_for(files, runs))[0]
            outcome = import_evidence(evidence, files, directory.absolute(), progress.observe, options=options)
    except BaseException:
        # What was made for an import that failed goes again, as far as it is empty.
        for path in made:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise
    status = status_of(outcome)
    if as_json:
        document, recording = run_document(outcome, bool(html))
        print_document([document], status)
    else:
        recording = report_run(outcome, html is not False, full=full)
    if recording is not None:
        remember(outcome.directory, catalog, runs if output is None else None, recording=recording)
    sys.exit(status)
