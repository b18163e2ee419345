//! One packet of each type and form.

use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::packet::WillTopic;
use mqttlab_mqttsn::{Filter, Packet, PublishQos, ReturnCode, Topic};

pub type Sample = Packet<&'static str, &'static [u8]>;

static LARGE: [u8; 300] = [7; 300];

/// Every type, with every form of its fields.
pub fn samples() -> Vec<Sample> {
    let code = ReturnCode::Accepted;
    let will = || Some(WillTopic { qos: Qos::AtLeastOnce, retain: true, topic: "will/me" });
    let mut samples: Vec<Sample> = vec![
        Packet::Advertise { gateway: 3, duration_s: 900 },
        Packet::Searchgw { radius: 1 },
        Packet::Gwinfo { gateway: 3, address: Vec::new() },
        Packet::Gwinfo { gateway: 3, address: vec![10, 0, 0, 1] },
        Packet::Connect { will: true, clean: false, duration_s: 60, client_id: "sensor-1" },
        Packet::Connack { code },
        Packet::Connack { code: ReturnCode::Reserved(9) },
        Packet::Willtopicreq,
        Packet::Willtopic { will: will() },
        Packet::Willtopic { will: None },
        Packet::Willmsgreq,
        Packet::Willmsg { message: b"gone" },
        Packet::Register { topic_id: 0, id: 17, name: "a/b/c" },
        Packet::Regack { topic_id: 1, id: 17, code },
        Packet::Puback { topic_id: 1, id: 18, code: ReturnCode::InvalidTopic },
        Packet::Pubcomp { id: 19 },
        Packet::Pubrec { id: 19 },
        Packet::Pubrel { id: 19 },
        Packet::Subscribe { dup: false, qos: Qos::ExactlyOnce, id: 20, filter: Filter::Name("a/+/#") },
        Packet::Subscribe { dup: true, qos: Qos::AtMostOnce, id: 21, filter: Filter::Predefined(5) },
        Packet::Subscribe { dup: false, qos: Qos::AtLeastOnce, id: 22, filter: Filter::Short(*b"ab") },
        Packet::Suback { qos: Qos::ExactlyOnce, topic_id: 0, id: 20, code },
        Packet::Unsubscribe { id: 23, filter: Filter::Name("a/b/c") },
        Packet::Unsuback { id: 23 },
        Packet::Pingreq { client_id: None },
        Packet::Pingreq { client_id: Some("sensor-1") },
        Packet::Pingresp,
        Packet::Disconnect { duration_s: None },
        Packet::Disconnect { duration_s: Some(300) },
        Packet::Willtopicupd { will: will() },
        Packet::Willtopicresp { code },
        Packet::Willmsgupd { message: b"gone again" },
        Packet::Willmsgresp { code },
    ];
    let qualities = [PublishQos::WithoutConnection]
        .into_iter()
        .chain([Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce].map(PublishQos::Level));
    for (number, qos) in qualities.enumerate() {
        let id = if qos.level() == Qos::AtMostOnce { 0 } else { 30 };
        let topic = [Topic::Predefined(7), Topic::Registered(1), Topic::Short(*b"ab")][number % 3];
        let message: &[u8] = if number == 3 { &LARGE } else { b"21.5" };
        samples.push(Packet::Publish { dup: number == 2, qos, retain: number == 1, topic, id, message });
    }
    samples
}
