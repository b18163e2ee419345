//! What a scenario itself keeps from arriving until the end of its run: whose messages, and by what.
//!
//! ```text
//!   events that nothing ended    a link or station is off, a server has ended or stands still, clients are away or read nothing,
//!                                a link or channel is another than before
//!   links that drop frames       a translator of addresses forgets connections, a policer takes what comes too fast
//! ```
//!
//! Both backends tell it of each event that takes place. What a link has dropped, if anything, the recording knows.
//!
//! A link that is another than before keeps nothing by itself: the recording looks whether it has lost frames, or holds some.
//!
//! What it does not know: which messages were in those frames.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_net::LinkChange;
use mqttlab_net::radio::MediumChange;
use mqttlab_plan::{Backend, ClientsChange, Event, Hop, Plan, ServerChangeKind};
use mqttlab_rows::{Cause, Hold, HoldCause};

/// Keeps what events have taken away and not given back.
#[derive(Clone, Debug)]
pub struct Holds {
    reach: BTreeMap<Subject, BTreeSet<u32>>,
    in_force: BTreeMap<Subject, (String, &'static str)>,
    /// By the number of their changes, links and channels that are others than before.
    changed: BTreeMap<u32, Hold>,
    dropping: Vec<(Cause, Vec<String>)>,
}

/// What an event may take away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Link(String),
    /// Of the channel of this name.
    Station(String, usize),
    Server(String),
    /// A client without a connection.
    Away(u32),
    /// A client that reads nothing.
    Unread(u32),
}

impl Holds {
    /// Of a run in which nothing has taken place yet.
    pub fn of(plan: &Plan) -> Holds {
        let nats = plan
            .network
            .nats
            .iter()
            .map(|nat| [&nat.outward[..], &nat.inward[..]].concat())
            .collect::<Vec<_>>();
        let policers = policers(plan);
        let mut links: BTreeSet<&str> =
            plan.events.iter().flat_map(Event::links).map(String::as_str).collect();
        links.extend(nats.iter().chain([&policers]).flatten().map(String::as_str));
        if plan.backend == Backend::Live {
            // Any of them may be changed by hand.
            links.extend(plan.network.links.iter().map(|link| link.name.as_str()));
        }
        let reach = reach(plan, &links);
        let mut dropping: Vec<_> = nats.into_iter().map(|links| (Cause::NatForgot, links)).collect();
        dropping.extend((!policers.is_empty()).then_some((Cause::Policer, policers)));
        Holds { reach, in_force: BTreeMap::new(), changed: BTreeMap::new(), dropping }
    }

    /// An event takes place. They come in the order of time.
    pub fn take(&mut self, event: &Event) {
        event.ends().iter().for_each(|number| drop(self.changed.remove(number)));
        if let Some((number, hold)) = event.begins().zip(self.other_than_before(event)) {
            self.changed.insert(number, hold);
        }
        let (subjects, state) = subjects(event);
        for subject in subjects {
            match state {
                Some(state) => self.in_force.insert(subject, (event.name().to_owned(), state)),
                None => self.in_force.remove(&subject),
            };
        }
    }

    /// What an event that makes a link or channel another one may keep from then on.
    fn other_than_before(&self, event: &Event) -> Option<Hold> {
        let (what, mut names, state) = match event {
            Event::Links(event) if matches!(event.change, LinkChange::Spec { .. }) => {
                ("link", event.links.clone(), "changed by")
            }
            Event::Medium(event) => match event.change {
                MediumChange::InterfererOn { .. } | MediumChange::StationMoved { .. } => {
                    ("channel", vec![event.medium.clone()], "changed by")
                }
                _ => return None,
            },
            _ => return None,
        };
        names.sort_unstable();
        let is_on_it = |subject: &Subject| match subject {
            Subject::Link(link) => names.contains(link),
            Subject::Station(medium, _) => names.contains(medium),
            _ => false,
        };
        let clients = self.reach.iter().filter(|(subject, _)| is_on_it(subject));
        let clients = clients.flat_map(|(_, clients)| clients).copied().collect();
        let (what, state, event) = (what.into(), state.into(), event.name().to_owned());
        let cause = HoldCause::Event { what, lossy: names.clone(), names, state, event };
        Some(Hold { cause, clients })
    }

    /// What is kept from arriving now. Events come first, by their names.
    pub fn now(&self) -> Vec<Hold> {
        // By event, state and word, what it acts on.
        let mut found: BTreeMap<_, (Vec<String>, BTreeSet<u32>)> = BTreeMap::new();
        for (subject, (event, state)) in &self.in_force {
            let (what, name) = subject.name();
            let (names, clients) = found.entry((event.as_str(), *state, what)).or_default();
            names.extend(name);
            match subject {
                Subject::Away(client) | Subject::Unread(client) => {
                    clients.insert(*client);
                }
                _ => clients.extend(self.reach.get(subject).into_iter().flatten()),
            }
        }
        let by_event = found.into_iter().map(|((event, state, what), (names, clients))| Hold {
            cause: HoldCause::Event {
                what: what.into(),
                names,
                state: state.into(),
                event: event.into(),
                lossy: Vec::new(),
            },
            clients,
        });
        let dropping = self.dropping.iter().map(|(cause, links)| {
            let behind = links.iter().filter_map(|link| self.reach.get(&Subject::Link(link.clone())));
            let clients = behind.flatten().copied().collect();
            Hold { cause: HoldCause::Drops { links: links.clone(), cause: *cause }, clients }
        });
        by_event.chain(self.changed.values().cloned()).chain(dropping).collect()
    }
}

impl Subject {
    /// What it is in a word, and its name; a client has its own.
    fn name(&self) -> (&'static str, Option<String>) {
        match self {
            Subject::Link(name) => ("link", Some(name.clone())),
            Subject::Station(medium, station) => ("station", Some(format!("{station} of {medium}"))),
            Subject::Server(name) => ("server", Some(name.clone())),
            Subject::Away(_) | Subject::Unread(_) => ("", None),
        }
    }
}

/// What an event acts on, and how it leaves that, in words before the event's name; `None`: as it was before.
fn subjects(event: &Event) -> (Vec<Subject>, Option<&'static str>) {
    match event {
        Event::Links(event) => {
            let state = match event.change {
                LinkChange::Down { .. } => Some("down since"),
                LinkChange::Up => None,
                LinkChange::Spec { .. } => return (Vec::new(), None),
            };
            (event.links.iter().cloned().map(Subject::Link).collect(), state)
        }
        Event::Medium(event) => {
            let (stations, state) = match &event.change {
                MediumChange::StationsOff { stations } => (stations, Some("off since")),
                MediumChange::StationsOn { stations } => (stations, None),
                _ => return (Vec::new(), None),
            };
            let station = |number: &usize| Subject::Station(event.medium.clone(), *number);
            (stations.iter().map(station).collect(), state)
        }
        Event::Server(event) => {
            let state = match event.change.kind {
                ServerChangeKind::Stop => Some("stopped by"),
                ServerChangeKind::Kill => Some("killed by"),
                ServerChangeKind::Pause => Some("paused by"),
                ServerChangeKind::Continue | ServerChangeKind::Start => None,
            };
            (vec![Subject::Server(event.server.clone())], state)
        }
        Event::Clients(event) => {
            let (subject, state): (fn(u32) -> Subject, _) = match event.change {
                ClientsChange::Disconnect | ClientsChange::Vanish => (Subject::Away, Some("away since")),
                ClientsChange::Return => (Subject::Away, None),
                ClientsChange::StopReading => (Subject::Unread, Some("not reading since")),
                ClientsChange::ContinueReading => (Subject::Unread, None),
                _ => return (Vec::new(), None),
            };
            (event.clients.iter().copied().map(subject).collect(), state)
        }
    }
}

/// Links that have a policer, from the beginning or by an event.
fn policers(plan: &Plan) -> Vec<String> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    found.extend(
        plan.network.links.iter().filter(|link| link.policer.is_some()).map(|link| link.name.as_str()),
    );
    for event in &plan.events {
        if let Event::Links(event) = event
            && let LinkChange::Spec { spec } = &event.change
            && spec.policer.is_some()
        {
            found.extend(event.links.iter().map(String::as_str));
        }
    }
    found.into_iter().map(str::to_owned).collect()
}

/// The clients whose messages pass each of these links, any station, and each server.
fn reach(plan: &Plan, links: &BTreeSet<&str>) -> BTreeMap<Subject, BTreeSet<u32>> {
    let mut alike: BTreeMap<(usize, usize), BTreeSet<u32>> = BTreeMap::new();
    for (number, (group, client)) in (0..).zip(plan.clients()) {
        alike.entry((group.host_of(client), group.connects_to)).or_default().insert(number);
    }
    let paths: BTreeMap<_, _> =
        plan.network.paths.iter().map(|path| ((path.from, path.to), &path.hops[..])).collect();
    let mut reach: BTreeMap<Subject, BTreeSet<u32>> = BTreeMap::new();
    for ((host, server), clients) in alike {
        let mut passed: BTreeSet<Subject> = BTreeSet::new();
        let (mut from, mut server) = (host, Some(server));
        while let Some(index) = server {
            let there = &plan.servers[index];
            if !passed.insert(Subject::Server(there.name.clone())) {
                break;
            }
            for way in [(from, there.host), (there.host, from)] {
                let hops = paths.get(&way).copied().unwrap_or_default();
                passed.extend(hops.iter().flat_map(|hop| subjects_of(plan, links, *hop)));
            }
            (from, server) = (there.host, there.passes_to());
        }
        passed.into_iter().for_each(|subject| reach.entry(subject).or_default().extend(&clients));
    }
    reach
}

fn subjects_of(plan: &Plan, links: &BTreeSet<&str>, hop: Hop) -> Vec<Subject> {
    match hop {
        Hop::Link(link) => {
            let name = &plan.network.links[link].name;
            links.get(name.as_str()).map(|_| Subject::Link(name.clone())).into_iter().collect()
        }
        Hop::Radio { medium, from, to } => {
            let name = &plan.network.media[medium].name;
            [from, to].map(|station| Subject::Station(name.clone(), station)).into()
        }
    }
}
