//! Logs of Schuhmacher 2018: one file for each client, one line for each event.
//!
//! A sender's log holds what it sent and what came back to it; a relay's log holds what reached the relay and what it
//! passed on, and begins with a receipt. Messages are the senders' lines: a message that comes back is delivered to
//! its sender, so that its latency is the round trip, and to every relay whose log is imported beside it.
//!
//! A receipt belongs to the last message of its identifier, and at a relay of its topic, that was sent no later. An
//! identifier that is sent again begins another run.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::Arc;

use mqttlab_capture::CaptureError as LogError;
use mqttlab_capture::log::{Action, LoggedEvent, read_events};
use mqttlab_recording::Ending;
use mqttlab_units::Instant;

use super::error::{ImportError, Result};
use super::options::ImportOrder;
use super::progress::{ImportObserver, ProgressWatch};
use super::source::{Meter, labels, open};
use super::timeline::{LoggedReceipt, Offer, Timeline};

/// Imports logs.
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Ending> {
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut watch = ProgressWatch::new(meter.clone(), observer);
    let mut timeline = Timeline::default();
    let mut logs = Vec::new();
    for (file, label) in order.files.iter().zip(labels(&order.files)) {
        let mut text = Vec::new();
        open(file, &meter)?.read_to_end(&mut text).map_err(|error| ImportError::in_file(file, error))?;
        let events = read(&text, order.utc_offset_s, &label, &mut timeline.findings.faults)
            .map_err(|problem| ImportError::in_file(file, problem))?;
        watch.add(events.len() as u64);
        if events.is_empty() {
            timeline
                .findings
                .warnings
                .push(format!("{label} is empty: that client neither sent nor received, or did not log."));
        }
        logs.push((label, events));
    }
    if logs.iter().all(|(_, events)| events.is_empty()) {
        return Err(ImportError::in_file(&order.files[0], "there is no line to import"));
    }
    let (relays, senders): (Vec<_>, Vec<_>) = logs.into_iter().partition(|(_, events)| is_relay(events));
    let mut sent = LoggedSendings::default();
    for (label, events) in &senders {
        timeline.sender(label, events, &mut sent);
    }
    for (label, events) in &relays {
        timeline.relay(label, events, &sent);
    }
    timeline.write(order, watch)
}

/// The events of a log. A last line that was being written when the log ended is left out.
fn read(
    text: &[u8],
    utc_offset_s: i64,
    label: &str,
    faults: &mut Vec<String>,
) -> std::result::Result<Vec<LoggedEvent>, String> {
    let error = match read_events(text, utc_offset_s) {
        Ok(events) => return Ok(events),
        Err(error) => error,
    };
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let last = text[..whole].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
    if matches!(error, LogError::Log { line, .. } if line == last) && whole > 0 && whole < text.len() {
        faults.push(format!("{label} ends in the middle of line {last}"));
        return read_events(&text[..whole], utc_offset_s).map_err(describe);
    }
    Err(describe(error))
}

fn describe(error: LogError) -> String {
    format!(
        "{error}; a log has lines of date,time,action,topic,qos,size,id, or is one of Mosquitto or EMQX \
         (docs/how-to/import.md lists what is read)"
    )
}

fn is_relay(events: &[LoggedEvent]) -> bool {
    events.first().is_some_and(|event| event.action == Action::Received)
}

/// What was sent, by identifier: topic, time, and which of the timeline's offers it is.
#[derive(Default)]
struct LoggedSendings {
    by_id: HashMap<u64, Vec<(Arc<str>, Instant, usize)>>,
}

impl LoggedSendings {
    /// The last message of an identifier that was sent no later, of those that are meant.
    fn last(&self, id: u64, by: Instant, is_meant: impl Fn(&str, usize) -> bool) -> Option<usize> {
        let sendings = self.by_id.get(&id)?.iter();
        let meant = sendings.filter(|(topic, at, offer)| *at <= by && is_meant(topic, *offer));
        meant.max_by_key(|(_, at, _)| *at).map(|(_, _, offer)| *offer)
    }
}

impl Timeline {
    fn sender(&mut self, label: &str, events: &[LoggedEvent], sent: &mut LoggedSendings) {
        let client = self.participants.logged(label, "senders");
        let mine = self.offers.len();
        let (mut in_run, mut given_up) = (HashSet::new(), HashSet::new());
        for event in events {
            match event.action {
                Action::Sent => {
                    if !in_run.insert(event.id) {
                        in_run = HashSet::from([event.id]);
                        given_up.clear();
                    }
                    let topic = self.offer(client, event, Some(event.time));
                    let sending = (topic, event.time, self.offers.len() - 1);
                    sent.by_id.entry(event.id).or_default().push(sending);
                }
                // A log says that sending failed, and then that the message is given up.
                Action::Fail | Action::Discard => {
                    if !in_run.contains(&event.id) && given_up.insert(event.id) {
                        self.offer(client, event, None);
                    }
                }
                Action::Received => {}
            }
        }
        for event in events.iter().filter(|event| event.action == Action::Received) {
            let offer = sent.last(event.id, event.time, |_, offer| offer >= mine);
            self.receive(client, event, offer);
        }
    }

    fn relay(&mut self, label: &str, events: &[LoggedEvent], sent: &LoggedSendings) {
        let client = self.participants.logged(label, "relays");
        let mut topics = HashSet::new();
        let mut strangers = 0;
        for event in events.iter().filter(|event| event.action == Action::Received) {
            let offer = sent.last(event.id, event.time, |topic, _| topic == event.topic);
            strangers += u64::from(offer.is_none());
            topics.insert(event.topic.as_str());
            self.receive(client, event, offer);
        }
        for offer in self.offers.iter_mut().filter(|offer| topics.contains(&*offer.topic)) {
            offer.receivers.push(client);
        }
        if strangers > 0 {
            self.findings.reasons.push(format!(
                "{label} is the log of a relay, and {strangers} of its receipts belong to no message of a sender: \
                 import the sender's log together with it."));
        }
    }

    fn offer(&mut self, client: u32, event: &LoggedEvent, sent: Option<Instant>) -> Arc<str> {
        let topic = match self.offers.last() {
            Some(last) if *last.topic == *event.topic => Arc::clone(&last.topic),
            _ => Arc::from(event.topic.as_str()),
        };
        self.offers.push(Offer {
            publisher: client,
            topic: Arc::clone(&topic),
            qos: event.qos,
            payload_bytes: bytes(event),
            intended: event.time,
            sent,
            receivers: vec![client],
        });
        topic
    }

    fn receive(&mut self, client: u32, event: &LoggedEvent, offer: Option<usize>) {
        self.receipts.push(LoggedReceipt {
            offer,
            subscriber: client,
            qos: event.qos,
            payload_bytes: bytes(event),
            received: event.time,
        });
    }
}

fn bytes(event: &LoggedEvent) -> u32 {
    u32::try_from(event.payload_bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &[(&str, &str, &str, u32)]) -> Vec<LoggedEvent> {
        let text: String = lines
            .iter()
            .map(|(second, action, topic, id)| {
                format!("2018-05-29,00:00:{second}:000,{action},{topic},1,1,{id}\n")
            })
            .collect();
        read_events(text.as_bytes(), 0).unwrap()
    }

    /// The offers that receipts belong to, by subscriber.
    fn traced(timeline: &Timeline) -> Vec<(u32, Option<usize>)> {
        timeline.receipts.iter().map(|receipt| (receipt.subscriber, receipt.offer)).collect()
    }

    #[test]
    fn a_message_goes_to_its_relay_and_comes_back() {
        let sender = events(&[("01", "sent", "t", 0), ("04", "received", "t_2", 0), ("05", "sent", "t", 1)]);
        let relay =
            events(&[("02", "received", "t", 0), ("03", "sent", "t_2", 0), ("06", "received", "t", 9)]);
        assert!(is_relay(&relay) && !is_relay(&sender));
        let (mut timeline, mut sent) = (Timeline::default(), LoggedSendings::default());
        timeline.sender("a", &sender, &mut sent);
        timeline.relay("b", &relay, &sent);
        assert_eq!(traced(&timeline), [(0, Some(0)), (1, Some(0)), (1, None)]);
        assert_eq!(timeline.offers[1].receivers, [0, 1]);
        assert!(timeline.findings.reasons[0].contains("1 of its receipts"));
    }

    #[test]
    fn a_message_that_was_given_up_is_offered_once_in_each_run() {
        let sender = events(&[
            ("01", "sent", "t", 0),
            ("02", "fail", "t", 1),
            ("03", "discard", "t", 1),
            ("04", "sent", "t", 0),
            ("05", "fail", "t", 1),
            ("06", "fail", "t", 0),
        ]);
        let (mut timeline, mut sent) = (Timeline::default(), LoggedSendings::default());
        timeline.sender("a", &sender, &mut sent);
        let sent: Vec<bool> = timeline.offers.iter().map(|offer| offer.sent.is_some()).collect();
        assert_eq!(sent, [true, false, true, false]);
    }

    #[test]
    fn a_line_that_was_being_written_is_left_out_and_a_wrong_one_is_named() {
        let line = "2018-05-29,00:00:01:000,sent,t,1,1,0\n";
        let mut faults = Vec::new();
        let cut = format!("{line}{line}2018-05-29,00:0");
        assert_eq!(read(cut.as_bytes(), 0, "a", &mut faults).unwrap().len(), 2);
        assert_eq!(faults, ["a ends in the middle of line 3"]);
        let wrong = format!("{line}nonsense\n{line}");
        assert!(read(wrong.as_bytes(), 0, "a", &mut faults).unwrap_err().starts_with("line 2: has 1 fields"));
    }
}
