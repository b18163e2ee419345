//! Frames and packets in the words that columns have for them.

use std::fmt::Write;

use mqttlab_capture::mqtt::{CapturedPacket, Kind};

/// Texts of a row, kept for their memory.
#[derive(Default)]
pub struct RowTexts {
    /// Selective acknowledgements.
    pub sack: String,
    /// Packets.
    pub mqtt: String,
    /// Marks of the analyser.
    pub marks: String,
}

impl RowTexts {
    /// Forgets the last row's.
    pub fn clear(&mut self) {
        self.mqtt.clear();
        self.marks.clear();
    }
}

/// A packet as the `mqtt` column names it, behind those that are there.
pub fn name(packet: &CapturedPacket, words: &mut String) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(packet.kind.name());
    let written = match (packet.kind == Kind::Publish, packet.id) {
        (true, Some(id)) => write!(words, "({},{id})", packet.qos),
        (true, None) => write!(words, "({})", packet.qos),
        (false, Some(id)) => write!(words, "({id})"),
        (false, None) => Ok(()),
    };
    written.expect("a string takes all");
}

/// A text, unless it is empty.
pub fn word(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
