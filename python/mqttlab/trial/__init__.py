"""A load in one line: options of ``mqttlab try`` as the scenario, or the experiment, that they stand for."""

from mqttlab.trial.answer import answer
from mqttlab.trial.experiment import Files, files_of, responses
from mqttlab.trial.options import WHOLE, Trial, TrialError, asked, checked
from mqttlab.trial.text import scenario_text

__all__ = ["WHOLE", "Files", "Trial", "TrialError", "answer", "asked", "checked", "files_of", "responses",
           "scenario_text"]
