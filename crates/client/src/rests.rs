//! Whose radio may be off: a host's, while all of its clients sleep and nobody else is there.

use mqttlab_plan::Plan;

/// How many on each host are awake.
#[derive(Clone, Debug)]
pub struct Rests {
    awake: Vec<u32>,
}

impl Rests {
    /// At the beginning nobody sleeps. Servers never do.
    pub fn new(plan: &Plan) -> Rests {
        let mut awake = vec![0; plan.hosts.len()];
        let clients = plan.clients().map(|(group, client)| group.host_of(client));
        for host in clients.chain(plan.servers.iter().map(|server| server.host)) {
            awake[host] += 1;
        }
        Rests { awake }
    }

    /// A client falls asleep or wakes up. Whether its host rests from now on, where that changes.
    pub fn change(&mut self, host: usize, asleep: bool) -> Option<bool> {
        let awake = &mut self.awake[host];
        if asleep {
            *awake -= 1;
            (*awake == 0).then_some(true)
        } else {
            *awake += 1;
            (*awake == 1).then_some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_rests_while_everybody_on_it_does() {
        let mut rests = Rests { awake: vec![2, 1] };
        assert_eq!(rests.change(0, true), None);
        assert_eq!(rests.change(0, true), Some(true));
        assert_eq!(rests.change(1, true), Some(true));
        assert_eq!(rests.change(0, false), Some(false));
        assert_eq!(rests.change(0, false), None);
    }
}
