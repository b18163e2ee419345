"""How long the catalog's answers take with 10,000 runs in it: ``benches/catalog/run.py [--runs N] [--catalog URL]``.

The runs are rows as a recording leaves them (80 series each, three values of a factor, a tag on every tenth), written
by the catalog's own functions; recordings are not needed for what is measured here.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mqttlab.catalog import Catalog
from mqttlab.catalog.adding import add_facts
from mqttlab.catalog.origin import Experiment, Origin
from mqttlab.catalog.reading import Facts
from mqttlab.catalog.run_annotations import Annotations

SERIES = 80
REPEATED = 7
QUESTIONS = {
    "list, a filter and a sort": ["list", "--where", "metric_7 < 20", "--sort", "-metric_3", "--limit", "50"],
    "list, a factor, a tag, two sorts": ["list", "--where", "loss > 1 %", "--tag", "nightly", "--sort", "loss",
                                         "--sort", "-metric_3"],
    "list, filter and sort, all rows": ["list", "--where", "metric_7 < 200", "--sort", "-metric_3"],
    "query to CSV, ten columns": ["catalog", "query", *(f"--column=metric_{n}" for n in range(10)), "--csv", "out.csv"],
    "list, plain": ["list"],
}


def fill(catalog: Catalog, runs: int, place: Path) -> float:
    """Write so many runs; returns seconds."""
    dice = random.Random(1)
    experiment = Experiment(
        directory=place / "loss", name="loss", kind="full", toml="", scenario="", created_at="2026-01-01T00:00:00Z",
        began={}, design={"factors": [{"name": "loss", "levels": [
            {"text": f"{n} %", "value": n / 100} for n in range(3)]}]})
    began = time.perf_counter()
    for number in range(runs):
        point = number % 3
        facts = Facts(
            directory=place / f"r{number}", plan=f'{{"point": {point}}}', machine={"processor": "one"},
            version=("0.1.0", 3), annotations=Annotations(tags={"nightly": ""} if number % 10 == 0 else {}),
            run={"run_id": f"R{number:09d}", "name": "bench", "backend": "sim", "producer": "sim", "state": "complete",
                 "valid": True, "reason": None, "seed": number, "repetition": number // 3, "planned_s": 60.0,
                 "started_at": f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z",
                 "bytes": 10**6, "broker_kind": "mosquitto", "broker_version": "2.0.11", "kind": "run",
                 "block": number // 3, "order_no": number, "attempt": 1, "run_json": "{}" * 2500},
            values=[(f"metric_{n}", "run", "", "ms", dice.lognormvariate(3, 1)) for n in range(SERIES)],
            sketches={}, origin=Origin(experiment=experiment, point=point, levels={"loss": f"{point} %"},
                                       block=number // 3))
        add_facts(catalog._database, facts)
    return time.perf_counter() - began


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--catalog")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "runs").mkdir()
        url = given.catalog or str(place / "runs" / "catalog.db")
        with Catalog.open(url) as catalog:
            seconds = fill(catalog, given.runs, place / "runs")
        size = f", {Path(url).stat().st_size / 1e6:.0f} MB" if given.catalog is None else ""
        print(f"{given.runs} runs of {SERIES} values written in {seconds:.1f} s{size}\n")
        print("| question | wall, median of 7 | CPU |\n|---|---:|---:|")
        for name, words in QUESTIONS.items():
            if "list" not in words or words != ["list"]:
                words = [*words, "--catalog", url]
            took, cpu = [], []
            for _ in range(REPEATED):
                before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run([sys.executable, "-m", "mqttlab", *words], cwd=place, check=True, capture_output=True)
                took.append(time.perf_counter() - began)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            print(f"| {name} | {statistics.median(took):.2f} s | {statistics.median(cpu):.2f} s |", flush=True)


if __name__ == "__main__":
    main()
