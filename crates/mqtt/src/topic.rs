//! Topic names, topic filters, and the tree that finds the filters that match a name (§4.7).

use std::collections::BTreeMap;

/// Whether this is a topic name: not empty, no wildcard, no U+0000, at most 65535 bytes ([MQTT-4.7.3-1] to -3).
pub fn is_name(topic: &str) -> bool {
    !topic.is_empty() && topic.len() <= 65_535 && !topic.bytes().any(|byte| matches!(byte, b'+' | b'#' | 0))
}

/// Whether this is a topic filter: wildcards stand alone in their level, `#` only in the last one
/// ([MQTT-4.7.1-1] to -3). A shared subscription (`$share/group/filter`) is checked in both its parts.
pub fn is_filter(filter: &str) -> bool {
    if filter.starts_with("$share/") {
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
            (Some("#"), _) => return true,
            (Some("+"), Some(_)) => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// Subscriptions by filter. `T` is whatever a subscription is; values come back in the order of their insertion
/// within a filter, and filters in the order of their levels, so that fan-out is the same in every run.
#[derive(Clone, Debug)]
pub struct TopicTree<T> {
    root: Node<T>,
}

#[derive(Clone, Debug)]
struct Node<T> {
    children: BTreeMap<Box<str>, Node<T>>,
    here: Vec<T>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Node { children: BTreeMap::new(), here: Vec::new() }
    }
}

impl<T> Default for TopicTree<T> {
    fn default() -> Self {
        TopicTree { root: Node::default() }
    }
}

impl<T> TopicTree<T> {
    /// A tree without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription. A filter may hold any number of them.
    pub fn insert(&mut self, filter: &str, value: T) {
        let mut node = &mut self.root;
        for level in filter.split('/') {
            node = node.children.entry(level.into()).or_default();
        }
        node.here.push(value);
    }

    /// Removes the subscriptions of a filter that `unwanted` holds of, and what becomes empty with them. Says
    /// how many.
    pub fn remove(&mut self, filter: &str, unwanted: impl FnMut(&T) -> bool) -> usize {
        let levels: Vec<&str> = filter.split('/').collect();
        self.root.remove(&levels, unwanted)
    }

    /// Calls `found` with every subscription whose filter matches the name.
    pub fn each_match<'a>(&'a self, name: &str, mut found: impl FnMut(&'a T)) {
        let levels: Vec<&str> = name.split('/').collect();
        self.root.each_match(&levels, !name.starts_with('$'), &mut found);
    }
}

impl<T> Node<T> {
    fn remove(&mut self, levels: &[&str], mut unwanted: impl FnMut(&T) -> bool) -> usize {
        let Some((first, rest)) = levels.split_first() else {
            let before = self.here.len();
            self.here.retain(|value| !unwanted(value));
            return before - self.here.len();
        };
        let Some(child) = self.children.get_mut(*first) else { return 0 };
        let removed = child.remove(rest, &mut unwanted as &mut dyn FnMut(&T) -> bool);
        if child.children.is_empty() && child.here.is_empty() {
            self.children.remove(*first);
        }
        removed
    }

    fn each_match<'a>(&'a self, levels: &[&str], wildcards: bool, found: &mut impl FnMut(&'a T)) {
        // "#" matches its parent too ([§4.7.1.2] "sport/#" also matches "sport").
        if let Some(child) = self.children.get("#").filter(|_| wildcards) {
            child.here.iter().for_each(&mut *found);
        }
        let Some((first, rest)) = levels.split_first() else {
            self.here.iter().for_each(found);
            return;
        };
        if let Some(child) = self.children.get("+").filter(|_| wildcards) {
            child.each_match(rest, true, found);
        }
        if let Some(child) = self.children.get(*first) {
            child.each_match(rest, true, found);
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
        assert!(tree.root.children.is_empty());
    }
}
