//! Fractions of integers, for probabilities and correlations.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fraction between 0 and 1. JSON: `[numerator, denominator]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "(u64, u64)", into = "(u64, u64)")]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Why two integers are not a fraction between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioError {
    /// The denominator is zero.
    ZeroDenominator,
    /// The numerator exceeds the denominator.
    AboveOne {
        /// What was given above the line.
        numerator: u64,
        /// What was given below the line.
        denominator: u64,
    },
}

impl Ratio {
    /// Never.
    pub const ZERO: Ratio = Ratio { numerator: 0, denominator: 1 };
    /// Always.
    pub const ONE: Ratio = Ratio { numerator: 1, denominator: 1 };

    /// The fraction `numerator / denominator`.
    pub const fn new(numerator: u64, denominator: u64) -> Result<Self, RatioError> {
        if denominator == 0 {
            return Err(RatioError::ZeroDenominator);
        }
        if numerator > denominator {
            return Err(RatioError::AboveOne { numerator, denominator });
        }
        Ok(Ratio { numerator, denominator })
    }

    /// As a float, for formulas.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Whether the fraction is exactly zero.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// The largest 64-bit draw that still counts as a hit, plus one; `None` when every draw does.
    pub(crate) const fn threshold(self) -> Option<u64> {
        if self.numerator == self.denominator {
            return None;
        }
        Some((((self.numerator as u128) << 64) / self.denominator as u128) as u64)
    }
}

impl TryFrom<(u64, u64)> for Ratio {
    type Error = RatioError;
    fn try_from((numerator, denominator): (u64, u64)) -> Result<Self, RatioError> {
        Ratio::new(numerator, denominator)
    }
}

impl From<Ratio> for (u64, u64) {
    fn from(ratio: Ratio) -> (u64, u64) {
        (ratio.numerator, ratio.denominator)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RatioError::ZeroDenominator => write!(f, "a ratio's denominator is 0"),
            RatioError::AboveOne { numerator, denominator } => {
                write!(f, "the ratio {numerator}/{denominator} is above 1")
            }
        }
    }
}

impl std::error::Error for RatioError {}
