//! Control packets, written into the caller's buffer; and how long they would be, for those who have no bytes.

use mqttlab_units::Duration;

use crate::kind::{Kind, Qos, SubscriptionOptions, Version, variable_length_len};
use crate::property::id;

/// What a client's CONNECT says.
#[derive(Clone, Copy, Debug)]
pub struct ConnectFields<'a> {
    /// Protocol version.
    pub version: Version,
    /// Client identifier.
    pub client_id: &'a str,
    /// Clean session (3.x) or clean start (5).
    pub clean: bool,
    /// Keep-alive in seconds.
    pub keep_alive_s: u16,
    /// Session expiry interval in seconds (5).
    pub session_expiry_s: u32,
    /// Receive maximum (5); 65535 is the protocol's default and not sent.
    pub receive_maximum: u16,
    /// Topic alias maximum (5): aliases that the broker may give; 0 is the protocol's default and not sent.
    pub topic_alias_maximum: u16,
    /// Will: topic, payload, QoS, retain.
    pub will: Option<(&'a str, &'a [u8], Qos, bool)>,
    /// User name.
    pub username: Option<&'a str>,
    /// Password.
    pub password: Option<&'a [u8]>,
}

impl ConnectFields<'_> {
    /// How long the session outlives its connection; `None` for ever.
    pub fn session_expiry(&self) -> Option<Duration> {
        session_expiry(self.version, self.clean, self.session_expiry_s)
    }

    /// How many QoS 1 and 2 messages the client takes at a time; 65535 where the packet does not say.
    pub fn receive_maximum(&self) -> u16 {
        if self.version == Version::V5 { self.receive_maximum } else { u16::MAX }
    }
}

/// How long a session outlives its connection, `None` for ever, by what CONNECT can say of it. Before MQTT 5 that is the clean
/// session flag alone (3.1.1, §3.1.2.4). In MQTT 5 clean start only ends an earlier session (§3.1.2.4), and an interval of
/// 0xFFFFFFFF does not end (§3.1.2.11.2).
pub fn session_expiry(version: Version, clean: bool, interval_s: u32) -> Option<Duration> {
    match version {
        Version::V5 => (interval_s != u32::MAX).then(|| Duration::from_s(interval_s.into())),
        Version::V31 | Version::V311 => clean.then_some(Duration::ZERO),
    }
}

/// Writes a CONNECT.
pub fn connect(fields: &ConnectFields<'_>, out: &mut Vec<u8>) {
    let mut body = Vec::with_capacity(64);
    // MQTT 3.1 has a name of its own; 3.1.1 and 5 share theirs and differ in the level.
    put_text(if fields.version == Version::V31 { "MQIsdp" } else { "MQTT" }, &mut body);
    body.push(fields.version.level());
    body.push(connect_flags(fields));
    body.extend(fields.keep_alive_s.to_be_bytes());
    if fields.version == Version::V5 {
        connect_properties(fields, &mut body);
    }
    // The order of the payload is fixed ([MQTT-3.1.3-1]): identifier, will, user name, password.
    put_text(fields.client_id, &mut body);
    if let Some((topic, payload, _, _)) = fields.will {
        if fields.version == Version::V5 {
            // No properties are a length of zero, and not nothing ([MQTT-2.2.2-1]); likewise below.
            body.push(0);
        }
        put_text(topic, &mut body);
        put_binary(payload, &mut body);
    }
    if let Some(username) = fields.username {
        put_text(username, &mut body);
    }
    if let Some(password) = fields.password {
        put_binary(password, &mut body);
    }
    header(Kind::Connect, 0, body.len(), out);
    out.extend(body);
}

fn connect_flags(fields: &ConnectFields<'_>) -> u8 {
    // Without a will its QoS and RETAIN are 0 ([MQTT-3.1.2-11], [MQTT-3.1.2-13]).
    let will = fields.will.map_or(0, |(_, _, qos, retain)| 4 | qos.level() << 3 | u8::from(retain) << 5);
    let username = u8::from(fields.username.is_some()) << 7;
    let password = u8::from(fields.password.is_some()) << 6;
    u8::from(fields.clean) << 1 | will | username | password
}

fn connect_properties(fields: &ConnectFields<'_>, body: &mut Vec<u8>) {
    let mut properties = Vec::new();
    // Absent means 0 (§3.1.2.11.2).
    if fields.session_expiry_s > 0 {
        properties.push(id::SESSION_EXPIRY_INTERVAL);
        properties.extend(fields.session_expiry_s.to_be_bytes());
    }
    // Absent means 65535 (§3.1.2.11.3).
    if fields.receive_maximum != u16::MAX {
        properties.push(id::RECEIVE_MAXIMUM);
        properties.extend(fields.receive_maximum.to_be_bytes());
    }
    // Absent means 0 (§3.1.2.11.5).
    if fields.topic_alias_maximum > 0 {
        properties.push(id::TOPIC_ALIAS_MAXIMUM);
        properties.extend(fields.topic_alias_maximum.to_be_bytes());
    }
    put_variable(properties.len(), body);
    body.extend(properties);
}

/// Bytes of a message expiry interval among the properties: its identifier and a four-byte integer (§3.3.2.3.3).
pub const EXPIRY_LEN: usize = 5;

/// What a PUBLISH says of its message that a broker forwards unaltered (§3.3.2.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageProperties<'a> {
    /// Seconds that the message is good for (§3.3.2.3.3), which a broker counts down.
    pub expiry_s: Option<u32>,
    /// Whether the payload is UTF-8; `None` where the packet does not say.
    pub payload_is_text: Option<bool>,
    /// Content type.
    pub content_type: Option<&'a str>,
    /// Response topic.
    pub response_topic: Option<&'a str>,
    /// Correlation data.
    pub correlation_data: Option<&'a [u8]>,
}

/// Appends properties of a message; pairs of a name and a value are [`user_property`].
pub fn message_properties(said: &MessageProperties<'_>, out: &mut Vec<u8>) {
    if let Some(expiry_s) = said.expiry_s {
        out.push(id::MESSAGE_EXPIRY_INTERVAL);
        out.extend(expiry_s.to_be_bytes());
    }
    if let Some(is_text) = said.payload_is_text {
        out.extend([id::PAYLOAD_FORMAT_INDICATOR, u8::from(is_text)]);
    }
    let texts = [(id::CONTENT_TYPE, said.content_type), (id::RESPONSE_TOPIC, said.response_topic)];
    for (id, text) in texts {
        if let Some(text) = text {
            out.push(id);
            put_text(text, out);
        }
    }
    if let Some(data) = said.correlation_data {
        out.push(id::CORRELATION_DATA);
        put_binary(data, out);
    }
}

/// Appends a user property. A name may stand there again, and their order is kept ([MQTT-3.3.2-18]).
pub fn user_property(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(id::USER_PROPERTY);
    put_text(name, out);
    put_text(value, out);
}

/// The first part of a PUBLISH: everything before the payload.
#[derive(Clone, Copy, Debug)]
pub struct PublishFields<'a> {
    /// Topic name; empty where an alias stands for it.
    pub topic: &'a str,
    /// Quality of service.
    pub qos: Qos,
    /// A copy of an earlier attempt.
    pub dup: bool,
    /// Retained.
    pub retain: bool,
    /// Packet identifier; ignored at QoS 0.
    pub id: u16,
    /// Properties without their length (5).
    pub properties: &'a [u8],
    /// Bytes of the payload, which the caller writes behind.
    pub payload_len: usize,
}

/// Writes everything of a PUBLISH that precedes its payload.
pub fn publish_head(fields: &PublishFields<'_>, version: Version, out: &mut Vec<u8>) {
    let flags = u8::from(fields.dup) << 3 | fields.qos.level() << 1 | u8::from(fields.retain);
    header(
        Kind::Publish,
        flags,
        publish_remaining(
            fields.topic.len(),
            fields.properties.len(),
            fields.payload_len,
            fields.qos,
            version,
        ),
        out,
    );
    put_text(fields.topic, out);
    // QoS 0 has no identifier ([MQTT-2.2.1-2]).
    if fields.qos != Qos::AtMostOnce {
        out.extend(fields.id.to_be_bytes());
    }
    if version == Version::V5 {
        put_variable(fields.properties.len(), out);
        out.extend(fields.properties);
    }
}

/// Writes a PUBACK, PUBREC, PUBREL or PUBCOMP that says success.
pub fn acknowledgement(kind: Kind, packet_id: u16, out: &mut Vec<u8>) {
    // PUBREL has a reserved bit that is set ([MQTT-3.6.1-1]). Success without properties needs no reason code
    // (§3.4.2.1).
    header(kind, if kind == Kind::Pubrel { 0b0010 } else { 0 }, 2, out);
    out.extend(packet_id.to_be_bytes());
}

/// Writes a SUBSCRIBE; each filter with its options, of which only MQTT 5 has more than the maximum QoS.
pub fn subscribe<'a>(
    packet_id: u16,
    filters: impl Iterator<Item = (&'a str, impl Into<SubscriptionOptions>)>,
    version: Version,
    out: &mut Vec<u8>,
) {
    let mut body = packet_id.to_be_bytes().to_vec();
    if version == Version::V5 {
        body.push(0);
    }
    for (filter, options) in filters {
        put_text(filter, &mut body);
        let options: SubscriptionOptions = options.into();
        // Before MQTT 5 the bits above the QoS are reserved ([MQTT-3.8.3-4] of 3.1.1).
        body.push(if version == Version::V5 { options.byte() } else { options.qos.level() });
    }
    // [MQTT-3.8.1-1]; UNSUBSCRIBE has the same bit ([MQTT-3.10.1-1]).
    header(Kind::Subscribe, 0b0010, body.len(), out);
    out.extend(body);
}

/// Writes an UNSUBSCRIBE.
pub fn unsubscribe<'a>(
    packet_id: u16,
    filters: impl Iterator<Item = &'a str>,
    version: Version,
    out: &mut Vec<u8>,
) {
    let mut body = packet_id.to_be_bytes().to_vec();
    if version == Version::V5 {
        body.push(0);
    }
    for filter in filters {
        put_text(filter, &mut body);
    }
    header(Kind::Unsubscribe, 0b0010, body.len(), out);
    out.extend(body);
}

/// Writes a packet without a body: PINGREQ, PINGRESP, or a DISCONNECT that says success.
pub fn bare(kind: Kind, out: &mut Vec<u8>) {
    header(kind, 0, 0, out);
}

/// Bytes of a whole PUBLISH whose properties have so many bytes without their length.
pub const fn publish_len(
    topic_len: usize,
    property_len: usize,
    payload_len: usize,
    qos: Qos,
    version: Version,
) -> usize {
    packet_len(publish_remaining(topic_len, property_len, payload_len, qos, version))
}

/// Bytes of the properties of a PUBLISH with their length (§2.2.2.1); none before MQTT 5.
pub const fn properties_len(property_len: usize, version: Version) -> usize {
    match version {
        Version::V5 => variable_length_len(property_len) + property_len,
        Version::V31 | Version::V311 => 0,
    }
}

/// Bytes of a PUBACK, PUBREC, PUBREL or PUBCOMP that says success.
pub const ACKNOWLEDGEMENT_LEN: usize = 4;

/// Bytes of a PINGREQ, PINGRESP, or a DISCONNECT that says success.
pub const BARE_LEN: usize = 2;

/// Bytes of a CONNACK without properties.
pub const fn connack_len(version: Version) -> usize {
    // Header, flags, code; MQTT 5 has the length of its properties, too ([MQTT-2.2.2-1]).
    if matches!(version, Version::V5) { 5 } else { 4 }
}

/// Bytes of a SUBSCRIBE with one filter.
pub const fn subscribe_len(filter_len: usize, version: Version) -> usize {
    packet_len(2 + matches!(version, Version::V5) as usize + 2 + filter_len + 1)
}

/// Bytes of a SUBACK for one filter.
pub const fn suback_len(version: Version) -> usize {
    packet_len(2 + matches!(version, Version::V5) as usize + 1)
}

/// Bytes of an UNSUBACK for one filter without properties. Only MQTT 5 has a reason code (§3.11.3).
pub const fn unsuback_len(version: Version) -> usize {
    packet_len(2 + if matches!(version, Version::V5) { 2 } else { 0 })
}

/// Bytes of a packet with this remaining length.
pub const fn packet_len(remaining: usize) -> usize {
    1 + variable_length_len(remaining) + remaining
}

const fn publish_remaining(
    topic_len: usize,
    property_len: usize,
    payload_len: usize,
    qos: Qos,
    version: Version,
) -> usize {
    let id = if matches!(qos, Qos::AtMostOnce) { 0 } else { 2 };
    2 + topic_len + id + properties_len(property_len, version) + payload_len
}

fn header(kind: Kind, flags: u8, remaining: usize, out: &mut Vec<u8>) {
    out.push((kind as u8) << 4 | flags);
    put_variable(remaining, out);
}

fn put_variable(mut value: usize, out: &mut Vec<u8>) {
    // Four bytes with seven bits each (§1.5.5).
    assert!(value <= 268_435_455, "a packet of {value} B exceeds what MQTT can carry");
    // The fewest bytes that hold it ([MQTT-1.5.5-1]).
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return;
        }
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_binary(text.as_bytes(), out);
}

fn put_binary(data: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(data.len()).expect("a field of more than 65535 bytes");
    out.extend(length.to_be_bytes());
    out.extend(data);
}
