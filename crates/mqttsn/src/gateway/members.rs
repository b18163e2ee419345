//! Who a gateway's clients are, where they are, and when something is to be done about whom.
//!
//! Numbers are never used again. A client is found by number, by address and by identifier, and stands in the list of
//! deadlines once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mqttlab_units::Instant;

use super::interface::{Address, GatewayOptions};
use super::member::GatewayMember;

/// The clients of a gateway.
pub(super) struct Members<M> {
    clients: BTreeMap<u32, GatewayMember<M>>,
    last: u32,
    addresses: BTreeMap<Address, u32>,
    client_ids: BTreeMap<Arc<str>, u32>,
    /// When something is to be done about whom.
    due: BTreeSet<(Instant, u32)>,
}

impl<M: Clone> Members<M> {
    pub(super) fn new() -> Members<M> {
        Members {
            clients: BTreeMap::new(),
            last: 0,
            addresses: BTreeMap::new(),
            client_ids: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &GatewayMember<M>)> {
        self.clients.iter().map(|(number, client)| (*number, client))
    }

    pub(super) fn get(&self, number: u32) -> Option<&GatewayMember<M>> {
        self.clients.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut GatewayMember<M>> {
        self.clients.get_mut(&number)
    }

    /// Who is at an address.
    pub(super) fn at(&self, address: &Address) -> Option<u32> {
        self.addresses.get(address).copied()
    }

    /// Who is called so.
    pub(super) fn named(&self, client_id: &str) -> Option<u32> {
        self.client_ids.get(client_id).copied()
    }

    pub(super) fn add(&mut self, now: Instant, from: Address, client_id: Arc<str>) -> u32 {
        self.last += 1;
        let number = self.last;
        self.addresses.insert(from.clone(), number);
        self.client_ids.insert(Arc::clone(&client_id), number);
        self.clients.insert(number, GatewayMember::new(from, client_id, now));
        number
    }

    /// A client speaks from another address.
    pub(super) fn move_to(&mut self, number: u32, from: &Address) {
        let Some(client) = self.clients.get_mut(&number).filter(|client| client.address != *from) else {
            return;
        };
        let old = std::mem::replace(&mut client.address, from.clone());
        self.addresses.remove(&old);
        self.addresses.insert(from.clone(), number);
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Some(client) = self.clients.remove(&number) else { return };
        client.due.map(|at| self.due.remove(&(at, number)));
        self.addresses.remove(&client.address);
        self.client_ids.remove(&client.client_id);
    }

    /// When something is to be done about somebody.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// About whom something is to be done now.
    pub(super) fn next_due(&self, now: Instant) -> Option<u32> {
        self.due.first().filter(|(at, _)| *at <= now).map(|(_, number)| *number)
    }

    /// Something has happened to a client: its deadline may be another one.
    pub(super) fn reschedule(&mut self, number: u32, options: &GatewayOptions) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let next = client.next_deadline(options);
        if client.due != next {
            client.due.map(|at| self.due.remove(&(at, number)));
            client.due = next;
            next.map(|at| self.due.insert((at, number)));
        }
    }
}
