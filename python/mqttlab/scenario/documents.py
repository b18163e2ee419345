"""Alerts and reports as andersen2021 speaks of them: text in GeoJSON, with who, when and which message.

The study prints the fields of its messages (listing 1), and that alerts are smaller messages, as positions are (about
400 B), and reports larger ones, as images are (about 1.3 kB). It prints no alert and no report: their texts are ours.
They say no place (RFC 7946, 3.2), so that the map keeps the one that positions say.
"""

from __future__ import annotations

from mqttlab.scenario.template import bounds, parts_of

HEAD = ('{"type":"Feature","id":"{identity}","geometry":null,"properties":{"country":"NOR",'
        '"unit":"NOR-UNIT{client:03}","node_name":"PUB_NOR_{client}","node_id":{client},"msg_id":{sequence},'
        '"data_id":"{random:uuid}","timestamp":"{time:iso}",')
ALERT = HEAD + ('"kind":"alert","level":"{random:choice low|medium|high}",'
                '"text":"{random:choice vehicle seen|road is blocked|link is lost|help is needed}"}}')
REPORT = HEAD + '"kind":"report","page":{random:1..9},"text":"'
TAIL = '"}}'
PROSE = ("The column left the depot at first light and followed the valley road to the second bridge. It met no "
         "traffic. The bridge carries one vehicle at a time. Fuel lasts for two more days, water for three. The radio "
         "on the ridge was out of reach between the tunnels, and heard again behind them. The next report follows "
         "after the crossing. ")
BYTES = {"alert": 400, "report": 1_300}
"""How large they are when a scenario does not say it."""


def document(kind: str, size: int | None) -> tuple[str, int]:
    """The template of an alert or a report, and its size in bytes. A report's text fills its size."""
    wanted = BYTES[kind] if size is None else size
    if kind == "alert":
        return ALERT, wanted
    room = max(0, wanted - bounds(parts_of(REPORT + TAIL, ""), 10**6)[1])
    return REPORT + (PROSE * (room // len(PROSE) + 1))[:room] + TAIL, wanted
