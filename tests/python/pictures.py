"""The dashboard's pictures in docs: ``python tests/python/pictures.py RUNS RUN`` makes them, by the tests' browser."""

from __future__ import annotations

import sys
from pathlib import Path

from dashboards import dashboard, visitor

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main(runs: Path, run: str) -> None:
    """Make them all from one recording."""
    pages = {"run": f"/run/{run}", "time": f"/run/{run}?part=time", "parts": f"/run/{run}?part=parts", "runs": "/",
             "configure": "/configure"}
    with dashboard(runs) as served, visitor(served) as somebody:
        for name, path in pages.items():
            somebody.go(path)
            somebody.page.set_viewport_size({"width": 1280, "height": 1420 if name == "run" else 900})
            somebody.ready()
            somebody.page.screenshot(path=PICTURES / f"dashboard-{name}.png")
        somebody.go(f"/run/{run}?part=recent")
        somebody.page.get_by_role("link", name="ladder of message").first.click()
        somebody.page.get_by_role("heading", name="Ladder", exact=True).wait_for()
        somebody.ready()
        somebody.page.screenshot(path=PICTURES / "dashboard-ladder.png")
        somebody.page.set_viewport_size({"width": 400, "height": 800})
        somebody.go(f"/run/{run}")
        somebody.page.screenshot(path=PICTURES / "dashboard-narrow.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
