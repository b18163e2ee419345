//! Framings: layers on TCP that put each packet into a frame, behind a word of each end. A file each in `framings/`.
//!
//! ```text
//!   client ─ word ─► server      the layer is open when the client has heard the server's
//!   client ◄─ word ─ server
//!   packet ──► header, packet    each way
//! ```
//!
//! All that anybody must know of one is here: clients and analysers read bytes by [`Unframer`], the simulator asks for lengths.
//!
//! What it does not model: frames that hold a part of a packet or several, control frames, what an end says when it leaves. WebSocket
//! has all of these, and is none of them.

use std::fmt::{self, Debug};

use crate::End;

/// A framing.
pub trait Framing: Debug + Sync {
    /// As scenarios, plans and recordings call it: letters, digits and `-`.
    fn name(&self) -> &'static str;
    /// What it is, in a sentence.
    fn words(&self) -> &'static str;
    /// What an end says before its first packet, the client first; at least a byte each.
    fn word(&self, from: End) -> &'static [u8];
    /// Appends the header of a frame with so many bytes.
    fn header(&self, from: End, length: usize, out: &mut Vec<u8>);
    /// Reads the header that these bytes begin with; `None`: more of it must come.
    ///
    /// # Errors
    /// They are no header.
    fn read(&self, from: End, bytes: &[u8]) -> Result<Option<FrameHeader>, NoFrame>;
}

/// What a header says, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Its own length.
    pub bytes: usize,
    /// The length of what follows.
    pub content: usize,
}

/// Bytes that are not what must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFrame(pub &'static str);

impl fmt::Display for NoFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what is no frame of {}", self.0)
    }
}
