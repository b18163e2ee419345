//! What follows for runs from what was measured: by the rule of [`crate::verdict::validity`], and in plain words.
//!
//! A rate of frames is possible where the machine could send so many and lost none. What delays are possible at it
//! follows from how late the emulator was. What it does not know: what a run's broker and clients will need.

use mqttlab_units::Duration;
use serde::Serialize;

use crate::verdict::lateness::Late;
use crate::verdict::path_lateness;
use crate::verdict::validity;

/// What was seen at one rate of frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateStep {
    /// Frames per second that were asked for.
    pub frames_s: u64,
    /// Frames per second that were sent.
    pub offered_frames_s: f64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that arrived.
    pub received: u64,
    /// How late the emulator was, and what is known of it.
    pub late: Late,
}

/// What a valid run may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Frames per second at most.
    pub frames_s: u64,
    /// The shortest emulated delay; zero for any.
    pub delay_ns_min: Duration,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MeasureConclusion {
    /// By frames per second; longer delays at more frames. Empty where nothing can be measured.
    pub ranges: Vec<Range>,
    /// The same and the reasons, a sentence each.
    pub words: Vec<String>,
}

/// Concludes from steps of growing rate.
pub fn conclude(steps: &[RateStep]) -> MeasureConclusion {
    let mut found: Vec<(Range, RateStep)> = Vec::new();
    let mut limit = None;
    for step in steps {
        limit = obstacle(step);
        if limit.is_some() {
            break;
        }
        let needed = validity::shortest_delay(step.late.p99);
        let frames_s = step.frames_s;
        match found.last_mut() {
            // More frames did not make it later; what few frames needed still holds.
            Some((range, worst)) if needed <= range.delay_ns_min => {
                range.frames_s = frames_s;
                if step.late.p99 > worst.late.p99 {
                    *worst = *step;
                }
            }
            _ => found.push((Range { frames_s, delay_ns_min: needed }, *step)),
        }
    }
    let mut words: Vec<String> = found.iter().map(|(range, worst)| sentence(range, worst)).collect();
    if let Some(obstacle) = limit {
        let head =
            if found.is_empty() { "Nothing can be measured over emulated networks" } else { "Not more" };
        words.push(format!("{head}: {obstacle}."));
    }
    MeasureConclusion { ranges: found.into_iter().map(|(range, _)| range).collect(), words }
}

/// Why so many frames cannot be had.
fn obstacle(step: &RateStep) -> Option<String> {
    let RateStep { frames_s, offered_frames_s, sent, received, .. } = *step;
    let asked = grouped(frames_s);
    if offered_frames_s < frames_s as f64 * OFFERED_PART {
        let offered = grouped(offered_frames_s as u64);
        return Some(format!("of {asked} frames/s this machine sent no more than {offered}"));
    }
    let lost = sent.saturating_sub(received);
    (lost > 0).then(|| {
        format!("at {asked} frames/s {} of {} frames were lost on this machine", grouped(lost), grouped(sent))
    })
}

fn sentence(range: &Range, worst: &RateStep) -> String {
    let (frames, delay) = (grouped(range.frames_s), range.delay_ns_min);
    // Whole microseconds, as what it is compared with.
    let p99 = Duration::from_us(worst.late.p99.as_ns().div_ceil(1000));
    let late =
        format!("at {} frames/s the emulator was {p99} late at the 99th percentile", grouped(worst.frames_s));
    if delay.is_zero() {
        let (allowed, exact) = (path_lateness::LATENESS, validity::delay_of_share(worst.late.p99));
        return format!(
            "Emulated delays of any length, up to {frames} frames/s: {late}, where {allowed} are allowed; of delays of {exact} and \
             more that is 2 % at most."
        );
    }
    format!(
        "Emulated delays of {delay} and more, up to {frames} frames/s. Nothing below {delay}: {late}; {}.",
        worst.late.words()
    )
}

/// With commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Of the frames that were asked for; a little less is the end of the last sleep.
const OFFERED_PART: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    /// Its name, what was seen, frames per second and shortest delays in microseconds, and a part of a sentence.
    type Case = (&'static str, Vec<RateStep>, &'static [(u64, u64)], &'static str);

    fn step(frames_s: u64, late_us: u64) -> RateStep {
        let late = Late { p99: Duration::from_us(late_us), real_time: true, ..Late::default() };
        RateStep { frames_s, offered_frames_s: frames_s as f64, sent: 10_000, received: 10_000, late }
    }

    fn held_up(mut step: RateStep) -> RateStep {
        step.late.control_p99 = Some(Duration::from_us(1100));
        step.late.steal_percent = Some(1.2);
        step
    }

    #[test]
    fn what_was_measured_decides_what_can_be_measured() {
        let slow = RateStep { offered_frames_s: 14_200.0, ..step(20_000, 30) };
        let leaky = RateStep { received: 9_988, ..step(5_000, 30) };
        let table: [Case; 9] = [
            ("in time", vec![step(1_000, 40), step(20_000, 80)], &[(20_000, 0)], "any length, up to 20,000"),
            ("just in time", vec![step(1_000, 100)], &[(1_000, 0)], "of delays of 5 ms and more that is 2 %"),
            ("just not", vec![step(1_000, 101)], &[(1_000, 5_100)], "Nothing below 5.1 ms"),
            (
                "late with many frames",
                vec![step(1_000, 40), step(5_000, 240), step(20_000, 240)],
                &[(1_000, 0), (20_000, 12_000)],
                "delays of 12 ms and more, up to 20,000 frames/s",
            ),
            (
                "late with few frames only",
                vec![step(1_000, 240), step(5_000, 40)],
                &[(5_000, 12_000)],
                "Nothing below 12 ms",
            ),
            ("held up", vec![held_up(step(1_000, 1_100))], &[(1_000, 55_000)], "(steal 1.2 %"),
            (
                "too few frames sent",
                vec![step(5_000, 40), slow],
                &[(5_000, 0)],
                "Not more: of 20,000 frames/s this machine sent no more than 14,200.",
            ),
            (
                "frames lost, so that more are not asked for",
                vec![step(1_000, 40), leaky, step(20_000, 40)],
                &[(1_000, 0)],
                "at 5,000 frames/s 12 of 10,000 frames were lost",
            ),
            ("nothing", vec![leaky], &[], "Nothing can be measured over emulated networks: at 5,000"),
        ];
        for (case, steps, expected, words) in table {
            let found = conclude(&steps);
            let ranges: Vec<(u64, u64)> = found
                .ranges
                .iter()
                .map(|range| (range.frames_s, range.delay_ns_min.as_ns() / 1000))
                .collect();
            assert_eq!(ranges, expected, "{case}");
            assert!(found.words.iter().any(|said| said.contains(words)), "{case}: {:?}", found.words);
        }
    }
}
