//! A policer: a token bucket without a queue, which drops what comes faster than its rate.
//!
//! The bucket begins full, with `burst` bytes of tokens, and gets `rate` tokens until it is full. A frame for which there are
//! enough takes its bytes; any other is dropped, and takes none (RFC 2697 §3, color-blind, with an excess burst size of 0;
//! `tc-police` with `rate`, `burst` and `conform-exceed drop`). Bytes are those that the link counts, its overhead included,
//! as with tc's `overhead`; those of RFC 2697 §2 are of IP packets. Tokens are counted in bits × 10⁹: nothing is rounded.

use mqttlab_units::{BitRate, Bytes, Instant};

use crate::spec::PolicerSpec;

#[derive(Clone, Debug)]
pub(crate) struct Policer {
    rate: BitRate,
    /// In bits × 10⁹, as all tokens.
    burst: u128,
    tokens: u128,
    filled_at: Instant,
}

impl Policer {
    pub fn new(spec: &PolicerSpec, now: Instant) -> Policer {
        let burst = tokens(Bytes(spec.burst_bytes));
        Policer { rate: spec.rate_bit_s, burst, tokens: burst, filled_at: now }
    }

    /// Whether a frame may pass that comes now. Times never run back.
    pub fn passes(&mut self, now: Instant, frame: Bytes) -> bool {
        self.fill(now);
        let needed = tokens(frame);
        let has_enough = self.tokens >= needed;
        if has_enough {
            self.tokens -= needed;
        }
        has_enough
    }

    /// Another rate or burst from now on. What is in the bucket stays, as far as it still has room.
    pub fn change(&mut self, spec: &PolicerSpec, now: Instant) {
        self.fill(now);
        self.rate = spec.rate_bit_s;
        self.burst = tokens(Bytes(spec.burst_bytes));
        self.tokens = self.tokens.min(self.burst);
    }

    fn fill(&mut self, now: Instant) {
        let passed = u128::from(now.since(self.filled_at).as_ns());
        self.tokens = (self.tokens + passed * u128::from(self.rate.as_bit_s())).min(self.burst);
        self.filled_at = now;
    }
}

fn tokens(bytes: Bytes) -> u128 {
    u128::from(bytes.bits()) * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rate_bit_s: u64, burst_bytes: u64) -> PolicerSpec {
        PolicerSpec { rate_bit_s: BitRate::from_bit_s(rate_bit_s).unwrap(), burst_bytes }
    }

    fn ms(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    /// 8 kbit/s is one byte in a millisecond.
    #[test]
    fn the_bucket_begins_full_and_is_filled_at_its_rate_up_to_the_burst() {
        let mut policer = Policer::new(&spec(8_000, 1_000), ms(0));
        assert!(policer.passes(ms(0), Bytes(600)) && policer.passes(ms(0), Bytes(400)));
        assert!(!policer.passes(ms(0), Bytes(1)), "empty");
        assert!(!policer.passes(ms(99), Bytes(100)) && policer.passes(ms(100), Bytes(100)));
        assert!(
            policer.passes(ms(9_000), Bytes(1_000)) && !policer.passes(ms(9_000), Bytes(1)),
            "no more than the burst"
        );
    }

    #[test]
    fn a_frame_that_is_dropped_takes_no_tokens() {
        let mut policer = Policer::new(&spec(8_000, 1_000), ms(0));
        assert!(policer.passes(ms(0), Bytes(900)));
        assert!(!policer.passes(ms(0), Bytes(101)) && policer.passes(ms(0), Bytes(100)));
    }

    #[test]
    fn nothing_is_rounded() {
        // 3 bit/s: 8 bits take 2.666… s.
        let mut policer = Policer::new(&spec(3, 1), ms(0));
        assert!(policer.passes(ms(0), Bytes(1)));
        assert!(!policer.passes(Instant::from_ns(2_666_666_666), Bytes(1)));
        assert!(policer.passes(Instant::from_ns(2_666_666_667), Bytes(1)));
    }

    #[test]
    fn a_change_keeps_tokens_and_cuts_them_at_the_new_burst() {
        let mut policer = Policer::new(&spec(8_000, 1_000), ms(0));
        assert!(policer.passes(ms(0), Bytes(1_000)));
        policer.change(&spec(80_000, 500), ms(100));
        assert!(policer.passes(ms(100), Bytes(100)), "100 ms at the rate before");
        assert!(
            policer.passes(ms(110), Bytes(100)) && !policer.passes(ms(110), Bytes(1)),
            "10 ms at the new rate"
        );
        policer.change(&spec(80_000, 50), ms(1_000));
        assert!(policer.passes(ms(1_000), Bytes(50)) && !policer.passes(ms(1_000), Bytes(1)));
    }
}
