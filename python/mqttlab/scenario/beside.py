"""Files that a scenario names: payloads, tables of messages, credentials."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from mqttlab.mistaken import beside
from mqttlab.secrets import PlainPath


def _beside(path: Path, info: ValidationInfo) -> Path:
    return beside(path, (info.context or {}).get("directory"))


FileBeside = Annotated[PlainPath, AfterValidator(_beside)]
"""A file beside the scenario's, else in the working directory."""
