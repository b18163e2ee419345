"""mqttlab: the MQTT performance laboratory.

A scenario becomes a plan, a plan becomes a run, a run leaves a recording, a recording yields metrics, metrics make a
report. This package writes plans and reads recordings; the engine, a program of its own, does the rest.
"""

__version__ = "0.1.0"
