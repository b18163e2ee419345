//! Message logs that somebody else's clients wrote: who sent and received which message when.
//!
//! Two formats are read. That of Schuhmacher 2018 has no header and one line for each event:
//! `date,time,action,topic,qos,size,id`, with local times `HH:MM:SS:mmm`. The generic one has a header and one line
//! for each delivery; its columns are described in [`read_generic`].
//!
//! [`match_messages`] joins the events of a sender's log into messages: by identifier, not by the order of lines, in
//! which logging threads race. Identifiers may start again when several runs were appended to one file.
//!
//! What it does not model: time zones that change within a log, clocks that drift apart.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use mqttlab_units::{Duration, Instant};

use crate::CaptureError;

/// What a client did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Handed it to the network.
    Sent,
    /// Got it.
    Received,
    /// Could not send it.
    Fail,
    /// Gave it up.
    Discard,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// When, in nanoseconds since the Unix epoch.
    pub time: Instant,
    /// What happened.
    pub action: Action,
    /// The topic.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// Payload in bytes, as the writer of the log counts it.
    pub payload_bytes: u64,
    /// The message's identifier, unique within a run.
    pub id: u64,
}

/// A line of the generic format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// The message's identifier, any text.
    pub id: String,
    /// When it was sent, in nanoseconds since the Unix epoch.
    pub sent: Instant,
    /// When it was received; absent when it was lost.
    pub received: Option<Instant>,
    /// The topic.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// Payload in bytes.
    pub payload_bytes: u64,
    /// Who sent it.
    pub publisher: String,
    /// Who received it.
    pub subscriber: String,
}

/// A message that was sent, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    /// Which of the runs that were appended to one log, from 0.
    pub run: u32,
    /// Its identifier within the run.
    pub id: u64,
    /// Topic it was sent to.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// Payload in bytes, as logged when it was sent.
    pub payload_bytes: u64,
    /// When it was sent.
    pub sent: Instant,
    /// When it was first received.
    pub received: Option<Instant>,
    /// How often it was received again.
    pub duplicates: u32,
}

impl LoggedMessage {
    /// From sending to first receipt.
    pub fn round_trip(&self) -> Option<Duration> {
        self.received.map(|received| received.since(self.sent))
    }
}

/// The messages of a log.
#[derive(Clone, Debug, Default)]
pub struct LoggedMessages {
    /// In the order in which they were sent.
    pub sent: Vec<LoggedMessage>,
    /// How many runs the log holds.
    pub runs: u32,
    /// Lines that say that sending failed.
    pub failed: u64,
    /// Lines that say that a message was given up.
    pub discarded: u64,
    /// Receipts of messages that had not been sent before.
    pub orphans: u64,
}

/// Reads a log of Schuhmacher 2018, whose times are `utc_offset_s` seconds ahead of UTC.
///
/// # Errors
/// [`CaptureError::Log`] with the line and field that cannot be read, [`CaptureError::Io`] when reading fails.
pub fn read_events(reader: impl BufRead, utc_offset_s: i64) -> Result<Vec<LoggedEvent>, CaptureError> {
    let mut events = Vec::new();
    for (index, line) in reader.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let event = parse_event(&line, utc_offset_s);
        events.push(event.map_err(|problem| CaptureError::Log { line: index as u64 + 1, problem })?);
    }
    Ok(events)
}

fn parse_event(line: &str, utc_offset_s: i64) -> Result<LoggedEvent, String> {
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let [date, time, action, topic, qos, size, id] = fields[..] else {
        return Err(format!("has {} fields, but must have 7", fields.len()));
    };
    Ok(LoggedEvent {
        time: parse_time(date, time, utc_offset_s)?,
        action: match action {
            "sent" => Action::Sent,
            "received" => Action::Received,
            "fail" => Action::Fail,
            "discard" => Action::Discard,
            _ => return Err(format!("action is `{action}`, but must be sent, received, fail or discard")),
        },
        topic: topic.to_owned(),
        qos: parse_qos(qos)?,
        payload_bytes: parse_number("size", size)?,
        id: parse_number("id", id)?,
    })
}

/// `YYYY-MM-DD` and `HH:MM:SS:mmm`.
fn parse_time(date: &str, time: &str, utc_offset_s: i64) -> Result<Instant, String> {
    let numbers = |text: &str, separator: char| -> Option<Vec<i64>> {
        text.split(separator).map(|part| part.parse().ok()).collect()
    };
    let wrong = || format!("`{date},{time}` is not of the form YYYY-MM-DD,HH:MM:SS:mmm");
    let date = numbers(date, '-').ok_or_else(wrong)?;
    let time = numbers(time, ':').ok_or_else(wrong)?;
    let (&[year, month, day], &[hour, minute, second, millisecond]) = (&date[..], &time[..]) else {
        return Err(wrong());
    };
    let plausible = (1970..2500).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..1000).contains(&millisecond);
    if !plausible {
        return Err(wrong());
    }
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let milliseconds = (seconds - utc_offset_s) * 1_000 + millisecond;
    u64::try_from(milliseconds).map(|since| Instant::from_ns(since * 1_000_000)).map_err(|_| wrong())
}

/// Days of the Gregorian calendar from 1970-01-01, counting years from March so that the leap day comes last.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

fn parse_qos(text: &str) -> Result<u8, String> {
    match text {
        "0" => Ok(0),
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err(format!("qos is `{text}`, but must be 0, 1 or 2")),
    }
}

fn parse_number(field: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{field} is `{text}`, but must be a whole number"))
}

/// Joins the events of a sender's log that also holds the receipts.
///
/// A receipt belongs to the last message of its identifier that was sent no later. The first receipt delivers it,
/// later ones are duplicates.
pub fn match_messages(events: &[LoggedEvent]) -> LoggedMessages {
    let mut messages = LoggedMessages::default();
    let mut by_id: HashMap<u64, Vec<usize>> = HashMap::new();
    for event in events {
        match event.action {
            Action::Sent => {
                let sendings = by_id.entry(event.id).or_default();
                let current = messages.runs.saturating_sub(1);
                // An identifier that comes again opens the next run.
                let again = sendings.last().is_some_and(|&last| messages.sent[last].run == current);
                messages.runs += u32::from(again || messages.runs == 0);
                sendings.push(messages.sent.len());
                messages.sent.push(LoggedMessage {
                    run: messages.runs - 1,
                    id: event.id,
                    topic: event.topic.clone(),
                    qos: event.qos,
                    payload_bytes: event.payload_bytes,
                    sent: event.time,
                    received: None,
                    duplicates: 0,
                });
            }
            Action::Fail => messages.failed += 1,
            Action::Discard => messages.discarded += 1,
            Action::Received => {}
        }
    }
    for event in events.iter().filter(|event| event.action == Action::Received) {
        messages.receive(&by_id, event);
    }
    messages
}

impl LoggedMessages {
    fn receive(&mut self, by_id: &HashMap<u64, Vec<usize>>, event: &LoggedEvent) {
        let sendings = by_id.get(&event.id).map_or(&[][..], Vec::as_slice);
        let Some(&index) = sendings.iter().rev().find(|&&index| self.sent[index].sent <= event.time) else {
            self.orphans += 1;
            return;
        };
        let message = &mut self.sent[index];
        if message.received.is_some() {
            message.duplicates += 1;
        }
        message.received = Some(message.received.map_or(event.time, |first| first.min(event.time)));
    }

    /// Round trips of the messages that arrived, sorted, in nanoseconds.
    pub fn round_trips_ns(&self) -> Vec<u64> {
        let trips = self.sent.iter().filter_map(LoggedMessage::round_trip);
        let mut trips: Vec<u64> = trips.map(Duration::as_ns).collect();
        trips.sort_unstable();
        trips
    }
}

/// Reads the generic format: comma-separated values with a header line.
///
/// | Column | Meaning |
/// |---|---|
/// | `id` | identifies the message; the same in all its deliveries |
/// | `sent_ns` | when it was sent, nanoseconds since the Unix epoch |
/// | `received_ns` | when it was received; empty when it was lost |
/// | `topic` | topic |
/// | `qos` | 0, 1 or 2 |
/// | `payload_bytes` | payload size in bytes |
/// | `publisher` | the client that sent it; optional |
/// | `subscriber` | the client that received it; optional |
///
/// The columns may stand in any order; others are ignored. A message that several subscribers receive has a line for
/// each. Fields may be quoted.
///
/// # Errors
/// [`CaptureError::Log`] with the line and field that cannot be read, [`CaptureError::Io`] when reading fails.
pub fn read_generic(reader: impl BufRead) -> Result<Vec<LoggedDelivery>, CaptureError> {
    let mut lines = reader.lines().enumerate();
    let Some((_, header)) = lines.next() else { return Ok(Vec::new()) };
    let header = split_quoted(header?.trim_start_matches('\u{feff}').trim_end());
    let columns: BTreeMap<&str, usize> =
        header.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    for required in ["id", "sent_ns", "received_ns", "topic", "qos", "payload_bytes"] {
        if !columns.contains_key(required) {
            return Err(CaptureError::Log {
                line: 1,
                problem: format!("the column `{required}` is missing"),
            });
        }
    }
    let mut deliveries = Vec::new();
    for (index, line) in lines {
        let line = line?;
        if !line.trim().is_empty() {
            let delivery = parse_delivery(&split_quoted(line.trim_end()), &columns);
            deliveries
                .push(delivery.map_err(|problem| CaptureError::Log { line: index as u64 + 1, problem })?);
        }
    }
    Ok(deliveries)
}

fn parse_delivery(fields: &[String], columns: &BTreeMap<&str, usize>) -> Result<LoggedDelivery, String> {
    let field = |name: &str| {
        columns.get(name).and_then(|&index| fields.get(index)).map_or("", |field| field.as_str())
    };
    let sent = Instant::from_ns(parse_number("sent_ns", field("sent_ns"))?);
    let received = match field("received_ns") {
        "" => None,
        text => Some(Instant::from_ns(parse_number("received_ns", text)?)),
    };
    if received.is_some_and(|received| received < sent) {
        return Err(format!("received_ns is {}, but sent_ns is later", field("received_ns")));
    }
    Ok(LoggedDelivery {
        id: field("id").to_owned(),
        sent,
        received,
        topic: field("topic").to_owned(),
        qos: parse_qos(field("qos"))?,
        payload_bytes: parse_number("payload_bytes", field("payload_bytes"))?,
        publisher: field("publisher").to_owned(),
        subscriber: field("subscriber").to_owned(),
    })
}

/// Splits comma-separated values (RFC 4180, without line breaks in fields).
pub fn split_quoted(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(character),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_time_becomes_nanoseconds_since_the_epoch() {
        let log = "2018-05-29,23:20:20:163,sent,a/b,1,10240,000000\n";
        let events = read_events(log.as_bytes(), 7_200).unwrap();
        // 2018-05-29 21:20:20.163 UTC.
        assert_eq!(events[0].time, Instant::from_ns(1_527_628_820_163_000_000));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_with_its_field() {
        let log = "2018-05-29,23:20:20:163,sent,a/b,1,10240,000000\n2018-05-29,23:20:20:163,sent,a/b,3,1,2\n";
        let error = read_events(log.as_bytes(), 0).unwrap_err();
        assert_eq!(error.to_string(), "line 2: qos is `3`, but must be 0, 1 or 2");
    }

    #[test]
    fn a_receipt_belongs_to_the_last_message_sent_before_it() {
        let line =
            |time: &str, action: &str, id: u32| format!("2018-05-29,00:00:{time},{action},t,1,1,{id}\n");
        let log = [
            line("01:000", "sent", 0),
            line("02:000", "received", 0),
            line("03:000", "received", 0),
            line("04:000", "sent", 0),
            line("05:500", "received", 0),
            line("00:500", "received", 7),
        ]
        .concat();
        let messages = match_messages(&read_events(log.as_bytes(), 0).unwrap());
        assert_eq!((messages.runs, messages.orphans), (2, 1));
        assert_eq!(messages.round_trips_ns(), [1_000_000_000, 1_500_000_000]);
        assert_eq!(messages.sent[0].duplicates, 1);
    }

    #[test]
    fn the_generic_format_reads_columns_by_name() {
        let log = "topic,id,received_ns,sent_ns,qos,payload_bytes,note\n\"a,b\",7,,1000,2,16,x\n";
        let deliveries = read_generic(log.as_bytes()).unwrap();
        assert_eq!((deliveries[0].topic.as_str(), deliveries[0].received), ("a,b", None));
        let error = read_generic("id,topic\n".as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "line 1: the column `sent_ns` is missing");
    }
}
