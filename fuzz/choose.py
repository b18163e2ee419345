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

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"


def edges(program: Path, inputs: list[Path]) -> dict[Path, frozenset[str]]:
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
        count, _, *lines = control.read_text(encoding="utf-8").splitlines()
        files = [inputs[int(Path(line).name)] for line in lines[:int(count)]]
        reached = (line.split() for line in lines[int(count):])
        return {files[int(words[1])]: frozenset(words[2:]) for words in reached if words[0] == "FT"}


def chosen(reached: dict[Path, frozenset[str]], covered: set[str], most_bytes: int) -> list[Path]:
    """Inputs by new edges a byte, beyond those that are covered, which grow by what is chosen."""
    size = {path: path.stat().st_size for path in reached}
    heap = [(-len(found) / size[path], str(path), path) for path, found in reached.items()]
    heapq.heapify(heap)
    took, spent = list[Path](), 0
    while heap:
        _, name, path = heapq.heappop(heap)
        new = len(reached[path] - covered)
        # The others have fewer than they had, too: whoever is first with what he has now is taken.
        if new and heap and -new / size[path] > heap[0][0]:
            heapq.heappush(heap, (-new / size[path], name, path))
        elif new and spent + size[path] <= most_bytes:
            covered |= reached[path]
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
        every = frozenset().union(*reached.values())
        covered = {edge for path in made for edge in reached.pop(path, ())}
        by_hand = len(covered)
        with tempfile.TemporaryDirectory() as name:
            took = [Path(shutil.copy(path, name)) for path in chosen(reached, covered, asked.bytes)]
            shutil.rmtree(place)
            shutil.copytree(name, place)
            size = sum(path.stat().st_size for path in took)
        print(f"{target}: {len(took)} inputs of {len(found)}, {size} bytes; {by_hand} edges by hand, "
              f"{len(covered)} with them, {len(every)} reached")
    return 0


if __name__ == "__main__":
    sys.exit(main())
