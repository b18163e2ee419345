//! What clients call themselves in CONNECT: identifiers, user names and passwords from patterns, or from a list of the
//! user's.
//!
//! ```text
//! "device-{client:04}" ─► device-0007         {client}, {client:WIDTH}, {group}; {{client}} is the text {client}
//!
//! mqttlab credentials<TAB>client_id<TAB>password        a list: its columns, and a line for each client
//! meter-a<TAB>first
//! ```
//!
//! A list is a secret as a whole: the plan has its mark, and its text comes behind the plan. What it has no column for is
//! filled in from the pattern.

use std::sync::Arc;

use crate::secret::{LIST_HEAD, Text};
use crate::{Group, PlanError};

/// Of a number, as [`TemplatePart::Client`](crate::TemplatePart) has it.
const WIDTH_MAX: usize = 20;

/// What one client says of itself in CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCredentials {
    /// Its identifier.
    pub client_id: String,
    /// Its user name, if it has one.
    pub username: Option<Text>,
    /// Its password, if it has one.
    pub password: Option<Text>,
}

/// A list of credentials that has been read, a row for each client.
#[derive(Debug, PartialEq, Eq)]
pub struct CredentialList {
    rows: Vec<Row>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    client_id: Option<Box<str>>,
    username: Option<Text>,
    password: Option<Text>,
}

impl CredentialList {
    /// Reads a list, for a group of so many clients. No message has anything of its rows.
    pub(crate) fn read(
        list: &Text,
        clients: u32,
        place: &str,
    ) -> Result<Option<Arc<CredentialList>>, PlanError> {
        if !list.has_value() {
            // Of a plan that was kept.
            return Ok(None);
        }
        let wrong = |problem: String| PlanError::Value { place: place.into(), problem };
        let mut lines = list.as_str().lines();
        let mut columns = lines.next().unwrap_or_default().split('\t');
        if columns.next() != Some(LIST_HEAD) {
            return Err(wrong("is no list of credentials".into()));
        }
        let columns: Vec<&str> = columns.collect();
        let rows = lines.map(|line| Row::read(&columns, line)).collect::<Option<Vec<Row>>>();
        let rows = rows.ok_or_else(|| wrong("has a line that does not fit its columns".into()))?;
        if rows.len() < clients as usize {
            return Err(wrong(format!("has {} rows, but the group has {clients} clients", rows.len())));
        }
        Ok(Some(Arc::new(CredentialList { rows })))
    }
}

impl Row {
    fn read(columns: &[&str], line: &str) -> Option<Row> {
        let mut row = Row::default();
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != columns.len() {
            return None;
        }
        for (column, field) in columns.iter().zip(fields) {
            match *column {
                "client_id" if !field.is_empty() => row.client_id = Some(field.into()),
                "username" => row.username = Some(Text::open(field)),
                "password" => row.password = Some(Text::secret(field)),
                _ => return None,
            }
        }
        Some(row)
    }
}

impl Group {
    /// The MQTT client identifier of the `client`-th client of the group.
    pub fn client_id(&self, client: u32) -> String {
        match self.listed(client).and_then(|row| row.client_id.as_deref()) {
            Some(listed) => listed.into(),
            None => filled(self.client_id_pattern(), &self.name, client),
        }
    }

    /// What the `client`-th client of the group says of itself; without a user name and a password where it does not speak MQTT.
    pub fn credentials(&self, client: u32) -> ClientCredentials {
        let row = self.listed(client);
        let of = |listed: Option<&Text>, pattern: Option<&Text>| {
            let fill = |text: &Text| text.with(|pattern| filled(pattern, &self.name, client));
            listed.cloned().or_else(|| pattern.map(fill))
        };
        let mqtt = self.mqtt();
        ClientCredentials {
            client_id: self.client_id(client),
            username: of(
                row.and_then(|row| row.username.as_ref()),
                mqtt.and_then(|mqtt| mqtt.username.as_ref()),
            ),
            password: of(
                row.and_then(|row| row.password.as_ref()),
                mqtt.and_then(|mqtt| mqtt.password.as_ref()),
            ),
        }
    }

    fn listed(&self, client: u32) -> Option<&Row> {
        self.mqtt()?.credential_list.as_ref()?.rows.get(client as usize)
    }
}

/// A pattern with its places filled in. Other braces stand for themselves.
pub(crate) fn filled(pattern: &str, group: &str, client: u32) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let doubled = rest.strip_prefix('{').and_then(place).filter(|(_, behind)| behind.starts_with('}'));
        if let Some((_, behind)) = doubled {
            out.push_str(&rest[1..rest.len() - behind.len()]);
            rest = &behind[1..];
        } else if let Some((place, behind)) = place(rest) {
            match place {
                Place::Group => out.push_str(group),
                Place::Client(width) => out.push_str(&format!("{client:0width$}")),
            }
            rest = behind;
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

enum Place {
    Group,
    /// With so many digits at least.
    Client(usize),
}

/// The place that a text begins with, and what stands behind it.
fn place(text: &str) -> Option<(Place, &str)> {
    if let Some(behind) = text.strip_prefix("{group}") {
        return Some((Place::Group, behind));
    }
    let behind = text.strip_prefix("{client")?;
    if let Some(behind) = behind.strip_prefix('}') {
        return Some((Place::Client(0), behind));
    }
    let (width, behind) = behind.strip_prefix(':')?.split_once('}')?;
    let digits = (1..=2).contains(&width.len()) && width.bytes().all(|digit| digit.is_ascii_digit());
    let width = width.parse().ok().filter(|width| digits && (1..=WIDTH_MAX).contains(width))?;
    Some((Place::Client(width), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_and_other_braces_kept() {
        for (pattern, expected) in [
            ("{group}-{client}", "meters-7"),
            ("device-{client:06}", "device-000007"),
            ("{client:1}/{client:20}", "7/00000000000000000007"),
            ("{{client}} {{client:04}} {{group}}", "{client} {client:04} {group}"),
            (
                "{client:0} {client:21} {client:x} {client:} {clients} {Group}",
                "{client:0} {client:21} {client:x} {client:} {clients} {Group}",
            ),
            ("{{{client}}}{", "{{client}}{"),
            ("é{client}{é", "é7{é"),
            ("", ""),
        ] {
            assert_eq!(filled(pattern, "meters", 7), expected, "{pattern}");
        }
    }

    #[test]
    fn a_list_has_a_row_for_each_client_and_shows_no_password() {
        let list = Text::secret("mqttlab credentials\tusername\tpassword\nalice\tfirst\nbob\t\n");
        let read = CredentialList::read(&list, 2, "here").unwrap().expect("its value is there");
        let said: Vec<_> = read.rows.iter().map(|row| row.password.as_ref().map(Text::as_str)).collect();
        assert_eq!(said, [Some("first"), Some("")]);
        assert_eq!(read.rows[1].username.as_ref().map(Text::as_str), Some("bob"));
        let shown = format!("{read:?}");
        assert!(shown.contains("alice") && !shown.contains("first"), "{shown}");
        let few = CredentialList::read(&list, 3, "here").unwrap_err().to_string();
        assert_eq!(few, "`here` has 2 rows, but the group has 3 clients");
        for wrong in ["", "a,b", "mqttlab credentials\tusername\na\tb", "mqttlab credentials\tcolour\nred"] {
            assert!(CredentialList::read(&Text::secret(wrong), 1, "here").is_err(), "{wrong:?}");
        }
    }
}
