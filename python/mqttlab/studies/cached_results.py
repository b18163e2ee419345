"""What was measured of simulations, kept in small files, so that a long pass that is stopped goes on.

A file is named after its plan, the engine that simulated it and the version that measured it, so that what is kept
answers the same question. It does not know the sources in Python: a change of what is measured takes another directory.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from mqttlab import scratch
from mqttlab.engine import engine_path
from mqttlab.errors import UsageError
from mqttlab.version import __version__

if TYPE_CHECKING:
    from mqttlab.plan import Plan
    from mqttlab.recording import Recording

T = TypeVar("T")


class CachedResults(Generic[T]):
    """A directory of measured values, a file each."""

    def __init__(self, directory: Path, measure: Callable[[Recording], T]) -> None:
        """Keep what ``measure`` finds; what its type holds is read from its annotations."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._type = typing.get_type_hints(measure)["return"]

    def find(self, plan: Plan) -> T | None:
        """What was measured of this plan before, if anything was."""
        path = self._place(plan)
        if not path.is_file():
            return None
        try:
            found: T = _read(self._type, json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"{path} is not what was measured of a simulation ({error}); remove it") from error
        return found

    def put(self, plan: Plan, value: T) -> None:
        """Keep a value; whoever looks meanwhile sees all of it or nothing."""
        path = self._place(plan)
        with scratch.unfinished(path) as made:
            made.write_text(json.dumps(value, default=written), encoding="utf-8")

    def _place(self, plan: Plan) -> Path:
        told = json.dumps([__version__, _engine(), self._type.__module__, plan], sort_keys=True)
        return self._directory / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.json"


@functools.cache
def _engine() -> str:
    """Names the engine's program: another one may simulate the same plan otherwise."""
    return hashlib.sha256(engine_path().read_bytes()).hexdigest()


def written(value: Any) -> Any:
    """What JSON has no form of: data classes, arrays and their numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"no form for {type(value).__name__}")


def _read(kind: Any, told: Any) -> Any:
    """A value of this type from what JSON has of it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind)
        if set(told) != set(types):
            raise ValueError(f"{kind.__name__} has other fields")
        return kind(**{name: _read(types[name], value) for name, value in told.items()})
    if np.ndarray in (kind, origin):
        return np.asarray(told)
    if _is(origin, Mapping):
        return {inner[0](key): _read(inner[1], value) for key, value in told.items()}
    if origin is tuple and inner[-1] is Ellipsis:
        return tuple(_read(inner[0], value) for value in told)
    if origin is tuple:
        return tuple(_read(each, value) for each, value in zip(inner, told, strict=True))
    if _is(origin, Sequence):
        return [_read(inner[0], value) for value in told]
    return told


def _is(origin: Any, kind: type) -> bool:
    """Whether a generic's origin is a class of this kind; that of a union is none."""
    return isinstance(origin, type) and issubclass(origin, kind)
