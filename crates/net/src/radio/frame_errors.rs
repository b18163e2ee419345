//! Frame errors by signal to noise and interference, and by length.
//!
//! A frame of n bits arrives with the chance (1 - p)^n, where p is the modulation's chance of a bit error at the ratio
//! that the bit meets (1 - p is a product over stretches where interference changes). The laws are those of ns-3
//! (`DsssErrorRateModel` with its numerical integral, `NistErrorRateModel`), written with the ratio g of powers:
//!
//! - 1 Mbit/s, DBPSK: `exp(-22 g) / 2`; the noise of 22 MHz falls on 1 million bits a second.
//! - 2 Mbit/s, DQPSK: `(√2 + 1) / √(8π√2 x) · exp(-(2 - √2) x)` with x = 11 g.
//! - 5.5 Mbit/s, CCK: symbols of 4 bits as a 16-ary biorthogonal signal with the ratio e = 8 g of energy to noise. Of the
//!   other codewords 14 are at a right angle and one is opposite, so at most `14 Q(√e) + Q(√(2e))` of the symbols are wrong
//!   (the union bound; ns-3 integrates).
//! - 11 Mbit/s, CCK: symbols of 8 bits as two such signals with e = 4 g each. A coherent receiver of all energy would have
//!   twice that: ns-3 is 3 dB more careful.
//! - OFDM: bits before the decoder by Gray-coded PSK and QAM, `2 (1 - 1/√M) / log2 M · erfc(√(3 g / (2 (M - 1))))`; after
//!   it the union bound over the distances of the code with constraint length 7, whose weights are tabulated for
//!   rates 1/2, 2/3 and 3/4, with Chernoff's bound `(4 p (1 - p))^(d/2) / 2` for a distance d.
//!
//! What it does not model: the preamble, which is found or not by its threshold.

use std::f64::consts::{PI, SQRT_2};

use mqttlab_units::BitRate;

use super::spec::{Modulation, PhySpec};
use super::timing::FrameKind;

/// The chance of a bit error by the ratio of powers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BitErrorLaw {
    Dbpsk,
    Dqpsk,
    /// Complementary code keying: so many 16-ary signals in a symbol, with 4 bits each.
    Cck {
        signals: f64,
    },
    /// A constellation of so many points, and a code.
    Ofdm {
        points: f64,
        code: Code,
    },
}

/// A punctured convolutional code of constraint length 7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Code {
    /// Bits for each period of the puncturing.
    bits: f64,
    /// The least distance, and what is from one distance to the next.
    distance: i32,
    step: i32,
    /// Bit errors over all paths of each distance.
    weights: &'static [f64],
}

const HALF: Code = Code {
    bits: 1.0,
    distance: 10,
    step: 2,
    weights: &[36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0, 21_292_910.0, 134_365_911.0],
};
const TWO_THIRDS: Code = Code {
    bits: 2.0,
    distance: 6,
    step: 1,
    weights: &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0, 8_784_123.0],
};
const THREE_QUARTERS: Code = Code {
    bits: 3.0,
    distance: 5,
    step: 1,
    weights: &[
        42.0,
        201.0,
        1492.0,
        10_469.0,
        62_935.0,
        379_644.0,
        2_253_373.0,
        13_073_811.0,
        75_152_755.0,
        428_005_675.0,
    ],
};

/// The laws of a physical layer's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameErrors {
    data: BitErrorLaw,
    ack: BitErrorLaw,
    control: BitErrorLaw,
}

impl FrameErrors {
    /// `None` where the standard has no modulation for one of the rates.
    pub(crate) fn new(phy: &PhySpec) -> Option<Self> {
        let law = |rate| BitErrorLaw::of(phy.modulation, rate);
        Some(FrameErrors {
            data: law(phy.data_rate_bit_s)?,
            ack: law(phy.ack_rate_bit_s.unwrap_or(phy.control_rate_bit_s))?,
            control: law(phy.control_rate_bit_s)?,
        })
    }

    /// The logarithm of the chance that a bit of such a frame is right.
    pub(crate) fn log_right(&self, kind: FrameKind, ratio: f64) -> f64 {
        let law = match kind {
            FrameKind::Data => self.data,
            FrameKind::Ack => self.ack,
            FrameKind::Rts | FrameKind::Cts => self.control,
        };
        (-law.bit_error(ratio)).ln_1p()
    }
}

impl BitErrorLaw {
    /// Of a rate (IEEE 802.11-2016 clauses 15 to 18).
    pub(crate) fn of(modulation: Modulation, rate: BitRate) -> Option<Self> {
        let ofdm = |points, code| BitErrorLaw::Ofdm { points, code };
        let law = match (modulation, rate.as_bit_s()) {
            (Modulation::Dsss, 1_000_000) => BitErrorLaw::Dbpsk,
            (Modulation::Dsss, 2_000_000) => BitErrorLaw::Dqpsk,
            (Modulation::Dsss, 5_500_000) => BitErrorLaw::Cck { signals: 1.0 },
            (Modulation::Dsss, 11_000_000) => BitErrorLaw::Cck { signals: 2.0 },
            (Modulation::ErpOfdm, 6_000_000) => ofdm(2.0, HALF),
            (Modulation::ErpOfdm, 9_000_000) => ofdm(2.0, THREE_QUARTERS),
            (Modulation::ErpOfdm, 12_000_000) => ofdm(4.0, HALF),
            (Modulation::ErpOfdm, 18_000_000) => ofdm(4.0, THREE_QUARTERS),
            (Modulation::ErpOfdm, 24_000_000) => ofdm(16.0, HALF),
            (Modulation::ErpOfdm, 36_000_000) => ofdm(16.0, THREE_QUARTERS),
            (Modulation::ErpOfdm, 48_000_000) => ofdm(64.0, TWO_THIRDS),
            (Modulation::ErpOfdm, 54_000_000) => ofdm(64.0, THREE_QUARTERS),
            _ => return None,
        };
        Some(law)
    }

    /// The chance of a bit error; at most a half.
    pub(crate) fn bit_error(self, ratio: f64) -> f64 {
        let error = match self {
            BitErrorLaw::Dbpsk => 0.5 * (-22.0 * ratio).exp(),
            BitErrorLaw::Dqpsk => {
                let x = 11.0 * ratio;
                (SQRT_2 + 1.0) / (8.0 * PI * SQRT_2 * x).sqrt() * (-(2.0 - SQRT_2) * x).exp()
            }
            BitErrorLaw::Cck { signals } => {
                let energy = 8.0 * ratio / signals;
                let wrong = (14.0 * tail(energy.sqrt()) + tail((2.0 * energy).sqrt())).min(1.0);
                // The chance that the 4 bits of a signal are right, as a root over them.
                1.0 - (1.0 - wrong).powf(0.25)
            }
            BitErrorLaw::Ofdm { points, code } => code.after(before_decoder(points, ratio)),
        };
        error.min(0.5)
    }
}

/// Bit errors of Gray-coded PSK and QAM.
fn before_decoder(points: f64, ratio: f64) -> f64 {
    if points < 4.0 {
        return 0.5 * erfc(ratio.sqrt());
    }
    let spread = (1.5 * ratio / (points - 1.0)).sqrt();
    2.0 * (1.0 - 1.0 / points.sqrt()) / points.log2() * erfc(spread)
}

impl Code {
    fn after(&self, error: f64) -> f64 {
        let chernoff = (4.0 * error * (1.0 - error)).sqrt();
        let paths = self.weights.iter().zip(0..);
        let sum: f64 =
            paths.map(|(weight, nth)| weight * chernoff.powi(self.distance + nth * self.step)).sum();
        sum / (2.0 * self.bits)
    }
}

/// The upper tail of the standard normal distribution.
fn tail(value: f64) -> f64 {
    0.5 * erfc(value / SQRT_2)
}

/// The complementary error function of what is not negative, to 1.2e-7 of its value (Press et al., *Numerical Recipes*,
/// `erfcc`).
pub(crate) fn erfc(value: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * value);
    let terms = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let exponent = terms.iter().fold(0.0, |sum, term| sum * t + term);
    t * (exponent - value * value).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(modulation: Modulation, bit_s: u64) -> BitErrorLaw {
        BitErrorLaw::of(modulation, BitRate::from_bit_s(bit_s).unwrap()).unwrap()
    }

    fn ratio(db: f64) -> f64 {
        10_f64.powf(db / 10.0)
    }

    #[test]
    fn erfc_has_its_known_values() {
        // By the C library.
        for (value, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122),
            (1.0, 0.157_299_207),
            (2.0, 4.677_734_98e-3),
            (4.0, 1.541_725_79e-8),
        ] {
            assert!((erfc(value) / expected - 1.0).abs() < 2e-7, "{value}: {}", erfc(value));
        }
    }

    #[test]
    fn dsss_has_the_closed_forms_of_dpsk() {
        let dbpsk = law(Modulation::Dsss, 1_000_000);
        // 22 * 10^-0.5 = 6.957: exp(-6.957) / 2.
        assert!((dbpsk.bit_error(ratio(-5.0)) / 4.759e-4 - 1.0).abs() < 1e-3);
        let dqpsk = law(Modulation::Dsss, 2_000_000);
        // x = 11: (2.41421 / sqrt(11.8477 * 33)) exp(-6.4437), with 8 pi sqrt 2 = 35.543: 2.41421 / 19.773 * 1.5902e-3.
        assert!((dqpsk.bit_error(1.0) / 1.9416e-4 - 1.0).abs() < 1e-3, "{}", dqpsk.bit_error(1.0));
    }

    /// ns-3's chance that a 16-ary biorthogonal signal is wrong: 1 - the integral of (2 F(x + b) - 1)^7 f(x), b = √(2e).
    fn biorthogonal(energy: f64) -> f64 {
        let b = (2.0 * energy).sqrt();
        let (from, steps) = (-b, 200_000);
        let width = (12.0 - from) / f64::from(steps);
        let below = |x: f64| if x < 0.0 { tail(-x) } else { 1.0 - tail(x) };
        let sum: f64 = (0..steps)
            .map(|step| {
                let x = from + (f64::from(step) + 0.5) * width;
                (2.0 * below(x + b) - 1.0).powi(7) * (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
            })
            .sum();
        1.0 - sum * width
    }

    #[test]
    fn cck_is_near_the_integral_where_frames_begin_to_arrive() {
        for (bit_s, signals) in [(5_500_000, 1.0), (11_000_000, 2.0)] {
            let law = law(Modulation::Dsss, bit_s);
            for db in [4.8, 6.0, 7.0] {
                let exact = biorthogonal(8.0 * ratio(db) / signals);
                let bits = 1.0 - (1.0 - exact).powf(0.25);
                // The union bound counts overlaps twice: an upper bound, 16 % above at 4.8 dB, and 4 % at 7 dB.
                let over = law.bit_error(ratio(db)) / bits;
                assert!((0.99..1.17).contains(&over), "{bit_s} at {db} dB: {over}");
            }
        }
    }

    #[test]
    fn ofdm_has_the_union_bound_of_its_code() {
        // 64-QAM: 7/24 erfc(√(g / 42)); at 24 dB the least distance, 5, has most of the bound.
        let raw = before_decoder(64.0, ratio(24.0));
        assert!((raw / (7.0 / 24.0 * erfc((ratio(24.0) / 42.0).sqrt())) - 1.0).abs() < 1e-12);
        let d = (4.0 * raw * (1.0 - raw)).sqrt();
        let first = 42.0 * d.powi(5) / 6.0;
        let whole = law(Modulation::ErpOfdm, 54_000_000).bit_error(ratio(24.0));
        assert!(first < whole && whole < 1.5 * first, "{first} {whole}");
        // 16-QAM: 3/8 erfc(√(g / 10)); QPSK: erfc(√(g / 2)) / 2; BPSK: erfc(√g) / 2.
        assert!((before_decoder(16.0, 10.0) / (0.375 * erfc(1.0)) - 1.0).abs() < 1e-12);
        assert!((before_decoder(4.0, 2.0) / (0.5 * erfc(1.0)) - 1.0).abs() < 1e-12);
        assert!((before_decoder(2.0, 1.0) / (0.5 * erfc(1.0)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn more_signal_means_fewer_errors_at_every_rate() {
        let dsss = [1_000_000, 2_000_000, 5_500_000, 11_000_000].map(|rate| (Modulation::Dsss, rate));
        let ofdm = [6, 9, 12, 18, 24, 36, 48, 54].map(|mbit_s| (Modulation::ErpOfdm, mbit_s * 1_000_000));
        for (modulation, rate) in dsss.into_iter().chain(ofdm) {
            let errors: Vec<f64> =
                (-20..30).map(|db| law(modulation, rate).bit_error(ratio(f64::from(db)))).collect();
            assert!(errors.is_sorted_by(|less, more| less >= more), "{rate}: {errors:?}");
            assert!(errors[0] > 0.004 && errors[49] < 1e-9, "{rate}: {errors:?}");
        }
        assert_eq!(BitErrorLaw::of(Modulation::Dsss, BitRate::from_bit_s(3_000_000).unwrap()), None);
        for modulation in [Modulation::Dsss, Modulation::ErpOfdm] {
            // A plan is checked by these, before laws are made.
            assert!(modulation.rates_bit_s().iter().all(|rate| law(modulation, *rate).bit_error(1e3) < 1e-9));
        }
    }
}
