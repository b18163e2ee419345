"""The catalog: an index of recordings, which can be built again from them at any time.

Recordings are the truth. The catalog has what lists, comparisons and dashboards ask for without opening them: fields,
factors and points of experiments, every metric that is one number, tags, notes, baselines. It is a file of SQLite,
``catalog.db`` among the runs, or a database of PostgreSQL or MariaDB.

    with Catalog.open(url_for(Path("runs")), read_only=True) as catalog:
        catalog.runs(["latency_ms_p99 < 250", "backend = live"], columns=["started", "latency_ms_p99", "directory"])

What is named here is loaded when it is first used: a list needs no more than :mod:`mqttlab.catalog.listed_runs`.

Exceptions:
    CatalogError: it is not there, is of another schema, or is asked for what it does not have.
    CatalogUnavailable: it cannot be reached or written now.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqttlab.catalog.catalog import DEFAULT_COLUMNS, TABLES, Catalog, Scanned
    from mqttlab.catalog.place import CatalogError, CatalogUnavailable, url_for
    from mqttlab.catalog.query import FIELDS

__all__ = ["DEFAULT_COLUMNS", "FIELDS", "TABLES", "Catalog", "CatalogError", "CatalogUnavailable", "Scanned", "url_for"]
HOMES = {"place": ("CatalogError", "CatalogUnavailable", "url_for"), "query": ("FIELDS",),
         "catalog": ("DEFAULT_COLUMNS", "TABLES", "Catalog", "Scanned")}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
