//! Between whom deliveries were under way at the end, and what of the scenario or of its servers explains it.
//!
//! ```text
//!   under way ──► an event that nothing ended? the client's own farewell? a link that forgets or polices?
//!             ──► its publisher was heard long after, or its receiver got later messages? ─► the server ran on
//!             ──► nothing explains it
//! ```
//!
//! A server that runs on and does not pass a message on has not stood still: it refuses the message or holds it. It ran on where
//! messages that the publisher sent later were acknowledged or delivered, and, for a message that it has acknowledged, where
//! messages that were sent later reached the receiver.
//!
//! What it does not know: who of a shared subscription was to have a message; any member may be the one.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_rows::{Hold, HoldCause, Layout, MessageFate, Phase};
use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::summary::LinkTally;
use crate::tables::MessageRow;

/// By client, when the last message was sent that is known to have passed a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heard {
    /// Those that it published, and that were acknowledged or delivered.
    from: Vec<u64>,
    /// Those that it received.
    to: Vec<u64>,
}

/// A publisher, a receiver (`None`: a member of a shared subscription), a QoS.
type Pair = (u32, Option<u32>, u8);

/// Deliveries of one pair and topic that were under way.
#[derive(Clone, Copy, Debug)]
struct Wait {
    count: u64,
    /// When the first of the messages was sent.
    sent_ns: u64,
    /// When the first acknowledgement of one of them came.
    acknowledged_ns: Option<u64>,
}

/// The deliveries of the measurement that were under way at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) heard: Heard,
    pairs: BTreeMap<Pair, BTreeMap<Box<str>, Wait>>,
}

/// What there is to explain them by.
pub(crate) struct Surroundings<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) holds: &'a [Hold],
    pub(crate) links: &'a [LinkTally],
    /// By client, whether it had said goodbye before the measurement ended and had not come back.
    pub(crate) left: &'a [bool],
    pub(crate) is_modelled: bool,
}

/// What explains deliveries that were under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// How many are explained.
    pub(crate) explained: u64,
    /// A sentence for each explanation.
    pub(crate) remarks: Vec<String>,
    /// Clients from or to which something keeps messages.
    pub(crate) held: BTreeSet<u32>,
}

/// Deliveries with one explanation.
#[derive(Clone, Debug, Default)]
struct Explained {
    count: u64,
    from: BTreeSet<u32>,
    to: BTreeSet<u32>,
    is_shared: bool,
    /// The clients that the explanation is about.
    about: BTreeSet<u32>,
}

impl Waiting {
    /// Goes on from what was heard before.
    pub(crate) fn after(heard: Heard) -> Waiting {
        Waiting { heard, pairs: BTreeMap::new() }
    }

    /// Takes a row of the messages' table into account.
    pub(crate) fn count(&mut self, row: &MessageRow<'_>) {
        let (Some(publisher), Some(sent_ns)) = (row.publisher, row.sent_ns) else { return };
        let is_delivered = row.fate == MessageFate::Delivered;
        if is_delivered || row.acknowledged_ns.is_some() {
            note(&mut self.heard.from, publisher, sent_ns);
        }
        if let Some(subscriber) = row.subscriber.filter(|_| is_delivered) {
            note(&mut self.heard.to, subscriber, sent_ns);
        }
        if row.fate == MessageFate::UnderWay && row.phase == Phase::Measurement {
            self.wait((publisher, row.subscriber, row.qos.unwrap_or(0)), row.topic.unwrap_or(""), row);
        }
    }

    fn wait(&mut self, pair: Pair, topic: &str, row: &MessageRow<'_>) {
        let sent_ns = row.sent_ns.unwrap_or(0);
        let topics = self.pairs.entry(pair).or_default();
        if let Some(wait) = topics.get_mut(topic) {
            wait.count += 1;
            wait.sent_ns = wait.sent_ns.min(sent_ns);
            wait.acknowledged_ns = wait.acknowledged_ns.into_iter().chain(row.acknowledged_ns).min();
        } else {
            topics.insert(topic.into(), Wait { count: 1, sent_ns, acknowledged_ns: row.acknowledged_ns });
        }
    }

    /// What explains them.
    pub(crate) fn explained(&self, flow: &Flow, around: &Surroundings<'_>) -> Explanation {
        let holds = around.holds.iter().map(|hold| (hold, around.dropped(hold)));
        let holds: Vec<(&Hold, u64)> =
            holds.filter(|(hold, dropped)| around.is_in_force(hold, *dropped)).collect();
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        for (place, (hold, _)) in holds.iter().enumerate() {
            hold.clients.iter().for_each(|client| {
                first.entry(*client).or_insert(place);
            });
        }
        let mut by_hold = vec![Explained::default(); holds.len()];
        let (mut by_farewell, mut by_server) = (Explained::default(), Explained::default());
        let members = around.members();
        for (&(publisher, subscriber, qos), topics) in &self.pairs {
            for (topic, wait) in topics {
                let receivers = subscriber.map_or_else(
                    || members.get(&**topic).cloned().unwrap_or_default(),
                    |subscriber| BTreeSet::from([subscriber]),
                );
                let pair = (publisher, subscriber);
                let ends = || receivers.iter().copied().chain([publisher]);
                if let Some(place) = ends().filter_map(|end| first.get(&end).copied()).min() {
                    let clients = &holds[place].0.clients;
                    by_hold[place].add(pair, wait, ends().filter(|end| clients.contains(end)));
                } else if receivers.iter().any(|client| around.has_left(*client)) {
                    by_farewell.add(
                        pair,
                        wait,
                        receivers.iter().copied().filter(|client| around.has_left(*client)),
                    );
                } else if self.server_ran_on(publisher, subscriber, qos, wait, flow) {
                    by_server.add(pair, wait, ends());
                }
            }
        }
        let mut found = Explanation::default();
        holds.iter().for_each(|(hold, _)| found.held.extend(&hold.clients));
        for ((hold, dropped), explained) in holds.iter().zip(&by_hold) {
            found.add(explained, flow, around.layout, &cause(hold, *dropped, explained, around.layout));
        }
        let left = format!("{} had disconnected and not come back", around.names(&by_farewell.about));
        found.add(&by_farewell, flow, around.layout, &left);
        // A flow that is only slow has such deliveries, too: it is no sentence where nobody would say that something stood still.
        if flow.stood_still(flow.under_way.saturating_sub(found.explained)) {
            let see = if around.is_modelled { "" } else { "; see its access rules and its log" };
            let words =
                format!("the server ran on meanwhile, so that it refuses these messages or holds them{see}");
            found.add(&by_server, flow, around.layout, &words);
        }
        found
    }

    /// Whether a server has passed on or acknowledged what was sent long after the first of these messages. A third of the cool-down
    /// is as long as nearly all of the others took at most.
    fn server_ran_on(
        &self,
        publisher: u32,
        subscriber: Option<u32>,
        qos: u8,
        wait: &Wait,
        flow: &Flow,
    ) -> bool {
        let long_ns = flow.cool_down_ns / 3;
        let is_long_after = |heard: &[u64], client: u32, since_ns: u64| {
            heard.get(client as usize).is_some_and(|&last_ns| last_ns >= since_ns.saturating_add(long_ns))
        };
        let publishes = is_long_after(&self.heard.from, publisher, wait.sent_ns);
        let receives = qos > 0
            && subscriber.zip(wait.acknowledged_ns).is_some_and(|(subscriber, acknowledged_ns)| {
                is_long_after(&self.heard.to, subscriber, acknowledged_ns)
            });
        publishes || receives
    }
}

/// Notes that a message of this time was heard of a client.
fn note(heard: &mut Vec<u64>, client: u32, sent_ns: u64) {
    let place = client as usize;
    if place >= heard.len() {
        // A damaged row may name any number.
        if place > CLIENTS_MAX {
            return;
        }
        heard.resize(place + 1, 0);
    }
    heard[place] = heard[place].max(sent_ns);
}

impl Surroundings<'_> {
    /// How many frames links have dropped by which something holds.
    fn dropped(&self, hold: &Hold) -> u64 {
        let HoldCause::Drops { links, cause } = &hold.cause else { return 0 };
        let tallies = self.links.iter().filter(|tally| links.contains(&tally.link));
        tallies.filter_map(|tally| tally.dropped.get(cause.as_str())).sum()
    }

    /// Whether it holds anything at all.
    fn is_in_force(&self, hold: &Hold, dropped: u64) -> bool {
        let HoldCause::Event { lossy, .. } = &hold.cause else { return dropped > 0 };
        let mut tallies = self.links.iter().filter(|tally| lossy.contains(&tally.link));
        lossy.is_empty() || tallies.any(|tally| tally.frames > tally.delivered)
    }

    fn has_left(&self, client: u32) -> bool {
        self.left.get(client as usize).copied().unwrap_or(false)
    }

    /// By topic, who has a shared subscription to it.
    fn members(&self) -> BTreeMap<&str, BTreeSet<u32>> {
        let mut members: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for share in &self.layout.shares {
            for &topic in &share.topics {
                let known = members.entry(self.layout.topic_name(topic)).or_default();
                known.extend(share.members.iter().map(|member| member.client));
            }
        }
        members
    }

    fn names(&self, clients: &BTreeSet<u32>) -> String {
        named(self.layout, clients)
    }
}

impl Explained {
    fn add(
        &mut self,
        (publisher, subscriber): (u32, Option<u32>),
        wait: &Wait,
        about: impl Iterator<Item = u32>,
    ) {
        self.count += wait.count;
        self.from.insert(publisher);
        self.to.extend(subscriber);
        self.is_shared |= subscriber.is_none();
        self.about.extend(about);
    }
}

impl Explanation {
    fn add(&mut self, explained: &Explained, flow: &Flow, layout: &Layout, words: &str) {
        if explained.count == 0 {
            return;
        }
        self.explained += explained.count;
        let shared = explained.is_shared.then(|| "a shared subscription".to_owned());
        let to = (!explained.to.is_empty()).then(|| named(layout, &explained.to));
        let to: Vec<String> = to.into_iter().chain(shared).collect();
        let (count, expected) = (explained.count, flow.expected);
        let (from, to) = (named(layout, &explained.from), to.join(" and "));
        self.remarks.push(format!(
            "{count} of {expected} deliveries were under way at the end: {words} (from {from} to {to})."
        ));
    }
}

/// What holds deliveries, in words.
fn cause(hold: &Hold, dropped: u64, explained: &Explained, layout: &Layout) -> String {
    match &hold.cause {
        HoldCause::Event { what, names, state, event, .. } => {
            let (who, several) = match &names[..] {
                [] => (named(layout, &explained.about), explained.about.len() > 1),
                [name] => (format!("the {what} `{name}`"), false),
                names => (format!("the {what}s {}", quoted(names)), true),
            };
            format!("{who} {} {state} the event `{event}`", if several { "were" } else { "was" })
        }
        HoldCause::Drops { links, cause } => {
            let names = quoted(links);
            let frames = if dropped == 1 { "1 frame".into() } else { format!("{dropped} frames") };
            match cause {
                mqttlab_rows::Cause::NatForgot => {
                    format!(
                        "the address translation at {names} had forgotten connections and dropped {frames}"
                    )
                }
                _ => format!("the policer of {names} dropped {frames}"),
            }
        }
    }
}

fn named(layout: &Layout, clients: &BTreeSet<u32>) -> String {
    let name = |client: &u32| layout.clients.get(*client as usize).map_or("?", |client| &client.name);
    listed(clients.iter().map(|client| format!("`{}`", name(client))), clients.len())
}

fn quoted(names: &[String]) -> String {
    listed(names.iter().map(|name| format!("`{name}`")), names.len())
}

/// The first few names, and how many more there are.
fn listed(names: impl Iterator<Item = String>, count: usize) -> String {
    let shown = names.take(NAMES_MAX).collect::<Vec<_>>().join(", ");
    if count > NAMES_MAX { format!("{shown} and {} more", count - NAMES_MAX) } else { shown }
}

const NAMES_MAX: usize = 3;
const CLIENTS_MAX: usize = 1 << 24;

#[cfg(test)]
mod tests {
    use mqttlab_rows::{Cause, Client, Share, ShareMember, Topic};

    use super::*;
    use crate::join::EMPTY;

    const S: u64 = 1_000_000_000;

    fn layout() -> Layout {
        let client = |name: &str| Client {
            name: name.into(),
            group: name.into(),
            host: 0,
            session: None,
            is_program: false,
        };
        let topic = |name: &str| Topic { name: name.into(), receivers: 0, shares: 0, relayed: false };
        Layout {
            clients: ["dev", "app", "near", "far"].map(client).into(),
            topics: vec![topic("open"), topic("secret")],
            ..Layout::default()
        }
    }

    /// Ten messages a second to `open` for ten seconds, of which those from the third on do not come to `app`.
    fn waiting(fate: impl Fn(u64) -> (MessageFate, Option<u64>), subscriber: Option<u32>) -> (Waiting, Flow) {
        let mut waiting = Waiting::default();
        let mut flow = Flow { cool_down_ns: 6 * S, end_ns: 16 * S, ..Flow::default() };
        for number in 0..100 {
            let sent_ns = number * S / 10;
            let (fate, acknowledged_ns) = fate(number);
            let row = MessageRow {
                publisher: Some(0),
                subscriber,
                topic: Some("open"),
                qos: Some(1),
                phase: Phase::Measurement,
                sent_ns: Some(sent_ns),
                acknowledged_ns,
                received_ns: (fate == MessageFate::Delivered).then_some(sent_ns + 1),
                latency_ns: (fate == MessageFate::Delivered).then_some(1),
                fate,
                ..EMPTY
            };
            waiting.count(&row);
            flow.count(&row);
        }
        (waiting, flow)
    }

    fn explained(waiting: &(Waiting, Flow), layout: &Layout, holds: &[Hold], left: &[bool]) -> Explanation {
        let dropped = [("nat_forgot", 7)].into();
        let links = [LinkTally {
            link: "wan up".into(),
            direction: "up",
            frames: 9,
            delivered: 2,
            dropped,
            ..LinkTally::default()
        }];
        let around = Surroundings { layout, holds, links: &links, left, is_modelled: false };
        waiting.0.explained(&waiting.1, &around)
    }

    fn event(what: &str, names: &[&str], clients: &[u32]) -> Hold {
        let names = names.iter().map(ToString::to_string).collect();
        let cause = HoldCause::Event {
            what: what.into(),
            names,
            state: "down since".into(),
            event: "outage".into(),
            lossy: Vec::new(),
        };
        Hold { cause, clients: clients.iter().copied().collect() }
    }

    fn drops(link: &str, cause: Cause) -> Hold {
        Hold { cause: HoldCause::Drops { links: vec![link.into()], cause }, clients: [1].into() }
    }

    fn frozen(number: u64) -> (MessageFate, Option<u64>) {
        if number < 30 {
            (MessageFate::Delivered, Some(number * S / 10 + 1))
        } else {
            (MessageFate::UnderWay, None)
        }
    }

    #[test]
    fn what_the_scenario_holds_is_explained_by_it_and_named() {
        let (rows, layout) = (waiting(frozen, Some(1)), layout());
        let (begin, end) = ("70 of 100 deliveries were under way at the end: ", " (from `dev` to `app`).");
        for (hold, words) in [
            (event("", &[], &[1]), "`app` was down since the event `outage`"),
            (event("", &[], &[0, 1]), "`dev`, `app` were down since the event `outage`"),
            (event("server", &["a"], &[0, 1, 2]), "the server `a` was down since the event `outage`"),
            (event("link", &["a", "b"], &[0]), "the links `a`, `b` were down since the event `outage`"),
            (
                drops("wan up", Cause::NatForgot),
                "the address translation at `wan up` had forgotten connections and dropped 7 frames",
            ),
        ] {
            let found = explained(&rows, &layout, &[hold], &[]);
            assert_eq!((found.explained, &found.remarks[..]), (70, &[format!("{begin}{words}{end}")][..]));
        }
        let mut slower = event("link", &["wan"], &[1]);
        for (link, expected) in [("wan up", 70), ("lan", 0)] {
            if let HoldCause::Event { lossy, .. } = &mut slower.cause {
                *lossy = vec![link.into()];
            }
            let found = explained(&rows, &layout, std::slice::from_ref(&slower), &[]);
            assert_eq!(found.explained, expected, "what a link lost or holds alone: {link}");
        }
        let found = explained(&rows, &layout, &[], &[false, true]);
        assert_eq!(found.remarks, [format!("{begin}`app` had disconnected and not come back{end}")]);
    }

    #[test]
    fn what_concerns_others_or_dropped_nothing_explains_nothing() {
        let (rows, layout) = (waiting(frozen, Some(1)), layout());
        let others =
            [event("", &[], &[2, 3]), drops("wan up", Cause::Policer), drops("lan", Cause::NatForgot)];
        assert_eq!(explained(&rows, &layout, &others, &[false, false, true]).remarks, [""; 0]);
    }

    #[test]
    fn any_member_of_a_shared_subscription_may_have_what_did_not_come() {
        let member = |client| ShareMember { client, qos: None };
        let share = Share {
            filter: "$share/g/open".into(),
            topics: vec![0],
            members: vec![member(2), member(3)],
            is_final: true,
        };
        let layout = Layout { shares: vec![share], ..layout() };
        let rows = waiting(frozen, None);
        let found = explained(&rows, &layout, &[event("", &[], &[3])], &[]);
        let words = "the end: `far` was down since the event `outage` (from `dev` to a shared subscription).";
        assert!(found.explained == 70 && found.remarks[0].contains(words), "{found:?}");
    }

    #[test]
    fn a_server_that_acknowledges_on_has_not_stood_still() {
        let layout = layout();
        // It goes on acknowledging, and delivers nothing.
        let refused = |number| match number {
            0 => (MessageFate::Delivered, Some(1)),
            _ => (MessageFate::UnderWay, Some(number * S / 10 + 1)),
        };
        let found = explained(&waiting(refused, Some(1)), &layout, &[], &[]);
        assert!(
            found.explained == 99 && found.remarks[0].contains("the server ran on meanwhile"),
            "{found:?}"
        );
        // It stands still 1.9 s after it took the first of them, shorter than a third of the cool-down.
        let late = |number| match number {
            0..30 => (MessageFate::Delivered, Some(number * S / 10 + 1)),
            30..50 => (MessageFate::UnderWay, Some(number * S / 10 + 1)),
            _ => (MessageFate::UnderWay, None),
        };
        assert_eq!(explained(&waiting(late, Some(1)), &layout, &[], &[]), Explanation::default());
        assert_eq!(explained(&waiting(frozen, Some(1)), &layout, &[], &[]), Explanation::default());
    }

    #[test]
    fn a_flow_that_is_only_slow_has_no_remark() {
        let slow = |number| match number {
            0..80 => (MessageFate::Delivered, Some(number * S / 10 + 1)),
            _ => (MessageFate::UnderWay, Some(number * S / 10 + 1)),
        };
        let (rows, flow) = waiting(slow, Some(1));
        let busy = Flow { last_ns: 15 * S, ..flow };
        assert_eq!(explained(&(rows, busy), &layout(), &[], &[]), Explanation::default());
    }
}
