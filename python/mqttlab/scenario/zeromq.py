"""ZeroMQ in a scenario: a group's sockets, and the proxy that they connect to."""

from pydantic import Field

from mqttlab.networks.link import Part, Whole
from mqttlab.scenario.topics import MQTT_TEXT_MAX
from mqttlab.secrets import PersonalText


class ZeroMq(Part):
    """A PUB or a SUB socket of ZeroMQ (ZMTP 3.1, NULL) over TCP. Nothing is acknowledged, kept or repeated."""

    high_water_mark: Whole = Field(
        1000, ge=0, le=2**32 - 1, description="Messages that wait in a publisher for its connection (ZMQ_SNDHWM); "
        "messages beyond count as unsent. 0: no limit.")
    client_id: PersonalText = Field(
        "{group}-{client}", min_length=1, max_length=MQTT_TEXT_MAX,
        description="What a client calls itself in its READY (metadata `X-Client`).")


class ZeroMqProxy(Part):
    """A proxy of ZeroMQ: an XSUB socket for publishers (`port`) and an XPUB socket for subscribers, back to back. Our
    own obeys all of this, for another program it says what that one is told."""

    subscriber_port: Whole | None = Field(
        None, ge=1, le=65_535, description="TCP port of its XPUB socket; one above `port` when left out.")
    high_water_mark: Whole = Field(
        1000, ge=0, le=2**32 - 1, description="Messages that wait for a subscriber (ZMQ_SNDHWM); more are dropped for "
        "it, and counted. 0: no limit.")
