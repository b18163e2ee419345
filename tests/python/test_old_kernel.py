"""Runs on a kernel without ``epoll_pwait2`` (Linux 5.11) and ``close_range`` (5.9), or where a filter forbids them."""

from __future__ import annotations

import ctypes
import errno
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mqttlab.engine import engine_path
from mqttlab.recording import Recording
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

CLOSE_RANGE, EPOLL_PWAIT2 = 436, 441
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x0005_0000, 0x7FFF_0000


class Step(ctypes.Structure):
    """``struct sock_filter``."""

    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.POINTER(Step))]


def without(calls: tuple[int, int], error: int) -> Callable[[], None]:
    """Refuse these calls with this error in a program that is started."""
    # Load the call's number; refuse one of these; allow others.
    steps = (Step * 5)(Step(0x20, 0, 0, 0), Step(0x15, 1, 0, calls[0]), Step(0x15, 0, 1, calls[1]),
                       Step(0x06, 0, 0, SECCOMP_RET_ERRNO | error), Step(0x06, 0, 0, SECCOMP_RET_ALLOW))
    program, prctl = Program(len(steps), steps), ctypes.CDLL(None).prctl

    def refuse() -> None:
        assert prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        assert prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0

    return refuse


@pytest.mark.live
@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_a_run_delivers_everything_where_the_kernel_refuses_newer_calls(tmp_path: Path, error: int) -> None:
    group = {"publish": {"topic": "t/{group}", "qos": 1, "payload": "40 B", "rate": "20 /s"},
             "subscribe": [{"filter": "t/#", "qos": 1}]}
    scenario = {
        "name": "old", "phases": {"warm_up": "0 s", "duration": "1 s", "cool_down": "5 s"},
        "broker": {"kind": "mosquitto"}, "recording": {"packets": True},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "2 ms"}, "down": {"delay": "2 ms"}}],
        # The second one's frames pass no emulator, but the capture of the broker's own host.
        "groups": [{**group, "name": "far", "host": "field"}, {**group, "name": "near", "host": "broker"}]}
    job = Job(compile_plan(parse_values(scenario)), tmp_path / "run")
    done = subprocess.run([engine_path(), *job.arguments], input=job.text, capture_output=True, text=True, timeout=120,
                          check=False, preexec_fn=without((CLOSE_RANGE, EPOLL_PWAIT2), error))
    last = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, last["verdict"]) == (0, "complete"), done.stdout + done.stderr
    fates = Recording.open(job.directory).messages["fate"].cast(pl.String)
    assert (len(fates), set(fates)) == (80, {"delivered"})
    # Both had something to wait for.
    details = json.loads((job.directory / "run.json").read_text(encoding="utf-8"))["details"]
    assert details["emulator"]["frames_delivered"] > 0 and details["loopback"]["frames_captured"] > 0, details
