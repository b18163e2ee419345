//! What an event is called, and told in a sentence.

use mqttlab_fields::{
    AsPart, DataRate, Delay, Member, Node, Reader, Rule, Share, Words, plain, shown, with_commas,
};
use mqttlab_net::{PolicerSpec, QueueDiscipline};

use super::action::Action;
use super::event::{Event, Publication, Queued, WhichWay};
use crate::networks::Queue;

/// The longest name that an event is given, in characters.
const NAME_MAX: usize = 80;

impl Event {
    /// Its name when it begins.
    pub fn name_of_begin(&self) -> String {
        self.name.clone().unwrap_or_else(|| shortened(self.what()))
    }

    /// The name of its end.
    pub fn name_of_end(&self) -> String {
        if let Some(name) = &self.name {
            return format!("end of {name}");
        }
        if self.network.is_some() {
            let back = if self.down == Some(true) { "up" } else { "as before" };
            return format!("{} {back}", self.links());
        }
        if self.publish.is_some() {
            return shortened(format!("{} as before", self.publishing()));
        }
        if self.position.is_some() {
            return format!("{} back in its place", self.station.as_deref().unwrap_or_default());
        }
        let end = self.r#do.and_then(Action::end);
        shortened(end.map_or_else(String::new, |end| self.acting(end)))
    }

    /// What happens, in a few words.
    pub fn what(&self) -> String {
        if self.publish.is_some() {
            return format!("{} {}", self.publishing(), self.published());
        }
        if let Some(position) = self.position {
            let [x, y] = position.map(|mm| plain(mm as f64 / 1000.0, 6));
            return format!("{} moves to {x}, {y} m", self.station.as_deref().unwrap_or_default());
        }
        if self.network.is_none() {
            return self.r#do.map_or_else(String::new, |action| self.acting(action));
        }
        match self.down {
            Some(down) => format!("{} {}", self.links(), if down { "down" } else { "up" }),
            None => {
                let fields: Vec<_> = self.link.0.members.iter().map(field).collect();
                format!("{} {}", self.links(), fields.join(", "))
            }
        }
    }

    /// In a sentence, as `check` tells it; with its times, in ns of the measurement.
    pub fn sentence(&self, times: &[i64]) -> String {
        let named = self.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let mut words = format!("at {}", seconds(times.first().copied().unwrap_or_default()));
        if let Some(when) = &self.when {
            let after = match self.at {
                None | Some(0) => "with".into(),
                Some(at) => format!("{} {}", seconds(at.abs()), if at > 0 { "after" } else { "before" }),
            };
            words = format!("{after} {when}, {words}");
        }
        if let [first, second, ..] = times {
            words += &format!(" and every {}, {} times", seconds(second - first), times.len());
        }
        if let Some(lasts) = self.lasts {
            words += &format!(", for {}", seconds(lasts.as_ns() as i64));
        }
        let queue = match (self.down, self.queued) {
            (Some(true), Some(Queued::Keep)) => ", waiting frames are kept",
            (Some(true), _) => ", waiting frames are dropped",
            _ => "",
        };
        format!("{named}{words}: {}{queue}", self.what())
    }

    fn links(&self) -> String {
        let network = self.network.as_deref().unwrap_or_default();
        match self.direction {
            Some(way @ (WhichWay::Up | WhichWay::Down)) => format!("{network}/{}", way.word()),
            _ => network.into(),
        }
    }

    fn acting(&self, action: &Action) -> String {
        if self.group.is_none() {
            let who = self.server.as_ref().or(self.interferer.as_ref()).or(self.station.as_ref());
            return format!("{} {}", who.map_or("", String::as_str), action.happens[0]);
        }
        let about = match action.word {
            "burst" => counted(self.messages.unwrap_or(1), "message"),
            _ => self.filter.clone().unwrap_or_default(),
        };
        let happens = action.happens[usize::from(self.client.is_none())];
        format!("{} {}", self.publisher(), happens.replace("{}", &about))
    }

    /// The clients, and of several publications which.
    fn publisher(&self) -> String {
        let group = self.group.as_deref().unwrap_or_default();
        let who = match (self.client, self.share) {
            (Some(client), _) => format!("{group} {client}"),
            (None, Some(share)) => format!("{} % of {group}", plain(100.0 * share.as_f64(), 3)),
            (None, None) => group.into(),
        };
        match &self.publication {
            Some(Publication::Number(number)) => format!("{who} (publication {number})"),
            Some(Publication::Topic(topic)) => format!("{who} ({topic})"),
            None => who,
        }
    }

    fn publishing(&self) -> String {
        format!("{} {}", self.publisher(), if self.client.is_none() { "publish" } else { "publishes" })
    }

    /// What messages are from now on.
    fn published(&self) -> String {
        let Some(publish) = &self.publish else { return String::new() };
        let mut words = Vec::new();
        if let Some(every) = publish.every() {
            words.push(match every.as_ns() {
                0 => "nothing".into(),
                ns if ns < 1_000_000_000 => {
                    // To three decimals.
                    format!("at {} /s", plain((1e12 / ns as f64).round_ties_even() / 1e3, 10))
                }
                ns => format!("every {}", seconds(ns as i64)),
            });
        }
        if let Some(payload) = &publish.payload {
            words.push(payload.as_text().map_or_else(|| shown(payload), str::to_owned));
        }
        if let Some(qos) = publish.qos {
            words.push(format!("at QoS {qos}"));
        }
        words.join(", ")
    }
}

/// A field of a link with its value, where that is short.
fn field(member: &Member) -> String {
    let name = member.name.as_str();
    let node = &member.node;
    let words = match name {
        "rate" => read::<DataRate>(node).map(|rate| rate_words(rate.as_bit_s() as f64)),
        "delay" | "jitter" => {
            read::<Delay>(node).map(|time| format!("{} ms", plain(time.as_ns() as f64 / 1e6, 6)))
        }
        "loss" | "duplicate" | "corrupt" | "correlation" => {
            read::<Share>(node).map(|share| format!("{} %", plain(100.0 * share.as_f64(), 3)))
        }
        "queue" => read::<AsPart<Queue>>(node).map(|queue| queue.words()),
        "policer" => {
            read::<AsPart<PolicerSpec>>(node).map(|policer| rate_words(policer.rate_bit_s.as_bit_s() as f64))
        }
        "discipline" => {
            read::<AsPart<QueueDiscipline>>(node).map(|discipline| discipline.kind.word().to_owned())
        }
        _ => None,
    };
    words.map_or_else(|| name.replace('_', " "), |words| format!("{name} {words}"))
}

fn read<R: Rule>(node: &Node) -> Option<R::Target> {
    R::read(node, &mut Reader::default())
}

/// A data rate in bit/s as people say it.
pub fn rate_words(bit_s: f64) -> String {
    let scale = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")];
    let (factor, unit) = scale.into_iter().find(|(factor, _)| bit_s >= *factor).unwrap_or((1.0, "bit/s"));
    format!("{} {unit}", plain(bit_s / factor, 3))
}

/// A time or a length of time.
pub fn seconds(ns: i64) -> String {
    if ns == 0 || ns.unsigned_abs() >= 1_000_000_000 {
        format!("{} s", plain(ns as f64 / 1e9, 6))
    } else {
        format!("{} ms", plain(ns as f64 / 1e6, 6))
    }
}

fn counted(number: u32, of: &str) -> String {
    let written = with_commas(&number.to_string());
    if number == 1 { format!("{written} {of}") } else { format!("{written} {of}s") }
}

fn shortened(text: String) -> String {
    if text.chars().count() <= NAME_MAX {
        return text;
    }
    text.chars().take(NAME_MAX - 1).chain(['…']).collect()
}
