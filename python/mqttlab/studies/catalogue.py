"""The studies that can be rerun, by the name of their directory."""

from __future__ import annotations

from mqttlab.studies import andersen2021, andersen2021_claims, perez2005, perez2005_claims
from mqttlab.studies.study import Study

STUDIES = {
    "andersen2021": Study(
        thorough=andersen2021.THOROUGH, quick=andersen2021.QUICK, cases=andersen2021.cases,
        measure=andersen2021.measure, compare=andersen2021.compare, claims=andersen2021_claims.evaluate,
    ),
    "perez2005": Study(
        thorough=perez2005.THOROUGH, quick=perez2005.QUICK, cases=perez2005_claims.cases,
        measure=perez2005.measure, compare=perez2005.compare, claims=perez2005_claims.evaluate,
    ),
}
