//! What can be set of a protocol, declared beside it: plans are checked, scenarios compiled and manuals written by this.

use std::collections::BTreeMap;
use std::fmt;

use mqttlab_units::Duration;

/// Something that can be set: a number, or a length of time where its name ends in `_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As plans call it; a scenario leaves `_ns` out.
    pub name: &'static str,
    /// Whose it is.
    pub of: Of,
    /// What it is where nobody says.
    pub default: u64,
    /// The least that it may be.
    pub min: u64,
    /// The most.
    pub max: u64,
    /// What it means.
    pub words: &'static str,
}

/// Whose a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A client's.
    Client,
    /// The server's.
    Hub,
}

/// Every setting of one end, with its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, u64>);

/// Why values are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsProblem {
    /// There is no such setting.
    Unknown(String),
    /// It is too small or too large.
    Bounds(Setting, u64),
}

impl Settings {
    /// What is given, and for the rest the defaults.
    ///
    /// # Errors
    /// Something is given that cannot be set, or not to this value.
    pub fn new(
        declared: &'static [Setting],
        of: Of,
        given: &BTreeMap<String, u64>,
    ) -> Result<Settings, SettingsProblem> {
        let mut values: BTreeMap<&'static str, u64> =
            declared.iter().filter(|one| one.of == of).map(|one| (one.name, one.default)).collect();
        for (name, &value) in given {
            let known = declared.iter().find(|one| one.of == of && one.name == name);
            let Some(setting) = known else { return Err(SettingsProblem::Unknown(name.clone())) };
            if !(setting.min..=setting.max).contains(&value) {
                return Err(SettingsProblem::Bounds(*setting, value));
            }
            values.insert(setting.name, value);
        }
        Ok(Settings(values))
    }

    /// The value of a number.
    ///
    /// # Panics
    /// For a setting of the other end, which is a mistake in the protocol that asks.
    pub fn number(&self, setting: &Setting) -> u64 {
        self.0[setting.name]
    }

    /// The value of a length of time, likewise.
    ///
    /// # Panics
    /// As [`Settings::number`] does.
    pub fn duration(&self, setting: &Setting) -> Duration {
        Duration::from_ns(self.number(setting))
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsProblem::Unknown(name) => write!(f, "has {name:?}, which is no setting of the protocol"),
            SettingsProblem::Bounds(Setting { name, min, max, .. }, value) => {
                write!(f, "has `{name}` = {value}, but it must be between {min} and {max}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &[Setting] = &[
        Setting { name: "repeat_ns", of: Of::Client, default: 5, min: 1, max: 9, words: "" },
        Setting { name: "room", of: Of::Hub, default: 7, min: 0, max: 9, words: "" },
    ];

    fn given(name: &str, value: u64) -> BTreeMap<String, u64> {
        BTreeMap::from([(name.to_owned(), value)])
    }

    #[test]
    fn what_is_not_given_has_its_default_and_each_end_its_own_settings() {
        let client = Settings::new(DECLARED, Of::Client, &BTreeMap::new()).unwrap();
        assert_eq!(client.duration(&DECLARED[0]), Duration::from_ns(5));
        assert_eq!(Settings::new(DECLARED, Of::Hub, &given("room", 0)).unwrap().number(&DECLARED[1]), 0);
        for (of, name, value, problem) in [
            (Of::Client, "room", 1, "has \"room\", which is no setting of the protocol"),
            (Of::Client, "repeat_ns", 10, "has `repeat_ns` = 10, but it must be between 1 and 9"),
            (Of::Client, "repeat_ns", 0, "has `repeat_ns` = 0, but it must be between 1 and 9"),
        ] {
            let refused = Settings::new(DECLARED, of, &given(name, value)).unwrap_err();
            assert_eq!(refused.to_string(), problem);
        }
    }
}
