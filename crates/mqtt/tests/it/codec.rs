//! The codec against another one, against the specification's rules, and against noise.

use bytes::BytesMut;
use mqttlab_mqtt::alias::TopicNaming;
use mqttlab_mqtt::encode::{self, ConnectFields, MessageProperties, PublishFields};
use mqttlab_mqtt::packet::{Packet, decode, publish_head};
use mqttlab_mqtt::{FixedHeader, Kind, Malformed, Qos, RetainHandling, SubscriptionOptions, Version};
use proptest::prelude::*;

fn whole(bytes: &[u8], version: Version) -> Result<Packet<'_>, Malformed> {
    let header = FixedHeader::peek(bytes)?.expect("a fixed header");
    assert_eq!(header.packet_len(), bytes.len(), "the length that the header says");
    decode(header, &bytes[header.header_len..], version)
}

fn qos() -> impl Strategy<Value = Qos> {
    (0_u8..3).prop_map(|level| Qos::from_level(level).unwrap())
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9/äß]{1,40}"
}

proptest! {
    #[test]
    fn another_codec_reads_our_publish(topic in name(), payload in prop::collection::vec(any::<u8>(), 0..300),
                                       qos in qos(), retain: bool, id in 1_u16.., dup: bool) {
        let fields = PublishFields { topic: &topic, qos, dup: dup && qos != Qos::AtMostOnce, retain, id, properties: &[], payload_len: payload.len() };
        for version in [Version::V311, Version::V5] {
            let mut out = Vec::new();
            encode::publish_head(&fields, version, &mut out);
            out.extend(&payload);
            prop_assert_eq!(out.len(), encode::publish_len(topic.len(), 0, payload.len(), qos, version));
            let mut buffer = BytesMut::from(&out[..]);
            if version == Version::V311 {
                let mqttbytes::v4::Packet::Publish(theirs) = mqttbytes::v4::read(&mut buffer, 1 << 20).unwrap() else { panic!("not a PUBLISH") };
                prop_assert_eq!((&theirs.topic, &theirs.payload[..], theirs.retain, theirs.dup), (&topic, &payload[..], retain, fields.dup));
                prop_assert_eq!((theirs.qos as u8, theirs.pkid), (qos.level(), if qos == Qos::AtMostOnce { 0 } else { id }));
            } else {
                let mqttbytes::v5::Packet::Publish(theirs) = mqttbytes::v5::read(&mut buffer, 1 << 20).unwrap() else { panic!("not a PUBLISH") };
                prop_assert_eq!((&theirs.topic, &theirs.payload[..]), (&topic, &payload[..]));
            }
            let Packet::Publish(ours) = whole(&out, version).unwrap() else { panic!("not a PUBLISH") };
            prop_assert_eq!((ours.topic, ours.payload, ours.qos, ours.retain), (&topic[..], &payload[..], qos, retain));
        }
    }

    #[test]
    fn we_read_another_codecs_packets(topic in name(), payload in prop::collection::vec(any::<u8>(), 0..300), level in 0_u8..3, id in 1_u16..) {
        let mut out = BytesMut::new();
        let mut theirs = mqttbytes::v4::Publish::new(&topic, mqttbytes::qos(level).unwrap(), payload.clone());
        theirs.pkid = id;
        theirs.write(&mut out).unwrap();
        let Packet::Publish(ours) = whole(&out, Version::V311).unwrap() else { panic!("not a PUBLISH") };
        prop_assert_eq!((ours.topic, ours.payload, ours.qos.level()), (&topic[..], &payload[..], level));

        out.clear();
        mqttbytes::v4::Subscribe::new(topic.clone(), mqttbytes::qos(level).unwrap()).write(&mut out).unwrap();
        // Their subscription starts with identifier 0, which is theirs to set; the specification forbids it.
        out[2..4].copy_from_slice(&id.to_be_bytes());
        let Packet::Subscribe(ours) = whole(&out, Version::V311).unwrap() else { panic!("not a SUBSCRIBE") };
        prop_assert_eq!((ours.id, ours.filters), (id, vec![(&topic[..], level)]));
    }

    #[test]
    fn another_codec_reads_our_connect(client_id in "[a-z0-9]{1,23}", clean: bool, keep_alive_s: u16, will: bool, login: bool) {
        for version in [Version::V311, Version::V5] {
            let fields = ConnectFields {
                version, client_id: &client_id, clean, keep_alive_s, session_expiry_s: 7, receive_maximum: 10, topic_alias_maximum: 5,
                will: will.then_some(("w", &b"gone"[..], Qos::AtLeastOnce, true)),
                username: login.then_some("u"), password: login.then_some(&b"p"[..]),
            };
            let mut out = Vec::new();
            encode::connect(&fields, &mut out);
            let mut buffer = BytesMut::from(&out[..]);
            if version == Version::V311 {
                let mqttbytes::v4::Packet::Connect(theirs) = mqttbytes::v4::read(&mut buffer, 1 << 20).unwrap() else { panic!("not a CONNECT") };
                prop_assert_eq!((&theirs.client_id, theirs.clean_session, theirs.keep_alive), (&client_id, clean, keep_alive_s));
                prop_assert_eq!((theirs.last_will.is_some(), theirs.login.is_some()), (will, login));
            } else {
                let mqttbytes::v5::Packet::Connect(theirs) = mqttbytes::v5::read(&mut buffer, 1 << 20).unwrap() else { panic!("not a CONNECT") };
                let properties = theirs.properties.unwrap();
                prop_assert_eq!((properties.session_expiry_interval, properties.receive_maximum, properties.topic_alias_max), (Some(7), Some(10), Some(5)));
            }
            let Packet::Connect(ours) = whole(&out, version).unwrap() else { panic!("not a CONNECT") };
            prop_assert_eq!((ours.version, ours.client_id, ours.clean), (version, &client_id[..], clean));
            prop_assert_eq!(ours.will.is_some(), will);
        }
    }

    #[test]
    fn noise_is_refused_or_read_and_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for version in [Version::V31, Version::V311, Version::V5] {
            if let Ok(Some(header)) = FixedHeader::peek(&bytes) {
                let _ = decode(header, &bytes[header.header_len.min(bytes.len())..], version);
                let _ = publish_head(header, &bytes[header.header_len.min(bytes.len())..], version);
            }
        }
    }

    #[test]
    fn a_truncated_packet_is_refused(topic in name(), cut in 1_usize..20) {
        let mut out = Vec::new();
        encode::subscribe(5, [(&topic[..], Qos::AtLeastOnce)].into_iter(), Version::V5, &mut out);
        let header = FixedHeader::peek(&out).unwrap().unwrap();
        let body = &out[header.header_len..];
        let shorter = &body[..body.len().saturating_sub(cut)];
        let lying = FixedHeader { remaining: shorter.len(), ..header };
        prop_assert!(decode(lying, shorter, Version::V5).is_err());
    }
}

#[test]
fn small_packets_have_their_known_bytes() {
    let mut out = Vec::new();
    encode::acknowledgement(Kind::Puback, 0x1234, &mut out);
    encode::acknowledgement(Kind::Pubrel, 1, &mut out);
    encode::bare(Kind::Pingreq, &mut out);
    encode::bare(Kind::Disconnect, &mut out);
    assert_eq!(out, [0x40, 2, 0x12, 0x34, 0x62, 2, 0, 1, 0xc0, 0, 0xe0, 0]);
}

#[test]
fn another_codec_reads_our_properties_of_a_message() {
    let mut properties = Vec::new();
    let said = MessageProperties {
        expiry_s: Some(30),
        payload_is_text: Some(true),
        content_type: Some("text/plain"),
        response_topic: Some("answers"),
        correlation_data: Some(b"7"),
    };
    encode::message_properties(&said, &mut properties);
    [("site", "roof"), ("site", "")].iter().for_each(|(n, v)| encode::user_property(n, v, &mut properties));
    TopicNaming::NameAndAlias(3).put(&mut properties);
    let (topic, qos, payload_len) = ("t", Qos::AtLeastOnce, 0);
    let fields =
        PublishFields { topic, qos, dup: false, retain: false, id: 1, properties: &properties, payload_len };
    let mut out = Vec::new();
    encode::publish_head(&fields, Version::V5, &mut out);
    assert_eq!(out.len(), encode::publish_len(1, properties.len(), 0, qos, Version::V5));
    let mut buffer = BytesMut::from(&out[..]);
    let mqttbytes::v5::Packet::Publish(theirs) = mqttbytes::v5::read(&mut buffer, 1 << 20).unwrap() else {
        panic!("not a PUBLISH")
    };
    let read = theirs.properties.unwrap();
    assert_eq!(read.message_expiry_interval, Some(30));
    assert_eq!((read.payload_format_indicator, read.topic_alias), (Some(1), Some(3)));
    assert_eq!(
        (read.content_type.as_deref(), read.response_topic.as_deref()),
        (Some("text/plain"), Some("answers"))
    );
    assert_eq!(read.correlation_data.as_deref(), Some(&b"7"[..]));
    let pairs = [("site", "roof"), ("site", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read.user_properties, pairs);
}

#[test]
fn retain_handling_is_in_the_option_byte_of_mqtt_5_alone() {
    for (handling, byte) in
        [(RetainHandling::Send, 1), (RetainHandling::New, 0x11), (RetainHandling::Never, 0x21)]
    {
        let wanted = SubscriptionOptions { retain_handling: handling, ..Qos::AtLeastOnce.into() };
        for (version, expected) in [(Version::V5, byte), (Version::V311, 1)] {
            let mut out = Vec::new();
            encode::subscribe(1, [("a", wanted)].into_iter(), version, &mut out);
            assert_eq!(out.last(), Some(&expected), "{handling:?} in {version:?}");
        }
    }
}

#[test]
fn retain_as_published_is_in_the_option_byte_of_mqtt_5_alone() {
    let wanted = SubscriptionOptions { retain_as_published: true, ..Qos::AtLeastOnce.into() };
    for (version, expected) in [(Version::V5, 0b1001), (Version::V311, 1)] {
        let mut out = Vec::new();
        encode::subscribe(1, [("a", wanted)].into_iter(), version, &mut out);
        assert_eq!(out.last(), Some(&expected), "{version:?}");
    }
}

#[test]
fn no_local_is_in_the_option_byte_of_mqtt_5_alone() {
    let wanted = SubscriptionOptions { no_local: true, ..Qos::ExactlyOnce.into() };
    for (version, expected) in [(Version::V5, 0b110), (Version::V311, 2)] {
        let mut out = Vec::new();
        encode::subscribe(1, [("a", wanted)].into_iter(), version, &mut out);
        assert_eq!(out.last(), Some(&expected), "{version:?}");
    }
}

#[test]
fn lengths_agree_with_bytes() {
    for version in [Version::V311, Version::V5] {
        let mut out = Vec::new();
        encode::subscribe(1, [("a/b", Qos::ExactlyOnce)].into_iter(), version, &mut out);
        assert_eq!(out.len(), encode::subscribe_len(3, version));
    }
    assert_eq!(encode::publish_len(43, 0, 10_246, Qos::AtMostOnce, Version::V311), 10_246 + 48);
    assert_eq!(encode::publish_len(43, 0, 10_485_766, Qos::AtMostOnce, Version::V311), 10_485_766 + 50);
}

#[test]
fn what_the_specification_forbids_is_refused_with_its_clause() {
    let cases: &[(&[u8], Version, &str)] = &[
        (&[0x36, 5, 0, 1, b'a', 0, 1], Version::V311, "MQTT-3.3.1-4"),
        (&[0x38, 3, 0, 1, b'a'], Version::V311, "MQTT-3.3.1-2"),
        (&[0x32, 5, 0, 1, b'a', 0, 0], Version::V311, "MQTT-2.2.1-3"),
        (&[0x30, 3, 0, 1, b'#'], Version::V311, "MQTT-3.3.2-2"),
        (&[0x80, 6, 0, 1, 0, 1, b'a', 0], Version::V311, "MQTT-2.1.3-1"),
        (
            &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 0x1c, 0, 0, 0, 1, b'a'],
            Version::V311,
            "MQTT-3.1.2-12",
        ),
        (
            &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 0x20, 0, 0, 0, 1, b'a'],
            Version::V311,
            "MQTT-3.1.2-13",
        ),
        (&[0x82, 2, 0, 1], Version::V311, "MQTT-3.8.3-2"),
        (&[0x82, 6, 0, 1, 0, 1, b'a', 3], Version::V311, "MQTT-3.8.3-5"),
        (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x40], Version::V5, "MQTT-3.8.3-5"),
        (&[0x30, 3, 0, 1, 0xff], Version::V311, "MQTT-1.5.4-1"),
        (&[0x30, 3, 0, 1, 0], Version::V311, "MQTT-1.5.4-2"),
        (&[0x00, 0], Version::V311, "§2.1.2"),
        (&[0x30, 0xff, 0xff, 0xff, 0xff], Version::V311, "§1.5.5"),
        (&[0x30, 6, 0, 1, b'a', 2, 0x77, 0], Version::V5, "§2.2.2.2"),
        (&[0x30, 8, 0, 1, b'a', 4, 0x01, 1, 0x01, 1], Version::V5, "§2.2.2.2"),
        (&[0x30, 5, 0, 1, b'a', 0x80, 0], Version::V5, "MQTT-1.5.5-1"),
        (&[0x30, 7, 0, 1, b'a', 3, 0x0b, 0x81, 0], Version::V5, "MQTT-1.5.5-1"),
        (&[0x20, 2, 1, 5], Version::V311, "MQTT-3.2.2-6"),
        (&[0xf0, 0], Version::V311, "§3.15"),
    ];
    for (bytes, version, clause) in cases {
        let problem = match FixedHeader::peek(bytes) {
            Err(problem) => problem,
            Ok(header) => {
                let header = header.unwrap();
                decode(header, &bytes[header.header_len..], *version).expect_err(clause)
            }
        };
        assert!(problem.0.contains(clause), "{bytes:02x?}: {problem}, not {clause}");
    }
}

#[test]
fn mqtt_3_8_3_4_no_local_on_a_shared_subscription_is_refused() {
    let subscribe = |filter: &str, options| {
        let mut packet = vec![0x82, (6 + filter.len()) as u8, 0, 1, 0, 0, filter.len() as u8];
        packet.extend(filter.as_bytes());
        packet.push(options);
        let header = FixedHeader::peek(&packet).unwrap().unwrap();
        decode(header, &packet[header.header_len..], Version::V5).map(|_| ()).map_err(|problem| problem.0)
    };
    assert_eq!([subscribe("t", 0b100), subscribe("$share/g/t", 0b10_1001)], [Ok(()), Ok(())]);
    let problem = subscribe("$share/g/t", 0b101).unwrap_err();
    assert!(problem.contains("MQTT-3.8.3-4"), "{problem}");
}

#[test]
fn a_packets_length_in_more_bytes_than_it_needs_is_read() {
    let header = FixedHeader::peek(&[0xc0, 0x80, 0x80, 0x00]).unwrap().unwrap();
    assert_eq!((header.header_len, header.remaining), (4, 0));
    assert!(FixedHeader::peek(&[0xc0, 0x80, 0x80, 0x80, 0x80, 0x00]).is_err());
}

#[test]
fn a_broker_without_mqtt_5_answers_as_its_own_version_does() {
    let Ok(Packet::Connack(refused)) = whole(&[0x20, 2, 0, 1], Version::V5) else { panic!("not a CONNACK") };
    assert_eq!((refused.code, refused.session_present), (1, false));
    let accepted = whole(&[0x20, 2, 0, 0], Version::V5).unwrap_err();
    assert!(accepted.to_string().contains("the broker does not speak MQTT 5"), "{accepted}");
    assert!(matches!(whole(&[0x20, 3, 0, 0, 0], Version::V5), Ok(Packet::Connack(_))));
    assert!(matches!(whole(&[0x20, 2, 0, 1], Version::V311), Ok(Packet::Connack(_))));
    assert!(whole(&[0x20, 1, 0], Version::V5).is_err());
}
