//! WebSocket frames (RFC 6455 §5): headers and masks on the way out, a decoder of a server's frames on the way in.
//!
//! ```text
//!    FIN RSV opcode │ MASK length (7, 16 or 64 bits) │ masking key (client's frames) │ payload
//! ```
//!
//! MQTT packets are carried in binary frames, of which one may hold several packets or a part of one [MQTT-6.0.0-2]. The
//! decoder hands out payload where it lies and copies control frames only.

use std::fmt;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn of(bits: u8) -> Option<Opcode> {
        let all =
            [Opcode::Continuation, Opcode::Text, Opcode::Binary, Opcode::Close, Opcode::Ping, Opcode::Pong];
        all.into_iter().find(|opcode| *opcode as u8 == bits)
    }

    fn is_control(self) -> bool {
        // The highest bit of an opcode marks control frames (§5.5).
        self as u8 >= Opcode::Close as u8
    }
}

/// Length of the header of a frame with a payload of this length.
pub fn header_len(payload: usize, masked: bool) -> usize {
    let length = match payload {
        0..=125 => 2,
        126..=0xffff => 4,
        _ => 10,
    };
    length + if masked { 4 } else { 0 }
}

/// Appends a frame that is a whole message: as a client sends it with a masking key, as a server does without.
pub fn encode(opcode: Opcode, key: Option<[u8; 4]>, payload: &[u8], out: &mut Vec<u8>) {
    let mask_bit = if key.is_some() { 0x80 } else { 0 };
    out.push(FIN | opcode as u8);
    // A length must be written in the fewest bytes (§5.2).
    match payload.len() {
        short @ 0..=125 => out.push(mask_bit | short as u8),
        medium @ 126..=0xffff => {
            out.push(mask_bit | 126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(mask_bit | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend(key.into_iter().flatten());
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = key {
        mask(key, &mut out[start..]);
    }
}

/// Masks a payload, or takes the mask off (§5.3).
pub fn mask(key: [u8; 4], payload: &mut [u8]) {
    // Eight bytes at a time, for every byte that a client sends passes here.
    let wide = u64::from_ne_bytes([key, key].concat().try_into().expect("twice four bytes"));
    let mut words = payload.chunks_exact_mut(8);
    for word in &mut words {
        let masked = u64::from_ne_bytes((&*word).try_into().expect("eight bytes")) ^ wide;
        word.copy_from_slice(&masked.to_ne_bytes());
    }
    words.into_remainder().iter_mut().zip(key.into_iter().cycle()).for_each(|(byte, key)| *byte ^= key);
}

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came<'a> {
    /// The next bytes of the protocol.
    Data(&'a [u8]),
    /// A ping, to be answered by a pong with the same payload.
    Ping(&'a [u8]),
    /// An answer to nothing that was asked.
    Pong,
    /// The server closes the connection, with a status code (§7.4) where it says one.
    Close(Option<u16>),
}

/// Why what came is no stream of frames that a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A reserved bit is set, and no extension was agreed on.
    Reserved,
    /// An opcode that is none.
    Opcode(u8),
    /// A server's frame with a mask (§5.1).
    Masked,
    /// A ping, pong or close frame in fragments, or above 125 bytes (§5.5).
    Control,
    /// A text frame: MQTT is carried in binary ones [MQTT-6.0.0-1].
    Text,
    /// A fragment of nothing, or a new message within another (§5.4).
    Fragment,
    /// A length that is not written in the fewest bytes, or above 2^63 (§5.2).
    Length,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Malformed::Reserved => "a WebSocket frame with a reserved bit",
            Malformed::Opcode(bits) => return write!(f, "a WebSocket frame with the unknown opcode {bits}"),
            Malformed::Masked => "a masked WebSocket frame, which only clients may send",
            Malformed::Control => "a WebSocket control frame that is fragmented or too long",
            Malformed::Text => "a text frame, and MQTT goes in binary ones",
            Malformed::Fragment => "WebSocket fragments that do not fit together",
            Malformed::Length => "a WebSocket frame with a wrong length",
        };
        f.write_str(what)
    }
}

/// Frames of a server, out of a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The header as far as it is there.
    header: [u8; HEADER_MAX],
    have: usize,
    /// The frame whose payload is being read, and how much of it is to come.
    frame: Option<(Opcode, u64)>,
    /// The payload of a control frame as far as it is there.
    control: Vec<u8>,
    /// Whether a message has begun whose last fragment has not.
    fragmented: bool,
}

impl Decoder {
    /// Takes the next bytes and hands what they hold to `each`.
    ///
    /// # Errors
    /// Bytes that no server may send, or what `each` says.
    pub fn feed<E: From<Malformed>>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Came<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let Some((opcode, left)) = self.frame else {
                if bytes.is_empty() {
                    return Ok(());
                }
                bytes = self.take_header(bytes)?;
                continue;
            };
            let (here, rest) = bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            let left = left - here.len() as u64;
            bytes = rest;
            self.frame = (left > 0).then_some((opcode, left));
            // Payload is handed out as it comes: a message may be far larger than what is read at once.
            if !opcode.is_control() {
                if !here.is_empty() {
                    each(Came::Data(here))?;
                }
            } else if left == 0 {
                self.control.extend_from_slice(here);
                let control = std::mem::take(&mut self.control);
                each(came(opcode, &control))?;
            } else {
                self.control.extend_from_slice(here);
            }
            if left > 0 {
                return Ok(());
            }
        }
    }

    /// Forgets everything: a new connection begins.
    pub fn clear(&mut self) {
        *self = Decoder::default();
    }

    /// Takes bytes into the header, and begins the frame when it is whole.
    fn take_header<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
        while let Some((&byte, rest)) = bytes.split_first() {
            self.header[self.have] = byte;
            self.have += 1;
            bytes = rest;
            // The second byte says how long the header is.
            if self.have >= 2 && self.have == header_len_of(self.header[1]) {
                self.begin()?;
                break;
            }
        }
        Ok(bytes)
    }

    fn begin(&mut self) -> Result<(), Malformed> {
        let [first, second, ..] = self.header;
        self.have = 0;
        let opcode = Opcode::of(first & 0x0f).ok_or(Malformed::Opcode(first & 0x0f))?;
        let is_last = first & FIN != 0;
        // Extensions alone give these bits a meaning, and none is agreed on (RFC 6455 §5.2).
        if first & 0x70 != 0 {
            return Err(Malformed::Reserved);
        }
        // A client must close when a server masks (§5.1).
        if second & 0x80 != 0 {
            return Err(Malformed::Masked);
        }
        let length = match second & 0x7f {
            126 => u64::from(u16::from_be_bytes([self.header[2], self.header[3]])),
            127 => u64::from_be_bytes(self.header[2..10].try_into().expect("eight bytes")),
            short => u64::from(short),
        };
        // In the fewest bytes, and below 2^63 (§5.2).
        let least = [(126, 126), (127, 0x1_0000)].into_iter().find(|(sign, _)| second & 0x7f == *sign);
        if least.is_some_and(|(_, least)| length < least) || length >> 63 != 0 {
            return Err(Malformed::Length);
        }
        match opcode {
            // MQTT comes in binary frames, and by any other the connection ends ([MQTT-6.0.0-1]).
            Opcode::Text => return Err(Malformed::Text),
            // Control frames are never fragmented, and their payload is at most 125 bytes (§5.5).
            Opcode::Close | Opcode::Ping | Opcode::Pong if !is_last || length > CONTROL_MAX => {
                return Err(Malformed::Control);
            }
            // Control frames may stand between fragments (§5.4), so that only these two are counted.
            Opcode::Continuation if !self.fragmented => return Err(Malformed::Fragment),
            Opcode::Binary if self.fragmented => return Err(Malformed::Fragment),
            Opcode::Continuation | Opcode::Binary => self.fragmented = !is_last,
            _ => {}
        }
        self.frame = Some((opcode, length));
        Ok(())
    }
}

fn came(opcode: Opcode, payload: &[u8]) -> Came<'_> {
    match opcode {
        Opcode::Ping => Came::Ping(payload),
        Opcode::Pong => Came::Pong,
        // A Close may come without a body, and then tells no status (§5.5.1).
        _ => Came::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
    }
}

/// Length of a header with this second byte, without a masking key.
fn header_len_of(second: u8) -> usize {
    match second & 0x7f {
        126 => 4,
        127 => 10,
        _ => 2,
    }
}

const FIN: u8 = 0x80;
/// Without a masking key, which no server sends.
const HEADER_MAX: usize = 10;
const CONTROL_MAX: u64 = 125;
