//! An event: what changes, when, and for how long.

use std::borrow::Cow;

use mqttlab_fields::{
    IntervalOrNone, Length, Maybe, Moment, Node, Pair, PositiveTime, Reader, Rule, Rules, Shape, Table, Text,
    Time, Value, fields, shown, words,
};
use mqttlab_units::{Duration, Ratio};

use super::action::{ACTIONS, Action, AsAction, Target, for_clients};
use super::changed_link::{ChangedLink, LinkFields};
use crate::threshold::AnyValue;

words! {
    /// Which links of a network change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WhichWay {
        /// `up` as in `[[networks]]`.
        Up = "up",
        /// `down` as in `[[networks]]`.
        Down = "down",
        /// Both.
        Both = "both",
    }
}

/// What becomes of frames that wait when a link goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// They wait as far as the queue has room.
    Keep,
    /// They are dropped, as Linux does when a device goes down.
    Drop,
}

/// The rule of what becomes of waiting frames.
#[derive(Debug)]
pub struct AsQueued;

impl Rule for AsQueued {
    type Target = Queued;

    fn read(node: &Node, reader: &mut Reader) -> Option<Queued> {
        match node.as_text() {
            Some("keep") => Some(Queued::Keep),
            Some("drop") => Some(Queued::Drop),
            _ => reader.wrong(format!(
                "is {}, but must be \"keep\" or \"drop\": what becomes of frames that wait while the link is down; the \
                 length of the queue is `queue`",
                shown(node)
            )),
        }
    }

    fn shape() -> Shape {
        Shape::Words(&[("keep", "They wait as far as the queue has room."), ("drop", "They are dropped.")])
    }
}

/// Which of the clients' publications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publication {
    /// Its number, counted from 0.
    Number(u64),
    /// Its topic as the group has it.
    Topic(String),
}

/// The rule of a publication.
#[derive(Debug)]
pub struct AsPublication;

impl Rule for AsPublication {
    type Target = Publication;

    fn read(node: &Node, reader: &mut Reader) -> Option<Publication> {
        match &node.value {
            Value::Text(topic) => Some(Publication::Topic(topic.clone())),
            Value::Whole(number) if *number < 0 => {
                reader.wrong(format!("is {}, but must be 0 or more", shown(node)))
            }
            Value::Whole(number) => Some(Publication::Number(u64::try_from(*number).unwrap_or(u64::MAX))),
            _ => reader.wrong(format!("is {}, but must be a whole number", shown(node))),
        }
    }

    fn shape() -> Shape {
        Shape::Either(vec![Shape::Whole, Shape::Text(None)])
    }
}

fields! {
    /// What clients publish from an event on: the fields of `groups.publish` that an event may change.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChangedPublish with rules {
        /// Messages per time; `"0 /s"`: none.
        rate: Option<Duration> as Maybe<IntervalOrNone>,
        /// Time between messages, instead of `rate`.
        interval: Option<Duration> as Maybe<PositiveTime> [1_000..],
        /// Content of a message.
        payload: Option<Node> as Maybe<AnyValue>,
        /// Quality of service.
        qos: Option<u8> [0..=2],
    }
}

impl Rules for ChangedPublish {
    fn check(&mut self, table: &Table) -> Result<(), String> {
        if self.rate.is_some() && self.interval.is_some() {
            return Err("has both `rate` and `interval`; keep one".into());
        }
        if table.members.is_empty() {
            return Err("changes nothing; add `rate`, `interval`, `payload` or `qos`".into());
        }
        Ok(())
    }
}

impl ChangedPublish {
    /// The time between messages, zero for none; none where the rate stays.
    pub fn every(&self) -> Option<Duration> {
        self.rate.or(self.interval)
    }
}

fields! {
    /// Something changes while the run goes on: a network, a server, or clients of a group. Links have their fields of
    /// `networks[].up`; what an event leaves out stays as it was. The guide is [Change something during a
    /// run](../how-to/events.md).
    #[derive(Clone, Debug, PartialEq)]
    pub struct Event with rules {
        /// What tables and figures call it; without one, what happens in a few words.
        name: Option<String> as Maybe<Text> [1..=80],
        /// When, from the beginning of the measurement; `"-2 s"` is 2 s before it, in the warm-up. With `when`: from what that
        /// says.
        at: Option<i64> as Maybe<Moment>,
        /// Begins with the event of this `name`, each time that it takes place, or with its end: `"end of rain"`; likewise
        /// with a stage (`phases.stages`) or its end. `at` is the time from then on.
        when: Option<String> as Maybe<Text> [1..],
        /// Again and again, so long after the last time; for the first time at `at`, or after this time.
        every: Option<Duration> as Maybe<PositiveTime>,
        /// With `every`: not after this time of the measurement; its end when left out.
        until: Option<Duration> as Maybe<Time>,
        /// With `every`: so many times.
        count: Option<u32> [1..=100_000],
        /// Ends after this time: the link is up again, or as before; the server starts or continues; the clients return, read
        /// again, or have their subscriptions back. When left out, it does not end by itself.
        lasts / "for": Option<Duration> as Maybe<PositiveTime>,
        /// Network that changes: its `name`, the host that it joins to the rest, or `trunk`.
        network: Option<String>,
        /// The link of the network: `up` or `down` as in `[[networks]]`; both when left out.
        direction: Option<WhichWay>,
        /// `true`: the links carry nothing; `false`: they carry frames again.
        down: Option<bool>,
        /// With `down = true`: frames that wait, and those that come while the link is down, are dropped (`drop`, the default,
        /// as Linux does when a device goes down) or wait as far as the queue has room (`keep`).
        queued: Option<Queued> as Maybe<AsQueued>,
        /// Server that changes.
        server: Option<String>,
        /// Group whose clients change.
        group: Option<String>,
        /// Interferer of `radio` that changes.
        interferer: Option<String>,
        /// Station of `radio` that changes: a host's name, or of several hosts of a name one, such as `near-0`.
        station: Option<String>,
        /// Where the station stands from now on; it must not move by itself.
        position: Option<[u64; 2]> as Maybe<Pair<Length>>,
        /// Share of the group's clients, evenly spread over their numbers; the same share is the same clients.
        share: Option<Ratio>,
        /// One client of the group, counted from 0.
        client: Option<u32>,
        /// To a server: `stop` (SIGTERM), `kill` (SIGKILL), `pause` (SIGSTOP), `continue` (SIGCONT), `start`. To clients:
        /// `disconnect` (in order), `vanish` (without a word, as after a loss of power), `return`, `stop-reading`,
        /// `continue-reading`, `subscribe`, `unsubscribe`, `stop-publishing`, `continue-publishing`, `burst` (`messages` at
        /// once). To an interferer: `switch-on`, `switch-off`. To a station: `radio-off` (it neither sends nor hears; its
        /// frames wait), `radio-on`.
        r#do: Option<&'static Action> as Maybe<AsAction>,
        /// What the clients publish from now on; what is left out stays as it was. With `for` all is as before then.
        publish: Option<ChangedPublish>,
        /// Which of the clients' publications: its number, counted from 0, or its `topic` as the group has it. All when left
        /// out.
        publication: Option<Publication> as Maybe<AsPublication>,
        /// For `burst`: how many messages each client publishes at once, of each publication.
        messages: Option<u32> [1..=1_000_000],
        /// Whether the server finds what it had stored when it starts again; its own `persistence` when left out.
        persistence: Option<bool>,
        /// For `subscribe` and `unsubscribe`: the topic filter.
        filter: Option<String>,
        /// For `subscribe`: the QoS; 0 when left out.
        qos: Option<u8> [0..=2],
        /// Fields of the links that change.
        link: ChangedLink as LinkFields,
    }
}

/// With what an event's field goes; none of a field that goes with all.
fn belongs(field: &str) -> Option<&'static [Target]> {
    match field {
        "direction" | "down" | "queued" => Some(&[Target::Network]),
        "do" => Some(&[Target::Server, Target::Group, Target::Interferer, Target::Station]),
        "persistence" => Some(&[Target::Server]),
        "position" => Some(&[Target::Station]),
        "share" | "client" | "filter" | "qos" | "publish" | "publication" | "messages" => {
            Some(&[Target::Group])
        }
        _ if ChangedLink::names().any(|name| name == field) => Some(&[Target::Network]),
        _ => None,
    }
}

impl Rules for Event {
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let Some(table) = node.as_table() else { return Ok(Cow::Borrowed(node)) };
        if let Some(word @ ("keep" | "drop")) = table.get("queue").and_then(Node::as_text) {
            return Err(format!(
                "has `queue = \"{word}\"`, but `queue` is a limit; write `queued = \"{word}\"` for what becomes of frames \
                 that wait while the link is down"
            ));
        }
        if let Some(rate) = table.get("rate").filter(|_| table.has("group")) {
            let rate = shown(rate);
            return Err(format!(
                "acts on a group, but has `rate`, which goes with `network`; for messages, write `publish = {{ rate = \
                 {rate} }}`"
            ));
        }
        Ok(Cow::Borrowed(node))
    }

    fn check(&mut self, table: &Table) -> Result<(), String> {
        self.has_a_time()?;
        self.has_a_target(table)
    }
}

impl Event {
    /// What it acts on.
    ///
    /// # Panics
    /// Of an event that was not checked.
    pub fn target(&self) -> Target {
        self.targets().next().expect("an event that was read acts on something")
    }

    /// Whether it changes what clients publish.
    pub fn publishes(&self) -> bool {
        self.publish.is_some() || self.r#do.is_some_and(|action| action.is_publishing)
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        let named = [&self.network, &self.server, &self.group, &self.interferer, &self.station];
        Target::ALL.into_iter().zip(named).filter(|(_, name)| name.is_some()).map(|(target, _)| target)
    }

    fn has_a_time(&self) -> Result<(), String> {
        if self.at.is_none() && self.every.is_none() && self.when.is_none() {
            return Err("does not say when; add `at`, such as \"30 s\" of the measurement, `every`, or `when` with the name \
                        of a stage or another event"
                .into());
        }
        for (name, is_set) in [("until", self.until.is_some()), ("count", self.count.is_some())] {
            if is_set && self.every.is_none() {
                return Err(format!("has `{name}` without `every`; add `every`, or leave `{name}` out"));
            }
        }
        if self.until.is_some() && self.count.is_some() {
            return Err("has both `until` and `count`; keep one".into());
        }
        if self.lasts.zip(self.every).is_some_and(|(lasts, every)| lasts >= every) {
            return Err(
                "takes longer (`for`) than from one time to the next (`every`); use a shorter `for`".into()
            );
        }
        Ok(())
    }

    fn has_a_target(&self, table: &Table) -> Result<(), String> {
        let targets: Vec<Target> = self.targets().collect();
        let target = match targets[..] {
            [] => {
                return Err(
                    "does not say what changes; add `network`, `server`, `group`, `interferer` or `station`"
                        .into(),
                );
            }
            [target] => target,
            [one, other, ..] => {
                let (one, other) = (one.field(), other.field());
                return Err(format!(
                    "has `{one}` and `{other}`; keep one, and make another event of the other"
                ));
            }
        };
        self.has_what_belongs(target, table)?;
        if target == Target::Network {
            return self.changes_links();
        }
        if self.position.is_some() {
            return match self.r#do {
                Some(action) => {
                    Err(format!("has `do = \"{}\"` and `position`; make two events of it", action.word))
                }
                None => Ok(()),
            };
        }
        if self.r#do.is_none() && self.publish.is_none() {
            let other = match target {
                Target::Group => ", or `publish` with what becomes of messages",
                Target::Station => ", or `position`",
                _ => "",
            };
            return Err(format!(
                "does not say what happens; add `do`, one of {}{other}",
                target.action_words()
            ));
        }
        self.acts(target)
    }

    fn has_what_belongs(&self, target: Target, table: &Table) -> Result<(), String> {
        let wrong = table.members.iter().find_map(|member| {
            let goes = belongs(&member.name)?;
            (!goes.contains(&target)).then_some((member.name.as_str(), goes))
        });
        let Some((name, goes)) = wrong else { return Ok(()) };
        let goes: Vec<_> = goes.iter().map(|target| format!("`{}`", target.field())).collect();
        let goes = match &goes[..] {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            all => all.join(", "),
        };
        Err(format!(
            "acts on {}, but has `{name}`, which goes with {goes}; leave it out",
            target.with_article()
        ))
    }

    fn changes_links(&self) -> Result<(), String> {
        let first = self.link.0.members.first().map(|member| member.name.as_str());
        match (self.down, first) {
            (None, None) => {
                return Err("does not say what changes in the network; add `down = true`, or fields of a link such as \
                            `rate` or `delay`"
                    .into());
            }
            (Some(_), Some(field)) => return Err(format!("has `down` and `{field}`; make two events of it")),
            _ => {}
        }
        if self.queued.is_some() && self.down != Some(true) {
            return Err("has `queued`, which goes with `down = true`; leave it out".into());
        }
        if self.down == Some(false) && self.lasts.is_some() {
            return Err(
                "has `for`, but `down = false` does not end; leave it out, or write `down = true`".into()
            );
        }
        Ok(())
    }

    fn acts(&self, target: Target) -> Result<(), String> {
        if let (Some(action), Some(_)) = (self.r#do, &self.publish) {
            return Err(format!("has `do = \"{}\"` and `publish`; make two events of it", action.word));
        }
        if let Some(action) = self.r#do {
            self.does(action, target)?;
        }
        if self.share.is_some() && self.client.is_some() {
            return Err("has both `share` and `client`; keep one".into());
        }
        if self.share.is_some_and(Ratio::is_zero) {
            return Err("has `share = \"0 %\"`, which is no client; use a larger share".into());
        }
        if self.publication.is_some() && !self.publishes() {
            let words: Vec<_> =
                ACTIONS.iter().filter(|action| action.is_publishing).map(|action| action.word).collect();
            let (last, others) = words.split_last().unwrap_or((&"", &[]));
            return Err(format!(
                "has `publication`, which goes with `publish`, {} and {last}; leave it out",
                others.join(", ")
            ));
        }
        Ok(())
    }

    fn does(&self, action: &Action, target: Target) -> Result<(), String> {
        let word = action.word;
        if action.target != target {
            let near = for_clients(word).filter(|_| target == Target::Group);
            let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            return Err(format!(
                "acts on {}, but `do = \"{word}\"` is for {}; use one of {}{near}",
                target.with_article(),
                action.target.whose(),
                target.action_words()
            ));
        }
        if self.lasts.is_some() && action.ended_by.is_none() {
            return Err(format!("has `for`, but `do = \"{word}\"` does not end; leave it out"));
        }
        let has_filter = self.filter.is_some();
        if has_filter != matches!(word, "subscribe" | "unsubscribe") {
            let needs = if has_filter { "has no" } else { "needs a" };
            return Err(format!("has `do = \"{word}\"`, which {needs} `filter`"));
        }
        if let Some(qos) = self.qos.filter(|_| word != "subscribe") {
            let right = format!("for messages, write `publish = {{ qos = {qos} }}`");
            return Err(format!("has `qos`, which goes with `do = \"subscribe\"`; {right}"));
        }
        if self.messages.is_some() != (word == "burst") {
            let needs = if word == "burst" { "needs" } else { "has no" };
            return Err(format!("has `do = \"{word}\"`, which {needs} `messages`"));
        }
        Ok(())
    }
}
