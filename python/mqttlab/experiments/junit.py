"""JUnit XML: thresholds as test cases, for pipelines.

A broken threshold is a failure, an undecided one is skipped, a run without a result is an error. What an undecided
threshold means for the pipeline is the exit status's matter (5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.thresholds import Judgement

# XML 1.0 has no control characters but tab and line ends.
_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(name: str, judged: Sequence[Judgement], missing: Iterable[RunRecord], seconds: float) -> str:
    """The document.

    Args:
        name: of the scenario or the experiment.
        judged: its thresholds.
        missing: runs without a result that counts.
        seconds: that all runs took.
    """
    lost = list(missing)
    suite = ElementTree.Element("testsuite", {
        "name": _text(name), "tests": str(len(judged) + len(lost)),
        "failures": str(sum(each.verdict == "broken" for each in judged)), "errors": str(len(lost)),
        "skipped": str(sum(each.verdict == "undecided" for each in judged)), "time": f"{seconds:.3f}"})
    for each in judged:
        case = ElementTree.SubElement(suite, "testcase", {
            "classname": _text(f"{name}.{each.point}" if each.point else name), "name": _text(each.name)})
        if each.verdict != "held":
            kind = {"broken": "failure", "undecided": "skipped"}[each.verdict]
            ElementTree.SubElement(case, kind, {"message": _text(f"{each.verdict}: {each.words}")})
        ElementTree.SubElement(case, "system-out").text = _text(each.words)
    for record in lost:
        levels = ", ".join(f"{factor} {level}" for factor, level in record.levels.items())
        case = ElementTree.SubElement(suite, "testcase", {
            "classname": _text(f"{name}.{levels}" if levels else name), "name": f"run {record.block}"})
        words = f"{record.state}: {record.reason or 'no reason given'}"
        ElementTree.SubElement(case, "error", {"message": _text(words)})
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _text(words: str) -> str:
    return _CONTROL.sub("?", words)
