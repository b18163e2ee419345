//! What a broker costs in memory: little for a session at rest, and nothing more for each message once warm.

use mqttlab_counting::{calls, held};
use mqttlab_mqtt::broker::{Broker, BrokerOptions, ConnectionId, Input, Output, TopicId};
use mqttlab_mqtt::{Qos, Version};
use mqttlab_units::{Duration, Instant};

const PUBLISHER: ConnectionId = ConnectionId(0);

fn drain(broker: &mut Broker) {
    while broker.poll().is_some() {}
}

fn connect(broker: &mut Broker, connection: ConnectionId) {
    let client = format!("client-{}", connection.0);
    let input = Input::Connect {
        client: &client,
        version: Version::V311,
        clean: false,
        keep_alive: Duration::from_s(60),
        session_expiry: None,
        receive_maximum: u16::MAX,
        will: None,
    };
    broker.handle(Instant::ZERO, connection, input);
    drain(broker);
}

fn subscribe(broker: &mut Broker, connection: ConnectionId, filter: &str, qos: Qos) {
    broker.handle(Instant::ZERO, connection, Input::Subscribe { id: 1, filters: &[(filter, qos.into())] });
    drain(broker);
}

fn publish(topic: TopicId, message: u64, qos: Qos, retain: bool) -> Input<'static> {
    Input::Publish { topic, message, qos, id: 1, dup: false, retain, empty: false, expiry_s: None }
}

/// Tells the broker something, and answers for every client whatever has to be answered, except that a slow one never
/// does. How many packets were to be answered.
fn play(broker: &mut Broker, input: Input<'_>, slow: Option<ConnectionId>) -> u32 {
    broker.handle(Instant::ZERO, PUBLISHER, input);
    let mut packets = 0;
    while let Some(output) = broker.poll() {
        let (connection, answer) = match output {
            Output::Publish { connection, qos: Qos::AtLeastOnce, id, .. } => {
                (connection, Input::Puback { id })
            }
            Output::Publish { connection, qos: Qos::ExactlyOnce, id, .. } => {
                (connection, Input::Pubrec { id })
            }
            Output::Pubrel { connection, id } => (connection, Input::Pubcomp { id }),
            Output::Pubrec { connection, id } => (connection, Input::Pubrel { id }),
            _ => continue,
        };
        packets += 1;
        if Some(connection) != slow {
            broker.handle(Instant::ZERO, connection, answer);
        }
    }
    packets
}

#[test]
fn a_message_allocates_nothing_once_the_broker_is_warm() {
    let retry = Some(Duration::from_s(20));
    let mut broker = Broker::new(BrokerOptions { retry, ..BrokerOptions::default() });
    let levels = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
    for number in 0..60 {
        connect(&mut broker, ConnectionId(number));
        let filter = ["topic/#", "+/1", "$share/group/topic/2"][number as usize % 3];
        subscribe(&mut broker, ConnectionId(number), filter, levels[number as usize / 3 % 3]);
    }
    let topics = ["topic/0", "topic/1", "topic/2"].map(|name| broker.topic(name));
    // This one subscribes to everything at QoS 1, so that its queue is full before long.
    let slow = Some(ConnectionId(3));
    let mut round = |messages: std::ops::Range<u64>| -> u32 {
        let one = |message: u64| {
            let (topic, qos) = (topics[message as usize % 3], levels[message as usize / 3 % 3]);
            play(&mut broker, publish(topic, message, qos, message.is_multiple_of(5)), slow)
        };
        messages.map(one).sum()
    };
    round(0..3000);
    let before = calls();
    let packets = round(3000..6000);
    assert_eq!(calls() - before, 0, "allocations for {packets} packets");
    assert!(packets > 40_000, "{packets} packets that are answered");
}

#[test]
fn ten_thousand_sessions_at_rest_take_less_than_500_bytes_each() {
    let sessions = 10_000;
    let before = held();
    let mut broker = Broker::new(BrokerOptions::default());
    for number in 0..sessions {
        let connection = ConnectionId(number);
        connect(&mut broker, connection);
        subscribe(&mut broker, connection, &format!("command/{number}/+"), Qos::AtLeastOnce);
    }
    let each = |before: i64| (held() - before) / i64::from(sessions);
    assert_eq!(broker.sessions(), sessions as usize);
    assert!((200..500).contains(&each(before)), "{} bytes for each session", each(before));
    let at_rest = held();
    for number in 0..sessions {
        let topic = broker.topic(&format!("command/{number}/start"));
        let packets = play(&mut broker, publish(topic, 0, Qos::AtLeastOnce, false), None);
        assert_eq!((packets, broker.messages()), (1, 0));
    }
    assert!((100..700).contains(&each(at_rest)), "{} bytes more for a topic and a delivery", each(at_rest));
}
