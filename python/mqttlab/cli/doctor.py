"""``mqttlab doctor``: what this machine can do, and what each missing thing costs."""

from __future__ import annotations

import shutil

from rich.markup import escape
from rich.table import Table

from mqttlab.brokers import ADAPTERS
from mqttlab.console import Console
from mqttlab.engine import doctor, engine_path

COSTS = {
    "namespaces": "no emulated or veth networks; only brokers on loopback or elsewhere",
    "tun": "AF_PACKET on veth carries the frames instead, a little slower",
    "packet": "no fallback where TUN cannot be opened",
    "real_time_priority": "delays are late by milliseconds at p99 when the machine is busy; runs will not be valid",
    "locked_memory": "a page fault may delay a frame",
    "pressure": "runs do not record how contended the processors were",
}
TOOLS = {
    "tshark": "no comparison with Wireshark's analysis in the tests",
    "iperf3": "no TCP rows in the emulator's bench",
}


def show_doctor(console: Console) -> int:
    """Print the findings; 1 when live runs over an emulated network are impossible here, 0 otherwise."""
    findings = doctor()
    table = Table(title=f"Engine {findings['engine']} ({engine_path()})", title_justify="left")
    for column in ("what", "here", "detail", "effect if missing"):
        table.add_column(column, overflow="fold")
    able: dict[str, bool] = {}
    for capability in findings["capabilities"]:
        name, available = capability["name"], capability["available"]
        able[name] = available
        costs = capability.get("costs") or COSTS.get(name, "")
        _row(table, name.replace("_", " "), available, capability["detail"], costs)
    for name, adapter in ADAPTERS.items():
        if name not in ("external", "program", "mqttlab"):
            found = adapter.found(None)
            detail = f"{found} {adapter.version()}" if found else f"install {name}"
            _row(table, f"broker {name}", found is not None, detail, f"no runs on {name}")
    for name, cost in TOOLS.items():
        found = shutil.which(name)
        _row(table, name, found is not None, found or f"install {name}", cost)
    console.print(table)
    console.print(f"kernel {findings['kernel']}, {findings['processors']} processors, congestion control: "
                  f"{', '.join(findings['congestion_control'])}", highlight=False)
    return 0 if able.get("namespaces") and (able.get("tun") or able.get("packet")) else 1


def _row(table: Table, what: str, available: bool, detail: str, cost: str) -> None:
    table.add_row(what, "[green]yes[/]" if available else "[red]no[/]", escape(detail),
                  "" if available else cost)
