"""Real runs for tests: whether they are possible here, and some at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mqttlab.brokers import ADAPTERS
from mqttlab.recording import Recording
from mqttlab.runs import doctor


def able() -> str | None:
    """Why real runs are impossible here, if they are."""
    capabilities = {c["name"]: c["available"] for c in doctor()["capabilities"]}
    if not capabilities["namespaces"] or not (capabilities["tun"] or capabilities["packet"]):
        return "network namespaces or devices cannot be made here; `mqttlab doctor` says why"
    return None if ADAPTERS["mosquitto"].found(None) else "mosquitto is not installed"


def perform(directory: Path, scenarios: list[Path], **settings: str) -> list[Recording]:
    """Run scenarios side by side, with these fields replaced (``phases__duration="5 s"``)."""
    replaced = [word for name, value in settings.items() for word in ("--set", f"{name.replace('__', '.')}={value}")]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "mqttlab", "run", str(scenario), "--no-html", "--runs", str(directory / str(i)),
             *replaced], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for i, scenario in enumerate(scenarios)
    ]
    outputs = [run.communicate(timeout=180)[0] for run in running]
    failed = [output for run, output in zip(running, outputs, strict=True) if run.returncode not in (0, 6)]
    assert not failed, "\n".join(failed)
    return [Recording.open(next((directory / str(i)).iterdir())) for i in range(len(scenarios))]


def valid(recording: Recording) -> bool:
    """Whether emulator and senders kept their time."""
    return bool((recording.run.get("validity") or {}).get("valid", True))
