//! From which addresses clients connect, and how many from each: an address has so many ports, and no more.

use std::collections::BTreeMap;

use crate::{NetworkKind, Plan};

/// Whose address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressOwner<'a> {
    /// A host's own, by the host's name.
    Host(&'a str),
    /// The one that all hosts share on a loopback network.
    Loopback,
    /// The machine's, for a broker that runs elsewhere.
    Machine,
}

impl Plan {
    /// The address that most clients connect from, and how many these are.
    pub fn most_crowded_address(&self) -> (AddressOwner<'_>, u64) {
        let clients = self.groups.iter().map(|group| u64::from(group.count)).sum();
        match self.network.kind {
            // Each part of a run is a machine with its share of them.
            NetworkKind::External => return (AddressOwner::Machine, self.live.most_in_a_part(clients)),
            NetworkKind::Loopback => return (AddressOwner::Loopback, clients),
            NetworkKind::Veth | NetworkKind::Emulated => {}
        }
        let mut by_host = BTreeMap::<usize, u64>::new();
        for group in &self.groups {
            if group.host_step == 0 {
                *by_host.entry(group.host).or_default() += u64::from(group.count);
            } else {
                (0..group.count).for_each(|client| *by_host.entry(group.host_of(client)).or_default() += 1);
            }
        }
        let (host, clients) = by_host.into_iter().max_by_key(|(_, clients)| *clients).unwrap_or_default();
        (AddressOwner::Host(self.hosts.get(host).map_or("", |host| &host.name)), clients)
    }

    /// Refuses a plan with more clients behind one address than it has `ports`, which are so called in `range`.
    ///
    /// # Errors
    /// A sentence with the address, the need, the limit and the remedy.
    pub fn check_addresses(&self, ports: u64, range: &str) -> Result<(), String> {
        let (source, clients) = self.most_crowded_address();
        if clients <= ports {
            return Ok(());
        }
        let (place, remedy) = match source {
            AddressOwner::Host(name) => {
                (format!("host `{name}`"), "spread them over several hosts (`hosts.NAME.count`)")
            }
            AddressOwner::Loopback => (
                "the loopback device".into(),
                "use `network = \"direct\"`, and spread them over several hosts (`hosts.NAME.count`)",
            ),
            AddressOwner::Machine => {
                ("this machine".into(), "widen `net.ipv4.ip_local_port_range`, or use fewer clients")
            }
        };
        Err(format!(
            "{clients} clients connect from {place}, which has one address with {ports} ports ({range}): {remedy}"
        ))
    }
}
