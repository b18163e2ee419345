//! Shared subscriptions: which of them a message has not reached, and whether it may still reach a member.
//!
//! ```text
//!   of a member:   a later message of the same publisher, topic and QoS came ─► it comes here no more
//!                  QoS 0: away when the broker had it, or that connection is over ─► it comes here no more
//!                  QoS 1, 2: the session that was given it is over ─► it comes here no more
//!                  otherwise ─► it may still come
//! ```
//!
//! Where it comes to no member any more it is lost. If all but one would have got it, had it been given to them, that one is named: it
//! was the one's turn. This needs a broker that chooses once for each message ([`Share::is_final`]); of any other nothing follows
//! from where the members were.
//!
//! What it does not know: whose turn it was. Topics of which somebody may get copies by several subscriptions, or from a
//! relay, are left out: there nobody can tell which copy is whose.

use std::collections::HashMap;

use crate::fate::{Judge, UndeliveredMessage};
use crate::message_rows::{GatheredDelivery, Latest};
use crate::origin::{CopyOrigin, SESSION_PRESENT};
use crate::untraced::UntracedDeliveries;
use mqttlab_rows::{Event, EventKind, Layout, LossCause, Sent, Share};
use mqttlab_units::{Duration, Instant};

/// The shared subscriptions of topics where it is known which copy is whose.
#[derive(Default)]
pub(crate) struct TopicShares<'a>(HashMap<u32, Vec<&'a Share>>);

impl<'a> TopicShares<'a> {
    pub(crate) fn of(layout: &'a Layout) -> TopicShares<'a> {
        let mut by_topic: HashMap<u32, Vec<&Share>> = HashMap::new();
        for share in &layout.shares {
            share.topics.iter().for_each(|topic| by_topic.entry(*topic).or_default().push(share));
        }
        by_topic.retain(|&topic, shares| {
            let mut takers: Vec<u32> = layout.receivers_of(topic).to_vec();
            takers.extend(shares.iter().flat_map(|share| &share.members).map(|member| member.client));
            let count = takers.len();
            takers.sort_unstable();
            takers.dedup();
            takers.len() == count
                && shares.len() == layout.shares_of(topic) as usize
                && !layout.is_relayed(topic)
        });
        TopicShares(by_topic)
    }

    /// Those of a topic that have none of these deliveries; `None` where nobody knows which.
    pub(crate) fn unserved(&self, topic: u32, deliveries: &[GatheredDelivery]) -> Option<Vec<&'a Share>> {
        let lacks_it = |share: &&Share| {
            let live = deliveries.iter().filter(|copy| copy.origin == CopyOrigin::Live);
            !live.into_iter().any(|copy| is_member(share, copy.row.subscriber))
        };
        Some(self.0.get(&topic)?.iter().copied().filter(lacks_it).collect())
    }
}

pub(crate) fn is_member(share: &Share, client: u32) -> bool {
    share.members.binary_search_by_key(&client, |member| member.client).is_ok()
}

/// What there is to say of a message that reached no member of a shared subscription.
pub(crate) struct ShareEvidence<'a> {
    pub(crate) judge: &'a Judge<'a>,
    pub(crate) latest: Option<&'a Latest>,
    pub(crate) untraced: &'a UntracedDeliveries,
}

impl ShareEvidence<'_> {
    /// With what is known of the message by its share's members, and whose turn it was, where that is certain.
    pub(crate) fn of(
        &self,
        share: &Share,
        deliveries: &[GatheredDelivery],
        sent: &Sent,
        absent: UndeliveredMessage,
    ) -> (UndeliveredMessage, Option<u32>) {
        let overtaken = |client: u32| self.latest.and_then(|latest| latest.overtakes(sent, client));
        let members = || share.members.iter().map(|member| member.client);
        let others = self.judge.layout().receivers_of(sent.topic).iter().copied();
        // Its broker had it before whatever it passed on later.
        let later = others.chain(members()).filter_map(overtaken);
        let received = deliveries.iter().filter(|copy| copy.origin == CopyOrigin::Live);
        let at_broker_by =
            received.map(|copy| copy.row.received).chain(later).chain(absent.acknowledged).min();
        let absent = UndeliveredMessage { at_broker_by, ..absent };
        let verdict = self.judge.members().verdict(self.judge, share, &absent, overtaken);
        let ShareVerdict { is_over, member, cause } = verdict;
        // It may be any member's.
        let may_be = |client| self.untraced.any((client, sent.payload_bytes), sent.sent, overtaken(client));
        let untraced = is_over && members().any(may_be);
        let absent = UndeliveredMessage { overtaken: is_over, instead: cause, untraced, ..absent };
        (absent, member.filter(|_| !untraced))
    }
}

/// When members of shared subscriptions were connected and subscribed.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberTimes(HashMap<u32, MemberHistory>);

#[derive(Clone, Debug, Default)]
struct MemberHistory {
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
enum Prospect {
    /// It may still come to it.
    Open,
    /// It was not given it, or it would have it.
    NotGiven,
    /// If it was given it, it is lost by this.
    Lost(LossCause),
}

/// What a shared subscription's members say of a message that reached none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ShareVerdict {
    /// Whether it can come to no member any more.
    is_over: bool,
    /// Whose turn it was, where that is certain.
    member: Option<u32>,
    /// What it is lost by.
    cause: Option<LossCause>,
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

    /// What the members of a share say of a message. `overtaken`: when a member got the last message, if that was a later one of the
    /// same publisher, topic and QoS.
    fn verdict(
        &self,
        judge: &Judge<'_>,
        share: &Share,
        absent: &UndeliveredMessage,
        overtaken: impl Fn(u32) -> Option<Instant>,
    ) -> ShareVerdict {
        let (mut member, mut causes, mut lost) = (None, Vec::new(), 0);
        for known in &share.members {
            let history = self.0.get(&known.client).filter(|_| judge.knows_connections(known.client, absent));
            let (Some(history), Some(qos)) = (history, known.qos) else { return ShareVerdict::default() };
            let facts = MemberFacts {
                qos: absent.qos.min(qos),
                overtaken: overtaken(known.client),
                drops: judge.drops_for(known.client),
                lasts: judge.session_lasts(known.client),
                ends: judge.ends(),
            };
            match history.prospect(absent, facts) {
                Prospect::Open => return ShareVerdict::default(),
                Prospect::NotGiven => {}
                Prospect::Lost(cause) => {
                    lost += 1;
                    member = Some(known.client);
                    causes.push(cause);
                }
            }
        }
        causes.dedup();
        // Of several causes none is certain.
        let cause = if let [cause] = causes[..] { cause } else { LossCause::Overtaken };
        ShareVerdict { is_over: true, member: member.filter(|_| lost == 1), cause: Some(cause) }
    }
}

/// What there is to judge a member by, beside its connections.
#[derive(Clone, Copy)]
struct MemberFacts {
    /// The quality of service at which it would have got the message.
    qos: u8,
    overtaken: Option<Instant>,
    /// Whether its broker has said that it dropped messages for it.
    drops: bool,
    /// How long its session outlives its connection; `None`: for ever.
    lasts: Option<Duration>,
    ends: RunEnds,
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

    fn prospect(&self, absent: &UndeliveredMessage, facts: MemberFacts) -> Prospect {
        // A publisher that has no acknowledgement may send it again.
        let had = if absent.qos > 0 { absent.acknowledged } else { absent.at_broker_by };
        let (Some(first), Some(last)) = (self.connections.first(), self.connections.last()) else {
            return Prospect::NotGiven;
        };
        let asked = self.connections.iter().find_map(|connection| connection.subscribed);
        let is_later = asked.zip(had).is_some_and(|(asked, had)| asked >= had);
        if is_later || asked.is_none() && !first.resumed {
            return Prospect::NotGiven;
        }
        if let Some(overtaken) = facts.overtaken {
            return self.passed_over(absent, overtaken, facts);
        }
        let Some(had) = had else { return Prospect::Open };
        if facts.qos == 0 {
            let may_have_it = last.asked <= had && last.ended.is_none_or(|parting| parting.at >= absent.sent);
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
    fn passed_over(&self, absent: &UndeliveredMessage, overtaken: Instant, facts: MemberFacts) -> Prospect {
        let covers = |connection: &MemberConnection| {
            connection.granted.is_some_and(|granted| granted <= absent.sent)
                && connection.ended.is_none_or(|parting| parting.at >= overtaken)
        };
        if self.connections.iter().any(covers) && !facts.drops {
            return Prospect::NotGiven;
        }
        let begins_anew =
            |connection: &MemberConnection| !connection.resumed && connection.asked > absent.sent;
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
