"""The queue: runs wait their turn in a process of its own, which is the engines' parent and writes all down.

::

    mqttlab run --detach ──┐                 ┌── engine (simulation)
    mqttlab experiment ────┼─► queue.db ─► queue process ── engine (simulation)
    mqttlab queue … ───────┘  (on disk)      └── later, alone: engine (live)

Simulations share the processors; a live run has the machine to itself. There is one queue for a user and a machine; its
process begins when there is something to do and ends when nothing is left.

What belongs to a command (an experiment in the foreground) ends with it, however it ends. What was handed over
(``--detach``) stays. When the queue's process is killed its engines end, because nobody reads what they say any more;
the next process, which whoever looks at the queue starts, adopts what had come to its end all the same, and makes the
rest again.
"""

from mqttlab.queue.client import Queue, QueuedJob, QueueError
from mqttlab.queue.executor import QueueExecutor

__all__ = ["Queue", "QueueError", "QueueExecutor", "QueuedJob"]
