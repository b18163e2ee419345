//! When the events of a scenario begin: at a time, again and again, with a stage or with another event.

use std::collections::HashMap;

use super::event::Event;
use crate::phases::Phases;

/// How the end of an event or a stage is called.
const END_OF: &str = "end of ";

/// Times at equal distances, in ns of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    first: i64,
    every: i64,
    count: u64,
}

impl Times {
    const NONE: Times = Times { first: 0, every: 1, count: 0 };

    fn once(at: i64) -> Times {
        Times { first: at, every: 1, count: 1 }
    }

    fn later(self, by: i64) -> Times {
        Times { first: self.first.saturating_add(by), ..self }
    }

    /// How many there are.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The first one.
    pub fn first(self) -> Option<i64> {
        (self.count > 0).then_some(self.first)
    }

    /// The last one.
    pub fn last(self) -> Option<i64> {
        (self.count > 0).then(|| self.first.saturating_add(self.every.saturating_mul(self.count as i64 - 1)))
    }

    /// All of them, ascending.
    pub fn all(self) -> impl Iterator<Item = i64> {
        (0..self.count as i64).map(move |number| self.first + number * self.every)
    }
}

/// An event that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitedFor {
    /// The number of the event.
    pub event: usize,
    /// Whether its end is waited for.
    pub for_end: bool,
}

/// The times of all events; each is found once, however many events wait for each other in a row.
#[derive(Debug)]
pub struct EventTimes<'a> {
    phases: &'a Phases,
    events: &'a [Event],
    named: HashMap<&'a str, Vec<usize>>,
    known: Vec<Option<Times>>,
    /// How many events wait for each other in a circle, by the first one that was asked for.
    circles: HashMap<usize, usize>,
}

impl<'a> EventTimes<'a> {
    /// The times of these events.
    pub fn new(phases: &'a Phases, events: &'a [Event]) -> EventTimes<'a> {
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, event) in events.iter().enumerate() {
            if let Some(name) = &event.name {
                named.entry(name).or_default().push(number);
            }
        }
        let mut times =
            EventTimes { phases, events, named, known: vec![None; events.len()], circles: HashMap::new() };
        for number in 0..events.len() {
            times.find(number);
        }
        times
    }

    /// When an event begins. None where it waits for itself, or for what is not there.
    pub fn of(&self, event: usize) -> Times {
        self.known[event].unwrap_or(Times::NONE)
    }

    /// How many events wait for each other in a circle that this one closes; else 0.
    pub fn in_turn(&self, event: usize) -> usize {
        self.circles.get(&event).copied().unwrap_or(0)
    }

    /// What events are called that others may wait for, in the order of the scenario.
    pub fn names(&self) -> Vec<&'a str> {
        let mut seen = std::collections::BTreeSet::new();
        self.events
            .iter()
            .filter_map(|event| event.name.as_deref())
            .filter(|name| seen.insert(*name))
            .collect()
    }

    /// The events that an event may wait for by their name. One, where nothing is wrong.
    pub fn waited_for(&self, event: usize) -> Vec<WaitedFor> {
        let when = self.events[event].when.as_deref().unwrap_or_default();
        for (name, for_end) in [(when, false), (when.strip_prefix(END_OF).unwrap_or(when), true)] {
            if let Some(found) = self.named.get(name) {
                return found.iter().map(|event| WaitedFor { event: *event, for_end }).collect();
            }
        }
        Vec::new()
    }

    /// Events may wait for each other in a row of any length, and in a circle: no call waits for another one.
    fn find(&mut self, event: usize) {
        let mut row = vec![event];
        while let Some(before) = row.last().and_then(|last| self.before(*last)) {
            if self.known[before.event].is_some() {
                break;
            }
            if let Some(begin) = row.iter().position(|one| *one == before.event) {
                self.circles.insert(before.event, row.len() - begin);
                for one in &row[begin..] {
                    self.known[*one] = Some(Times::NONE);
                }
                break;
            }
            row.push(before.event);
        }
        for waiting in row.into_iter().rev() {
            if self.known[waiting].is_none() {
                self.known[waiting] = Some(self.times(waiting));
            }
        }
    }

    /// The event whose times have to be known first.
    fn before(&self, event: usize) -> Option<WaitedFor> {
        let when = self.events[event].when.as_deref()?;
        if self.phases.instant(when).is_some() {
            return None;
        }
        match self.waited_for(event)[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// When took place what an event waits for.
    fn begun(&self, event: usize, when: &str) -> Times {
        if let Some(stage) = self.phases.instant(when) {
            return Times::once(stage as i64);
        }
        let Some(WaitedFor { event, for_end }) = self.before(event) else { return Times::NONE };
        let lasts = self.events[event].lasts.map(|lasts| lasts.as_ns() as i64);
        match (for_end, lasts) {
            (true, None) => Times::NONE,
            (true, Some(lasts)) => self.of(event).later(lasts),
            (false, _) => self.of(event),
        }
    }

    fn times(&self, number: usize) -> Times {
        let event = &self.events[number];
        let begun = event.when.as_ref().map_or(Times::once(0), |when| self.begun(number, when));
        let (Some(every), Some(first)) = (event.every, begun.first()) else {
            return begun.later(event.at.unwrap_or(0));
        };
        let every = every.as_ns() as i64;
        let own = if event.at.is_none() && event.when.is_none() { every } else { event.at.unwrap_or(0) };
        let first = first + own;
        let count = match event.count {
            Some(count) => u64::from(count),
            None => {
                let end = self.phases.lengths.duration.as_ns() as i64 - 1;
                let last = event.until.map_or(end, |until| end.min(until.as_ns() as i64));
                if last < first { 0 } else { ((last - first) / every) as u64 + 1 }
            }
        };
        Times { first, every, count }
    }
}

#[cfg(test)]
mod tests {
    use mqttlab_fields::{Field, Reader, Rule};

    use super::*;
    use crate::document;

    fn times(events: &str) -> Vec<Vec<i64>> {
        let text = format!("{events}\n[phases]\nduration = \"10 s\"\n");
        let tree = document::parse(&text).expect("a test's TOML");
        let table = tree.as_table().expect("a table");
        let mut reader = Reader::default();
        let phases = <Phases as Field>::Rule::read(table.get("phases").expect("phases"), &mut reader);
        let events = <Vec<Event> as Field>::Rule::read(table.get("events").expect("events"), &mut reader);
        let (phases, events) = phases.zip(events).unwrap_or_else(|| panic!("{:?}", reader.into_problems()));
        let times = EventTimes::new(&phases, &events);
        (0..events.len()).map(|event| times.of(event).all().map(|ns| ns / 1_000_000_000).collect()).collect()
    }

    #[test]
    fn events_begin_again_and_again_and_with_others() {
        let rain = "[[events]]\nname = \"rain\"\nat = \"1 s\"\nfor = \"2 s\"\nnetwork = \"a\"\ndown = true\n";
        assert_eq!(
            times(&format!(
                "{rain}[[events]]\nwhen = \"end of rain\"\nat = \"1 s\"\nnetwork = \"a\"\ndown = false"
            )),
            [vec![1], vec![4]]
        );
        assert_eq!(times("[[events]]\nevery = \"3 s\"\nserver = \"b\"\ndo = \"kill\""), [vec![3, 6, 9]]);
        assert_eq!(
            times("[[events]]\nat = \"0 s\"\nevery = \"4 s\"\ncount = 2\nserver = \"b\"\ndo = \"kill\""),
            [vec![0, 4]]
        );
        let circle = "[[events]]\nname = \"a\"\nwhen = \"b\"\nserver = \"b\"\ndo = \"kill\"\n[[events]]\nname = \"b\"\n\
                      when = \"a\"\nserver = \"b\"\ndo = \"start\"\n";
        assert_eq!(times(circle), [vec![], Vec::<i64>::new()]);
    }
}
