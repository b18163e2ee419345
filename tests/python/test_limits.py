"""What a machine permits is asked before a run starts: the error names the limit, the need and the remedy."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import doctor, engine_path
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

NOBODY = 65_534
MEGABYTE = 1_000_000


def plan(directory: Path, *, backend: str, count: int, hosts: int = 1, network: str = "emulated") -> Job:
    """So many clients, spread over so many hosts."""
    publish = {"topic": "t/{client}", "qos": 0, "payload": "100 B", "interval": "1 s"}
    scenario: dict[str, Any] = {
        "name": "limits", "backend": backend, "phases": {"duration": "1 s", "cool_down": "1 s"}, "network": network,
        "hosts": {"field": {"count": hosts}},
        "groups": [{"name": "field", "host": "field", "count": count, "publish": publish}],
    }
    if network == "emulated":
        scenario["networks"] = [{"between": ["field", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}]
    return Job(compile_plan(parse_values(scenario, "limits")), directory)


def refusal(job: Job, *, engine: str | None = None, **options: Any) -> str:
    """Why the engine does not start this plan; it has left nothing."""
    done = subprocess.run([engine or engine_path(), *job.arguments], input=job.text, capture_output=True, text=True,
                          check=False, timeout=60, **options)
    last = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, last["verdict"]) == (1, "failed"), done.stdout + done.stderr
    assert not job.directory.exists() or not list(job.directory.iterdir())
    return str(last["reason"])


def _files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def limited(which: int, to: int) -> Callable[[], None]:
    """Like ``ulimit``, for a program that is started."""
    return lambda: resource.setrlimit(which, (to, to))


@pytest.mark.parametrize(("backend", "count", "limit"), [
    pytest.param("live", 8_000, 24, marks=[
        pytest.mark.live, pytest.mark.skipif(_files() < 9_000, reason="too few open files")]),
    ("sim", 18_000, 64),
])
def test_a_run_that_needs_more_memory_than_it_may_have_is_refused_with_the_remedy(
    backend: str, count: int, limit: int, tmp_path: Path
) -> None:
    job = plan(tmp_path / "run", backend=backend, count=count)
    reason = refusal(job, preexec_fn=limited(resource.RLIMIT_AS, limit * MEGABYTE))
    found = re.match(rf"this plan needs about (\d+) MB of memory \({count} clients, 2 hosts\), but this program has "
                     r"(\d+) MB left: raise its limit \(`ulimit -v`\), or use fewer clients$", reason)
    assert found is not None, reason
    assert int(found[1]) > limit > int(found[2])


def test_a_simulation_with_more_clients_than_an_address_has_ports_is_refused(tmp_path: Path) -> None:
    reason = refusal(plan(tmp_path / "run", backend="sim", count=28_233))
    assert reason == ("28233 clients connect from host `field`, which has one address with 28232 ports (32768 to "
                      "60999): spread them over several hosts (`hosts.NAME.count`)")
    loopback = refusal(plan(tmp_path / "run", backend="sim", count=28_233, hosts=28_233, network="loopback"))
    assert loopback.startswith("28233 clients connect from the loopback device, which has one address"), loopback


@pytest.mark.live
@pytest.mark.skipif(_files() < 70_000, reason=f"more clients than ports need more open files than {_files()}")
def test_a_live_run_with_more_clients_than_an_address_has_ports_is_refused(tmp_path: Path) -> None:
    assert "64512 ports (1024 to 65535)" in refusal(plan(tmp_path / "run", backend="live", count=64_513))


@pytest.fixture
def engine_for_all() -> Iterator[str]:
    """A copy of the engine that other users can start."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield str(shutil.copy(engine_path(), Path(directory) / "mqttlab-engine"))


@pytest.mark.live
def test_too_few_processes_and_threads_are_found_before_anything_starts(engine_for_all: str, tmp_path: Path) -> None:
    # The limit does not hold for root.
    options: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    reason = refusal(plan(tmp_path / "run", backend="live", count=2), engine=engine_for_all, cwd="/",
                     preexec_fn=limited(resource.RLIMIT_NPROC, 4), **options)
    assert re.match(r"this plan needs about \d+ processes and threads, but user \d+ may have 4 and has \d+: raise "
                    r"the limit \(`ulimit -u`, or LimitNPROC of the service\), or end other programs$", reason), reason


def test_doctor_says_what_there_is() -> None:
    found = {capability["name"]: capability for capability in doctor()["capabilities"]}
    assert found["memory"]["available"] and "B left (" in found["memory"]["detail"]
    assert "processes and threads" in found["processes"]["detail"]
    assert "64512 clients on a host" in found["ports"]["detail"]
    assert re.match(r"no quota$|a quota of [\d.]+ processors \(`cpu\.", found["processor_time"]["detail"])
