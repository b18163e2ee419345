"""A Dask cluster of two workers, and recordings in a place by URL: a directory, and an S3 server of this test's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("s3fs")
pytest.importorskip("moto")

from mqttlab.experiments import ExperimentDirectory
from mqttlab.experiments.journal import RunRecord
from mqttlab.recording import Recording
from mqttlab.runs.cluster import DaskCluster
from mqttlab.runs.storage import StorageError, fetch, is_complete, is_url, store
from ports import own_port
from test_parts import SCENARIO as SHARED
from test_parts import can_shift_clocks
from wrong_experiments import GOOD, SCENARIO

# Of forty deliveries a p99 decides nothing.
TEXT = GOOD.replace("repetitions = 5", "repetitions = 2").replace("250 ms", "20 s").replace("ms_p99", "ms_p50").replace(
    'levels = ["0 %", "1 %", "5 %"]', 'levels = ["0 %", "5 %"]')
TWICE = """
name = "twice"
scenario = "shared.toml"
design = "full"
repetitions = 1
responses = ["latency_ms_p50"]

[[factors]]
place = "groups[publishers].publish.qos"
levels = [0, 1]
"""
# Compared byte by byte; resources are the machine's.
TABLES = ("messages", "packets", "control_packets", "events", "clients")


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def started(*words: str, environment: dict[str, str] | None = None, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *words], env={**os.environ, **(environment or {})}, cwd=cwd,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 240
    while not answers(port):
        assert time.monotonic() < deadline, "nothing listens"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An S3 server with a bucket, as environment variables."""
    port = own_port()
    environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
                   "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
                   "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    before = {name: os.environ.get(name) for name in environment}
    with started("-c", "from moto.server import main; main()", "-p", str(port), cwd=Path.cwd()):
        wait_for(port)
        os.environ.update(environment)
        import s3fs

        s3fs.S3FileSystem().mkdir("s3://runs")
        yield environment
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def write(directory: Path, text: str = TEXT, scenario: str = SCENARIO) -> None:
    (directory / "field.toml").write_text(scenario, encoding="utf-8")
    (directory / "loss.toml").write_text(text, encoding="utf-8")


def run(directory: Path, *words: str, status: int = 0) -> str:
    result = subprocess.run([sys.executable, "-m", "mqttlab", *words], cwd=directory, capture_output=True, text=True,
                            timeout=240, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def done(directory: Path) -> dict[str, RunRecord]:
    runs = [run for run in ExperimentDirectory.open(directory / "runs" / "loss").runs() if run.state == "done"]
    assert len(runs) == len({run.task for run in runs})
    return {run.task: run for run in runs}


def place_of(directory: Path, run: RunRecord) -> Path:
    return fetch(run.directory) if is_url(run.directory) else directory / "runs" / "loss" / run.directory


def assert_equal(first: Path, second: Path) -> None:
    """Equal recordings by seed, table by table."""
    one, other = done(first), done(second)
    assert set(one) == set(other)
    for task in one:
        assert one[task].seed == other[task].seed and one[task].responses == other[task].responses
        for table in TABLES:
            left = place_of(first, one[task]) / f"{table}.parquet"
            right = place_of(second, other[task]) / f"{table}.parquet"
            assert left.read_bytes() == right.read_bytes(), (task, table)


def test_a_recording_on_s3_reports_as_the_local_one(tmp_path: Path, s3: dict[str, str]) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        write(place)
    run(here, "experiment", "loss.toml")
    run(there, "experiment", "loss.toml", "--to", "s3://runs/one")
    assert_equal(here, there)
    assert not any((there / "runs" / "loss").glob("runs/*"))
    task, record = next(iter(done(there).items()))
    assert record.directory.startswith("s3://runs/one/loss/p")
    local = run(here, "report", str(place_of(here, done(here)[task])), "--json", status=0)
    remote = run(there, "report", record.directory, "--json", status=0)
    own = ('"recording"', '"run_id"', '"started_at"')
    assert [line for line in local.splitlines() if not line.strip().startswith(own)] == [
        line for line in remote.splitlines() if not line.strip().startswith(own)]
    # Responses that were not declared are read from the recordings, which are fetched.
    more = ExperimentDirectory.open(there / "runs" / "loss").table(metrics=["latency_ms_p95"])
    assert more.filter(~more["declared"]).height == len(done(there))


def test_what_is_stored_and_fetched_is_the_same_and_run_json_is_last(tmp_path: Path) -> None:
    recording = tmp_path / "one"
    (recording / "inner").mkdir(parents=True)
    for name in ("plan.json", "run.json", "a.parquet", "inner/b.pcapng"):
        (recording / name).write_text(name, encoding="utf-8")
    url = f"file://{tmp_path}/there/one"
    assert not is_complete(url)
    store(recording, url)
    assert is_complete(url)
    copy = fetch(url, tmp_path / "cache")
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == sorted(
        path.relative_to(recording) for path in recording.rglob("*"))
    assert fetch(url, tmp_path / "cache") == copy
    for wrong in (f"file://{tmp_path}/nothing", "s4://x/y"):
        with pytest.raises(StorageError):
            fetch(wrong, tmp_path / "cache")
    assert list((tmp_path / "cache").rglob(".fetched-*")) == []


def test_a_worker_that_is_killed_has_its_runs_done_elsewhere(tmp_path: Path, s3: dict[str, str]) -> None:
    # Long enough that a run is going on when the worker dies.
    scenario = SCENARIO.replace('duration = "2 s"', 'duration = "600 s"')
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        write(place, scenario=scenario)
    port = own_port()
    address = f"tcp://127.0.0.1:{port}"
    worker = ("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--resources", "cpu=1",
              "--no-dashboard", "--local-directory", str(tmp_path))
    with started("-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard", cwd=tmp_path):
        wait_for(port)
        with started(*worker, cwd=tmp_path) as first, started(*worker, cwd=tmp_path):
            wait_for_workers(address, 2)
            words = [sys.executable, "-m", "mqttlab", "experiment", "loss.toml", "--cluster", address, "--to",
                     f"file://{tmp_path}/recordings"]
            with subprocess.Popen(words, cwd=there, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True) as going:
                deadline = time.monotonic() + 240
                while not child_engines(first.pid):
                    assert time.monotonic() < deadline and going.poll() is None
                    time.sleep(0.01)
                first.send_signal(signal.SIGKILL)
                said = going.communicate(timeout=200)[0]
            assert going.returncode in (0, 5), said
            # A cluster without the resource that is needed is refused in words.
            write(tmp_path)
            refused = run(tmp_path, "experiment", "loss.toml", "--cluster", address, "--to", f"file://{tmp_path}/x",
                          "--backend", "live", status=2)
            assert "no worker has the resource live" in refused
    run(here, "experiment", "loss.toml", status=going.returncode)
    assert_equal(here, there)
    assert Recording.open(place_of(there, next(iter(done(there).values())))).run["status"] == "complete"


@pytest.mark.skipif(not (can_shift_clocks() and shutil.which("mosquitto")), reason="no time namespaces or mosquitto")
def test_a_run_is_shared_by_two_workers_of_which_one_has_another_clock(tmp_path: Path) -> None:
    broker, port = own_port(), own_port()
    (tmp_path / "shared.toml").write_text(SHARED.replace("PORT", str(broker)), encoding="utf-8")
    (tmp_path / "twice.toml").write_text(TWICE, encoding="utf-8")
    (tmp_path / "mosquitto.conf").write_text(f"listener {broker} 127.0.0.1\nallow_anonymous true\n", encoding="utf-8")
    address = f"tcp://127.0.0.1:{port}"
    worker = ("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--resources", "live=1",
              "--no-dashboard", "--local-directory", str(tmp_path))
    shifted = ("unshare", "--time", "--monotonic", "500000", "--boottime", "500000", "--fork", "--kill-child",
               sys.executable, *worker)
    with (subprocess.Popen(["mosquitto", "-c", str(tmp_path / "mosquitto.conf")], stderr=subprocess.DEVNULL) as server,
          started("-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard", cwd=tmp_path)):
        try:
            wait_for(port)
            with started(*worker, cwd=tmp_path), subprocess.Popen(
                    shifted, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
                wait_for_workers(address, 2)
                words = ("experiment", "twice.toml", "--cluster", address, "--to", f"file://{tmp_path}/recordings")
                # A busy machine makes runs invalid, and that is not in question here.
                ran = subprocess.run([sys.executable, "-m", "mqttlab", *words], cwd=tmp_path, text=True, timeout=150,
                                     capture_output=True, check=False)
                # `unshare --fork` passes no SIGTERM on; its child goes with it.
                other.kill()
        finally:
            server.kill()
    places = [path.parent for path in (tmp_path / "recordings").rglob("run.json")]
    assert len(places) >= 2, ran.stdout + ran.stderr
    for place in places:
        recording = Recording.open(place)
        clock = recording.run["details"]["parts"][1]["clock"]
        assert abs(abs(clock["offset_ns"]) - 500_000 * 10**9) <= clock["bound_ns"]
        assert recording.messages["fate"].unique().to_list() == ["delivered"]


def child_engines(parent: int) -> list[str]:
    """Engines below a process."""
    found = subprocess.run(["pgrep", "-P", str(parent), "mqttlab-engine"], capture_output=True, text=True, check=False)
    return found.stdout.split()


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=90)


def test_the_room_is_known_while_the_client_asks_for_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    from distributed import Client

    ask = Client._update_scheduler_info

    async def asked_and_asked_again(client: Client, n_workers: int = 0) -> None:
        # As a client does every other second, and at times between a question and its answer.
        await ask(client, n_workers)
        await ask(client, 0)

    port = own_port()
    address = f"tcp://127.0.0.1:{port}"
    worker = ("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--resources",
              "live=1,cpu=3", "--no-dashboard", "--local-directory", str(tmp_path))
    with started("-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard", cwd=tmp_path):
        wait_for(port)
        with started(*worker, cwd=tmp_path):
            wait_for_workers(address, 1)
            monkeypatch.setattr(Client, "_update_scheduler_info", asked_and_asked_again)
            with DaskCluster(address, lambda job, outcome: None, to=f"file://{tmp_path}") as cluster:
                assert (cluster.room("cpu"), cluster.room("live"), cluster.room("disk")) == (3, 1, 0)


def test_no_scheduler_is_said_in_words(tmp_path: Path) -> None:
    write(tmp_path)
    assert "needs --to" in run(tmp_path, "experiment", "loss.toml", "--cluster", "tcp://127.0.0.1:1", status=2)
    assert "not a URL" in run(tmp_path, "experiment", "loss.toml", "--to", "here", status=2)
