//! What the model of a path says a probe shall find, from its links' parameters alone.

use mqttlab_net::{BitErrors, BurstLoss, DelayLaw, LinkSpec, LossSpec};
use serde::Serialize;

/// A path as its model has it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Expected {
    /// The slowest link's rate; `None` where no link takes time to send.
    pub rate_bit_s: Option<u64>,
    /// Mean of a probe's delay: propagation, and sending it on every link.
    pub delay_mean_ns: f64,
    /// Standard deviation of that.
    pub delay_sd_ns: f64,
    /// Whether frames may not overtake, which lengthens delays that vary.
    pub keeps_order: bool,
    /// Part of the probes that do not arrive whole, in percent.
    pub loss_percent: f64,
    /// How much more widely than independent ones the losses of bursts scatter: a factor on the variance.
    pub loss_inflation: f64,
    /// Part of the probes that arrive twice, in percent.
    pub duplicates_percent: f64,
}

/// Of links in a row, for IP packets of this size sent this far apart.
pub fn expected(links: &[LinkSpec], ip_bytes: u64) -> Expected {
    let mut path = Expected { keeps_order: true, loss_inflation: 1.0, ..Expected::default() };
    let (mut arrives, mut twice, mut variance) = (1.0, 1.0, 0.0);
    for link in links {
        let bits = frame_bytes(link, ip_bytes) * 8;
        if let Some(rate) = link.rate_bit_s.map(u64::from) {
            path.rate_bit_s = Some(path.rate_bit_s.map_or(rate, |slowest| slowest.min(rate)));
            path.delay_mean_ns += bits as f64 / rate as f64 * 1e9;
        }
        path.delay_mean_ns += link.delay.mean.as_ns() as f64;
        variance += delay_variance(link);
        path.keeps_order &= link.delay.keep_order && link.reordering.probability.as_f64() == 0.0;
        let (loss, inflation) = loss(&link.loss, bits);
        arrives *= (1.0 - loss) * (1.0 - link.corruption.as_f64());
        path.loss_inflation = path.loss_inflation.max(inflation);
        twice *= 1.0 - link.duplication.as_f64();
    }
    path.delay_sd_ns = variance.sqrt();
    path.loss_percent = 100.0 * (1.0 - arrives);
    path.duplicates_percent = 100.0 * (1.0 - twice);
    path
}

/// What a packet of this size takes of a link.
pub fn frame_bytes(link: &LinkSpec, ip_bytes: u64) -> u64 {
    (ip_bytes + u64::from(link.overhead_bytes)).max(u64::from(link.minimum_frame_bytes))
}

fn delay_variance(link: &LinkSpec) -> f64 {
    let jitter = link.delay.jitter.as_ns() as f64;
    match link.delay.law {
        DelayLaw::Constant => 0.0,
        // The jitter is half the width.
        DelayLaw::Uniform => jitter * jitter / 3.0,
        // Mixing a quarter of one and three quarters of another variable that are drawn together.
        DelayLaw::Normal | DelayLaw::Pareto | DelayLaw::Paretonormal => jitter * jitter,
    }
}

/// Chance of a frame's loss in the long run, and how much bursts widen its scatter: (1 + ρ) / (1 - ρ), where ρ is the
/// correlation of the channel's state from one frame to the next.
fn loss(spec: &LossSpec, bits: u64) -> (f64, f64) {
    let inflated =
        |correlation: f64| (1.0 + correlation.max(0.0)) / (1.0 - correlation.clamp(0.0, 0.999_999));
    match *spec {
        LossSpec::None => (0.0, 1.0),
        LossSpec::Bernoulli { probability } => (probability.as_f64(), 1.0),
        LossSpec::GilbertElliott(BurstLoss { good_to_bad, bad_to_good, loss_good, loss_bad }) => {
            let (leave, back) = (good_to_bad.as_f64(), bad_to_good.as_f64());
            let bad = if leave + back > 0.0 { leave / (leave + back) } else { 0.0 };
            let loss = (1.0 - bad) * loss_good.as_f64() + bad * loss_bad.as_f64();
            (loss, inflated(1.0 - leave - back))
        }
        LossSpec::BitGilbertElliott(BitErrors { good_to_bad, bad_to_bad, error_good, error_bad }) => {
            let (leave, back) = (good_to_bad.as_f64(), 1.0 - bad_to_bad.as_f64());
            let bad = if leave + back > 0.0 { leave / (leave + back) } else { 0.0 };
            // The chance of being in each state with every bit so far unharmed.
            let mut whole = [1.0 - bad, bad];
            for _ in 0..bits {
                let [good, bad] =
                    [whole[0] * (1.0 - error_good.as_f64()), whole[1] * (1.0 - error_bad.as_f64())];
                whole = [good * (1.0 - leave) + bad * back, good * leave + bad * (1.0 - back)];
            }
            (
                1.0 - whole[0] - whole[1],
                inflated((1.0 - leave - back).max(0.0).powi(bits.min(i32::MAX as u64) as i32)),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_units::Duration;

    use super::*;
    use crate::network::calibration::constant_delay;

    fn link(change: serde_json::Value) -> LinkSpec {
        let mut value = serde_json::to_value(constant_delay(Duration::from_ms(10))).unwrap();
        for (name, field) in change.as_object().unwrap() {
            value[name] = field.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn delays_add_with_the_time_to_send_and_the_slowest_link_is_the_rate() {
        let slow = link(serde_json::json!({ "rate_bit_s": 1_000_000, "overhead_bytes": 8 }));
        let fast = link(serde_json::json!({ "rate_bit_s": 100_000_000, "minimum_frame_bytes": 1000 }));
        let path = expected(&[slow, fast], 92);
        assert_eq!(path.rate_bit_s, Some(1_000_000));
        // 10 ms twice, 800 bits at 1 Mbit/s, 8,000 bits at 100 Mbit/s.
        assert!((path.delay_mean_ns - 20_880_000.0).abs() < 1.0, "{}", path.delay_mean_ns);
    }

    #[test]
    fn losses_of_links_in_a_row_do_not_simply_add() {
        let lossy = |percent: u64| {
            link(serde_json::json!({ "loss": { "kind": "bernoulli", "probability": [percent, 100] } }))
        };
        let path = expected(&[lossy(10), lossy(20)], 92);
        assert!((path.loss_percent - 28.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_channel_loses_by_the_share_of_its_bad_state_and_scatters_more() {
        let bursts = link(serde_json::json!({ "loss": {
            "kind": "gilbert_elliott", "good_to_bad": [1, 100], "bad_to_good": [19, 100],
            "loss_good": [0, 1], "loss_bad": [1, 1],
        } }));
        let path = expected(&[bursts], 92);
        assert!((path.loss_percent - 5.0).abs() < 1e-9);
        assert!((path.loss_inflation - 9.0).abs() < 1e-9);
    }

    #[test]
    fn bit_errors_without_memory_are_those_of_independent_bits() {
        let bits = link(serde_json::json!({ "loss": {
            "kind": "bit_gilbert_elliott", "good_to_bad": [0, 1], "bad_to_bad": [0, 1],
            "error_good": [1, 10_000], "error_bad": [1, 10_000],
        } }));
        let path = expected(&[bits], 100);
        let independent = 100.0 * (1.0 - 0.9999f64.powi(800));
        assert!((path.loss_percent - independent).abs() < 1e-9);
    }
}
