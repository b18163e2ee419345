//! Topic names, topic filters, and the tree that finds the filters that match a name (§4.7).

use std::collections::BTreeMap;

/// Whether this is a topic name: not empty, no wildcard, no U+0000, at most 65535 bytes ([MQTT-4.7.3-1] to -3).
pub fn is_name(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= 65_535 && !topic.bytes().any(|byte| matches!(byte, b'+' | b'#' | 0))
}

/// Whether this is a topic filter: wildcards stand alone in their level, `#` only in the last one
/// ([MQTT-4.7.1-1], [MQTT-4.7.1-2]). A shared subscription (`$share/group/filter`) is checked in both its parts.
pub fn is_filter(filter: &str) -> bool {
    if filter.starts_with("$share/") {
        // `$share/` alone makes it one, and then it needs a name and a filter ([MQTT-4.8.2-1], [MQTT-4.8.2-2]).
        return share(filter).is_some_and(|(_, inner)| is_filter(inner));
    }
    if filter.is_empty() || filter.len() > 65_535 || filter.contains('\0') {
        return false;
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let stands_alone = level.len() == 1 || !level.contains(['+', '#']);
        let last = levels.peek().is_none();
        if !stands_alone || level == "#" && !last {
            return false;
        }
    }
    true
}

/// Group and filter of a shared subscription (§4.8.2); `None` when it is not one.
pub fn share(filter: &str) -> Option<(&str, &str)> {
    let (group, inner) = filter.strip_prefix("$share/")?.split_once('/')?;
    // A share name has a character at least, and no wildcard ([MQTT-4.8.2-1], [MQTT-4.8.2-2]).
    let valid = !group.is_empty() && !group.contains(['+', '#']) && !inner.is_empty();
    valid.then_some((group, inner))
}

/// Whether a filter matches a name. Wildcards in the first level do not match names that begin with `$`
/// ([MQTT-4.7.2-1]).
pub fn matches(filter: &str, name: &str) -> bool {
    if name.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = name.split('/');
    let mut filters = filter.split('/');
    loop {
        match (filters.next(), levels.next()) {
            // It matches the parent level, too (§4.7.1.2).
            (Some("#"), _) => return true,
            // One level, which may be empty: `sport/+` matches `sport/`, and not `sport` (§4.7.1.3).
            (Some("+"), Some(_)) => {}
            // Character by character, in the same case ([MQTT-4.7.3-4], §4.7.3).
            (Some(wanted), Some(level)) if wanted == level => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// Subscriptions by filter. `T` is whatever a subscription is. Values come back in the order of their insertion
/// within a filter; the filters of a name as Mosquitto looks for them: in each level the level's own name first,
/// then `+`, then `#`. Fan-out is the same in every run.
///
/// A level's name is stored once, and stays when its filters go.
#[derive(Clone, Debug)]
pub struct TopicTree<T> {
    levels: BTreeMap<Box<str>, u32>,
    /// Nodes by parent and level.
    children: BTreeMap<(u32, u32), u32>,
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    /// Subscriptions by node. Apart from the nodes, because most nodes are only on the way to others.
    here: BTreeMap<u32, Vec<T>>,
}

/// Where a filter is in a [`TopicTree`], as long as it has subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    level: u32,
    children: u32,
}

const ROOT: u32 = 0;
const PLUS: u32 = 0;
const HASH: u32 = 1;

impl<T> Default for TopicTree<T> {
    fn default() -> Self {
        TopicTree {
            levels: BTreeMap::from([("+".into(), PLUS), ("#".into(), HASH)]),
            children: BTreeMap::new(),
            nodes: vec![Node { parent: ROOT, level: 0, children: 0 }],
            vacant: Vec::new(),
            here: BTreeMap::new(),
        }
    }
}

impl<T> TopicTree<T> {
    /// A tree without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription, and says where. A filter may hold any number of them.
    pub fn insert(&mut self, filter: &str, value: T) -> Place {
        let mut node = ROOT;
        // A `/` at either end makes an empty level (§4.7.3).
        for level in filter.split('/') {
            let level = self.number(level);
            node = match self.children.get(&(node, level)) {
                Some(&child) => child,
                None => self.grow(node, level),
            };
        }
        // Most filters are one client's own.
        self.here.entry(node).or_insert_with(|| Vec::with_capacity(1)).push(value);
        Place(node)
    }

    /// Where a filter is that has subscriptions.
    pub fn find(&self, filter: &str) -> Option<Place> {
        let mut node = ROOT;
        for level in filter.split('/') {
            node = self.child(node, *self.levels.get(level)?)?;
        }
        self.here.contains_key(&node).then_some(Place(node))
    }

    /// The subscriptions of a filter.
    pub fn at(&mut self, place: Place) -> &mut [T] {
        self.here.get_mut(&place.0).map_or(&mut [], |here| here)
    }

    /// Removes the subscriptions of a filter that `unwanted` holds of, and what becomes empty with them. Says
    /// how many.
    pub fn remove(&mut self, filter: &str, unwanted: impl FnMut(&T) -> bool) -> usize {
        self.find(filter).map_or(0, |place| self.remove_at(place, unwanted))
    }

    /// The same, of a filter whose place is known.
    pub fn remove_at(&mut self, place: Place, mut unwanted: impl FnMut(&T) -> bool) -> usize {
        let Some(here) = self.here.get_mut(&place.0) else { return 0 };
        let before = here.len();
        here.retain(|value| !unwanted(value));
        let removed = before - here.len();
        if here.is_empty() {
            self.here.remove(&place.0);
            self.prune(place.0);
        }
        removed
    }

    /// Calls `found` with every subscription whose filter matches the name.
    pub fn each_match<'a>(&'a self, name: &str, mut found: impl FnMut(&'a T)) {
        self.descend(ROOT, Some(name), !name.starts_with('$'), &mut found);
    }

    /// The subscriptions of a node whose filters match the `rest` of a name; `None` when all of it has matched.
    fn descend<'a>(&'a self, node: u32, rest: Option<&str>, wildcards: bool, found: &mut impl FnMut(&'a T)) {
        if let Some(rest) = rest {
            let (first, rest) =
                rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest)));
            let literal = self.levels.get(first).and_then(|&level| self.child(node, level));
            let plus = wildcards.then(|| self.child(node, PLUS)).flatten();
            // Mosquitto's order (`sub__search`), in which copies leave: the level's own name, `+`, `#`.
            for child in literal.into_iter().chain(plus) {
                // `$` bars wildcards from the first level only ([MQTT-4.7.2-1]).
                self.descend(child, rest, true, found);
            }
        } else {
            self.here.get(&node).into_iter().flatten().for_each(&mut *found);
        }
        // "#" matches its parent too ([§4.7.1.2] "sport/#" also matches "sport").
        if let Some(child) = wildcards.then(|| self.child(node, HASH)).flatten() {
            self.here.get(&child).into_iter().flatten().for_each(found);
        }
    }

    fn child(&self, node: u32, level: u32) -> Option<u32> {
        self.children.get(&(node, level)).copied()
    }

    fn number(&mut self, level: &str) -> u32 {
        if let Some(&number) = self.levels.get(level) {
            return number;
        }
        let number = self.levels.len() as u32;
        self.levels.insert(level.into(), number);
        number
    }

    fn grow(&mut self, parent: u32, level: u32) -> u32 {
        let node = Node { parent, level, children: 0 };
        let number = match self.vacant.pop() {
            Some(number) => number,
            None => self.nodes.len() as u32,
        };
        match self.nodes.get_mut(number as usize) {
            Some(place) => *place = node,
            None => self.nodes.push(node),
        }
        self.children.insert((parent, level), number);
        self.nodes[parent as usize].children += 1;
        number
    }

    /// Takes out a node that holds nothing, and those above it that then hold nothing.
    fn prune(&mut self, mut number: u32) {
        while number != ROOT {
            let Node { parent, level, children } = self.nodes[number as usize];
            if children > 0 || self.here.contains_key(&number) {
                return;
            }
            self.children.remove(&(parent, level));
            self.vacant.push(number);
            self.nodes[parent as usize].children -= 1;
            number = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_specifications_examples_say() {
        for (filter, name, expected) in [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("#", "a/b", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/broker", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/", true),
            ("a/+/c", "a//c", true),
        ] {
            assert_eq!(matches(filter, name), expected, "{filter} {name}");
            let mut tree = TopicTree::new();
            tree.insert(filter, ());
            let mut found = 0;
            tree.each_match(name, |_| found += 1);
            assert_eq!(found == 1, expected, "tree: {filter} {name}");
        }
    }

    #[test]
    fn wildcards_stand_alone_in_their_level() {
        for filter in ["#", "a/#", "+", "+/a/+", "/", "$share/g/a/+", "a//b"] {
            assert!(is_filter(filter), "{filter}");
        }
        for filter in ["", "a#", "#/a", "a/b+", "a/+b/c", "$share/g", "$share//a", "$share/+/a", "a\0"] {
            assert!(!is_filter(filter), "{filter}");
        }
    }

    #[test]
    fn names_have_no_wildcards() {
        assert!(is_name("a/b") && is_name("/") && is_name("$SYS/x"));
        assert!(!is_name("") && !is_name("a/+") && !is_name("#"));
    }

    #[test]
    fn removing_the_last_subscription_of_a_branch_removes_the_branch() {
        let mut tree = TopicTree::new();
        tree.insert("a/b/c", 1);
        tree.insert("a/b/c", 2);
        assert_eq!(tree.remove("a/b/c", |value| *value == 1), 1);
        assert_eq!(tree.remove("a/b/x", |_| true), 0);
        assert_eq!(tree.remove("a/b/c", |_| true), 1);
        assert!(tree.children.is_empty());
        assert_eq!(tree.find("a/b/c"), None);
        let nodes = tree.nodes.len();
        let place = tree.insert("a/b", 3);
        assert_eq!((tree.find("a/b"), tree.at(place)), (Some(place), &mut [3][..]));
        assert_eq!(tree.nodes.len(), nodes, "places are used again");
    }

    #[test]
    fn filters_are_found_from_the_narrowest_to_the_widest() {
        let mut tree = TopicTree::new();
        for filter in ["#", "a/#", "a/b/#", "a/+", "+/b", "a/b"] {
            tree.insert(filter, filter);
        }
        let mut found = Vec::new();
        tree.each_match("a/b", |filter| found.push(*filter));
        assert_eq!(found, ["a/b", "a/b/#", "a/+", "a/#", "+/b", "#"]);
    }
}
