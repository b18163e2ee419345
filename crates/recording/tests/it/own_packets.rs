//! Packets that clients say themselves, beside frames: rows of one table, and none of another's connection.

use crate::common::*;
use expect_test::expect;
use mqttlab_recording::{HeaderAnalyser, OwnPacket, PacketProtocol, Recorder, Sink, Towards, recover};
use mqttlab_units::Instant;

fn packet(client: u32, connection: u32, towards: Towards, kind: u8, at: u64) -> OwnPacket {
    OwnPacket {
        client,
        connection,
        towards,
        kind,
        qos: u8::from(kind == 3),
        dup: false,
        retain: false,
        packet_id: 7,
        reason: None,
        publisher: (kind == 3).then_some(0),
        sequence: (kind == 3).then_some(4),
        start: 10,
        fixed_header_bytes: 2,
        topic_bytes: if kind == 3 { 5 } else { 0 },
        packet_id_bytes: 2,
        property_bytes: 0,
        payload_bytes: 20,
        at: Instant::from_ns(at),
        protocol: PacketProtocol::Mqtt,
        is_message: false,
    }
}

fn say(sink: &mut Sink) {
    sink.own_packet(&packet(0, 0, Towards::Broker, 3, 100), "a/b");
    sink.own_packet(&packet(2, 0, Towards::Client, 3, 120), "a/b");
    sink.own_packet(&packet(0, 0, Towards::Client, 4, 130), "");
    // It comes back.
    sink.own_packet(&packet(0, 1, Towards::Broker, 3, 140), "");
    // Kinds without a number: a message, one whose topic nobody knows, and something else.
    let named = OwnPacket {
        protocol: PacketProtocol::MqttSn,
        ..packet(3, 0, Towards::Broker, OwnPacket::NAMED, 150)
    };
    sink.own_packet(&OwnPacket { is_message: true, qos: 2, ..named }, "PUBLISH\na/b");
    sink.own_packet(&OwnPacket { is_message: true, qos: 2, ..named }, "PUBLISH");
    let named = OwnPacket { protocol: PacketProtocol::ZeroMq, ..named };
    sink.own_packet(&named, "READY");
    sink.own_packet(&OwnPacket { is_message: true, ..named }, "MESSAGE\n");
}

#[test]
fn rows_name_their_connections_and_say_what_only_a_client_can_know() {
    let scratch = Scratch::new();
    let recorder = Recorder::create(scratch.path(), "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    say(&mut sink);
    drop(sink);
    drop(recorder.close());
    recover(scratch.path(), None, &mut HeaderAnalyser::default()).unwrap();
    let columns = [
        "connection",
        "transport",
        "protocol",
        "seen_by",
        "direction",
        "client",
        "kind",
        "qos",
        "topic",
        "sequence",
        "stream_start",
        "stream_end",
        "first_sent_ns",
        "complete_ns",
        "segments",
        "written_ns",
        "read_ns",
    ];
    expect![[r#"
        connection transport protocol seen_by direction client kind qos topic sequence stream_start stream_end first_sent_ns complete_ns segments written_ns read_ns
        1073741824 tcp mqtt client to_broker 0 PUBLISH 1 a/b 4 10 39 null null null 100 null
        1073741825 tcp mqtt client to_client 2 PUBLISH 1 a/b 4 10 39 null null null null 120
        1073741824 tcp mqtt client to_client 0 PUBACK null null null 10 34 null null null null 130
        1073741826 tcp mqtt client to_broker 0 PUBLISH 1  4 10 39 null null null 140 null
        1073741827 udp mqtt-sn client to_broker 3 PUBLISH 2 a/b null 10 34 null null null 150 null
        1073741827 udp mqtt-sn client to_broker 3 PUBLISH 2 null null 10 34 null null null 150 null
        1073741827 tcp zeromq client to_broker 3 READY null null null 10 34 null null null 150 null
        1073741827 tcp zeromq client to_broker 3 MESSAGE 0  null 10 34 null null null 150 null
    "#]]
    .assert_eq(&table(scratch.path(), "control_packets", &columns));
}
