"""``python -m mqttlab.queue DIRECTORY``: the queue's process."""

from __future__ import annotations

import sys
from pathlib import Path

from mqttlab.queue.process import main

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
