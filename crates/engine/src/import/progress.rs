//! How far an import is: one JSON object a line on standard output, beside the engine's other lines.

use std::io::Write;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::source::Meter;

/// Says every now and then how far the reading is.
pub struct Watch {
    meter: Meter,
    said: Instant,
    calls: u32,
}

#[derive(Serialize)]
struct Line {
    event: &'static str,
    /// Bytes of the files read, compressed as they are.
    read_bytes: u64,
    /// Bytes that there are; `null` when they come through a pipe.
    total_bytes: Option<u64>,
    /// Frames or lines.
    rows: u64,
}

impl Watch {
    /// Watches the files' meter.
    pub fn new(meter: Meter) -> Watch {
        Watch { meter, said: Instant::now(), calls: 0 }
    }

    /// Another row has been read.
    #[inline]
    pub fn look(&mut self, rows: u64) {
        self.calls += 1;
        if self.calls == ROWS_BETWEEN {
            self.calls = 0;
            if self.said.elapsed() >= INTERVAL {
                self.said = Instant::now();
                self.say(rows);
            }
        }
    }

    fn say(&self, rows: u64) {
        let line =
            Line { event: "import", read_bytes: self.meter.read(), total_bytes: self.meter.total(), rows };
        let text = serde_json::to_string(&line).expect("numbers can be written");
        let mut out = std::io::stdout();
        // Whoever does not listen may still want the recording.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

/// Reading the clock for every row would cost more than the row.
const ROWS_BETWEEN: u32 = 4096;
/// Between two lines.
const INTERVAL: Duration = Duration::from_millis(200);
