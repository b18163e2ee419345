//! Places in a file: `groups[0].publish.qos`.

use std::fmt;

/// A step from a value to one in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// To the member of a table.
    Name(String),
    /// To the entry of an array, counted from 0.
    Index(usize),
}

/// Steps from the top level down.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub Vec<Step>);

impl Place {
    /// The same, with one step more.
    #[must_use]
    pub fn then(&self, step: Step) -> Place {
        let mut steps = self.0.clone();
        steps.push(step);
        Place(steps)
    }

    /// The same, with the names behind it.
    #[must_use]
    pub fn names(mut self, names: &[&str]) -> Place {
        self.0.extend(names.iter().map(|name| Step::Name((*name).into())));
        self
    }

    /// The entry of an array at the top level.
    pub fn entry(name: &str, index: usize) -> Place {
        Place(vec![Step::Name(name.into()), Step::Index(index)])
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Name(name) if number == 0 => write!(f, "{name}")?,
                Step::Name(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

impl From<&str> for Step {
    fn from(name: &str) -> Step {
        Step::Name(name.into())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}
