//! How far the clocks of captures are apart, by connections that several of them hold.
//!
//! Where zero lies between the bounds of the offset ([`passages`](super::passages)), nothing tells that the clocks differ, and
//! they are left alone. Else the middle is taken, which is right where both ways take equally long.
//!
//! The first frames tell. What drifts after them is found by [`Dedup`].

use std::collections::BTreeMap;

use mqttlab_capture::{Bits, CapturedFrame, TransportHeader, dissect_content};
use mqttlab_recording::NumberMap;
use mqttlab_units::Duration;

use super::clocks::seconds;
use super::dedup::{Dedup, Ends};
use super::passages::{Bounds, Passages, TOLERANCE_NS};
use super::source::{CaptureFrames, CapturedAt};

/// Sets the clocks of several captures. Answers why they are not right all the same, and what was done.
pub fn set_clocks(frames: &mut CaptureFrames) -> (Vec<String>, Vec<String>) {
    if frames.files() < 2 || frames.show_both_ends() {
        return Default::default();
    }
    let mut offsets = ClockOffsets::default();
    frames.look_ahead().for_each(|(file, frame)| offsets.add(file, &frame));
    let (corrections, reasons, warnings) = offsets.conclude(&frames.names());
    corrections.iter().for_each(|correction| frames.correct(correction.file, correction.add_ns));
    (reasons, warnings)
}

/// What the clocks of several captures have in common.
#[derive(Default)]
struct ClockOffsets {
    /// Segments with payload: where each was seen, in the order of the captures.
    seen: NumberMap<u64, Vec<Sighting>>,
}

#[derive(Clone, Copy)]
struct Sighting {
    file: u16,
    at_ns: i64,
    ends: Ends,
}

/// How far a clock is behind that of the first capture, or of one that was set by it.
struct Correction {
    /// The capture.
    file: u16,
    /// What is to be added to its times.
    add_ns: i64,
    /// The capture that it was compared with.
    with: u16,
    /// How far off that may be.
    within: Duration,
}

impl ClockOffsets {
    /// Takes a frame of a capture into account.
    fn add(&mut self, file: u16, frame: &CapturedFrame<'_>) {
        let carried = frame.carried();
        let transport = dissect_content(frame, &carried);
        let TransportHeader::Tcp(segment, payload) = &transport else { return };
        // Numbers that are counted from zero are those of every connection.
        let is_random = segment.sequence.max(segment.acknowledgment) > SMALL;
        if payload.is_empty() || segment.bits.has(Bits::SYN) || !frame.is_timed || !is_random {
            return;
        }
        let at = CapturedAt { link: file, file, transit: None };
        let Some(print) = Dedup::fingerprint(at, frame, &carried, &transport) else { return };
        self.seen.entry(print.content()).or_default().push(Sighting {
            file,
            at_ns: frame.time.as_ns() as i64,
            ends: [segment.source, segment.destination],
        });
    }

    /// The clocks that are to be set, and what is wrong with others. Captures have these names.
    fn conclude(self, names: &[String]) -> (Vec<Correction>, Vec<String>, Vec<String>) {
        let (mut corrections, mut reasons) = (Vec::<Correction>::new(), Vec::new());
        let bounds = self.bounds();
        for file in 1..names.len().min(usize::from(u16::MAX)) as u16 {
            let Some((with, bounds)) = (0..file).find_map(|with| Some((with, *bounds.get(&(with, file))?)))
            else {
                continue;
            };
            if let Some(words) = bounds.contradiction((with, file), names) {
                reasons.push(words);
                continue;
            }
            let already = corrections.iter().find(|known| known.file == with).map_or(0, |known| known.add_ns);
            let is_apart = bounds.low > TOLERANCE_NS || bounds.high < -TOLERANCE_NS;
            let add_ns = already - if is_apart { bounds.low.midpoint(bounds.high) } else { 0 };
            if add_ns != 0 {
                let within = Duration::from_ns(bounds.high.abs_diff(bounds.low) / 2);
                corrections.push(Correction { file, add_ns, with, within });
            }
        }
        let warnings = corrections.iter().map(|correction| correction.words(names)).collect();
        (corrections, reasons, warnings)
    }

    fn bounds(&self) -> BTreeMap<(u16, u16), Bounds> {
        let mut passages = Passages::default();
        for sightings in self.seen.values() {
            for (index, one) in sightings.iter().enumerate() {
                for other in &sightings[index + 1..] {
                    // A host may show copies of one frame; what was sent again tells nothing.
                    let is_once = |first: &Sighting| {
                        let own = sightings.iter().filter(|seen| seen.file == first.file);
                        own.map(|seen| seen.at_ns.abs_diff(first.at_ns)).max() < Some(COPIED_WITHIN_NS)
                    };
                    if one.file != other.file && is_once(one) && is_once(other) {
                        passages.add((one.file, other.file), one.ends, other.at_ns - one.at_ns);
                    }
                }
            }
        }
        passages.bounds()
    }
}

impl Correction {
    fn words(&self, names: &[String]) -> String {
        let [with, own] = [self.with, self.file].map(|file| &names[usize::from(file)]);
        let way = if self.add_ns > 0 { "behind" } else { "ahead" };
        format!(
            "The clock of {own} is {} s {way} of that of {with}, ± {} s, as connections tell that both hold. Times of {own} are \
             corrected by that; latencies between the captures may be off by as much as the bound.",
            seconds(Duration::from_ns(self.add_ns.unsigned_abs())),
            seconds(self.within)
        )
    }
}

/// A host passes a frame on within this.
const COPIED_WITHIN_NS: u64 = 10_000_000;
/// Sequence numbers up to this are counted from zero.
const SMALL: u32 = 1 << 16;
