//! Tables of messages: comma-separated values with a header line, one line for each delivery.
//!
//! The columns are in [`COLUMNS`] and in `docs/how-to/import.md`. A message with several receivers has a line for each; a line
//! without a time of reception is a message that was lost on the way to that receiver; a line without a time of
//! sending is a message that was offered and not sent.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use mqttlab_capture::log::split_quoted;
use mqttlab_recording::Ending;
use mqttlab_units::Instant;

use super::error::{ImportError, Result};
use super::options::ImportOrder;
use super::progress::{ImportObserver, ProgressWatch};
use super::source::{Meter, open};
use super::timeline::{LoggedReceipt, Offer, Timeline};
use super::timestamps::{self, TimeUnit};

/// Imports tables.
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Ending> {
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut watch = ProgressWatch::new(meter.clone(), observer);
    let mut timeline = Timeline::default();
    for file in &order.files {
        let text = open(file, &meter)?;
        let mut table =
            MessageTable { file, timeline: &mut timeline, known: HashMap::new(), topics: HashMap::new() };
        table.read(text, order.utc_offset_s, &mut watch)?;
    }
    if timeline.offers.is_empty() {
        return Err(ImportError::in_file(&order.files[0], "there is no message in the table"));
    }
    timeline.write(order, watch)
}

/// What a table may have, and what it means. Times are seconds or ISO 8601, or numbers in the unit that the column's
/// name ends with.
pub const COLUMNS: [(&str, &str); 9] = [
    ("message", "identifies the message of its publisher, the same in all its deliveries; also called `id`"),
    ("publisher", "the client that sent it"),
    ("subscriber", "the client that received it, or should have"),
    ("topic", "its topic"),
    ("qos", "its quality of service"),
    ("payload_bytes", "the size of its payload"),
    ("intended", "when it was due"),
    ("sent", "when it was sent"),
    ("received", "when it was received; empty when it was lost"),
];

/// The columns of a table: where each stands, and in which unit times are.
#[derive(Default)]
struct CsvColumns {
    /// How many there are.
    count: usize,
    message: Option<usize>,
    publisher: Option<usize>,
    subscriber: Option<usize>,
    topic: Option<usize>,
    qos: Option<usize>,
    payload_bytes: Option<usize>,
    intended: Option<(usize, TimeUnit)>,
    sent: Option<(usize, TimeUnit)>,
    received: Option<(usize, TimeUnit)>,
}

/// A line, read.
struct CsvLine {
    message: Option<String>,
    publisher: String,
    subscriber: Option<String>,
    topic: String,
    qos: u8,
    payload_bytes: u32,
    intended: Option<Instant>,
    sent: Option<Instant>,
    received: Option<Instant>,
}

/// A table on its way into the timeline.
struct MessageTable<'a> {
    file: &'a Path,
    timeline: &'a mut Timeline,
    /// Offers by publisher and message.
    known: HashMap<(u32, String), usize>,
    topics: HashMap<String, Arc<str>>,
}

impl MessageTable<'_> {
    fn read(&mut self, text: impl Read, utc_offset_s: i64, watch: &mut ProgressWatch<'_>) -> Result<()> {
        let mut text = BufReader::new(text);
        let mut columns: Option<CsvColumns> = None;
        let (mut bytes, mut number, mut shortest) = (Vec::new(), 0, None);
        loop {
            number += 1;
            bytes.clear();
            let wrong =
                |problem: String| ImportError::in_file(self.file, format!("line {number}: {problem}"));
            if text.read_until(b'\n', &mut bytes).map_err(|error| wrong(error.to_string()))? == 0 {
                break;
            }
            let ended = bytes.ends_with(b"\n");
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_start_matches('\u{feff}').trim_end();
            if line.is_empty() {
                continue;
            }
            let fields = split_quoted(line);
            let Some(columns) = &columns else {
                columns = Some(CsvColumns::read(&fields).map_err(wrong)?);
                continue;
            };
            // Without its end nobody knows whether a field is whole, nor whether more were to come.
            if !ended && columns.may_be_cut(&fields, utc_offset_s, shortest) {
                let label = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy();
                self.timeline.findings.faults.push(format!("{label} ends in the middle of line {number}"));
                break;
            }
            let last = fields.last().map_or(0, |field| field.trim().len());
            shortest = Some(last).filter(|&last| last > 0).into_iter().chain(shortest).min();
            let line = columns.line(&fields, utc_offset_s).map_err(wrong)?;
            self.add_line(line).map_err(wrong)?;
            watch.add(1);
        }
        columns.map(|_| ()).ok_or_else(|| ImportError::in_file(self.file, "is empty"))
    }

    /// Adds a line to the timeline.
    fn add_line(&mut self, line: CsvLine) -> std::result::Result<(), String> {
        let participants = &mut self.timeline.participants;
        let publisher = participants.logged(&line.publisher, "");
        let subscriber = line.subscriber.as_deref().map(|name| participants.logged(name, ""));
        let offer = self.offer(publisher, &line)?;
        let Some(subscriber) = subscriber else { return Ok(()) };
        let receivers = &mut self.timeline.offers[offer].receivers;
        if !receivers.contains(&subscriber) {
            receivers.push(subscriber);
        }
        if let Some(received) = line.received {
            let (qos, payload_bytes) = (line.qos, line.payload_bytes);
            self.timeline.receipts.push(LoggedReceipt {
                offer: Some(offer),
                subscriber,
                qos,
                payload_bytes,
                received,
            });
        }
        Ok(())
    }

    /// The offer of a line: that of an earlier one with the same message, or a new one.
    fn offer(&mut self, publisher: u32, line: &CsvLine) -> std::result::Result<usize, String> {
        let next = self.timeline.offers.len();
        if let Some(message) = &line.message {
            match self.known.entry((publisher, message.clone())) {
                Entry::Occupied(known) => return Ok(*known.get()),
                Entry::Vacant(place) => place.insert(next),
            };
        }
        let intended =
            line.intended.or(line.sent).ok_or("has neither a time of sending nor an intended one")?;
        let topic = self.topics.entry(line.topic.clone()).or_insert_with(|| line.topic.as_str().into());
        self.timeline.offers.push(Offer {
            publisher,
            topic: Arc::clone(topic),
            qos: line.qos,
            payload_bytes: line.payload_bytes,
            intended,
            sent: line.sent,
            receivers: Vec::new(),
        });
        Ok(next)
    }
}

impl CsvColumns {
    fn read(header: &[String]) -> std::result::Result<CsvColumns, String> {
        if header.len() == 1 && header[0].contains(';') {
            return Err("columns are separated by semicolons, but must be separated by commas".into());
        }
        let mut columns = CsvColumns { count: header.len(), ..CsvColumns::default() };
        for (place, written) in header.iter().enumerate() {
            let name = written.trim().to_lowercase();
            let (stem, unit) = timestamps::unit_of(&name);
            let taken = match (name.as_str(), stem) {
                ("message" | "id", _) => columns.message.replace(place).is_some(),
                ("publisher", _) => columns.publisher.replace(place).is_some(),
                ("subscriber", _) => columns.subscriber.replace(place).is_some(),
                ("topic", _) => columns.topic.replace(place).is_some(),
                ("qos", _) => columns.qos.replace(place).is_some(),
                ("payload_bytes", _) => columns.payload_bytes.replace(place).is_some(),
                (_, "intended") => columns.intended.replace((place, unit)).is_some(),
                (_, "sent") => columns.sent.replace((place, unit)).is_some(),
                (_, "received") => columns.received.replace((place, unit)).is_some(),
                _ => return Err(unknown(written)),
            };
            if taken {
                return Err(format!("the column `{written}` appears twice"));
            }
        }
        if columns.received.is_none() {
            return Err("the column `received` is missing; it is empty where a message was lost".into());
        }
        if columns.sent.is_none() && columns.intended.is_none() {
            return Err("the column `sent` is missing, and `intended` too".into());
        }
        Ok(columns)
    }

    /// Whether a line without an end may lack more: fields, or the end of its last one, which is empty, cannot be read, or
    /// is shorter than any before it.
    fn may_be_cut(&self, fields: &[String], utc_offset_s: i64, shortest: Option<usize>) -> bool {
        let last = fields.last().map_or(0, |field| field.trim().len());
        fields.len() < self.count
            || last == 0
            || shortest.is_some_and(|shortest| last < shortest)
            || self.line(fields, utc_offset_s).is_err()
    }

    fn line(&self, fields: &[String], utc_offset_s: i64) -> std::result::Result<CsvLine, String> {
        let text = |place: Option<usize>| {
            let field = place.and_then(|place| fields.get(place)).map(|field| field.trim());
            field.filter(|field| !field.is_empty())
        };
        let number = |name: &str, place: Option<usize>, most: u32| match text(place).map(str::parse) {
            None => Ok(0),
            Some(Ok(number)) if number <= most => Ok(number),
            Some(_) => Err(format!(
                "{name} is `{}`, but must be a whole number up to {most}",
                text(place).unwrap_or("")
            )),
        };
        let time = |name: &str, column: Option<(usize, TimeUnit)>| {
            let Some((place, unit)) = column else { return Ok(None) };
            let Some(text) = text(Some(place)) else { return Ok(None) };
            timestamps::read(text, unit, utc_offset_s)
                .map(Some)
                .map_err(|problem| format!("{name} {problem}"))
        };
        let intended = time("intended", self.intended)?;
        let sent = time("sent", self.sent)?;
        let received = time("received", self.received)?;
        Ok(CsvLine {
            message: text(self.message).map(str::to_owned),
            publisher: text(self.publisher).unwrap_or("publisher").to_owned(),
            subscriber: match (self.subscriber, text(self.subscriber)) {
                (_, Some(name)) => Some(name.to_owned()),
                // Where receivers have no column there is one; where one is not named, nobody was to receive it.
                (None, None) => Some("subscriber".to_owned()),
                (Some(_), None) => received.map(|_| "subscriber".to_owned()),
            },
            topic: text(self.topic).unwrap_or_default().to_owned(),
            qos: number("qos", self.qos, 2)? as u8,
            payload_bytes: number("payload_bytes", self.payload_bytes, u32::MAX)?,
            intended,
            // Without a column of its own the time of sending is the intended one.
            sent: if self.sent.is_some() { sent } else { intended },
            received,
        })
    }
}

fn unknown(column: &str) -> String {
    let name = column.trim().to_lowercase();
    let nearest = COLUMNS.iter().map(|(known, _)| *known).min_by_key(|known| distance(known, &name));
    let known: Vec<String> = COLUMNS.iter().map(|(known, _)| format!("`{known}`")).collect();
    let hint = nearest.filter(|known| distance(known, &name) <= 1 + known.len() / 3);
    let hint = hint.map_or(String::new(), |known| format!(" (did you mean `{known}`?)"));
    format!("the column `{column}` is not known{hint}; a table may have {}", known.join(", "))
}

/// How many characters must be put in, taken out or changed to make one word the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, left) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (place, right) in other.chars().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::ImportProgress;

    struct Nobody;

    impl ImportObserver for Nobody {
        fn on_reading(&mut self, _: ImportProgress) {}
        fn on_writing(&mut self, _: Instant) {}
        fn on_warning(&mut self, _: &str) {}
    }

    fn timeline(text: &str) -> std::result::Result<Timeline, String> {
        let mut timeline = Timeline::default();
        let mut table = MessageTable {
            file: Path::new("x.csv"),
            timeline: &mut timeline,
            known: HashMap::new(),
            topics: HashMap::new(),
        };
        let read = table.read(text.as_bytes(), 0, &mut ProgressWatch::new(Meter::of(&[]), &mut Nobody));
        read.map(|()| timeline).map_err(|error| match error {
            ImportError::Evidence(problem) => problem,
            ImportError::Recording(error) => error.to_string(),
        })
    }

    #[test]
    fn a_message_with_two_receivers_is_one_message() {
        let timeline = timeline(
            "message,publisher,subscriber,topic,qos,payload_bytes,sent_ns,received_ns\n\
             7,a,x,\"t,1\",2,16,1000,3000\n7,a,y,\"t,1\",2,16,1000,\n8,a,x,\"t,1\",0,16,2000,2500\n",
        );
        let timeline = timeline.unwrap();
        assert_eq!((timeline.offers.len(), timeline.receipts.len()), (2, 2));
        assert_eq!((&*timeline.offers[0].topic, &timeline.offers[0].receivers), ("t,1", &vec![1, 2]));
    }

    #[test]
    fn a_last_line_that_was_being_written_is_left_out_and_said() {
        let head = "message,sent,received\n1,1.250,2.500\n";
        for cut in ["2,2.250,", "2,2.25", "2,2.250,3.5", "2"] {
            let timeline = timeline(&format!("{head}{cut}")).unwrap();
            assert_eq!(timeline.offers.len(), 1, "{cut}");
            assert_eq!(timeline.findings.faults, ["x.csv ends in the middle of line 3"], "{cut}");
        }
        let whole = timeline(&format!("{head}2,2.250,3.500")).unwrap();
        assert_eq!((whole.offers.len(), whole.findings.faults.len()), (2, 0));
    }

    #[test]
    fn times_may_be_seconds_or_dates_and_a_message_may_stay_unsent() {
        let timeline = timeline(
            "intended,sent,received\n1.5,1.75,2\n2,,\n2018-05-29T23:20:20.5Z,2018-05-29 23:20:21,\n",
        );
        let timeline = timeline.unwrap();
        let times: Vec<(u64, Option<u64>)> = timeline
            .offers
            .iter()
            .map(|offer| (offer.intended.as_ns() / 1_000_000, offer.sent.map(|at| at.as_ns() / 1_000_000)))
            .collect();
        assert_eq!(times[..2], [(1_500, Some(1_750)), (2_000, None)]);
        assert_eq!(times[2], (1_527_636_020_500, Some(1_527_636_021_000)));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_remedy() {
        for (text, problem) in [
            ("", "is empty"),
            (
                "sent,recieved\n",
                "line 1: the column `recieved` is not known (did you mean `received`?); a table may",
            ),
            (
                "sent;received\n",
                "line 1: columns are separated by semicolons, but must be separated by commas",
            ),
            ("sent\n", "line 1: the column `received` is missing"),
            ("qos,received\n", "line 1: the column `sent` is missing, and `intended` too"),
            ("sent,sent_ns,received\n", "line 1: the column `sent_ns` appears twice"),
            ("qos,sent,received\n3,1,2\n", "line 2: qos is `3`, but must be a whole number up to 2"),
            ("sent,received\n1,2\nsoon,2\n", "line 3: sent is `soon`, but must be"),
        ] {
            let said = timeline(text).map(|_| ()).unwrap_err();
            assert!(said.starts_with(&format!("x.csv: {problem}")), "{text:?}: {said}");
        }
    }

    #[test]
    fn distances_count_changes() {
        assert_eq!([distance("sent", "sent"), distance("qos", "qs"), distance("topic", "optic")], [0, 1, 2]);
    }
}
