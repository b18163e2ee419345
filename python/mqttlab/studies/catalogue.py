"""The studies, by name: the packages of :mod:`mqttlab.studies`."""

from __future__ import annotations

import importlib
import pkgutil

import mqttlab.studies
from mqttlab.studies.study import Study


def known() -> dict[str, Study]:
    """Every study that is installed, by its name."""
    names = sorted(module.name for module in pkgutil.iter_modules(mqttlab.studies.__path__) if module.ispkg)
    return {name: importlib.import_module(f"mqttlab.studies.{name}").STUDY for name in names}
