//! Payloads that were captured in part, compared by what they have in common.
//!
//! Of a message or a delivery that was cut (snap length, a hole) only the beginning is known. It fits every message of its topic
//! and size that begins alike, as far as both were captured. Where one alone fits it is that one; of several it cannot be told.
//! The index is made when the first cut payload is met; a capture without one pays nothing.

use std::collections::VecDeque;

use mqttlab_capture::mqtt::PayloadRest;
use mqttlab_recording::NumberMap;

use super::message::SeenPublish;

/// What was captured of a payload.
#[derive(Clone, Copy)]
pub struct PayloadPart {
    head: [u8; HEAD],
    rest: PayloadRest,
    is_whole: bool,
}

impl PayloadPart {
    /// Whether two payloads of one size may be the same.
    fn fits(&self, other: &PayloadPart) -> bool {
        let common = HEAD.min(self.rest.captured.min(other.rest.captured) as usize);
        // Two whole ones have been compared whole.
        !(self.is_whole && other.is_whole)
            && self.head[..common] == other.head[..common]
            && self.rest.agrees(&other.rest)
    }
}

impl From<&SeenPublish<'_>> for PayloadPart {
    fn from(publish: &SeenPublish<'_>) -> PayloadPart {
        let mut head = [0; HEAD];
        let len = publish.head.len().min(HEAD);
        head[..len].copy_from_slice(&publish.head[..len]);
        PayloadPart { head, rest: publish.rest, is_whole: publish.is_whole }
    }
}

/// The remembered messages by topic and size.
#[derive(Default)]
pub struct ContentParts {
    families: NumberMap<u64, VecDeque<u64>>,
}

impl ContentParts {
    /// A message of a family; they come in the order of their numbers.
    pub fn put(&mut self, family: u64, number: u64) {
        self.families.entry(family).or_default().push_back(number);
    }

    /// The oldest message of a family is forgotten.
    pub fn forget_oldest(&mut self, family: u64) {
        if let Some(numbers) = self.families.get_mut(&family) {
            numbers.pop_front();
            if numbers.is_empty() {
                self.families.remove(&family);
            }
        }
    }

    /// The only message of a family that fits a part, or, of several, the last one if `last` will do. `known` has each, and
    /// `None` for those that were published too early.
    pub fn find<'a>(
        &self,
        family: u64,
        part: &PayloadPart,
        last: bool,
        known: impl Fn(u64) -> Option<&'a PayloadPart>,
    ) -> Option<u64> {
        let numbers = self.families.get(&family)?.iter().rev().take(COMPARED_MAX);
        let candidates = numbers.map_while(|&number| Some((number, known(number)?)));
        let mut fitting = candidates.filter(|(_, other)| part.fits(other)).map(|(number, _)| number);
        let found = fitting.next()?;
        (last || fitting.next().is_none()).then_some(found)
    }
}

/// Of the head.
const HEAD: usize = mqttlab_capture::mqtt::PAYLOAD_HEAD_MAX;
/// Messages of a topic and a size that a part is compared with, the last ones.
const COMPARED_MAX: usize = 1024;
