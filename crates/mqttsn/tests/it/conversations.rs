//! Client and gateway as conversations: what happens on the left, what the machine does below it.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};
use mqttlab_mqtt::{Kind, Qos};
use mqttlab_mqttsn::client::{Client, ClientOptions, Input, Sleep, Subject};
use mqttlab_mqttsn::gateway::{self, Address, BrokerPacket, Gateway, Link, Mode};
use mqttlab_mqttsn::packet::WillTopic;
use mqttlab_mqttsn::{Filter, Packet, PublishQos, ReturnCode, Topic};
use mqttlab_units::{Duration, Instant};

const OPTIONS: ClientOptions = ClientOptions {
    clean: true,
    will: false,
    without_connection: false,
    keep_alive: Duration::from_s(60),
    retry: Duration::from_s(10),
    retries: 2,
    wait: Duration::from_s(300),
    max_queued: 10,
    subscriptions: 0,
    deliver_on_release: true,
    search: None,
    sleep: None,
};
const ACCEPTED: ReturnCode = ReturnCode::Accepted;

enum Given {
    Input(Input<'static>),
    Publish(u32, Qos),
    Arrived(Topic, Qos, u16),
}

fn check_client(options: ClientOptions, script: &[(u64, Given)], expected: Expect) {
    let (mut client, mut transcript) = (Client::new(options), String::new());
    for (s, given) in script {
        let now = Instant::ZERO + Duration::from_s(*s);
        match given {
            Given::Input(input) => {
                writeln!(transcript, "+{s}s {input:?}").unwrap();
                client.handle(now, *input);
            }
            Given::Publish(token, qos) => {
                let answer = client.publish(now, *token, Subject::Named(0), *qos);
                writeln!(transcript, "+{s}s publish {token} {qos:?}: {answer:?}").unwrap();
            }
            Given::Arrived(topic, qos, id) => {
                let answer = client.arrived(now, *topic, PublishQos::Level(*qos), *id);
                writeln!(transcript, "+{s}s arrived {topic:?} {qos:?} {id}: {answer:?}").unwrap();
            }
        }
        while let Some(output) = client.poll() {
            writeln!(transcript, "   > {output:?}").unwrap();
        }
        assert!(client.next_deadline().is_none_or(|deadline| deadline >= now), "a deadline in the past");
    }
    expected.assert_eq(&transcript);
}

use Given::{Arrived, Input as In, Publish};

#[test]
fn a_client_tells_its_will_registers_its_topic_and_repeats_what_is_not_answered() {
    check_client(
        ClientOptions { will: true, ..OPTIONS },
        &[
            (0, In(Input::Opened)),
            (1, In(Input::Willtopicreq)),
            (2, In(Input::Willmsgreq)),
            (3, In(Input::Connack { code: ACCEPTED })),
            (4, Publish(7, Qos::AtLeastOnce)),
            (5, In(Input::Regack { topic_id: 1, id: 1, code: ACCEPTED })),
            (14, In(Input::Tick)),
            (15, In(Input::Tick)),
            (16, In(Input::Puback { topic_id: 1, id: 2, code: ACCEPTED })),
            (17, In(Input::Puback { topic_id: 1, id: 2, code: ACCEPTED })),
        ],
        expect![[r#"
            +0s Opened
               > Send(Connect { clean: true, will: true })
            +1s Willtopicreq
               > Send(Willtopic)
            +2s Willmsgreq
               > Send(Willmsg)
            +3s Connack { code: Accepted }
               > Connected
            +4s publish 7 AtLeastOnce: Waiting
               > Send(Register { topic: 0, id: 1 })
            +5s Regack { topic_id: 1, id: 1, code: Accepted }
               > Publish { token: 7, qos: Level(AtLeastOnce), dup: false, topic: Registered(1), id: 2 }
            +14s Tick
            +15s Tick
               > Publish { token: 7, qos: Level(AtLeastOnce), dup: true, topic: Registered(1), id: 2 }
            +16s Puback { topic_id: 1, id: 2, code: Accepted }
               > Acknowledged { token: 7 }
            +17s Puback { topic_id: 1, id: 2, code: Accepted }
        "#]],
    );
}

#[test]
fn a_gateway_that_does_not_answer_is_given_up_after_n_retry() {
    check_client(
        OPTIONS,
        &[
            (0, In(Input::Opened)),
            (1, In(Input::Connack { code: ACCEPTED })),
            (2, Publish(7, Qos::ExactlyOnce)),
            (12, In(Input::Tick)),
            (22, In(Input::Tick)),
            (32, In(Input::Tick)),
            (33, In(Input::Closed)),
            (34, In(Input::Opened)),
        ],
        expect![[r#"
            +0s Opened
               > Send(Connect { clean: true, will: false })
            +1s Connack { code: Accepted }
               > Connected
            +2s publish 7 ExactlyOnce: Waiting
               > Send(Register { topic: 0, id: 1 })
            +12s Tick
               > Send(Register { topic: 0, id: 1 })
            +22s Tick
               > Send(Register { topic: 0, id: 1 })
            +32s Tick
               > Close(Unanswered("no REGACK after N_retry repetitions of REGISTER"))
            +33s Closed
            +34s Opened
               > Send(Connect { clean: true, will: false })
        "#]],
    );
}

#[test]
fn a_topic_that_the_gateway_has_forgotten_is_registered_anew_once() {
    let invalid = |id| In(Input::Puback { topic_id: 1, id, code: ReturnCode::InvalidTopic });
    check_client(
        OPTIONS,
        &[
            (0, In(Input::Opened)),
            (1, In(Input::Connack { code: ACCEPTED })),
            (2, Publish(7, Qos::AtLeastOnce)),
            (3, In(Input::Regack { topic_id: 1, id: 1, code: ACCEPTED })),
            (4, invalid(2)),
            (5, In(Input::Regack { topic_id: 1, id: 3, code: ACCEPTED })),
            (6, invalid(4)),
        ],
        expect![[r#"
            +0s Opened
               > Send(Connect { clean: true, will: false })
            +1s Connack { code: Accepted }
               > Connected
            +2s publish 7 AtLeastOnce: Waiting
               > Send(Register { topic: 0, id: 1 })
            +3s Regack { topic_id: 1, id: 1, code: Accepted }
               > Publish { token: 7, qos: Level(AtLeastOnce), dup: false, topic: Registered(1), id: 2 }
            +4s Puback { topic_id: 1, id: 2, code: InvalidTopic }
               > Send(Register { topic: 0, id: 3 })
            +5s Regack { topic_id: 1, id: 3, code: Accepted }
               > Publish { token: 7, qos: Level(AtLeastOnce), dup: false, topic: Registered(1), id: 4 }
            +6s Puback { topic_id: 1, id: 4, code: InvalidTopic }
               > Refused { token: 7, qos: AtLeastOnce }
        "#]],
    );
}

#[test]
fn a_sleeper_wakes_up_for_what_was_kept_and_does_not_know_what_was_never_named() {
    let sleep = Sleep {
        duration_s: 100,
        every: Duration::from_s(50),
        linger: Duration::from_s(2),
        publish_when_awake: true,
    };
    check_client(
        ClientOptions { sleep: Some(sleep), ..OPTIONS },
        &[
            (0, In(Input::Opened)),
            (1, In(Input::Connack { code: ACCEPTED })),
            (3, In(Input::Tick)),
            (4, In(Input::Disconnected)),
            (10, Arrived(Topic::Short(*b"ab"), Qos::AtMostOnce, 0)),
            (54, In(Input::Tick)),
            (55, Arrived(Topic::Registered(9), Qos::AtLeastOnce, 5)),
            (56, In(Input::Register { topic_id: 9, id: 1, name: "a/b" })),
            (57, Arrived(Topic::Registered(9), Qos::AtLeastOnce, 5)),
            (58, In(Input::Pingresp)),
            (60, Publish(7, Qos::AtMostOnce)),
            (104, In(Input::Tick)),
            (105, In(Input::Connack { code: ACCEPTED })),
        ],
        expect![[r#"
            +0s Opened
               > Send(Connect { clean: true, will: false })
            +1s Connack { code: Accepted }
               > Connected
            +3s Tick
               > Send(Disconnect { duration_s: Some(100) })
            +4s Disconnected
               > Asleep(true)
            +10s arrived Short([97, 98]) AtMostOnce 0: None
            +54s Tick
               > Asleep(false)
               > Send(Pingreq { awake: true })
            +55s arrived Registered(9) AtLeastOnce 5: None
               > Send(Puback { topic_id: 9, id: 5, code: InvalidTopic })
            +56s Register { topic_id: 9, id: 1, name: "a/b" }
               > Send(Regack { topic_id: 9, id: 1 })
            +57s arrived Registered(9) AtLeastOnce 5: Some(Deliver)
               > Send(Puback { topic_id: 9, id: 5, code: Accepted })
            +58s Pingresp
               > Asleep(true)
            +60s publish 7 AtMostOnce: Waiting
            +104s Tick
               > Asleep(false)
               > Send(Connect { clean: false, will: false })
            +105s Connack { code: Accepted }
               > Send(Register { topic: 0, id: 1 })
        "#]],
    );
}

type Script<'a> = &'a [(u64, gateway::Input<&'static str>)];

fn check_gateway(mode: Mode, script: Script<'_>, expected: Expect) {
    let (mut gateway, mut transcript) =
        (Gateway::new(crate::checks::options(mode), Instant::ZERO), String::new());
    let drain = |gateway: &mut Gateway<&'static str>, transcript: &mut String| {
        while let Some(output) = gateway.poll() {
            writeln!(transcript, "   > {output:?}").unwrap();
        }
    };
    drain(&mut gateway, &mut transcript);
    for (s, input) in script {
        writeln!(transcript, "+{s}s {input:?}").unwrap();
        gateway.handle(Instant::ZERO + Duration::from_s(*s), input.clone());
        drain(&mut gateway, &mut transcript);
    }
    expected.assert_eq(&transcript);
}

fn from(peer: u32, packet: Packet<Arc<str>, &'static str>) -> gateway::Input<&'static str> {
    gateway::Input::Packet { from: Address { peer, node: None }, packet }
}

fn connect(will: bool) -> Packet<Arc<str>, &'static str> {
    Packet::Connect { will, clean: true, duration_s: 60, client_id: "sensor".into() }
}

fn acknowledged(kind: Kind, id: u16) -> BrokerPacket<&'static str> {
    BrokerPacket::Acknowledgement { kind, id }
}

#[test]
fn a_transparent_gateway_translates_and_acknowledges_a_repetition_without_publishing_it() {
    let publish = |dup| Packet::Publish {
        dup,
        qos: PublishQos::Level(Qos::AtLeastOnce),
        retain: false,
        topic: Topic::Registered(1),
        id: 8,
        message: "21.5",
    };
    let will = WillTopic { qos: Qos::AtMostOnce, retain: false, topic: "gone".into() };
    let link = Link(1);
    let connack = BrokerPacket::Connack { code: 0, session_present: false };
    check_gateway(
        Mode::Transparent,
        &[
            (0, gateway::Input::Tick),
            (1, from(5, connect(true))),
            (2, from(5, Packet::Willtopic { will: Some(will) })),
            (3, from(5, Packet::Willmsg { message: "ill" })),
            (4, gateway::Input::Opened(link)),
            (5, gateway::Input::Broker(link, connack)),
            (6, from(5, Packet::Register { topic_id: 0, id: 7, name: "a/b".into() })),
            (7, from(5, publish(false))),
            (8, from(5, publish(true))),
            (9, gateway::Input::Broker(link, acknowledged(Kind::Puback, 8))),
            (10, from(5, publish(true))),
            (11, from(6, publish(false))),
            (200, gateway::Input::Tick),
        ],
        expect![[r#"
            +0s Tick
               > Broadcast(Advertise { gateway: 1, duration_s: 900 })
            +1s Packet { from: Address { peer: 5, node: None }, packet: Connect { will: true, clean: true, duration_s: 60, client_id: "sensor" } }
               > Send { to: Address { peer: 5, node: None }, packet: Willtopicreq }
            +2s Packet { from: Address { peer: 5, node: None }, packet: Willtopic { will: Some(WillTopic { qos: AtMostOnce, retain: false, topic: "gone" }) } }
               > Send { to: Address { peer: 5, node: None }, packet: Willmsgreq }
            +3s Packet { from: Address { peer: 5, node: None }, packet: Willmsg { message: "ill" } }
               > Open(Link(1))
            +4s Opened(Link(1))
               > Broker(Link(1), Connect { client_id: "sensor", clean: true, keep_alive_s: 60, will: Some(Will { topic: "gone", qos: AtMostOnce, retain: false, message: "ill" }) })
            +5s Broker(Link(1), Connack { code: 0, session_present: false })
               > Send { to: Address { peer: 5, node: None }, packet: Connack { code: Accepted } }
            +6s Packet { from: Address { peer: 5, node: None }, packet: Register { topic_id: 0, id: 7, name: "a/b" } }
               > Send { to: Address { peer: 5, node: None }, packet: Regack { topic_id: 1, id: 7, code: Accepted } }
            +7s Packet { from: Address { peer: 5, node: None }, packet: Publish { dup: false, qos: Level(AtLeastOnce), retain: false, topic: Registered(1), id: 8, message: "21.5" } }
               > Broker(Link(1), Publish { dup: false, qos: AtLeastOnce, retain: false, topic: "a/b", id: 8, message: "21.5" })
            +8s Packet { from: Address { peer: 5, node: None }, packet: Publish { dup: true, qos: Level(AtLeastOnce), retain: false, topic: Registered(1), id: 8, message: "21.5" } }
            +9s Broker(Link(1), Acknowledgement { kind: Puback, id: 8 })
               > Send { to: Address { peer: 5, node: None }, packet: Puback { topic_id: 1, id: 8, code: Accepted } }
            +10s Packet { from: Address { peer: 5, node: None }, packet: Publish { dup: true, qos: Level(AtLeastOnce), retain: false, topic: Registered(1), id: 8, message: "21.5" } }
               > Send { to: Address { peer: 5, node: None }, packet: Puback { topic_id: 1, id: 8, code: Accepted } }
            +11s Packet { from: Address { peer: 6, node: None }, packet: Publish { dup: false, qos: Level(AtLeastOnce), retain: false, topic: Registered(1), id: 8, message: "21.5" } }
               > Send { to: Address { peer: 6, node: None }, packet: Disconnect { duration_s: None } }
            +200s Tick
               > Close(Link(1))
        "#]],
    );
}

#[test]
fn an_aggregating_gateway_subscribes_once_and_gives_each_client_its_copy() {
    let subscribe =
        |id| Packet::Subscribe { dup: false, qos: Qos::AtLeastOnce, id, filter: Filter::Name("a/+".into()) };
    let other = Packet::Connect { will: false, clean: true, duration_s: 60, client_id: "other".into() };
    let publish = BrokerPacket::Publish {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: false,
        topic: "a/b".into(),
        id: 9,
        message: "21.5",
    };
    let connack = BrokerPacket::Connack { code: 0, session_present: false };
    check_gateway(
        Mode::Aggregating,
        &[
            (1, from(5, connect(false))),
            (2, gateway::Input::Opened(Link::OWN)),
            (3, gateway::Input::Broker(Link::OWN, connack)),
            (4, from(6, other)),
            (5, from(5, subscribe(3))),
            (6, gateway::Input::Broker(Link::OWN, BrokerPacket::Suback { id: 1, code: 1 })),
            (7, from(6, subscribe(4))),
            (8, gateway::Input::Broker(Link::OWN, publish)),
            (9, from(5, Packet::Regack { topic_id: 1, id: 2, code: ACCEPTED })),
            (10, from(5, Packet::Puback { topic_id: 1, id: 1, code: ACCEPTED })),
            (11, from(6, Packet::Disconnect { duration_s: Some(300) })),
        ],
        expect![[r#"
               > Open(Link(0))
            +1s Packet { from: Address { peer: 5, node: None }, packet: Connect { will: false, clean: true, duration_s: 60, client_id: "sensor" } }
            +2s Opened(Link(0))
               > Broker(Link(0), Connect { client_id: "gateway", clean: true, keep_alive_s: 60, will: None })
            +3s Broker(Link(0), Connack { code: 0, session_present: false })
               > Send { to: Address { peer: 5, node: None }, packet: Connack { code: Accepted } }
            +4s Packet { from: Address { peer: 6, node: None }, packet: Connect { will: false, clean: true, duration_s: 60, client_id: "other" } }
               > Send { to: Address { peer: 6, node: None }, packet: Connack { code: Accepted } }
            +5s Packet { from: Address { peer: 5, node: None }, packet: Subscribe { dup: false, qos: AtLeastOnce, id: 3, filter: Name("a/+") } }
               > Broker(Link(0), Subscribe { id: 1, filter: "a/+", qos: AtLeastOnce })
            +6s Broker(Link(0), Suback { id: 1, code: 1 })
               > Send { to: Address { peer: 5, node: None }, packet: Suback { qos: AtLeastOnce, topic_id: 0, id: 3, code: Accepted } }
            +7s Packet { from: Address { peer: 6, node: None }, packet: Subscribe { dup: false, qos: AtLeastOnce, id: 4, filter: Name("a/+") } }
               > Send { to: Address { peer: 6, node: None }, packet: Suback { qos: AtLeastOnce, topic_id: 0, id: 4, code: Accepted } }
            +8s Broker(Link(0), Publish { dup: false, qos: AtLeastOnce, retain: false, topic: "a/b", id: 9, message: "21.5" })
               > Send { to: Address { peer: 5, node: None }, packet: Register { topic_id: 1, id: 2, name: "a/b" } }
               > Send { to: Address { peer: 6, node: None }, packet: Register { topic_id: 1, id: 2, name: "a/b" } }
               > Broker(Link(0), Acknowledgement { kind: Puback, id: 9 })
            +9s Packet { from: Address { peer: 5, node: None }, packet: Regack { topic_id: 1, id: 2, code: Accepted } }
               > Send { to: Address { peer: 5, node: None }, packet: Publish { dup: false, qos: Level(AtLeastOnce), retain: false, topic: Registered(1), id: 1, message: "21.5" } }
            +10s Packet { from: Address { peer: 5, node: None }, packet: Puback { topic_id: 1, id: 1, code: Accepted } }
            +11s Packet { from: Address { peer: 6, node: None }, packet: Disconnect { duration_s: Some(300) } }
               > Send { to: Address { peer: 6, node: None }, packet: Disconnect { duration_s: None } }
        "#]],
    );
}
