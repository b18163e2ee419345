//! Powers: decibels turned into whole attowatts.
//!
//! Sums of powers go up and down millions of times in a run. In integers they come back to zero exactly, and are
//! the same in whichever order frames begin and end.

use super::frame_errors::FrameErrors;
use super::spec::{PhySpec, RadioSpec};
use super::timing::FrameKind;

/// 1 mW in attowatts; 1 aW is -150 dBm.
const ATTOWATTS: f64 = 1e15;
const LIGHT_M_S: f64 = 299_792_458.0;

/// A radio's levels.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// Power at 1 m, in attowatts.
    at_1m: f64,
    /// Power falls with this power of the squared distance.
    half_exponent: f64,
    floor: u64,
    pub(crate) sensitivity: u64,
    pub(crate) carrier_sense: u64,
    noise: u64,
    /// One over the ratios that a reception needs.
    preamble: f64,
    control: f64,
    data: f64,
    capture: Option<f64>,
    /// `None` where frames are lost by thresholds.
    errors: Option<FrameErrors>,
}

impl Levels {
    pub(crate) fn new(spec: &RadioSpec) -> Self {
        // Friis' formula at 1 m, as a ratio of amplitudes; below 24 MHz it would amplify.
        let loss_at_1m = 4.0 * std::f64::consts::PI * spec.frequency_hz as f64 / LIGHT_M_S;
        Levels {
            at_1m: attowatts(spec.transmit_power_mdbm) / loss_at_1m.max(1.0).powi(2),
            half_exponent: f64::from(spec.exponent_milli) / 2_000.0,
            floor: attowatts(spec.interference_floor_mdbm) as u64,
            sensitivity: attowatts(spec.sensitivity_mdbm) as u64,
            carrier_sense: attowatts(spec.carrier_sense_mdbm) as u64,
            noise: attowatts(spec.noise_mdbm) as u64,
            preamble: 1.0 / ratio(spec.snir_preamble_mdb),
            control: 1.0 / ratio(spec.snir_control_mdb),
            data: 1.0 / ratio(spec.snir_data_mdb),
            capture: spec.capture_mdb.map(|mdb| 1.0 / ratio(mdb)),
            errors: None,
        }
    }

    /// Frames are lost by their bits' errors.
    pub(crate) fn with_errors(self, phy: &PhySpec) -> Self {
        Levels { errors: FrameErrors::new(phy), ..self }
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// The logarithm of the chance that a bit of a frame of this power is right; 0 where thresholds decide.
    pub(crate) fn log_right(&self, kind: FrameKind, power: u64, interference: u64) -> f64 {
        let ratio = power as f64 / (self.noise + interference) as f64;
        self.errors.map_or(0.0, |errors| errors.log_right(kind, ratio))
    }

    /// Power at this distance, given in square metres, of a source that is so many times as loud as a station, with
    /// this gain on the way; 0 below the floor.
    pub(crate) fn received(&self, squared_m2: f64, loudness: f64, gain: f64) -> u64 {
        // Nearer than 1 m the law of the far field does not hold.
        let power = self.at_1m * loudness * squared_m2.max(1.0).powf(-self.half_exponent);
        let power = self.varied(power, loudness, gain);
        if power < self.floor { 0 } else { power }
    }

    /// A power with this gain. No obstacle and no reflection makes it more than that at 1 m.
    pub(crate) fn varied(&self, power: f64, loudness: f64, gain: f64) -> u64 {
        (power * gain).min(self.at_1m * loudness) as u64
    }

    /// The square of the distance beyond which [`Levels::received`] is 0.
    pub(crate) fn reach_m2(&self) -> f64 {
        (self.at_1m / self.floor.max(1) as f64).powf(1.0 / self.half_exponent).max(1.0)
    }

    /// Whether a receiver finds the preamble of a frame of this power under such interference.
    pub(crate) fn finds(&self, power: u64, interference: u64) -> bool {
        power >= self.sensitivity && allowed(power, self.preamble) >= self.noise + interference
    }

    /// The interference that a frame of this power bears, or its preamble where the rest is up to its bits; `None` where
    /// noise alone is too much.
    pub(crate) fn tolerance(&self, kind: FrameKind, power: u64) -> Option<u64> {
        let inverse = match kind {
            _ if self.has_errors() => self.preamble,
            FrameKind::Data => self.data,
            FrameKind::Ack | FrameKind::Rts | FrameKind::Cts => self.control,
        };
        allowed(power, inverse).checked_sub(self.noise)
    }

    /// Whether a frame of this power takes a receiver over from all else.
    pub(crate) fn captures(&self, power: u64, interference: u64) -> bool {
        self.capture.is_some_and(|inverse| allowed(power, inverse) >= interference)
    }

    /// Whether a data frame of this power can be received at all.
    pub(crate) fn reachable(&self, power: u64) -> bool {
        self.finds(power, 0) && self.tolerance(FrameKind::Data, power).is_some()
    }
}

fn allowed(power: u64, inverse_ratio: f64) -> u64 {
    (power as f64 * inverse_ratio) as u64
}

fn attowatts(mdbm: i32) -> f64 {
    ratio(mdbm) * ATTOWATTS
}

pub(crate) fn ratio(mdb: i32) -> f64 {
    10_f64.powf(f64::from(mdb) / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dbm(power_aw: u64) -> f64 {
        10.0 * (power_aw as f64 / ATTOWATTS).log10()
    }

    #[test]
    fn path_loss_is_that_of_free_space_to_1_m_and_of_the_exponent_beyond() {
        let levels = Levels::new(&RadioSpec::preset("b-11").unwrap());
        // 20 log10(4 pi 2.4e9 / c) = 40.05 dB; 20 dBm - 40.05 dB - 30 log10(d).
        for (metres, expected) in
            [(0.1, -20.05), (1.0, -20.05), (10.0, -50.05), (100.0, -80.05), (150.0, -85.34)]
        {
            let got = dbm(levels.received(metres * metres, 1.0, 1.0));
            assert!((got - expected).abs() < 0.01, "{metres} m: {got} dBm");
        }
    }

    #[test]
    fn beyond_the_reach_there_is_nothing() {
        let levels = Levels::new(&RadioSpec::preset("b-11").unwrap());
        // (20 - 40.05 + 105) / 30 = 2.8316 decades: 678.6 m.
        let reach_m = levels.reach_m2().sqrt();
        assert!((reach_m - 678.6).abs() < 0.5, "{reach_m}");
        assert!(levels.received((reach_m * 0.999).powi(2), 1.0, 1.0) > 0);
        assert_eq!(levels.received((reach_m * 1.001).powi(2), 1.0, 1.0), 0);
    }

    #[test]
    fn a_frame_bears_interference_down_to_its_ratio() {
        let levels = Levels::new(&RadioSpec::preset("b-11").unwrap());
        let power = attowatts(-70_000) as u64;
        // 10 dB below -70 dBm less the noise of -95 dBm: -80.14 dBm.
        let tolerance = dbm(levels.tolerance(FrameKind::Data, power).unwrap());
        assert!((tolerance + 80.14).abs() < 0.01, "{tolerance}");
        assert_eq!(levels.tolerance(FrameKind::Data, attowatts(-86_000) as u64), None);
    }
}
