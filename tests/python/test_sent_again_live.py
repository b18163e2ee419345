"""What the kernel counts as sent again is what the frames say, live; and the simulator says as much."""

from __future__ import annotations

import json

import polars as pl
import pytest

from live import perform
from mqttlab import metrics
from mqttlab.recording import Recording

pytestmark = pytest.mark.live(runs=3)
CASES = {
    "QoS 0, 5 %": (0, "5 %", "", 1), "QoS 1, 5 %": (1, "5 %", "", 1), "QoS 2, 5 %": (2, "5 %", "", 1),
    "QoS 1, 10 %": (1, "10 %", "", 1), "two links": (1, "5 %", ', duplicate = "5 %"', 2),
    "copies and reordering": (2, "5 %", ', duplicate = "10 %", jitter = "6 ms", keep_order = false', 1),
}


def scenario(qos: int, loss: str, more: str, links: int) -> str:
    link = f'{{ delay = "10 ms", loss = "{loss}"{more} }}'
    both = f"up = {link}\ndown = {link}\n"
    joined = "".join(f'[[networks]]\nbetween = ["{host}", "broker"]\n{both}' for host in ("field", "office"))
    if links == 2:
        joined += f"[trunk]\n{both}"
    return f"""
name = "lossy"
[phases]
warm_up = "1 s"
duration = "6 s"
cool_down = "6 s"
{joined}
[[groups]]
name = "publishers"
host = "field"
count = 6
publish = {{ topic = "t/{{client}}", qos = {qos}, payload = "1 kB", rate = "15 /s" }}
[[groups]]
name = "subscribers"
host = "office"
count = 2
subscribe = [{{ filter = "#", qos = {qos} }}]
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """All cases side by side."""
    paths = {}
    for name, case in CASES.items():
        paths[name] = tmp_path_factory.mktemp("scenarios") / "lossy.toml"
        paths[name].write_text(scenario(*case), encoding="utf-8")
    made = perform(tmp_path_factory.mktemp("runs"), list(paths.values()))
    return dict(zip(paths, made, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_counts_as_many_repetitions_of_each_connection(
        recordings: dict[str, Recording], name: str) -> None:
    recording = recordings[name]
    clients = recording.layout["clients"]
    seen = recording.packets.filter(pl.col("hop") == 0, pl.col("fate") != "duplicated", pl.col("repetition") > 0)
    read = recording.events.filter(kind="tcp_info")
    assert set(read["client"]) == set(range(len(clients)))
    counted = []
    for client, at, detail in read.select("client", "at_ns", "detail").rows():
        kernel = json.loads(detail)
        host = recording.layout["hosts"][clients[client]["host"]]
        own = seen.filter(pl.col("from_host") == host, pl.col("source_port") == kernel["port"])
        # What the kernel had sent when it was asked may still have had to be taken over by the emulator.
        before, after = (own.filter(pl.col("entered_ns") <= at + late).height for late in (0, 100_000_000))
        assert before <= kernel["total_retrans"] <= after, (clients[client]["name"], kernel)
        counted.append(kernel["total_retrans"])
    assert sum(counted) >= 10


@pytest.mark.parametrize("name", CASES)
def test_every_repetition_has_a_kind_and_the_same_number_on_every_link(
        recordings: dict[str, Recording], name: str) -> None:
    recording = recordings[name]
    table = metrics.network(recording, ["run", "direction", "connection"])
    kinds = [f"retransmissions_{kind}" for kind in ("fast", "timer_or_probe", "spurious", "unknown")]
    assert (table.select(pl.sum_horizontal(kinds)).to_series() == table["retransmissions"]).all()
    assert table["retransmissions_unknown"].sum() == 0
    run = table.row(0, named=True)
    assert min(run["retransmissions_fast"], run["retransmissions_timer_or_probe"]) > 0
    # Wireshark's flags are another matter, and stand beside.
    assert run["tcp_analysis_retransmissions"] + run["tcp_analysis_out_of_order"] > 0
    ways = recording.packets.filter(pl.col("fate") != "duplicated").group_by("frame").agg(
        pl.col("repetition").n_unique())
    assert (ways["repetition"] == 1).all()
