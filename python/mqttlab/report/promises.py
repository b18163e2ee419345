"""What MQTT promises and did not happen, in words: the one text that terminal, page and dashboard show first.

Numbers are those of :mod:`mqttlab.metrics.headline`. Each kind of promise has a label, as a terminal shows it.
"""

from __future__ import annotations

from mqttlab.foreign import visible
from mqttlab.metrics import Flow, Headline, fates
from mqttlab.metrics.acknowledgements import PACKETS
from mqttlab.plurals import counted
from mqttlab.report.text import number

CAUSES_NAMED = 2


def of(flow: Flow) -> list[tuple[str, str]]:
    """A label and a sentence without its stop for each promise that was not kept; empty where all were."""
    told = [("copies", came_twice(flow)), ("order", _behind(flow)), ("promise", _dropped(flow)),
            ("retained", _not_stored(flow))]
    return [(label, words) for label, words in told if words]


def came_twice(flow: Flow) -> str:
    """What came more than once, and why, where that is known; empty where nothing did."""
    if not (found := flow.copies):
        return ""
    if found.messages is None:
        words = f"{counted(found.extra, 'second copy', 'second copies')} of messages came"
    else:
        times = ("twice" if found.extra == found.messages else
                 f"more than once ({counted(found.extra, 'copy', 'copies')})")
        words = f"{number(found.messages)} of {counted(flow.delivered, 'message')} came {times}"
    words += ", which breaks the promise of QoS 2" if found.at_qos_2 else ""
    return words + (f": {'; '.join(found.why[:2])}" if found.why else "")


def of_wills(numbers: Headline) -> list[str]:
    """A sentence without its stop for each event whose wills came late or not at all."""
    told = []
    for wills in numbers.wills:
        words = [f"{number(count)} {what}" for count, what in (
            (wills.late, "came later"), (wills.missing, "did not come")) if count]
        told.append(
            f"Of {counted(wills.owed, 'copy', 'copies')} of wills of {visible(wills.group)}, due within 1.5 "
            f"keep-alives ({number(wills.within_s, 3)} s), {' and '.join(words)}, which breaks the promise of a will "
            "(MQTT §3.1.2.5, §3.1.2.10)")
    return told


def _behind(flow: Flow) -> str:
    if flow.broken is None or not flow.broken.behind:
        return ""
    return (f"{number(flow.broken.behind)} of {counted(flow.delivered, 'message')} came behind a later one of the same "
            "publisher and topic, which breaks the promise of order (MQTT §4.6)")


def _dropped(flow: Flow) -> str:
    dropped = () if flow.broken is None else flow.broken.dropped
    if not dropped:
        return ""
    whole = counted(sum(count for _, count in dropped), "delivery", "deliveries")
    known = [fates.because("lost", cause) for cause, _ in dropped if cause is not None]
    why = f": {'; '.join(known[:CAUSES_NAMED])}" if known else ""
    return (f"{whole} of messages acknowledged by {PACKETS[flow.qos or 1]} did not happen, which breaks the promise of "
            f"QoS {flow.qos}{why}")


def _not_stored(flow: Flow) -> str:
    found = flow.stored
    if found is None or not found.missing:
        return ""
    return (f"{number(found.missing)} of {counted(found.owed, 'stored message')} did not come to new subscriptions, "
            "which breaks the promise of RETAIN (MQTT §3.3.1.3)")
