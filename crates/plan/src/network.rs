//! What lies between the hosts.

use std::collections::{BTreeMap, HashMap};

use mqttlab_net::radio::MediumSpec;
use mqttlab_net::{ForgottenFlow, LinkSpec, NatSpec, Stage, TraceSpec};
use mqttlab_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Links, and which of them each direction between two hosts crosses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Direct or emulated.
    pub kind: NetworkKind,
    /// The named model that the scenario chose, and its placement, for the report.
    pub description: String,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// The links. A link that several paths name is shared by them.
    pub links: Vec<LinkSpec>,
    /// What links follow in the course of a run. The specs of these links have the means of the columns.
    #[serde(default)]
    pub traces: Vec<TraceSpec>,
    /// Radio channels with their stations.
    #[serde(default)]
    pub media: Vec<MediumSpec>,
    /// One for each ordered pair of hosts that talk; empty on a direct network.
    pub paths: Vec<PathPlan>,
    /// Translators of addresses, which forget.
    #[serde(default)]
    pub nats: Vec<NatPlan>,
}

/// A translator of addresses, between the links of one network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatPlan {
    /// Names of the links that lead out of it, from inside.
    pub outward: Vec<String>,
    /// Names of the links that lead into it.
    pub inward: Vec<String>,
    /// After so long without a frame it has forgotten a connection.
    #[serde(rename = "timeout_ns")]
    pub timeout: Duration,
    /// What becomes of a frame from inside then.
    pub forgotten: ForgottenFlow,
}

/// How frames get from host to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// Every client and the broker in one namespace, over its loopback device; nothing in the path.
    Loopback,
    /// One namespace for each host, joined by plain veth devices; nothing in the path.
    Veth,
    /// Through the links and media of the plan.
    Emulated,
    /// The engine's own namespace: for a broker that runs elsewhere.
    External,
}

/// The links from one host to another, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// Index of the sending host.
    pub from: usize,
    /// Index of the receiving host.
    pub to: usize,
    /// What a frame crosses; empty for no emulation in this direction.
    pub hops: Vec<Hop>,
}

/// One thing that a frame crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Hop {
    /// Index into the network's links.
    Link(usize),
    /// From one station of a radio channel to another.
    Radio {
        /// Index into the network's media.
        medium: usize,
        /// Number of the sending station.
        from: usize,
        /// Number of the receiving station.
        to: usize,
    },
}

impl Network {
    /// The host of each station, by medium and number. An access point in front of a host counts as that host's.
    pub fn stations(&self) -> BTreeMap<(usize, usize), usize> {
        let mut stations = BTreeMap::new();
        for path in &self.paths {
            for hop in &path.hops {
                if let Hop::Radio { medium, from, to } = *hop {
                    stations.insert((medium, from), path.from);
                    stations.insert((medium, to), path.to);
                }
            }
        }
        stations
    }
}

impl Network {
    /// The number of each link, by its name.
    pub fn link_numbers(&self) -> HashMap<&str, usize> {
        self.links.iter().enumerate().map(|(number, link)| (link.name.as_str(), number)).collect()
    }

    /// The translators, with the links' numbers.
    pub fn translators(&self) -> Vec<NatSpec> {
        let numbers = self.link_numbers();
        let found =
            |names: &[String]| names.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect();
        let spec = |nat: &NatPlan| NatSpec {
            outward: found(&nat.outward),
            inward: found(&nat.inward),
            timeout: nat.timeout,
            forgotten: nat.forgotten,
        };
        self.nats.iter().map(spec).collect()
    }
}

impl From<Hop> for Stage {
    fn from(hop: Hop) -> Stage {
        match hop {
            Hop::Link(link) => Stage::Link(link),
            Hop::Radio { medium, from, to } => Stage::Radio { medium, from, to },
        }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_net::radio::{
        ChannelSpec, EnergyProfile, MacSpec, MobilitySpec, PhySpec, PlacementSpec, Position, RadioSpec,
    };
    use mqttlab_units::{Duration, Ratio};
    use serde_json::{Value, json};

    use super::*;

    fn medium() -> MediumSpec {
        MediumSpec {
            name: "air".into(),
            phy: PhySpec::preset("b-11").unwrap(),
            mac: MacSpec::standard(),
            radio: RadioSpec::preset("b-11").unwrap(),
            channel: Some(ChannelSpec {
                mean_bad: Duration::from_ms(20),
                bad: Ratio::new(1, 10).unwrap(),
                loss_bad: Ratio::new(1, 2).unwrap(),
            }),
            interferers: Vec::new(),
            placement: PlacementSpec::Explicit { positions: vec![Position { x_mm: -1, y_mm: 2 }; 2] },
            mobility: MobilitySpec::RandomWaypoint {
                width_mm: 150_000,
                height_mm: 150_000,
                speed_min_mm_s: 500,
                speed_max_mm_s: 1_500,
                pause: Duration::from_s(2),
                refresh: Duration::from_ms(100),
            },
            energy: EnergyProfile::preset("mica2").unwrap(),
        }
    }

    fn network(media: Option<Value>) -> Result<Network, serde_json::Error> {
        let hop = json!({ "radio": { "medium": 0, "from": 1, "to": 0 } });
        let mut network = json!({
            "kind": "emulated", "description": "", "mtu_bytes": 1500, "links": [],
            "paths": [{ "from": 0, "to": 1, "hops": [hop] }],
        });
        if let Some(media) = media {
            network["media"] = media;
        }
        serde_json::from_value(network)
    }

    #[test]
    fn media_are_optional_and_come_back_as_they_went() {
        assert_eq!(network(None).unwrap().media, []);
        let read = network(Some(serde_json::to_value([medium()]).unwrap())).unwrap();
        assert_eq!(read.media, [medium()]);
        assert_eq!(read.paths[0].hops, [Hop::Radio { medium: 0, from: 1, to: 0 }]);
    }

    #[test]
    fn a_medium_is_written_in_si_integers_with_their_units() {
        let value = serde_json::to_value(medium()).unwrap();
        assert_eq!(
            value["phy"],
            json!({
                "modulation": "dsss", "data_rate_bit_s": 11_000_000, "ack_rate_bit_s": null,
                "control_rate_bit_s": 2_000_000,
                "preamble_ns": 192_000, "slot_ns": 20_000, "sifs_ns": 10_000, "cw_min_slots": 31,
                "cw_max_slots": 1023,
            })
        );
        assert_eq!(
            value["channel"],
            json!({ "mean_bad_ns": 20_000_000, "bad": [1, 10], "loss_bad": [1, 2] })
        );
        assert_eq!(value["mobility"]["kind"], "random_waypoint");
        assert_eq!(value["placement"]["positions"][0], json!({ "x_mm": -1, "y_mm": 2 }));
    }

    #[test]
    fn an_unknown_field_of_a_medium_is_refused_wherever_it_is() {
        for place in ["", "phy", "mac", "radio", "channel", "placement", "mobility", "energy"] {
            let mut value = serde_json::to_value(medium()).unwrap();
            let object = if place.is_empty() { &mut value } else { &mut value[place] };
            object["unheard_of"] = json!(1);
            assert!(network(Some(json!([value]))).is_err(), "{place}");
        }
    }
}
