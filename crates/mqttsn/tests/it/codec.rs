//! Encoding and decoding, against the specification's own tables and each other.

use std::collections::BTreeSet;

use crate::samples::samples;
use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::encode::{self, encode};
use mqttlab_mqttsn::packet::{self, decode};
use mqttlab_mqttsn::{Forwarded, Kind, Malformed, Packet, PublishQos, Topic};
use proptest::prelude::*;

fn encoded(packet: &crate::samples::Sample) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(encode(packet, &mut bytes), Ok(bytes.len()));
    bytes
}

#[test]
fn every_type_comes_back_as_it_was_and_is_as_long_as_was_said() {
    let mut seen = BTreeSet::new();
    for sample in samples() {
        let bytes = encoded(&sample);
        assert_eq!(
            bytes.len(),
            encode::len(&sample, |text| text.len(), |message| message.len()),
            "{sample:?}"
        );
        let datagram = decode(&bytes).unwrap_or_else(|error| panic!("{sample:?}: {error}"));
        assert_eq!(datagram.packet, sample);
        assert!(datagram.forwarded.is_empty());
        seen.insert(sample.kind());
    }
    assert_eq!(seen.len(), Kind::ALL.len(), "a type has no sample");
}

#[test]
fn octets_are_those_of_the_specification() {
    let publish = Packet::Publish {
        dup: true,
        qos: PublishQos::Level(Qos::AtLeastOnce),
        retain: true,
        topic: Topic::Registered(0x0102),
        id: 0x0304,
        message: &b"hi"[..],
    };
    assert_eq!(encoded(&publish), [9, 0x0c, 0xb0, 1, 2, 3, 4, b'h', b'i'], "§5.4.12");
    let connect = Packet::Connect { will: true, clean: true, duration_s: 0x0102, client_id: "c" };
    assert_eq!(encoded(&connect), [7, 0x04, 0x0c, 0x01, 1, 2, b'c'], "§5.4.4");
    let minus_one = Packet::Publish {
        dup: false,
        qos: PublishQos::WithoutConnection,
        retain: false,
        topic: Topic::Short(*b"ab"),
        id: 0,
        message: &b""[..],
    };
    assert_eq!(encoded(&minus_one), [7, 0x0c, 0x62, b'a', b'b', 0, 0], "§5.3.4");
}

#[test]
fn a_packet_of_more_than_255_octets_has_three_for_its_length() {
    for (payload, length, first) in [(248, 255, 255), (249, 258, 1)] {
        assert_eq!(encode::publish_len(payload), length);
        let message = vec![0; payload];
        let packet: Packet<&str, &[u8]> = Packet::Publish {
            dup: false,
            qos: PublishQos::Level(Qos::AtMostOnce),
            retain: false,
            topic: Topic::Registered(1),
            id: 0,
            message: &message,
        };
        let mut bytes = Vec::new();
        encode(&packet, &mut bytes).unwrap();
        assert_eq!((bytes.len(), bytes[0]), (length, first));
        assert_eq!(decode(&bytes).unwrap().packet, packet);
    }
    // The long form is allowed for short packets, too (§5.2.1).
    assert_eq!(decode(&[1, 0, 4, 0x17]).unwrap().packet, Packet::Pingresp);
}

#[test]
fn the_largest_payload_of_a_datagram_just_fits() {
    for datagram in [20, 254, 255, 256, 257, 258, 259, 260, 1472, 65_507, 70_000] {
        let payload = encode::payload_max(datagram);
        assert!(encode::publish_len(payload) <= datagram.min(encode::LENGTH_MAX), "{datagram}");
    }
    assert_eq!(encode::publish_len(encode::payload_max(1472)), 1472);
    let message = vec![0; 65_535];
    let packet: Packet<&str, &[u8]> = Packet::Willmsg { message: &message };
    assert_eq!(encode(&packet, &mut Vec::new()), Err(encode::TooLong(65_539)));
}

#[test]
fn a_forwarder_wraps_a_packet_without_changing_it() {
    let mut bytes = Vec::new();
    let outer = Forwarded { radius: 2, node: &[9, 9] };
    let inner = Forwarded { radius: 1, node: &[1, 2, 3] };
    for forwarded in [&outer, &inner] {
        encode::encapsulation(forwarded, &mut bytes).unwrap();
    }
    let packet: crate::samples::Sample = Packet::Pingreq { client_id: Some("c") };
    encode(&packet, &mut bytes).unwrap();
    let datagram = decode(&bytes).unwrap();
    assert_eq!((datagram.forwarded, datagram.packet), (vec![outer, inner], packet));
    assert!(encode::encapsulation(&Forwarded { radius: 0, node: &[0; 253] }, &mut Vec::new()).is_err());
}

#[test]
fn what_is_no_packet_is_refused() {
    let cases: [(&[u8], Malformed); 10] = [
        (&[], Malformed::Short),
        (&[2], Malformed::Short),
        (&[1, 0, 4], Malformed::Short),
        (&[3, 0x17], Malformed::Length { says: 3, has: 2 }),
        (&[2, 0x17, 0], Malformed::Length { says: 2, has: 3 }),
        (&[2, 0x03], Malformed::Kind(0x03)),
        (&[3, 0x05], Malformed::Length { says: 3, has: 2 }),
        (&[6, 0x04, 0, 2, 0, 60], Malformed::Protocol(2)),
        (&[7, 0x0c, 0x20, 0, 1, 0, 0], Malformed::Id),
        (&[7, 0x0c, 0x03, 0, 1, 0, 0], Malformed::Flags(3)),
    ];
    for (bytes, error) in cases {
        assert_eq!(decode(bytes).map(|datagram| datagram.packet), Err(error), "{bytes:?}");
    }
    // A packet that says it was forwarded for ever.
    assert_eq!(decode(&[3, 0xfe, 0].repeat(20)), Err(Malformed::Kind(0xfe)));
}

proptest! {
    #[test]
    fn no_octets_make_a_decoder_fall(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn what_is_decoded_is_encoded_to_the_same_again(
        kind in proptest::sample::select(Kind::ALL), body in proptest::collection::vec(any::<u8>(), 0..40)
    ) {
        let mut bytes = vec![body.len() as u8 + 2, kind as u8];
        bytes.extend(&body);
        if let Ok(packet::Datagram { packet, .. }) = decode(&bytes) {
            let mut again = Vec::new();
            encode(&packet, &mut again).unwrap();
            // Bits of the flags that have no meaning are not kept.
            prop_assert_eq!(decode(&again).unwrap().packet, packet);
            prop_assert_eq!(again.len(), bytes.len());
        }
    }
}
