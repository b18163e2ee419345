//! Reading a tree: where one is, and all that is wrong with it.

use std::path::{Path, PathBuf};

use crate::declaration::PartDeclaration;
use crate::place::{Place, Step};

/// Something that is wrong, or unusual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What, in words that follow the field's name.
    pub what: String,
}

/// Reads a tree from the top level down.
#[derive(Debug, Default)]
pub struct Reader {
    place: Place,
    problems: Vec<Problem>,
    directory: Option<PathBuf>,
    top: Option<&'static PartDeclaration>,
}

impl Reader {
    /// A reader of a file in this directory, beside which other files lie.
    pub fn in_directory(directory: Option<PathBuf>) -> Reader {
        Reader { directory, ..Reader::default() }
    }

    /// The same, of a file with this table at its top level.
    #[must_use]
    pub(crate) fn with_top(self, top: &'static PartDeclaration) -> Reader {
        Reader { top: Some(top), ..self }
    }

    /// The table at the top level, for hints.
    pub(crate) fn top(&self) -> Option<&'static PartDeclaration> {
        self.top
    }

    /// The directory of the file that is read.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Reads what is one step below, at that place.
    pub fn below<T>(&mut self, step: impl Into<Step>, read: impl FnOnce(&mut Reader) -> T) -> T {
        self.place.0.push(step.into());
        let result = read(self);
        self.place.0.pop();
        result
    }

    /// Notes that something is wrong here.
    pub fn wrong<T>(&mut self, what: impl Into<String>) -> Option<T> {
        self.problems.push(Problem { place: self.place.clone(), what: what.into() });
        None
    }

    /// Notes that something is wrong below here.
    pub fn at(&mut self, below: Place, what: String) {
        let mut place = self.place.clone();
        place.0.extend(below.0);
        self.problems.push(Problem { place, what });
    }

    /// Where it reads.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How much is wrong so far.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// All that is wrong, in the order of reading.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}
