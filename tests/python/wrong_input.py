"""Wrong and unusual input, and what mqttlab says of it: the cases behind docs/reference/messages.md.

``python tests/python/wrong_input.py`` writes the page; a test holds it to what mqttlab says. Who changes a message sees
here how it reads.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

from click.testing import CliRunner

from mqttlab.cli import main
from mqttlab.scenario import ScenarioError, parse
from mqttlab.scenario.load import warnings_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "messages.md"

GOOD = """
name = "good"

[phases]
warm_up = "1 s"
duration = "5 s"

[broker]
kind = "mosquitto"
host = "broker"

[hosts.field]
tcp = { profile = "linux" }

[[networks]]
between = ["field", "broker"]
up = { rate = "250 kbit/s", delay = "50 ms" }
down = { rate = "250 kbit/s", delay = "50 ms" }
link = "shared"

[[groups]]
name = "publishers"
host = "field"
count = 3
publish = { topic = "a/{client}", qos = 1, payload = "200 B", interval = "1 s" }

[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "a/+", qos = 1 }]
"""

# What is written in the place of which part of the scenario above.
NAME = 'name = "good"'
WARM_UP = 'warm_up = "1 s"'
DURATION = 'duration = "5 s"'
BROKER = 'kind = "mosquitto"'
BROKER_HOST = 'host = "broker"'
HOST = "[hosts.field]"
TCP = 'profile = "linux"'
BETWEEN = 'between = ["field", "broker"]'
UP = 'up = { rate = "250 kbit/s", delay = "50 ms" }'
LINKS = UP + '\ndown = { rate = "250 kbit/s", delay = "50 ms" }'
NETWORK = BETWEEN + "\n" + LINKS
COUNT = "count = 3"
PUBLISH = 'publish = { topic = "a/{client}", qos = 1, payload = "200 B", interval = "1 s" }'
ONE = '{ topic = "a/{client}", payload = "200 B", interval = "1 s" }'
TOPIC = 'topic = "a/{client}"'
QOS = "qos = 1, payload"
PAYLOAD = 'payload = "200 B"'
INTERVAL = 'interval = "1 s"'
SUBSCRIBE = 'subscribe = [{ filter = "a/+", qos = 1 }]'
FILTER = 'filter = "a/+"'
SUBSCRIBER = 'name = "subscribers"'

SCENARIOS: dict[str, list[tuple[str, str]]] = {
    "Files and fields": [
        (NAME, "name = good"), (NAME, ""), (NAME, "name = 5"), (NAME, 'name = ""'), (NAME, 'name = "good bad"'),
        (NAME, 'name = "../good"'), (NAME, f'name = "{"x" * 41}"'), (NAME, 'nmae = "good"'),
        (NAME, 'name = "good"\nname = "again"'), (NAME, 'name = "good"\nbackend = "life"'),
        (NAME, 'name = "good"\nbackend = "ns-3"'), (NAME, 'name = "good"\nbackend = true'),
        (NAME, 'name = "good"\nseed = -1'), (NAME, 'name = "good"\nseed = 1.5'), (NAME, 'name = "good"\nseed = "one"'),
        (NAME, 'name = "good"\nseed = 9223372036854775808'), (NAME, 'name = "good"\nrepetitions = 0'),
        (NAME, 'name = "good"\nrepetitions = 5000'), (NAME, 'name = "good"\nrepetitions = true'),
        (NAME, 'name = "good"\nnetwork = "direkt"'), (BROKER_HOST, 'host = "broker"\nversion = 2'),
        (NAME, 'name = "good"\ndescription = 7'), (NAME, 'name = "good"\nlive = { workers = 0 }'),
        (NAME, 'name = "good"\nlive = { workers = 100 }'), (NAME, 'name = "good"\nlive = { port = "tap" }'),
        (NAME, 'name = "good"\nlive = { real_time = "yes please" }'), (NAME, 'name = "good"\nrecordings = {}'),
        (NAME, 'name = "good"\nrecording = { detail = "packets" }'),
        (NAME, 'name = "good"\nrecording = { detail = "full", packets = true }'),
        (NAME, 'name = "good"\nrecording = { detail = "messages", pcapng = true }'),
        (NAME, 'name = "good"\nrecording = { detail = "summary", pcapng = true }'),
        (NAME, 'name = "good"\nrecording = { detail = "summary", payloads = true }'),
        (NAME, 'name = "good"\nrecording = { resource_interval = "0 s" }'),
        (SUBSCRIBER, 'name = "publishers"'), (SUBSCRIBER, ""), (NAME, 'name = "good'),
        *((NAME, f'name = "good"\n{line}') for line in (
            'latency = "5 ms"', 'delay = "5 ms"', 'bandwidth = "1 Mbit/s"', 'rate = "5 /s"', 'loss = "2 %"',
            'interval = "5 s"', 'payload = "5 B"', "clients = 20", 'topic = "a"', 'host = "field"', "simulate = true")),
        (COUNT, 'count = 3\ndelay = "5 ms"'), (COUNT, 'count = 3\ntopic = "a"'),
    ],
    "Quantities and their units": [
        (DURATION, "duration = 5"), (DURATION, 'duration = "5"'), (DURATION, "duration = 5.5"),
        (DURATION, 'duration = "5 kg"'), (DURATION, 'duration = "5 S"'), (DURATION, 'duration = "5 sec"'),
        (DURATION, 'duration = "5 minutes"'), (DURATION, 'duration = "five seconds"'), (DURATION, 'duration = ""'),
        (DURATION, "duration = true"), (DURATION, 'duration = ["5 s"]'), (DURATION, 'duration = "1,5 s"'),
        (DURATION, 'duration = "5 s 10 ms"'), (DURATION, "duration = 10:00:00"),
        (UP, "up = { rate = 250000 }"), (UP, 'up = { rate = "250" }'), (UP, 'up = { rate = "250 kb" }'),
        (UP, 'up = { rate = "250 kbps" }'), (UP, 'up = { rate = "250 KBIT/S" }'), (UP, 'up = { rate = "0 bit/s" }'),
        (UP, 'up = { rate = "900 Gbit/s" }'), (UP, 'up = { rate = "-1 Mbit/s" }'), (UP, "up = { delay = 50 }"),
        (UP, 'up = { loss = "1" }'), (UP, "up = { loss = 1 }"), (UP, "up = { loss = 0.01 }"),
        (UP, 'up = { loss = "0.01" }'), (UP, "up = { loss = 0 }"), (UP, 'up = { loss = "150 %" }'),
        (UP, 'up = { loss = "-1 %" }'), (UP, 'up = { loss = "often" }'), (UP, 'up = { loss = "3/2" }'),
        (UP, 'up = { loss = "1/0" }'), (UP, 'up = { corrupt = 0.5 }'), (UP, 'up = { duplicate = "2" }'),
        (UP, 'up = { reorder = { probability = 0.25 } }'), (PAYLOAD, "payload = 200"), (PAYLOAD, 'payload = "200"'),
        (PAYLOAD, 'payload = { size = "1.5 B" }'), (PAYLOAD, 'payload = { size = "1 GB" }'),
        (NAME, 'name = "good"\nmtu = 1500'), (NAME, 'name = "good"\nmtu = "1500"'),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { stop = { relative_accuracy = 0.01 } }'),
        (DURATION, f'duration = "{"9" * 200} s"'), (DURATION, 'duration = "5 s'), ("[[groups]]", "[groups]"),
    ],
    "Phases": [
        (DURATION, ""), (DURATION, 'duratoin = "5 s"'), (DURATION, 'duration = "0 s"'), (DURATION, 'duration = "-5 s"'),
        (DURATION, 'duration = "1e30 s"'), (DURATION, 'duration = "1000000 h"'), (WARM_UP, 'warm_up = "876000 h"'),
        (WARM_UP, 'warm_up = "soon"'), (WARM_UP, 'warm_up = "1 s"\nconnect_timeout = "0 s"'),
        (WARM_UP, 'warm_up = "1 s"\ncool_down = -1'),
        *((DURATION, f"{line}") for line in (
            'duration = "5 s"\nstages = [{ name = "quiet", for = "5 s" }]', "stages = []", 'stages = "5 s"',
            'stages = [{ name = "quiet", for = "0 s" }]', 'stages = [{ name = "quiet", for = 5 }]',
            'stages = [{ name = "quiet" }]', 'stages = [{ for = "5 s" }]',
            'stages = [{ name = "quiet", duration = "5 s" }]', 'stages = [{ name = "very quiet", for = "5 s" }]',
            'stages = [{ name = "quiet", for = "5 s" }, { name = "quiet", for = "5 s" }]',
            'stages = [{ name = "quiet", for = "5 s", measured = false }]',
            'stages = [{ name = "first", for = "5 s", measured = false }, { name = "quiet", for = "5 s" }]',
            'stages = [{ name = "quiet", for = "5 s" }, { name = "last", for = "5 s", measured = false }]',
            'stages = [{ name = "quiet", for = "5 s", measured = "no" }]',
            'stages = [{ name = "quiet", for = "5000 h" }, { name = "busy", for = "5000 h" }]',
            *(f'{stages}\n[[thresholds]]\nmetric = "{metric}"\nbelow = 1\nstage = {stage}'
              for stages, metric, stage in (
                  ('stages = [{ name = "quiet", for = "3 s" }, { name = "busy", for = "2 s" }]', "latency_ms_p99",
                   '"bussy"'),
                  ('duration = "5 s"', "latency_ms_p99", '"busy"'),
                  ('stages = [{ name = "quiet", for = "5 s" }]', "latency_ms_p99", "1"),
                  ('stages = [{ name = "quiet", for = "5 s" }]', "latency_ms_p99", '"quiet"\nabort = true'))),
            'stages = [{ name = "quiet", for = "5 s" }]\n[sim]\ndetect_transient = true',
            'stages = [{ name = "quiet", for = "5 s" }]\n[sim]\nstop = { messages_per_subscriber = 5 }',
            *(f'stages = [{{ name = "quiet", for = "3 s" }}, {{ name = "busy", for = "2 s" }}]\n[[events]]\n{event}\n'
              'server = "broker"\ndo = "kill"' for event in (
                  'when = "bussy"', 'when = "stage busy"', 'name = "busy"\nwhen = "busy"', 'when = "end of busy"',
                  'when = "busy"\nat = "2 s"')))),
    ],
    "Broker": [
        (BROKER, 'kind = "mosquito"'), (BROKER, 'kind = "hivemq"'), (BROKER, 'kind = "external"'),
        (BROKER, 'address = "192.0.2.1"'), (BROKER, 'kind = "external"\naddress = "broker.example"'),
        (BROKER, "port = 70000"), (BROKER, "port = 0"), (BROKER, 'port = "1883"'), (BROKER, "max_inflight = -1"),
        (BROKER, "max_queued = 5000000000"), (BROKER, 'nagle = "no"'), (BROKER, "service = { per_packet = 20 }"),
        (BROKER, 'service = { jitter = "200 %" }'), (BROKER_HOST, 'host = ""'),
        (NAME, 'name = "good"\nnetwork = "external"'),
        (NAME, 'name = "good"\nlive = { parts = 2 }'), (NAME, 'name = "good"\nlive = { parts = 0 }'),
        (BROKER_HOST, 'host = "broker"\nspeed = 3'),
    ],
    "Hosts and TCP": [
        (HOST, "[hosts.feild]"), (HOST, '[hosts."a b"]'), (HOST, "[hosts.field]\ncount = 0"),
        (HOST, "[hosts.field]\ncount = 1000000"), (HOST, "[hosts.field]\ncount = 100000"),
        (HOST, "[hosts.broker]\ncount = 2\n[hosts.field]"), (HOST, "[hosts.field]\nforwards = true"),
        (HOST, "[hosts.router]\nforwards = true\n[hosts.field]"),
        *((HOST, f"[hosts.broker]\nlimits = {limits}\n[hosts.field]") for limits in (
            "{}", "true", '{ processor = 0.25 }', '{ processor = "0 %" }', '{ processor = "200 %" }',
            '{ processor = "0.1 %" }', '{ memory = 64 }', '{ memory = "10 kB" }', '{ memory = "2 TB" }',
            '{ disk_rate = "1 MB" }', '{ disk_rate = "10 B/s" }', '{ cpu = "25 %" }',
            '"raspberry-pi-5"', '"raspberry-pi-4"', '"esp32"', '{ profile = "raspberry-pi-5" }',
            '{ profile = "esp8266" }', '{ profile = "esp32" }')),
        (HOST, '[hosts.field]\nlimits = { memory = "64 MB" }'),
        (HOST, '[hosts.field]\ntcp = "netbsd"\n[hosts.other]'), (TCP, 'profile = "netbsd-2005", ecn = true'),
        (COUNT, 'count = 3\nidentifier = "x"'), (COUNT, 'count = 3\nkeepalive = "10 s"'),
        (TCP, 'profile = "linus"'), (TCP, 'profile = "windows"'),
        (TCP, 'mss = "20 B"'), (TCP, "mss = 1460"), (TCP, 'mss = "70 kB"'), (TCP, 'rto_min = "0 s"'),
        (TCP, 'rto_min = "2 h"'), (TCP, 'rto_min = "3 s", rto_max = "1 s"'), (TCP, "initial_window = 0"),
        (TCP, "initial_window = 1000"), (TCP, 'congestion_control = "vegas"'), (TCP, 'congestion_control = "cubik"'),
        (TCP, 'send_buffer = "1 B"'), (TCP, 'receive_buffer = "1 GiB"'), (TCP, 'sack = "on"'),
        (TCP, "syn_retries = 200"), (TCP, 'delayed_ack_max = "200"'), (TCP, "nodelay = true"),
    ],
    "Networks": [
        (BETWEEN, ""), (BETWEEN, 'between = ["field"]'), (BETWEEN, 'between = ["field", "broker", "x"]'),
        (BETWEEN, 'between = "field"'), (BETWEEN, 'between = ["feld", "broker"]'),
        (BETWEEN, 'between = ["field", "brokr"]'), (BETWEEN, 'between = ["broker", "broker"]'),
        (BETWEEN, 'between = ["field", "broker"]\nmodel = "satcom"\nplacement = "egress-at-broker"'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "lorawan"'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "dsl"\nup = { distribution = "normal" }'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "lte"\nup = { distribution = "constant", jitter = "1 ms" }'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "dsl"\nshared = false'),
        ('link = "shared"', 'link = "own"'),
        ('link = "shared"', 'link = "shared"\nnat = 300'),
        (HOST, '[[networks]]\nbetween = ["x", "broker"]\nlink = "each"\nmodel = "dsl"\n[hosts.field]'),
        (UP, 'up = { latency = "5 ms" }'), (UP, 'up = { rate = "10 Mbps" }'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "satcomm"'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "6g"'), (NETWORK, 'between = ["field", "broker"]'),
        (NETWORK, 'between = ["field", "broker"]\nmodel = "satcom"\nplacement = "broker"'),
        (BETWEEN, 'between = ["field", "broker"]\nplacement = "both"'),
        (NETWORK, NETWORK + "\n[[networks]]\n" + NETWORK), (NAME, 'name = "good"\nnetwork = "direct"'),
        (UP, 'up = { delay = "1e300 ms" }'), (UP, 'up = { delay = "2 h" }'), (UP, 'up = { delay = "-1 ms" }'),
        (UP, 'up = { delay = "5 ms", distribution = "normal" }'),
        (UP, 'up = { delay = "5 ms", jitter = "1 ms", distribution = "constant" }'),
        (UP, 'up = { delay = "5 ms", jitter = "1 ms", distribution = "gauss" }'),
        (UP, 'up = { loss = "1 %", burst_loss = { good_to_bad = "1 %", bad_to_good = "50 %" } }'),
        (UP, 'up = { burst_loss = { good_to_bad = "1 %" } }'), (UP, 'up = { loss_at = "start" }'),
        (UP, 'up = { queue = "many" }'), (UP, "up = { queue = 100 }"), (UP, 'up = { queue = "0 packets" }'),
        (UP, 'up = { queue = "10 B" }'), (UP, 'up = { queue = "1400 B" }'),
        (UP, 'up = { queue = "100 ms" }'), (UP, 'up = { queue = "1 BDP" }'), (UP, 'up = { queue = "0 s" }'),
        (UP, 'up = { rate = "250 kbit/s", queue = "10 ms" }'), (UP, 'up = { rate = "250 kbit/s", queue = "0.1 BDP" }'),
        (UP, 'up = { rate = "250 kbit/s", queue = "1 bdp" }'), (UP, 'up = { rate = "250 kbit/s", queue = "2 h" }'),
        (UP, 'up = { rate = "250 kbit/s", queue = { bdp = 1 } }'),
        (UP, UP + '\nnat = "5"'), (UP, UP + '\nnat = { timeout = "0 s" }'), (UP, UP + '\nnat = { forgotten = "drop" }'),
        (UP, UP + '\nnat = { timeout = "5 min", forgotten = "reset" }'), (UP, 'nat = "5 min"'),
        (UP, 'up = { discipline = "red" }'), (UP, 'up = { discipline = "fq_codel" }'),
        (UP, 'up = { discipline = "codel" }'), (UP, 'up = { discipline = true }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "codel", flows = 16 } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { target = "5 ms" } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "tail-drop", target = "5 ms" } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "codel", target = "200 ms" } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "fq-codel", quantum = "1 B" } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = "fq-codel", queue_counts_delay_line = true }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "tail-drop", ecn = true } }'),
        (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "codel", ecn = "yes" } }'),
        (UP, 'up = { rate = "250 kbit/s", queue = { bytes = "64 kB", ecn = true } }'),
        (TCP, 'profile = "linux", ecn = 1'),
        (UP, 'up = { policer = "1 Mbit/s" }'), (UP, 'up = { policer = { rate = "1 Mbit/s" } }'),
        (UP, 'up = { policer = { rate = "1 Mbit/s", burst = "1 kB" } }'),
        (UP, 'up = { policer = { rate = "0 bit/s", burst = "15 kB" } }'),
        (UP, 'up = { policer = { rate = "1 Mbit/s", burst = "15 kB", peak_rate = "2 Mbit/s" } }'),
        (UP, 'up = { queue = { bytes = "100 B" } }'), (UP, 'up = { reorder = { probability = "1 %", gap = 0 } }'),
        (UP, 'up = { overhead = "1 MB" }'), (UP, 'up = { bandwidth = "1 Mbit/s" }'), (UP, 'up = "1 Mbit/s"'),
        (UP, 'rate = "1 Mbit/s"'), (NAME, 'name = "good"\nduration = "5 s"'), (NAME, 'name = "good"\nqos = 1'),
        (NAME, 'name = "good"\nmtu = "100 B"'), (NAME, 'name = "good"\nmtu = "100 kB"'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = {}'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { standard = "ax" }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { path_loss_exponent = "three" }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { area = "150 m" }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { transmit_power = "20 dB" }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { mobility = { speed = ["2 m/s", "1 m/s"] } }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { positions = [["1 m", "2 m"]] }'),
        (NAME, 'name = "good"\nbackend = "sim"\nradio = { access_point = true }'),
        *((NAME, f'name = "good"\nbackend = "sim"\nradio = {{ {fields} }}') for fields in (
            'shadowing = "6 dB"', 'shadowing = { sigma = "6 dBm" }', 'shadowing = { sigma = "60 dB" }',
            'shadowing = { sigma = "6 dB", decorrelation = "5 mm" }',
            'shadowing = { sigma = "6 dB", decorrelation = "20 m" }', 'fading = "rayleigh"',
            'fading = { kind = "rice", coherence = "50 ms" }', 'fading = { kind = "rayleigh" }',
            'fading = { kind = "nakagami", coherence = "50 ms" }',
            'fading = { kind = "rayleigh", m = 1, coherence = "50 ms" }',
            'fading = { kind = "nakagami", m = 0.2, coherence = "50 ms" }',
            'fading = { kind = "rayleigh", coherence = "1 ns" }', 'errors = "ber"',
            'errors = "snr", snir_data = "10 dB"', 'errors = "snr", ack_rate = "3 Mbit/s"')),
        *((NAME, f'name = "good"\nbackend = "sim"\nradio = {{ interferers = [{{ name = "oven", {fields} }}] }}')
          for fields in (
            'position = ["1 m", "2 m"]', 'position = "1 m", power = "20 dBm"',
            'position = ["1 m", "2 m"], power = "100 mW"', 'position = ["1 m", "2 m"], power = "20 dBm", on = "8 ms"',
            'position = ["1 m", "2 m"], power = "20 dBm", turns = "exponential"',
            'position = ["1 m", "2 m"], power = "20 dBm", on = "10 us", off = "1 ms"',
            'position = ["1 m", "2 m"], power = "20 dBm", starts = "later"',
            'position = ["1 m", "2 m"], power = "70 dBm"',
            'position = ["1 m", "2 m"], power = "20 dBm" }, { name = "oven", position = ["1 m", "2 m"], '
            'power = "10 dBm"')),
        (NAME, 'name = "good"\ntrunk = { up = {} }'),
    ],
    "Traces": [
        *((UP, f"up = {{ trace = {file} }}") for file in (
            '"starlnk"', '"drive"', '"traces/drve.csv"', '"good.toml"', '"binary"', '"."', '""', "5")),
        *((UP, f'up = {{ trace = "traces/{file}" }}') for file in (
            "headless.csv", "unknown.csv", "unit.csv", "semicolons.csv", "times.csv", "order.csv", "cells.csv",
            "word.csv", "empty.csv", "negative.csv", "fast.csv", "bare.csv", "lossy.csv", "stopped.csv", "rowless.csv",
            "fraction.trace", "back.trace", "zero.trace", "nothing.trace")),
        (UP, 'up = { trace = "starlink", rate = "1 Mbit/s" }'),
        (UP, 'up = { trace = "starlink", burst_loss = { good_to_bad = "1 %", bad_to_good = "50 %" } }'),
        (UP, 'up = { trace = "starlink", trace_end = "stop" }'), (UP, 'up = { trace_end = "hold" }'),
        (UP, 'up = { trace = "traces/good.trace", trace_end = "hold" }'),
        (NETWORK, BETWEEN + '\nmodel = "satcom"\ntrace = "lte-drive"\nplacement = "split"'),
        (NETWORK, BETWEEN + '\ntrace = "lte drive"'),
        (NETWORK, BETWEEN + '\ntrace = "lte-drive"\nup = { delay = "5 ms" }'),
        (LINKS, 'trace = "lte-drive"\n\n[[events]]\nat = "1 s"\nnetwork = "field"\nrate = "1 Mbit/s"\n'
                '[[networks]]\nbetween = ["x", "broker"]\n' + UP),
        (SUBSCRIBE, f'{SUBSCRIBE}\n\n[[events]]\nat = "1 s"\nnetwork = "field"\ntrace = "starlink"'),
    ],
    "Events": [
        *((SUBSCRIBE, f"{SUBSCRIBE}\n\n[[events]]\n{lines}") for lines in (
            "", 'at = 30\nnetwork = "field"\ndown = true', 'at = "1 s"', 'network = "field"\ndown = true',
            'at = "-2 s"\nnetwork = "field"\ndown = true', 'at = "5 s"\nnetwork = "field"\ndown = true',
            'at = "1 s"\nfor = "1 h"\nnetwork = "field"\ndown = true',
            'at = "1 s"\nfor = "0 s"\nnetwork = "field"\ndown = true',
            'at = "1 s"\nduration = "2 s"\nnetwork = "field"\ndown = true',
            'at = "1 s"\ncount = 3\nnetwork = "field"\ndown = true',
            'every = "1 s"\ncount = 9\nnetwork = "field"\ndown = true',
            'every = "1 s"\ncount = 0\nnetwork = "field"\ndown = true',
            'every = "1 s"\nuntil = "500 ms"\nnetwork = "field"\ndown = true',
            'every = "1 s"\nuntil = "3 s"\ncount = 3\nnetwork = "field"\ndown = true',
            'every = "1 s"\nfor = "2 s"\nnetwork = "field"\ndown = true',
            'every = "1 us"\nnetwork = "field"\ndown = true',
            'every = "1 h"\nnetwork = "field"\ndown = true',
            'at = "1 s"\nnetwork = "feild"\ndown = true', 'at = "1 s"\nnetwork = "trunk"\ndown = true',
            'at = "1 s"\nnetwork = "field"', 'at = "1 s"\nnetwork = "field"\ndown = "yes"',
            'at = "1 s"\nnetwork = "field"\ndown = true\ndelay = "1 s"',
            'at = "1 s"\nnetwork = "field"\ndown = false\nfor = "1 s"',
            'at = "1 s"\nnetwork = "field"\ndown = true\nqueued = "flush"',
            'at = "1 s"\nnetwork = "field"\ndown = true\nqueue = "drop"',
            'at = "1 s"\nnetwork = "field"\nrate = "1 Mbit/s"\nqueued = "drop"',
            'at = "1 s"\nnetwork = "field"\ndirection = "uplink"\ndown = true',
            'at = "1 s"\nnetwork = "field"\nlatency = "1 s"', 'at = "1 s"\nnetwork = "field"\nloss = 5',
            'at = "1 s"\nnetwork = "field"\ndistribution = "normal"',
            'at = "1 s"\nnetwork = "field"\nqueue = "100 B"', 'at = "1 s"\nnetwork = "field"\nqueue = "1 ms"',
            'at = "1 s"\nnetwork = "field"\nqueue = "0.1 BDP"',
            'at = "1 s"\nnetwork = "field"\ndiscipline = "pfifo"', 'at = "1 s"\nnetwork = "field"\ndo = "stop"',
            'at = "1 s"\nserver = "broker"', 'at = "1 s"\nserver = "brocker"\ndo = "stop"',
            'at = "1 s"\nserver = "broker"\ndo = "restart"', 'at = "1 s"\nserver = "broker"\ndo = "unpause"',
            'at = "1 s"\nserver = "broker"\ndo = "vanish"', 'at = "1 s"\nserver = "broker"\ndo = "start"\nfor = "1 s"',
            'at = "1 s"\nserver = "broker"\ndo = "kill"\nrate = "1 Mbit/s"',
            'at = "1 s"\nserver = "broker"\ndo = "kill"\npersistence = true',
            'at = "1 s"\nserver = "broker"\ngroup = "publishers"\ndo = "stop"',
            'at = "1 s"\ngroup = "publishers"', 'at = "1 s"\ngroup = "publisher"\ndo = "vanish"',
            'at = "1 s"\ngroup = "publishers"\ndo = "kill"', 'at = "1 s"\ngroup = "publishers"\ndo = "disapear"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nclient = 3',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nclient = 1\nshare = "50 %"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nshare = "1 %"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nshare = "0 %"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nshare = 0.5',
            'at = "1 s"\ngroup = "publishers"\ndo = "return"\nfor = "1 s"',
            'at = "1 s"\ngroup = "publishers"\ndo = "subscribe"',
            'at = "1 s"\ngroup = "publishers"\ndo = "subscribe"\nfilter = "a/#/b"',
            'at = "1 s"\ngroup = "publishers"\ndo = "unsubscribe"\nfilter = "a/+"\nqos = 1',
            'at = "1 s"\ngroup = "publishers"\ndo = "unsubscribe"\nfilter = "a/+"',
            'at = "1 s"\ngroup = "subscribers"\ndo = "unsubscribe"\nfilter = "a/#"',
            'at = "1 s"\ngroup = "subscribers"\ndo = "subscribe"\nfilter = "a/+"\nfor = "1 s"',
            'at = "1 s"\ngroup = "subscribers"\ndo = "subscribe"\nfilter = "$share/g/a/+"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nfilter = "a/+"',
            'at = "1 s"\ngroup = "publishers"\ndo = "subscribe"\nfilter = "a/+"\npublication = 0',
            'when = "rain"\nnetwork = "field"\ndown = true',
            'when = "rian"\nnetwork = "field"\ndown = true\n[[events]]\nname = "rain"\nat = "1 s"\nnetwork = "field"\n'
            'delay = "1 s"',
            'when = "end of rain"\nserver = "broker"\ndo = "kill"\n[[events]]\nname = "rain"\nat = "1 s"\n'
            'network = "field"\ndelay = "1 s"',
            'when = "b"\nname = "a"\nserver = "broker"\ndo = "kill"\n[[events]]\nname = "b"\nwhen = "a"\n'
            'server = "broker"\ndo = "start"',
            'when = "rain"\nevery = "1 s"\nserver = "broker"\ndo = "kill"\n[[events]]\nname = "rain"\nevery = "1 s"\n'
            'network = "field"\ndelay = "1 s"',
            'when = "rain"\nat = "9 s"\nserver = "broker"\ndo = "kill"\n[[events]]\nname = "rain"\nat = "1 s"\n'
            'network = "field"\ndelay = "1 s"',
            'at = "1 s"\ngroup = "publishers"\nrate = "10 /s"', 'at = "1 s"\ngroup = "publishers"\ndo = "pause"',
            'at = "1 s"\ngroup = "publishers"\ndo = "resume-publishing"',
            'at = "1 s"\ngroup = "publishers"\ndo = "burst"',
            'at = "1 s"\ngroup = "publishers"\ndo = "burst"\nmessages = 0',
            'at = "1 s"\ngroup = "publishers"\ndo = "burst"\nmessages = 9\nfor = "1 s"',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\nmessages = 9',
            'at = "1 s"\ngroup = "publishers"\ndo = "vanish"\npublish = { qos = 0 }',
            'at = "1 s"\ngroup = "publishers"\npublish = {}', 'at = "1 s"\ngroup = "publishers"\npublish = { qos = 3 }',
            'at = "1 s"\ngroup = "publishers"\npublish = { rate = 100 }',
            'at = "1 s"\ngroup = "publishers"\npublish = { rate = "1 Mbit/s" }',
            'at = "1 s"\ngroup = "publishers"\npublish = { rate = "1 /s", interval = "1 s" }',
            'at = "1 s"\ngroup = "publishers"\npublish = { payload = 100 }',
            'at = "1 s"\ngroup = "publishers"\npublish = { payload = { kind = "file", path = "no-such-file" } }',
            'at = "1 s"\ngroup = "publishers"\npublish = { topic = "b" }',
            'at = "1 s"\ngroup = "publishers"\npublish = { qos = 0 }\npublication = 1',
            'at = "1 s"\ngroup = "publishers"\npublish = { qos = 0 }\npublication = "a/{cleint}"',
            'at = "1 s"\ngroup = "subscribers"\npublish = { qos = 0 }',
            'at = "1 s"\nserver = "broker"\npublish = { qos = 0 }')),
        *((PUBLISH, 'publish = { topic = "a", payload = "20 B", arrival = "back-to-back" }\n\n[[events]]\nat = "1 s"\n'
                    f'group = "publishers"\n{lines}')
          for lines in ('publish = { rate = "10 /s" }', 'do = "burst"\nmessages = 3')),
        *((SUBSCRIBE, f'{SUBSCRIBE}\n\n[[events]]\nat = "1 s"\n{lines}') for lines in (
            'interferer = "oven"\ndo = "switch-on"', 'station = "field"\ndo = "radio-off"',
            'interferer = "oven"\ndo = "kill"', 'station = "field"\ndo = "silence"', 'station = "field"',
            'interferer = "oven"\nposition = ["1 m", "2 m"]', 'server = "broker"\ndo = "radio-off"',
            'station = "field"\ndo = "radio-on"\nfor = "1 s"',
            'station = "field"\ndo = "radio-off"\nposition = ["1 m", "2 m"]', 'station = "field"\nposition = "1 m"')),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { stop = { deliveries_outstanding = 9 } }\n[[events]]\n'
               'at = "1 s"\ngroup = "subscribers"\ndo = "unsubscribe"\nfilter = "a/+"'),
        (SUBSCRIBER + '\nhost = "field"', SUBSCRIBER + '\nhost = "broker"\n' + SUBSCRIBE + '\n[[events]]\nat = "1 s"\n'
         'group = "subscribers"\ndo = "vanish"\n[[groups]]\nname = "others"\nhost = "field"'),
        (LINKS, 'down = { rate = "250 kbit/s" }\n\n[[events]]\nat = "1 s"\nnetwork = "field"\ndown = true\n'
                '[[networks]]\nbetween = ["x", "broker"]\n' + UP),
        (LINKS, 'down = { rate = "250 kbit/s" }\n\n[[events]]\nat = "1 s"\nnetwork = "field"\ndirection = "up"\n'
                'delay = "1 s"\n[[networks]]\nbetween = ["x", "broker"]\n' + UP),
        (LINKS, 'model = "wifi"\nplacement = "shared-medium"\n[[events]]\nat = "1 s"\nnetwork = "field"\n'
                'direction = "up"\ndown = true\n[[networks]]\nbetween = ["x", "broker"]\n' + UP),
        (LINKS, LINKS + '\n[[events]]\nat = "1 s"\nnetwork = "broker"\ndown = true\n[[networks]]\n'
                'between = ["x", "broker"]\n' + LINKS),
        (BETWEEN, f'name = "wan"\n{LINKS}\n{BETWEEN}\n[[networks]]\nname = "wan"\nbetween = ["x", "broker"]'),
    ],
    "MQTT": [
        (COUNT, "count = 3\nmqtt = { version = '4' }"), (COUNT, "count = 3\nmqtt = { version = 5 }"),
        (COUNT, "count = 3\nmqtt = { keep_alive = 60 }"), (COUNT, "count = 3\nmqtt = { keep_alive = '0.5 s' }"),
        (COUNT, "count = 3\nmqtt = { keep_alive = '24 h' }"), (COUNT, "count = 3\nmqtt = { session_expiry = '1 ms' }"),
        (COUNT, "count = 3\nmqtt = { clean_session = 1.5 }"), (COUNT, "count = 3\nmqtt = { max_inflight = 0 }"),
        (COUNT, "count = 3\nmqtt = { max_inflight = 70000 }"), (COUNT, "count = 3\nmqtt = { receive_maximum = 0 }"),
        (COUNT, "count = 3\nmqtt = { receive_maximum = 7 }"), (COUNT, "count = 3\nmqtt = { topic_aliases = 5 }"),
        (COUNT, "count = 3\nmqtt = { topic_alias_maximum = 5 }"), (BROKER, "topic_alias_maximum = 70000"),
        (COUNT, "count = 3\nmqtt = { version = '5', topic_aliases = 70000 }"),
        *((QOS, f"{line}, {QOS}") for line in (
            "expiry = '30 s'", "content_type = 'text/plain'", "user_properties = { unit = 'mbar' }",
            "user_properties = [['unit']]",
            "user_properties = [['unit', 1]]", "payload_format = 'utf8'", "response_topic = 'answers/#'",
            "response_topic = 'answers/{topic}'", "response_topic = ''", "correlation_data = '{sequence}'",
            'content_type = "a\\u0000"', "user_property = [['unit', 'mbar']]", "expiry = 30", "expiry = '1500 ms'",
            "expiry = '0 s'")),
        (COUNT, "count = 3\nmqtt = { version = '5', topic_alias = 5 }"),
        *((SUBSCRIBE, f'subscribe = [{{ filter = "a/+", retain_handling = {line} }}]') for line in (
            '"new"', '"nev"', "1", "2", "3")),
        *((SUBSCRIBE, f'subscribe = [{{ filter = "a/+", {line} }}]') for line in (
            "retain_as_published = true", "retain_as_published = 1", "retain_as_publish = true", "no_local = true",
            "no_local = 'yes'", "no_locals = true", "nolocal = true")),
        *((SUBSCRIBE, f"subscribe = [{{ filter = '{pattern}', no_local = true }}]\n{more}") for pattern, more in (
            ("$share/pool/a/+", "mqtt = { version = '5' }"), ("a/+", "mqtt = { version = '5' }\nrelay = {}"),
            ("a/+", "mqtt = { version = '5', duplicate_ids = true }"), ("a/+", "mqtt = { version = '3.1' }"),
            ("a/+", "protocol = 'zeromq'"))),
        (COUNT, "count = 3\nmqtt = { version = '3.1', session_expiry = '1 h' }"),
        (COUNT, "count = 3\nmqtt = { client_id = 'same' }"), (COUNT, "count = 3\nmqtt = { client_id = '' }"),
        (COUNT, "count = 3\nmqtt = { client_id = '{clinet}' }"),
        (COUNT, 'count = 3\nmqtt = { client_id = "a\\u0000{client}" }'),
        *((COUNT, f"count = 3\nchurn = {line}") for line in (
            "'50 /s'", "{}", "{ connects = '50 /s' }", "{ connects = 50, hold = '10 ms' }",
            "{ connects = '50 /s', hold = '10 s' }", "{ connects = '1 /h', hold = '0 s' }",
            "{ connects = '1 /s', hold = '1 s', law = 'normal' }",
            "{ connects = '1 /s', hold = '1 s', away = '2 s' }")),
        (COUNT, "count = 3\nprotocol = 'zeromq'\nchurn = { connects = '1 /s', hold = '1 s' }"),
        (PUBLISH, "publish = { topic = 'a', payload = '20 B', arrival = 'back-to-back' }\n"
                  "churn = { connects = '1 /s', hold = '1 s' }"),
        (SUBSCRIBE, SUBSCRIBE + "\nchurn = { connects = '0.1 /s', hold = '1 s' }"),
        (COUNT, 'count = 3\nchurn = { connects = "1 /s", hold = "1 s" }\n[[events]]\nat = "1 s"\n'
                'group = "publishers"\ndo = "disconnect"\n[[groups]]\nname = "more"\nhost = "field"'),
        *((COUNT, f"count = 3\nmqtt = {{ {line} }}") for line in (
            "client_id = 'd-{client:x}'", "client_id = 'd-{client:21}'", "client_id = 'd-{sequence}'",
            "username = '{clients}'", "username = '{time}'", "credentials = 'nowhere.csv'", "credentials = '.'",
            "credentials = 'traces/few.csv'", "credentials = 'traces/same.csv'", "credentials = 'traces/unnamed.csv'",
            "credentials = 'traces/slip.csv'", "credentials = 'traces/gap.csv'", "credentials = 'traces/words.csv'",
            "credentials = 'traces/users.csv', username = 'u'", "credentials = 5", "credentials = ''",
            "duplicate_ids = 1")),
        (NAME, 'name = "good"\nmqtt = { credentials = "traces/users.csv" }'),
        (COUNT, "count = 3\nmqtt = { password = 'secret' }"), (COUNT, "count = 3\nmqtt = { username = 5 }"),
        (COUNT, "count = 3\nmqtt = { will = { payload = 'gone' } }"),
        (COUNT, "count = 3\nmqtt = { will = { topic = 'gone/#' } }"),
        (COUNT, "count = 3\nmqtt = { will = { topic = 'gone/{client}' } }"),
        (COUNT, "count = 3\nmqtt = { will = { topic = 'gone', qos = 4 } }"),
        (COUNT, "count = 3\nmqtt = { retry = '0 s' }"), (COUNT, "count = 3\nmqtt = { deliver_qos2_on = 'pubrel' }"),
        (COUNT, "count = 3\nmqtt = { ping = 'silense' }"), (BROKER, 'retry = "0 s"'),
        (COUNT, "count = 3\nreconnect = { jitter = 0.1 }"), (COUNT, "count = 3\nreconnect = { maximum = '0 s' }"),
        (NAME, 'name = "good"\nmqtt = { keepalive = "60 s" }'),
    ],
    "Groups, topics and messages": [
        (COUNT, "count = 0"), (COUNT, "count = 2000000"), (COUNT, "cuont = 3"), (COUNT, "count = '3'"),
        ('host = "field"\ncount = 3', 'host = "feild"\ncount = 3'),
        (PUBLISH, ""), (SUBSCRIBE, ""), (SUBSCRIBE, "subscribe = 'a/+'"),
        (SUBSCRIBE, 'subscribe = ["a"]\nrelay = { qos = 7 }'),
        (SUBSCRIBE, 'subscribe = ["a"]\nrelay = { suffix = "" }'),
        (PUBLISH, PUBLISH + "\nrelay = {}"), (PUBLISH, PUBLISH + '\nlate_after = "0 s"'), (TOPIC, 'topic = ""'),
        (TOPIC, 'topic = "a/+"'), (TOPIC, 'topic = "a/#"'), (TOPIC, 'topic = "a/{clinet}"'),
        (TOPIC, 'topic = "a/{x}"'), (TOPIC, 'topic = "a/{client"'), (TOPIC, 'topic = "a}/b"'),
        (TOPIC, 'topic = "$SYS/broker/x"'), (TOPIC, 'topic = "a\\u0000b"'), (TOPIC, f'topic = "{"a" * 70_000}"'),
        (TOPIC, 'topic = "a", topics = 10'), (TOPIC, 'topic = "a/{topic}", topics = 0'),
        (TOPIC, 'topic = "a/{topic}", topics = 2000000'), (QOS, "qos = 3, payload"), (QOS, "qos = true, payload"),
        (QOS, 'qos = "1", payload'), (QOS, "qos = 1.0, payload"), (QOS, "retain = 2, payload"),
        (PAYLOAD, 'payload = "big"'), (PAYLOAD, 'payload = "20 MB"'), (PAYLOAD, 'payload = { kind = "file" }'),
        (PAYLOAD, 'payload = { kind = "gps", size = "1 B" }'), (PAYLOAD, 'payload = { kind = "json" }'),
        (PAYLOAD, 'payload = { kind = "file", path = "nowhere.bin" }'), (PAYLOAD, 'payload = {}'),
        (PAYLOAD, 'payload = { kind = "jpeg", size = "700 B" }'), (PAYLOAD, 'payload = "reports"'),
        (PAYLOAD, 'payload = { kind = "png", path = "a" }'), (PAYLOAD, 'payload = { kind = "alert", size = "300 B" }'),
        (PAYLOAD, 'payload = { template = "" }'), (PAYLOAD, 'payload = { kind = "template" }'),
        (PAYLOAD, 'payload = { kind = "gps", template = "{client}" }'),
        (PAYLOAD, 'payload = { template = "{clinet}" }'), (PAYLOAD, 'payload = { template = "{timestamp}" }'),
        (PAYLOAD, 'payload = { template = "{client:x}" }'), (PAYLOAD, 'payload = { template = "{time:hours}" }'),
        (PAYLOAD, 'payload = { template = "{random}" }'), (PAYLOAD, 'payload = { template = "{random:9..1}" }'),
        (PAYLOAD, 'payload = { template = "{random:0.000000001..999999999999999}" }'),
        (PAYLOAD, 'payload = { template = "{identity} {identity}" }'),
        (PAYLOAD, f'payload = {{ template = "{"x" * 1025}{{identity}}" }}'),
        (PAYLOAD, 'payload = { template = "n = {sequence}", size = "60 B" }'),
        (PAYLOAD, 'payload = { template = "{random:choice a|b}", path = "a.txt" }'),
        (", " + INTERVAL, ""), (INTERVAL, "interval = 1"), (INTERVAL, 'interval = "0 s"'),
        (INTERVAL, 'interval = "1 ns"'),
        (INTERVAL, 'interval = "1 s", rate = "1 /s"'), (INTERVAL, 'rate = "0 /s"'), (INTERVAL, 'rate = "10"'),
        (INTERVAL, 'rate = "10 Hz"'), (INTERVAL, 'rate = "1e9 /s"'), (INTERVAL, 'interval = "1 s", arrival = "often"'),
        (INTERVAL, 'interval = "1 s", arrival = "back-to-back"'), (INTERVAL, 'arrival = "burst"'),
        (INTERVAL, 'arrival = "burst", burst = { size = 0, every = "1 s" }'),
        (INTERVAL, 'burst = { size = 2, every = "1 s" }'), (INTERVAL, 'interval = "1 s", start_phase = "sometimes"'),
        (INTERVAL, 'interval = "1 s", messages = 0'), (FILTER, 'filter = ""'), (FILTER, 'filter = "a/b+"'),
        (FILTER, 'filter = "#/a"'), (FILTER, 'filter = "a\\u0000"'), (FILTER, 'filter = "$share/pool"'),
        (FILTER, 'filter = "$share//a"'), (FILTER, 'filter = "$share/po+l/a"'), (FILTER, 'filter = "a/{topic}"'),
        (SUBSCRIBE, "subscribe = [5]"),
        (INTERVAL, 'stages = [{ for = "1 s" }]'), (INTERVAL, 'stages = [{ rate = "5 /s" }]'),
        (INTERVAL, 'stages = [{ for = "1 s", to = "5 /s" }]'), (INTERVAL, 'stages = [{ for = "1 s", rate = "0 /s" }]'),
        (INTERVAL, 'stages = [{ for = "0 s", rate = "5 /s" }]'),
        (INTERVAL, 'stages = [{ for = "1 s", rate = "-5 /s" }]'),
        (INTERVAL, 'stages = [{ for = "1 s", rate = 5 }]'), (INTERVAL, 'stages = [{ fro = "1 s", rate = "5 /s" }]'),
        (INTERVAL, 'stages = [{ for = "1 s", until = "5 /s" }]'), (INTERVAL, 'stages = "1 min"'),
        (INTERVAL, 'arrival = "back-to-back", stages = [{ for = "1 s", rate = "5 /s" }]'),
        (INTERVAL, 'interval = "1 s", stages = [{ for = "1 s", rate = "2000000 /s" }]'),
        (PUBLISH, "publish = []"), (PUBLISH, "publish = 5"), (PUBLISH, "publish = [5]"),
        (PUBLISH, 'publish = { replay = "nowhere.csv" }'), (PUBLISH, 'publish = { replay = { loop = true } }'),
        (PUBLISH, 'publish = { replay = "nowhere.csv", rate = "1 /s" }'), (PUBLISH, 'publish = { replay = "." }'),
        (PUBLISH, 'publish = { replay = { file = "nowhere.csv", speed = 0 } }'),
        (PUBLISH, f"publish = [{ONE}, {{ topic = 'b', payload = '1 B' }}]"),
        (PUBLISH, f"publish = [{ONE}, {{ topic = 'b', payload = '1 B', rate = '0 /s' }}]"),
        (PUBLISH, f"publish = [{', '.join([ONE] * 17)}]"),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { stop = { relative_accuracy = "0 %" } }'),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { stop = { messages_per_subscriber = 0 } }'),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { stop = { deliveries_outstanding = 0 } }'),
        (NAME, 'name = "good"\nbackend = "sim"\nsim = { client_wake_up = 50 }'),
    ],
}
# Possible, but rarely meant.
UNUSUAL: list[tuple[str, str]] = [
    (UP, 'up = { rate = "250 kbit/s", discipline = "codel" }'),
    (UP, 'up = { rate = "250 kbit/s", discipline = { kind = "codel", target = "60 ms", ecn = true } }'),
    (NAME, 'name = "good"\nbackend = "sim"\nlive = { parts = 2 }'),
    (WARM_UP, 'warm_up = "1 min"'), (UP, 'up = { loss = "100 %" }'), (UP, 'up = { rate = "1 bit/s" }'),
    (UP, 'up = { delay = "1 ms", jitter = "5 ms" }'), (FILTER, 'filter = "$share/pool/a/+"'),
    (FILTER, 'filter = "b/#"'),
    (TOPIC, 'topic = "b/{client}"'), (INTERVAL, 'arrival = "burst", burst = { size = 10, every = "1 s", gap = "1 s" }'),
    (INTERVAL, 'interval = "1 s", stages = [{ for = "1 min", to = "10 /s" }]'),
    (INTERVAL, 'rate = "500000 /s"'), (INTERVAL, 'interval = "1 us"'), (DURATION, 'duration = "1000 h"'),
    (BROKER, 'retry = "10 s"'),
    (PUBLISH, 'publish = { topic = "a/b", qos = 2, payload = "9 B", interval = "1 s" }\nmqtt = { max_inflight = 30 }'),
    ('link = "shared"', ""), (UP + "\n", ""), (UP, 'up = { rate = "3 kbit/s" }'),
    (UP, 'up = { rate = "250 kbit/s", policer = { rate = "3 kbit/s", burst = "2 kB" } }'),
    (UP, 'up = { rate = "250 kbit/s", delay = "6 s" }'), (UP, 'up = { rate = "250 kbit/s", delay = "61 s" }'),
    (PUBLISH, 'mqtt = { keep_alive = "2 s" }\n'
              'publish = { topic = "a/{client}", payload = "100 kB", interval = "1 min" }'),
    (PUBLISH, '[[groups.publish]]\ntopic = "a/{client}"\npayload = "200 B"\ninterval = "1 s"\n[[groups.publish]]\n'
              'topic = "a/{client}"\npayload = "20 kB"\ninterval = "1 min"'),
    (NAME, 'name = "good"\nmqtt = { client_id = "sensor-{client}" }'),
    (COUNT, "mqtt = { version = '3.1', client_id = 'a-client-identifier-of-31-chars' }"),
    (COUNT, 'count = 3\nchurn = { connects = "1 /s", hold = "1 s" }'),
    (PUBLISH, 'publish = { topic = "a/b", payload = "8 B", interval = "1 s" }'),
]

# Files that scenarios name.
FILES = {
    "headless.csv": "0,5\n1,6\n", "unknown.csv": "time_s,bandwidth\n0,5\n", "unit.csv": "time_s,rate_mbyte\n0,5\n",
    "semicolons.csv": "time_s;rate_mbit\n0;5\n", "times.csv": "time_s\n0\n1\n",
    "order.csv": "time_s,rate_mbit\n0,5\n2,6\n1,7\n", "cells.csv": "time_s,rate_mbit\n0,5\n1\n",
    "word.csv": "time_s,rate_mbit\n0,5\n1,5 Mbit/s\n", "empty.csv": "time_s,rate_mbit,delay_ms\n0,5,\n",
    "negative.csv": "time_s,delay_ms\n0,-5\n", "fast.csv": "time_s,rate_gbit\n0,500\n", "bare.csv": "time,rate\n0,5\n",
    "lossy.csv": "time_s,loss_percent\n0,120\n", "stopped.csv": "time_s,rate_kbit\n0,0\n1,0\n",
    "rowless.csv": "time_s,rate_kbit\n", "fraction.trace": "1\n2.6\n", "back.trace": "5\n3\n", "zero.trace": "0\n0\n",
    "few.csv": "id,user\na,b\nc,d\n", "same.csv": "client_id\na\nb\na\n", "unnamed.csv": "colour\nred\n",
    "slip.csv": "pasword\na\n", "gap.csv": "client_id,username\na,\n", "words.csv": "password\nx\ny\nz\n",
    "users.csv": "client_id,username\na,b\nc,d\ne,f\n",
    "nothing.trace": "\n", "good.trace": "1\n2\n", "drive.csv": "time_s,rate_kbit\n0,5\n",
}

# A command line, and words of its message that differ from machine to machine, to be left out.
COMMANDS: list[str] = [
    "", "rnu x.toml", "check", "check nowhere.toml", "check good.toml extra", "check --fast good.toml",
    "check god.toml", "run empty", "check empty/plan.json", "experiment empty", "experiment god.toml", "run page.html",
    "run capture.pcapng", "run table.csv", "report god", "explain good.toml", "report capture.pcapng",
    "calibrate page.html",
    "compare good.toml empty", "try --every 5sec", "try --bandwidth '10 Mbps'", "try --network ltem --simulate",
    "try --qos 0,1 --seed 1,2 --simulate", "try --every 1s --rate 1/s", "try --broker 192.0.2.1 --simulate",
    "try --shape ring", "try good.toml", "new lte-fleet", "new --list capture", "new lte-m-fleet --out .",
    "check .", "check binary", "check good.toml/x", "check good.toml --set", "check good.toml --set phases",
    "check good.toml --set =5", "check good.toml --set phases.duration=5",
    "check good.toml --set phases.duratoin='1 s'",
    "check good.toml --set groups[7].count=1", "check good.toml --set groups[x].count=1",
    "check good.toml --set groups[publishers].count=0", "check good.toml --set name.x=1",
    "check good.toml --set seed=1 --set seed=2",
    "check good.toml --set groups[0].count=1 --set groups.0.count=2", "check good.toml --backend ns3",
    "check good.toml --backend sim --set backend=live", "check good.toml --set seed=[[[[[[1]]]]]]",
    "run", "run nowhere.toml", "run good.toml --runs good.toml", "run good.toml --runs good.toml/x",
    "run good.toml --runs /proc/x", "run good.toml --runs /dev/full", "run good.toml --htlm",
    "report", "report nowhere", "report good.toml", "report .", "report empty --html nowhere/x.html",
    "report empty --html .", "explain empty --slowest 0", "explain empty --slowest many", "explain nowhere",
    "explain empty", "compare empty", "compare empty nowhere", "compare empty empty --tolerance -5",
    "compare empty empty --tolerance nan", "compare empty empty --tolerance much", "compare empty empty",
    "export empty", "export nowhere --csv", "export empty --xlsx nowhere/x.xlsx", "export empty --csv nowhere/x",
    "export empty --csv good.toml", "study nowhere", "study .", "study perez2005 --table 99.9",
    "study borsatti2020 --claim qos2",
    "study perez2005 --jobs 0", "study perez2005 --full --quick", "study borsatti2020 --full",
    "study borsatti2020 --backend live --keep kept",
    "study perez2005 --table 5.4 --out nowhere/x.md", "calibrate", "calibrate nowhere", "calibrate empty",
    "list --runs nowhere", "list --runs good.toml", "list runs", "list --where backend=sim", "list --limit 0",
    "list --catalog oracle://x/y", "catalog scan", "catalog scan nowhere", "catalog query --metric x",
    "catalog query --csv nowhere/x.csv", "catalog query --runs nowhere", "catalog tag empty 'a b'",
    "queue cancel", "queue cancel nobody --queue queue", "queue pause nobody --queue queue",
    "queue list --queue good.toml", "run good.toml --detach --json", "run good.toml --backend sim --sql nowhere/x.db",
    "run good.toml --detach --sql x.db", "export empty --sql oracle://x", "catalog tag nowhere x",
    "catalog note good.toml ''", "catalog baseline --runs nowhere", "catalog upgrade",
    "networks satcon", "networks --tcp linx", "networks --probe dsl satcom", "schema scen",
    "doctor --verbose", "import", "import nowhere.pcap", "import nowhere.csv.gz", "import good.tom",
    "import pcap x", "import capture", "import capture nowhere.pcap", "import capture good.toml",
    "import capture good.toml --broker-port 0", "import capture good.toml --deliver-on pubrec",
    "import capture good.toml --output /dev/full", "import log nowhere.log", "import log a.log b.csv",
    "import log good.toml --utc-offset soon", "event", "event empty", "event nowhere network=wan down=true",
    "event empty network=wan down=true",
]


def scenario_message(old: str, new: str) -> list[str]:
    """What is said of the scenario with one part replaced."""
    assert old in GOOD, old
    text = GOOD.replace(old, new, 1)
    try:
        scenario = parse(text, "good.toml")
    except ScenarioError as error:
        return error.problems
    # The page is of a machine with 8 GB left, wherever it is made.
    with patch("mqttlab.scenario.unusual.memory_left", lambda: 8 * 10**9):
        return [f"warning: {problem}" for problem in warnings_of(scenario, "good.toml", text)]


def command_message(line: str) -> tuple[int, list[str]]:
    """Exit status and standard error of a command, in a directory that holds what the commands above name."""
    words = [word.strip("'") for word in re.findall(r"(?:[^\s']|'[^']*')+", line)]
    words = [re.sub(r"'", "", word) for word in words]
    result = CliRunner().invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), (line, result.exception)
    said = [text.replace(str(ROOT) + os.sep, "") for text in result.stderr.splitlines()]
    return result.exit_code, said


def prepare(directory: Path) -> None:
    """What the commands above name."""
    (directory / "good.toml").write_text(GOOD, encoding="utf-8")
    (directory / "binary").write_bytes(b"\x7fELF\xff")
    (directory / "capture.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(24))
    (directory / "page.html").write_text("<!doctype html><title>A report</title>", encoding="utf-8")
    (directory / "table.csv").write_text("topic,publisher,sent\na,0,1\n", encoding="utf-8")
    (directory / "traces").mkdir()
    for name, text in FILES.items():
        (directory / "traces" / name).write_text(text, encoding="utf-8")
    (directory / "empty").mkdir()
    (directory / "empty" / "plan.json").write_text('{"name": "empty", "backend": "sim"}', encoding="utf-8")


def page() -> str:
    """The page of all messages."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("# Messages", "", "Errors and warnings for wrong and unusual input. Generated by "
                "`python tests/python/wrong_input.py`; a test checks that the program "
                "prints them.", "",
                "A message names the place (file, line, field), the value, and the limit or the nearest valid value. "
                "After wrong input the exit status is 2, and nothing has been written; a warning does not stop "
                "a run.", "",
                "The left column replaces one part of this scenario:", "", "```toml", GOOD.strip(), "```")
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        prepare(Path(directory))
        for heading, cases in SCENARIOS.items():
            yield from ("", f"## {heading}", "", "| written | message |", "|---|---|")
            for old, new in cases:
                yield _row(new or f"{old}  # left out", scenario_message(old, new))
    yield from ("", "## Warnings", "", "| written | message |", "|---|---|")
    for old, new in UNUSUAL:
        yield _row(new, scenario_message(old, new))
    yield from ("", "## Command lines", "", "`empty` is a recording of a run that ended before anything was sent.", "",
                "| command | exit status | message |", "|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        prepare(Path(directory))
        for line in COMMANDS:
            status, said = command_message(line)
            words = [text.removeprefix("mqttlab: ") for text in said]
            if not line or line == "import":
                words = ["(the help)"]
            yield f"| `mqttlab {line}` | {status} | {_cell(words)} |".replace("`mqttlab `", "`mqttlab`")


def _row(written: str, said: list[str]) -> str:
    shown = written if len(written) < 150 else f"{written[:60]}…{written[-10:]}"
    return f"| {_cell(f'`{line}`' for line in shown.splitlines())} | {_cell(said)} |"


def _cell(lines: list[str] | Iterator[str]) -> str:
    return "<br>".join(line.replace("|", "\\|") for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
