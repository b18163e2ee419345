//! How far an import is, for whoever follows it.

use std::time::{Duration, Instant};

use mqttlab_units::Instant as RunInstant;

use super::source::Meter;

/// Who follows an import.
pub trait ImportObserver {
    /// How far the reading is: some times a second.
    fn on_reading(&mut self, reading: ImportProgress);
    /// All is read, up to this instant of the recording. What follows is its tables, and takes as long as they are large.
    fn on_writing(&mut self, end: RunInstant);
    /// Something to be read before the numbers are trusted.
    fn on_warning(&mut self, words: &str);
}

/// How far the reading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportProgress {
    /// Bytes of the files read, compressed as they are.
    pub read_bytes: u64,
    /// Bytes that there are; `None` when they come through a pipe.
    pub total_bytes: Option<u64>,
    /// Frames or lines.
    pub rows: u64,
}

/// Says every now and then how far the reading is.
pub struct ProgressWatch<'a> {
    meter: Meter,
    observer: &'a mut dyn ImportObserver,
    said: Instant,
    rows: u64,
    unsaid: u64,
}

impl<'a> ProgressWatch<'a> {
    /// Watches the files' meter.
    pub fn new(meter: Meter, observer: &'a mut dyn ImportObserver) -> ProgressWatch<'a> {
        ProgressWatch { meter, observer, said: Instant::now(), rows: 0, unsaid: 0 }
    }

    /// So many more rows have been read.
    #[inline]
    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
        self.unsaid += rows;
        if self.unsaid >= ROWS_BETWEEN {
            self.unsaid = 0;
            if self.said.elapsed() >= INTERVAL {
                self.said = Instant::now();
                self.say();
            }
        }
    }

    /// All is read, up to this instant of the recording. Returns the observer for what follows.
    pub fn end(mut self, end: RunInstant) -> &'a mut dyn ImportObserver {
        self.say();
        self.observer.on_writing(end);
        self.observer
    }

    fn say(&mut self) {
        let (read_bytes, total_bytes) = (self.meter.read(), self.meter.total());
        self.observer.on_reading(ImportProgress { read_bytes, total_bytes, rows: self.rows });
    }
}

/// Reading the clock for every row would cost more than the row.
const ROWS_BETWEEN: u64 = 4096;
/// Between two readings.
const INTERVAL: Duration = Duration::from_millis(200);
