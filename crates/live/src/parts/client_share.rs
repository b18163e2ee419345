//! Which of a run's clients are performed here, and how clients stand, here and elsewhere.

use serde::{Deserialize, Serialize};

/// Which of a run's clients are performed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientShare {
    /// This part, from 0.
    pub part: u32,
    /// Of so many.
    pub of: u32,
}

impl Default for ClientShare {
    fn default() -> ClientShare {
        ClientShare { part: 0, of: 1 }
    }
}

impl ClientShare {
    /// The place of a client among those here, by its number in the run; `None` for those of other parts.
    pub fn place(self, client: u32) -> Option<u32> {
        (client % self.of == self.part).then_some(client / self.of)
    }

    /// How many of so many clients are here.
    pub fn count(self, clients: u32) -> u32 {
        clients / self.of + u32::from(clients % self.of > self.part)
    }
}

/// How the clients of a part stand. Sums of parts mean the same of all their clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientsStatus {
    pub(crate) connected: u32,
    pub(crate) ready: u32,
    /// Ready, or given up.
    pub(crate) gathered: u32,
    pub(crate) publishing: i64,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) expected: u64,
    pub(crate) delivered: u64,
    pub(crate) unacknowledged: i64,
    pub(crate) disconnects: u64,
    /// By group: offered, unsent, delivered.
    pub(crate) groups: Vec<[u64; 3]>,
}

impl ClientsStatus {
    /// Of these clients and others together.
    pub(crate) fn and(mut self, other: &ClientsStatus) -> ClientsStatus {
        self.connected += other.connected;
        self.ready += other.ready;
        self.gathered += other.gathered;
        self.publishing += other.publishing;
        self.offered += other.offered;
        self.sent += other.sent;
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.unacknowledged += other.unacknowledged;
        self.disconnects += other.disconnects;
        self.groups.resize(self.groups.len().max(other.groups.len()), [0; 3]);
        for (sum, group) in self.groups.iter_mut().zip(&other.groups) {
            sum.iter_mut().zip(group).for_each(|(sum, count)| *sum += count);
        }
        self
    }

    /// Whether everything that was due has been offered, and every delivery and acknowledgement has arrived.
    pub(crate) fn is_settled(&self) -> bool {
        self.publishing == 0 && self.delivered >= self.expected && self.unacknowledged <= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_one_part_and_one_place_there() {
        for (of, clients) in [(1, 7), (3, 7), (4, 3), (5, 0)] {
            let mut counted = 0;
            for part in 0..of {
                let share = ClientShare { part, of };
                let places: Vec<u32> = (0..clients).filter_map(|client| share.place(client)).collect();
                assert_eq!(places, (0..share.count(clients)).collect::<Vec<_>>());
                counted += places.len() as u32;
            }
            assert_eq!(counted, clients, "{of} parts");
        }
    }

    #[test]
    fn parts_are_settled_together_and_not_each_alone() {
        let publishers =
            ClientsStatus { expected: 10, sent: 10, groups: vec![[10, 0, 0]], ..ClientsStatus::default() };
        let subscribers =
            ClientsStatus { delivered: 10, groups: vec![[0, 0, 10]], ..ClientsStatus::default() };
        assert!(!publishers.is_settled() && subscribers.is_settled());
        let both = publishers.clone().and(&subscribers);
        assert!(both.is_settled());
        assert_eq!(both.groups, [[10, 0, 10]]);
        assert!(!ClientsStatus { publishing: 1, ..both }.is_settled());
        assert!(!publishers.and(&ClientsStatus { delivered: 9, ..ClientsStatus::default() }).is_settled());
    }
}
