"""Lines on what a result hangs on although the run is valid: the phase of two loops, or a few losses."""

from __future__ import annotations

from mqttlab.metrics import Flow, Headline
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import captured
from mqttlab.report.text import number

# Of the mean latency, at each end. Where messages wait at both ends for acknowledgements, these are two loops. Which
# comes first where both are due is a matter of microseconds on the hosts, and stays so. With 50 ms each way simulations
# of such hosts differ by a quarter, at regular and at Poisson arrivals, over equal and unequal ways; with one loop,
# which held as much, by 1 %.
NAGLE_PERCENT = 5.0
# A Poisson count of four may be one or ten with the same rate.
LOSS_EVENTS = 5


def of(recording: Recording, numbers: Headline) -> list[str]:
    """A line for each kind of them, of the flow that it moves most; empty where there is none.

    A note in a terminal has two lines of 68 columns.
    """
    return [line for line in (_rules(recording), _phase(recording, numbers.flows), _losses(numbers.flows)) if line]


def _rules(recording: Recording) -> str:
    if not captured.is_of_earlier_rules(recording):
        return ""
    return "an earlier version imported it: importing the files again may change its numbers"


def _phase(recording: Recording, flows: tuple[Flow, ...]) -> str:
    held = max((sum(both) for flow in flows if (both := flow.nagle_percent) and min(both) >= NAGLE_PERCENT), default=0)
    # A capture shows what was; nobody has its scenario.
    if not held or captured.is_import(recording):
        return ""
    return (f"Nagle's algorithm held messages for {number(held, 2)} % of the latency: the phase of two loops decides; "
            "for the range `check --sensitivity`")


def _losses(flows: tuple[Flow, ...]) -> str:
    few = [flow.loss_events for flow in flows if flow.loss_events is not None and flow.loss_events < LOSS_EVENTS]
    if not few:
        return ""
    rests = (f"p99 rests on {counted(few[0], 'event')} of loss" if len(flows) == 1 else
             f"p99 of {counted(len(few), 'flow')} rests on fewer than {LOSS_EVENTS} events of loss")
    return f"{rests}: another run gives another value; measure longer, or repeat"
