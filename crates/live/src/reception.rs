//! How a server has received clients while they connect for the first time.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use mqttlab_plan::Plan;
use mqttlab_units::{Duration, Instant};

use crate::ClientShare;

/// How a server has received clients. Counters only rise.
#[derive(Default)]
pub struct ReceptionCounters {
    /// Connections that it accepted.
    accepted: AtomicU64,
    /// Clients that it has turned down at least once.
    turned_down: AtomicU32,
    /// When it first did, in nanoseconds of the run; zero for never.
    since_ns: AtomicU64,
    /// Why, of the latest one.
    why: Mutex<String>,
}

/// The same as it stands, or changes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reception {
    pub(crate) accepted: u64,
    pub(crate) turned_down: u32,
    pub(crate) since: Option<Instant>,
    pub(crate) why: String,
}

impl ReceptionCounters {
    /// Takes over changes.
    pub(crate) fn note(&self, changes: Reception) {
        self.accepted.fetch_add(changes.accepted, Relaxed);
        self.turned_down.fetch_add(changes.turned_down, Relaxed);
        if let Some(since) = changes.since {
            let ns = since.as_ns().max(1);
            let earliest = |known: u64| (known == 0 || ns < known).then_some(ns);
            let _ = self.since_ns.fetch_update(Relaxed, Relaxed, earliest);
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = changes.why;
        }
    }

    /// As it stands.
    pub(crate) fn reception(&self) -> Reception {
        Reception {
            accepted: self.accepted.load(Relaxed),
            turned_down: self.turned_down.load(Relaxed),
            since: match self.since_ns.load(Relaxed) {
                0 => None,
                ns => Some(Instant::ZERO + Duration::from_ns(ns)),
            },
            why: self.why.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Reception {
    /// Why a run ends that would only wait: a server elsewhere has turned down each of `clients` for a while, or has accepted
    /// none when connecting is over.
    pub(crate) fn problem(
        &self,
        place: SocketAddr,
        clients: u32,
        now: Instant,
        is_over: bool,
    ) -> Option<String> {
        if clients == 0 || self.accepted > 0 {
            return None;
        }
        let passed = self.since.and_then(|since| now.checked_since(since)).unwrap_or(Duration::ZERO);
        let all = self.turned_down >= clients;
        let is_answer = all && passed >= PATIENCE;
        if !is_over && !is_answer {
            return None;
        }
        Some(match self.turned_down {
            0 => format!("no client got an answer from {place}"),
            _ if all => format!("no client was accepted at {place}: {}", self.why),
            some => {
                format!("no client was accepted at {place}; {some} of {clients} were told why: {}", self.why)
            }
        })
    }
}

/// How many clients of this part the engine connects to a server elsewhere at the beginning. Those that come and go may all be
/// away. A server that the run starts has none: it serves before clients come.
pub(crate) fn clients_of(plan: &Plan, server: usize, share: ClientShare) -> u32 {
    if plan.servers[server].process.is_some() {
        return 0;
    }
    let numbers = plan.client_numbers();
    let groups = plan.groups.iter().zip(numbers.iter().zip(&numbers[1..]));
    groups
        .filter(|(group, _)| group.connects_to == server && group.churn.is_none() && group.program.is_none())
        .map(|(_, (&first, &end))| share.count(end) - share.count(first))
        .sum()
}

/// Where clients connect to a server: the first group's endpoint.
pub(crate) fn place_of(plan: &Plan, server: usize) -> SocketAddr {
    let asked = &plan.servers[server];
    let transports =
        plan.groups.iter().filter(|group| group.connects_to == server).map(|group| &group.transport);
    let mut endpoints = transports.filter_map(|transport| asked.endpoint_for(transport));
    endpoints.next().unwrap_or(asked.endpoint()).socket_address()
}

/// Time for a second attempt, a second after the first.
const PATIENCE: Duration = Duration::from_s(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_turned_down_everywhere_waits_two_seconds_and_who_gets_no_answer_until_connecting_is_over() {
        let place: SocketAddr = "192.0.2.1:1883".parse().unwrap();
        let at = |s: u64| Instant::ZERO + Duration::from_s(s);
        let seen = |accepted, turned_down| {
            let counters = ReceptionCounters::default();
            let since = (turned_down > 0).then_some(at(1));
            counters.note(Reception { accepted, turned_down, since, why: "refused".into() });
            counters.reception()
        };
        let table = [
            (seen(0, 3), at(2), false, None),
            (seen(0, 3), at(3), false, Some("no client was accepted at 192.0.2.1:1883: refused")),
            (seen(0, 2), at(9), false, None),
            (
                seen(0, 2),
                at(9),
                true,
                Some("no client was accepted at 192.0.2.1:1883; 2 of 3 were told why: refused"),
            ),
            (seen(0, 0), at(9), true, Some("no client got an answer from 192.0.2.1:1883")),
            (seen(1, 2), at(9), true, None),
        ];
        for (reception, now, is_over, words) in table {
            let problem = reception.problem(place, 3, now, is_over);
            assert_eq!(problem.as_deref(), words, "{reception:?}");
        }
        assert_eq!(seen(0, 0).problem(place, 0, at(9), true), None, "nobody wants to connect there");
    }
}
