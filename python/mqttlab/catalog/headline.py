"""The headline of a run as columns, so that SQL can ask for it: taken from the values that the catalog keeps.

Of several flows, counts are sums, and latencies are those of the slowest. Bytes are those of the group that has most.
The migration ``v0003_headline.py`` says the same in SQL, for the runs of older catalogs.
"""

from __future__ import annotations

from collections.abc import Iterable

LATENCIES = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
BYTES = ("ip_kb_per_device_hour_up", "ip_kb_per_device_hour_down")
COLUMNS = ("messages_sent", "messages_delivered", "undelivered_percent", *LATENCIES, *BYTES)


def headline_columns(values: Iterable[tuple[str, str, str, str, float]]) -> dict[str, float | None]:
    """The columns of one run; ``None`` for what it does not tell.

    Args:
        values: metric, scope, name in the scope, unit and value.
    """
    by_scope: dict[tuple[str, str], list[float]] = {}
    for metric, scope, _, _, value in values:
        by_scope.setdefault((metric, scope), []).append(value)

    def whole(metric: str) -> float | None:
        # A message to two groups is sent once: the run as a whole knows, where it has such a number.
        found = by_scope.get((metric, "run")) or by_scope.get((metric, "groups"))
        return sum(found) if found else None

    sent, delivered, expected = map(whole, ("messages_sent", "messages_delivered", "deliveries_expected"))
    known = expected is not None and delivered is not None and expected > 0
    return {
        "messages_sent": None if sent is None else int(sent),
        "messages_delivered": None if delivered is None else int(delivered),
        "undelivered_percent": 100 * ((expected or 0) - (delivered or 0)) / (expected or 1) if known else None,
        **{name: max(by_scope.get((name, "groups"), []), default=None) for name in LATENCIES},
        **{name: max(by_scope.get((name, "group"), []), default=None) for name in BYTES},
    }
