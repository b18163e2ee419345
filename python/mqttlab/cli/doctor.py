"""``mqttlab doctor``: what this machine can do, and what each missing thing costs."""

from __future__ import annotations

import shutil

from rich.text import Text

from mqttlab.brokers import ADAPTERS
from mqttlab.console import Console, print_table
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
    rows: list[tuple[str, str | Text, str, str]] = []
    able: dict[str, bool] = {}
    for capability in findings["capabilities"]:
        name, available = capability["name"], capability["available"]
        able[name] = available
        costs = capability.get("costs") or COSTS.get(name, "")
        rows.append(_row(name.replace("_", " "), available, capability["detail"], costs))
    for name, adapter in ADAPTERS.items():
        if name not in ("external", "program", "mqttlab"):
            found = adapter.found(None)
            detail = f"{found} {adapter.version()}" if found else f"install {name}"
            rows.append(_row(f"broker {name}", found is not None, detail, f"no runs on {name}"))
    for name, cost in TOOLS.items():
        found = shutil.which(name)
        rows.append(_row(name, found is not None, found or f"install {name}", cost))
    print_table(console, f"Engine {findings['engine']} ({engine_path()})",
                ("what", "here", "detail", "effect if missing"), rows, left=range(4))
    console.print(f"kernel {findings['kernel']}, {findings['processors']} processors, congestion control: "
                  f"{', '.join(findings['congestion_control'])}", highlight=False)
    return 0 if able.get("namespaces") and (able.get("tun") or able.get("packet")) else 1


def _row(what: str, available: bool, detail: str, cost: str) -> tuple[str, str | Text, str, str]:
    here = Text("yes", style="green") if available else Text("no", style="red")
    return what, here, detail, "" if available else cost
