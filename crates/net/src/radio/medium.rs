//! The medium: stations, what is on the air, and whose turn it is.

use std::collections::VecDeque;

use mqttlab_units::{Bytes, Duration, Instant, Seed};

use super::agenda::{RadioAgenda, RadioEvent};
use super::channel::{Channel, ChannelLaw};
use super::counters::StationCounters;
use super::event::{Finished, Input, Outcome, Output};
use super::field::StationField;
use super::interferer::Interferer;
use super::level::Levels;
use super::receiver::{Incoming, RadioReceiver, Reception};
use super::spec::{MediumSpec, Position};
use super::station::{Air, AwaitedAnswer, DueResponse, Job, Station};
use super::timing::{ACK_BYTES, DATA_OVERHEAD_BYTES, FrameKind, RTS_BYTES, Timing};
use crate::fate::Cause;
use crate::traffic::LinkTraffic;

/// One IEEE 802.11 channel and the stations on it.
#[derive(Clone, Debug)]
pub struct Medium {
    spec: MediumSpec,
    pub(super) timing: Timing,
    pub(super) levels: Levels,
    pub(super) field: StationField,
    pub(super) receivers: Vec<RadioReceiver>,
    pub(super) stations: Vec<Station>,
    pub(super) interferers: Vec<Interferer>,
    /// After which what is heard of interferers is reckoned anew.
    pub(super) intervals: Vec<Duration>,
    /// Empty where the channel has no errors of its own.
    channels: Vec<Channel>,
    channel_law: Option<ChannelLaw>,
    /// Of the draws whether bits are right.
    errors: Seed,
    pub(super) agenda: RadioAgenda,
    /// Stations that waited for an answer and heard something else.
    disappointed: Vec<u32>,
    /// Stations that are to rest, and still have something to do.
    drowsy: Vec<u32>,
    ready: VecDeque<Output>,
    now: Instant,
}

impl Medium {
    /// A silent medium. Its streams derive from `seed` by the medium's name.
    ///
    /// # Panics
    /// When the spec fails [`MediumSpec::check`].
    pub fn new(spec: MediumSpec, seed: Seed) -> Self {
        if let Err(error) = spec.check() {
            panic!("the medium `{}` was made of a bad spec: {error}", spec.name);
        }
        let seed = seed.derive(&spec.name);
        let levels = levels(&spec);
        let count = spec.stations();
        let numbers = 0..count as u64;
        let backoff = seed.derive("backoff");
        let channel_law = spec.channel.as_ref().map(ChannelLaw::new);
        let states = seed.derive("channel");
        let field = StationField::new(&spec, &levels, seed);
        let interferers: Vec<Interferer> =
            spec.interferers.iter().map(|spec| Interferer::new(spec, count, seed)).collect();
        let mut agenda = RadioAgenda::default();
        for number in 0..interferers.len() {
            agenda.add(Instant::ZERO, number as u32, RadioEvent::Interference);
        }
        Medium {
            interferers,
            intervals: field.intervals(),
            timing: Timing::new(&spec.phy),
            field,
            receivers: vec![RadioReceiver::default(); count],
            stations: numbers.clone().map(|i| Station::new(&spec.phy, backoff.index(i))).collect(),
            channels: match &channel_law {
                Some(law) => numbers.map(|i| Channel::new(law, states.index(i))).collect(),
                None => Vec::new(),
            },
            channel_law,
            errors: seed.derive("errors"),
            levels,
            agenda,
            disappointed: Vec::new(),
            drowsy: Vec::new(),
            ready: VecDeque::new(),
            now: Instant::ZERO,
            spec,
        }
    }

    /// What the medium was made from.
    pub fn spec(&self) -> &MediumSpec {
        &self.spec
    }

    /// How many stations there are.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// What a station has done up to the last call.
    pub fn counters(&self, station: usize) -> StationCounters {
        StationCounters { time: self.receivers[station].time(self.now), ..self.stations[station].counters }
    }

    /// What all stations together have carried so far, and what waits.
    pub fn traffic(&self) -> LinkTraffic {
        let mut traffic = LinkTraffic::default();
        for station in &self.stations {
            let counters = &station.counters;
            traffic.frames += counters.delivered;
            traffic.bytes += counters.sent.total().bytes;
            traffic.drops.note(Cause::QueueFull, counters.dropped_queue);
            traffic.drops.note(Cause::RetryLimit, counters.dropped_retry_limit);
            traffic.drops.note(Cause::Unreachable, counters.dropped_unreachable);
            traffic.queue_frames += station.queue.len() as u64;
            traffic.queue_bytes += station.queue.iter().map(|job| u64::from(job.mac_bytes)).sum::<u64>();
        }
        traffic
    }

    /// The energy in joules that a station's radio has drawn up to the last call.
    pub fn energy_j(&self, station: usize) -> f64 {
        self.spec.energy.energy_j(&self.receivers[station].time(self.now))
    }

    /// Where a station is.
    pub fn position(&self, station: usize) -> Position {
        let [x, y] = self.field.position(self.now, station).map(|metres| (metres * 1e3).round() as i64);
        Position { x_mm: x, y_mm: y }
    }

    /// The MAC bytes of the data frame that carries an IP packet.
    pub fn frame_size(&self, packet: Bytes) -> Bytes {
        packet + Bytes(DATA_OVERHEAD_BYTES.into())
    }

    /// Something happened.
    ///
    /// # Panics
    /// When time runs back, a station is not there, or a station sends to itself.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.tick(now);
        let Input::Send { frame, from, to, size } = input;
        assert!(from.max(to) < self.stations.len(), "a frame was given to a station that is not there");
        assert!(from != to, "a station was told to send to itself");
        // Before anything else: a radio that slept does not know whether the medium is busy.
        self.wake(now, from);
        let station = &mut self.stations[from];
        let job = Job::new(now, frame, to as u32, size.0);
        if self.spec.mac.queue_limit_frames.is_some_and(|limit| station.queue.len() >= limit as usize) {
            station.counters.dropped_queue += 1;
            self.finish(from, job, Some(Cause::QueueFull));
            return;
        }
        station.queue.push_back(job);
        let length = station.queue.len() as u32;
        station.counters.queue_frames_max = station.counters.queue_frames_max.max(length);
        // Behind another frame it waits for that one's exchange and the backoff after it.
        if length == 1 && !self.stations[from].off {
            self.request(now, from);
        }
    }

    /// Time has passed.
    ///
    /// # Panics
    /// When time runs back.
    pub fn tick(&mut self, now: Instant) {
        assert!(now >= self.now, "time ran back on the medium `{}`", self.spec.name);
        while let Some(entry) = self.agenda.take(now) {
            self.now = entry.at;
            let station = entry.station as usize;
            match entry.event {
                RadioEvent::End => self.end(entry.at, station),
                RadioEvent::Turn => self.turn(entry.at, station),
                RadioEvent::Respond => self.respond(entry.at, station),
                RadioEvent::Timeout => self.time_out(entry.at, station),
                RadioEvent::Interference => self.interference(entry.at, station),
            }
            // After each event, which may have been the last thing that a station had to do.
            self.doze(entry.at);
        }
        self.now = now;
    }

    /// Whether a station's radio is to be off while it has nothing to send, to answer or to receive. Whatever is sent to
    /// it then is lost on it, as to one that is out of reach. `at` is when that was decided; it may lie in the past.
    ///
    /// # Panics
    /// When a station is not there.
    pub fn rest(&mut self, at: Instant, station: usize, rests: bool) {
        self.tick(self.now.max(at));
        self.stations[station].rests = rests;
        if rests {
            self.drowsy.push(station as u32);
            self.doze(at);
        } else {
            self.wake(at, station);
        }
    }

    /// Stations that are to rest do so once they are done.
    fn doze(&mut self, now: Instant) {
        let Medium { drowsy, stations, receivers, levels, .. } = self;
        drowsy.retain(|&number| {
            let (station, receiver) = (&stations[number as usize], &mut receivers[number as usize]);
            let done = station.is_done() && receiver.is_quiet();
            if station.rests && done && !receiver.is_asleep() {
                receiver.rest(now, true, levels);
            }
            station.rests && !done
        });
    }

    /// A station's radio goes on, if it was off: it waits from here as from the end of a frame, for it does not know what
    /// went on before.
    pub(super) fn wake(&mut self, now: Instant, number: usize) {
        if !self.receivers[number].is_asleep() || self.stations[number].off {
            return;
        }
        self.receivers[number].rest(now, false, &self.levels);
        let station = &mut self.stations[number];
        if station.rests {
            self.drowsy.push(number as u32);
        }
        if self.receivers[number].is_busy() {
            station.freeze(now, &self.timing);
        } else {
            station.carrier.restart(now);
        }
        self.contend(number);
    }

    /// The next thing that happened.
    pub fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// When something may happen next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.agenda.next()
    }

    /// The first frame of an empty queue: it goes at once where the medium has been idle for long enough and the
    /// last frame's backoff is over, and waits its turn elsewhere (IEEE 802.11-2016 §10.3.4.2).
    fn request(&mut self, now: Instant, from: usize) {
        let receiver = &self.receivers[from];
        let (busy, was_busy) = (receiver.is_busy(), receiver.was_busy_before(now));
        let station = &mut self.stations[from];
        if station.backoff.is_off(now, &self.timing) {
            let patient = self.spec.mac.difs_from_queueing;
            // The station itself is about to answer: the medium will not stay idle, but ns-3 does not look ahead.
            let answering = station.response.is_some() && !patient;
            let may_go = !was_busy && !answering && !station.carrier.is_reserved(now);
            let mut until = station.carrier.free_from(&self.timing);
            if patient {
                until = until.max(now + self.timing.difs);
            }
            if may_go && until <= now {
                self.attempt(now, from);
                return;
            }
            if may_go && !busy && patient {
                station.backoff.wait(until);
            } else if may_go && !busy {
                station.backoff.space(until);
            } else {
                // A busy medium means a backoff at once (§10.3.4.3).
                station.backoff.draw(&mut station.dice, station.window);
            }
        }
        self.contend(from);
    }

    /// The station's slots count if the medium is idle.
    pub(super) fn contend(&mut self, number: usize) {
        let idle = !self.receivers[number].is_busy();
        let station = &mut self.stations[number];
        if idle && !station.off {
            station.backoff.resume(&station.carrier, &self.timing);
        }
        if let Some(at) = station.arm(&self.timing) {
            self.agenda.add(at, number as u32, RadioEvent::Turn);
        }
    }

    /// A turn that was put on the agenda is due; it may have been delayed or taken since.
    fn turn(&mut self, now: Instant, number: usize) {
        let station = &mut self.stations[number];
        // The turn was put off since: a heap's entry cannot be taken back.
        if station.armed != Some(now) {
            return;
        }
        station.armed = None;
        if station.off {
            return;
        }
        let due = station.backoff.expiry(&self.timing).is_some_and(|expiry| expiry <= now);
        if due && !station.queue.is_empty() {
            self.attempt(now, number);
        } else if let Some(at) = station.arm(&self.timing) {
            self.agenda.add(at, number as u32, RadioEvent::Turn);
        }
    }

    /// The station has the medium for its first frame: RTS or data.
    fn attempt(&mut self, now: Instant, from: usize) {
        let station = &mut self.stations[from];
        station.backoff.stop();
        let job = station.queue.front_mut().expect("a station had its turn without a frame");
        job.start.get_or_insert(now);
        job.attempts += 1;
        station.counters.retries += u64::from(job.attempts > 1);
        let job = *job;
        // An announced frame's RTS reserves the medium up to its ACK (§9.2.5).
        if job.is_announced(&self.spec.mac) {
            let data = self.timing.airtime(FrameKind::Data, job.mac_bytes);
            let reserved = self.timing.reserved(FrameKind::Rts, data);
            self.begin(now, from, Air { kind: FrameKind::Rts, to: job.to, bytes: RTS_BYTES, reserved });
        } else {
            self.send_data(now, from);
        }
    }

    fn send_data(&mut self, now: Instant, from: usize) {
        let job = self.stations[from].queue.front().expect("a station sent data without a frame");
        let reserved = self.timing.sifs + self.timing.ack;
        self.begin(now, from, Air { kind: FrameKind::Data, to: job.to, bytes: job.mac_bytes, reserved });
    }

    /// A short interframe space after a frame: ACK, CTS, or the data that a CTS permits. Whether the medium is busy
    /// does not matter now.
    fn respond(&mut self, now: Instant, from: usize) {
        let response =
            self.stations[from].response.take().expect("a response was due, but none was asked for");
        if self.stations[from].off {
            return;
        }
        match response.kind {
            FrameKind::Data => self.send_data(now, from),
            kind => {
                let DueResponse { to, reserved, .. } = response;
                self.begin(now, from, Air { kind, to, bytes: ACK_BYTES, reserved });
            }
        }
    }

    /// A frame's first bit goes on the air.
    fn begin(&mut self, now: Instant, from: usize, air: Air) {
        let Medium { field, receivers, stations, timing, levels, agenda, .. } = self;
        let sender = &mut stations[from];
        debug_assert!(!receivers[from].is_transmitting(), "a station sent two frames at once");
        sender.air = air;
        sender.counters.sent.count(air.kind, air.bytes);
        // The station hears its own frame as a busy medium: no slot counts meanwhile.
        sender.freeze(now, timing);
        receivers[from].begin_transmission(now);
        // Powers are fixed from here to the last bit: what is added now must be taken off then.
        field.update(now, from, levels);
        let length = timing.airtime(air.kind, air.bytes);
        let payload = [now + timing.preamble, now + length];
        for near in field.row(from) {
            let receiver = &mut receivers[near.station as usize];
            let was_busy = receiver.is_busy();
            let Air { kind, bytes, .. } = air;
            let frame = Incoming { from: from as u32, kind, bytes, power: near.power, payload };
            let receives = receiver.begin(now, frame, levels);
            let station = &mut stations[near.station as usize];
            if receives {
                // PHY-RXSTART within the time after an RTS: the reservation that it asked for holds (§10.3.2.4).
                station.carrier.answered(now);
            }
            if !was_busy && receiver.is_busy() {
                station.freeze(now, timing);
            }
        }
        agenda.add(now + length, from as u32, RadioEvent::End);
    }

    /// A frame's last bit has gone.
    fn end(&mut self, now: Instant, from: usize) {
        let air = self.stations[from].air;
        self.release(now, from, air);
        let arrived = self.spread(now, from, air);
        // Taken out while stations change, and put back for its memory.
        let mut disappointed = std::mem::take(&mut self.disappointed);
        for station in disappointed.drain(..) {
            self.fail(now, station as usize);
        }
        self.disappointed = disappointed;
        if arrived {
            self.receive(now, from, air);
        }
    }

    /// The sender has sent its frame and waits for the answer, if there is to be one.
    fn release(&mut self, now: Instant, from: usize, air: Air) {
        self.receivers[from].end_transmission(now, &self.levels);
        if self.stations[from].off {
            self.receivers[from].turn_off(now, &self.levels);
        }
        let busy = self.receivers[from].is_busy();
        let station = &mut self.stations[from];
        if !busy {
            station.carrier.silent(now, &self.timing);
        }
        let answer = match air.kind {
            FrameKind::Data => FrameKind::Ack,
            FrameKind::Rts => FrameKind::Cts,
            FrameKind::Ack | FrameKind::Cts => return self.contend(from),
        };
        let job = station.queue.front_mut().expect("a station sent without a frame");
        job.air_bytes += u64::from(air.bytes);
        if air.kind == FrameKind::Data {
            job.sent = Some(now);
        }
        let until = now + self.timing.response_timeout;
        station.waiting = Some(AwaitedAnswer { answer, from: air.to, until });
        self.agenda.add(until, from as u32, RadioEvent::Timeout);
    }

    /// Everybody who heard the frame knows that it is over. Whether its receiver has it.
    fn spread(&mut self, now: Instant, from: usize, air: Air) -> bool {
        let Medium { field, receivers, stations, timing, levels, agenda, channels, .. } = self;
        let mut arrived = false;
        for near in field.row(from) {
            let index = near.station as usize;
            let (receiver, station) = (&mut receivers[index], &mut stations[index]);
            let was_busy = receiver.is_busy();
            let mut heard = receiver.end(now, from as u32, near.power, levels);
            if let Reception::Uncertain(chance) = heard {
                // By the names of both and the instant: no other frame changes what this one draws.
                let draw = self.errors.index(from as u64).index(near.station.into()).index(now.as_ns());
                heard = chance.decide(draw.dice().uniform());
            }
            if heard != Reception::Nothing {
                let lost = heard == Reception::Frame
                    && self.channel_law.as_ref().is_some_and(|law| channels[index].draw_loss(now, law));
                let taken = heard == Reception::Frame && !lost;
                station.note(now, heard, lost, &air, near.station == air.to, timing);
                arrived |= taken && near.station == air.to;
                // Any other frame than the awaited ends the wait, and the attempt has failed (§10.3.2.9).
                let expected = taken && near.station == air.to && station.expects(air.kind, from as u32);
                if station.waiting.is_some() && !expected {
                    self.disappointed.push(near.station);
                }
            }
            if was_busy && !receiver.is_busy() {
                station.carrier.silent(now, timing);
                station.backoff.resume(&station.carrier, timing);
                if let Some(at) = station.arm(timing) {
                    agenda.add(at, near.station, RadioEvent::Turn);
                }
            }
        }
        arrived
    }

    /// The station that a frame was for has it.
    fn receive(&mut self, now: Instant, from: usize, air: Air) {
        let to = air.to as usize;
        let (sender, reserved) = (from as u32, air.reserved);
        let timing = &self.timing;
        let response = match air.kind {
            FrameKind::Data => {
                // A copy is acknowledged, too: its sender has not heard the first ACK.
                self.deliver(now, from, to);
                DueResponse { kind: FrameKind::Ack, to: sender, reserved: Duration::ZERO }
            }
            // No CTS while the network allocation vector is set (§10.3.2.7).
            FrameKind::Rts if self.stations[to].carrier.is_reserved(now) => return,
            FrameKind::Rts => {
                // The RTS's duration less what has passed when the CTS ends (§9.3.1.3).
                let rest = reserved.saturating_sub(timing.sifs + timing.cts);
                DueResponse { kind: FrameKind::Cts, to: sender, reserved: rest }
            }
            FrameKind::Cts | FrameKind::Ack if !self.stations[to].expects(air.kind, sender) => return,
            FrameKind::Cts => {
                self.stations[to].waiting = None;
                DueResponse { kind: FrameKind::Data, to: sender, reserved: Duration::ZERO }
            }
            FrameKind::Ack => return self.succeed(to),
        };
        let due = now + self.timing.sifs;
        self.stations[to].response = Some(response);
        self.agenda.add(due, air.to, RadioEvent::Respond);
    }

    /// A data frame is at its receiver, which drops copies: a station sends one frame at a time, so remembering
    /// the last sequence number of each sender is as good as a mark on the sender's frame.
    fn deliver(&mut self, now: Instant, from: usize, to: usize) {
        let job = self.stations[from].queue.front_mut().expect("a frame arrived that nobody sent");
        if job.arrived.is_some() {
            self.stations[to].counters.duplicates += 1;
            return;
        }
        job.arrived = Some(now);
        let start = job.start.expect("a frame arrived that was not sent");
        let arrived = Output::Arrived { frame: job.frame, entered: job.entered, start, at: now };
        self.ready.push_back(arrived);
    }

    /// An answer should have been noticed by now.
    fn time_out(&mut self, now: Instant, number: usize) {
        let Some(waiting) = self.stations[number].waiting else { return };
        // An earlier wait's entry.
        if waiting.until != now {
            return;
        }
        // Once the header of something is in, the station waits for its end: it may be the answer.
        let under_way = self.receivers[number].receiving_since();
        if under_way.is_none_or(|start| start + self.timing.preamble > now) {
            self.fail(now, number);
        }
    }

    /// An attempt was answered as it should.
    fn succeed(&mut self, number: usize) {
        self.stations[number].waiting = None;
        self.conclude(number, None);
    }

    /// An attempt was not.
    fn fail(&mut self, now: Instant, number: usize) {
        let idle = !self.receivers[number].is_busy();
        let station = &mut self.stations[number];
        let Some(waiting) = station.waiting.take() else { return };
        station.counters.failures += 1;
        if idle {
            // The backoff begins at the end of the timeout (§10.3.2.9), though the medium was idle before.
            station.carrier.restart(now);
        }
        let job = station.queue.front_mut().expect("a station waited for an answer without a frame");
        if job.fail(waiting.answer, &self.spec.mac) {
            let power = self.field.power(now, number, waiting.from as usize, &self.levels);
            let reachable = self.levels.reachable(power);
            self.conclude(number, Some(if reachable { Cause::RetryLimit } else { Cause::Unreachable }));
            return;
        }
        station.widen(&self.spec.phy);
        station.backoff.draw(&mut station.dice, station.window);
        self.contend(number);
    }

    /// The station is done with its first frame, and backs off before the next, if there is none yet too.
    fn conclude(&mut self, number: usize, cause: Option<Cause>) {
        let station = &mut self.stations[number];
        let job = station.queue.pop_front().expect("a station was done with no frame");
        // CW falls back after a success and at the retry limit alike (§10.3.3).
        station.window = self.spec.phy.cw_min_slots;
        station.backoff.draw(&mut station.dice, station.window);
        self.contend(number);
        // The last data frame came through, and its ACKs did not: to the receiver that is no loss.
        let cause = cause.filter(|_| job.arrived.is_none());
        let counters = &mut self.stations[number].counters;
        match cause {
            None => counters.delivered += 1,
            Some(Cause::Unreachable) => counters.dropped_unreachable += 1,
            Some(_) => counters.dropped_retry_limit += 1,
        }
        self.finish(number, job, cause);
    }

    fn finish(&mut self, from: usize, job: Job, cause: Option<Cause>) {
        let fate = match (cause, job.arrived) {
            (None, Some(at)) => Outcome::Delivered { at },
            (Some(cause), _) => Outcome::Dropped { cause },
            (None, None) => panic!("a frame was acknowledged that never arrived"),
        };
        let Job { frame, entered, start, sent, attempts, .. } = job;
        let (to, air_bytes) = (job.to as usize, Bytes(job.air_bytes));
        let finished = Finished { frame, from, to, entered, start, sent, attempts, air_bytes, fate };
        self.ready.push_back(Output::Finished(finished));
    }
}

fn levels(spec: &MediumSpec) -> Levels {
    let levels = Levels::new(&spec.radio);
    if spec.radio.errors.is_threshold() { levels } else { levels.with_errors(&spec.phy) }
}
