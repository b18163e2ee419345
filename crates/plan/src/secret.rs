//! Texts that may be secrets: a password, a token, a file with a key.
//!
//! ```text
//!   plan  {"password": "***6f1d0c…"}        stored, printed, compared
//!   then  {"***6f1d0c…": "the password"}    behind the plan on standard input, and nowhere else
//! ```
//!
//! A mark stands for a secret: `***` and a digest with a key that the plan's writer has, so that two plans can be told to have
//! the same secret, and nobody can try passwords. A text is written and printed as its mark, whatever is done with it; its
//! value is what [`Text::as_str`] gives.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The values of secrets, by their marks.
pub type Secrets = BTreeMap<String, String>;

/// A text that may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    value: Option<Box<str>>,
    /// What is shown of a secret; `None` of a text that is none.
    mark: Option<Box<str>>,
}

impl Text {
    /// A text that anybody may see.
    pub fn open(text: impl Into<Box<str>>) -> Text {
        Text { value: Some(text.into()), mark: None }
    }

    /// A secret of the engine's own, which no plan has named.
    pub fn secret(value: impl Into<Box<str>>) -> Text {
        Text { value: Some(value.into()), mark: Some(HIDDEN.into()) }
    }

    /// Its value; the mark of a secret that has none.
    pub fn as_str(&self) -> &str {
        self.value.as_deref().unwrap_or_else(|| self.shown())
    }

    /// What anybody may see of it.
    pub fn shown(&self) -> &str {
        self.mark.as_deref().or(self.value.as_deref()).unwrap_or(HIDDEN)
    }

    /// Whether it is a secret.
    pub fn is_secret(&self) -> bool {
        self.mark.is_some()
    }

    /// Whether its value is known: of a secret it comes behind the plan.
    pub(crate) fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// The same kind of text with another value.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&str) -> String) -> Text {
        Text { value: self.value.as_deref().map(|value| change(value).into()), mark: self.mark.clone() }
    }

    /// Takes its value, where it is a secret without one; whether it has one then.
    pub(crate) fn reveal(&mut self, secrets: &Secrets) -> bool {
        if self.value.is_none() {
            self.value = secrets.get(self.shown()).map(|value| value.as_str().into());
        }
        self.value.is_some()
    }
}

/// Takes secrets out of a text that others will see.
pub fn hidden<'a>(mut text: String, secrets: impl IntoIterator<Item = &'a Text>) -> String {
    for secret in secrets.into_iter().filter(|secret| secret.is_secret()) {
        let mut parts = parts(secret.as_str());
        parts.sort_unstable_by_key(|part| std::cmp::Reverse(part.len()));
        for part in parts {
            text = text.replace(part, HIDDEN);
        }
    }
    text
}

/// A secret, and of a file what a program prints of it: a line, or what a line sets a password to. The same as
/// `mqttlab.secrets.parts`. Of a list of credentials the passwords.
pub fn parts(secret: &str) -> Vec<&str> {
    if let Some(passwords) = passwords(secret) {
        return passwords.filter(|password| password.len() >= SHORTEST).collect();
    }
    let lines = secret.lines().map(str::trim);
    let values = secret.lines().filter_map(set_to).filter(|value| value.len() >= SHORTEST_SET);
    let whole = std::iter::once(secret).filter(|secret| secret.len() >= SHORTEST);
    whole.chain(lines.filter(|line| line.len() >= SHORTEST_LINE)).chain(values).collect()
}

/// The passwords in the text of a list of credentials; `None` of a text that is no list.
fn passwords(list: &str) -> Option<impl Iterator<Item = &str>> {
    let mut lines = list.lines();
    let mut columns = lines.next()?.split('\t');
    if columns.next() != Some(LIST_HEAD) {
        return None;
    }
    let place = columns.position(|column| column == "password");
    Some(lines.filter_map(move |line| line.split('\t').nth(place?)))
}

/// What a line of settings sets a password to.
fn set_to(line: &str) -> Option<&str> {
    let (name, value) = line.trim_start().split_once(['=', ':', ' ', '\t'])?;
    let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
    let is_secret = SECRET_NAMES.iter().any(|word| name.ends_with(word));
    is_secret.then(|| value.trim_matches([' ', '\t', '=', ':', '"', '\'', ',']))
}

/// Reads a field that is always a secret: a value that stands in the plan is used, and not written again.
pub(crate) fn always<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Text>, D::Error> {
    let text = Option::<Text>::deserialize(from)?;
    Ok(text.map(|text| Text { mark: text.mark.or_else(|| Some(HIDDEN.into())), ..text }))
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.shown())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
        let text = Box::<str>::deserialize(from)?;
        Ok(if is_mark(&text) { Text { value: None, mark: Some(text) } } else { Text::open(text) })
    }
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// Whether a text stands for a secret: `***`, alone or with a digest.
pub(crate) fn is_mark(text: &str) -> bool {
    let is_digit = |letter: u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f');
    text.strip_prefix(HIDDEN)
        .is_some_and(|digest| matches!(digest.len(), 0 | DIGEST) && digest.bytes().all(is_digit))
}

/// The first field of a list of credentials (`credentials.rs`).
pub(crate) const LIST_HEAD: &str = "mqttlab credentials";
const HIDDEN: &str = "***";
/// Digits of a mark's digest.
const DIGEST: usize = 16;
/// A shorter secret stands in many a text by chance.
const SHORTEST: usize = 4;
/// And a shorter line, and a shorter value of a setting, as `true` is.
const SHORTEST_LINE: usize = 12;
const SHORTEST_SET: usize = 6;
/// How settings are called that are secrets.
const SECRET_NAMES: [&str; 6] = ["password", "passwd", "passphrase", "secret", "token", "psk"];

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "***0123456789abcdef";

    #[test]
    fn a_secret_is_written_and_printed_as_its_mark() {
        let mut text: Text = serde_json::from_str(&format!("{MARK:?}")).unwrap();
        assert!(text.is_secret());
        assert!(!text.reveal(&Secrets::new()));
        assert!(text.reveal(&Secrets::from([(MARK.into(), "hunter22".into())])));
        assert_eq!(text.as_str(), "hunter22");
        assert_eq!(serde_json::to_string(&text).unwrap(), format!("{MARK:?}"));
        assert_eq!(format!("{text:?}"), format!("{MARK:?}"));
        assert_eq!(format!("{:?}", text.with(|value| value.to_uppercase())), format!("{MARK:?}"));
        assert_eq!(hidden("said hunter22.".into(), [&text]), "said ***.");
    }

    #[test]
    fn of_a_file_lines_and_what_they_set_are_hidden_and_short_words_stay() {
        let file =
            Text::secret("listener 1883\nremote_password hunter22\nuse_token true\nalice:$7$101$c2FsdA==\n");
        let said =
            "unknown option in `remote_password hunter22`: hunter22 is true / alice:$7$101$c2FsdA== of 1883";
        assert_eq!(hidden(said.into(), [&file]), "unknown option in `***`: *** is true / *** of 1883");
        assert_eq!(hidden(said.into(), [&Text::open("hunter22")]), said);
    }

    #[test]
    fn a_text_that_is_none_stays_as_it_is() {
        for plain in ["", "**", "***no", "***0123456789abcdeg", "***0123456789ABCDEF", "x***"] {
            let text: Text = serde_json::from_str(&format!("{plain:?}")).unwrap();
            assert!(!text.is_secret(), "{plain}");
            assert_eq!((text.as_str(), text.shown()), (plain, plain));
        }
    }
}
