//! Scripts for a broker: what comes, line by line, and below each line what the broker does about it.
//!
//! ```text
//! 0 1 connect anna kept max=5      at 0 ms, connection 1: CONNECT of client "anna"
//! 1 1 subscribe #1 a/#:2           packet identifier 1, QoS 2
//! 2 1 publish a/b 7 q1 #9 retain   message 7 at QoS 1
//! 3 1 puback #1
//! 4 1 unfinished                   bytes of a large packet
//! 4 1 closed                       the transport is gone
//! 9 tick
//! 9 killed                         the program has ended, and others: stopped, emptied
//! ```

use std::fmt::Write as _;

use expect_test::Expect;
use mqttlab_mqtt::broker::{Broker, BrokerOptions, ConnectionId, Input, Kept, Output, TopicId, Will};
use mqttlab_mqtt::{Qos, RetainHandling, SubscriptionOptions, Version};
use mqttlab_units::{Duration, Instant};

/// Plays a script and compares the transcript.
pub fn check(options: BrokerOptions, script: &str, expected: Expect) {
    expected.assert_eq(&transcript(options, script));
}

/// Plays a script.
pub fn transcript(options: BrokerOptions, script: &str) -> String {
    let mut broker = Broker::new(options);
    let mut names = Vec::new();
    let mut transcript = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(transcript, "{line}").unwrap();
        let mut words = line.split(' ');
        let now = Instant::ZERO + Duration::from_ms(words.next().unwrap().parse().unwrap());
        match words.next().unwrap() {
            "tick" => broker.tick(now),
            "killed" => broker.end(now, Kept::Written),
            "emptied" => broker.end(now, Kept::Nothing),
            "stopped" => {
                broker.publish_wills(now);
                broker.end(now, Kept::Everything);
            }
            connection => {
                let connection = ConnectionId(connection.parse().unwrap());
                play(&mut broker, &mut names, now, connection, &words.collect::<Vec<_>>());
            }
        }
        while let Some(output) = broker.poll() {
            writeln!(transcript, "    {}", tell(&broker, &names, &output)).unwrap();
        }
        assert!(broker.next_deadline().is_none_or(|deadline| deadline >= now), "a deadline in the past");
    }
    transcript
}

fn play(
    broker: &mut Broker,
    names: &mut Vec<String>,
    now: Instant,
    connection: ConnectionId,
    words: &[&str],
) {
    let id = words.iter().find_map(|word| word.strip_prefix('#')).map_or(0, |id| id.parse().unwrap());
    let mut topic = |broker: &mut Broker, name: &str| {
        let topic = broker.topic(name);
        names.resize(names.len().max(topic.0 as usize + 1), String::new());
        names[topic.0 as usize] = name.to_owned();
        topic
    };
    let has = |word: &str| words.contains(&word);
    let input = match words[0] {
        "closed" => return broker.closed(now, connection),
        "unfinished" => return broker.heard(now, connection),
        "backlog" => return broker.set_backlog(connection, words[1].parse().unwrap()),
        "connect" => {
            let will = option(words, "will=").map(|will| {
                let parts: Vec<&str> = will.split(':').collect();
                let (topic, message) = (topic(broker, parts[0]), parts[1].parse().unwrap());
                let has = |word: &str| parts[3..].contains(&word);
                Will { topic, message, qos: qos(parts[2]), retain: has("retain"), empty: has("empty") }
            });
            return broker.handle(now, connection, connect(words, will));
        }
        "subscribe" => {
            let handling = match option(words, "retained=") {
                Some("new") => RetainHandling::New,
                Some("never") => RetainHandling::Never,
                _ => RetainHandling::Send,
            };
            let asked = SubscriptionOptions {
                retain_handling: handling,
                retain_as_published: has("as-published"),
                no_local: has("no-local"),
                ..SubscriptionOptions::default()
            };
            let filters: Vec<(&str, SubscriptionOptions)> = words[2..]
                .iter()
                .filter_map(|word| word.rsplit_once(':'))
                .map(|(f, q)| (f, SubscriptionOptions { qos: qos(q), ..asked }))
                .collect();
            return broker.handle(now, connection, Input::Subscribe { id, filters: &filters });
        }
        "unsubscribe" => {
            return broker.handle(now, connection, Input::Unsubscribe { id, filters: &words[2..] });
        }
        "publish" => Input::Publish {
            topic: topic(broker, words[1]),
            message: words[2].parse().unwrap(),
            qos: qos(&words[3][1..]),
            id,
            dup: has("dup"),
            retain: has("retain"),
            empty: has("empty"),
            expiry_s: option(words, "expiry=").map(|seconds| seconds.parse().unwrap()),
        },
        "puback" => Input::Puback { id },
        "pubrec" => Input::Pubrec { id },
        "pubrel" => Input::Pubrel { id },
        "pubcomp" => Input::Pubcomp { id },
        "pingreq" => Input::Pingreq,
        "disconnect" => Input::Disconnect { with_will: has("with-will") },
        other => panic!("{other} is not a verb"),
    };
    broker.handle(now, connection, input);
}

/// `clean` sessions end with their connection, `kept` ones never do, `expiry=` ones after so many milliseconds.
fn connect<'a>(words: &[&'a str], will: Option<Will>) -> Input<'a> {
    let number = |name| option(words, name).map(|number| number.parse().unwrap());
    let clean = words.contains(&"clean");
    let version = match words.iter().find_map(|word| word.strip_prefix('v')) {
        Some("3.1") => Version::V31,
        Some("5") => Version::V5,
        _ => Version::V311,
    };
    Input::Connect {
        client: words[1].trim_matches('"'),
        version,
        clean,
        keep_alive: Duration::from_ms(number("keep-alive=").unwrap_or(0)),
        session_expiry: number("expiry=").map(Duration::from_ms).or(clean.then_some(Duration::ZERO)),
        receive_maximum: number("max=").map_or(u16::MAX, |maximum| maximum as u16),
        will,
    }
}

fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name))
}

fn qos(level: &str) -> Qos {
    Qos::from_level(level.parse().unwrap()).unwrap()
}

fn tell(broker: &Broker, names: &[String], output: &Output) -> String {
    let name = |topic: &TopicId| &names[topic.0 as usize];
    let flag = |set: &bool, name: &'static str| if *set { name } else { "" };
    match output {
        Output::Connack { connection, session_present, accepted, .. } => {
            let answer = if *accepted { "accepted" } else { "rejected" };
            format!("{} < CONNACK {answer}{}", connection.0, flag(session_present, " session present"))
        }
        Output::Suback { connection, id, granted } => {
            let granted: Vec<u8> = granted.iter().map(|qos| qos.level()).collect();
            format!("{} < SUBACK #{id} {granted:?}", connection.0)
        }
        Output::Unsuback { connection, id } => format!("{} < UNSUBACK #{id}", connection.0),
        Output::Publish { connection, topic, message, qos, id, dup, retain, expiry_s } => {
            let id = if *qos == Qos::AtMostOnce { String::new() } else { format!(" #{id}") };
            let (dup, retain) = (flag(dup, " dup"), flag(retain, " retain"));
            let left = expiry_s.map_or(String::new(), |left| format!(" {left} s"));
            let (name, qos) = (name(topic), qos.level());
            format!("{} < PUBLISH {name} {message} q{qos}{id}{dup}{retain}{left}", connection.0)
        }
        Output::Puback { connection, id } => format!("{} < PUBACK #{id}", connection.0),
        Output::Pubrec { connection, id } => format!("{} < PUBREC #{id}", connection.0),
        Output::Pubrel { connection, id } => format!("{} < PUBREL #{id}", connection.0),
        Output::Pubcomp { connection, id } => format!("{} < PUBCOMP #{id}", connection.0),
        Output::Pingresp { connection } => format!("{} < PINGRESP", connection.0),
        Output::Close { connection } => format!("{} closed", connection.0),
        Output::Dropped { session, message, cause } => {
            format!("{message} dropped for {}: {cause:?}", broker.client(*session).unwrap_or("nobody"))
        }
        Output::Discarded { message } => format!("{message} acknowledged and dropped"),
        Output::Released { message } => format!("{message} released"),
    }
}
