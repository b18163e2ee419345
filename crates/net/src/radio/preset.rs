//! Media by name (`dsss-2`, `b-11`, `g-54`), and what radios draw.

use mqttlab_units::{BitRate, Duration};

use super::energy::EnergyProfile;
use super::spec::{ErrorModel, MacSpec, Modulation, PhySpec, RadioSpec};

/// The names that [`PhySpec::preset`] and [`RadioSpec::preset`] know.
pub const PRESETS: [&str; 3] = ["dsss-2", "b-11", "g-54"];

impl PhySpec {
    /// A physical layer by name.
    ///
    /// - `dsss-2`: IEEE 802.11-1997 DSSS, data at 2 Mbit/s, ACK, RTS and CTS at 1 Mbit/s, long preamble.
    /// - `b-11`: 802.11b, data at 11 Mbit/s, ACK, RTS and CTS at 2 Mbit/s (the basic rates being 1 and 2), long
    ///   preamble.
    /// - `g-54`: 802.11g among its own kind, data at 54 Mbit/s, the others at 24 Mbit/s, short slots.
    pub fn preset(name: &str) -> Option<PhySpec> {
        match name {
            "dsss-2" => Some(dsss(2_000_000, 1_000_000)),
            "b-11" => Some(dsss(11_000_000, 2_000_000)),
            "g-54" => Some(PhySpec {
                modulation: Modulation::ErpOfdm,
                data_rate_bit_s: rate(54_000_000),
                control_rate_bit_s: rate(24_000_000),
                ack_rate_bit_s: None,
                preamble: Duration::from_us(20),
                slot: Duration::from_us(9),
                sifs: Duration::from_us(10),
                cw_min_slots: 15,
                cw_max_slots: 1023,
            }),
            _ => None,
        }
    }
}

/// Times of IEEE 802.11-2016 tables 15-5 and 16-4.
fn dsss(data_bit_s: u64, control_bit_s: u64) -> PhySpec {
    PhySpec {
        modulation: Modulation::Dsss,
        data_rate_bit_s: rate(data_bit_s),
        control_rate_bit_s: rate(control_bit_s),
        ack_rate_bit_s: None,
        preamble: Duration::from_us(192),
        slot: Duration::from_us(20),
        sifs: Duration::from_us(10),
        cw_min_slots: 31,
        cw_max_slots: 1023,
    }
}

fn rate(bit_s: u64) -> BitRate {
    BitRate::from_bit_s(bit_s).expect("a preset has a rate")
}

impl RadioSpec {
    /// Levels that go with [`PhySpec::preset`]: 100 mW at 2.4 GHz, exponent 3, a noise floor of -95 dBm (22 MHz of
    /// thermal noise and a noise figure of 6 dB). The ratios of DSSS are those of the sensitivities in the data sheet
    /// of Cisco's Aironet 350 (-91 dBm at 2 Mbit/s, -85 dBm at 11 Mbit/s) to this floor, and at least 4 dB, which a
    /// preamble is taken to need; those of OFDM follow from the sensitivities that the standard asks for (-74 dBm at
    /// 24 Mbit/s, -65 dBm at 54 Mbit/s) with its 15 dB for noise figure and implementation.
    pub fn preset(name: &str) -> Option<RadioSpec> {
        let (sensitivity, preamble, control, data, carrier_sense) = match name {
            "dsss-2" => (-91_000, 4_000, 4_000, 4_000, -85_000),
            "b-11" => (-91_000, 4_000, 4_000, 10_000, -85_000),
            "g-54" => (-91_000, 4_000, 12_000, 21_000, -62_000),
            _ => return None,
        };
        Some(RadioSpec {
            frequency_hz: 2_400_000_000,
            exponent_milli: 3_000,
            transmit_power_mdbm: 20_000,
            sensitivity_mdbm: sensitivity,
            noise_mdbm: -95_000,
            snir_preamble_mdb: preamble,
            snir_control_mdb: control,
            snir_data_mdb: data,
            capture_mdb: Some(10_000),
            carrier_sense_mdbm: carrier_sense,
            interference_floor_mdbm: -105_000,
            shadowing: None,
            fading: None,
            errors: ErrorModel::Threshold,
        })
    }
}

impl MacSpec {
    /// The standard's retry limits (dot11ShortRetryLimit 7, dot11LongRetryLimit 4), no RTS, and a queue of 50 frames.
    pub fn standard() -> MacSpec {
        MacSpec {
            rts_threshold_bytes: None,
            short_retry_limit: 7,
            long_retry_limit: 4,
            queue_limit_frames: Some(50),
            difs_from_queueing: false,
        }
    }
}

/// The names that [`EnergyProfile::preset`] knows.
pub const ENERGY_PRESETS: [&str; 4] = ["mica2", "esp8266", "esp32", "wavelan"];

impl EnergyProfile {
    /// A radio by name. A radio that listens for frames has its receiver on, so where a source has no figure for
    /// idle listening, it is that of receiving. A chip that sleeps keeps what its program knows (light sleep).
    ///
    /// - `mica2`: the radio of a Mica2 mote (CC1000 at 0 dBm) at 3 V, as measured for PowerTOSSIM (Shnayder et al.,
    ///   SenSys 2004, and the Mica2 power benchmark that goes with it): 8.47 mA to send, 7.03 mA to receive. Without
    ///   the processor's 8 mA. Asleep 0.2 µA (CC1000 datasheet, power down).
    /// - `esp8266`: Espressif, ESP8266EX datasheet, RF power consumption: 170 mA to send 802.11b at 11 Mbit/s and
    ///   17 dBm, 50 mA to receive 802.11b; 3.3 V; the whole chip. Asleep 0.9 mA (light sleep).
    /// - `esp32`: Espressif, ESP32 datasheet, RF power consumption: 240 mA to send 802.11b at 19.5 dBm, 95 mA (the
    ///   lower end of 95 to 100) to receive; 3.3 V; the whole chip. Asleep 0.8 mA (light sleep).
    /// - `wavelan`: a Lucent WaveLAN 802.11 card at 2 Mbit/s, as Feeney and Nilsson measured it (INFOCOM 2001,
    ///   table 1): 280 mA to send, 204 mA to receive, 178 mA idle, 14 mA asleep, at 4.74 V.
    pub fn preset(name: &str) -> Option<EnergyProfile> {
        let (voltage_mv, transmit_ua, receive_ua, idle_ua, sleep_na) = match name {
            "mica2" => (3_000, 8_470, 7_030, 7_030, 200),
            "esp8266" => (3_300, 170_000, 50_000, 50_000, 900_000),
            "esp32" => (3_300, 240_000, 95_000, 95_000, 800_000),
            "wavelan" => (4_740, 280_000, 204_000, 178_000, 14_000_000),
            _ => return None,
        };
        Some(EnergyProfile { name: name.into(), voltage_mv, transmit_ua, receive_ua, idle_ua, sleep_na })
    }
}
