"""Reports of an experiment: on the terminal, as one HTML page, as tables for other programs."""

from mqttlab.report.experiment.answer import document
from mqttlab.report.experiment.files import write_csv, write_parquet, write_xlsx
from mqttlab.report.experiment.page import write_experiment
from mqttlab.report.experiment.terminal import print_experiment

__all__ = ["document", "print_experiment", "write_csv", "write_experiment", "write_parquet", "write_xlsx"]
