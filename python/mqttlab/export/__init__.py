"""Exports: a run's tables for spreadsheets and for other programs.

Exceptions:
    ExportError: a run cannot be exported in the form asked for; the message says what to do instead.
"""

from mqttlab.export.pcapng import Cut, cut_of_message, pcapng
from mqttlab.export.tables import ExportError, Observe, csv, parquet, summary_tables, xlsx

__all__ = ["Cut", "ExportError", "Observe", "csv", "cut_of_message", "parquet", "pcapng", "summary_tables", "xlsx"]
