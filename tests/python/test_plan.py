"""Scenarios become plans that the engine accepts, and every knob moves something in the plan."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from mqttlab.brokers import BrokerPlace
from mqttlab.brokers.mosquitto import configuration
from mqttlab.engine import engine_path
from mqttlab.networks import MODELS, PLACEMENTS, PROFILES, implied, place
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan, parse
from mqttlab.scenario.compile import repetition_seed
from mqttlab.scenario.load import load
from mqttlab.scenario.model import Broker

ROOT = Path(__file__).resolve().parents[2]
PLACES = (ROOT / "scenarios", ROOT / "python" / "mqttlab" / "studies")
OTHERS = {"published", "experiments"}
# Which cells of a study are run live.
CELLS = "live.toml"
SCENARIOS = sorted({path for place in PLACES for path in place.rglob("*.toml")
                    if path.parent.name not in OTHERS and path.name != CELLS})
GROUPS = """
[[groups]]
name = "p"
host = "field"
count = 2
publish = { topic = "t/{client}", payload = "100 B", interval = "1 s" }
[[groups]]
name = "s"
host = "field"
subscribe = ["t/+"]
"""


def plan_of(head: str, groups: str = GROUPS) -> dict[str, Any]:
    return compile_plan(parse(f'name = "x"\n[phases]\nduration = "1 s"\n{head}{groups}'))


def between(text: str) -> str:
    return f'[[networks]]\nbetween = ["field", "broker"]\n{text}\n'


def engine_accepts(plan: dict[str, Any]) -> None:
    result = subprocess.run(
        [engine_path(), "check"], input=Job(plan, Path("runs/x")).text, capture_output=True, text=True, check=False,
        timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_engine_accepts_every_scenario_of_the_project(path: Path) -> None:
    engine_accepts(compile_plan(load(path)))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_engine_accepts_every_model_in_every_placement(model: str, placement: str) -> None:
    engine_accepts(plan_of(between(f'model = "{model}"\nplacement = "{placement}"')))


@pytest.mark.parametrize("profile", PROFILES)
def test_the_engine_accepts_every_tcp_profile(profile: str) -> None:
    engine_accepts(plan_of(f'[hosts.field]\ntcp = {{ profile = "{profile}" }}\n' + between('model = "dsl"')))


def test_the_engine_refuses_a_tcp_stack_that_the_plan_does_not_declare() -> None:
    plan = plan_of(between('model = "dsl"')) | {"backend": "sim"}
    plan["hosts"][1]["tcp"]["profile"] = "linus"
    result = subprocess.run(
        [engine_path(), "check"], input=Job(plan, Path("runs/x")).text, capture_output=True, text=True, check=False,
        timeout=60)
    assert result.returncode == 2
    assert "`hosts[1].tcp.profile` is `linus`, an unknown TCP stack; `sim.tcp_stacks` has: linux" in result.stderr


def test_the_engine_refuses_a_field_that_it_does_not_know() -> None:
    plan = plan_of(between('model = "dsl"')) | {"colour": "blue"}
    result = subprocess.run(
        [engine_path(), "check"], input=Job(plan, Path("runs/x")).text, capture_output=True, text=True, check=False,
        timeout=60)
    assert result.returncode == 2
    assert "colour" in result.stderr


def hops(plan: dict[str, Any]) -> dict[tuple[str, str], list[int]]:
    names = [host["name"] for host in plan["hosts"]]
    return {
        (names[path["from"]], names[path["to"]]): [hop["link"] for hop in path["hops"]]
        for path in plan["network"]["paths"]
    }


def links(plan: dict[str, Any]) -> dict[str, Any]:
    return {link["name"]: link for link in plan["network"]["links"]}


def test_egress_at_broker_shapes_what_the_broker_sends_and_nothing_else() -> None:
    plan = plan_of(between('model = "satcom"\nplacement = "egress-at-broker"'))
    assert hops(plan) == {("field", "broker"): [], ("broker", "field"): [0]}
    assert plan["network"]["links"][0]["rate_bit_s"] == 250_000


def test_split_halves_the_delay_in_each_direction() -> None:
    plan = plan_of(between('model = "satcom"\nplacement = "split"'))
    assert [link["delay"]["mean_ns"] for link in plan["network"]["links"]] == [275_000_000, 275_000_000]


def test_a_shared_medium_is_one_link_for_both_directions() -> None:
    plan = plan_of(between('model = "satcom"\nplacement = "shared-medium"'))
    assert hops(plan) == {("field", "broker"): [0], ("broker", "field"): [0]}
    assert len(plan["network"]["links"]) == 1


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_delays_that_a_placement_implies_are_those_of_its_plan(model: str, placement: str) -> None:
    plan = plan_of(between(f'model = "{model}"\nplacement = "{placement}"'))
    links = plan["network"]["links"]
    sums = {ends: sum(links[hop]["delay"]["mean_ns"] for hop in crossed) / 1e6 for ends, crossed in hops(plan).items()}
    figures = implied(place(MODELS[model], placement))
    assert sums == {("field", "broker"): figures.up_ms, ("broker", "field"): figures.down_ms}


def test_hosts_of_one_name_share_a_link_or_have_their_own() -> None:
    shared = plan_of("[hosts.field]\ncount = 2\n" + between('model = "dsl"'))
    own = plan_of("[hosts.field]\ncount = 2\n" + between('model = "dsl"\nlink = "each"'))
    assert len(shared["network"]["links"]) == 2
    assert len(own["network"]["links"]) == 4
    assert [group["host_step"] for group in own["groups"]] == [1, 1]


def test_up_leads_from_the_first_host_to_the_second() -> None:
    forward = plan_of(between('up = { delay = "1 ms" }\ndown = { delay = "2 ms" }'))
    swapped = plan_of(
        '[[networks]]\nbetween = ["broker", "field"]\nup = { delay = "1 ms" }\ndown = { delay = "2 ms" }\n')
    links = forward["network"]["links"]
    assert links[hops(forward)["field", "broker"][0]]["delay"]["mean_ns"] == 1_000_000
    links = swapped["network"]["links"]
    assert links[hops(swapped)["broker", "field"][0]]["delay"]["mean_ns"] == 1_000_000


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ('loss = "1 %"', ("loss",), {"kind": "bernoulli", "probability": [1, 100]}),
        ('loss = "50 %", loss_at = "entry"', ("loss_at",), "entry"),
        ('queue = "64 kB"', ("queue", "limit_bytes"), 64_000),
        ('queue = "7 packets"', ("queue", "limit_packets"), 7),
        ('rate = "1 Mbit/s", discipline = "codel"', ("queue", "discipline", "kind"), "codel"),
        ('rate = "1 Mbit/s", discipline = { kind = "codel", target = "20 ms" }', ("queue", "discipline", "target_ns"),
         20_000_000),
        ('rate = "1 Mbit/s", discipline = { kind = "fq-codel", interval = "1 s" }',
         ("queue", "discipline", "interval_ns"), 10**9),
        ('rate = "1 Mbit/s", discipline = { kind = "fq-codel", flows = 8 }', ("queue", "discipline", "flows"), 8),
        ('rate = "1 Mbit/s", discipline = { kind = "fq-codel", quantum = "300 B" }',
         ("queue", "discipline", "quantum_bytes"), 300),
        ('rate = "1 Mbit/s", overhead = "38 B", discipline = "fq-codel"', ("queue", "discipline", "quantum_bytes"),
         1538),
        ('rate = "1 Mbit/s", discipline = { kind = "codel", ecn = true }', ("queue", "discipline", "ecn"), True),
        ('policer = { rate = "1 Mbit/s", burst = "15 kB" }', ("policer",),
         {"rate_bit_s": 1_000_000, "burst_bytes": 15_000}),
        ('duplicate = "1/3"', ("duplication",), [1, 3]),
        ('corrupt = "0.1 %"', ("corruption",), [1, 1000]),
        ('jitter = "1 ms"', ("delay", "law"), "normal"),
        ('jitter = "1 ms", distribution = "pareto"', ("delay", "law"), "pareto"),
        ('jitter = "1 ms", correlation = "25 %"', ("delay", "correlation"), [1, 4]),
        ("keep_order = false", ("delay", "keep_order"), False),
        ('overhead = "38 B", minimum_frame = "84 B"', ("minimum_frame_bytes",), 84),
        ('reorder = { probability = "25 %", gap = 5 }', ("reordering",), {"probability": [1, 4], "gap": 5}),
        ('burst_loss = { good_to_bad = "1 %", bad_to_good = "1/5" }', ("loss", "kind"), "gilbert_elliott"),
        ('bit_errors = { good_to_bad = "1/10000", bad_to_bad = "80 %" }', ("loss", "bad_to_bad"), [4, 5]),
    ],
)
def test_every_link_knob_reaches_the_plan(text: str, place: tuple[str, ...], value: Any) -> None:
    link = plan_of(between(f"up = {{ {text} }}"))["network"]["links"][0]
    for key in place:
        link = link[key]
    assert link == value
    engine_accepts(plan_of(between(f"up = {{ {text} }}")))


# 1 Mbit/s is 125 B in a millisecond; the round trip is 40 ms over the network and 10 ms over the trunk.
@pytest.mark.parametrize(
    ("queue", "limit"),
    [('"100 ms"', 12_500), ('"1 BDP"', 6_250), ('"2.5 BDP"', 15_625), ('{ time = "1 s", bytes = "64 kB" }', 64_000),
     ('{ time = "1 s", bdp = "1 BDP", packets = 9 }', 6_250)])
def test_a_queue_may_be_as_long_as_a_time_or_a_bandwidth_delay_product(queue: str, limit: int) -> None:
    network = between(f'up = {{ rate = "1 Mbit/s", delay = "10 ms", queue = {queue} }}\ndown = {{ delay = "30 ms" }}')
    plan = plan_of('[trunk]\nup = {}\ndown = { delay = "10 ms" }\n' + network)
    assert links(plan)["field/up"]["queue"]["limit_bytes"] == limit
    engine_accepts(plan)


def test_a_bandwidth_delay_product_is_that_of_the_longest_path() -> None:
    near, far = (f'[[networks]]\nbetween = ["{host}", "router"]\nup = {{ delay = "{delay} ms" }}\n'
                 f'down = {{ delay = "{delay} ms" }}\n' for host, delay in (("field", 5), ("away", 45)))
    last = '[[networks]]\nbetween = ["router", "broker"]\nup = { rate = "1 Mbit/s", queue = "1 BDP" }\ndown = {}\n'
    groups = GROUPS.replace('name = "s"\nhost = "field"', 'name = "s"\nhost = "away"')
    plan = plan_of("[hosts.router]\nforwards = true\n" + near + far + last, groups)
    [limit] = [link["queue"]["limit_bytes"] for link in plan["network"]["links"] if link["rate_bit_s"]]
    assert limit == 90 * 125


def test_a_queue_in_time_or_products_follows_the_rate_and_the_named_network() -> None:
    written = between('model = "lte"\nup = { queue = "1 BDP" }\ndown = { queue = "10 ms" }')
    event = '[[events]]\nat = "0 s"\nnetwork = "field"\nrate = "6 Mbit/s"\n'
    plan = plan_of(written, GROUPS + event)
    # 12 Mbit/s and 70 ms.
    assert links(plan)["field/up"]["queue"]["limit_bytes"] == 105_000
    assert links(plan)["field/down"]["queue"]["limit_bytes"] == 15_000
    specs = [each["change"]["spec"] for each in plan["events"]]
    assert sorted(spec["queue"]["limit_bytes"] for spec in specs) == [7_500, 52_500]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('interval = "10 s"', {"kind": "constant", "interval_ns": 10_000_000_000}),
        ('rate = "100 /s"', {"kind": "constant", "interval_ns": 10_000_000}),
        ('rate = "6 /min", arrival = "poisson"', {"kind": "poisson", "mean_interval_ns": 10_000_000_000}),
        ('arrival = "back-to-back"', {"kind": "back_to_back"}),
        ('arrival = "burst", burst = { size = 5, every = "1 s" }',
         {"kind": "burst", "size": 5, "interval_ns": 1_000_000_000, "gap_ns": 0}),
    ],
)
def test_arrivals_reach_the_plan(text: str, value: dict[str, Any]) -> None:
    groups = GROUPS.replace('interval = "1 s"', text)
    assert plan_of(between('model = "dsl"'), groups)["groups"][0]["publications"][0]["arrival"] == value


@pytest.mark.parametrize(
    ("text", "bytes_"), [("0 B", 0), ("200 B", 200), ("1 kB", 1000), ("1 KiB", 1024), ("10 MB", 10_000_000)])
def test_payload_sizes_are_decimal_but_for_the_binary_units(text: str, bytes_: int) -> None:
    groups = GROUPS.replace("100 B", text)
    payload = plan_of(between('model = "dsl"'), groups)["groups"][0]["publications"][0]["payload"]
    assert payload == {"kind": "fixed", "bytes": bytes_}


def test_tcp_fields_override_their_profile() -> None:
    head = '[hosts.field]\ntcp = { profile = "netbsd-2005", rto_min = "1 s", sack = true }\n'
    tcp = plan_of(head + between('model = "dsl"'))["hosts"][1]["tcp"]
    assert (tcp["profile"], tcp["rto_min_ns"], tcp["sack"], tcp["mss_bytes"]) == ("netbsd-2005", 10**9, True, 536)


def test_each_repetition_has_a_seed_of_its_own_and_the_first_has_the_scenarios() -> None:
    seeds = [repetition_seed(7, repetition) for repetition in range(100)]
    assert seeds[0] == 7
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_mosquittos_configuration_says_what_the_scenario_says() -> None:
    broker = Broker(nagle=False, max_inflight=7, max_queued=9, persistence=True)
    text = configuration(broker, BrokerPlace(address="10.77.0.1", port=1884)).splitlines()
    for line in ("listener 1884 10.77.0.1", "set_tcp_nodelay true", "max_inflight_messages 7",
                 "max_queued_messages 9", "persistence true", "allow_anonymous true"):
        assert line in text


def test_every_model_has_a_source_and_every_placement_words() -> None:
    for model in MODELS.values():
        assert len(model.source) > 20
        assert model.placement in PLACEMENTS


def test_andersen2021s_models_are_those_of_its_table() -> None:
    # Table 4.1: rate in bit/s, latency in ms, loss in per cent.
    table = {
        "tactical-broadband": (2_000_000, 100, 1), "satcom": (250_000, 550, 0), "nato-narrowband": (16_000, 500, 0),
        "cnr-1": (9_600, 100, 1), "cnr-10": (9_600, 100, 10),
    }
    for name, (rate, delay_ms, loss) in table.items():
        down = MODELS[name].down
        assert (down.rate, down.delay / 1e6, 100 * down.loss[0] / down.loss[1]) == (rate, delay_ms, loss)
