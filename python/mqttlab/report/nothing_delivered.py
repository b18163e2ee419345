"""The first sentence of a run to which nothing was delivered: what the recording shows of it, and no cause beside that.

The engine stores such a sentence with its counts. It is told again from the tables here, with what arrived all the
same: copies from the broker's store, and messages of other phases. What to look at is named where the recording shows
it.
"""

from __future__ import annotations

import polars as pl

from mqttlab.metrics import fates, sums
from mqttlab.metrics.application import has_messages, measured
from mqttlab.metrics.headline import waiting_messages
from mqttlab.plurals import counted
from mqttlab.recording import Recording

NOTHING_DELIVERED = "Nothing was delivered"
"""How the engine's sentence begins, in the recording."""
SHOWN = 3


def told(recording: Recording, stored: str) -> str:
    """The sentence, in place of the one that the recording stores.

    Args:
        recording: one with a sentence that begins with :data:`NOTHING_DELIVERED`.
        stored: that sentence, which is all that is known where messages were added up.
    """
    if not has_messages(recording) or sums.is_summed(recording):
        return stored.partition(" See whether ")[0].partition(" Compare topics ")[0]
    absent = fates.absent(recording)
    expected = int(absent["count"].sum())
    if expected:
        why = "; ".join(f"{count:,} {fates.in_words(fate, cause)}" for fate, cause, count in absent.head(SHOWN).rows())
        more = f"; {counted(absent.height - SHOWN, 'more cause')}" if absent.height > SHOWN else ""
        deliveries = counted(expected, "expected delivery", "expected deliveries")
        words = f"{NOTHING_DELIVERED} of the measurement: of {deliveries} none happened ({why}{more})."
    else:
        words = (f"{NOTHING_DELIVERED}: no subscription was for the messages of the measurement when the broker had "
                 "them.")
    return " ".join([words, *_came(recording), *_look_at(recording, absent)])


def _came(recording: Recording) -> list[str]:
    """What arrived all the same, and what never left."""
    fate = pl.col("fate").cast(pl.String)
    row = recording.collect(recording.scan("messages").select(
        stored=(fate == "retained").sum(),
        early=((fate == "delivered") & (pl.col("phase").cast(pl.String) == "warm_up")).sum(),
        late=((fate == "delivered") & (pl.col("phase").cast(pl.String) == "cool_down")).sum())).row(0, named=True)
    said = [f"{counted(row['stored'], 'copy', 'copies')} came from the broker's store."] if row["stored"] else []
    said += [f"{counted(row[name], 'message')} of the {phase} arrived."
             for name, phase in (("early", "warm-up"), ("late", "cool-down")) if row[name]]
    if waiting := sum(waiting_messages(recording).values()):
        said.append(f"{counted(waiting, 'message')} had not left the clients when the run ended.")
    return said


def _look_at(recording: Recording, absent: pl.DataFrame) -> list[str]:
    """What to look at, where the recording shows it."""
    events = recording.events
    if events.is_empty() or absent.is_empty():
        return []
    kind = pl.col("kind").cast(pl.String)
    denied = events.filter(kind == "refused", pl.col("detail").cast(pl.String).str.starts_with("SUBSCRIBE"))
    if refused := denied["client"].n_unique():
        return [f"The broker refused subscriptions of {counted(refused, 'client')}: see its access rules."]
    if "sources" in recording.plan:
        # An answer that was not captured may have been given.
        return []
    asked, answered = (set(events.filter(kind == name)["client"].drop_nulls()) for name in ("subscribe", "suback"))
    if never := len(asked - answered):
        return [f"The broker answered no SUBSCRIBE of {counted(never, 'client')}: see its log and its access rules."]
    # What waits at the clients, and what is lost for a known cause, has nothing to do with the broker's rules.
    waiting = recording.collect(measured(recording).filter(
        pl.col("fate").is_in(["under_way", "unknown"]), pl.col("acknowledged_ns").is_not_null(),
        pl.col("cause").is_null()).select(pl.len())).item()
    if waiting and recording.plan.get("backend") == "live":
        return ["The subscriptions were answered and messages acknowledged. Why these stayed at the broker is not "
                "recorded: see its log and its access rules."]
    return []
