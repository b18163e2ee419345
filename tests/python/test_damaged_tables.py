"""A table with bytes inserted, changed or cut off is one line with its name, or is read: never the text of a panic."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab.engine import engine_path
from secretly import written

DAMAGES = 300


def damaged(data: bytes, dice: random.Random) -> bytes:
    at, length = dice.randrange(len(data)), dice.choice((1, 2, 8, 100))
    match dice.randrange(3):
        case 0:
            return data[:at] + dice.randbytes(length) + data[at:]
        case 1:
            return data[:at] + dice.randbytes(length) + data[at + length:]
        case _:
            return data[:at]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("damaged")
    assert mqttlab("run", written(place, '"a password"'), "--runs", place / "runs", "--catalog", "none").returncode == 0
    [run] = (place / "runs").glob("kept-*")
    for file in (*run.glob("*_sums.parquet"), run / "summary.json"):
        file.unlink()
    return run


def summed_up(run: Path, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([engine_path(), "summarise", run, "--out", out], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("table", ["packets", "messages", "control_packets", "events"])
def test_the_engine_names_a_table_that_is_damaged_and_does_not_panic(table: str, run: Path, tmp_path: Path) -> None:
    file = run / f"{table}.parquet"
    whole, dice, refused = file.read_bytes(), random.Random(f"{table} 1"), 0
    try:
        for number in range(DAMAGES // 4):
            file.write_bytes(damaged(whole, dice))
            done = summed_up(run, tmp_path / str(number))
            assert done.returncode in (0, 1) and "panicked" not in done.stderr, done.stderr
            assert done.stderr.count("\n") <= 1 and len(done.stderr) < 600, done.stderr
            if done.returncode != 0:
                refused += 1
                assert str(file) in done.stderr, done.stderr
    finally:
        file.write_bytes(whole)
    assert refused > DAMAGES // 16, "most of them cannot be read"


def test_a_report_of_a_damaged_table_is_one_line_with_what_to_do(run: Path) -> None:
    file = run / "packets.parquet"
    whole, dice, refused = file.read_bytes(), random.Random(3), 0
    try:
        for _ in range(12):
            file.write_bytes(damaged(whole, dice))
            done = mqttlab("report", run)
            if done.returncode != 0:
                refused += 1
                assert done.stderr.count("\n") == 1 and "panicked" not in done.stderr, done.stderr
    finally:
        file.write_bytes(whole)
    assert refused > 3
