//! An IEEE 802.11 channel, as a scenario writes it. Every host is a station, in the order of the plan; the broker's host is
//! one of them, or the access point in front of it.

use mqttlab_fields::{
    Area, Current, DataRate, Flat, Gain, Length, Maybe, Name, Pair, PositiveShortTime, Power, Rules, Speed,
    Table, Thousandths, Time, fields, plain, words,
};
use mqttlab_fields::{List, Words};
use mqttlab_net::radio::{
    AsFading, ChannelSpec, DutySpec, EnergyProfile, ErrorModel, FadingSpec, InterfererSpec, MacSpec,
    MediumSpec, MobilitySpec, PhySpec, PlacementSpec, Position, RadioSpec, ShadowingSpec,
};
use mqttlab_units::{BitRate, Duration};

/// The channel's name in plans and recordings.
pub const MEDIUM: &str = "radio";
/// So much below the noise, stations do not exist for each other.
const BELOW_NOISE_MDB: i32 = 10_000;

words! {
    /// Rates and times of a standard.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Standard {
        /// 802.11 of 1997: data at 2 Mbit/s, control at 1 Mbit/s, long preamble.
        Dsss2 = "dsss-2",
        /// 802.11b: data at 11 Mbit/s, control at 2 Mbit/s, long preamble.
        B11 = "b-11",
        /// 802.11g without 802.11b stations: data at 54 Mbit/s, control at 24 Mbit/s.
        G54 = "g-54",
    }
}

words! {
    /// What radios draw.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Energy {
        /// The radio of a Mica2 mote.
        Mica2 = "mica2",
        /// The whole chip.
        Esp8266 = "esp8266",
        /// The whole chip.
        Esp32 = "esp32",
        /// A WaveLAN card.
        Wavelan = "wavelan",
    }
}

words! {
    /// How stations are placed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Placed {
        /// Uniformly in the area.
        Random = "random",
        /// On a square grid.
        Grid = "grid",
    }
}

words! {
    /// The lengths of an interferer's turns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Turns {
        /// `on` and `off` are the lengths of all turns.
        Regular = "regular",
        /// They are means of exponential lengths.
        Exponential = "exponential",
    }
}

words! {
    /// Whether something is switched on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Switch {
        /// It is.
        On = "on",
        /// It is silent until an event switches it on.
        Off = "off",
    }
}

fields! {
    /// A source of power that speaks no 802.11: stations sense it as a busy channel, and receive frames under it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Interferer with rules {
        /// Unique among interferers.
        name: String as Name,
        /// Where it stands.
        position: [u64; 2] as Pair<Length>,
        /// What it radiates within the channel.
        power: i32 as Power<i32> [-140_000..=40_000],
        /// How long it radiates in each turn; left out, with `off`: always.
        on: Option<Duration> as Maybe<PositiveShortTime> [100_000..],
        /// How long it pauses between turns.
        off: Option<Duration> as Maybe<PositiveShortTime> [100_000..],
        /// Whether `on` and `off` are the lengths of all turns, or means of exponential lengths.
        turns: Turns = Turns::Regular,
        /// `off`: it is silent until an event switches it on.
        starts: Switch = Switch::On,
    }
}

impl Rules for Interferer {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        if self.on.is_some() != self.off.is_some() {
            let (has, lacks) = if self.off.is_none() { ("on", "off") } else { ("off", "on") };
            let other = "or leave both out for an interferer that always radiates";
            return Err(format!("has `{has}` without `{lacks}`; add `{lacks}`, {other}"));
        }
        if self.turns == Turns::Exponential && self.on.is_none() {
            return Err("has `turns = \"exponential\"` without their mean lengths; add `on` and `off`".into());
        }
        Ok(())
    }
}

impl Interferer {
    fn planned(&self) -> InterfererSpec {
        let duty = match (self.on, self.off, self.turns) {
            (Some(on), Some(off), Turns::Regular) => DutySpec::Regular { on, off },
            (Some(on), Some(off), Turns::Exponential) => DutySpec::Exponential { on, off },
            _ => DutySpec::Constant,
        };
        InterfererSpec {
            name: self.name.clone(),
            position: position(self.position),
            power_mdbm: self.power,
            duty,
            on: self.starts == Switch::On,
        }
    }
}

fn position([x, y]: [u64; 2]) -> Position {
    Position { x_mm: x as i64, y_mm: y as i64 }
}

fields! {
    /// Random waypoint: to a point of the area, a pause, and on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Mobility with rules {
        /// Lowest and highest speed.
        speed: [u64; 2] as Pair<Speed>,
        /// Pause at each waypoint.
        pause: Duration as Time = Duration::ZERO,
        /// Time for which path losses are treated as constant.
        refresh: Duration as PositiveShortTime [1_000..] = Duration::from_ms(100),
    }
}

impl Rules for Mobility {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        let [lowest, highest] = self.speed;
        if lowest == 0 || lowest > highest {
            return Err("has a `speed` that is not a lowest speed above 0 m/s and a highest speed, in this order, such as \
                        [\"0.5 m/s\", \"1.5 m/s\"]"
                .into());
        }
        Ok(())
    }
}

fields! {
    /// A radio channel that joins all hosts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Radio with rules {
        /// Rates and times of the standard.
        standard: Standard = Standard::B11,
        /// Access, retries and queues.
        mac: MacSpec as Flat<MacSpec>,
        /// Rate of acknowledgements; the standard's control rate when left out (ns-3: the data rate).
        ack_rate: Option<BitRate> as Maybe<DataRate>,
        /// Where stations are placed and move.
        area: (u64, u64) as Area = (150_000, 150_000),
        /// How they are placed.
        placement: Placed = Placed::Random,
        /// Distance between neighbouring stations on a grid.
        spacing: u64 as Length = 10_000,
        /// Position of each host, in the order of the plan (the broker first); instead of the above.
        positions: Option<Vec<[u64; 2]>> as Maybe<List<Pair<Length>>>,
        /// How they move.
        mobility: Option<Mobility>,
        /// Errors in bursts.
        channel: Option<ChannelSpec>,
        /// What stands between stations; left out for nothing.
        shadowing: Option<ShadowingSpec>,
        /// What reflections make of powers; left out for nothing.
        fading: Option<FadingSpec> as Maybe<AsFading>,
        /// How noise and interference spoil a frame: `threshold`, where the ratio falls below `snir_data`; `snr`, by the bit
        /// errors of the modulation at that ratio, so that long frames are lost sooner.
        errors: ErrorModel = ErrorModel::Threshold,
        /// What else is on the air.
        interferers: Vec<Interferer> [..=1_000] = Vec::new(),
        /// 2 is free space.
        path_loss_exponent: u32 as Thousandths [1_000..=6_000] = 3_000,
        /// Radiated power.
        transmit_power: i32 as Power<i32> = 20_000,
        /// Receiver sensitivity: the weakest frame that is received.
        sensitivity: i32 as Power<i32> = -91_000,
        /// Noise floor.
        noise: i32 as Power<i32> = -95_000,
        /// Signal to noise and interference ratio that data frames need.
        snir_data: Option<i32> as Maybe<Gain<i32>>,
        /// Capture threshold: a frame that is stronger by this captures the receiver.
        capture: Option<i32> as Maybe<Gain<i32>> = Some(10_000),
        /// Power that radios draw.
        energy: Energy = Energy::Wavelan,
        /// What a radio draws while all of its host's clients sleep (`mqtt_sn.sleep`) and it has nothing to do; that of
        /// `energy` when left out.
        sleep_current: Option<u32> as Maybe<Current<u32>>,
        /// The broker's station is an access point, and the trunk leads from it to the broker.
        access_point: bool = false,
    }
}

impl Rules for Radio {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        if self.errors.is_threshold() {
            return Ok(());
        }
        if self.snir_data.is_some() {
            return Err(
                "has `snir_data`, which goes with `errors = \"threshold\"`; leave one of them out".into()
            );
        }
        let rates = self.phy().modulation.rates_bit_s();
        if let Some(rate) = self.ack_rate.map(BitRate::as_bit_s).filter(|rate| !rates.contains(rate)) {
            let mbit_s = |rate: u64| plain(rate as f64 / 1e6, 6);
            let known = rates.iter().map(|rate| mbit_s(*rate)).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "has `errors = \"snr\"` and an `ack_rate` of {} Mbit/s, for which the standard has no modulation; use one \
                 of {known} Mbit/s",
                mbit_s(rate)
            ));
        }
        Ok(())
    }
}

impl Radio {
    fn phy(&self) -> PhySpec {
        let preset = PhySpec::preset(self.standard.word()).expect("each standard has a preset");
        PhySpec { ack_rate_bit_s: self.ack_rate, ..preset }
    }

    /// The medium as the plan has it, for so many stations.
    pub fn planned(&self, stations: u32) -> MediumSpec {
        let preset = RadioSpec::preset(self.standard.word()).expect("each standard has a preset");
        let snir_data_mdb = self.snir_data.filter(|ratio| *ratio != 0).unwrap_or(preset.snir_data_mdb);
        let energy = EnergyProfile::preset(self.energy.word()).expect("each radio has a preset");
        MediumSpec {
            name: MEDIUM.into(),
            phy: self.phy(),
            mac: self.mac.clone(),
            radio: RadioSpec {
                exponent_milli: self.path_loss_exponent,
                transmit_power_mdbm: self.transmit_power,
                sensitivity_mdbm: self.sensitivity,
                noise_mdbm: self.noise,
                snir_control_mdb: match self.snir_data {
                    Some(data) if data != 0 => preset.snir_control_mdb.min(data),
                    _ => preset.snir_control_mdb,
                },
                snir_data_mdb,
                capture_mdb: self.capture,
                interference_floor_mdbm: preset.interference_floor_mdbm.min(self.noise - BELOW_NOISE_MDB),
                shadowing: self.shadowing.clone(),
                fading: self.fading.clone(),
                errors: self.errors,
                ..preset
            },
            channel: self.channel.clone(),
            interferers: self.interferers.iter().map(Interferer::planned).collect(),
            placement: self.stations(stations),
            mobility: self.mobility.map_or(MobilitySpec::None, |mobility| self.walk(mobility)),
            energy: EnergyProfile { sleep_na: self.sleep_current.unwrap_or(energy.sleep_na), ..energy },
        }
    }

    fn stations(&self, stations: u32) -> PlacementSpec {
        if let Some(positions) = &self.positions {
            return PlacementSpec::Explicit { positions: positions.iter().copied().map(position).collect() };
        }
        match self.placement {
            Placed::Grid => PlacementSpec::Grid { stations, spacing_mm: self.spacing },
            Placed::Random => {
                PlacementSpec::Random { stations, width_mm: self.area.0, height_mm: self.area.1 }
            }
        }
    }

    fn walk(&self, mobility: Mobility) -> MobilitySpec {
        MobilitySpec::RandomWaypoint {
            width_mm: self.area.0,
            height_mm: self.area.1,
            speed_min_mm_s: mobility.speed[0],
            speed_max_mm_s: mobility.speed[1],
            pause: mobility.pause,
            refresh: mobility.refresh,
        }
    }

    /// What varies on the channel, as `check` tells it; empty where nothing does.
    pub fn words(&self) -> String {
        let mut told = Vec::new();
        if let Some(shadowing) = &self.shadowing {
            told.push(format!("shadowing of {} dB", plain(f64::from(shadowing.sigma_mdb) / 1000.0, 6)));
        }
        if let Some(fading) = &self.fading {
            let law = match fading {
                FadingSpec::Rayleigh { .. } => "Rayleigh fading".into(),
                FadingSpec::Nakagami { m_milli, .. } => {
                    format!("Nakagami fading (m = {})", plain(f64::from(*m_milli) / 1000.0, 6))
                }
            };
            told.push(format!("{law}, anew every {} ms", plain(fading.coherence().as_ns() as f64 / 1e6, 6)));
        }
        if !self.errors.is_threshold() {
            told.push("errors by signal to noise".into());
        }
        if !self.interferers.is_empty() {
            let names: Vec<_> =
                self.interferers.iter().take(3).map(|interferer| interferer.name.as_str()).collect();
            let more = if self.interferers.len() > 3 { ", ..." } else { "" };
            told.push(format!("interferers {}{more}", names.join(", ")));
        }
        told.join("; ")
    }
}
