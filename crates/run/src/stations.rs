//! Where radio stations are while a run goes on: a sample at every tick of a fixed grid, whoever asks and however late.
//!
//! Places follow from the plan alone, so that simulator and live run have the same rows for the same times. A station that has
//! not moved since its last sample has no row. After every so many rows the grid is half as dense, so that thousands of moving
//! stations do not fill a disk.

use mqttlab_net::radio::{Position, Whereabouts};
use mqttlab_plan::Plan;
use mqttlab_rows::{PositionSample, PositionSource};
use mqttlab_units::{Duration, Instant};

/// Tells where stations are, in the order of time.
#[derive(Debug)]
pub struct Stations {
    media: Vec<Whereabouts>,
    tracks: Vec<Track>,
    interval: Duration,
    /// `None` when nothing moves, or has moved for the last time.
    next: Option<Instant>,
    rows_left: u64,
}

/// A station, and who is there.
#[derive(Debug)]
struct Track {
    medium: usize,
    station: usize,
    host: u16,
    link: u16,
    /// Clients on its host; one `None` where there are none.
    clients: Vec<Option<u32>>,
    told: Option<Position>,
}

impl Stations {
    /// All stations of a plan.
    pub fn of(plan: &Plan) -> Stations {
        let seed = plan.seed.derive("network");
        let network = &plan.network;
        let media: Vec<Whereabouts> = network.media.iter().map(|spec| Whereabouts::new(spec, seed)).collect();
        let track = |((medium, station), host)| Track {
            medium,
            station,
            host: host as u16,
            link: (network.links.len() + medium) as u16,
            clients: Vec::new(),
            told: None,
        };
        let mut tracks: Vec<Track> = network.stations().into_iter().map(track).collect();
        assign_clients(&mut tracks, plan);
        let interval = plan.recording.tcp_state_interval;
        let next = (!tracks.is_empty()).then_some(Instant::ZERO);
        Stations { media, tracks, interval, next, rows_left: ROWS }
    }

    /// Tells of every sample that is due by `now`.
    pub fn take(&mut self, now: Instant, mut tell: impl FnMut(&PositionSample)) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            for track in &mut self.tracks {
                let position = self.media[track.medium].position(at, track.station);
                if track.told.replace(position) == Some(position) {
                    continue;
                }
                for &client in &track.clients {
                    tell(&track.sample(at, client, position));
                    self.rows_left = self.rows_left.saturating_sub(1);
                }
            }
            if self.rows_left == 0 {
                (self.interval, self.rows_left) = (self.interval * 2, ROWS);
            }
            self.next = self.media.iter().any(Whereabouts::is_moving).then(|| at + self.interval);
        }
    }
}

impl Track {
    fn sample(&self, at: Instant, client: Option<u32>, position: Position) -> PositionSample {
        PositionSample {
            at,
            source: PositionSource::Station,
            client,
            host: Some(self.host),
            link: Some(self.link),
            east: position.x_mm,
            north: position.y_mm,
            altitude_mm: None,
        }
    }
}

/// Finds the clients of each station's host.
fn assign_clients(tracks: &mut [Track], plan: &Plan) {
    if tracks.is_empty() {
        return;
    }
    let mut living = vec![Vec::new(); plan.hosts.len()];
    for (group, first) in plan.groups.iter().zip(plan.client_numbers()) {
        for index in 0..group.count {
            living[group.host_of(index)].push(Some(first + index));
        }
    }
    for track in tracks {
        track.clients.clone_from(&living[usize::from(track.host)]);
        if track.clients.is_empty() {
            track.clients.push(None);
        }
    }
}

/// Rows before the interval doubles.
const ROWS: u64 = 200_000;
