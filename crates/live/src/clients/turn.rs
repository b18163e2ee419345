//! What a client is given while a worker attends to it: the surroundings of a live client.

use mqttlab_client::{Books, ClientNumber, Delivery, MessageFacts, Offered, Rows, Surroundings, Who};
use mqttlab_plan::MessageNumber;
use mqttlab_recording::identity;
use mqttlab_recording::{
    Acknowledged, Dropped, Event, EventKind, Identified, Payload, PayloadSource, PositionSample, Received,
    Sent, Sink, Unsent,
};
use mqttlab_system::poller::Poller;
use mqttlab_units::{Duration, Instant};

use super::Client;
use super::buffers::WorkerBuffers;
use super::context::FleetContext;
use super::figure_changes::FigureChanges;
use super::poll_pause;
use super::timers::ClientTimers;

/// One client's turn.
pub(super) struct ClientTurn<'a> {
    pub(super) shared: &'a FleetContext,
    pub(super) poller: &'a Poller,
    pub(super) timers: &'a mut ClientTimers,
    pub(super) sink: &'a mut Sink,
    pub(super) tally: &'a mut FigureChanges,
    /// Where bytes are read to.
    pub(super) buffer: &'a mut Vec<u8>,
    /// Where packets are made that are sealed.
    pub(super) buffers: &'a mut WorkerBuffers,
    /// The clock as it was last read.
    pub(super) now: Instant,
    /// Whether the run is over and clients say goodbye.
    pub(super) leaving: bool,
    /// Set when a client could have had more to do since its last turn.
    pub(super) hurried: &'a mut bool,
}

impl ClientTurn<'_> {
    /// Keeps what a message carries, where the plan wants that.
    pub(super) fn keep_payload(&mut self, row: &Received, payload: &[u8]) {
        if self.shared.plan.recording.payloads {
            self.sink.payload(&Payload::of(row, PayloadSource::Read), payload);
        }
    }

    /// A deadline of a client may have come.
    pub(super) fn wake(&mut self, client: &mut Client) {
        let offered = client.wake(self);
        // Datagrams need no opening.
        if client.is_opening() && client.connection().is_datagrams() {
            client.opened(self);
            client.flush(self);
        }
        self.note_pace(client, offered);
        self.set_timer(client);
    }

    /// Notes whether a client could have offered more.
    pub(super) fn note_pace(&mut self, client: &Client, offered: Offered) {
        let window = self.shared.group(client.who().group).window();
        let is_near = poll_pause::nears_window(client.facts().publish_qos(), offered.messages, window);
        *self.hurried |= is_near || self.is_turn_over(offered);
    }

    /// Makes sure that a client is looked at again in time.
    pub(super) fn set_timer(&mut self, client: &Client) {
        if let Some(at) = client.next_deadline(self) {
            self.timers.no_later_than(client.connection().slot, at);
        }
    }

    /// Records what happened to a client now.
    pub(super) fn record(
        &mut self,
        kind: EventKind,
        client: ClientNumber,
        took: Option<Duration>,
        detail: &str,
    ) {
        self.sink.event(&Event { at: self.now, kind, client: Some(client.0), took }, detail);
    }
}

impl Rows for ClientTurn<'_> {
    fn sent(&mut self, row: &Sent) {
        self.sink.sent(row);
    }

    fn acknowledged(&mut self, row: &Acknowledged) {
        self.sink.acknowledged(row);
    }

    fn unsent(&mut self, row: &Unsent) {
        self.tally.group_of(self.shared, row.publisher).unsent += 1;
        self.sink.unsent(row);
    }

    fn dropped(&mut self, row: &Dropped) {
        self.sink.dropped(row);
    }

    fn received(&mut self, row: &Received) {
        // It may be a program's message; then the frames will tell.
        if row.publisher.is_none()
            && row.identified != Identified::Will
            && self.shared.has_programs
            && row.payload_bytes as usize >= identity::BYTES_MIN
        {
            return;
        }
        self.sink.received(row);
    }

    fn event(&mut self, kind: EventKind, client: ClientNumber, took: Option<Duration>, detail: &str) {
        // Later a server that is gone is what a run measures.
        if self.shared.control.schedule().is_none() && !self.leaving {
            match kind {
                EventKind::Connack => self.tally.accepted(self.shared, client.0),
                EventKind::Note | EventKind::Refused => {
                    self.tally.turned_down(self.shared, client.0, self.now, detail);
                }
                _ => {}
            }
        }
        self.record(kind, client, took, detail);
    }
}

impl Surroundings for ClientTurn<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn read_clock(&mut self) -> Instant {
        self.now = self.shared.control.now();
        self.now
    }

    fn is_leaving(&self) -> bool {
        self.leaving
    }

    fn books(&mut self) -> &mut Books {
        &mut self.tally.books
    }

    fn message(&self, client: Who, content: usize, index: u64, sequence: u64) -> Option<MessageFacts> {
        let facts = self.shared.facts(client.group);
        let topics = self.shared.directory.published(client.number.0);
        let publish = self.shared.group(client.group).content(content);
        let place = facts.facts.publications[content].topic_place(publish.topic_index(client.index, index));
        let number = MessageNumber { client: client.index, sequence };
        Some(MessageFacts {
            topic: topics[place],
            payload_bytes: facts.payloads[content].size_of(number).0 as u32,
            quality: publish.quality(client.index, index),
        })
    }

    fn topic_name(&self, topic: u32) -> &str {
        self.shared.directory.topic(topic).1
    }

    fn subscription_change(&self, client: Who, number: u32) -> Option<(String, bool)> {
        let (filter, qos) = self.shared.subscribed(client).change(self.shared.group(client.group), number)?;
        Some((filter, qos.is_some()))
    }

    fn has_subscriptions(&self, client: Who, changes: u32) -> bool {
        !self.shared.subscribed(client).filters(self.shared.group(client.group), changes).is_empty()
    }

    fn deliveries(&self, row: &Sent) -> u32 {
        self.shared.directory.deliveries(row)
    }

    fn is_turn_over(&self, offered: Offered) -> bool {
        offered.bytes > BYTES_A_TURN
    }

    fn offered(&mut self, row: &Sent, late: Duration) {
        self.tally.group_of(self.shared, row.publisher).offered += 1;
        let control = &self.shared.control;
        let is_measured = control.schedule().is_some_and(|schedule| row.intended >= schedule.measure_from);
        control.figures.sender_lateness.count(is_measured, late);
    }

    fn admitted(&mut self, row: &Sent, content: usize) {
        self.tally.asked(self.shared, row);
        // Before the socket gets it, so that nobody can receive what is not yet known.
        if u64::from(row.payload_bytes) < identity::BYTES_MIN as u64 {
            let (server, name) = self.shared.directory.topic(row.topic);
            self.shared.order.sent(server, name, row.sequence, row.intended);
        }
        if let Some(place) = self.shared.place_said(row.publisher, content, row.sequence) {
            self.sink.position(&PositionSample::said(row.sent, row.publisher, place));
        }
    }

    fn rest(&mut self, client: Who, asleep: bool) {
        let host = self.shared.group(client.group).host_of(client.index);
        self.shared.control.radio_sleep.notify(self.now, host, asleep);
    }

    fn delivered(&mut self, delivery: &Delivery, first: bool) {
        self.tally.group_of(self.shared, delivery.row.subscriber).delivered += u64::from(first);
        let latency = delivery.intended.and_then(|intended| delivery.row.received.checked_since(intended));
        if let Some(latency) = latency {
            self.shared.control.figures.latency.count(latency);
        }
        if let Some(publisher) = delivery.row.publisher.filter(|_| first) {
            let shared = self.shared;
            shared.control.figures.sample.offer(|| shared.message_figures(publisher, &delivery.row, latency));
        }
    }
}

/// A client hands over about this much before others have their turn.
const BYTES_A_TURN: u64 = 64 << 10;
