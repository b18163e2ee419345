"""Traces and tables of messages that are damaged on purpose: is each a scenario that can be run, or one line?

    python tests/soak/given.py --count 100000 --seed 1
    python tests/soak/given.py --seed 1 --only 4711        one of them again, with its traceback

Each file is drawn from the seed and its number: bytes are others, are gone or are repeated, words stand where none
belong, and fields are separated otherwise. A scenario that names the file is then compiled to a plan, within a bound of
memory and time.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from mqttlab.scenario.compile import compile_plan
from mqttlab.scenario.load import ScenarioError, parse

MEMORY_BYTES = 6 << 30
WITHIN_S = 30
# A problem is shown on a terminal: it may not have the whole of a damaged line.
LINE_MAX = 600
TRACE = """
[[networks]]
between = ["field", "broker"]
up = { trace = "FILE" }
down = { trace = "FILE" }
[[groups]]
name = "sensors"
host = "field"
publish = { topic = "t", payload = "20 B", rate = "1 /s" }
subscribe = ["#"]
"""
REPLAY = """
[[groups]]
name = "sensors"
host = "broker"
count = 3
publish = { replay = "FILE", topic = "t", payload = "20 B" }
subscribe = ["#"]
"""
# Each whole file, and the scenario that names it.
WHOLE: dict[str, tuple[bytes, str]] = {
    "columns.csv": (b"time_s,rate_kbit,delay_ms,loss_percent\n0,1000,20,0\n1.5,500,30,1\n3,2000,10,0\n", TRACE),
    "units.csv": (b"time,rate,delay\n0 s,1 Mbit/s,20 ms\n1.5 s,500 kbit/s,30 ms\n", TRACE),
    "mahimahi.up": (b"0\n5\n12\n20\n20\n33\n", TRACE),
    "messages.csv": (b'time,topic,payload,client,qos\n0,a,1,1,0\n1.5,b,"{""v"": 19.0}",2,1\n2,a,3,1,2\n', REPLAY),
    "sizes.csv": (b"time,topic,size\n2026-01-01T08:00:00Z,a,100\n2026-01-01T08:00:00.500Z,a,200\n", REPLAY),
}
WORDS = (b"-", b"1e400", b"nan", b"inf", b'"', b",", b"\n", b"\x00", b"99999999999999999999", b"\xff", b"\r", b";",
         b"1e-10", b"1e18", b"\xef\xbb\xbf", b"9999-12-31T23:59:59Z")
SEPARATORS = (b";", b"\t", b",,")


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """The file after one to four changes."""
    here = bytearray(whole)
    for _ in range(dice.randint(1, 4)):
        begin, end = sorted(dice.randrange(len(here) + 1) for _ in range(2))
        match dice.randrange(7):
            case 0 if here:
                here[dice.randrange(len(here))] = dice.randrange(256)
            case 1:
                here = here[:begin]
            case 2:
                here[begin:begin] = dice.choice(WORDS)
            case 3:
                here = here * dice.choice((2, 50))
            case 4:
                del here[begin : begin + dice.randint(1, 3)]
            case 5:
                here = here[:begin] + here[end:]
            case _:
                here = here.replace(b",", dice.choice(SEPARATORS))
    return bytes(here)


def judge(number: int, seed: int, directory: Path) -> tuple[str, str]:
    """What became of a damaged file, and what is wrong with that; nothing where it is as it should be."""
    dice = random.Random(f"{seed}/{number}")
    name = dice.choice(list(WHOLE))
    whole, scenario = WHOLE[name]
    path = directory / name
    path.write_bytes(damaged(whole, dice))
    text = 'name = "given"\nbackend = "sim"\nphases = { duration = "5 s" }\n' + scenario.replace("FILE", str(path))
    began = time.monotonic()
    try:
        compile_plan(parse(text))
        words, fault = "taken", ""
    except ScenarioError as error:
        words = "refused"
        longest = max(map(len, str(error).split("\n")))
        fault = f"a line of {longest} characters" if longest > LINE_MAX else ""
    except Exception:  # whatever it is, it is the fault that is looked for
        words, fault = "failed", traceback.format_exc()
    took_s = time.monotonic() - began
    return f"{name} {words}", fault or (f"it took {took_s:.0f} s" if took_s > WITHIN_S else "")


def main() -> int:
    """Judge so many files, print each fault and how to have it again; 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    faults, kinds = 0, Counter[str]()
    with tempfile.TemporaryDirectory(prefix="given-") as directory:
        for number in range(asked.count) if asked.only is None else [asked.only]:
            words, fault = judge(number, asked.seed, Path(directory))
            kinds[words] += 1
            if fault:
                faults += 1
                print(f"\n{number}: {words}\n{fault}\n"
                      f"again: python tests/soak/given.py --seed {asked.seed} --only {number}", flush=True)
    told = ", ".join(f"{word} {count}" for word, count in sorted(kinds.items()))
    print(f"{kinds.total()} files ({told}), {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
