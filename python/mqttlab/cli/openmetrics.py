"""``mqttlab run --metrics``: what a run says of itself as it goes on, for Prometheus and Grafana.

The numbers are those of the engine's progress lines, about four a second; whoever asks gets the last ones. The format
is OpenMetrics 1.0 for who accepts it, else Prometheus' text. ``docs/how-to/metrics-endpoint.md`` lists the metrics.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqttlab.cli.openmetrics_marks import Marks
from mqttlab.errors import UsageError
from mqttlab.foreign import visible

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

PORT = 9464
"""OpenTelemetry's, of programs that Prometheus asks."""
NS_PER_S = 1e9
PHASES = ("setup", "connect", "warm_up", "measurement", "cool_down", "finalise")
# Of a tick: its field, the metric without its prefix, what it means. Counters begin anew with each run.
COUNTERS = (("offered", "messages_offered", "Messages due so far, warm-up included."),
            ("sent", "messages_sent", "Messages handed to sessions so far."),
            ("expected", "deliveries_expected", "Deliveries that these should cause."),
            ("delivered", "deliveries", "Deliveries so far."),
            ("disconnects", "disconnects", "Connections lost so far."))
GROUP_COUNTERS = (("offered", "group_messages_offered", "Messages that the group's clients were due to publish."),
                  ("sent", "group_messages_sent", "Messages that their sessions have taken."),
                  ("delivered", "group_deliveries", "Deliveries to the group's clients, repetitions not counted."))
LINK_COUNTERS = (("frames", "link_frames", "Frames that arrive at the link's end."),
                 ("bytes", "link_bytes", "Their bytes; of a radio channel all on the air."))
# With what the engine's number is divided by: Prometheus counts bytes.
LINK_GAUGES = (("rate_bit_s", "link_bytes_per_second", "Bytes carried in a second of run time.", 8),
               ("queue_frames", "link_queue_frames", "Frames that wait or are being sent.", 1),
               ("queue_bytes", "link_queue_bytes", "Their bytes.", 1))


class Watched:
    """The run that goes on, as its progress lines tell it; a collector of ``prometheus_client``."""

    def __init__(self) -> None:
        self._run: dict[str, str] = {}
        self._phase: str | None = None
        self._tick: dict[str, Any] = {}
        self._verdict: str | None = None
        self._marks: Marks | None = None

    def begin(self, name: str, backend: str, run: str, plan: Mapping[str, Any]) -> None:
        """Another run begins."""
        self._run = {"scenario": visible(name), "backend": backend, "run": run}
        self._phase, self._tick, self._verdict = "setup", {}, None
        self._marks = Marks(plan)

    def observe(self, line: dict[str, Any]) -> None:
        """Take a progress line."""
        if self._marks is not None:
            self._marks.observe(line)
        if line.get("event") == "phase":
            self._phase = line["phase"]
        elif line.get("event") == "tick":
            self._tick = line
        elif line.get("event") == "done":
            self._phase, self._verdict = None, line["verdict"]

    def collect(self) -> Iterator[Metric]:
        """What is known now: families of metrics."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, StateSetMetricFamily

        if not self._run:
            return
        yield InfoMetricFamily("mqttlab_run", "The run: its scenario, backend and recording.", self._run)
        yield StateSetMetricFamily("mqttlab_phase", "What the run does.",
                                   {phase: phase == self._phase for phase in PHASES})
        if self._verdict is not None:
            yield StateSetMetricFamily("mqttlab_verdict", "How the run ended.", {
                verdict: verdict == self._verdict for verdict in ("complete", "incomplete", "failed")})
        if self._marks is not None:
            yield from self._marks.collect()
        if tick := self._tick:
            yield GaugeMetricFamily("mqttlab_run_time_seconds", "Time of the run.", tick["at_ns"] / NS_PER_S)
            yield GaugeMetricFamily("mqttlab_clients_connected", "Clients connected now.", tick["connected"])
            yield from _counters([(tick, [])], COUNTERS, [])
            yield GaugeMetricFamily("mqttlab_deliveries_outstanding", "Deliveries that are expected so far and have "
                                    "not come: under way, waiting, or lost.", _outstanding(tick))
            yield from self._times(tick)
            yield from self._parts(tick)

    def _times(self, tick: dict[str, Any]) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        latency = GaugeMetricFamily("mqttlab_latency_seconds", "Latency of the last seconds' deliveries.",
                                    labels=["percentile"])
        recent = tick.get("latency") or {}
        for percentile in ("50", "90", "99"):
            if (found := recent.get(f"p{percentile}_ns")) is not None:
                latency.add_metric([percentile], found / NS_PER_S)
        yield latency
        late = GaugeMetricFamily("mqttlab_lateness_seconds", "How late the instrument itself was since the last line, "
                                 "99th percentile; live only.", labels=["of"])
        for of in ("sender", "emulator"):
            if tick.get(f"{of}_lateness_p99_ns") is not None:
                late.add_metric([of], tick[f"{of}_lateness_p99_ns"] / NS_PER_S)
        yield late
        if tick.get("speed") is not None:
            yield GaugeMetricFamily("mqttlab_simulation_speed", "Simulated seconds in a second.", tick["speed"])

    def _parts(self, tick: dict[str, Any]) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        yield from _counters([(row, [visible(row["group"])]) for row in tick.get("groups") or ()], GROUP_COUNTERS,
                             ["group"])
        links = [(row, [visible(row["link"])]) for row in tick.get("links") or ()]
        yield from _counters(links, LINK_COUNTERS, ["link"])
        for field, name, words, unit in LINK_GAUGES:
            gauge = GaugeMetricFamily(f"mqttlab_{name}", words, labels=["link"])
            for row, labels in links:
                gauge.add_metric(labels, row[field] / unit)
            yield gauge
        drops = CounterMetricFamily("mqttlab_link_drops", "Dropped frames by cause.", labels=["link", "cause"])
        for row, labels in links:
            for cause, count in row["drops"].items():
                drops.add_metric([*labels, cause], count)
        yield drops
        processor = CounterMetricFamily("mqttlab_server_cpu_seconds", "Processor time of a server.", labels=["server"])
        memory = GaugeMetricFamily("mqttlab_server_resident_bytes", "Memory of a server.", labels=["server"])
        for row in tick.get("servers") or ():
            processor.add_metric([visible(row["server"])], row["cpu_s"])
            memory.add_metric([visible(row["server"])], row["rss_bytes"])
        yield processor
        yield memory


def _outstanding(tick: Mapping[str, Any]) -> int:
    """The engine counts both in turn: a delivery may be there before what is expected is counted."""
    return max(0, int(tick["expected"]) - int(tick["delivered"]))


def _counters(
    rows: Iterable[tuple[dict[str, Any], list[str]]], named: Iterable[tuple[str, str, str]], labels: list[str],
) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    rows = list(rows)
    for field, name, words in named:
        counter = CounterMetricFamily(f"mqttlab_{name}", words, labels=labels)
        for row, values in rows:
            counter.add_metric(values, row[field])
        yield counter


@contextlib.contextmanager
def served(text: str | None) -> Iterator[tuple[Watched | None, str]]:
    """Serve metrics at an address meanwhile; yields who is to be told of runs, and the URL. Nothing without one.

    Raises:
        AddressError: it is no address.
        UsageError: nothing can listen there.
    """
    if text is None:
        yield None, ""
        return
    from prometheus_client import CollectorRegistry, make_wsgi_app

    from mqttlab.cli.metrics_port import MetricsPort
    from mqttlab.dashboard.address import Listen

    listen = Listen.read(text, option="--metrics", default=PORT)
    watched, registry = Watched(), CollectorRegistry()
    registry.register(watched)
    try:
        server = MetricsPort(listen.host, listen.port, make_wsgi_app(registry))
    except OSError as error:
        raise UsageError(f"--metrics {text}: {error.strerror or error}; name another port, or 0 for any") from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield watched, f"http://{listen.shown}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
