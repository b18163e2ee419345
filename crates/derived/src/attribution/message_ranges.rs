//! Ranges of messages that are followed one after another.
//!
//! The messages' table is in the order of publishers and their messages, and all that is told of one message is told of no
//! other: so a range of it needs the packets of its own messages alone. A table in another order is one range.

use std::path::Path;

use mqttlab_recording::Result;
use mqttlab_recording::reading::{ABSENT, TableReader, Vocabulary, Wanted};

/// A message: its publisher, and its number there.
pub(crate) type MessageKey = (i64, i64);

/// Where ranges begin.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// The first message and the first row of each range but the first.
    begins: Vec<(MessageKey, u64)>,
}

impl Ranges {
    /// Looks at the messages of a recording, where they are many more than a range has rows.
    pub(crate) fn read(dir: &Path, range_rows: u64) -> Result<Ranges> {
        let Some(table) = TableReader::open(dir, "messages")? else { return Ok(Ranges::default()) };
        if table.rows() <= 2 * range_rows {
            return Ok(Ranges::default());
        }
        let wanted = [("publisher", Wanted::Integers), ("sequence", Wanted::Integers)];
        let (mut begins, mut row, mut begin, mut latest, mut ordered) =
            (Vec::new(), 0, 0, (ABSENT, ABSENT), true);
        table.for_each_batch(&wanted, &mut Vocabulary::default(), |columns, rows, _| {
            for (&publisher, &sequence) in columns[0].integers[..rows].iter().zip(&columns[1].integers) {
                let message = (publisher, sequence);
                // Deliveries of no publisher stand at the end, and no packet is known to be theirs.
                if publisher != ABSENT && message != latest {
                    ordered &= message > latest;
                    latest = message;
                    if row - begin >= range_rows {
                        begin = row;
                        begins.push((message, row));
                    }
                }
                row += 1;
            }
            Ok(())
        })?;
        Ok(if ordered { Ranges { begins } } else { Ranges::default() })
    }

    pub(crate) fn count(&self) -> usize {
        self.begins.len() + 1
    }

    /// The range of a message.
    pub(crate) fn of(&self, message: MessageKey) -> usize {
        self.begins.partition_point(|(begin, _)| *begin <= message)
    }

    /// The row at which a range ends; `None` for the last one.
    pub(crate) fn end(&self, range: usize) -> Option<u64> {
        self.begins.get(range).map(|&(_, row)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_the_last_range_that_begins_with_it_or_before_it() {
        let ranges = Ranges { begins: vec![((0, 5), 10), ((2, 0), 25)] };
        let found = [(0, 0), (0, 4), (0, 5), (1, 9), (2, 0), (7, 7)].map(|message| ranges.of(message));
        assert_eq!(found, [0, 0, 1, 1, 2, 2]);
        assert_eq!(
            (ranges.count(), ranges.end(0), ranges.end(1), ranges.end(2)),
            (3, Some(10), Some(25), None)
        );
    }
}
