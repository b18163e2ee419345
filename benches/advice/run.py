"""200 experiments by chance, simulated: is a choice ever recommended against an equivalent one that is cheaper?

Each number draws devices, a load, a network and two or three levels of one thing that can be chosen; ``mqttlab try``
simulates them, and ``mqttlab report`` would print what this reads. The judge knows nothing of the advice's code: it
takes the values of the table, tests equivalence by two one-sided t tests of the pairs, and adds up the bytes.

Run ``benches/advice/run.py --out benches/advice/RESULTS.md``. Lines of ``results.jsonl`` that are there already are
not simulated again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
from scipy.stats import t as student

from mqttlab.analysed import analysed
from mqttlab.experiments import ExperimentDirectory
from mqttlab.report.experiment.answer import answer

HERE = Path(__file__).parent
NUMBERS = range(1, 201)
MARGIN = 0.05
CHOICES = {"qos": ["0", "1", "2"], "transport": ["tcp", "tls", "websocket", "wss"], "mqtt": ["3.1.1", "5"],
           "keep-alive": ["20s", "60s", "5min"]}
NETWORKS = ("lte-m", "nb-iot", "lte", "wifi")


def options(number: int) -> dict[str, str]:
    """What experiment ``number`` asks, as options of ``mqttlab try``."""
    chance = random.Random(number)
    option = chance.choice(list(CHOICES))
    levels = chance.sample(CHOICES[option], k=min(len(CHOICES[option]), chance.choice((2, 3))))
    drawn = {option: ",".join(levels), "clients": str(chance.randint(1, 12)), "every": f"{chance.randint(1, 20)}s",
             "payload": f"{chance.choice((10, 100, 400, 2000))}B", "seed": str(number),
             "repetitions": str(chance.choice((2, 3, 5, 8))), "duration": f"{chance.choice((30, 60, 120))}s"}
    if option != "qos":
        drawn["qos"] = str(chance.randint(0, 2))
    if chance.random() < 0.6:
        return drawn | {"network": chance.choice(NETWORKS)}
    return drawn | {"delay": f"{chance.choice((5, 50, 300))}ms", "loss": f"{chance.choice((0, 1, 2, 5))}%",
                    "bandwidth": f"{chance.choice((100, 1000))}kbit/s"}


def performed(number: int) -> dict[str, Any]:
    """The experiment's advice, and what the judge says of it."""
    asked = options(number)
    with tempfile.TemporaryDirectory() as place:
        words = [word for option, value in asked.items() for word in (f"--{option}", value)]
        done = subprocess.run(
            [Path(sys.executable).with_name("mqttlab"), "try", *words, "--simulate", "--runs", place, "--catalog",
             "none", "--no-html"], capture_output=True, text=True, check=False)
        found = [path.parent for path in Path(place).glob("*/journal.jsonl")]
        if not found:
            raise SystemExit(f"experiment {number}: {done.stderr}")
        directory = ExperimentDirectory.open(found[0])
        analysis = analysed(directory)
        table = directory.table()
    [row] = analysis.recommendations.rows if analysis.recommendations else [None]
    choice = None if row is None or row.choice is None else next(iter(row.choice.values()))
    against = [] if choice is None else judged(table, next(iter(asked)), choice)
    return {"number": number, "options": asked, "choice": choice, "against": against, "said": answer(analysis).text}


def judged(table: pl.DataFrame, factor: str, choice: str) -> list[str]:
    """The levels that deliver enough, are equivalent to the choice in the median latency, and need fewer bytes."""
    runs = table.filter(pl.col("state") == "done", pl.col("kind") == "run")
    values = {(level, metric): dict(part.select("block", "value").rows()) for (level, metric), part in
              runs.filter(pl.col("value").is_not_null()).group_by(factor, "metric")}
    latency, undelivered = "latency_ms_p50", "undelivered_percent"
    ways = ("ip_kb_per_device_hour_up", "ip_kb_per_device_hour_down")
    bytes_of = {level: sum(statistics.fmean(values[level, way].values()) for way in ways)
                for level in {level for level, _ in values}}
    return sorted(level for level in bytes_of if level != choice
                  and bytes_of[choice] > bytes_of[level] * (1 + MARGIN)
                  and enough(list(values[level, undelivered].values()))
                  and equivalent(values[choice, latency], values[level, latency]))


def enough(shares: list[float]) -> bool:
    """Whether at most 1 % stays undelivered, against the upper 95 % limit of the mean."""
    if max(shares) == 0:
        return True
    half = student.ppf(0.975, len(shares) - 1) * statistics.stdev(shares) / math.sqrt(len(shares))
    return statistics.fmean(shares) + half <= 1.0


def equivalent(first: dict[int, float], second: dict[int, float]) -> bool:
    """Whether two one-sided tests at 5 % refuse a ratio of 5 % or more, over the blocks that both have."""
    apart = [math.log(second[block] / first[block]) for block in sorted(set(first) & set(second))]
    if len(apart) < 2:
        return False
    mean, error = statistics.fmean(apart), statistics.stdev(apart) / math.sqrt(len(apart))
    left = math.log1p(MARGIN) - abs(mean)
    return left > 0 if error < 1e-12 else float(student.sf(left / error, len(apart) - 1)) <= 0.05


def text(rows: list[dict[str, Any]]) -> str:
    """The results as a page."""
    against = [row for row in rows if row["against"]]
    kinds = {"the choice has the best median itself": "has the lowest",
             "no difference that matters, so the cheapest": "that matters: choose",
             "no difference shown, so the cheapest": "runs show no difference",
             "no choice delivers enough": "o choice delivers enough"}
    lines = ["# Advice of experiments by chance", "",
             f"{len(rows)} experiments, simulated; numbers {rows[0]['number']} to {rows[-1]['number']} are the seeds. "
             "`results.jsonl` has each with its options, its choice and its sentences.", "",
             f"**Recommended against an equivalent choice that needs over 5 % fewer bytes: {len(against)}.**", "",
             "| What the advice rests on | Experiments |", "|---|---:|"]
    lines += [f"| {words} | {sum(sign in row['said'] for row in rows)} |" for words, sign in kinds.items()]
    lines += ["", *(f"- {row['number']}: {row['said']} Against: {', '.join(row['against'])}." for row in against)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Simulate what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="page to write")
    out = parser.parse_args().out
    kept = HERE / "results.jsonl"
    known = {row["number"]: row for line in (kept.read_text("utf-8").splitlines() if kept.exists() else [])
             for row in [json.loads(line)]}
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(performed, [number for number in NUMBERS if number not in known]):
            known[row["number"]] = row
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    out.write_text(text([known[number] for number in NUMBERS]), encoding="utf-8")


if __name__ == "__main__":
    main()
