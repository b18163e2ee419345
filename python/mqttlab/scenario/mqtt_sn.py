"""MQTT-SN in a scenario: a session of a group's clients, and how they sleep."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mqttlab.digits import plain
from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import (
    HOUR_NS,
    PositiveDurationNs,
    PositiveShortDurationNs,
    SecondsNs,
    ShortDurationNs,
)
from mqttlab.scenario.mqtt import Will
from mqttlab.scenario.topics import MQTT_TEXT_MAX
from mqttlab.secrets import PersonalText, PlainText

# Headers without options; and length, type, flags, topic and identifier of a PUBLISH (MQTT-SN 1.2, §5.4.12).
IP_AND_UDP_BYTES = 28
PUBLISH_HEAD = 9
S = 10**9
MS = 10**6


def datagram_room(mtu: int) -> int:
    """Bytes of a message that a datagram has room for. No MTU is so small that one octet would do for the length."""
    return mtu - IP_AND_UDP_BYTES - PUBLISH_HEAD
PredefinedId = Annotated[int, Field(strict=True, ge=1, le=65_534)]


class Sleep(Part):
    """How an MQTT-SN client sleeps while there is nothing to do."""

    duration: SecondsNs = Field(
        le=65_535 * S, description="How long the gateway is told to wait for the next sign of life, whole seconds.")
    wake_every: PositiveDurationNs = Field(ge=MS, description="From one awakening to the next; not above `duration`.")
    linger: ShortDurationNs = Field(
        1 * S, le=HOUR_NS, description="How long it stays active without anything to do.")
    publish: Literal["at-once", "when-awake"] = Field(
        "at-once", description="Whether it wakes up for a message that is due, or keeps it until the next awakening.")

    @model_validator(mode="after")
    def _wakes_in_time(self) -> Self:
        if self.wake_every > self.duration:
            raise ValueError(f"wakes up every {plain(self.wake_every / S)} s, but tells the gateway to wait only "
                             f"{plain(self.duration / S)} s; raise `duration`, or lower `wake_every`")
        return self


class MqttSn(Part):
    """A session of MQTT-SN 1.2 over UDP. One message of QoS 1 or 2 is under way at a time; nothing is fragmented."""

    keep_alive: SecondsNs = Field(60 * S, le=65_535 * S, description="Keep-alive, whole seconds; `0 s`: off.")
    clean_session: Truth = Field(True, description="`false` asks the gateway to keep the session.")
    without_connection: Truth = Field(
        False, description="Publish at QoS -1: no connection, no answer; `qos = 0`, predefined or short topics only.")
    retry: PositiveShortDurationNs = Field(
        10 * S, ge=MS, le=HOUR_NS, description=(
            "T_retry: time until a packet without an answer is sent again (10 to 15 s, 1.2, §7.2)."))
    retries: Whole = Field(3, ge=0, le=1000, description="N_retry: repetitions before the gateway is given up.")
    wait: PositiveDurationNs = Field(
        300 * S, ge=MS, le=HOUR_NS, description="T_WAIT after \"rejected: congestion\".")
    max_queued: Whole = Field(
        1000, ge=0, le=2**32 - 1, description="Messages queued in a client; messages beyond count as unsent.")
    deliver_qos2_on: Literal["release", "publish"] = Field(
        "release", description="When a QoS 2 message counts as delivered: at its PUBREL, or already at its PUBLISH.")
    short_topics: Truth = Field(True, description="Topics of two octets are sent as such and not registered.")
    predefined_topics: dict[PlainText, PredefinedId] = Field(
        default_factory=dict, description="Identifiers of topics that clients and gateway know beforehand, by name.")
    search_radius: Whole | None = Field(
        None, ge=0, le=255, description="Look for a gateway with SEARCHGW of this radius before connecting.")
    sleep: Sleep | None = Field(None, description="Sleep while there is nothing to do.")
    client_id: PersonalText = Field(
        "{group}-{client}", min_length=1, max_length=MQTT_TEXT_MAX, description="Client identifier.")
    will: Will | None = Field(None, description="Last will.")
