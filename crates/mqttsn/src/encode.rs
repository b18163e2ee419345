//! Encoding into the caller's buffer, and lengths.

use mqttlab_mqtt::Qos;

use crate::kind::{PublishQos, flag};
use crate::packet::{
    ENCAPSULATED, Filter, Forwarded, NORMAL, PREDEFINED, PROTOCOL_ID, Packet, SHORT, Topic, WillTopic,
};

/// The longest packet that there can be (§5.2.1).
pub const LENGTH_MAX: usize = 65_535;

/// A packet that is longer than [`LENGTH_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// Appends a packet, and says how long it is.
///
/// # Errors
/// It is longer than a packet can be. Nothing is appended then.
pub fn encode<S: AsRef<str>, M: AsRef<[u8]>>(
    packet: &Packet<S, M>,
    out: &mut Vec<u8>,
) -> Result<usize, TooLong> {
    let length = len(packet, |text| text.as_ref().len(), |message| message.as_ref().len());
    if length > LENGTH_MAX {
        return Err(TooLong(length));
    }
    // 0x01 says that the length is in the two octets behind it (§5.2.1).
    if length > SHORT_MAX {
        out.push(1);
        out.extend((length as u16).to_be_bytes());
    } else {
        out.push(length as u8);
    }
    out.push(packet.kind() as u8);
    body(packet, out);
    Ok(length)
}

/// Appends the header that a forwarder puts before a packet (§5.5).
///
/// # Errors
/// The node's identifier is too long for the header's length of one octet.
pub fn encapsulation(forwarded: &Forwarded<'_>, out: &mut Vec<u8>) -> Result<usize, TooLong> {
    let length = encapsulation_len(forwarded.node.len());
    let octet = u8::try_from(length).map_err(|_| TooLong(length))?;
    out.extend([octet, ENCAPSULATED, forwarded.radius & 0x03]);
    out.extend_from_slice(forwarded.node);
    Ok(length)
}

/// Length of the header of a forwarder whose node identifier has so many octets.
pub const fn encapsulation_len(node_bytes: usize) -> usize {
    3 + node_bytes
}

/// A packet's length, whatever stands for its texts and messages.
pub fn len<S, M>(packet: &Packet<S, M>, text: impl Fn(&S) -> usize, content: impl Fn(&M) -> usize) -> usize {
    let filter = |filter: &Filter<S>| match filter {
        Filter::Name(name) => text(name),
        Filter::Predefined(_) | Filter::Short(_) => 2,
    };
    let body = match packet {
        Packet::Willtopicreq | Packet::Willmsgreq | Packet::Pingresp => 0,
        Packet::Searchgw { .. }
        | Packet::Connack { .. }
        | Packet::Willtopicresp { .. }
        | Packet::Willmsgresp { .. } => 1,
        Packet::Pubcomp { .. } | Packet::Pubrec { .. } | Packet::Pubrel { .. } | Packet::Unsuback { .. } => 2,
        Packet::Advertise { .. } => 3,
        Packet::Gwinfo { address, .. } => 1 + address.len(),
        Packet::Connect { client_id, .. } => 4 + text(client_id),
        Packet::Willtopic { will } | Packet::Willtopicupd { will } => {
            will.as_ref().map_or(0, |will| 1 + text(&will.topic))
        }
        Packet::Willmsg { message } | Packet::Willmsgupd { message } => content(message),
        Packet::Register { name, .. } => 4 + text(name),
        Packet::Regack { .. } | Packet::Puback { .. } => 5,
        Packet::Publish { message, .. } => PUBLISH_HEAD + content(message),
        Packet::Subscribe { filter: named, .. } | Packet::Unsubscribe { filter: named, .. } => {
            3 + filter(named)
        }
        Packet::Suback { .. } => 6,
        Packet::Pingreq { client_id } => client_id.as_ref().map_or(0, &text),
        Packet::Disconnect { duration_s } => {
            if duration_s.is_some() {
                2
            } else {
                0
            }
        }
    };
    with_header(body)
}

/// Length of a PUBLISH with a payload of so many bytes.
pub const fn publish_len(payload_bytes: usize) -> usize {
    with_header(PUBLISH_HEAD + payload_bytes)
}

/// The largest payload of a PUBLISH in a datagram of so many bytes.
pub const fn payload_max(datagram_bytes: usize) -> usize {
    let length = if datagram_bytes < LENGTH_MAX { datagram_bytes } else { LENGTH_MAX };
    let header = if length > SHORT_MAX { LONG_HEADER } else { SHORT_HEADER };
    length.saturating_sub(header + PUBLISH_HEAD)
}

const fn with_header(body: usize) -> usize {
    // The length counts its own field, which may be what makes it long (§5.2.1).
    if body + SHORT_HEADER > SHORT_MAX { body + LONG_HEADER } else { body + SHORT_HEADER }
}

fn body<S: AsRef<str>, M: AsRef<[u8]>>(packet: &Packet<S, M>, out: &mut Vec<u8>) {
    match packet {
        Packet::Willtopicreq | Packet::Willmsgreq | Packet::Pingresp => {}
        Packet::Searchgw { radius } => out.push(*radius),
        Packet::Connack { code } | Packet::Willtopicresp { code } | Packet::Willmsgresp { code } => {
            out.push(code.number());
        }
        Packet::Pubcomp { id } | Packet::Pubrec { id } | Packet::Pubrel { id } | Packet::Unsuback { id } => {
            numbers(&[*id], out);
        }
        Packet::Advertise { gateway, duration_s } => {
            out.push(*gateway);
            numbers(&[*duration_s], out);
        }
        Packet::Gwinfo { gateway, address } => {
            out.push(*gateway);
            out.extend_from_slice(address);
        }
        Packet::Connect { will, clean, duration_s, client_id } => {
            out.extend([on(*will, flag::WILL) | on(*clean, flag::CLEAN), PROTOCOL_ID]);
            numbers(&[*duration_s], out);
            text(client_id, out);
        }
        Packet::Willtopic { will } | Packet::Willtopicupd { will } => {
            if let Some(WillTopic { qos, retain, topic }) = will {
                out.push(qos_flags(*qos) | on(*retain, flag::RETAIN));
                text(topic, out);
            }
        }
        Packet::Willmsg { message } | Packet::Willmsgupd { message } => {
            out.extend_from_slice(message.as_ref());
        }
        Packet::Register { topic_id, id, name } => {
            numbers(&[*topic_id, *id], out);
            text(name, out);
        }
        Packet::Regack { topic_id, id, code } | Packet::Puback { topic_id, id, code } => {
            numbers(&[*topic_id, *id], out);
            out.push(code.number());
        }
        Packet::Publish { dup, qos, retain, topic, id, message } => {
            out.push(publish_flags(*dup, *qos, *retain, *topic));
            numbers(&[topic.number(), *id], out);
            out.extend_from_slice(message.as_ref());
        }
        Packet::Subscribe { dup, qos, id, filter: named } => {
            out.push(on(*dup, flag::DUP) | qos_flags(*qos) | filter_type(named));
            numbers(&[*id], out);
            filter(named, out);
        }
        Packet::Suback { qos, topic_id, id, code } => {
            out.push(qos_flags(*qos));
            numbers(&[*topic_id, *id], out);
            out.push(code.number());
        }
        // Of the flags only the type of the topic has a meaning (§5.4.17).
        Packet::Unsubscribe { id, filter: named } => {
            out.push(filter_type(named));
            numbers(&[*id], out);
            filter(named, out);
        }
        Packet::Pingreq { client_id } => client_id.iter().for_each(|id| text(id, out)),
        Packet::Disconnect { duration_s } => {
            duration_s.iter().for_each(|duration| numbers(&[*duration], out))
        }
    }
}

fn publish_flags(dup: bool, qos: PublishQos, retain: bool, topic: Topic) -> u8 {
    let qos = match qos {
        // 0b11 stands for QoS −1 (§5.3.4).
        PublishQos::WithoutConnection => flag::QOS,
        PublishQos::Level(qos) => qos_flags(qos),
    };
    let kind = match topic {
        Topic::Registered(_) => NORMAL,
        Topic::Predefined(_) => PREDEFINED,
        Topic::Short(_) => SHORT,
    };
    on(dup, flag::DUP) | qos | on(retain, flag::RETAIN) | kind
}

fn filter_type<S>(filter: &Filter<S>) -> u8 {
    match filter {
        Filter::Name(_) => NORMAL,
        Filter::Predefined(_) => PREDEFINED,
        Filter::Short(_) => SHORT,
    }
}

fn filter<S: AsRef<str>>(filter: &Filter<S>, out: &mut Vec<u8>) {
    match filter {
        Filter::Name(name) => text(name, out),
        Filter::Predefined(id) => numbers(&[*id], out),
        Filter::Short(name) => out.extend(name),
    }
}

fn on(is: bool, bit: u8) -> u8 {
    if is { bit } else { 0 }
}

fn qos_flags(qos: Qos) -> u8 {
    qos.level() << flag::QOS_SHIFT
}

fn numbers(numbers: &[u16], out: &mut Vec<u8>) {
    out.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
}

fn text<S: AsRef<str>>(text: &S, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_ref().as_bytes());
}

/// The longest packet whose length takes one octet.
pub const SHORT_MAX: usize = 255;
const SHORT_HEADER: usize = 2;
const LONG_HEADER: usize = 4;
/// Flags, topic and identifier.
const PUBLISH_HEAD: usize = 5;
