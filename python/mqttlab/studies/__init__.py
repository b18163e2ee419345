"""Published experiments that can be rerun, each a package of this one, with its data.

A study turns each printed cell into a scenario, runs every scenario (simulated, or live the cells that its
``live.toml`` names), and puts published values and ours side by side. Its package has

- ``STUDY``, a :class:`Study`, in ``__init__.py``;
- ``experiment.py``, the scenarios and what is measured of them, and ``judges.py``, which decide its claims;
- ``published/``, the printed values and ``claims.toml``;
- ``scenarios/``, where its scenarios are files, and ``experiments/``, families of them; ``README.md``, the readings
  chosen; ``results.md``, both sides.

A new study is a new package; :mod:`mqttlab.studies.catalogue` finds it.
"""

from mqttlab.studies.simulate import LiveRuns, Simulations, perform_live, simulate
from mqttlab.studies.study import Study
from mqttlab.studies.table import Cell, Comparison

__all__ = ["Cell", "Comparison", "LiveRuns", "Simulations", "Study", "perform_live", "simulate"]
