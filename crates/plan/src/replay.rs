//! Messages that are replayed from a table of comma-separated values.
//!
//! ```text
//! time,topic,payload,client            row ─► when it is due, its topic, what it carries, how it is published
//! 0.0,room/1,21.5,a                    of each client: its own rows, in the order of time; of a table without a
//! 0.4,room/2,22.0,b                    column of clients all rows of every client
//! ```
//!
//! Who wrote the plan has read the table, told the user what is wrong with it, and says here what its columns are. The
//! table is read once more before the run begins, into 32 B a row and the payloads that it has.
//!
//! What it does not know: columns by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use mqttlab_mqtt::topic;
use mqttlab_units::{Duration, Instant, unix_ns_of_date};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::PlanError;

/// A table of messages, and how it is replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The table.
    pub path: PathBuf,
    /// Its size when the plan was made.
    pub bytes: u64,
    /// How many messages it has.
    pub rows: u64,
    /// What separates its fields: one ASCII character.
    pub delimiter: char,
    /// Where its columns are, counted from 0.
    pub columns: ReplayColumns,
    /// How it writes times.
    pub time: ReplayTime,
    /// What it calls the clients, the first one first; empty where it numbers them, or where every client replays all of it.
    pub clients: Vec<String>,
    /// A second of the table lasts so many microseconds.
    pub second_us: u64,
    /// It begins again so long after it has begun; `null`: it ends.
    pub period_ns: Option<u64>,
    /// Its rows, when they have been read.
    #[serde(skip)]
    pub table: Option<Arc<ReplayTable>>,
}

/// Where a table has what. What it does not have is the publication's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayColumns {
    /// When.
    pub time: u16,
    /// To which topic.
    pub topic: Option<u16>,
    /// What it carries.
    pub payload: Option<u16>,
    /// Its size in bytes.
    pub size: Option<u16>,
    /// Whose it is.
    pub client: Option<u16>,
    /// Quality of service.
    pub qos: Option<u16>,
    /// Whether RETAIN is set.
    pub retain: Option<u16>,
    /// The number of the message among those of its client: further rows of one message, and rows without a client or a time,
    /// are left out. So a recording's messages, a row for each delivery, are replayed once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u16>,
}

/// How a table writes times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayTime {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// Dates as ISO 8601 has them.
    Iso,
}

/// The rows of a table.
#[derive(Debug, PartialEq)]
pub struct ReplayTable {
    /// Of each client; of all of them in one list where the table does not name clients.
    lists: Vec<Vec<ReplayRow>>,
    /// Of all rows, in the order of their first row. Their places are filled in for each client.
    topics: Vec<String>,
    /// One after the other.
    payloads: Vec<u8>,
    /// By list: of each topic that it has, the smallest size of its messages.
    least: Vec<BTreeMap<u32, LeastSize>>,
    /// It begins again after it.
    period_ns: Option<u64>,
}

/// A row: a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayRow {
    /// From the begin of the table.
    after: Duration,
    /// Which topic of the table's.
    topic: u32,
    /// Its size; `None`: as the publication has it.
    bytes: Option<u32>,
    /// Where its payload begins.
    payload: Option<u32>,
    /// As the table says it.
    qos: Option<u8>,
    retain: Option<bool>,
}

/// The smallest size of some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeastSize {
    /// That rows say; `None` where none says any.
    pub(crate) said: Option<u32>,
    /// Whether a row does not say its size, so that it is the publication's.
    pub(crate) is_left_out: bool,
}

/// What a row says of how its message is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayedMessage<'a> {
    /// Which topic of the publication's.
    pub topic: u32,
    /// Its size; `None`: as the publication has it.
    pub bytes: Option<u32>,
    /// What it carries; `None`: letters where the row has a size, else as the publication has it.
    pub payload: Option<&'a [u8]>,
    /// Quality of service, if the row says it.
    pub qos: Option<u8>,
    /// RETAIN, if the row says it.
    pub retain: Option<bool>,
}

impl Replay {
    /// Reads the table, for a group of so many clients. Rows without a topic have `topic`.
    pub(crate) fn read(&mut self, topic: &str, clients: u32, place: &str) -> Result<(), PlanError> {
        let wrong = |problem: String| PlanError::Value {
            place: format!("{place}.path"),
            problem: format!("is {}, {problem}", self.path.display()),
        };
        let file =
            std::fs::read(&self.path).map_err(|error| wrong(format!("which cannot be read: {error}")))?;
        if file.len() as u64 != self.bytes {
            let problem =
                format!("which has {} B, but had {} B when the plan was made", file.len(), self.bytes);
            return Err(wrong(problem));
        }
        let table = self.table_of(&file, topic, clients).map_err(wrong)?;
        self.table = Some(Arc::new(table));
        Ok(())
    }

    fn table_of(&self, file: &[u8], topic: &str, clients: u32) -> Result<ReplayTable, String> {
        let lists = if self.columns.client.is_some() { clients as usize } else { 1 };
        let mut reading = TableReading {
            replay: self,
            topic,
            table: ReplayTable {
                lists: vec![Vec::new(); lists],
                topics: Vec::new(),
                payloads: Vec::new(),
                least: Vec::new(),
                period_ns: self.period_ns,
            },
            topics: BTreeMap::new(),
            clients: self.clients.iter().map(String::as_str).zip(0..).collect(),
            seen: BTreeSet::new(),
            first: i128::MAX,
        };
        let delimiter = u8::try_from(self.delimiter).unwrap_or(b',');
        let mut rows = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(file);
        let mut times = vec![Vec::new(); lists];
        for record in rows.records() {
            let record = record.map_err(|error| format!("which cannot be read: {error}"))?;
            let line = record.position().map_or(0, csv::Position::line);
            let row = reading.row(&record).map_err(|problem| format!("line {line}: {problem}"))?;
            row.into_iter().for_each(|(list, time)| times[list].push(time));
        }
        let rows: usize = times.iter().map(Vec::len).sum();
        if rows as u64 != self.rows {
            return Err(format!("which has {rows} rows, but had {} when the plan was made", self.rows));
        }
        Ok(reading.finish(times))
    }

    /// Its topics, as far as it has been read.
    pub(crate) fn topics(&self) -> &[String] {
        self.table.as_ref().map_or(&[], |table| &table.topics)
    }
}

impl ReplayTable {
    fn row(&self, client: u32, index: u64) -> Option<(&ReplayRow, u64)> {
        let list = self.lists.get(self.list_of(client))?;
        let rows = list.len() as u64;
        let (turn, row) = (index.checked_div(rows)?, index.checked_rem(rows)?);
        (turn == 0 || self.period_ns.is_some()).then_some((&list[row as usize], turn))
    }

    /// When a client's message is due, by its place in the publication, if the table begins at `begin`; `None` where it has no
    /// more.
    pub(crate) fn due(&self, client: u32, index: u64, begin: Instant) -> Option<Instant> {
        let (row, turn) = self.row(client, index)?;
        let before = u128::from(self.period_ns.unwrap_or(0)) * u128::from(turn);
        let after = u64::try_from(before + u128::from(row.after.as_ns())).ok()?;
        begin.as_ns().checked_add(after).map(Instant::from_ns)
    }

    /// What the table says of a client's message.
    pub fn message(&self, client: u32, index: u64) -> Option<ReplayedMessage<'_>> {
        let (row, _) = self.row(client, index)?;
        let payload = row.payload.zip(row.bytes).map(|(start, bytes)| {
            let start = start as usize;
            &self.payloads[start..start + bytes as usize]
        });
        Some(ReplayedMessage {
            topic: row.topic,
            bytes: row.bytes,
            payload,
            qos: row.qos,
            retain: row.retain,
        })
    }

    /// The smallest size of a client's messages to one of the table's topics; `None` where it has none.
    pub(crate) fn least_size(&self, client: u32, topic: u32) -> Option<LeastSize> {
        self.least.get(self.list_of(client))?.get(&topic).copied()
    }

    fn list_of(&self, client: u32) -> usize {
        if self.lists.len() == 1 { 0 } else { client as usize }
    }
}

struct TableReading<'a> {
    replay: &'a Replay,
    topic: &'a str,
    table: ReplayTable,
    topics: BTreeMap<String, u32>,
    clients: BTreeMap<&'a str, u32>,
    /// The messages so far, by client and number.
    seen: BTreeSet<(String, String)>,
    /// The least time, in nanoseconds.
    first: i128,
}

impl TableReading<'_> {
    /// Adds a row, and says to which list and when it is; `None` for one that is left out.
    fn row(&mut self, record: &csv::StringRecord) -> Result<Option<(usize, i128)>, String> {
        let columns = &self.replay.columns;
        let field = |column: Option<u16>| {
            let text = column.and_then(|column| record.get(usize::from(column)));
            text.map(str::trim).filter(|text| !text.is_empty())
        };
        if columns.sequence.is_some() {
            let (Some(client), Some(_)) = (field(columns.client), field(Some(columns.time))) else {
                return Ok(None);
            };
            let number = field(columns.sequence).unwrap_or_default();
            if !self.seen.insert((client.to_owned(), number.to_owned())) {
                return Ok(None);
            }
        }
        let time = field(Some(columns.time)).and_then(|text| self.replay.time.ns(text));
        let time = time.ok_or_else(|| format!("column {} has no time", columns.time + 1))?;
        let list = match field(columns.client) {
            None => 0,
            Some(name) if self.clients.is_empty() => {
                name.parse().map_err(|_| format!("{name:?} is no client"))?
            }
            Some(name) => *self.clients.get(name).ok_or_else(|| format!("{name:?} is no client"))? as usize,
        };
        let topic = field(columns.topic).unwrap_or(self.topic);
        if !topic::is_name(topic) {
            return Err(format!("{topic:?} is no topic"));
        }
        let next = self.topics.len() as u32;
        let topic = match self.topics.get(topic) {
            Some(number) => *number,
            None => {
                self.table.topics.push(topic.to_owned());
                *self.topics.entry(topic.to_owned()).or_insert(next)
            }
        };
        let size = field(columns.size).map(|text| text.parse().map_err(|_| format!("{text:?} is no size")));
        let payload = columns.payload.and_then(|column| record.get(usize::from(column)));
        // Where a payload is left out, there may be a size.
        let (bytes, payload) = match payload.filter(|text| !text.is_empty() || size.is_none()) {
            Some(text) => {
                let start = u32::try_from(self.table.payloads.len()).map_err(|_| "too many payloads")?;
                self.table.payloads.extend_from_slice(text.as_bytes());
                (Some(text.len() as u32), Some(start))
            }
            None => (size.transpose()?, None),
        };
        if let Some(bytes) = bytes.filter(|bytes| *bytes > PAYLOAD_MAX) {
            return Err(format!("{bytes} B are more than a payload may have"));
        }
        let level = |text: &str| text.parse().ok().filter(|level| *level <= 2);
        let qos = field(columns.qos).map(|text| level(text).ok_or_else(|| format!("{text:?} is no QoS")));
        let retain = field(columns.retain).map(|text| matches!(&*text.to_lowercase(), "1" | "true" | "yes"));
        let row = ReplayRow { after: Duration::ZERO, topic, bytes, payload, qos: qos.transpose()?, retain };
        let rows = self.table.lists.get_mut(list).ok_or_else(|| format!("{list} is no client"))?;
        rows.push(row);
        self.first = self.first.min(time);
        Ok(Some((list, time)))
    }

    /// The rows in the order of their times; of one time, in the table's.
    fn finish(mut self, times: Vec<Vec<i128>>) -> ReplayTable {
        let second_us = i128::from(self.replay.second_us);
        for (rows, times) in self.table.lists.iter_mut().zip(times) {
            for (row, time) in rows.iter_mut().zip(times) {
                let after = (time - self.first) * second_us / 1_000_000;
                row.after = Duration::from_ns(u64::try_from(after).unwrap_or(u64::MAX / 2));
            }
            rows.sort_by_key(|row| row.after);
        }
        self.table.least = self.table.lists.iter().map(|rows| least_sizes(rows)).collect();
        self.table
    }
}

/// Of each topic of these rows the smallest size.
fn least_sizes(rows: &[ReplayRow]) -> BTreeMap<u32, LeastSize> {
    let mut least: BTreeMap<u32, LeastSize> = BTreeMap::new();
    for row in rows {
        let known = least.entry(row.topic).or_default();
        known.said = known.said.into_iter().chain(row.bytes).min();
        known.is_left_out |= row.bytes.is_none();
    }
    least
}

impl ReplayTime {
    /// A time in nanoseconds; dates since 1970.
    fn ns(self, text: &str) -> Option<i128> {
        let unit: i128 = match self {
            ReplayTime::S => 1_000_000_000,
            ReplayTime::Ms => 1_000_000,
            ReplayTime::Us => 1_000,
            ReplayTime::Ns => 1,
            ReplayTime::Iso => return unix_ns_of_date(text).map(i128::from),
        };
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() > 20
            || !all_digits(whole)
            || !all_digits(fraction)
            || digits.len() < 2 && whole.is_empty()
        {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        // What is below a nanosecond is left out.
        let fraction = &fraction[..fraction.len().min(18)];
        let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        Some(sign * (whole * unit + part * unit / 10_i128.pow(fraction.len() as u32)))
    }
}

const PAYLOAD_MAX: u32 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(text: &str, columns: ReplayColumns, time: ReplayTime, period_ns: Option<u64>) -> Replay {
        let mut replay = Replay {
            path: PathBuf::new(),
            bytes: 0,
            rows: text.lines().count() as u64 - 1,
            delimiter: ',',
            columns,
            time,
            clients: Vec::new(),
            second_us: 500_000,
            period_ns,
            table: None,
        };
        replay.table = Some(Arc::new(replay.table_of(text.as_bytes(), "own/{client}", 2).unwrap()));
        replay
    }

    fn table(replay: &Replay) -> &ReplayTable {
        replay.table.as_ref().unwrap()
    }

    const BARE: ReplayColumns = ReplayColumns {
        time: 0,
        topic: None,
        payload: None,
        size: None,
        client: None,
        qos: None,
        retain: None,
        sequence: None,
    };

    #[test]
    fn further_rows_of_a_message_and_rows_of_nobody_are_left_out() {
        let text = "t,who,n\n1,0,0\n1,0,0\n2,1,0\n,0,9\n5,,3\n3,0,1\n";
        let columns = ReplayColumns { client: Some(1), sequence: Some(2), ..BARE };
        let mut replay = replay("t\n1\n", BARE, ReplayTime::S, None);
        (replay.columns, replay.rows) = (columns, 3);
        replay.table = Some(Arc::new(replay.table_of(text.as_bytes(), "x", 2).unwrap()));
        assert_eq!(due(&replay, 0, 3), [Some(1000), Some(2000), None]);
        assert_eq!(due(&replay, 1, 2), [Some(1500), None]);
    }

    fn due(replay: &Replay, client: u32, count: u64) -> Vec<Option<u64>> {
        let begin = Instant::from_ns(1_000_000_000);
        (0..count).map(|index| Some(table(replay).due(client, index, begin)?.as_ns() / 1_000_000)).collect()
    }

    #[test]
    fn a_table_is_replayed_in_the_order_of_time_again_and_again() {
        let text = "t,x\n10.5,a\n10,b\n12.000000001,c\n";
        let [again, once] =
            [Some(3_000_000_000), None].map(|period| replay(text, BARE, ReplayTime::S, period));
        let expected = [1000, 1250, 2000, 4000, 4250, 5000, 7000].map(Some);
        assert_eq!(due(&again, 0, 7), expected);
        assert_eq!(due(&again, 1, 7), expected, "each client replays all of it");
        assert_eq!(due(&once, 1, 4)[2..], [Some(2000), None]);
        assert_eq!(once.topics(), ["own/{client}"]);
    }

    #[test]
    fn rows_say_what_they_say_and_the_publication_the_rest() {
        let columns = ReplayColumns {
            topic: Some(1),
            payload: Some(2),
            client: Some(3),
            qos: Some(4),
            retain: Some(5),
            ..BARE
        };
        let text =
            "ms,topic,payload,client,qos,retain\n0,a,\"x, \"\"y\"\"\",1,2,true\n5,,é,0,,\n7,a,,1,0,0\n";
        let replay = replay(text, columns, ReplayTime::Ms, Some(3_000_000_000));
        let message = |client, index| table(&replay).message(client, index).unwrap();
        let first = ReplayedMessage {
            topic: 0,
            bytes: Some(6),
            payload: Some(b"x, \"y\""),
            qos: Some(2),
            retain: Some(true),
        };
        assert_eq!(message(1, 0), first);
        assert_eq!(
            (message(1, 1).payload, message(1, 1).qos, message(1, 1).retain),
            (Some(&[][..]), Some(0), Some(false))
        );
        assert_eq!(message(1, 2), first, "again");
        assert_eq!((message(0, 0).topic, message(0, 0).bytes, message(0, 0).qos), (1, Some(2), None));
        assert_eq!(replay.topics(), ["a", "own/{client}"]);
        let least = |client, topic| table(&replay).least_size(client, topic);
        let said = |bytes| Some(LeastSize { said: Some(bytes), is_left_out: false });
        assert_eq!([least(1, 0), least(0, 1)], [said(0), said(2)]);
        assert_eq!([least(0, 0), least(1, 1)], [None, None], "others' topics");
        assert_eq!(due(&replay, 0, 1), [Some(1002)]);
    }

    #[test]
    fn times_are_read_in_every_unit() {
        for (time, text, expected) in [
            (ReplayTime::S, "1.25", Some(1_250_000_000)),
            (ReplayTime::S, "-.5", Some(-500_000_000)),
            (ReplayTime::Ms, "1700000000123.4567", Some(1_700_000_000_123_456_700)),
            (ReplayTime::Us, "+7", Some(7_000)),
            (ReplayTime::Ns, "9.99", Some(9)),
            (ReplayTime::Iso, "1970-01-01 00:00:01.5", Some(1_500_000_000)),
            (ReplayTime::Iso, "1970-01-01T02:00:00+02:00", Some(0)),
            (ReplayTime::S, "1e3", None),
            (ReplayTime::S, "", None),
            (ReplayTime::S, ".", None),
            (ReplayTime::Iso, "12.5", None),
        ] {
            assert_eq!(time.ns(text), expected, "{text}");
        }
    }
}
