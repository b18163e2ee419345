//! What a medium is, as a plan says it.
//!
//! Levels are whole thousandths: `-94_000` mdBm is -94 dBm, `4_000` mdB is 4 dB. Lengths are millimetres.

use std::collections::BTreeSet;
use std::fmt;

use mqttlab_fields::{Maybe, PositiveShortTime, Size, fields, words};
use mqttlab_units::{BitRate, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::energy::EnergyProfile;
use super::fading::FadingSpec;
use super::shadowing::ShadowingSpec;

/// A radio channel and the stations on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumSpec {
    /// Unique among links and media; random streams are derived from it.
    pub name: String,
    /// Rates and times.
    pub phy: PhySpec,
    /// Access, retries and queues.
    pub mac: MacSpec,
    /// Powers and thresholds.
    pub radio: RadioSpec,
    /// Errors in bursts at every receiver; `null` for none.
    pub channel: Option<ChannelSpec>,
    /// What else is on the air.
    #[serde(default)]
    pub interferers: Vec<InterfererSpec>,
    /// Where the stations are, and how many.
    pub placement: PlacementSpec,
    /// How they move.
    pub mobility: MobilitySpec,
    /// What their radios draw.
    pub energy: EnergyProfile,
}

/// The physical layer: one data rate, one control rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhySpec {
    /// How bits become time.
    pub modulation: Modulation,
    /// Rate of data frames.
    pub data_rate_bit_s: BitRate,
    /// Rate of ACK, RTS and CTS frames.
    pub control_rate_bit_s: BitRate,
    /// Rate of ACK frames; `null` for the control rate. The standard asks for the highest basic rate that does not
    /// exceed the data frame's; ns-3 takes every rate of 802.11b for basic, and acknowledges at the data rate.
    #[serde(default)]
    pub ack_rate_bit_s: Option<BitRate>,
    /// PLCP preamble and header, which go before every frame.
    #[serde(rename = "preamble_ns")]
    pub preamble: Duration,
    /// A slot of the backoff.
    #[serde(rename = "slot_ns")]
    pub slot: Duration,
    /// Short interframe space. DIFS is this and two slots.
    #[serde(rename = "sifs_ns")]
    pub sifs: Duration,
    /// The first contention window: the backoff is uniform in 0 to this.
    pub cw_min_slots: u32,
    /// The largest contention window.
    pub cw_max_slots: u32,
}

/// How bits become time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Modulation {
    /// DSSS and HR/DSSS (IEEE 802.11-2016 clauses 15 and 16): whole microseconds.
    Dsss,
    /// ERP-OFDM (clause 18): symbols of 4 µs, and 6 µs of signal extension.
    ErpOfdm,
}

fields! {
    /// Access, retries and queues.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct MacSpec {
        /// Data frames larger than this (MAC header and check sequence included) use RTS/CTS; `0 B` for all, left out for
        /// none.
        rts_threshold_bytes / "rts_threshold": Option<u32> as Maybe<Size<u32>>,
        /// Maximum number of transmissions of a frame without RTS/CTS, or of an RTS.
        short_retry_limit / "short_retries": u32 [1..=255] = 7,
        /// Maximum number of transmissions of a frame with RTS/CTS.
        long_retry_limit / "long_retries": u32 [1..=255] = 4,
        /// Frames that may wait at a station.
        queue_limit_frames / "queue": Option<u32> [1..] = Some(50),
        /// A frame that comes to an idle station waits one DIFS from then on, as in ns-3; otherwise it is sent at once where
        /// the medium has been idle that long, as in the standard's figure of basic access (IEEE 802.11-2016 §10.3.4.2). If
        /// something is sent in between, such as the station's own ACK, the next silence of a DIFS will do, where the
        /// standard asks for a backoff.
        #[serde(default)]
        difs_from_queueing: bool = false,
    }
}

/// Powers and thresholds, the same at every station. Path loss is free space up to 1 m (from the frequency), and
/// grows by ten times the exponent a decade from there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadioSpec {
    /// Carrier frequency.
    pub frequency_hz: u64,
    /// Thousandths of the path-loss exponent: 2000 is free space.
    pub exponent_milli: u32,
    /// Radiated power.
    pub transmit_power_mdbm: i32,
    /// A receiver takes up frames from this power on.
    pub sensitivity_mdbm: i32,
    /// Thermal noise and the receiver's own.
    pub noise_mdbm: i32,
    /// Signal to noise and interference that a receiver needs to find a preamble.
    pub snir_preamble_mdb: i32,
    /// Signal to noise and interference that ACK, RTS and CTS frames need to their end.
    pub snir_control_mdb: i32,
    /// Signal to noise and interference that data frames need to their end.
    pub snir_data_mdb: i32,
    /// A frame that comes this much stronger than all else together takes the receiver over from the frame it was
    /// receiving; `null` for never.
    pub capture_mdb: Option<i32>,
    /// The medium is busy from this sum of powers on, even where no frame can be received.
    pub carrier_sense_mdbm: i32,
    /// Stations that would be heard with less than this do not exist for each other.
    pub interference_floor_mdbm: i32,
    /// What stands between stations; `null` for nothing.
    #[serde(default)]
    pub shadowing: Option<ShadowingSpec>,
    /// What reflections make of powers; `null` for nothing.
    #[serde(default)]
    pub fading: Option<FadingSpec>,
    /// How frames are lost to noise and interference.
    #[serde(default)]
    pub errors: ErrorModel,
}

words! {
    /// How a frame that stands out of noise and interference is lost.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ErrorModel {
        /// It is received where the ratio that it needs holds from its first bit to its last.
        #[default]
        Threshold = "threshold",
        /// Each bit may be wrong, by the ratio that it meets.
        Snr = "snr",
    }
}

impl ErrorModel {
    /// Whether it is the default.
    pub fn is_threshold(&self) -> bool {
        *self == ErrorModel::Threshold
    }
}

/// A source of power.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfererSpec {
    /// Unique on its medium; random streams are derived from it.
    pub name: String,
    /// Where it stands.
    pub position: Position,
    /// What it radiates within the channel.
    pub power_mdbm: i32,
    /// When it radiates.
    pub duty: DutySpec,
    /// Whether it is switched on from the beginning, or by an event.
    pub on: bool,
}

/// When an interferer that is switched on radiates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DutySpec {
    /// Always.
    Constant,
    /// In turns of equal length.
    Regular {
        /// How long it radiates.
        #[serde(rename = "on_ns")]
        on: Duration,
        /// How long it then pauses.
        #[serde(rename = "off_ns")]
        off: Duration,
    },
    /// In turns of exponential length.
    Exponential {
        /// How long it radiates on average.
        #[serde(rename = "on_ns")]
        on: Duration,
        /// How long it then pauses on average.
        #[serde(rename = "off_ns")]
        off: Duration,
    },
}

fields! {
    /// Errors in bursts at every receiver on its own (Gilbert and Elliott's channel in time): good and bad states of
    /// exponential length. Frames are lost in the bad state only.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct ChannelSpec {
        /// Mean length of a bad state.
        #[serde(rename = "mean_bad_ns")]
        mean_bad: Duration as PositiveShortTime [1_000..],
        /// Share of the time in the bad state.
        bad: Ratio = Ratio::new(1, 10).expect("a tenth is a ratio"),
        /// Probability that a frame that ends in the bad state is lost.
        loss_bad: Ratio = Ratio::new(1, 2).expect("a half is a ratio"),
    }
}

/// Where the stations are at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlacementSpec {
    /// Where it says.
    Explicit {
        /// One for each station.
        positions: Vec<Position>,
    },
    /// On a square grid, row by row from the origin.
    Grid {
        /// How many.
        stations: u32,
        /// From one to the next.
        spacing_mm: u64,
    },
    /// Uniformly in a rectangle.
    Random {
        /// How many.
        stations: u32,
        /// Width of the rectangle.
        width_mm: u64,
        /// Height of the rectangle.
        height_mm: u64,
    },
}

/// A point of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// To the right.
    pub x_mm: i64,
    /// Up.
    pub y_mm: i64,
}

/// How stations move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum MobilitySpec {
    /// Not at all.
    None,
    /// To a uniform point of a rectangle at a uniform speed, a pause there, and on.
    RandomWaypoint {
        /// Width of the rectangle.
        width_mm: u64,
        /// Height of the rectangle.
        height_mm: u64,
        /// Least speed in mm/s.
        speed_min_mm_s: u64,
        /// Greatest speed in mm/s.
        speed_max_mm_s: u64,
        /// How long a station rests at each point, and at the start.
        #[serde(rename = "pause_ns")]
        pause: Duration,
        /// How long path losses are taken for constant.
        #[serde(rename = "refresh_ns")]
        refresh: Duration,
    },
}

/// Why a medium cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediumError {
    /// The field, as a path within the medium.
    pub field: &'static str,
    /// What is wrong, with value and limit.
    pub problem: String,
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for MediumError {}

impl MediumSpec {
    /// How many stations there are.
    pub fn stations(&self) -> usize {
        match &self.placement {
            PlacementSpec::Explicit { positions } => positions.len(),
            PlacementSpec::Grid { stations, .. } | PlacementSpec::Random { stations, .. } => {
                *stations as usize
            }
        }
    }

    /// Whether a medium can be made of this.
    ///
    /// # Errors
    /// The first field whose value cannot be run.
    pub fn check(&self) -> Result<(), MediumError> {
        let PhySpec { slot, cw_min_slots, cw_max_slots, .. } = self.phy;
        positive("phy.slot_ns", slot.as_ns())?;
        positive("phy.sifs_ns", self.phy.sifs.as_ns())?;
        // The backoff doubles a window of 2^k - 1; beyond 2^15 - 1 the standard knows none.
        require("phy.cw_max_slots", (cw_min_slots..=32_767).contains(&cw_max_slots), || {
            format!("is {cw_max_slots}, but must be between cw_min_slots ({cw_min_slots}) and 32767")
        })?;
        positive("mac.short_retry_limit", self.mac.short_retry_limit.into())?;
        positive("mac.long_retry_limit", self.mac.long_retry_limit.into())?;
        if let Some(limit) = self.mac.queue_limit_frames {
            positive("mac.queue_limit_frames", limit.into())?;
        }
        positive("radio.frequency_hz", self.radio.frequency_hz)?;
        positive("radio.exponent_milli", self.radio.exponent_milli.into())?;
        self.radio.check_levels()?;
        self.radio.check_variation()?;
        self.check_rates()?;
        if let Some(channel) = &self.channel {
            positive("channel.mean_bad_ns", channel.mean_bad.as_ns())?;
        }
        self.check_interferers()?;
        positive("placement.stations", self.stations() as u64)?;
        self.mobility.check()
    }
}

impl Modulation {
    /// The rates that the standard has a modulation for.
    pub fn rates_bit_s(self) -> &'static [u64] {
        match self {
            Modulation::Dsss => &[1_000_000, 2_000_000, 5_500_000, 11_000_000],
            Modulation::ErpOfdm => &[
                6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000,
            ],
        }
    }
}

impl MediumSpec {
    /// Bit errors are those of a modulation, so that all rates must have one.
    fn check_rates(&self) -> Result<(), MediumError> {
        let PhySpec { modulation, data_rate_bit_s, control_rate_bit_s, ack_rate_bit_s, .. } = self.phy;
        let rates = [Some(data_rate_bit_s), Some(control_rate_bit_s), ack_rate_bit_s];
        let known = modulation.rates_bit_s();
        let odd = rates.into_iter().flatten().find(|rate| !known.contains(&rate.as_bit_s()));
        require("radio.errors", self.radio.errors.is_threshold() || odd.is_none(), || {
            let rate = odd.map_or(0, BitRate::as_bit_s);
            format!("is snr, but no modulation has {rate} bit/s; use one of {known:?}")
        })
    }

    fn check_interferers(&self) -> Result<(), MediumError> {
        let mut names = BTreeSet::new();
        for InterfererSpec { name, power_mdbm, duty, .. } in &self.interferers {
            require("interferers.name", names.insert(name), || format!("is {name:?} twice"))?;
            require("interferers.power_mdbm", (-140_000..=40_000).contains(power_mdbm), || {
                format!("is {power_mdbm}, but must be between -140000 and 40000")
            })?;
            if let DutySpec::Regular { on, off } | DutySpec::Exponential { on, off } = duty {
                positive("interferers.duty.on_ns", on.as_ns())?;
                positive("interferers.duty.off_ns", off.as_ns())?;
            }
        }
        Ok(())
    }
}

impl RadioSpec {
    fn check_variation(&self) -> Result<(), MediumError> {
        if let Some(shadowing) = &self.shadowing {
            // The bound keeps slips out, such as 6000 dB.
            require("radio.shadowing.sigma_mdb", (1..=20_000).contains(&shadowing.sigma_mdb), || {
                format!("is {}, but must be between 1 and 20000", shadowing.sigma_mdb)
            })?;
            positive("radio.shadowing.decorrelation_mm", shadowing.decorrelation_mm.unwrap_or(1))?;
        }
        let Some(fading) = &self.fading else { return Ok(()) };
        positive("radio.fading.coherence_ns", fading.coherence().as_ns())?;
        let FadingSpec::Nakagami { m_milli, .. } = fading else { return Ok(()) };
        // Below a half Nakagami's law is not defined.
        require("radio.fading.m_milli", (500..=100_000).contains(m_milli), || {
            format!("is {m_milli}, but must be between 500 and 100000")
        })
    }

    fn check_levels(&self) -> Result<(), MediumError> {
        // Sums of powers are counted in whole attowatts (-150 dBm) in 64 bits. No receiver is as deaf as -40 dBm, but
        // -95 in a field of thousandths reads so.
        let (quiet, any) = (-140_000..=-40_000, -140_000..=40_000);
        let levels = [
            ("radio.transmit_power_mdbm", self.transmit_power_mdbm, &any),
            ("radio.sensitivity_mdbm", self.sensitivity_mdbm, &quiet),
            ("radio.noise_mdbm", self.noise_mdbm, &quiet),
            ("radio.carrier_sense_mdbm", self.carrier_sense_mdbm, &any),
            ("radio.interference_floor_mdbm", self.interference_floor_mdbm, &quiet),
        ];
        for (field, level, range) in levels {
            require(field, range.contains(&level), || {
                format!("is {level}, but must be between {} and {}", range.start(), range.end())
            })?;
        }
        let lowest = self.sensitivity_mdbm.min(self.carrier_sense_mdbm);
        require("radio.interference_floor_mdbm", self.interference_floor_mdbm <= lowest, || {
            let floor = self.interference_floor_mdbm;
            format!("is {floor}, but must not exceed sensitivity and carrier sense ({lowest})")
        })
    }
}

impl MobilitySpec {
    fn check(&self) -> Result<(), MediumError> {
        let MobilitySpec::RandomWaypoint { speed_min_mm_s, speed_max_mm_s, refresh, .. } = self else {
            return Ok(());
        };
        // From speed 0 on, the mean speed of a waypoint walk falls to 0 (Yoon, Liu, Noble 2003).
        positive("mobility.speed_min_mm_s", *speed_min_mm_s)?;
        require("mobility.speed_max_mm_s", speed_max_mm_s >= speed_min_mm_s, || {
            format!("is {speed_max_mm_s}, but must be at least speed_min_mm_s ({speed_min_mm_s})")
        })?;
        positive("mobility.refresh_ns", refresh.as_ns())
    }
}

fn positive(field: &'static str, value: u64) -> Result<(), MediumError> {
    require(field, value > 0, || "is 0, but must be positive".into())
}

fn require(field: &'static str, holds: bool, problem: impl FnOnce() -> String) -> Result<(), MediumError> {
    if holds { Ok(()) } else { Err(MediumError { field, problem: problem() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> MediumSpec {
        MediumSpec {
            name: "air".into(),
            phy: PhySpec::preset("b-11").unwrap(),
            mac: MacSpec::standard(),
            radio: RadioSpec::preset("b-11").unwrap(),
            channel: None,
            interferers: Vec::new(),
            placement: PlacementSpec::Grid { stations: 2, spacing_mm: 1000 },
            mobility: MobilitySpec::None,
            energy: EnergyProfile::preset("mica2").unwrap(),
        }
    }

    /// The field that a changed spec is refused for.
    fn refused(change: impl FnOnce(&mut MediumSpec)) -> &'static str {
        let mut changed = spec();
        change(&mut changed);
        changed.check().expect_err("it was let through").field
    }

    #[test]
    fn presets_can_be_run() {
        for name in super::super::PRESETS {
            let (phy, radio) = (PhySpec::preset(name).unwrap(), RadioSpec::preset(name).unwrap());
            assert_eq!(MediumSpec { phy, radio, ..spec() }.check(), Ok(()), "{name}");
        }
        assert!(super::super::ENERGY_PRESETS.iter().all(|name| EnergyProfile::preset(name).is_some()));
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_its_field() {
        assert_eq!(refused(|spec| spec.phy.slot = Duration::ZERO), "phy.slot_ns");
        assert_eq!(refused(|spec| spec.phy.cw_max_slots = 7), "phy.cw_max_slots");
        assert_eq!(refused(|spec| spec.mac.short_retry_limit = 0), "mac.short_retry_limit");
        assert_eq!(refused(|spec| spec.mac.queue_limit_frames = Some(0)), "mac.queue_limit_frames");
        assert_eq!(refused(|spec| spec.radio.noise_mdbm = -95), "radio.noise_mdbm");
        assert_eq!(refused(|spec| spec.radio.exponent_milli = 0), "radio.exponent_milli");
        let shadowing = |sigma_mdb, decorrelation_mm| {
            refused(|spec| spec.radio.shadowing = Some(ShadowingSpec { sigma_mdb, decorrelation_mm }))
        };
        assert_eq!(shadowing(6_000_000, None), "radio.shadowing.sigma_mdb");
        assert_eq!(shadowing(6_000, Some(0)), "radio.shadowing.decorrelation_mm");
        let fading = |m_milli, coherence| {
            refused(|spec| spec.radio.fading = Some(FadingSpec::Nakagami { m_milli, coherence }))
        };
        assert_eq!(fading(499, Duration::from_ms(1)), "radio.fading.m_milli");
        assert_eq!(fading(500, Duration::ZERO), "radio.fading.coherence_ns");
        let odd = |spec: &mut MediumSpec| {
            spec.radio.errors = ErrorModel::Snr;
            spec.phy.ack_rate_bit_s = BitRate::from_bit_s(3_000_000);
        };
        assert_eq!(refused(odd), "radio.errors");
        let floor = |spec: &mut MediumSpec| spec.radio.interference_floor_mdbm = -90_000;
        assert_eq!(refused(floor), "radio.interference_floor_mdbm");
        let nobody = |spec: &mut MediumSpec| spec.placement = PlacementSpec::Explicit { positions: vec![] };
        assert_eq!(refused(nobody), "placement.stations");
    }
}
