"""The borders of a run's stages as marks in figures over time."""

from __future__ import annotations

from mqttlab import metrics
from mqttlab.figures.marks import Mark
from mqttlab.recording import Recording

NS_PER_S = 1e9
# Grey, so that events stand out.
COLOUR = "#5B6572"


def marks(recording: Recording, begin_s: float) -> list[Mark]:
    """Where each stage begins, for a figure whose time begins so long after the run's; those that are not measured are
    shaded. None without stages."""
    return [Mark(name=stage.name, at_s=stage.from_ns / NS_PER_S - begin_s, colour=COLOUR, below=True,
                 until_s=None if stage.measured else stage.until_ns / NS_PER_S - begin_s)
            for stage in metrics.stages(recording)]
