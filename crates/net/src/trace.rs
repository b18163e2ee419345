//! Traces: how a link's rate, delay and loss went on, as a plan says it.
//!
//! A trace is a table of columns, which many links may follow. Its values hold from their time on. A table of opportunities
//! has the times at which a link carries so many bytes, as Mahimahi's traces of cellular links (Netravali et al., USENIX
//! ATC 2015).

use mqttlab_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trace, and the links that follow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// As the scenario calls it.
    pub name: String,
    /// The names of the links that follow it.
    pub links: Vec<String>,
    /// Its place when publishing begins.
    #[serde(rename = "begins_at_ns")]
    pub begins_at: Duration,
    /// It begins again after this time; `null` where its last values hold, and where no opportunity follows the last one.
    #[serde(rename = "period_ns")]
    pub period: Option<Duration>,
    /// What it has.
    pub course: TraceCourse,
}

/// The table of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TraceCourse {
    /// Opportunities to carry bytes. What an opportunity does not use is lost.
    Opportunities {
        /// When each is, in ms, ascending; several may have one time.
        at_ms: Vec<u32>,
        /// Bytes of each.
        bytes: u32,
    },
    /// Values that hold from their times on. A column that is `null` is the link's own.
    Values(TraceValues),
}

/// Columns of a trace, each as long as `at_ns` or `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceValues {
    /// From when on a row holds; ascending from 0.
    #[serde(rename = "at_ns")]
    pub at: Vec<Duration>,
    /// Bits per second; 0 while nothing is carried.
    pub rate_bit_s: Option<Vec<u64>>,
    /// Mean propagation delays.
    #[serde(rename = "delay_ns")]
    pub delay: Option<Vec<Duration>>,
    /// Jitters, of the link's own law of delay.
    #[serde(rename = "jitter_ns")]
    pub jitter: Option<Vec<Duration>>,
    /// Chances in parts of 10⁹ that a frame is lost.
    pub loss_ppb: Option<Vec<u32>>,
}

impl TraceValues {
    /// Whether it says more than the rate.
    pub(crate) fn has_conditions(&self) -> bool {
        self.delay.is_some() || self.jitter.is_some() || self.loss_ppb.is_some()
    }
}

impl TraceSpec {
    /// The shortest mean delay, where it has delays.
    pub fn delay_min(&self) -> Option<Duration> {
        match &self.course {
            TraceCourse::Values(values) => values.delay.as_ref()?.iter().min().copied(),
            TraceCourse::Opportunities { .. } => None,
        }
    }

    /// What is wrong with it, and in which field.
    ///
    /// # Errors
    /// The first fault found: a link would wait for ever in a computation, or have no value at some time.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let period = self.period.map(Duration::as_ns);
        if period.is_some_and(|period| self.begins_at.as_ns() >= period) {
            return Err(("begins_at_ns", "lies behind the trace's end".into()));
        }
        match &self.course {
            TraceCourse::Opportunities { at_ms, bytes } => {
                if *bytes == 0 {
                    return Err(("course.bytes", "is 0, but an opportunity carries a byte or more".into()));
                }
                if !at_ms.is_sorted() || at_ms.is_empty() {
                    return Err(("course.at_ms", "is empty, or not in the order of time".into()));
                }
                let last = Duration::from_ms(at_ms.last().copied().unwrap_or_default().into()).as_ns();
                if period.is_some_and(|period| period == 0 || period < last) {
                    return Err(("period_ns", "ends before the last opportunity, or is 0".into()));
                }
                Ok(())
            }
            TraceCourse::Values(values) => values.check(period),
        }
    }
}

impl TraceValues {
    fn check(&self, period: Option<u64>) -> Result<(), (&'static str, String)> {
        let rows = self.at.len();
        if self.at.first() != Some(&Duration::ZERO) || !self.at.is_sorted_by(|one, next| one < next) {
            return Err(("course.at_ns", "does not ascend from 0".into()));
        }
        let lengths = [
            ("course.rate_bit_s", self.rate_bit_s.as_ref().map(Vec::len)),
            ("course.delay_ns", self.delay.as_ref().map(Vec::len)),
            ("course.jitter_ns", self.jitter.as_ref().map(Vec::len)),
            ("course.loss_ppb", self.loss_ppb.as_ref().map(Vec::len)),
        ];
        for (field, length) in lengths {
            if let Some(length) = length.filter(|length| *length != rows) {
                return Err((field, format!("has {length} values, but there are {rows} times")));
            }
        }
        if period.is_some_and(|period| self.at.last().is_some_and(|last| period <= last.as_ns())) {
            return Err(("period_ns", "is over before the last row".into()));
        }
        if self.rate_bit_s.as_ref().is_some_and(|rates| rates.iter().any(|rate| *rate > RATE_MAX)) {
            return Err(("course.rate_bit_s", format!("has a rate above {RATE_MAX} bit/s")));
        }
        if self.rate_bit_s.as_ref().is_some_and(|rates| rates.iter().all(|rate| *rate == 0)) {
            return Err(("course.rate_bit_s", "is 0 all the time".into()));
        }
        for (field, times) in [("course.delay_ns", &self.delay), ("course.jitter_ns", &self.jitter)] {
            if times.iter().flatten().any(|time| time.as_ns() > DELAY_MAX.as_ns()) {
                return Err((field, "has a time above 1 h".into()));
            }
        }
        if self.loss_ppb.iter().flatten().any(|loss| *loss > LOSS_WHOLE) {
            return Err(("course.loss_ppb", format!("has a chance above {LOSS_WHOLE}")));
        }
        Ok(())
    }
}

/// A chance of 1 in `loss_ppb`.
pub(crate) const LOSS_WHOLE: u32 = 1_000_000_000;
/// As of a link.
const RATE_MAX: u64 = 100_000_000_000;
const DELAY_MAX: Duration = Duration::from_s(3600);
