//! The times of a log's lines: how fine they are, whether they run backwards, and where there are none.
//!
//! Lines of one second keep their order: each is a nanosecond later than the one before. No latency is made of that, for such a
//! log is [untimed](BrokerClock::is_untimed).

use mqttlab_units::Instant;

use super::stamps::Stamp;

/// Gives every line of a log its time.
#[derive(Default)]
pub struct BrokerClock {
    /// When the last line was written, as it says.
    last: Option<Instant>,
    /// Lines since then.
    since: u64,
    /// The coarsest unit of any line.
    resolution_ns: u64,
    /// Lines whose times are earlier than those before them.
    backwards: u64,
    /// Lines without a time that can be read.
    without: u64,
    /// Whether no line says the year.
    yearless: bool,
    /// Whether several processes write, whose lines are a little out of order.
    is_shuffled: bool,
    /// The file whose first time is still to come.
    begins: Option<String>,
    /// Files that begin before the ones before them end.
    overlapping: Vec<String>,
}

impl BrokerClock {
    /// The clock of a broker; `is_shuffled`: of one whose processes write lines by themselves.
    pub fn of(is_shuffled: bool) -> BrokerClock {
        BrokerClock { is_shuffled, ..BrokerClock::default() }
    }

    /// The lines of another file follow.
    pub fn begin(&mut self, label: &str) {
        self.begins = Some(label.to_owned());
    }

    /// The time of a line.
    pub fn at(&mut self, stamp: Option<Stamp>) -> Instant {
        let Some(stamp) = stamp else {
            self.without += 1;
            return self.again();
        };
        if let Some(label) = self.begins.take()
            && self.last.is_some_and(|last| stamp.at < last)
        {
            self.overlapping.push(label);
        }
        self.resolution_ns = self.resolution_ns.max(stamp.resolution_ns);
        self.yearless |= !stamp.has_year;
        match self.last {
            Some(last) if stamp.at < last && self.is_shuffled && !self.is_untimed() => stamp.at,
            Some(last) if stamp.at <= last => {
                self.backwards += u64::from(stamp.at < last);
                self.again()
            }
            _ => {
                self.last = Some(stamp.at);
                self.since = 0;
                stamp.at
            }
        }
    }

    /// Another line at the same time.
    fn again(&mut self) -> Instant {
        let last = self.last.unwrap_or_default();
        if self.is_untimed() {
            self.since = (self.since + 1).min(NS_PER_S - 1);
        }
        Instant::from_ns(last.as_ns() + self.since)
    }

    /// Whether times are too coarse for latencies, or missing.
    pub fn is_untimed(&self) -> bool {
        self.last.is_none() || self.resolution_ns >= NS_PER_S
    }

    /// Why the numbers are not the whole truth, and what to know besides.
    /// `dates` and `finer` say how a log gets dates, and finer times.
    pub fn findings(&self, dates: &str, finer: &str) -> (Vec<String>, Vec<String>) {
        let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
        if !self.overlapping.is_empty() {
            reasons.push(format!(
                "{} begins before the log before it ends: logs of several brokers, or the same lines twice, give wrong \
                 messages. Import them one after the other.",
                self.overlapping.join(", ")
            ));
        }
        if self.last.is_none() {
            reasons.push(format!(
                "The lines of the log have no time that can be read: there are no latencies, and lengths and rates mean \
                 nothing. {dates}"));
        } else if self.is_untimed() {
            warnings.push(format!(
                "The log has whole seconds: latencies and times to acknowledge cannot be told, and none is shown. {finer}"));
        } else if self.resolution_ns > NS_PER_US {
            warnings.push(format!(
                "The log's times count {} ms: shorter latencies cannot be told and may be 0.",
                self.resolution_ns as f64 / 1e6
            ));
        }
        if self.last.is_some() && self.without > 0 {
            warnings.push(format!(
                "{} lines have no time; they are taken for as late as the line before.",
                self.without
            ));
        }
        if self.backwards > 0 {
            warnings.push(format!(
                "{} lines are earlier than the line before them (a clock that was set, or the end of summer time); they \
                 are taken for as late.", self.backwards));
        }
        if self.yearless {
            warnings.push("The log's times have no year.".into());
        }
        (reasons, warnings)
    }
}

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(ms: u64, resolution_ns: u64) -> Option<Stamp> {
        Some(Stamp { at: Instant::from_ns(ms * 1_000_000), resolution_ns, has_year: true })
    }

    #[test]
    fn lines_of_one_second_keep_their_order_and_have_no_latencies() {
        let mut clock = BrokerClock::default();
        let times: Vec<u64> =
            [1_000, 1_000, 1_000, 2_000].map(|ms| clock.at(stamp(ms, NS_PER_S)).as_ns()).into();
        assert_eq!(times, [1_000_000_000, 1_000_000_001, 1_000_000_002, 2_000_000_000]);
        assert!(clock.is_untimed());
        assert!(clock.findings("", "Do this.").1[0].ends_with("none is shown. Do this."));
    }

    #[test]
    fn finer_times_are_as_they_are_and_one_that_runs_backwards_is_counted() {
        let mut clock = BrokerClock::default();
        let times: Vec<u64> = [1_000, 1_005, 1_002].map(|ms| clock.at(stamp(ms, 1_000_000)).as_ns()).into();
        assert_eq!(times, [1_000_000_000, 1_005_000_000, 1_005_000_000]);
        assert!(!clock.is_untimed());
        assert_eq!(clock.findings("", "").1.len(), 2);
    }

    #[test]
    fn without_any_time_the_order_is_left_and_lengths_mean_nothing() {
        let mut clock = BrokerClock::default();
        assert!(clock.at(None) < clock.at(None));
        assert!(clock.is_untimed());
        assert!(clock.findings("", "").0[0].starts_with("The lines of the log have no time"));
    }
}
