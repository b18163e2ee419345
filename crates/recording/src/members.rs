//! When members of shared subscriptions were connected, and whether a message may still come to one.
//!
//! What it does not know: what was sent to whom. `shares` does.

use std::collections::HashMap;

use crate::origin::SESSION_PRESENT;
use mqttlab_rows::{Event, EventKind, Layout, LossCause};
use mqttlab_units::{Duration, Instant};

/// When members of shared subscriptions were connected and subscribed.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberTimes(HashMap<u32, MemberHistory>);

#[derive(Clone, Debug, Default)]
pub(crate) struct MemberHistory {
    asked: Instant,
    connections: Vec<MemberConnection>,
}

#[derive(Clone, Copy, Debug)]
struct MemberConnection {
    /// When its CONNECT was sent.
    asked: Instant,
    /// Whether it went on with the session before.
    resumed: bool,
    /// When its first SUBSCRIBE was sent.
    subscribed: Option<Instant>,
    /// Since when it had a subscription for certain.
    granted: Option<Instant>,
    ended: Option<Parting>,
}

#[derive(Clone, Copy, Debug)]
struct Parting {
    at: Instant,
    /// Whether the client said DISCONNECT.
    announced: bool,
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

impl MemberTimes {
    pub(crate) fn of(layout: &Layout) -> MemberTimes {
        let members = layout.shares.iter().filter(|share| share.is_final).flat_map(|share| &share.members);
        MemberTimes(members.map(|member| (member.client, MemberHistory::default())).collect())
    }

    /// Takes an event of a client's into account. They come in order.
    pub(crate) fn note(&mut self, event: &Event, detail: &[u8]) {
        let Some(member) = event.client.and_then(|client| self.0.get_mut(&client)) else { return };
        let at = event.at;
        match event.kind {
            EventKind::Connect => {
                member.end(Parting { at, announced: false });
                member.asked = at;
            }
            EventKind::Connack => {
                let resumed = detail == SESSION_PRESENT;
                let (asked, granted) = (member.asked, resumed.then_some(at));
                let connection = MemberConnection { asked, resumed, subscribed: None, granted, ended: None };
                member.connections.push(connection);
            }
            EventKind::Subscribe => member.last(|last| last.subscribed = last.subscribed.or(Some(at))),
            EventKind::Suback => member.last(|last| last.granted = last.granted.or(Some(at))),
            EventKind::Close => member.end(Parting { at, announced: true }),
            EventKind::Disconnect | EventKind::Reconnect => member.end(Parting { at, announced: false }),
            // Without a word to anybody.
            EventKind::Note if detail == VANISHED => member.end(Parting { at, announced: false }),
            _ => {}
        }
    }

    /// Of a member all that is known; `None` where its broker may choose again.
    pub(crate) fn of_member(&self, client: u32) -> Option<&MemberHistory> {
        self.0.get(&client)
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

impl MemberHistory {
    fn last(&mut self, change: impl FnMut(&mut MemberConnection)) {
        self.connections.last_mut().into_iter().for_each(change);
    }

    fn end(&mut self, parting: Parting) {
        self.last(|last| last.ended = last.ended.or(Some(parting)));
    }

    /// Of a message that reached nobody.
    pub(crate) fn prospect(&self, facts: MemberFacts) -> Prospect {
        let had = facts.had;
        let (Some(first), Some(last)) = (self.connections.first(), self.connections.last()) else {
            return Prospect::NotGiven;
        };
        let asked = self.connections.iter().find_map(|connection| connection.subscribed);
        let is_later = asked.zip(had).is_some_and(|(asked, had)| asked >= had);
        if is_later || asked.is_none() && !first.resumed {
            return Prospect::NotGiven;
        }
        if let Some(overtaken) = facts.overtaken {
            return self.passed_over(overtaken, facts);
        }
        let Some(had) = had else { return Prospect::Open };
        if facts.qos == 0 {
            let may_have_it = last.asked <= had && last.ended.is_none_or(|parting| parting.at >= facts.sent);
            return match may_have_it && !last.is_over(facts.ends) {
                true => Prospect::Open,
                // On a connection that is over, or dropped for a client without one.
                false => Prospect::Lost(LossCause::ConnectionLost),
            };
        }
        let begins_anew = |connection: &MemberConnection| !connection.resumed && connection.asked >= had;
        match self.connections.iter().any(begins_anew) || last.session_is_over(facts) {
            true => Prospect::Lost(LossCause::SessionEnded),
            false => Prospect::Open,
        }
    }

    /// A later message came to it. One that it had been given would have come before, unless a connection ended in between.
    fn passed_over(&self, overtaken: Instant, facts: MemberFacts) -> Prospect {
        let covers = |connection: &MemberConnection| {
            connection.granted.is_some_and(|granted| granted <= facts.sent)
                && connection.ended.is_none_or(|parting| parting.at >= overtaken)
        };
        if self.connections.iter().any(covers) && !facts.drops {
            return Prospect::NotGiven;
        }
        let begins_anew =
            |connection: &MemberConnection| !connection.resumed && connection.asked > facts.sent;
        let begins_anew = self.connections.iter().any(begins_anew);
        Prospect::Lost(match facts.qos {
            _ if facts.drops => LossCause::Overtaken,
            0 => LossCause::ConnectionLost,
            _ if begins_anew => LossCause::SessionEnded,
            _ => LossCause::Overtaken,
        })
    }
}

impl MemberConnection {
    /// Whether it ended before the run did: what it carried then comes no more.
    fn is_over(&self, ends: RunEnds) -> bool {
        self.ended.is_some_and(|parting| {
            !parting.announced || ends.farewells.is_some_and(|until| parting.at < until)
        })
    }

    /// Whether its session ended with it, or later: a broker that was told knows when.
    fn session_is_over(&self, facts: MemberFacts) -> bool {
        let told = self.ended.filter(|parting| parting.announced && self.is_over(facts.ends));
        told.zip(facts.lasts).is_some_and(|(parting, lasts)| {
            let rounded = if lasts == Duration::ZERO { lasts } else { lasts + ROUNDED };
            parting.at + rounded <= facts.ends.end
        })
    }
}

/// What clients note when an event takes their power.
const VANISHED: &[u8] = b"vanished";
/// Mosquitto counts whole seconds, from a clock that it reads once in a turn.
const ROUNDED: Duration = Duration::from_s(2);
