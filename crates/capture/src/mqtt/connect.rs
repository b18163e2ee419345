//! What a CONNECT says, from its bytes behind the fixed header (MQTT 5 §3.1).

use mqttlab_mqtt::property::{Properties, id};

use super::numbers::be16;
use super::{PAYLOAD_HEAD_MAX, PayloadRest, SeenConnect, SeenWill};

/// Reads a CONNECT after its fixed header.
pub(super) fn read(head: &[u8]) -> Option<SeenConnect> {
    let name_end = 2 + usize::from(be16(head, 0)?);
    if !matches!(head.get(2..name_end)?, b"MQTT" | b"MQIsdp") {
        return None;
    }
    let fields = head.get(name_end..name_end + 4)?;
    // The highest bit marks a bridge, an extension that brokers use among themselves.
    let level = fields[0] & !BRIDGE;
    let mut connect = SeenConnect {
        level,
        is_bridge: fields[0] & BRIDGE != 0,
        flags: fields[1],
        keep_alive_s: u16::from_be_bytes([fields[2], fields[3]]),
        ..SeenConnect::default()
    };
    let mut rest = &head[name_end + 4..];
    if level >= 5
        && let Some((own, behind)) = Properties::seen_before(rest)
    {
        connect.session_expiry_s = Some(own.number(id::SESSION_EXPIRY_INTERVAL).unwrap_or(0));
        connect.receive_maximum = own.number(id::RECEIVE_MAXIMUM).and_then(|most| u16::try_from(most).ok());
        connect.maximum_packet_bytes = own.number(id::MAXIMUM_PACKET_SIZE);
        connect.takes_aliases = own.number(id::TOPIC_ALIAS_MAXIMUM).is_some_and(|most| most > 0);
        rest = behind;
    }
    let id_len = be16(rest, 0).map_or(0, usize::from);
    let id = rest.get(2..rest.len().min(2 + id_len)).unwrap_or_default();
    connect.client_id = String::from_utf8_lossy(id).into_owned();
    connect.will = rest.get(2 + id_len..).and_then(|rest| will(rest, fields[1], level)).map(Box::new);
    Some(connect)
}

/// The will behind the client identifier, unless there is none or it is cut (§3.1.3.2).
fn will(mut rest: &[u8], flags: u8, level: u8) -> Option<SeenWill> {
    if flags & WILL == 0 {
        return None;
    }
    let mut delay_s = 0;
    if level >= 5 {
        let (own, behind) = Properties::seen_before(rest)?;
        delay_s = own.number(id::WILL_DELAY_INTERVAL).unwrap_or_default();
        rest = behind;
    }
    let topic_end = 2 + usize::from(be16(rest, 0)?);
    let topic = std::str::from_utf8(rest.get(2..topic_end)?).ok()?.into();
    let payload_bytes = u32::from(be16(rest, topic_end)?);
    let payload = rest.get(topic_end + 2..)?;
    let kept = PAYLOAD_HEAD_MAX.min(payload_bytes as usize);
    Some(SeenWill {
        topic,
        payload_bytes,
        head: payload.get(..kept)?.into(),
        rest: PayloadRest::of(&payload[..payload.len().min(payload_bytes as usize)]),
        qos: flags >> 3 & 3,
        retain: flags & WILL_RETAIN != 0,
        delay_s,
    })
}

const BRIDGE: u8 = 0x80;
const WILL: u8 = 4;
const WILL_RETAIN: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::*;

    const BRIDGES: &[u8] = b"\0\x04MQTT\x84\x2e\0\x3c\0\x02br\0\x01s\0\x031.0";
    const FIVE: &[u8] = b"\0\x04MQTT\x05\x06\0\x0a\x0b\x21\0\x05\x27\0\0\0\x64\x22\0\x07\0\x01d\x05\x18\0\0\0\x1e\0\x01s\0\x03off";

    #[test]
    fn a_bridge_of_level_132_speaks_3_1_1_and_its_will_is_read() {
        let connect = read(BRIDGES).unwrap();
        assert_eq!((connect.level, connect.is_bridge, &*connect.client_id), (4, true, "br"));
        let will = connect.will.unwrap();
        assert_eq!((&*will.topic, &*will.head, will.qos, will.retain), ("s", &b"1.0"[..], 1, true));
        assert_eq!((will.payload_bytes, will.delay_s), (3, 0));
    }

    #[test]
    fn limits_and_the_delay_of_a_will_are_read_in_mqtt_5() {
        let connect = read(FIVE).unwrap();
        assert_eq!((connect.receive_maximum, connect.maximum_packet_bytes), (Some(5), Some(100)));
        assert_eq!((connect.takes_aliases, connect.session_expiry_s), (true, Some(0)));
        let will = connect.will.unwrap();
        assert_eq!((will.delay_s, &*will.topic, &*will.head, will.retain), (30, "s", &b"off"[..], false));
    }

    #[test]
    fn a_cut_connect_has_no_will_and_says_the_rest() {
        for end in 12..BRIDGES.len() {
            let connect = read(&BRIDGES[..end]).unwrap();
            assert!(connect.will.is_none() && connect.is_bridge, "{end}");
        }
        assert_eq!(read(&BRIDGES[..9]), None);
    }
}
