//! Ports of hosts from which connections and conversations are opened: which are in use.
//!
//! A capture, and whoever judges segments, tells connections by addresses and ports alone; so no two that last at the same
//! time have the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::HostId;

/// Ports in use, by host and by what distinguishes two that use the same one: for TCP the server (Linux: the other end's
/// address and port), for datagrams nothing (a socket is bound before it is known with whom it speaks).
pub(crate) struct Ports<Towards> {
    in_use: BTreeMap<(HostId, Towards), BTreeSet<u16>>,
}

impl<Towards: Copy + Ord> Ports<Towards> {
    pub(crate) fn new() -> Self {
        Ports { in_use: BTreeMap::new() }
    }

    /// A port for the `number`th that is opened: its own, or the next one that is not in use. `None` where the host has none
    /// left (Linux: EADDRNOTAVAIL).
    pub(crate) fn allocate(&mut self, number: u32, host: HostId, towards: Towards) -> Option<u16> {
        let in_use = self.in_use.entry((host, towards)).or_default();
        if in_use.len() as u32 == PORTS {
            return None;
        }
        let mut ports = (0..PORTS).map(|offset| FIRST_PORT + ((number % PORTS + offset) % PORTS) as u16);
        ports.find(|&port| in_use.insert(port))
    }

    /// Nobody uses it any more. Its turn comes again only after all others: what is late for its last user does not reach the
    /// next one.
    pub(crate) fn give_back(&mut self, port: u16, host: HostId, towards: Towards) {
        if let Some(in_use) = self.in_use.get_mut(&(host, towards)) {
            in_use.remove(&port);
        }
    }
}

/// Linux's first ephemeral port, and how many there are.
pub(crate) const FIRST_PORT: u16 = 32_768;
pub(crate) const PORTS: u32 = 28_232;

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(1);

    #[test]
    fn a_port_is_not_taken_again_while_it_is_in_use() {
        let mut ports = Ports::new();
        assert_eq!(ports.allocate(0, HOST, ()), Some(FIRST_PORT));
        for number in 1..PORTS {
            let port = ports.allocate(number, HOST, ()).unwrap();
            assert_eq!(u32::from(port), u32::from(FIRST_PORT) + number);
            ports.give_back(port, HOST, ());
        }
        assert_eq!(ports.allocate(PORTS, HOST, ()), Some(FIRST_PORT + 1), "the first one lasts");
        assert_eq!(ports.allocate(PORTS, HostId(2), ()), Some(FIRST_PORT), "another host's is another");
    }

    #[test]
    fn a_port_towards_another_server_is_another() {
        let mut ports = Ports::new();
        assert_eq!([0, 1, 0].map(|to| ports.allocate(7, HOST, to).unwrap() - FIRST_PORT), [7, 7, 8]);
    }

    #[test]
    fn a_host_has_so_many_and_no_more() {
        let mut ports = Ports::new();
        let taken: BTreeSet<u16> =
            (0..PORTS).map(|number| ports.allocate(number, HOST, ()).unwrap()).collect();
        assert_eq!(taken.len() as u32, PORTS);
        assert_eq!((taken.first(), taken.last()), (Some(&32_768), Some(&60_999)));
        assert_eq!(ports.allocate(0, HOST, ()), None);
        ports.give_back(40_000, HOST, ());
        assert_eq!(ports.allocate(0, HOST, ()), Some(40_000));
        assert_eq!(ports.allocate(0, HOST, ()), None);
    }
}
