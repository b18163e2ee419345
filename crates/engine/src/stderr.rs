//! What the engine complains of, on standard error, where a terminal may be.
//!
//! A problem may quote a log, a capture or a file's name, which others wrote. What is not seen in it is shown as an escape,
//! as Python's `mqttlab.foreign` does: a terminal obeys control characters (ECMA-48), and bidirectional ones (UAX #9) show
//! a line in another order than it has. A test holds that nothing else here writes to standard error.

use std::fmt::{Display, Write};

/// Prints a problem as one line.
pub fn complain(problem: impl Display) {
    eprintln!("mqttlab-engine: {}", visible(&problem.to_string()));
}

/// Text whose hidden characters, line ends too, are escapes.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter if is_hidden(letter) => {
                let code = letter as u32;
                let _ = match code {
                    0..=0xff => write!(shown, "\\x{code:02x}"),
                    0x100..=0xffff => write!(shown, "\\u{code:04x}"),
                    _ => write!(shown, "\\U{code:08x}"),
                };
            }
            letter => shown.push(letter),
        }
    }
    shown
}

/// Whether a character is not seen where it is printed: the same ranges as in `mqttlab.foreign`.
fn is_hidden(letter: char) -> bool {
    HIDDEN.iter().any(|&(low, high)| (low..=high).contains(&(letter as u32)))
}

const HIDDEN: [(u32, u32); 20] = [
    (0x00, 0x1f),
    (0x7f, 0x9f),
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x70f, 0x70f),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x206f),
    (0x3164, 0x3164),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x13430, 0x1345f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_an_escape_and_letters_stay() {
        let text = "a\x1b[2J\u{9b}\u{202e}\u{200b}\n\u{e0041} Grüße 漢字";
        assert_eq!(visible(text), "a\\x1b[2J\\x9b\\u202e\\u200b\\n\\U000e0041 Grüße 漢字");
    }
}
