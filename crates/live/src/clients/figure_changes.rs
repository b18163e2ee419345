//! What a worker's clients change of the run's figures, brought to all together when a round is over.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_client::Books;
use mqttlab_plan::Group;
use mqttlab_recording::Sent;
use mqttlab_units::Instant;

use super::context::FleetContext;
use crate::contact::Contact;
use crate::control::FleetFigures;
use crate::reception::Reception;

/// Changes of the run's figures since they were last brought there: many clients share each atomic.
pub(super) struct FigureChanges {
    pub(super) books: Books,
    /// By group.
    groups: Vec<GroupChanges>,
    /// By server.
    servers: Vec<Contact>,
    /// By server.
    receptions: Vec<Reception>,
    /// Clients that their server has turned down while they connected for the first time.
    turned_down: BTreeSet<u32>,
    pub(super) turned_away: u64,
    pub(super) no_descriptor: u64,
}

/// Changes of a group's figures.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GroupChanges {
    pub(super) offered: u64,
    pub(super) unsent: u64,
    pub(super) delivered: u64,
}

impl FigureChanges {
    /// Without changes, of so many groups and servers.
    pub(super) fn new(groups: usize, servers: usize) -> FigureChanges {
        FigureChanges {
            books: Books::default(),
            groups: vec![GroupChanges::default(); groups],
            servers: vec![Contact::default(); servers],
            receptions: vec![Reception::default(); servers],
            turned_down: BTreeSet::new(),
            turned_away: 0,
            no_descriptor: 0,
        }
    }

    /// A client of the group has read something from its server.
    pub(super) fn heard(&mut self, group: &Group, now: Instant) {
        self.servers[group.connects_to].heard = Some(now);
    }

    /// A client's server has accepted its connection.
    pub(super) fn accepted(&mut self, shared: &FleetContext, client: u32) {
        self.receptions[server_of(shared, client)].accepted += 1;
    }

    /// A client's attempt to connect has ended before its server accepted it.
    pub(super) fn turned_down(&mut self, shared: &FleetContext, client: u32, now: Instant, why: &str) {
        if self.turned_down.insert(client) {
            let reception = &mut self.receptions[server_of(shared, client)];
            reception.turned_down += 1;
            reception.since.get_or_insert(now);
            why.clone_into(&mut reception.why);
        }
    }

    /// The server must answer this message.
    pub(super) fn asked(&mut self, shared: &FleetContext, row: &Sent) {
        let server = server_of(shared, row.publisher);
        if row.qos > 0 {
            self.servers[server].asked = Some(row.sent);
        } else if shared.directory.deliveries(row) > 0 {
            self.servers[server].due = Some(row.sent);
        }
    }

    /// The changes of a client's group.
    pub(super) fn group_of(&mut self, shared: &FleetContext, client: u32) -> &mut GroupChanges {
        &mut self.groups[shared.group_of(client)]
    }

    /// Brings all changes to `figures`.
    pub(super) fn add_to(&mut self, figures: &FleetFigures) {
        for (changes, figures) in self.groups.iter_mut().zip(&figures.groups) {
            if *changes != GroupChanges::default() {
                add(&figures.offered, changes.offered);
                add(&figures.unsent, changes.unsent);
                add(&figures.delivered, changes.delivered);
                *changes = GroupChanges::default();
            }
        }
        for (changes, counters) in self.servers.iter_mut().zip(&figures.servers) {
            if *changes != Contact::default() {
                counters.note(&std::mem::take(changes));
            }
        }
        for (changes, counters) in self.receptions.iter_mut().zip(&figures.receptions) {
            if *changes != Reception::default() {
                counters.note(std::mem::take(changes));
            }
        }
        let books = &self.books;
        // What should arrive is counted before what has arrived, so that nobody sees a run settled that is not.
        add(&figures.expected, books.expected);
        if books.unacknowledged != 0 {
            figures.unacknowledged.fetch_add(books.unacknowledged, Relaxed);
        }
        add(&figures.offered, books.offered);
        add(&figures.sent, books.sent);
        add(&figures.delivered, books.delivered);
        add(&figures.disconnects, books.disconnects);
        add(&figures.foreign, books.foreign);
        add(&figures.turned_away, self.turned_away);
        add(&figures.no_descriptor, self.no_descriptor);
        if books.publishing != 0 {
            figures.publishing.fetch_add(books.publishing, Relaxed);
        }
        // Two's complement: adding a negative number wraps around to the right one.
        if books.connected != 0 {
            figures.connected.fetch_add(books.connected as u32, Relaxed);
        }
        if books.ready != 0 {
            figures.ready.fetch_add(books.ready as u32, Relaxed);
        }
        if books.failed != 0 {
            figures.failed.fetch_add(books.failed, Relaxed);
        }
        (self.books, self.turned_away, self.no_descriptor) = (Books::default(), 0, 0);
    }
}

fn add(figure: &AtomicU64, change: u64) {
    if change != 0 {
        figure.fetch_add(change, Relaxed);
    }
}

/// The server that a client connects to.
fn server_of(shared: &FleetContext, client: u32) -> usize {
    shared.plan.groups[shared.group_of(client)].connects_to
}
