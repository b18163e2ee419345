//! MQTTLoader's records of sending and receiving, as 0.7 and 0.8 write them (usage, "Send/Receive record file"): a line for each
//! event, `timestamp,client,S,` or `timestamp,client,R,latency`, in microseconds, before 0.8 in milliseconds.
//!
//! A message carries its time of sending, so that a receipt at *t* with the latency *l* is of a message that was sent at *t* − *l*.
//! All clients share one topic. Topic, QoS and size are not in the file.
//!
//! What it does not model: clocks that were set by NTP differently for publishers and subscribers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use mqttlab_recording::Ending;
use mqttlab_units::Instant;

use super::lines::{TextEnd, TextLines};
use crate::error::{ImportError, Result};
use crate::options::ImportOrder;
use crate::progress::{ImportObserver, ProgressWatch};
use crate::source::{Meter, labels};
use crate::timeline::{LoggedReceipt, Offer, Timeline};

/// A line of the records.
enum LoaderRecord<'l> {
    Started,
    Sent { client: &'l str, at_ns: u64 },
    Received { client: &'l str, at_ns: u64, latency_ns: u64 },
}

/// Whether a file's first line is one of these records.
pub fn is_line(line: &str) -> bool {
    let line = line.trim_end_matches('\r');
    read(line).is_some_and(|record| !matches!(record, LoaderRecord::Started) || line.ends_with(",,,"))
}

/// Imports the records of one run, of one file or of several hosts.
///
/// # Errors
/// [`ImportError::Evidence`] with the line that cannot be read, or where there is no message.
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Ending> {
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut watch = ProgressWatch::new(meter.clone(), observer);
    let mut timeline = Timeline::default();
    let mut receipts = Vec::new();
    let topic: Arc<str> = "not recorded".into();
    for (file, label) in order.files.iter().zip(labels(&order.files)) {
        let end = TextLines::open(file, &meter)?.for_each(|number, line| {
            watch.add(1);
            if line.trim().is_empty() {
                return Ok(());
            }
            let wrong = || {
                let words = format!(
                    "line {number}: `{line}` is none of MQTTLoader's records (time,client,S, or time,client,R,latency)"
                );
                ImportError::in_file(file, words)
            };
            match read(line).ok_or_else(wrong)? {
                LoaderRecord::Started => {}
                LoaderRecord::Sent { client, at_ns } => {
                    let publisher = timeline.participants.logged(client, "");
                    timeline.offers.push(offer(publisher, &topic, at_ns));
                }
                LoaderRecord::Received { client, at_ns, latency_ns } => {
                    let subscriber = timeline.participants.logged(client, "");
                    receipts.push((subscriber, at_ns, latency_ns));
                }
            }
            Ok(())
        })?;
        match end {
            TextEnd::Whole => {}
            TextEnd::Cut(line) => {
                timeline.findings.faults.push(format!("{label} ends in the middle of line {line}"));
            }
            TextEnd::Unreadable(error) => {
                timeline.findings.faults.push(format!("{label} cannot be read to its end: {error}"));
            }
        }
    }
    if timeline.offers.is_empty() {
        let words =
            "has no record of a message that was sent; import the publishers' records together with it";
        return Err(ImportError::in_file(&order.files[0], words));
    }
    join(&mut timeline, &receipts);
    timeline.write(order, watch)
}

fn offer(publisher: u32, topic: &Arc<str>, at_ns: u64) -> Offer {
    let at = Instant::from_ns(at_ns);
    Offer {
        publisher,
        topic: Arc::clone(topic),
        qos: 0,
        payload_bytes: 0,
        intended: at,
        sent: Some(at),
        receivers: Vec::new(),
    }
}

/// Each receipt belongs to a message of its time of sending that its receiver has not had.
fn join(timeline: &mut Timeline, receipts: &[(u32, u64, u64)]) {
    let mut by_time: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, offer) in timeline.offers.iter().enumerate() {
        by_time.entry(offer.intended.as_ns()).or_default().push(number);
    }
    let mut next: HashMap<(u32, u64), usize> = HashMap::new();
    let mut holders: HashMap<usize, u32> = HashMap::new();
    let subscribers: HashSet<u32> = receipts.iter().map(|(subscriber, ..)| *subscriber).collect();
    for &(subscriber, at_ns, latency_ns) in receipts {
        let sent_ns = at_ns.saturating_sub(latency_ns);
        let place = next.entry((subscriber, sent_ns)).or_default();
        let offer = by_time.get(&sent_ns).and_then(|alike| alike.get(*place)).copied();
        *place += 1;
        if let Some(offer) = offer {
            *holders.entry(offer).or_default() += 1;
            timeline.offers[offer].receivers.push(subscriber);
        }
        let received = Instant::from_ns(at_ns);
        timeline.receipts.push(LoggedReceipt { offer, subscriber, qos: 0, payload_bytes: 0, received });
    }
    let most = holders.values().copied().max().unwrap_or(0);
    let is_shared = subscribers.len() > 1 && most == 1;
    if is_shared {
        timeline.findings.reasons.push(format!(
            "No message reached more than one of {} subscribers: they shared a subscription, or messages were lost. The \
             records do not tell, so nothing is expected of the others.",
            subscribers.len()
        ));
    } else {
        let mut all: Vec<u32> = subscribers.into_iter().collect();
        all.sort_unstable();
        for offer in &mut timeline.offers {
            offer.receivers.clone_from(&all);
        }
    }
    timeline.findings.warnings.push(
        "MQTTLoader's records have no topic, QoS or size; every subscriber in them is expected to get every message. \
         QoS 0 stands for an unknown one."
            .into(),
    );
}

/// A record; `None` where the line is none.
fn read(line: &str) -> Option<LoaderRecord<'_>> {
    let mut fields = line.split(',').map(str::trim);
    let (time, client, action, latency) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() || !(TIME_DIGITS).contains(&time.len()) {
        return None;
    }
    // Milliseconds have 13 digits, microseconds 16.
    let unit_ns = if time.len() < 16 { 1_000_000 } else { 1_000 };
    let at_ns = time.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    match (client, action, latency) {
        ("", "", "") => Some(LoaderRecord::Started),
        ("", ..) => None,
        (_, "S", "") => Some(LoaderRecord::Sent { client, at_ns }),
        (_, "R", latency) => {
            let latency_ns = latency.parse::<u64>().ok()?.checked_mul(unit_ns)?;
            Some(LoaderRecord::Received { client, at_ns, latency_ns })
        }
        _ => None,
    }
}

/// Digits of a time, in either unit.
const TIME_DIGITS: std::ops::RangeInclusive<usize> = 13..=16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_what_the_file_is() {
        for line in
            ["1599643916401359,,,", "1599643916416,ml-p-00001,S,", "1599643916419123,ml-s-00000,R,3165"]
        {
            assert!(is_line(line), "{line}");
        }
        for line in
            ["", "message,sent,received", "2018-05-29,23:20:20:163,sent,a/b,1,10240,000000", "1,2,3,4"]
        {
            assert!(!is_line(line), "{line}");
        }
    }

    #[test]
    fn a_receipt_is_of_the_message_that_was_sent_so_long_before() {
        let mut timeline = Timeline::default();
        let topic: Arc<str> = "t".into();
        timeline.offers = [1_000, 2_000, 2_000].map(|at| offer(0, &topic, at)).into();
        join(&mut timeline, &[(1, 2_500, 500), (1, 2_600, 600), (1, 1_300, 300), (1, 9_000, 1)]);
        let traced: Vec<Option<usize>> = timeline.receipts.iter().map(|receipt| receipt.offer).collect();
        assert_eq!(traced, [Some(1), Some(2), Some(0), None]);
        assert!(timeline.findings.reasons.is_empty());
    }

    #[test]
    fn of_subscribers_that_may_share_nothing_is_expected() {
        let mut timeline = Timeline::default();
        let topic: Arc<str> = "t".into();
        timeline.offers = [1_000, 2_000, 3_000].map(|at| offer(0, &topic, at)).into();
        join(&mut timeline, &[(1, 1_500, 500), (2, 2_500, 500)]);
        let expected: Vec<&[u32]> = timeline.offers.iter().map(|offer| &*offer.receivers).collect();
        assert_eq!(expected, [&[1][..], &[2], &[]]);
        assert!(timeline.findings.reasons[0].contains("more than one of 2 subscribers"));
    }
}
