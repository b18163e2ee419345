"""Chooses what of a fuzz campaign is committed: small inputs that reach each edge of the code that it has reached.

    python fuzz/choose.py TARGET... [--found target/fuzz/found] [--largest 3000] [--bytes 250000]

The input with most new edges a byte comes first, until no edge is new or the bytes are spent. Edges that inputs by
hand reach are not new. The chosen inputs replace `fuzz/corpus/TARGET/found`, of which they may be part. libFuzzer's
own `-merge=1` knows no such bound. `scripts/fuzz` builds the targets.
"""

from __future__ import annotations

import argparse
import heapq
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"
Edges = np.ndarray[tuple[int], np.dtype[np.uint32]]
Covered = np.ndarray[tuple[int], np.dtype[np.bool_]]


def edges(program: Path, inputs: list[Path]) -> dict[Path, Edges]:
    """The edges that each input reaches, as libFuzzer numbers them.

    Raises:
        subprocess.CalledProcessError: an input makes the target fail.
    """
    with tempfile.TemporaryDirectory() as name:
        sink, source, control = (Path(name) / word for word in ("sink", "source", "control"))
        sink.mkdir()
        source.mkdir()
        for number, path in enumerate(inputs):
            shutil.copyfile(path, source / str(number))
        options = ["-set_cover_merge=1", "-use_counters=0", "-timeout=30", "-max_len=65536"]
        subprocess.run([program, *options, f"-merge_control_file={control}", sink, source],
                       check=True, capture_output=True)
        return read_control(control, inputs)


def read_control(control: Path, inputs: list[Path]) -> dict[Path, Edges]:
    """What libFuzzer has written of inputs that are called by their numbers."""
    reached = dict[Path, Edges]()
    with control.open(encoding="utf-8") as lines:
        count, _ = int(next(lines)), next(lines)
        files = [inputs[int(Path(next(lines).strip()).name)] for _ in range(count)]
        for line in lines:
            kind, number, *numbers = line.split()
            if kind == "FT":
                reached[files[int(number)]] = np.array(numbers, dtype=np.uint32)
    return reached


def chosen(reached: dict[Path, Edges], covered: Covered, most_bytes: int) -> list[Path]:
    """Inputs by new edges a byte, beyond those that are covered, which grow by what is chosen."""
    size = {path: path.stat().st_size for path in reached}
    heap = [(-len(found) / size[path], str(path), path) for path, found in reached.items()]
    heapq.heapify(heap)
    took, spent = list[Path](), 0
    while heap:
        _, name, path = heapq.heappop(heap)
        new = int(np.count_nonzero(~covered[reached[path]]))
        # The others have fewer than they had, too: whoever is first with what he has now is taken.
        if new and heap and -new / size[path] > heap[0][0]:
            heapq.heappush(heap, (-new / size[path], name, path))
        elif new and spent + size[path] <= most_bytes:
            covered[reached[path]] = True
            spent += size[path]
            took.append(path)
    return took


def main() -> int:
    """Choose, and say what came of it; 1 where a target is not built."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("target", nargs="+")
    parser.add_argument("--found", type=Path, default=ROOT / "target" / "fuzz" / "found")
    parser.add_argument("--largest", type=int, default=3_000, help="bytes of an input")
    parser.add_argument("--bytes", type=int, default=250_000, help="bytes of a target's inputs")
    asked = parser.parse_args()
    for target in asked.target:
        program = next((ROOT / "target" / "fuzz").glob(f"*/release/{target}"), None)
        if program is None:
            print(f"{target} is not built; run scripts/fuzz 1 {target}", file=sys.stderr)
            return 1
        place = CORPUS / target / "found"
        place.mkdir(parents=True, exist_ok=True)
        made = sorted(path for path in place.parent.iterdir() if path.is_file())
        found = {path.name: path for folder in (asked.found / target, place) for path in sorted(folder.glob("*"))
                 if 0 < path.stat().st_size <= asked.largest}
        reached = edges(program, [*made, *found.values()])
        every = np.unique(np.concatenate(list(reached.values())))
        covered = np.zeros(int(every.max()) + 1, dtype=np.bool_)
        for path in made:
            covered[reached.pop(path, every[:0])] = True
        by_hand = int(covered.sum())
        with tempfile.TemporaryDirectory() as name:
            took = [Path(shutil.copy(path, name)) for path in chosen(reached, covered, asked.bytes)]
            shutil.rmtree(place)
            shutil.copytree(name, place)
            size = sum(path.stat().st_size for path in took)
        print(f"{target}: {len(took)} inputs of {len(found)}, {size} bytes; {by_hand} edges by hand, "
              f"{int(covered.sum())} with them, {len(every)} reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
