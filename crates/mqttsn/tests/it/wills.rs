//! What becomes of a client's will when it connects again (MQTT-SN 1.2 §6.3).

use std::collections::VecDeque;
use std::sync::Arc;

use mqttlab_mqtt::Qos;
use mqttlab_mqttsn::Packet;
use mqttlab_mqttsn::gateway::{Address, BrokerPacket, Gateway, Input, Link, Mode, Output};
use mqttlab_mqttsn::packet::WillTopic;
use mqttlab_units::{Duration, Instant};

type Said = Packet<Arc<str>, &'static str>;

fn connect(clean: bool, will: bool) -> Said {
    Packet::Connect { will, clean, duration_s: 60, client_id: "sensor".into() }
}

fn with_will(clean: bool, message: &'static str) -> Vec<Said> {
    let will = WillTopic { qos: Qos::AtMostOnce, retain: false, topic: "w".into() };
    vec![connect(clean, true), Packet::Willtopic { will: Some(will) }, Packet::Willmsg { message }]
}

/// A client has connected with the will `first`; it says `again`, and is silent until the gateway gives it up. The wills that the
/// broker was told in each CONNECT, and those that the gateway published itself.
fn wills(mode: Mode, again: Vec<Said>) -> Vec<Option<&'static str>> {
    let mut gateway = Gateway::new(crate::checks::options(mode), Instant::ZERO);
    let mut told = Vec::new();
    // Behind another packet a CONNECT is no repetition.
    let packets = [with_will(true, "first"), vec![Packet::Pingreq { client_id: None }], again].concat();
    let from = |packet| Input::Packet { from: Address { peer: 1, node: None }, packet };
    for (s, input) in (0..).zip(packets.into_iter().map(from)).chain([(1000, Input::Tick)]) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            gateway.handle(Instant::ZERO + Duration::from_s(s), input);
            while let Some(output) = gateway.poll() {
                match output {
                    Output::Open(link) => {
                        let connack = BrokerPacket::Connack { code: 0, session_present: false };
                        inputs.extend([Input::Opened(link), Input::Broker(link, connack)]);
                    }
                    Output::Broker(link, BrokerPacket::Connect { will, .. }) if link != Link::OWN => {
                        told.push(will.map(|will| will.message));
                    }
                    Output::Broker(_, BrokerPacket::Publish { message, .. }) => told.push(Some(message)),
                    _ => {}
                }
            }
        }
    }
    told
}

#[test]
fn a_clean_session_deletes_the_will_of_the_last_one() {
    let again = || vec![connect(true, false)];
    assert_eq!(wills(Mode::Transparent, again()), [Some("first"), None]);
    assert_eq!(wills(Mode::Aggregating, again()), []);
    // It is deleted before the new one is asked for, which may never come.
    assert_eq!(wills(Mode::Aggregating, vec![connect(true, true)]), []);
}

#[test]
fn a_session_that_goes_on_keeps_its_will_and_a_new_will_replaces_it() {
    assert_eq!(wills(Mode::Transparent, vec![connect(false, false)]), [Some("first")]);
    assert_eq!(wills(Mode::Aggregating, vec![connect(false, false)]), [Some("first")]);
    for clean in [true, false] {
        assert_eq!(wills(Mode::Transparent, with_will(clean, "second")), [Some("first"), Some("second")]);
        assert_eq!(wills(Mode::Aggregating, with_will(clean, "second")), [Some("second")]);
    }
}
