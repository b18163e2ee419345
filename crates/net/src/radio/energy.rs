//! What radios draw.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::air_time::AirTime;

/// A radio's supply and currents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnergyProfile {
    /// What it is.
    pub name: String,
    /// Supply voltage in mV.
    pub voltage_mv: u32,
    /// Current while it transmits, in µA.
    pub transmit_ua: u32,
    /// Current while it receives, in µA.
    pub receive_ua: u32,
    /// Current while it listens and hears nothing, in µA.
    pub idle_ua: u32,
    /// Current while it is off because all of its host's clients sleep, in nA.
    #[serde(default)]
    pub sleep_na: u32,
}

impl EnergyProfile {
    /// The energy in joules of these times.
    pub fn energy_j(&self, time: &AirTime) -> f64 {
        let charge_uc = f64::from(self.transmit_ua) * time.transmit.as_s_f64()
            + f64::from(self.receive_ua) * time.receive.as_s_f64()
            + f64::from(self.idle_ua) * time.idle.as_s_f64()
            + f64::from(self.sleep_na) * 1e-3 * time.sleep.as_s_f64();
        charge_uc * 1e-6 * f64::from(self.voltage_mv) * 1e-3
    }
}
