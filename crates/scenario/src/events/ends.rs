//! Which event of a plan ends which changes.
//!
//! A change acts on parts: links, a server, stations, clients. An event may undo what several changes did to the same parts:
//! a broker that starts again ends every kill and stop before it, of whichever event. A change ends when nothing is left of
//! it, or with its own end. So a change inside another one of the same kind may end both.
//!
//! What lies over others keeps those apart: fields of links and publications, where the owners of these fields know what is
//! left.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_plan::{ChangeKind, Event};

/// What an event acts on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Link(String),
    Server(String),
    Client(u32, Option<String>),
    Station(usize),
    Interferer(String),
}

/// The changes that have begun and are not undone, each with the parts on which it still acts.
#[derive(Debug, Default)]
pub struct Undone {
    parts: BTreeMap<u32, BTreeSet<(ChangeKind, Part)>>,
    of: BTreeMap<(ChangeKind, Part), BTreeSet<u32>>,
}

impl Undone {
    /// What happens as a change begins, or ends by itself; returns the numbers of the changes that it undoes, with its own
    /// where it ends.
    pub fn turn(&mut self, number: u32, begins: bool, happened: &[Event]) -> Vec<u32> {
        // A link that another change keeps down comes up with the end of that one.
        let mut found = BTreeSet::new();
        if !happened.is_empty() && !begins {
            found.insert(number);
        }
        for one in happened {
            for kind in self.undone_by(one, begins) {
                found.extend(self.take(kind, one));
            }
        }
        for ended in &found {
            self.forget(*ended);
        }
        if begins {
            for one in happened.iter().filter(|one| is_lasting(one.kind())) {
                for part in parts(one) {
                    self.parts.entry(number).or_default().insert((one.kind(), part.clone()));
                    self.of.entry((one.kind(), part)).or_default().insert(number);
                }
            }
        }
        found.into_iter().collect()
    }

    fn undone_by(&self, one: &Event, begins: bool) -> Vec<ChangeKind> {
        let kind = one.kind();
        if kind == ChangeKind::StationMoved {
            // A station that gets back its place leaves every other one.
            return if begins { Vec::new() } else { vec![kind] };
        }
        let is_undone = |other: &ChangeKind| is_lasting(*other) && other.undone_by() == Some(kind);
        let mut undone: Vec<ChangeKind> = ChangeKind::ALL.iter().copied().filter(is_undone).collect();
        // The program that stood still is gone.
        let is_gone = |part: &Part| undone.iter().any(|gone| self.acts(*gone, part));
        if kind == ChangeKind::ServerStart && parts(one).any(|part| is_gone(&part)) {
            undone.push(ChangeKind::ServerPause);
        }
        undone
    }

    fn acts(&self, kind: ChangeKind, part: &Part) -> bool {
        self.of.get(&(kind, part.clone())).is_some_and(|numbers| !numbers.is_empty())
    }

    /// The changes of a kind of which nothing is left.
    fn take(&mut self, kind: ChangeKind, one: &Event) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for part in parts(one) {
            let key = (kind, part);
            for number in self.of.remove(&key).unwrap_or_default() {
                if let Some(its) = self.parts.get_mut(&number) {
                    its.remove(&key);
                    if its.is_empty() {
                        found.insert(number);
                    }
                }
            }
        }
        found
    }

    fn forget(&mut self, number: u32) {
        for part in self.parts.remove(&number).unwrap_or_default() {
            if let Some(numbers) = self.of.get_mut(&part) {
                numbers.remove(&number);
            }
        }
    }
}

/// Whether a change lasts until an event of another kind undoes it. What lies over others is known to the owners of what
/// links and publications have.
fn is_lasting(kind: ChangeKind) -> bool {
    kind.undone_by().is_some() && !matches!(kind, ChangeKind::LinkChange | ChangeKind::ClientsPublish)
}

/// On what an event acts.
fn parts(event: &Event) -> impl Iterator<Item = Part> + use<> {
    use mqttlab_net::radio::MediumChange;
    use mqttlab_plan::ClientsChange;
    let parts: Vec<Part> = match event {
        Event::Links(event) => event.links.iter().cloned().map(Part::Link).collect(),
        Event::Server(event) => vec![Part::Server(event.server.clone())],
        Event::Clients(event) => {
            let filter = match &event.change {
                ClientsChange::Subscribe { filter, .. } | ClientsChange::Unsubscribe { filter } => {
                    Some(filter.0.clone())
                }
                _ => None,
            };
            event.clients.iter().map(|client| Part::Client(*client, filter.clone())).collect()
        }
        Event::Medium(event) => match &event.change {
            MediumChange::StationsOff { stations } | MediumChange::StationsOn { stations } => {
                stations.iter().copied().map(Part::Station).collect()
            }
            MediumChange::StationMoved { station, .. } => vec![Part::Station(*station)],
            MediumChange::InterfererOn { interferer } | MediumChange::InterfererOff { interferer } => {
                vec![Part::Interferer(interferer.clone())]
            }
        },
    };
    parts.into_iter()
}
