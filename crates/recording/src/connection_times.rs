//! When clients were connected and subscribed; what was lost between two connections, and whether a message may still come to a
//! member of a shared subscription.
//!
//! What it does not know: what was sent to whom. `shares` and `latest` do.

use std::collections::BTreeSet;

use crate::origin::SESSION_PRESENT;
use mqttlab_rows::{Event, EventKind, Layout, LossCause};
use mqttlab_units::{Duration, Instant, OptionalInstant};

/// When clients were connected and subscribed, of those whose events tell it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTimes {
    /// By client.
    histories: Vec<ClientHistory>,
    /// Members of shared subscriptions whose broker chooses once for each message.
    members: BTreeSet<u32>,
    /// When servers started.
    starts: Vec<Instant>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClientHistory {
    is_told: bool,
    asked: Instant,
    connections: Vec<ClientConnection>,
}

#[derive(Clone, Copy, Debug)]
struct ClientConnection {
    /// When its CONNECT was sent.
    asked: Instant,
    /// When its first SUBSCRIBE was sent.
    subscribed: OptionalInstant,
    /// Since when it had a subscription for certain.
    granted: OptionalInstant,
    ended: OptionalInstant,
    /// Whether the client said DISCONNECT at its end.
    announced: bool,
    /// Whether it went on with the session before.
    resumed: bool,
}

/// What a member has to do with a message that reached nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// It may still come to it.
    Open,
    /// It was not given it, or it would have it.
    NotGiven,
    /// If it was given it, it is lost by this.
    Lost(LossCause),
}

impl ConnectionTimes {
    pub(crate) fn of(layout: &Layout) -> ConnectionTimes {
        let history = |client: &mqttlab_rows::Client| ClientHistory {
            is_told: client.session.is_some(),
            ..ClientHistory::default()
        };
        let members = layout.shares.iter().filter(|share| share.is_final).flat_map(|share| &share.members);
        ConnectionTimes {
            histories: layout.clients.iter().map(history).collect(),
            members: members.map(|member| member.client).collect(),
            starts: Vec::new(),
        }
    }

    /// Takes an event of a client's into account. They come in order.
    pub(crate) fn note(&mut self, event: &Event, detail: &[u8]) {
        let at = event.at;
        if event.kind == EventKind::ServerStart {
            self.starts.push(at);
        }
        let client = event.client.and_then(|client| self.histories.get_mut(client as usize));
        let Some(client) = client.filter(|client| client.is_told) else { return };
        match event.kind {
            EventKind::Connect => {
                client.end(at, false);
                client.asked = at;
            }
            EventKind::Connack => {
                let resumed = detail == SESSION_PRESENT;
                client.connections.push(ClientConnection {
                    asked: client.asked,
                    subscribed: OptionalInstant::NONE,
                    granted: if resumed { at.into() } else { OptionalInstant::NONE },
                    ended: OptionalInstant::NONE,
                    announced: false,
                    resumed,
                });
            }
            EventKind::Subscribe => client.last(|last| last.subscribed = last.subscribed.earlier(at.into())),
            EventKind::Suback => client.last(|last| last.granted = last.granted.earlier(at.into())),
            EventKind::Close => client.end(at, true),
            EventKind::Disconnect | EventKind::Reconnect => client.end(at, false),
            // Without a word to anybody.
            EventKind::Note if detail == VANISHED => client.end(at, false),
            _ => {}
        }
    }

    /// Of a member of a shared subscription all that is known; `None` where its broker may choose again.
    pub(crate) fn of_member(&self, client: u32) -> Option<&ClientHistory> {
        self.members.contains(&client).then(|| &self.histories[client as usize])
    }

    /// Whether a connection of a client ended between two instants.
    pub(crate) fn ended_between(&self, client: u32, from: Instant, until: Instant) -> bool {
        self.ends_between(client, from, until).next().is_some()
    }

    /// The connections of a client that ended between two instants, each with the one behind it, if there is one.
    fn ends_between(
        &self,
        client: u32,
        from: Instant,
        until: Instant,
    ) -> impl Iterator<Item = (Instant, Option<&ClientConnection>)> {
        let connections = self.histories.get(client as usize).map_or(&[][..], |known| &known.connections);
        let first = connections.partition_point(|known| known.ended.get().is_some_and(|ended| ended < from));
        let rest = &connections[first..];
        let nexts = rest.iter().skip(1).map(Some).chain([None]);
        let ends = rest.iter().zip(nexts).map(|(known, next)| known.ended.get().map(|ended| (ended, next)));
        ends.map_while(|end| end).take_while(move |(ended, _)| *ended <= until)
    }

    /// What a message is lost by that a receiver should have got between two others, at this QoS, where its connection ended in between.
    /// `had`: when its broker acknowledged it.
    pub(crate) fn lost_between(
        &self,
        receiver: u32,
        message: (Instant, Option<Instant>, u8),
        (from, until): (Instant, Instant),
    ) -> Option<LossCause> {
        let (sent, had, qos) = message;
        self.ends_between(receiver, from, until).find_map(|(ended, next)| {
            let is_back = next.and_then(|next| next.granted.get());
            // It was sent when the next connection had its subscription: what ended before has nothing to do with it.
            if is_back.is_some_and(|back| back <= sent) {
                return None;
            }
            if qos == 0 {
                return Some(LossCause::ConnectionLost);
            }
            let next = next.filter(|next| !next.resumed)?;
            let is_new = |start: &Instant| ended <= *start && *start <= next.asked;
            // A server that started without the session had it only then.
            let start = self.starts.iter().copied().rfind(is_new);
            Some(match start.zip(had) {
                Some((start, had)) if start <= had => LossCause::NotSubscribed,
                _ => LossCause::SessionEnded,
            })
        })
    }
}

/// What there is to judge a member by, beside its connections.
#[derive(Clone, Copy)]
pub(crate) struct MemberFacts {
    pub(crate) sent: Instant,
    /// When its broker had the message, and its publisher sends it no more.
    pub(crate) had: Option<Instant>,
    /// The quality of service at which it would have got it.
    pub(crate) qos: u8,
    /// When the last message came to it, if that was a later one of the same publisher, topic and QoS.
    pub(crate) overtaken: Option<Instant>,
    /// Whether its broker has said that it dropped messages for it.
    pub(crate) drops: bool,
    /// How long its session outlives its connection; `None`: for ever.
    pub(crate) lasts: Option<Duration>,
    pub(crate) ends: RunEnds,
}

/// When a recording ended.
#[derive(Clone, Copy)]
pub(crate) struct RunEnds {
    /// Clients that disconnect before this do so because an event says so, and not because the run is over.
    pub(crate) farewells: Option<Instant>,
    pub(crate) end: Instant,
}

impl ClientHistory {
    fn last(&mut self, change: impl FnMut(&mut ClientConnection)) {
        self.connections.last_mut().into_iter().for_each(change);
    }

    fn end(&mut self, at: Instant, announced: bool) {
        self.last(|last| {
            if last.ended.is_none() {
                (last.ended, last.announced) = (at.into(), announced);
            }
        });
    }

    /// Of a message that reached nobody.
    pub(crate) fn prospect(&self, facts: MemberFacts) -> Prospect {
        let had = facts.had;
        let (Some(first), Some(last)) = (self.connections.first(), self.connections.last()) else {
            return Prospect::NotGiven;
        };
        let asked = self.connections.iter().find_map(|connection| connection.subscribed.get());
        let is_later = asked.zip(had).is_some_and(|(asked, had)| asked >= had);
        if is_later || asked.is_none() && !first.resumed {
            return Prospect::NotGiven;
        }
        if let Some(overtaken) = facts.overtaken {
            return self.passed_over(overtaken, facts);
        }
        let Some(had) = had else { return Prospect::Open };
        if facts.qos == 0 {
            let may_have_it = last.asked <= had && last.ended.get().is_none_or(|ended| ended >= facts.sent);
            return match may_have_it && !last.is_over(facts.ends) {
                true => Prospect::Open,
                // On a connection that is over, or dropped for a client without one.
                false => Prospect::Lost(LossCause::ConnectionLost),
            };
        }
        let begins_anew = |connection: &ClientConnection| !connection.resumed && connection.asked >= had;
        match self.connections.iter().any(begins_anew) || last.session_is_over(facts) {
            true => Prospect::Lost(LossCause::SessionEnded),
            false => Prospect::Open,
        }
    }

    /// A later message came to it. One that it had been given would have come before, unless a connection ended in between.
    fn passed_over(&self, overtaken: Instant, facts: MemberFacts) -> Prospect {
        let covers = |connection: &ClientConnection| {
            connection.granted.is_due(facts.sent)
                && connection.ended.get().is_none_or(|ended| ended >= overtaken)
        };
        if self.connections.iter().any(covers) && !facts.drops {
            return Prospect::NotGiven;
        }
        let begins_anew =
            |connection: &ClientConnection| !connection.resumed && connection.asked > facts.sent;
        let begins_anew = self.connections.iter().any(begins_anew);
        Prospect::Lost(match facts.qos {
            _ if facts.drops => LossCause::Overtaken,
            0 => LossCause::ConnectionLost,
            _ if begins_anew => LossCause::SessionEnded,
            _ => LossCause::Overtaken,
        })
    }
}

impl ClientConnection {
    /// Whether it ended before the run did: what it carried then comes no more.
    fn is_over(&self, ends: RunEnds) -> bool {
        self.ended
            .get()
            .is_some_and(|ended| !self.announced || ends.farewells.is_some_and(|until| ended < until))
    }

    /// Whether its session ended with it, or later: a broker that was told knows when.
    fn session_is_over(&self, facts: MemberFacts) -> bool {
        let told = self.ended.get().filter(|_| self.announced && self.is_over(facts.ends));
        told.zip(facts.lasts).is_some_and(|(ended, lasts)| {
            let rounded = if lasts == Duration::ZERO { lasts } else { lasts + ROUNDED };
            ended + rounded <= facts.ends.end
        })
    }
}

/// What clients note when an event takes their power.
const VANISHED: &[u8] = b"vanished";
/// Mosquitto counts whole seconds, from a clock that it reads once in a turn.
const ROUNDED: Duration = Duration::from_s(2);
