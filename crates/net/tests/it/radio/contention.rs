//! Many stations in reach of each other, with always a frame to send.

use super::*;

/// What a second of saturated stations comes to: all send to station 0.
struct Saturated {
    throughput_bit_s: f64,
    /// Share of the attempts that failed.
    failed: f64,
}

fn saturate(preset: &str, stations: u32, bytes: u64, rts: bool, simulated: Duration) -> Saturated {
    let mut spec = line(preset, &[]);
    // All within 14 m, so that nobody is captured.
    spec.placement = PlacementSpec::Random { stations: stations + 1, width_mm: 10_000, height_mm: 10_000 };
    spec.radio.capture_mdb = None;
    spec.radio.snir_preamble_mdb = 60_000;
    spec.radio.snir_control_mdb = 60_000;
    spec.radio.snir_data_mdb = 60_000;
    spec.radio.noise_mdbm = -130_000;
    spec.mac.short_retry_limit = 1_000;
    spec.mac.rts_threshold_bytes = rts.then_some(0);
    let mut medium = medium(spec);
    for station in 1..=stations as usize {
        for frame in 0..2 {
            send(&mut medium, us(0), frame, station, 0, bytes);
        }
    }
    let end = Instant::ZERO + simulated;
    let mut delivered = 0;
    while let Some(deadline) = medium.next_deadline().filter(|deadline| *deadline <= end) {
        medium.tick(deadline);
        while let Some(output) = medium.poll() {
            let Output::Finished(finished) = output else { continue };
            delivered += u64::from(is_delivered(&finished));
            send(&mut medium, deadline, 0, finished.from, 0, bytes);
        }
    }
    let counters: Vec<_> = (1..=stations as usize).map(|station| medium.counters(station)).collect();
    let failures: u64 = counters.iter().map(|station| station.failures).sum();
    Saturated {
        throughput_bit_s: (delivered * bytes * 8) as f64 / simulated.as_s_f64(),
        failed: failures as f64 / (failures + delivered) as f64,
    }
}

/// Bianchi, Performance Analysis of the IEEE 802.11 DCF, IEEE JSAC 18 (2000): the fixed point of his equations 7 and
/// 9, and the throughput of his equation 13. `success_us` and `collision_us` are his T_s and T_c.
fn bianchi(stations: u32, bits: f64, success_us: f64, collision_us: f64, slot_us: f64) -> Saturated {
    let (window, stages, others) = (32.0, 5, stations as i32 - 1);
    let attempt = |p: f64| {
        let backoff = (1.0 - 2.0 * p) * (window + 1.0) + p * window * (1.0 - (2.0 * p).powi(stages));
        2.0 * (1.0 - 2.0 * p) / backoff
    };
    // p - (1 - (1 - tau(p))^(n-1)) grows with p: bisection. 1/2 is a removable pole.
    let (mut low, mut high) = (0.0, 0.999_999);
    for _ in 0..100 {
        let p = (low + high) / 2.0 + 1e-12;
        if p < 1.0 - (1.0 - attempt(p)).powi(others) { low = p } else { high = p }
    }
    let tau = attempt(low);
    let busy = 1.0 - (1.0 - tau).powi(others + 1);
    let success = f64::from(stations) * tau * (1.0 - tau).powi(others) / busy;
    let mean_us = (1.0 - busy) * slot_us + busy * (success * success_us + (1.0 - success) * collision_us);
    Saturated { throughput_bit_s: busy * success * bits / mean_us * 1e6, failed: low }
}

/// 10 s of simulation, short frames and long, with and without RTS; microseconds of the frames by hand.
fn agrees_with_bianchi(preset: &str, bytes: u64, data_us: f64, ack_us: f64, rts: Option<(f64, f64)>) {
    // Everybody but the colliding stations waits for EIFS after a collision: 10 + 304 + 50.
    let (extra_us, first_us) = rts.map_or((0.0, data_us), |(rts, cts)| (rts + cts + 20.0, rts));
    let success_us = extra_us + data_us + 10.0 + ack_us + 50.0;
    for stations in [1, 2, 5, 20] {
        let model = bianchi(stations, bytes as f64 * 8.0, success_us, first_us + 364.0, 20.0);
        let got = saturate(preset, stations, bytes, rts.is_some(), Duration::from_s(10));
        let off = got.throughput_bit_s / model.throughput_bit_s - 1.0;
        assert!(off.abs() < 0.03, "{preset}, {stations} stations, {bytes} B: {:.2} %", off * 100.0);
        assert!((got.failed - model.failed).abs() < 0.03, "{stations}: {} and {}", got.failed, model.failed);
    }
}

#[test]
fn saturation_throughput_at_2_mbit_s_is_bianchis() {
    agrees_with_bianchi("dsss-2", 200, 192.0 + 944.0, 304.0, None);
    agrees_with_bianchi("dsss-2", 1000, 192.0 + 4144.0, 304.0, None);
}

#[test]
fn saturation_throughput_at_11_mbit_s_is_bianchis() {
    agrees_with_bianchi("b-11", 200, 192.0 + 172.0, 248.0, None);
    agrees_with_bianchi("b-11", 1000, 192.0 + 754.0, 248.0, None);
}

#[test]
fn saturation_throughput_with_rts_is_bianchis() {
    agrees_with_bianchi("dsss-2", 1000, 192.0 + 4144.0, 304.0, Some((352.0, 304.0)));
    agrees_with_bianchi("b-11", 1000, 192.0 + 754.0, 248.0, Some((272.0, 248.0)));
}
