//! What is done to servers, clients, interferers and stations: each with what it acts on, what ends it, and its words.

use mqttlab_fields::{Node, Reader, Rule, Shape, closest, shown};

/// What an event acts on, as the field that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A network's links.
    Network,
    /// A server.
    Server,
    /// Clients of a group.
    Group,
    /// An interferer of the radio channel.
    Interferer,
    /// A station of the radio channel.
    Station,
}

impl Target {
    /// All, in the order of the fields.
    pub const ALL: [Target; 5] =
        [Target::Network, Target::Server, Target::Group, Target::Interferer, Target::Station];

    /// The field that names it.
    pub fn field(self) -> &'static str {
        match self {
            Target::Network => "network",
            Target::Server => "server",
            Target::Group => "group",
            Target::Interferer => "interferer",
            Target::Station => "station",
        }
    }

    /// With an article.
    pub fn with_article(self) -> &'static str {
        match self {
            Target::Network => "a network",
            Target::Server => "a server",
            Target::Group => "a group",
            Target::Interferer => "an interferer",
            Target::Station => "a station",
        }
    }

    /// Those to whom something is done.
    pub fn whose(self) -> &'static str {
        match self {
            Target::Network => "networks",
            Target::Server => "servers",
            Target::Group => "clients",
            Target::Interferer => "interferers",
            Target::Station => "stations",
        }
    }

    /// What may be done to it.
    pub fn actions(self) -> impl Iterator<Item = &'static Action> {
        ACTIONS.iter().filter(move |action| action.target == self)
    }

    /// The words of what may be done to it, in a row.
    pub fn action_words(self) -> String {
        self.actions().map(|action| action.word).collect::<Vec<_>>().join(", ")
    }
}

/// Something that is done.
#[derive(Debug, PartialEq, Eq)]
pub struct Action {
    /// As a scenario writes it; the plan has underscores.
    pub word: &'static str,
    /// To what.
    pub target: Target,
    /// What ends it after `for`; none of what is an end itself.
    pub ended_by: Option<&'static str>,
    /// What happens, of one and of several; `{}` is the filter, or how many messages.
    pub happens: [&'static str; 2],
    /// Whether it changes what clients publish.
    pub is_publishing: bool,
    /// Whether a plan alone can have it: receivers and due times follow from it before a run begins.
    pub is_fixed: bool,
}

const fn action(
    word: &'static str,
    target: Target,
    ended_by: Option<&'static str>,
    happens: [&'static str; 2],
) -> Action {
    Action { word, target, ended_by, happens, is_publishing: false, is_fixed: false }
}

const fn subscribing(word: &'static str, ended_by: &'static str, happens: [&'static str; 2]) -> Action {
    Action { is_fixed: true, ..action(word, Target::Group, Some(ended_by), happens) }
}

const fn publishing(
    word: &'static str,
    ended_by: Option<&'static str>,
    happens: [&'static str; 2],
) -> Action {
    Action { is_publishing: true, is_fixed: true, ..action(word, Target::Group, ended_by, happens) }
}

/// All that is done, by what it acts on.
pub const ACTIONS: [Action; 19] = [
    action("stop", Target::Server, Some("start"), ["stops", "stop"]),
    action("kill", Target::Server, Some("start"), ["is killed", "are killed"]),
    action("pause", Target::Server, Some("continue"), ["is paused", "are paused"]),
    action("continue", Target::Server, None, ["continues", "continue"]),
    action("start", Target::Server, None, ["starts", "start"]),
    action("disconnect", Target::Group, Some("return"), ["disconnects", "disconnect"]),
    action("vanish", Target::Group, Some("return"), ["vanishes", "vanish"]),
    action("return", Target::Group, None, ["returns", "return"]),
    action("stop-reading", Target::Group, Some("continue-reading"), ["stops reading", "stop reading"]),
    action("continue-reading", Target::Group, None, ["reads again", "read again"]),
    subscribing("subscribe", "unsubscribe", ["subscribes to {}", "subscribe to {}"]),
    subscribing("unsubscribe", "subscribe", ["unsubscribes from {}", "unsubscribe from {}"]),
    publishing("stop-publishing", Some("continue-publishing"), ["stops publishing", "stop publishing"]),
    publishing("continue-publishing", None, ["publishes again", "publish again"]),
    publishing("burst", None, ["publishes {} at once", "publish {} at once"]),
    action("switch-on", Target::Interferer, Some("switch-off"), ["is switched on", "are switched on"]),
    action("switch-off", Target::Interferer, Some("switch-on"), ["is switched off", "are switched off"]),
    action("radio-off", Target::Station, Some("radio-on"), ["falls silent", "fall silent"]),
    action("radio-on", Target::Station, None, ["speaks again", "speak again"]),
];

/// What other tools call it: Docker, systemd, Kubernetes, Chaos Mesh, Pumba.
const CALLED: [(&str, &str); 18] = [
    ("terminate", "stop"),
    ("crash", "kill"),
    ("freeze", "pause"),
    ("suspend", "pause"),
    ("unpause", "continue"),
    ("resume", "continue"),
    ("restart", "kill"),
    ("reconnect", "return"),
    ("connect", "return"),
    ("leave", "disconnect"),
    ("power-off", "vanish"),
    ("die", "vanish"),
    ("disappear", "vanish"),
    ("pause-publishing", "stop-publishing"),
    ("mute", "stop-publishing"),
    ("silence", "stop-publishing"),
    ("resume-publishing", "continue-publishing"),
    ("start-publishing", "continue-publishing"),
];

/// What people may mean who do to clients what is done to servers.
pub fn for_clients(word: &str) -> Option<&'static str> {
    match word {
        "pause" | "stop" => Some("stop-publishing"),
        "continue" => Some("continue-publishing"),
        _ => None,
    }
}

impl Action {
    /// What a word stands for.
    pub fn of(word: &str) -> Option<&'static Action> {
        ACTIONS.iter().find(|action| action.word == word)
    }

    /// What ends it, where it has an end.
    pub fn end(&self) -> Option<&'static Action> {
        self.ended_by.and_then(Action::of)
    }

    /// As the plan has it.
    pub fn planned(&self) -> String {
        self.word.replace('-', "_")
    }
}

/// The action that somebody may mean, also by what other tools call it.
pub fn near_action(given: &str) -> Option<&'static str> {
    let plain = given.to_lowercase().replace(['_', ' '], "-");
    let known = ACTIONS.iter().map(|action| action.word).chain(CALLED.iter().map(|(word, _)| *word));
    let near = closest(&plain, known, 0.6)?;
    let called = CALLED.iter().find(|(word, _)| *word == near).map(|(_, right)| *right);
    called.or_else(|| Action::of(near).map(|action| action.word))
}

/// The rule of what is done.
#[derive(Debug)]
pub struct AsAction;

impl Rule for AsAction {
    type Target = &'static Action;

    fn read(node: &Node, reader: &mut Reader) -> Option<&'static Action> {
        let Some(text) = node.as_text() else {
            let known = ACTIONS.iter().map(|action| action.word).collect::<Vec<_>>().join(", ");
            return reader.wrong(format!("is {}, but must be one of {known}", shown(node)));
        };
        if let Some(action) = Action::of(text) {
            return Some(action);
        }
        let instead = match near_action(text) {
            _ if text.eq_ignore_ascii_case("restart") => {
                "; write `do = \"stop\"` or `\"kill\"` with `for`, the time until it starts again".into()
            }
            Some(near) => format!("; did you mean \"{near}\"?"),
            None => String::new(),
        };
        let targets = [Target::Server, Target::Group, Target::Interferer, Target::Station];
        let these =
            targets.map(|target| format!("{} for {}", target.action_words(), target.whose())).join(", ");
        reader.wrong(format!("is {}, but must be one of {these}{instead}", shown(node)))
    }

    fn shape() -> Shape {
        Shape::Words(&WORDS)
    }
}

/// The words of all actions, each with what happens.
const WORDS: [(&str, &str); ACTIONS.len()] = {
    let mut words = [("", ""); ACTIONS.len()];
    let mut number = 0;
    while number < ACTIONS.len() {
        words[number] = (ACTIONS[number].word, ACTIONS[number].happens[0]);
        number += 1;
    }
    words
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_something_is_done_to_the_same() {
        for action in &ACTIONS {
            if action.ended_by.is_some() {
                let end = action.end().expect("an action ends by another");
                assert_eq!(end.target, action.target, "{}", action.word);
            }
        }
        for (called, right) in CALLED {
            assert!(Action::of(right).is_some() && Action::of(called).is_none(), "{called}");
        }
    }

    #[test]
    fn what_others_call_it_is_asked_for() {
        assert_eq!(near_action("Crash"), Some("kill"));
        assert_eq!(near_action("disconect"), Some("disconnect"));
        assert_eq!(near_action("dance"), None);
    }
}
