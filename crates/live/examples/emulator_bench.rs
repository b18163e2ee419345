//! The emulator against its configuration, as a table: `cargo run --release -p mqttlab-live --example emulator_bench`.
//!
//! Rates are judged by the kernel's receive stamps of datagrams that are offered at 1.3 times the rate; delays by
//! the time from before the sender's system call to the receive stamp; loss by a binomial bound.
//! Run it on a machine that does nothing else, as root (or with `ulimit -r 10`) for real-time priority. A frame that does not
//! come is counted and the bench goes on; one that takes longer than [`ENDS_AFTER`] in all says so and ends with 1.

use std::io;
use std::thread;
use std::time::{Duration as Wall, Instant as WallInstant};

use mqttlab_live::network::calibration::{Bench, compensation, constant_delay, receive};
use mqttlab_net::{Discipline, LinkSpec, LossSpec, QueueSpec};
use mqttlab_plan::PortKind;
use mqttlab_system::priority::{Priority, lock_memory, real_time_permitted};
use mqttlab_units::{BitRate, Bytes, Dice, Duration, Ratio, Seed};

/// Longer than a bench on a busy machine takes.
const ENDS_AFTER: Wall = Wall::from_secs(600);

fn main() -> io::Result<()> {
    thread::spawn(|| {
        thread::sleep(ENDS_AFTER);
        eprintln!("the bench has not ended within {} s", ENDS_AFTER.as_secs());
        std::process::exit(1);
    });
    let priority = match real_time_permitted() {
        Ok(()) => Priority::EMULATOR,
        Err(error) => {
            println!("No real-time priority ({error}); the figures say what that costs.\n");
            Priority::Normal
        }
    };
    let _ = lock_memory();
    let compensation = compensation(PortKind::Auto, priority)?;
    println!("Latency compensation, calibrated: {compensation}\n");
    delays(priority, compensation)?;
    rates(priority)?;
    losses(priority)
}

fn delays(priority: Priority, compensation: Duration) -> io::Result<()> {
    println!(
        "| one-way delay | samples | not arrived | error p50 | p99 | max | emulator lateness p50 | p99 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for configured in [1, 5, 50].map(Duration::from_ms) {
        let bench = Bench::build(constant_delay(configured), PortKind::Auto, priority, compensation)?;
        let mut gaps = Seed(1).dice();
        bench.receiver.set_read_timeout(Some(ARRIVES_WITHIN))?;
        let (mut errors, mut missing) = (Vec::new(), 0);
        for sample in 0..1050 {
            thread::sleep(gap(&mut gaps));
            let Some(delay) = arrived(bench.one_way_delay(&[0; 64]))? else {
                missing += 1;
                if missing > MISSING_MAX {
                    break;
                }
                continue;
            };
            if sample >= 50 {
                errors.push((delay.as_ns() as f64 - configured.as_ns() as f64) / 1e3);
            }
        }
        let late = bench.counters().lateness.snapshot();
        let us = |percent| late.percentile(percent).unwrap_or(Duration::ZERO).as_ns() as f64 / 1e3;
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| {
            errors.get((errors.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
        };
        println!(
            "| {configured} | {} | {missing} | {:+.1} µs | {:+.1} µs | {:+.1} µs | {:.1} µs | {:.1} µs | {:.1} µs |",
            errors.len(),
            at(0.5),
            at(0.99),
            at(1.0),
            us(50.0),
            us(99.0),
            late.max().as_ns() as f64 / 1e3,
        );
        bench.stop()?;
    }
    println!();
    Ok(())
}

fn rates(priority: Priority) -> io::Result<()> {
    println!("| rate | frames | measured | error | inter-arrival error p50 | p99 |");
    println!("|---|---|---|---|---|---|");
    for bit_s in [9_600, 16_000, 250_000, 2_000_000, 100_000_000] {
        let rate = BitRate::from_bit_s(bit_s).expect("a rate above zero");
        let ip_bytes = if bit_s < 100_000 { 200 } else { 1500 };
        let frame = rate.serialization_time(Bytes(ip_bytes));
        let count = ((10_000_000_000 / frame.as_ns()) as usize).clamp(60, 20_000);
        let queue = QueueSpec {
            limit_packets: Some(50),
            limit_bytes: None,
            counts_delay_line: false,
            discipline: Discipline::TailDrop,
        };
        let link = LinkSpec { rate_bit_s: Some(rate), queue, ..constant_delay(Duration::ZERO) };
        let stamps = saturate(link, priority, ip_bytes as usize - 28, frame, count)?;
        if stamps.len() < 2 {
            println!("| {rate} | {} | nothing arrived | – | – | – |", stamps.len());
            continue;
        }
        let gaps: Vec<f64> = stamps.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect();
        let mut errors: Vec<f64> = gaps.iter().map(|gap| gap - frame.as_ns() as f64 / 1e3).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
        // The first and the last stamp are each off by some tens of microseconds; over the whole train that is
        // little.
        let span = (stamps[stamps.len() - 1] - stamps[0]) as f64;
        let measured = (stamps.len() - 1) as f64 * (ip_bytes * 8) as f64 / span * 1e9;
        let error = 100.0 * (measured / bit_s as f64 - 1.0);
        println!(
            "| {rate} | {} | {:.1} bit/s | {error:+.4} % | {:+.1} µs | {:+.1} µs |",
            stamps.len(),
            measured,
            at(0.5),
            at(0.99),
        );
    }
    println!();
    Ok(())
}

/// What came of waiting for a datagram; `None` where it did not arrive in time.
fn arrived<T>(waited: io::Result<T>) -> io::Result<Option<T>> {
    match waited {
        Ok(what) => Ok(Some(what)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Offers 1.3 times the rate until `count` datagrams have arrived, or no more come; their receive stamps.
fn saturate(
    link: LinkSpec,
    priority: Priority,
    payload: usize,
    frame: Duration,
    count: usize,
) -> io::Result<Vec<u64>> {
    let bench = Bench::build(link, PortKind::Auto, priority, Duration::ZERO)?;
    let sender = bench.sender.try_clone()?;
    let interval = Wall::from_nanos(frame.as_ns() * 10 / 13);
    let total = count * 14 / 10 + 60;
    let offering = thread::spawn(move || {
        let begin = WallInstant::now();
        for number in 0..total {
            let due = begin + interval * number as u32;
            thread::sleep(due.saturating_duration_since(WallInstant::now()));
            let _ = sender.send(&vec![0; payload]);
        }
    });
    let mut buffer = [0; 2048];
    bench.receiver.set_read_timeout(Some(ARRIVES_WITHIN + Wall::from_nanos(frame.as_ns())))?;
    let mut stamps = Vec::with_capacity(count);
    while stamps.len() < count {
        let Some((_, at)) = arrived(receive(&bench.receiver, &mut buffer))? else { break };
        stamps.push(at);
    }
    offering.join().expect("the sender does not panic");
    bench.stop()?;
    Ok(stamps)
}

fn losses(priority: Priority) -> io::Result<()> {
    println!("| loss | frames | lost | share | five standard deviations |");
    println!("|---|---|---|---|---|");
    for (numerator, denominator) in [(1, 1000), (1, 100), (1, 10)] {
        let probability = Ratio::new(numerator, denominator).expect("a probability");
        let link = LinkSpec { loss: LossSpec::Bernoulli { probability }, ..constant_delay(Duration::ZERO) };
        let bench = Bench::build(link, PortKind::Auto, priority, Duration::ZERO)?;
        bench.receiver.set_read_timeout(Some(Wall::from_millis(300)))?;
        let (sender, frames) = (bench.sender.try_clone()?, 20_000u32);
        let sending = thread::spawn(move || {
            for number in 0..frames {
                let _ = sender.send(&[0; 64]);
                if number % 20 == 0 {
                    thread::sleep(Wall::from_millis(1));
                }
            }
        });
        let mut arrived = 0u32;
        while receive(&bench.receiver, &mut [0; 256]).is_ok() {
            arrived += 1;
        }
        sending.join().expect("the sender does not panic");
        bench.stop()?;
        let (share, p) = (f64::from(frames - arrived) / f64::from(frames), probability.as_f64());
        let bound = 5.0 * (p * (1.0 - p) / f64::from(frames)).sqrt();
        let verdict = if (share - p).abs() <= bound { "within" } else { "OUTSIDE" };
        println!(
            "| {:.1} % | {frames} | {} | {:.3} % | {verdict} ±{:.3} % |",
            100.0 * p,
            frames - arrived,
            100.0 * share,
            100.0 * bound,
        );
    }
    Ok(())
}

/// A stall of the machine is shorter.
const ARRIVES_WITHIN: Wall = Wall::from_secs(2);
/// With more than these the path is not there.
const MISSING_MAX: u32 = 20;

/// About 4 ms, never the same.
fn gap(dice: &mut Dice) -> Wall {
    Wall::from_nanos(2_000_000 + dice.below(4_000_000))
}
