"""A digest of what the simulator computes for a study, so that a page of results tells which simulator made it.

Most changes of the simulator's sources change no result, and a version changes seldom. So the digest is of results:
of a few of the study's own simulations, as long as for its page. Shorter ones miss what happens seldom.
"""

from __future__ import annotations

import hashlib
import json

from mqttlab.studies.cached_results import written
from mqttlab.studies.simulate import simulate
from mqttlab.studies.study import Study


def simulator_digest(study: Study, jobs: int | None = None) -> str:
    """Twelve hexadecimal digits, the same for all simulators that compute the same for the study's probes."""
    cases = {case.name: case for case in study.cases(study.published, ())}
    found = simulate({name: cases[name].scenario(study.thorough) for name in study.probes}, study.measure, jobs=jobs)
    # Sums of floating-point numbers may differ in their last digits between processors.
    values = json.loads(json.dumps(found, default=written), parse_float=lambda word: f"{float(word):.9g}")
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]
