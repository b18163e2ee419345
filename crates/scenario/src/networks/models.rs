//! Named networks, where they are applied, and how a scenario adjusts them. They are `networks/models.toml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::link::{Link, read_adjusted};
use crate::document;
use crate::overlay::{AnyTable, TableAsWritten};
use mqttlab_fields::{Map, Name, Reader, Table, Text, fields, words};

const FILE: &str = include_str!("../../../../networks/models.toml");

words! {
    /// Where a named network is applied between clients and broker. Papers say "100 ms" and mean one direction, both, or half
    /// of each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Placement {
        /// The broker's interface alone: what the broker sends is shaped, what it receives is not.
        EgressAtBroker = "egress-at-broker",
        /// Each direction has the model's rate, delay and loss.
        Both = "both",
        /// Each direction has the model's rate and loss, and half its delay.
        Split = "split",
        /// Both directions share one transmitter of the downlink's figures, as a half-duplex radio does.
        SharedMedium = "shared-medium",
    }
}

fields! {
    /// A named network: both directions, where it is usually applied, and who says so.
    #[derive(Debug)]
    pub struct NetworkModel {
        /// As a scenario calls it.
        name: String as Name,
        /// In a few words.
        title: String,
        /// Where it is usually applied.
        placement: Placement,
        /// Where its figures are from.
        source: String,
        /// From the clients to the broker.
        up: TableAsWritten as AnyTable,
        /// From the broker to the clients.
        down: TableAsWritten as AnyTable,
    }
}

fields! {
    /// All named networks.
    #[derive(Debug)]
    pub struct NetworkModels {
        /// In the order of the file.
        models: Vec<NetworkModel>,
        /// Networks that people look for and that no link stands for, and why.
        without_model: BTreeMap<String, String> as Map<Text, Text>,
        /// Names of networks that their models do not have.
        also_called: BTreeMap<String, String> as Map<Text, Text>,
    }
}

impl NetworkModels {
    /// Those of mqttlab.
    pub fn shipped() -> &'static NetworkModels {
        static SHIPPED: OnceLock<NetworkModels> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let tree = document::parse(FILE).expect("networks/models.toml is TOML");
            Reader::default().read(&tree).expect("networks/models.toml is whole")
        })
    }

    /// A network by its name.
    pub fn named(&self, name: &str) -> Option<&NetworkModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The names of all networks.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(|model| model.name.as_str())
    }
}

/// A direction of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the first host, or the clients.
    Up,
    /// To the first host, or the clients.
    Down,
}

impl NetworkModel {
    /// A direction, with the fields that a scenario writes in place of its own.
    ///
    /// # Errors
    /// They do not go together; in words that follow the direction's name.
    pub fn adjusted(&self, way: Way, written: Option<&Table>) -> Result<Link, String> {
        let own = match way {
            Way::Up => &self.up.0,
            Way::Down => &self.down.0,
        };
        read_adjusted(own.clone(), &written.cloned().unwrap_or_default())
    }
}

/// Links towards the server and away from it; none where nothing is emulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Towards the server.
    pub up: Option<Link>,
    /// Away from it.
    pub down: Option<Link>,
    /// Both are the same transmitter, which `down` describes.
    pub is_shared: bool,
}

impl Placement {
    /// The links of a network that is applied so.
    pub fn place(self, up: Link, down: Link) -> Placed {
        match self {
            Placement::EgressAtBroker => Placed { up: None, down: Some(down), is_shared: false },
            Placement::Both => Placed { up: Some(up), down: Some(down), is_shared: false },
            Placement::Split => Placed { up: Some(up.halved()), down: Some(down.halved()), is_shared: false },
            Placement::SharedMedium => Placed { up: Some(down.clone()), down: Some(down), is_shared: true },
        }
    }

    /// Whether it takes the link from the broker alone.
    pub fn takes_down_alone(self) -> bool {
        matches!(self, Placement::EgressAtBroker | Placement::SharedMedium)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Table {
        document::parse(text).expect("a test's TOML").as_table().cloned().expect("a table")
    }

    #[test]
    fn all_shipped_networks_are_links() {
        let shipped = NetworkModels::shipped();
        assert_eq!(shipped.names().count(), 20);
        for model in &shipped.models {
            for way in [Way::Up, Way::Down] {
                let link = model.adjusted(way, None).unwrap_or_else(|what| panic!("{} {what}", model.name));
                assert!(link.spec.rate_bit_s.is_some(), "{}", model.name);
            }
        }
        for right in shipped.also_called.values() {
            assert!(shipped.named(right).is_some(), "{right}");
        }
    }

    #[test]
    fn what_is_written_takes_the_place_of_the_networks_own() {
        let shipped = NetworkModels::shipped();
        let wifi = shipped.named("wifi").expect("it is shipped");
        let link = wifi.adjusted(Way::Up, Some(&written("loss = \"2 %\"\njitter = \"0 ms\"")));
        let spec = link.expect("it goes together").spec;
        assert!(matches!(spec.loss, mqttlab_net::LossSpec::Bernoulli { .. }));
        assert_eq!(spec.delay.law, mqttlab_net::DelayLaw::Constant);
        assert_eq!(
            shipped
                .named("dsl")
                .expect("it is shipped")
                .adjusted(Way::Up, Some(&written("distribution = \"normal\""))),
            Err("has the distribution \"normal\" without a `jitter`; add one, such as \"5 ms\"".into())
        );
    }
}
