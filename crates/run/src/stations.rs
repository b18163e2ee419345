//! Where radio stations are while a run goes on: a sample at every tick of a fixed grid, whoever asks and however late.
//!
//! Places follow from the plan alone, so that simulator and live run have the same rows for the same times. A station that has
//! not moved since its last sample has no row. After every so many rows the grid is half as dense, so that thousands of moving
//! stations do not fill a disk.

use std::collections::VecDeque;

use mqttlab_net::radio::{MediumChange, Position, Whereabouts};
use mqttlab_plan::{Event, MediumEvent, Plan};
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
    last: Instant,
    /// Where events put stations, in the order of time since publishing began.
    moves: VecDeque<Move>,
    publish_from: Option<Instant>,
    rows_left: u64,
}

/// An event puts a station elsewhere.
#[derive(Debug)]
struct Move {
    at: Duration,
    medium: usize,
    station: usize,
    to: Position,
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
        let (last, publish_from) = (Instant::ZERO, None);
        Stations { media, tracks, interval, next, last, moves: moves(plan), publish_from, rows_left: ROWS }
    }

    /// Publishing begins at `at`: events count from then.
    pub fn begin(&mut self, at: Instant) {
        if self.publish_from.is_none() {
            self.publish_from = Some(at);
            self.next = self.next.or_else(|| self.next_move());
        }
    }

    /// The tick at which the next move of an event is seen.
    fn next_move(&self) -> Option<Instant> {
        let at = self.publish_from? + self.moves.front()?.at;
        let ticks =
            at.checked_since(self.last).map_or(0, |passed| passed.as_ns().div_ceil(self.interval.as_ns()));
        // No tick comes twice.
        Some(self.last + self.interval * ticks.max(1))
    }

    fn perform_moves(&mut self, now: Instant) {
        let Some(from) = self.publish_from else { return };
        while let Some(event) = self.moves.pop_front_if(|event| from + event.at <= now) {
            self.media[event.medium].place(event.station, event.to);
        }
    }

    /// Tells of every sample that is due by `now`.
    pub fn take(&mut self, now: Instant, mut tell: impl FnMut(&PositionSample)) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.perform_moves(at);
            self.last = at;
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
            let walks = self.media.iter().any(Whereabouts::is_moving);
            self.next = if walks { Some(at + self.interval) } else { self.next_move() };
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

/// The moves that a plan's events make.
fn moves(plan: &Plan) -> VecDeque<Move> {
    let of = |event: &Event| {
        let Event::Medium(MediumEvent { at, medium, change, .. }) = event else { return None };
        let MediumChange::StationMoved { station, position } = *change else { return None };
        let medium = plan.network.media.iter().position(|spec| spec.name == *medium)?;
        Some(Move { at: *at, medium, station, to: position })
    };
    plan.events.iter().filter_map(of).collect()
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
