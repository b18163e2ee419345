"""Where in a scenario something is wrong or unusual, and what."""

from __future__ import annotations

Location = tuple[int | str, ...]
"""Keys and indices from the top level down, such as ``("groups", 0, "publish", "qos")``."""
Problem = tuple[Location, str]
"""A place, and what is said of it."""
