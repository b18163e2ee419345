"""MQTT in a scenario: protocol and session of a group's clients."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import PositiveDurationNs, SecondsNs, shown
from mqttlab.scenario.beside import FileBeside
from mqttlab.scenario.credentials import Credentials, read_credentials
from mqttlab.scenario.secret import Password, UserName
from mqttlab.scenario.topics import MQTT_TEXT_MAX, will_topic
from mqttlab.secrets import PersonalText, PlainText

S = 10**9
MQTT_5: dict[str, JsonValue] = {"mqtt_version": "5"}
"""Marks what only MQTT 5 can say; below version 5 it is refused (``check.py``)."""


def quality_of_service(value: Any) -> Any:
    """A number; `true` is none, though Python takes it for 1."""
    if isinstance(value, (bool, float, str)):
        raise ValueError(f"is {shown(value)}, but must be 0, 1 or 2")
    return value


Qos = Annotated[
    Literal[0, 1, 2], BeforeValidator(quality_of_service), Field(description="Quality of service: 0, 1 or 2.")]


class Will(Part):
    """A message that the broker publishes when a client's connection is lost."""

    topic: Annotated[PlainText, AfterValidator(will_topic)] = Field(description="Topic.")
    payload: PlainText = Field("", max_length=MQTT_TEXT_MAX, description="Payload as text.")
    qos: Qos = 0
    retain: Truth = Field(False, description="Retained.")


class Mqtt(Part):
    """Protocol and session."""

    version: Literal["3.1", "3.1.1", "5"] = Field("3.1.1", description="Protocol version.")
    keep_alive: SecondsNs = Field(60 * S, le=65_535 * S, description="Keep-alive, whole seconds; `0 s`: off.")
    clean_session: Truth = Field(True, description="`false` asks the broker to keep the session.")
    session_expiry: SecondsNs | None = Field(None, le=(2**32 - 1) * S, json_schema_extra=MQTT_5, description=(
        "How long the broker keeps the session after the connection, also one that began clean (MQTT 5, 3.1.2.11.2); "
        "without it 3600 s, or 0 s with `clean_session`."))
    max_inflight: Whole = Field(
        20, ge=1, le=65_535, description="Unacknowledged messages at QoS 1 and 2 that a client may have in flight.")
    max_queued: Whole = Field(
        100_000, ge=0, le=2**32 - 1, description=(
            "QoS 1 and 2 messages queued in a client; those beyond count as unsent. QoS 0 messages take no place: they "
            "wait for the socket without a limit, as in paho-mqtt, and count as unsent without a connection."))
    deliver_qos2_on: Literal["release", "publish"] = Field(
        "release", description="When a subscriber counts a QoS 2 message as delivered: at its PUBREL, as Paho does, "
        "or already at its PUBLISH; MQTT allows both (3.1.1, 4.3.3).")
    receive_maximum: Whole | None = Field(None, ge=1, le=65_535, json_schema_extra=MQTT_5, description=(
        "Receive maximum announced (MQTT 5); without it 65535. Mosquitto takes it in place of `broker.max_inflight`."))
    topic_aliases: Whole | None = Field(None, ge=0, le=65_535, json_schema_extra=MQTT_5, description=(
        "Topics of a connection that a publisher sends by an alias (MQTT 5, 3.3.2.3.4): the first ones, as many as the "
        "broker takes (`broker.topic_alias_maximum`); without it none. Copies of a relay have none."))
    topic_alias_maximum: Whole | None = Field(None, ge=0, le=65_535, json_schema_extra=MQTT_5, description=(
        "Topic alias maximum announced (MQTT 5, 3.1.2.11.5): aliases that the broker may give; without it 0. "
        "Mosquitto 2.0 and the simulated broker give none."))
    retry: PositiveDurationNs | None = Field(
        None, ge=10**6, description="Interval of timed retransmission, as in MQTT 3.1.")
    ping: Literal["silence", "interval", "sent"] = Field("silence", description=(
        "When a client pings. `silence`: when it has sent nothing, or heard nothing, for a keep-alive, in whole "
        "seconds, as libmosquitto does. It looks when it sends or hears something, and when it has sent nothing for "
        "so long. `interval`: a keep-alive after its last PINGREQ, whatever else it sends or hears, as paho-mqtt "
        "does. `sent`: when it has sent nothing for a keep-alive, as MQTT asks (3.1.1, 3.1.2.10). A client leaves a "
        "broker that does not answer for another keep-alive."))
    client_id: PersonalText = Field("{group}-{client}", min_length=1, max_length=MQTT_TEXT_MAX, description=(
        "Client identifier; `{group}` and `{client}` are filled in, `{client:06}` with six digits at least."))
    duplicate_ids: Truth = Field(False, description=(
        "Let clients of a group have one identifier, on purpose: the broker ends the connection of the one that has it "
        "when another comes (MQTT 3.1.1, 3.1.4-2)."))
    username: UserName | None = Field(None, max_length=MQTT_TEXT_MAX, description=(
        "User name, filled in as `client_id`; a reference where it is a token."))
    password: Password | None = Field(None, description=(
        "Password: a reference, such as `{ env = \"LAB_PASSWORD\" }` or `{ file = \"password.txt\" }`, whose value is "
        "filled in as `client_id`. As text it is used with a warning, and kept nowhere. "
        "[Secrets](../how-to/secrets.md) says more."))
    credentials: FileBeside | None = Field(None, description=(
        "A CSV file, beside the scenario's or in the working directory, with a row for each client of a group, and any "
        "of the columns `client_id`, `username` and `password`, which are then left out here. "
        "[Names of clients](../how-to/credentials.md) says more."))
    will: Will | None = Field(None, description="Last will.")

    @property
    def table(self) -> Credentials | None:
        """The table of credentials, if there is one.

        Raises:
            CredentialsError: what is wrong with it.
        """
        return None if self.credentials is None else read_credentials(self.credentials)
