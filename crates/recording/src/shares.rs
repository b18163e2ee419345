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

use crate::connection_times::{MemberFacts, Prospect};
use crate::fate::{Judge, UndeliveredMessage};
use crate::latest::Latest;
use crate::message_rows::GatheredDelivery;
use crate::origin::CopyOrigin;
use crate::untraced::UntracedDeliveries;
use mqttlab_rows::{Layout, LossCause, Sent, Share};
use mqttlab_units::Instant;

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
            let mut takers: Vec<u32> = layout.subscribers_of(topic).to_vec();
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
        let others = self.judge.layout().receivers_of(sent.topic, sent.publisher).iter();
        // Its broker had it before whatever it passed on later.
        let later = others.chain(members()).filter_map(overtaken);
        let received = deliveries.iter().filter(|copy| copy.origin == CopyOrigin::Live);
        let at_broker_by =
            received.map(|copy| copy.row.received).chain(later).chain(absent.acknowledged).min();
        let absent = UndeliveredMessage { at_broker_by, ..absent };
        let verdict = self.verdict(share, &absent, overtaken);
        let ShareVerdict { is_over, member, cause } = verdict;
        // It may be any member's.
        let may_be = |client| self.untraced.any((client, sent.payload_bytes), sent.sent, overtaken(client));
        // Of messages with one content it may have come, too, while members are there.
        let is_told = |cause: &LossCause| is_over || *cause == LossCause::EqualContent;
        let untraced = members().find_map(may_be).filter(is_told);
        let absent = UndeliveredMessage { overtaken: is_over, instead: cause, untraced, ..absent };
        (absent, member.filter(|_| untraced.is_none()))
    }

    /// What the members of a share say of a message. `overtaken`: when a member got the last message, if that was a later one of the
    /// same publisher, topic and QoS.
    fn verdict(
        &self,
        share: &Share,
        absent: &UndeliveredMessage,
        overtaken: impl Fn(u32) -> Option<Instant>,
    ) -> ShareVerdict {
        let judge = self.judge;
        // A publisher that has no acknowledgement may send it again.
        let had = if absent.qos > 0 { absent.acknowledged } else { absent.at_broker_by };
        let (mut member, mut causes, mut lost) = (None, Vec::new(), 0);
        for known in &share.members {
            let history = judge.connections().of_member(known.client);
            let history = history.filter(|_| judge.knows_connections(known.client, absent));
            let (Some(history), Some(qos)) = (history, known.qos) else { return ShareVerdict::default() };
            let facts = MemberFacts {
                sent: absent.sent,
                had,
                qos: absent.qos.min(qos),
                overtaken: overtaken(known.client),
                drops: judge.drops_for(known.client),
                lasts: judge.session_lasts(known.client),
                ends: judge.ends(),
            };
            match history.prospect(facts) {
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
