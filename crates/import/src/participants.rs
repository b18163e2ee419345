//! Who takes part: hosts by address, clients by identifier.
//!
//! A client whose CONNECT was not captured, or that leaves its name to the broker, is called `address:port`. A broker of MQTT 5
//! says in CONNACK which name it has given: the client is called so from then on, and is the same when it comes back with it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use mqttlab_capture::SocketEndpoint;
use mqttlab_recording::{Client, NumberMap};

/// Hosts and clients in the order of their first appearance.
#[derive(Default)]
pub struct Participants {
    hosts: Vec<String>,
    host_of: NumberMap<IpAddr, u16>,
    clients: Vec<Client>,
    by_id: HashMap<(SocketEndpoint, String), u32>,
    by_name: HashMap<String, u32>,
    names: HashSet<String>,
}

impl Participants {
    /// The number of the host with an address.
    pub fn host(&mut self, address: IpAddr) -> u16 {
        let hosts = &mut self.hosts;
        *self.host_of.entry(address).or_insert_with(|| add_host(hosts, address.to_string()))
    }

    /// The number of the place that frames without an address come from and go to.
    pub fn nowhere(&mut self) -> u16 {
        let found = self.hosts.iter().position(|name| name == NOWHERE);
        found.map_or_else(|| add_host(&mut self.hosts, NOWHERE.into()), |place| place as u16)
    }

    /// The client that connects from `end` to `broker` with an identifier; the same one when it connects again.
    pub fn client(&mut self, id: &str, end: SocketEndpoint, broker: SocketEndpoint) -> u32 {
        self.client_behind(end.address, id, end, broker)
    }

    /// Likewise, where a proxy's host sends its frames.
    pub fn client_behind(
        &mut self,
        peer: IpAddr,
        id: &str,
        end: SocketEndpoint,
        broker: SocketEndpoint,
    ) -> u32 {
        let key = if id.is_empty() { (end, String::new()) } else { (broker, id.to_owned()) };
        if let Some(&known) = self.by_id.get(&key) {
            return known;
        }
        let address = end.address.to_string();
        let (name, group) = match id {
            "" => (written(end), address),
            id => (id.to_owned(), stem(id).to_owned()),
        };
        let host = self.host(peer);
        let number = self.add(name, group, host, &written(broker));
        self.by_id.insert(key, number);
        number
    }

    /// The broker has given a client that connected without an identifier this one (MQTT 5 §3.2.2.3.7).
    pub fn assign(&mut self, client: u32, id: &str, [end, broker]: [SocketEndpoint; 2]) {
        let key = (broker, id.to_owned());
        if id.is_empty() || self.by_id.contains_key(&key) {
            return;
        }
        self.by_id.insert(key, client);
        // Who connects from the same port later is another client.
        self.by_id.remove(&(end, String::new()));
        let name = self.free_name(id.to_owned(), &written(broker));
        if let Some(known) = self.clients.get_mut(client as usize) {
            (known.name, known.group) = (name, stem(id).to_owned());
        }
    }

    /// A client of a log or table, by its name. Without a group it belongs to that of its name.
    pub fn logged(&mut self, name: &str, group: &str) -> u32 {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let host = self.nowhere();
        let group = if group.is_empty() { stem(name) } else { group };
        let number = self.add(name.to_owned(), group.to_owned(), host, "");
        self.by_name.insert(name.to_owned(), number);
        number
    }

    /// Names of hosts, by number.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Clients, by number.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Names stay apart where two brokers know a client by the same identifier.
    fn free_name(&mut self, name: String, broker: &str) -> String {
        let name = if self.names.contains(&name) { format!("{name} at {broker}") } else { name };
        self.names.insert(name.clone());
        name
    }

    fn add(&mut self, name: String, group: String, host: u16, broker: &str) -> u32 {
        let number = self.clients.len() as u32;
        let name = self.free_name(name, broker);
        self.clients.push(Client { name, group, host, session: None, is_program: false });
        number
    }
}

/// An endpoint as people write it.
pub fn written(end: SocketEndpoint) -> String {
    match end.address {
        IpAddr::V4(address) => format!("{address}:{}", end.port),
        IpAddr::V6(address) => format!("[{address}]:{}", end.port),
    }
}

fn add_host(hosts: &mut Vec<String>, name: String) -> u16 {
    // A capture with more hosts than a row can name calls the others by the last name.
    if hosts.len() > usize::from(u16::MAX) {
        return u16::MAX;
    }
    hosts.push(name);
    (hosts.len() - 1) as u16
}

/// What clients alike have in common: the identifier without the numbers, in decimal or hexadecimal, at its end.
fn stem(id: &str) -> &str {
    let mut stem = id;
    while let Some(at) = stem.rfind(['-', '_', '/', '.', ':', '|']) {
        let last = &stem[at + 1..];
        let counts = last.bytes().all(|byte| byte.is_ascii_digit());
        let random = last.len() >= RANDOM_DIGITS && last.bytes().all(|byte| byte.is_ascii_hexdigit());
        if at == 0 || !(counts || random) {
            break;
        }
        stem = &stem[..at];
    }
    let letters = stem.trim_end_matches(|character: char| character.is_ascii_digit()).trim_end();
    if letters.is_empty() { stem } else { letters }
}

/// So many hexadecimal digits are no word.
const RANDOM_DIGITS: usize = 4;
/// The host of everything whose host is not known.
const NOWHERE: &str = "not recorded";

#[cfg(test)]
mod tests {
    use super::*;

    fn end(last: u8, port: u16) -> SocketEndpoint {
        SocketEndpoint { address: [10, 0, 0, last].into(), port }
    }

    #[test]
    fn a_client_that_connects_again_is_the_same_and_one_without_a_name_is_its_address() {
        let mut participants = Participants::default();
        let broker = end(1, 1883);
        let first = participants.client("sensor-7", end(2, 40_000), broker);
        assert_eq!(participants.client("sensor-7", end(3, 50_000), broker), first);
        let nameless = participants.client("", end(2, 40_001), broker);
        assert_ne!(participants.client("", end(2, 40_002), broker), nameless);
        let elsewhere = participants.client("sensor-7", end(2, 40_003), end(9, 1883));
        let names: Vec<&str> = participants.clients().iter().map(|client| client.name.as_str()).collect();
        assert_eq!(names, ["sensor-7", "10.0.0.2:40001", "10.0.0.2:40002", "sensor-7 at 10.0.0.9:1883"]);
        assert_eq!(participants.clients()[elsewhere as usize].group, "sensor");
        assert_eq!(participants.hosts(), ["10.0.0.2"]);
    }

    #[test]
    fn a_client_that_the_broker_named_is_the_same_when_it_comes_back_with_that_name() {
        let mut participants = Participants::default();
        let broker = end(1, 1883);
        let nameless = participants.client("", end(2, 40_000), broker);
        participants.assign(nameless, "auto-7f3a", [end(2, 40_000), broker]);
        assert_eq!(participants.client("auto-7f3a", end(2, 40_001), broker), nameless);
        assert_ne!(participants.client("", end(2, 40_000), broker), nameless, "another, from the same port");
        let named = &participants.clients()[nameless as usize];
        assert_eq!((&*named.name, &*named.group), ("auto-7f3a", "auto"));
    }

    #[test]
    fn clients_alike_share_a_group() {
        for (id, group) in [
            ("publishers-12", "publishers"),
            ("truck_12_3", "truck"),
            ("auto-5FA3B2C1-90AB-11EF-8899-AABBCCDDEEFF", "auto"),
            ("mqttjs_8a2b3c4d", "mqttjs"),
            ("sensor12", "sensor"),
            ("Schuhmacher", "Schuhmacher"),
            ("42", "42"),
            ("-7", "-"),
        ] {
            assert_eq!(stem(id), group, "{id}");
        }
    }
}
