//! Every protocol around a hub, told noise and its own packets in any order: nothing panics, what is sent can be read, and goes to
//! whom there is.

use std::collections::BTreeMap;

use mqttlab_mqtt::Qos;
use mqttlab_protocol::{HUB_PROTOCOLS, Member, Message, Of, Settings, Step, Token};
use mqttlab_units::{Duration, Instant};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_hub_hears_anything_and_says_what_can_be_read(
        heard in prop::collection::vec((0..4_u32, prop::collection::vec(any::<u8>(), 0..24), any::<bool>()), 1..40),
    ) {
        for protocol in HUB_PROTOCOLS {
            let mut hub = protocol.hub(&Settings::new(protocol.settings(), Of::Hub, &BTreeMap::new()).unwrap());
            let mut now = Instant::ZERO;
            for (from, bytes, waits) in &heard {
                now += Duration::from_ms(if *waits { 700 } else { 0 });
                if hub.next_deadline().is_some_and(|at| at <= now) {
                    hub.tick(now);
                }
                // Half of the noise begins as a packet does.
                let bytes = if *waits { [&[bytes.len() as u8 % 6, 1, 0, 1], bytes.as_slice()].concat() } else { bytes.clone() };
                if let Some(head) = protocol.read(&bytes) {
                    let payload = Message::Payload(bytes[head.bytes..].into());
                    hub.handle(now, *from, &head, head.kind.is_message().then_some(&payload));
                }
                while let Some(sent) = hub.poll() {
                    prop_assert!(sent.to < 4);
                    let head = protocol.read(&sent.head).expect("a hub writes what can be read");
                    prop_assert_eq!(head.bytes == sent.head.len() , true);
                    prop_assert_eq!(head.kind.is_message(), sent.message.is_some());
                }
            }
        }
    }

    /// Whatever is lost, and however often it is asked: a session says what can be read, acknowledges each message once at most, and
    /// wants to be woken while something is to be answered.
    #[test]
    fn a_session_survives_anything(
        told in prop::collection::vec((0..6_u8, prop::collection::vec(any::<u8>(), 0..12)), 1..60),
    ) {
        for protocol in HUB_PROTOCOLS {
            let settings = Settings::new(protocol.settings(), Of::Client, &BTreeMap::new()).unwrap();
            let mut session =
                protocol.client(Member { client_id: "me".into(), filters: vec!["a/+".into()], settings });
            let (mut now, mut next, mut acknowledged) = (Instant::ZERO, 0, Vec::new());
            session.opened(now);
            for (what, bytes) in &told {
                match what {
                    0 => drop(session.publish(now, Token(next), Some(0), Qos::AtMostOnce)),
                    1 => {
                        session.publish(now, Token(next), Some(0), Qos::AtLeastOnce);
                    }
                    2 => now += Duration::from_ms(1500),
                    3 => {
                        session.closed(now);
                        session.opened(now);
                    }
                    // Answers to anything that may be under way.
                    4 => (0..6).for_each(|kind| (0..8).for_each(|id| session.received(now, Box::from([kind, 0, 0, id])))),
                    _ => session.received(now, bytes.as_slice().into()),
                }
                next += 1;
                if session.next_deadline().is_some_and(|at| at <= now) {
                    session.tick(now);
                }
                while let Some(step) = session.poll() {
                    match step {
                        Step::Connect(head) | Step::Subscribe(head) | Step::Send(head) => {
                            prop_assert!(protocol.read(&head).is_some_and(|read| read.bytes <= head.len()));
                        }
                        Step::Acknowledged(message) => {
                            prop_assert!(!acknowledged.contains(&message), "{message:?} twice");
                            acknowledged.push(message);
                        }
                        _ => {}
                    }
                }
                prop_assert!(session.next_deadline().is_none_or(|at| at > now), "a deadline in the past");
            }
        }
    }
}
