"""``python -m mqttlab``."""

from mqttlab.cli import main

main(prog_name="mqttlab")
