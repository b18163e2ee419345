//! What is wrong with a text that is no plan: where, what was found there, and what may have been meant.

use serde::Deserialize;

use crate::{Plan, PlanError, SCHEMA};

/// Why a text, which could not be read as a plan, is none.
pub(crate) fn explain(text: &str, error: &serde_json::Error) -> PlanError {
    // A plan of another schema has other fields, of which each would be called wrong.
    if let Some(schema) = schema_of(text).filter(|schema| *schema != u64::from(SCHEMA)) {
        return PlanError::Value {
            place: "schema".into(),
            problem: format!("is {schema}, but must be {SCHEMA}; make the plan anew from its scenario"),
        };
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    // Read again, now with an eye on where: that takes too long for the plans that are right.
    let place = match serde_path_to_error::deserialize::<_, Plan>(&mut reader) {
        Err(found) => found.path().to_string(),
        Ok(_) => String::new(),
    };
    let problem = error.to_string();
    let meant = nearest(&problem).map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    if place.is_empty() || place == "." {
        return PlanError::Syntax(format!("{problem}{meant}"));
    }
    PlanError::Syntax(format!("`{place}`: {problem}{meant}"))
}

/// The name nearest to the wrong one, where serde says "unknown field `a`, expected one of `b`, `c`".
fn nearest(problem: &str) -> Option<&str> {
    let (wrong, known) = problem.split_once(", expected ")?;
    let wrong = wrong.split('`').nth(1)?;
    let names = known.split('`').skip(1).step_by(2);
    let (distance, name) =
        names.map(|name| (distance(wrong, name), name)).min_by_key(|(distance, _)| *distance)?;
    (distance <= wrong.len().max(name.len()) / 2).then_some(name)
}

/// How many letters have to be put in, taken out or replaced.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (place, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

/// The one field that plans of every schema have.
#[derive(Deserialize)]
struct Versioned {
    schema: serde_json::Value,
}

/// The schema that a text says it is of, whatever else is wrong with it.
fn schema_of(text: &str) -> Option<u64> {
    serde_json::from_str::<Versioned>(text).ok()?.schema.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest_right_one() {
        let problem =
            "unknown field `conects_to`, expected one of `name`, `count`, `connects_to` at line 3 column 5";
        assert_eq!(nearest(problem), Some("connects_to"));
        let problem = "unknown variant `simulator`, expected `live` or `sim`";
        assert_eq!(nearest(problem), None, "nothing is near");
        assert_eq!(nearest("unknown variant `simm`, expected `live` or `sim`"), Some("sim"));
        assert_eq!(nearest("missing field `name`"), None);
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", "abc")), (3, 0));
    }
}
