"""Explanations: where one message's time went, told by every frame that carried it or decided its fate.

A :class:`Story` is gathered from a recording and its attribution; words and picture are made from the story alone.
"""

from mqttlab.explanation.page import write
from mqttlab.explanation.story import Arrow, Span, Story, tell
from mqttlab.explanation.words import cause, head, ladder, parts_table

__all__ = ["Arrow", "Span", "Story", "cause", "head", "ladder", "parts_table", "tell", "write"]
