//! Reading what the clients of a group publish.
//!
//! Plans that were stored before a client had several publications say `publish`, and there one publication or `null`.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::Publish;

/// Reads a list, one publication, or `null`.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Publish>, D::Error> {
    deserializer.deserialize_any(Stored)
}

struct Stored;

impl<'de> Visitor<'de> for Stored {
    type Value = Vec<Publish>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of publications")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<Publish>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, one: A) -> Result<Vec<Publish>, A::Error> {
        Ok(vec![Publish::deserialize(MapAccessDeserializer::new(one))?])
    }

    fn visit_unit<E>(self) -> Result<Vec<Publish>, E> {
        Ok(Vec::new())
    }
}
