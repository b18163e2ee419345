//! `framed`: made up, as the least that a framing is: four bytes of length before each packet.

use crate::End;
use crate::framing::{FrameHeader, Framing, NoFrame};

/// The framing.
#[derive(Debug)]
pub(super) struct Framed;

impl Framing for Framed {
    fn name(&self) -> &'static str {
        "framed"
    }

    fn words(&self) -> &'static str {
        "Made up, as the least that a framing is: a word of each end, then four bytes of length before each packet."
    }

    fn word(&self, from: End) -> &'static [u8] {
        match from {
            End::Client => b"FRAMES?\n",
            End::Server => b"FRAMES!\n",
        }
    }

    fn header(&self, _: End, length: usize, out: &mut Vec<u8>) {
        out.extend((length as u32).to_be_bytes());
    }

    fn read(&self, _: End, bytes: &[u8]) -> Result<Option<FrameHeader>, NoFrame> {
        let content = bytes.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
        match content {
            // MQTT's longest packet has 256 MiB (3.1.1 §2.2.3).
            Some(content) if content > 268_435_460 => Err(NoFrame("framed")),
            content => Ok(content.map(|content| FrameHeader { bytes: 4, content })),
        }
    }
}
