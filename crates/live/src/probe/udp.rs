//! Datagrams with numbers: sent at a pace, for delay and loss, and back to back, for the rate.
//!
//! Sender and receiver read one clock, so that one-way delays are exact: from before the sender's system call to the
//! receiver's kernel.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time;

use mqttlab_system::clock::unix_ns;
use mqttlab_units::{Duration, Instant};
use serde::Serialize;

use crate::clock::Clock;
use crate::network::calibration::receive;

/// Bytes of IP and UDP headers.
pub const HEADER_BYTES: u64 = 28;
/// Payload of a paced probe.
pub const PROBE_BYTES: usize = 64;

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProbeArrival {
    number: u64,
    at_ns: u64,
}

/// What became of paced probes in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Paced {
    /// Probes sent.
    pub sent: u64,
    /// Probes of which a copy arrived.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Probes that arrived after one that was sent later.
    pub reordered: u64,
    /// Mean of the one-way delay.
    pub delay_mean_ns: f64,
    /// Its standard deviation.
    pub delay_sd_ns: f64,
    /// Its least value.
    pub delay_min_ns: u64,
    /// Its median.
    pub delay_p50_ns: u64,
    /// Its 99th percentile.
    pub delay_p99_ns: u64,
    /// Its largest value.
    pub delay_max_ns: u64,
}

/// What trains of datagrams, sent back to back, found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trains {
    /// Trains of which two datagrams or more arrived.
    pub trains: u64,
    /// Frames between the first and the last of each that arrived.
    pub frames: u64,
    /// Their bits, as they are on the link, over the time between.
    pub rate_bit_s: f64,
}

/// Sends `count` probes, one each `interval`, but none after `latest`; returns when.
pub fn send_paced(
    socket: &UdpSocket,
    clock: &Clock,
    count: u64,
    interval: Duration,
    latest: Option<Instant>,
) -> io::Result<Vec<u64>> {
    let begin = clock.now();
    let mut sent = Vec::with_capacity(count as usize);
    let mut payload = [0; PROBE_BYTES];
    for number in 0..count {
        if latest.is_some_and(|latest| clock.now() > latest) {
            break;
        }
        clock.sleep_until(begin + interval * number);
        payload[..8].copy_from_slice(&number.to_le_bytes());
        sent.push(unix_ns());
        socket.send(&payload)?;
    }
    Ok(sent)
}

/// Receives until `over` is set and nothing comes any more.
pub fn collect(socket: &UdpSocket, over: &AtomicBool) -> io::Result<Vec<(u64, u64)>> {
    let mut arrivals = Vec::new();
    loop {
        match next(socket)? {
            Some(arrival) => arrivals.push((arrival.number, arrival.at_ns)),
            None if over.load(Relaxed) => return Ok(arrivals),
            None => {}
        }
    }
}

fn next(socket: &UdpSocket) -> io::Result<Option<ProbeArrival>> {
    let mut buffer = [0; 2048];
    match receive(socket, &mut buffer) {
        Ok((length, at_ns)) if length >= 8 => {
            let number = u64::from_le_bytes(buffer[..8].try_into().expect("eight bytes"));
            Ok(Some(ProbeArrival { number, at_ns }))
        }
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts what was sent beside what arrived, in order of arrival.
pub fn judge(sent: &[u64], arrivals: &[(u64, u64)]) -> Paced {
    let mut seen = vec![false; sent.len()];
    let mut delays = Vec::with_capacity(arrivals.len());
    let mut found = Paced { sent: sent.len() as u64, ..Paced::default() };
    let mut latest = 0;
    for &(number, at_ns) in arrivals {
        // A number that was never sent is not ours: a flipped bit that no checksum found.
        let Some(&sent_ns) = sent.get(number as usize) else { continue };
        if std::mem::replace(&mut seen[number as usize], true) {
            found.duplicates += 1;
            continue;
        }
        found.received += 1;
        found.reordered += u64::from(number < latest);
        latest = latest.max(number);
        delays.push(at_ns.saturating_sub(sent_ns));
    }
    if delays.is_empty() {
        return found;
    }
    delays.sort_unstable();
    let count = delays.len() as f64;
    let mean = delays.iter().map(|&ns| ns as f64).sum::<f64>() / count;
    let squares = delays.iter().map(|&ns| (ns as f64 - mean).powi(2)).sum::<f64>();
    let at = |percent: usize| delays[(delays.len() * percent / 100).min(delays.len() - 1)];
    Paced {
        delay_mean_ns: mean,
        delay_sd_ns: (squares / (count - 1.0).max(1.0)).sqrt(),
        delay_min_ns: delays[0],
        delay_p50_ns: at(50),
        delay_p99_ns: at(99),
        delay_max_ns: delays[delays.len() - 1],
        ..found
    }
}

/// How trains are made.
#[derive(Clone, Copy, Debug)]
pub struct TrainPlan {
    /// Datagrams in each; fewer than the queue holds.
    pub length: u64,
    /// Payload of each.
    pub payload: usize,
    /// What each takes of the slowest link.
    pub frame_bytes: u64,
    /// How long a train takes to arrive at most.
    pub patience: time::Duration,
    /// How long to go on with trains.
    pub budget: time::Duration,
}

/// Sends trains one after the other, each when the one before has arrived.
pub fn trains(sender: &UdpSocket, receiver: &UdpSocket, plan: TrainPlan) -> io::Result<Trains> {
    let (mut found, mut taken_ns) = (Trains::default(), 0);
    let (end, mut first) = (time::Instant::now() + plan.budget, 0);
    loop {
        let mut payload = vec![0; plan.payload];
        for number in first..first + plan.length {
            payload[..8].copy_from_slice(&number.to_le_bytes());
            sender.send(&payload)?;
        }
        let arrived = train(receiver, first, plan)?;
        if let [(a, from_ns), .., (b, until_ns)] = arrived[..]
            && b > a
            && until_ns > from_ns
        {
            found.trains += 1;
            found.frames += b - a;
            taken_ns += until_ns - from_ns;
        }
        first += plan.length;
        if time::Instant::now() >= end {
            break;
        }
        thread::sleep(time::Duration::from_millis(1));
    }
    if taken_ns > 0 {
        found.rate_bit_s = (found.frames * plan.frame_bytes * 8) as f64 / (taken_ns as f64 / 1e9);
    }
    Ok(found)
}

/// Receives one train; those of earlier ones that come late are passed over.
fn train(receiver: &UdpSocket, first: u64, plan: TrainPlan) -> io::Result<Vec<(u64, u64)>> {
    let deadline = time::Instant::now() + plan.patience;
    let mut arrived = Vec::new();
    while (arrived.len() as u64) < plan.length && time::Instant::now() < deadline {
        if let Some(arrival) = next(receiver)?.filter(|arrival| arrival.number >= first) {
            arrived.push((arrival.number, arrival.at_ns));
        }
    }
    Ok(arrived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_copies_and_overtaking_are_told_apart() {
        let sent = [100, 200, 300, 400];
        let found = judge(&sent, &[(0, 150), (2, 350), (1, 360), (2, 370), (77, 400)]);
        assert_eq!((found.sent, found.received, found.duplicates, found.reordered), (4, 3, 1, 1));
        assert_eq!((found.delay_min_ns, found.delay_max_ns), (50, 160));
        assert!((found.delay_mean_ns - 260.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_arrived_is_not_a_delay_of_zero_probes() {
        let found = judge(&[1, 2], &[]);
        assert_eq!((found.sent, found.received, found.delay_mean_ns), (2, 0, 0.0));
    }
}
