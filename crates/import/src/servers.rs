//! Which servers there are, who is connected to which, and which of them are one broker.
//!
//! A message is owed to subscribers of the broker that it was published to, and to nobody at another one. A broker may have
//! several addresses or ports (a cluster, a balancer, listeners). Two ports of one address are one broker where anything that
//! was published at one was delivered by the other: how much was lost says nothing of that. Two addresses are one broker where
//! most of what was published at one, and fits a subscription at the other, was delivered by the other. Where the evidence
//! is in between, the import is not valid: as two brokers they would miss nothing, and look the better the more is lost.
//!
//! What it does not know: bridges, which pass on some topics; what a bridge publishes is a message of its own.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use mqttlab_capture::SocketEndpoint;
use mqttlab_recording::NumberMap;
use serde_json::{Value, json};

use super::participants::written;

/// Servers by number, in the order of their first client.
#[derive(Default)]
pub struct ObservedServers {
    ends: Vec<SocketEndpoint>,
    numbers: NumberMap<SocketEndpoint, u32>,
    of_client: NumberMap<u32, u32>,
    /// What each pair says of being one broker; the lesser number first.
    between: BTreeMap<(u32, u32), Between>,
    /// Pairs that are one whatever deliveries say: a gateway and its broker.
    joined: Vec<(u32, u32)>,
    /// What the user says of them.
    known: KnownBrokers,
    /// Deliveries of messages by the server that they were published at.
    own: NumberMap<u32, u64>,
    /// Which of them are one broker by what is known so far. Every delivery asks for it, and it seldom changes.
    brokers: OnceCell<Brokers>,
}

/// Where a server is, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPlace {
    /// The client is connected to it.
    Own,
    /// It is the same broker as the client's own one.
    SameBroker,
    /// It may be another broker.
    Elsewhere,
}

/// What the user says of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownBrokers {
    /// Nothing: deliveries tell.
    #[default]
    Unknown,
    /// All of them are one broker.
    One,
    /// Each is a broker of its own.
    Separate,
}

/// Messages that were published at one of two servers.
#[derive(Clone, Copy, Debug, Default)]
struct Between {
    /// They fit a subscription at the other one, each counted for each subscriber.
    fitting: u64,
    /// The other one delivered them.
    delivered: u64,
}

/// Which servers are one broker: the number of the broker of each server.
pub struct Brokers(Vec<u32>);

impl ObservedServers {
    /// No servers yet, of which this is known.
    pub fn new(known: KnownBrokers) -> ObservedServers {
        ObservedServers { known, ..ObservedServers::default() }
    }

    /// A client is connected to the server at this address.
    pub fn assign(&mut self, client: u32, end: SocketEndpoint) {
        // Nearly all packets of a client come from one server.
        let known = self.of_client.get(&client);
        if known.is_none_or(|&server| self.ends[server as usize] != end) {
            let server = self.number(end);
            self.of_client.entry(client).or_insert(server);
        }
    }

    fn number(&mut self, end: SocketEndpoint) -> u32 {
        let next = self.ends.len() as u32;
        let number = *self.numbers.entry(end).or_insert(next);
        if number == next {
            self.ends.push(end);
            self.brokers.take();
        }
        number
    }

    /// The server of a client. Clients of logs have none, and share the first.
    pub fn of(&self, client: u32) -> u32 {
        self.of_client.get(&client).copied().unwrap_or_default()
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.ends.len() > 1
    }

    /// All servers, that of a client first.
    pub fn own_first(&self, client: u32) -> impl Iterator<Item = (u32, ServerPlace)> {
        let own = self.of(client);
        let others = (0..self.ends.len() as u32).filter(move |server| *server != own);
        let placed = move |server| {
            let brokers = self.brokers();
            let is_same = brokers.of(server) == brokers.of(own);
            (server, if is_same { ServerPlace::SameBroker } else { ServerPlace::Elsewhere })
        };
        std::iter::once((own, ServerPlace::Own)).chain(others.map(placed))
    }

    /// The servers of a client's broker, its own one first.
    pub fn of_broker(&self, client: u32) -> impl Iterator<Item = u32> {
        let same = self.own_first(client).filter(|(_, place)| *place != ServerPlace::Elsewhere);
        same.map(|(server, _)| server)
    }

    /// Two addresses are one broker for certain.
    pub fn join(&mut self, one: SocketEndpoint, other: SocketEndpoint) {
        let pair = pair(self.number(one), self.number(other));
        if !self.joined.contains(&pair) {
            self.joined.push(pair);
            self.brokers.take();
        }
    }

    /// A message that was published at this server fits the subscription of a client.
    pub fn fits(&mut self, server: u32, client: u32) {
        self.note(server, client, |between| between.fitting += 1);
    }

    /// A message that was published at this server has reached a client.
    pub fn reached(&mut self, server: u32, client: u32) {
        if !self.note(server, client, |between| between.delivered += 1) {
            *self.own.entry(server).or_default() += 1;
        }
    }

    /// Notes a message between a server and that of a client; says whether these are two.
    fn note(&mut self, server: u32, client: u32, count: impl Fn(&mut Between)) -> bool {
        let other = self.of(client);
        if other == server {
            return false;
        }
        let pair = pair(server, other);
        let before = self.verdict(pair);
        count(self.between.entry(pair).or_default());
        if self.verdict(pair) != before {
            self.brokers.take();
        }
        true
    }

    /// Which are one broker.
    pub fn brokers(&self) -> &Brokers {
        self.brokers.get_or_init(|| self.brokers_shown())
    }

    fn brokers_shown(&self) -> Brokers {
        let mut brokers = Brokers((0..self.ends.len().max(1) as u32).collect());
        if self.known == KnownBrokers::One {
            brokers.0.fill(0);
        }
        let is_one = |(pair, _): &(&(u32, u32), &Between)| self.verdict(**pair) == Verdict::One;
        let shown = self.between.iter().filter(is_one).map(|(&pair, _)| pair);
        for (one, other) in shown.chain(self.joined.iter().copied()) {
            let (kept, gone) = pair(brokers.of(one), brokers.of(other));
            brokers.0.iter_mut().filter(|broker| **broker == gone).for_each(|broker| *broker = kept);
        }
        brokers
    }

    /// What deliveries say of two servers.
    fn verdict(&self, (one, other): (u32, u32)) -> Verdict {
        let Some(between) = self.between.get(&(one, other)) else { return Verdict::Two };
        if self.known == KnownBrokers::Separate {
            return Verdict::Two;
        }
        let is_one_host = self.ends[one as usize].address == self.ends[other as usize].address;
        let delivers = |server: u32| self.own.contains_key(&server);
        match between.delivered {
            0 if !is_one_host || between.fitting == 0 || (delivers(one) && delivers(other)) => Verdict::Two,
            0 => Verdict::Unknown,
            _ if is_one_host || between.are_most_delivered() => Verdict::One,
            _ => Verdict::Unknown,
        }
    }

    /// Why the numbers are not the whole truth: servers that may be one broker.
    pub fn reasons(&self) -> Vec<String> {
        let brokers = self.brokers();
        let unknown = self.between.iter().filter(|&(&(one, other), _)| {
            brokers.of(one) != brokers.of(other) && self.verdict((one, other)) == Verdict::Unknown
        });
        let words = |(&(one, other), between): (&(u32, u32), &Between)| {
            format!(
                "Whether {} are one broker cannot be told: {} deliveries at one of them were expected if they are, and {} \
                 happened. They are taken for two. Say --one-broker or --separate-brokers.",
                self.names(&[one, other]),
                between.fitting.max(between.delivered),
                between.delivered
            )
        };
        unknown.map(words).collect()
    }

    /// What there is to know where a capture has several servers.
    pub fn warnings(&self) -> Vec<String> {
        let brokers = self.brokers();
        let mut warnings = Vec::new();
        for (&(one, other), between) in self.between.iter().filter(|(_, between)| between.delivered > 0) {
            let (names, count) = (self.names(&[one, other]), between.delivered);
            if self.known != KnownBrokers::One && brokers.of(one) == brokers.of(other) {
                warnings.push(format!(
                    "{names} are taken for one broker: {count} deliveries at one of them are of messages that were \
                     published at the other."
                ));
            }
        }
        let apart: Vec<u32> =
            (0..self.ends.len() as u32).filter(|&server| brokers.of(server) == server).collect();
        if apart.len() > 1 && self.known == KnownBrokers::Unknown {
            warnings.push(format!(
                "There are {} brokers in the capture ({}). A message is expected of the subscribers of the broker that it \
                 was published to, and of nobody else. If some of them are one broker (a cluster, a balancer, address \
                 translation), say --one-broker.",
                apart.len(),
                self.names(&apart)
            ));
        }
        warnings
    }

    /// The brokers in words, `first` before the others.
    pub fn told_with(&self, first: SocketEndpoint) -> String {
        let brokers = self.brokers();
        let others = self
            .ends
            .iter()
            .enumerate()
            .filter(|(server, end)| **end != first && brokers.of(*server as u32) == *server as u32);
        let known = self.numbers.get(&first).map(|&server| brokers.of(server));
        let others: Vec<u32> =
            others.map(|(server, _)| server as u32).filter(|server| Some(*server) != known).collect();
        match others.len() {
            0 => format!("captured at {}", written(first)),
            _ => format!("captured at {}, and others at {}", written(first), self.names(&others)),
        }
    }

    /// The first of them, and how many there are, by address.
    fn names(&self, servers: &[u32]) -> String {
        let names = servers.iter().take(NAMED).map(|&server| written(self.ends[server as usize]));
        let names = names.collect::<Vec<_>>();
        match names.as_slice() {
            [one, other] => format!("{one} and {other}"),
            names => format!("{}{}", names.join(", "), if servers.len() > NAMED { ", …" } else { "" }),
        }
    }

    /// The servers for `run.json`: address, the broker that it belongs to (by the address of its first server), clients.
    pub fn as_json(&self) -> Value {
        let brokers = self.brokers();
        let servers = (0..self.ends.len() as u32).map(|server| {
            json!({
                "at": written(self.ends[server as usize]),
                "broker": written(self.ends[brokers.of(server) as usize]),
                "clients": self.of_client.values().filter(|of| **of == server).count(),
            })
        });
        Value::Array(servers.collect())
    }
}

impl Brokers {
    /// The broker that a server belongs to.
    pub fn of(&self, server: u32) -> u32 {
        self.0.get(server as usize).copied().unwrap_or(server)
    }
}

impl Between {
    /// One message that reaches the other server may have been published there unseen; of a broker most do.
    fn are_most_delivered(&self) -> bool {
        2 * self.delivered >= self.fitting
    }
}

/// What deliveries say of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    One,
    Two,
    Unknown,
}

fn pair(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}

/// Servers that a warning names.
const NAMED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn end(last: u8) -> SocketEndpoint {
        SocketEndpoint { address: [10, 0, 0, last].into(), port: 1883 }
    }

    /// Three servers with a client each.
    fn servers() -> ObservedServers {
        let mut servers = ObservedServers::default();
        (0..3).for_each(|client| servers.assign(client, end(client as u8)));
        servers
    }

    #[test]
    fn servers_are_one_broker_where_most_of_what_fits_is_delivered_across() {
        let mut servers = servers();
        for _ in 0..4 {
            servers.fits(0, 1);
            servers.fits(0, 2);
        }
        servers.reached(0, 1);
        servers.reached(0, 2);
        servers.reached(0, 2);
        let brokers = servers.brokers();
        assert_eq!([0, 1, 2].map(|server| brokers.of(server)), [0, 1, 0]);
        assert_eq!(servers.warnings().len(), 2, "{:?}", servers.warnings());
        assert!(
            servers.reasons()[0].starts_with("Whether 10.0.0.0:1883 and 10.0.0.1:1883 are one broker cannot")
        );
        servers = ObservedServers { known: KnownBrokers::Separate, brokers: OnceCell::new(), ..servers };
        assert_eq!([0, 1, 2].map(|server| servers.brokers().of(server)), [0, 1, 2]);
        assert!(servers.reasons().is_empty());
        servers = ObservedServers { known: KnownBrokers::One, brokers: OnceCell::new(), ..servers };
        assert_eq!([0, 1, 2].map(|server| servers.brokers().of(server)), [0; 3]);
        assert!(servers.warnings().is_empty());
    }

    #[test]
    fn a_gateway_is_one_with_its_broker_and_what_is_joined_stays_so() {
        let mut servers = servers();
        servers.join(end(2), end(1));
        let places = [(0, ServerPlace::Own), (1, ServerPlace::Elsewhere), (2, ServerPlace::Elsewhere)];
        assert_eq!(servers.own_first(0).collect::<Vec<_>>(), places);
        servers.join(end(1), end(0));
        assert_eq!([0, 1, 2].map(|server| servers.brokers().of(server)), [0; 3]);
        assert_eq!(servers.of_broker(1).collect::<Vec<_>>(), [1, 0, 2]);
    }
}
