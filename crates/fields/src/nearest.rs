//! The known name that is most like a wrong one, by Ratcliff and Obershelp's measure: twice the letters that match,
//! of the letters of both (J. W. Ratcliff and D. E. Metzener, Pattern Matching: The Gestalt Approach, 1988).

/// A comparison takes a time that grows with all letters of all names.
const COMPARED_MAX: usize = 1_000;
/// Names that a message lists.
const NAMED_MAX: usize = 20;
/// From this length on, letters that stand in more than 1 % of a name's places match nothing.
const POPULAR_FROM: usize = 200;

/// The known name that is most like a given one, of at least this likeness (0 to 1).
pub fn closest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, likeness: f64) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    if known.len() > COMPARED_MAX {
        return None;
    }
    let given: Vec<char> = given.chars().collect();
    let alike = known.into_iter().map(|name| (alikeness(&name.chars().collect::<Vec<_>>(), &given), name));
    // Of names that are alike as much, the later one by letters.
    alike
        .filter(|(ratio, _)| *ratio >= likeness)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)))
        .map(|(_, name)| name)
}

/// The nearest known name as a question, or the known names.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, likeness: f64) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match closest(given, known.iter().copied(), likeness) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "known: none".into(),
        None => format!("known: {}", some(&known)),
    }
}

/// Names one after the other, of many the first ones.
pub fn some(names: &[&str]) -> String {
    let listed = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => listed,
        more => format!("{listed}, and {more} more"),
    }
}

/// Twice the letters that match, of the letters of both.
fn alikeness(a: &[char], b: &[char]) -> f64 {
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    2.0 * matches(a, b, b) as f64 / (a.len() + b.len()) as f64
}

/// The letters of the longest common part, and of the longest ones before and behind it.
fn matches(a: &[char], b: &[char], whole: &[char]) -> usize {
    let (at_a, at_b, length) = longest_common(a, b, whole);
    if length == 0 {
        return 0;
    }
    length + matches(&a[..at_a], &b[..at_b], whole) + matches(&a[at_a + length..], &b[at_b + length..], whole)
}

/// Where the longest common part begins in both, and its length; of several the first one in `a`, then in `b`.
fn longest_common(a: &[char], b: &[char], whole: &[char]) -> (usize, usize, usize) {
    let mut best = (0, 0, 0);
    let mut before = vec![0; b.len() + 1];
    for (i, letter) in a.iter().enumerate() {
        let mut here = vec![0; b.len() + 1];
        for (j, other) in b.iter().enumerate() {
            if letter == other && !is_popular(*other, whole) {
                here[j + 1] = before[j] + 1;
                if here[j + 1] > best.2 {
                    best = (i + 1 - here[j + 1], j + 1 - here[j + 1], here[j + 1]);
                }
            }
        }
        before = here;
    }
    best
}

fn is_popular(letter: char, whole: &[char]) -> bool {
    whole.len() >= POPULAR_FROM
        && whole.iter().filter(|other| **other == letter).count() > whole.len() / 100 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_asked_for() {
        assert_eq!(closest("nmae", ["name", "mtu", "seed"], 0.6), Some("name"));
        assert_eq!(closest("life", ["live", "sim"], 0.5), Some("live"));
        assert_eq!(closest("ns-3", ["live", "sim"], 0.5), None);
        assert_eq!(did_you_mean("x", [], 0.5), "known: none");
        assert_eq!(did_you_mean("zzz", ["a", "b"], 0.5), "known: a, b");
        // As `difflib` of Python has it.
        let both: [Vec<char>; 2] = ["publish", "subscribe"].map(|name| name.chars().collect());
        assert!((alikeness(&both[0], &both[1]) - 0.375).abs() < 1e-9);
    }
}
