"""How much processor time the servers of a run took, and how much for each delivery.

Known where the engine started every server: live. A simulated server takes none, and of a server that runs elsewhere,
or of an import, nobody counted. Samples are cumulative. Counted is from the first sample within the measurement to the
last, and the deliveries are those between the same two instants.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import sums
from mqttlab.metrics.application import has_messages
from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording

# The kernel counts in ticks of 10 ms, of user and system time apart. Of less than ten ticks a fifth may be rounding.
TICKS_S = 0.1
US_PER_S = 1e6


def processor(recording: Recording) -> pl.DataFrame:
    """One row for all servers together: ``scope`` (``run``), ``name``, and the metrics of ``PROCESSOR``.

    Empty where a server's time is not known: nobody sampled it twice, or a process of it ended meanwhile and took its
    count along.
    """
    samples = recording.resources
    if samples.is_empty():
        return pl.DataFrame()
    used = (pl.col("cpu_user_s") + pl.col("cpu_system_s")).alias("used_s")
    samples = samples.filter(pl.col("process") == "server", measurement(recording).holds(pl.col("at_ns"))).select(
        "name", "at_ns", used).sort("name", "at_ns")
    begin, end = samples["at_ns"].min(), samples["at_ns"].max()
    if not _all_servers(recording, samples) or begin == end:
        return pl.DataFrame()
    steps = samples.select(pl.col("used_s").diff().over("name"))["used_s"].drop_nulls()
    if (steps < 0).any():
        return pl.DataFrame()
    seconds, deliveries = float(steps.sum()), _deliveries(recording, begin, end)
    each = US_PER_S * seconds / deliveries if deliveries and seconds >= TICKS_S else None
    return pl.DataFrame(
        [("run", None, seconds, each)], orient="row",
        schema={"scope": pl.String, "name": pl.String, "server_cpu_s": pl.Float64,
                "server_cpu_us_per_delivery": pl.Float64})


def _all_servers(recording: Recording, samples: pl.DataFrame) -> bool:
    """Whether every server was sampled; earlier recordings have one row for all of them together."""
    planned = {server["name"] for server in recording.plan["servers"]}
    found = set(samples["name"])
    return bool(found) and (found == planned or found == {"servers"})


def _deliveries(recording: Recording, begin: object, end: object) -> int:
    if not has_messages(recording) or sums.is_summed(recording):
        return 0
    between = pl.col("received_ns").is_between(pl.lit(begin), pl.lit(end), closed="left")
    return int(recording.collect(recording.scan("messages").filter(
        pl.col("fate") == "delivered", between).select(pl.len())).item())
