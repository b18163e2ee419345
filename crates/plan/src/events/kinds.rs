//! The kinds of events, each with what it acts on and which kind undoes it.

use mqttlab_net::LinkChange;
use mqttlab_net::radio::MediumChange;
use mqttlab_units::{Word, words};

use super::{ClientsChange, Event, ServerChangeKind};

words! {
    /// What an event does, whatever it acts on. `target` is the field of the event that says what it acts on, `change` is the kind of its
    /// change, and `undone_by` is the kind of event that ends it. An event without one has no end.
    pub enum ChangeKind {
        /// Links carry nothing.
        LinkDown = "link_down" { target: "links", change: "down", undone_by: "link_up" },
        /// Links carry frames again.
        LinkUp = "link_up" { target: "links", change: "up" },
        /// Links have other properties.
        LinkChange = "link_change" { target: "links", change: "spec", undone_by: "link_change" },
        /// An interferer is switched on.
        InterfererOn = "interferer_on" { target: "medium", change: "interferer_on", undone_by: "interferer_off" },
        /// An interferer is switched off.
        InterfererOff = "interferer_off" { target: "medium", change: "interferer_off", undone_by: "interferer_on" },
        /// Radios go off.
        StationsOff = "stations_off" { target: "medium", change: "stations_off", undone_by: "stations_on" },
        /// Radios go on again.
        StationsOn = "stations_on" { target: "medium", change: "stations_on" },
        /// A station stands elsewhere.
        StationMoved = "station_moved" { target: "medium", change: "station_moved", undone_by: "station_moved" },
        /// A server ends in order (SIGTERM).
        ServerStop = "server_stop" { target: "server", change: "stop", undone_by: "server_start" },
        /// A server ends at once (SIGKILL).
        ServerKill = "server_kill" { target: "server", change: "kill", undone_by: "server_start" },
        /// A server stands still (SIGSTOP).
        ServerPause = "server_pause" { target: "server", change: "pause", undone_by: "server_continue" },
        /// A server goes on after a pause (SIGCONT).
        ServerContinue = "server_continue" { target: "server", change: "continue" },
        /// A server starts again after a stop or kill.
        ServerStart = "server_start" { target: "server", change: "start" },
        /// Clients disconnect in order.
        ClientsDisconnect = "clients_disconnect" { target: "clients", change: "disconnect", undone_by: "clients_return" },
        /// Clients fall silent, as after a loss of power.
        ClientsVanish = "clients_vanish" { target: "clients", change: "vanish", undone_by: "clients_return" },
        /// Clients connect again.
        ClientsReturn = "clients_return" { target: "clients", change: "return" },
        /// Clients read nothing from their connections.
        ClientsStopReading = "clients_stop_reading" {
            target: "clients", change: "stop_reading", undone_by: "clients_continue_reading",
        },
        /// Clients read again.
        ClientsContinueReading = "clients_continue_reading" { target: "clients", change: "continue_reading" },
        /// Clients subscribe to a filter more.
        ClientsSubscribe = "clients_subscribe" {
            target: "clients", change: "subscribe", undone_by: "clients_unsubscribe",
        },
        /// Clients unsubscribe from a filter.
        ClientsUnsubscribe = "clients_unsubscribe" {
            target: "clients", change: "unsubscribe", undone_by: "clients_subscribe",
        },
        /// Clients publish other messages, or more, or fewer.
        ClientsPublish = "clients_publish" { target: "clients", change: "publish", undone_by: "clients_publish" },
        /// Clients publish some messages at once.
        ClientsBurst = "clients_burst" { target: "clients", change: "burst" },
    }
}

impl ChangeKind {
    /// The kind of event that ends it; none of what has no end.
    pub fn undone_by(self) -> Option<ChangeKind> {
        let phrases = ChangeKind::ENTRIES[usize::from(self.code())].phrases;
        let word = phrases.iter().find(|(name, _)| *name == "undone_by").map(|(_, word)| *word)?;
        ChangeKind::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// Whether a plan alone can have it: receivers and due times follow from it before a run begins.
    pub(super) fn is_fixed(self) -> bool {
        use ChangeKind::{ClientsBurst, ClientsPublish, ClientsSubscribe, ClientsUnsubscribe};
        matches!(self, ClientsSubscribe | ClientsUnsubscribe | ClientsPublish | ClientsBurst)
    }
}

impl Event {
    /// What it does.
    pub fn kind(&self) -> ChangeKind {
        match self {
            Event::Links(event) => match event.change {
                LinkChange::Down { .. } => ChangeKind::LinkDown,
                LinkChange::Up => ChangeKind::LinkUp,
                LinkChange::Spec { .. } => ChangeKind::LinkChange,
            },
            Event::Medium(event) => match event.change {
                MediumChange::InterfererOn { .. } => ChangeKind::InterfererOn,
                MediumChange::InterfererOff { .. } => ChangeKind::InterfererOff,
                MediumChange::StationsOff { .. } => ChangeKind::StationsOff,
                MediumChange::StationsOn { .. } => ChangeKind::StationsOn,
                MediumChange::StationMoved { .. } => ChangeKind::StationMoved,
            },
            Event::Server(event) => match event.change.kind {
                ServerChangeKind::Stop => ChangeKind::ServerStop,
                ServerChangeKind::Kill => ChangeKind::ServerKill,
                ServerChangeKind::Pause => ChangeKind::ServerPause,
                ServerChangeKind::Continue => ChangeKind::ServerContinue,
                ServerChangeKind::Start => ChangeKind::ServerStart,
            },
            Event::Clients(event) => match event.change {
                ClientsChange::Disconnect => ChangeKind::ClientsDisconnect,
                ClientsChange::Vanish => ChangeKind::ClientsVanish,
                ClientsChange::Return => ChangeKind::ClientsReturn,
                ClientsChange::StopReading => ChangeKind::ClientsStopReading,
                ClientsChange::ContinueReading => ChangeKind::ClientsContinueReading,
                ClientsChange::Subscribe { .. } => ChangeKind::ClientsSubscribe,
                ClientsChange::Unsubscribe { .. } => ChangeKind::ClientsUnsubscribe,
                ClientsChange::Publish { .. } => ChangeKind::ClientsPublish,
                ClientsChange::Burst { .. } => ChangeKind::ClientsBurst,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An event of a kind as a plan has it, with all that changes of its target may need.
    fn event(target: &str, change: &str) -> Value {
        let on = match target {
            "links" => json!(["up"]),
            "clients" => json!([0]),
            _ => json!("one"),
        };
        let more = match change {
            "down" => json!({ "queue": "keep" }),
            "interferer_on" | "interferer_off" => json!({ "interferer": "oven" }),
            "stations_off" | "stations_on" => json!({ "stations": [0] }),
            "station_moved" => json!({ "station": 0, "position": { "x_mm": 0, "y_mm": 0 } }),
            "subscribe" => json!({ "filter": "a", "qos": 0 }),
            "unsubscribe" => json!({ "filter": "a" }),
            "publish" => json!({ "publications": [] }),
            "burst" => json!({ "publications": [], "messages": 1 }),
            _ if target == "server" => json!({ "persistence": true }),
            _ => json!({}),
        };
        let mut whole = more;
        whole["kind"] = json!(change);
        json!({ "at_ns": 0, "name": "x", target: on, "change": whole })
    }

    #[test]
    fn what_a_kind_acts_on_and_its_change_are_those_of_the_plan() {
        for (kind, entry) in ChangeKind::ALL.iter().zip(ChangeKind::ENTRIES) {
            let said = |way: &str| entry.phrases.iter().find(|(name, _)| *name == way).map(|(_, word)| *word);
            let (target, change) = (said("target").unwrap(), said("change").unwrap());
            let undone = said("undone_by");
            assert!(undone.is_none_or(|word| ChangeKind::WORDS.contains(&word)), "{undone:?}");
            // A link's properties are many; their kind is enough.
            if change != "spec" {
                let read: Event = serde_json::from_value(event(target, change)).expect(change);
                assert_eq!(read.kind(), *kind);
            }
        }
    }
}
