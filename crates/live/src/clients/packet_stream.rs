//! Control packets out of a stream of bytes.
//!
//! Whole packets are read where they lie in the worker's buffer; only what is cut off at its end is kept. Of a large
//! PUBLISH only the beginning is gathered: the rest is counted and thrown away, unless the whole is wanted.

use mqttlab_mqtt::{FixedHeader, Kind, Malformed};

/// What a connection has received of a packet that is not complete.
#[derive(Default)]
pub(super) struct PacketStream {
    gathered: Vec<u8>,
    /// Bytes of the packet that are still to come and not wanted.
    skip: usize,
}

/// A packet, or as much of it as is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RawPacket<'a> {
    pub(super) header: FixedHeader,
    /// What follows the fixed header, perhaps not all of it.
    pub(super) body: &'a [u8],
}

/// What came of feeding bytes.
enum ParseStep {
    /// This many bytes of a packet are needed before anything can be said.
    Needs(usize),
    Whole(FixedHeader),
    /// The beginning of a large PUBLISH.
    Large(FixedHeader),
}

impl PacketStream {
    /// Takes the next bytes of the stream and hands every packet that they complete to `each`. With `whole`, large
    /// packets are gathered, too.
    ///
    /// # Errors
    /// Bytes that are no packet, or what `each` says.
    pub(super) fn feed<E: From<Malformed>>(
        &mut self,
        mut bytes: &[u8],
        whole: bool,
        mut each: impl FnMut(RawPacket<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                if self.skip > 0 {
                    return Ok(());
                }
                self.hand_over(&mut each)?;
            }
            if bytes.is_empty() {
                return Ok(());
            }
            bytes = match self.gathered.is_empty() {
                true => self.read_in_place(bytes, whole, &mut each)?,
                false => self.gather(bytes, whole, &mut each)?,
            };
        }
    }

    /// Forgets a packet that will never be complete.
    pub(super) fn clear(&mut self) {
        self.gathered.clear();
        self.skip = 0;
    }

    fn read_in_place<'a, E: From<Malformed>>(
        &mut self,
        mut bytes: &'a [u8],
        whole: bool,
        each: &mut impl FnMut(RawPacket<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        while let ParseStep::Whole(header) = step(bytes, whole)? {
            let (packet, rest) = bytes.split_at(header.packet_len());
            each(RawPacket { header, body: &packet[header.header_len..] })?;
            bytes = rest;
            if bytes.is_empty() {
                return Ok(bytes);
            }
        }
        // At most what is wanted, so that a large packet's rest is counted by `gather`.
        let kept = bytes.len().min(LARGE);
        self.gathered.extend_from_slice(&bytes[..kept]);
        self.skip_if_large(whole)?;
        Ok(&bytes[kept..])
    }

    fn gather<'a, E: From<Malformed>>(
        &mut self,
        bytes: &'a [u8],
        whole: bool,
        each: &mut impl FnMut(RawPacket<'_>) -> Result<(), E>,
    ) -> Result<&'a [u8], E> {
        let ParseStep::Needs(wanted) = step(&self.gathered, whole)? else {
            unreachable!("what is complete was handed over");
        };
        let taken = (wanted - self.gathered.len()).min(bytes.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if let ParseStep::Whole(_) = self.skip_if_large(whole)? {
            self.hand_over(each)?;
        }
        Ok(&bytes[taken..])
    }

    /// Begins to skip once the beginning of a large packet is there.
    fn skip_if_large(&mut self, whole: bool) -> Result<ParseStep, Malformed> {
        let step = step(&self.gathered, whole)?;
        if let ParseStep::Large(header) = step {
            self.skip = header.packet_len() - self.gathered.len();
        }
        Ok(step)
    }

    fn hand_over<E: From<Malformed>>(
        &mut self,
        each: &mut impl FnMut(RawPacket<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let header = FixedHeader::peek(&self.gathered)?.expect("it was read before");
        let result = each(RawPacket { header, body: &self.gathered[header.header_len..] });
        self.gathered.clear();
        if self.gathered.capacity() > KEEP {
            self.gathered.shrink_to(KEEP);
        }
        result
    }
}

fn step(bytes: &[u8], whole: bool) -> Result<ParseStep, Malformed> {
    let Some(header) = FixedHeader::peek(bytes)? else { return Ok(ParseStep::Needs(bytes.len() + 1)) };
    Ok(if bytes.len() >= header.packet_len() {
        ParseStep::Whole(header)
    } else if whole || header.kind != Kind::Publish || header.packet_len() <= LARGE {
        ParseStep::Needs(header.packet_len())
    } else if bytes.len() < LARGE {
        ParseStep::Needs(LARGE)
    } else {
        ParseStep::Large(header)
    })
}

/// The beginning of a packet that is larger than this: room for the longest topic, and for an identity behind it.
const LARGE: usize = 96 << 10;
/// A connection keeps this much room when nothing is cut off.
const KEEP: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_mqtt::Version;
    use mqttlab_mqtt::encode::{self, PublishFields};
    use mqttlab_mqtt::{Qos, packet};

    fn publish(payload_len: usize, out: &mut Vec<u8>) {
        let fields = PublishFields {
            topic: "a/b",
            qos: Qos::AtLeastOnce,
            dup: false,
            retain: false,
            id: 7,
            properties: &[],
            payload_len,
        };
        encode::publish_head(&fields, Version::V311, out);
        out.extend(std::iter::repeat_n(b'x', payload_len));
    }

    fn fed(stream: &[u8], pieces: usize, whole: bool) -> Vec<(Kind, usize, usize)> {
        let (mut incoming, mut seen) = (PacketStream::default(), Vec::new());
        for piece in stream.chunks(pieces) {
            let fed = incoming.feed(piece, whole, |raw| {
                if raw.header.kind == Kind::Publish {
                    packet::publish_head(raw.header, raw.body, Version::V311)?;
                }
                seen.push((raw.header.kind, raw.header.remaining, raw.body.len()));
                Ok::<(), Malformed>(())
            });
            fed.unwrap();
        }
        seen
    }

    #[test]
    fn packets_are_the_same_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        encode::bare(Kind::Pingresp, &mut stream);
        publish(10, &mut stream);
        publish(0, &mut stream);
        publish(1000, &mut stream);
        encode::acknowledgement(Kind::Puback, 3, &mut stream);
        let expected = fed(&stream, stream.len(), false);
        assert_eq!(expected.len(), 5);
        assert!(expected.iter().all(|(_, remaining, body)| remaining == body));
        for pieces in 1..stream.len() {
            assert_eq!(fed(&stream, pieces, false), expected, "pieces of {pieces}");
        }
    }

    #[test]
    fn of_a_large_packet_only_the_beginning_is_gathered_unless_all_is_wanted() {
        let mut stream = Vec::new();
        publish(1_000_000, &mut stream);
        encode::bare(Kind::Pingresp, &mut stream);
        for pieces in [1, 1000, 50_000, 200_000, 2_000_000] {
            let seen = fed(&stream, pieces, false);
            assert_eq!(seen.len(), 2, "pieces of {pieces}");
            assert_eq!(seen[0].1, 1_000_007);
            assert!(seen[0].2 == 1_000_007 || seen[0].2 == LARGE - 4, "{}", seen[0].2);
            let seen = fed(&stream, pieces, true);
            assert_eq!((seen.len(), seen[0].2), (2, 1_000_007));
        }
    }

    #[test]
    fn bytes_that_are_no_packet_are_refused() {
        let mut incoming = PacketStream::default();
        assert!(incoming.feed(&[0x00, 0x01], false, |_| Ok::<(), Malformed>(())).is_err());
    }
}
