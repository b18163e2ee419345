//! Times at which messages could not pass, and what of it the recording names: a client without a connection, a broker that
//! stood still, a link that was down, a reader that had stopped, a translator of addresses that had forgotten a connection.
//!
//! ```text
//!   events, plan ──► clients without a connection, changes of servers, links and readers ──┐
//!   packets ───────► frames that a translator of addresses dropped ─────────────────────────┴─► holds of a leg ──► chain
//! ```
//!
//! A hold takes of a leg's parts those that pass where it was: time that a message spent in the broker's socket while its
//! subscriber had no connection is no wait for a window. Where two hold a message at once, the one that comes first in the
//! order of [`Holds::of`] counts. What follows when a hold has ended, such as TCP's next time-out, stays with its own part.
//!
//! What it does not model: changes of radio channels, and links that drop some frames only.

use std::fs;
use std::io;
use std::path::Path;

use mqttlab_recording::reading::{ABSENT, TableReader, Vocabulary, Wanted};
use mqttlab_recording::{BY_HAND, Error, NumberMap, Result};
use serde_json::Value;

use crate::attribution::latency_parts::LatencyPart as Part;
use crate::attribution::legs::Leg;
use crate::settings::RunSettings;

/// A time in which a message could not pass, and which parts of its way that held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    span: Span,
    pub(crate) part: Part,
    held: &'static [Part],
}

impl Hold {
    pub(crate) fn begins(&self) -> i64 {
        self.span.from
    }

    pub(crate) fn ends(&self) -> i64 {
        self.span.until
    }

    /// Whether it takes time of this part.
    pub(crate) fn holds(&self, part: Part) -> bool {
        self.held.contains(&part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: i64,
    until: i64,
}

/// A time without a connection.
#[derive(Clone, Copy, Debug)]
struct Absence {
    span: Span,
    /// Whether the client left in order, or an event sent it away: then nothing else kept it from connecting.
    is_planned: bool,
}

const BEFORE_BROKER: [Part; 8] = [
    Part::Session,
    Part::SenderNagle,
    Part::SenderSocket,
    Part::Retry,
    Part::Register,
    Part::QueueToBroker,
    Part::RetransmissionToBroker,
    Part::Handshake,
];
const BEHIND_BROKER: [Part; 10] = [
    Part::Broker,
    Part::BrokerWindow,
    Part::BrokerNagle,
    Part::BrokerSocket,
    Part::Gateway,
    Part::Retry,
    Part::Register,
    Part::QueueToSubscriber,
    Part::RetransmissionToSubscriber,
    Part::Release,
];
const WITHOUT_SENDER: [Part; 5] =
    [Part::Session, Part::SenderNagle, Part::SenderSocket, Part::Retry, Part::RetransmissionToBroker];
/// Wherever a message was, its subscriber could not have it.
const WITHOUT_SUBSCRIBER: [Part; 7] = [
    Part::Undivided,
    Part::Broker,
    Part::BrokerWindow,
    Part::BrokerNagle,
    Part::BrokerSocket,
    Part::Gateway,
    Part::RetransmissionToSubscriber,
];
const WITHOUT_READER: [Part; 7] = [
    Part::Undivided,
    Part::BrokerWindow,
    Part::BrokerNagle,
    Part::BrokerSocket,
    Part::RetransmissionToSubscriber,
    Part::Release,
    Part::Delivery,
];
/// What the broker had before it stood still is in its kernel, which goes on.
const WITHIN_BROKER: [Part; 3] = [Part::Handshake, Part::Broker, Part::BrokerWindow];
const BEHIND_PAUSE: [Part; 5] =
    [Part::Handshake, Part::Broker, Part::BrokerWindow, Part::BrokerNagle, Part::BrokerSocket];
const WITHIN_GATEWAY: [Part; 1] = [Part::Gateway];

/// When what held messages up, by client, server and link.
#[derive(Default)]
pub(crate) struct Holds {
    absences: NumberMap<i64, Vec<Absence>>,
    unread: NumberMap<i64, Vec<Span>>,
    forgotten: NumberMap<i64, Vec<Span>>,
    paused: NumberMap<usize, Vec<Span>>,
    down: NumberMap<usize, Vec<Span>>,
    /// The links between two hosts, one way.
    routes: NumberMap<(i64, i64), Vec<usize>>,
}

impl Holds {
    /// Reads the events of a recording. `clients`: the client of each connection.
    pub(crate) fn read(dir: &Path, settings: &RunSettings, clients: &NumberMap<i64, u32>) -> Result<Holds> {
        let mut found = Holds::default();
        let by_hand = by_hand(dir)?;
        let mut told = EventTimes::read(dir, settings.is_import)?;
        for (event, &at) in settings.events.iter().zip(&told.changes) {
            found.change(event, at, settings, &mut told.connections);
        }
        for (event, &at) in by_hand.iter().zip(&told.changes_by_hand) {
            found.change(event, at, settings, &mut told.connections);
        }
        told.connections.sort_by_key(|one| one.at);
        for one in &told.connections {
            found.connection(one);
        }
        if !found.down.is_empty() {
            found.routes = settings.routes.iter().map(|(ends, links)| (*ends, links.clone())).collect();
        }
        if settings.has_nats {
            found.read_forgotten(dir, clients, &told.connections)?;
        }
        Ok(found)
    }

    fn is_empty(&self) -> bool {
        self.absences.is_empty()
            && self.unread.is_empty()
            && self.forgotten.is_empty()
            && self.paused.is_empty()
            && self.down.is_empty()
    }

    /// What held a leg, the one that counts first before the others.
    pub(crate) fn of(&self, leg: &Leg, settings: &RunSettings) -> Vec<Hold> {
        let mut found = Vec::new();
        let Some(begins) = leg.begins.get().filter(|_| !self.is_empty()) else { return found };
        let within = Span { from: begins, until: leg.delivery.received_ns };
        let sender = if leg.up_client == ABSENT { leg.delivery.publisher } else { leg.up_client };
        let receiver = leg.delivery.subscriber;
        let mut add = |span: Span, part: Part, held: &'static [Part]| {
            if span.from < within.until && within.from < span.until {
                found.push(Hold { span, part, held });
            }
        };
        let absent = |is_planned: bool, add: &mut dyn FnMut(Span, Part, &'static [Part])| {
            for (client, part, held) in [
                (sender, Part::SenderUnconnected, &WITHOUT_SENDER[..]),
                (receiver, Part::SubscriberUnconnected, &WITHOUT_SUBSCRIBER),
            ] {
                for one in self.absences.get(&client).into_iter().flatten() {
                    if one.is_planned == is_planned {
                        add(one.span, part, held);
                    }
                }
            }
        };
        absent(true, &mut add);
        spans(&self.unread, receiver).for_each(|span| add(span, Part::ReaderStopped, &WITHOUT_READER));
        let ingress = leg.ingress.get();
        for [server, broker] in [sender, receiver].map(|client| settings.servers_of(client)) {
            for span in spans(&self.paused, broker) {
                let is_behind = ingress.is_some_and(|at| at >= span.from);
                add(span, Part::BrokerPaused, if is_behind { &BEHIND_PAUSE } else { &WITHIN_BROKER });
            }
            if server != broker {
                spans(&self.paused, server).for_each(|span| add(span, Part::BrokerPaused, &WITHIN_GATEWAY));
            }
        }
        for (client, [out, back]) in [
            (sender, [&BEFORE_BROKER[..], &[Part::Handshake]]),
            (receiver, [&[Part::Release], &BEHIND_BROKER[..]]),
        ] {
            let [towards, from] = self.links_of(client, settings);
            for (links, held) in [(towards, out), (from, back)] {
                for link in links {
                    spans(&self.down, link).for_each(|span| add(span, Part::LinkDown, held));
                }
            }
        }
        spans(&self.forgotten, sender).for_each(|span| add(span, Part::NatForgot, &BEFORE_BROKER));
        spans(&self.forgotten, receiver).for_each(|span| add(span, Part::NatForgot, &BEHIND_BROKER));
        absent(false, &mut add);
        found
    }

    /// The links from a client to its broker, over its gateway where it has one, and those back.
    fn links_of(&self, client: i64, settings: &RunSettings) -> [Vec<usize>; 2] {
        let mut found = [Vec::new(), Vec::new()];
        let host = usize::try_from(client).ok().and_then(|client| settings.host_of.get(client));
        let Some(&host) = host.filter(|_| !self.down.is_empty()) else { return found };
        let [server, broker] = settings.servers_of(client).map(|server| settings.server_host(server));
        for (from, to) in [(host, server), (server, broker)] {
            for (links, ends) in found.iter_mut().zip([(from, to), (to, from)]) {
                links.extend(self.routes.get(&ends).into_iter().flatten());
            }
        }
        found
    }

    /// Takes an event that took place.
    fn change(&mut self, event: &Value, at: i64, settings: &RunSettings, connections: &mut Vec<Connected>) {
        let kind = event["change"]["kind"].as_str().unwrap_or("");
        for name in list(&event["links"]).iter().filter_map(Value::as_str) {
            let link = settings.links.iter().position(|link| link == name);
            begin_or_end(&mut self.down, link, at, [kind == "down", kind == "up"]);
        }
        if let Some(name) = event["server"].as_str() {
            let server = settings.server_names.iter().position(|server| server == name);
            // A broker that was ended while it stood still stands no more.
            let goes_on = ["continue", "stop", "kill", "start"].contains(&kind);
            begin_or_end(&mut self.paused, server, at, [kind == "pause", goes_on]);
        }
        for client in list(&event["clients"]).iter().filter_map(Value::as_i64) {
            let is = [kind == "stop_reading", kind == "continue_reading"];
            begin_or_end(&mut self.unread, Some(client), at, is);
            if ["disconnect", "vanish"].contains(&kind) {
                connections.push(Connected { client, at, change: ConnectionChange::Left });
            }
        }
    }

    /// Takes a beginning or end of a client's connection, in the order of time.
    fn connection(&mut self, one: &Connected) {
        let absences = self.absences.entry(one.client).or_default();
        let is_open = absences.last().is_some_and(|last| last.span.until == i64::MAX);
        match one.change {
            ConnectionChange::Connected => {
                if let Some(last) = absences.last_mut().filter(|_| is_open) {
                    last.span.until = one.at;
                }
            }
            ConnectionChange::Left | ConnectionChange::Lost if !is_open => absences.push(Absence {
                span: Span { from: one.at, until: i64::MAX },
                is_planned: one.change == ConnectionChange::Left,
            }),
            ConnectionChange::Left | ConnectionChange::Lost => {}
        }
    }

    /// Finds the connections that a translator of addresses had forgotten, from the first frame that it dropped for that until
    /// the client gave its connection up.
    fn read_forgotten(
        &mut self,
        dir: &Path,
        clients: &NumberMap<i64, u32>,
        connections: &[Connected],
    ) -> Result<()> {
        let Some(table) = TableReader::open(dir, "packets")? else { return Ok(()) };
        let mut words = Vocabulary::default();
        let forgot = i64::from(words.code(b"nat_forgot"));
        let wanted =
            [("connection", Wanted::Integers), ("entered_ns", Wanted::Integers), ("cause", Wanted::Words)];
        let mut first = NumberMap::<i64, i64>::default();
        table.for_each_batch(&wanted, &mut words, |columns, rows, _| {
            for row in (0..rows).filter(|&row| columns[2].integers[row] == forgot) {
                let at = columns[1].integers[row];
                let known = first.entry(columns[0].integers[row]).or_insert(at);
                *known = at.min(*known);
            }
            Ok(())
        })?;
        for (connection, from) in first {
            let Some(&client) = clients.get(&connection) else { continue };
            let client = i64::from(client);
            let ends = connections.iter().filter(|one| one.client == client && one.at > from);
            let until = ends.map(|one| one.at).next().unwrap_or(i64::MAX);
            self.forgotten.entry(client).or_default().push(Span { from, until });
        }
        Ok(())
    }
}

/// A change of a client's connection.
#[derive(Clone, Copy, Debug)]
struct Connected {
    client: i64,
    at: i64,
    change: ConnectionChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionChange {
    Connected,
    /// In order, or because an event sent it away.
    Left,
    Lost,
}

/// When the events of a recording took place.
#[derive(Default)]
struct EventTimes {
    /// Of the plan's events, in its order, and of those that were fired by hand.
    changes: Vec<i64>,
    changes_by_hand: Vec<i64>,
    connections: Vec<Connected>,
}

impl EventTimes {
    fn read(dir: &Path, is_import: bool) -> Result<EventTimes> {
        let mut found = EventTimes::default();
        let Some(table) = TableReader::open(dir, "events")? else { return Ok(found) };
        let mut words = Vocabulary::default();
        let [connack, close, disconnect, change, by_hand] =
            [&b"connack"[..], b"close", b"disconnect", b"change", b"change_by_hand"]
                .map(|word| i64::from(words.code(word)));
        let wanted = [("at_ns", Wanted::Integers), ("kind", Wanted::Words), ("client", Wanted::Integers)];
        let mut is_known = NumberMap::<i64, ()>::default();
        table.for_each_batch(&wanted, &mut words, |columns, rows, _| {
            for row in 0..rows {
                let [at, kind, client] = [0, 1, 2].map(|column: usize| columns[column].integers[row]);
                if kind == change {
                    found.changes.push(at);
                } else if kind == by_hand {
                    found.changes_by_hand.push(at);
                }
                let change = match kind {
                    _ if client == ABSENT => continue,
                    kind if kind == connack => ConnectionChange::Connected,
                    kind if kind == close => ConnectionChange::Left,
                    kind if kind == disconnect => ConnectionChange::Lost,
                    _ => continue,
                };
                // Of a capture nobody knows who was connected when it began.
                let is_first = is_known.insert(client, ()).is_none();
                if is_first && change == ConnectionChange::Connected && !is_import {
                    found.connections.push(Connected {
                        client,
                        at: i64::MIN + 1,
                        change: ConnectionChange::Left,
                    });
                }
                found.connections.push(Connected { client, at, change });
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The events that were fired by hand.
fn by_hand(dir: &Path) -> Result<Vec<Value>> {
    let path = dir.join(BY_HAND);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        outcome => outcome.map_err(|source| Error::Disk { action: "read", path, source })?,
    };
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.map(|mut line| line["event"].take()).collect())
}

fn spans<K: Copy + Eq + std::hash::Hash>(
    of: &NumberMap<K, Vec<Span>>,
    key: K,
) -> impl Iterator<Item = Span> + '_ {
    of.get(&key).into_iter().flatten().copied()
}

/// Begins or ends the last span of what is known; without an end it goes on.
fn begin_or_end<K: Eq + std::hash::Hash>(
    of: &mut NumberMap<K, Vec<Span>>,
    key: Option<K>,
    at: i64,
    [begins, ends]: [bool; 2],
) {
    let Some(key) = key.filter(|_| begins || ends) else { return };
    let spans = of.entry(key).or_default();
    let open = spans.last_mut().filter(|last| last.until == i64::MAX);
    match open {
        Some(last) if ends => last.until = at,
        None if begins => spans.push(Span { from: at, until: i64::MAX }),
        _ => {}
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_away_from_its_leaving_until_it_is_connected() {
        let mut holds = Holds::default();
        for (at, change) in [
            (i64::MIN + 1, ConnectionChange::Left),
            (10, ConnectionChange::Connected),
            (50, ConnectionChange::Lost),
            (60, ConnectionChange::Left),
            (70, ConnectionChange::Connected),
            (90, ConnectionChange::Left),
        ] {
            holds.connection(&Connected { client: 3, at, change });
        }
        let found: Vec<_> =
            holds.absences[&3].iter().map(|one| (one.span.from, one.span.until, one.is_planned)).collect();
        assert_eq!(found, [(i64::MIN + 1, 10, true), (50, 70, false), (90, i64::MAX, true)]);
    }

    #[test]
    fn what_goes_down_twice_is_down_once_until_it_comes_up() {
        let mut down = NumberMap::default();
        for (at, is) in [(5, [true, false]), (6, [true, false]), (9, [false, true]), (12, [false, true])] {
            begin_or_end(&mut down, Some(1_usize), at, is);
        }
        assert_eq!(down[&1], [Span { from: 5, until: 9 }]);
        begin_or_end(&mut down, None, 20, [true, false]);
        assert_eq!(down.len(), 1);
    }
}
