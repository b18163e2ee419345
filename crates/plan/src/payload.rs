//! The bytes of messages: what a [`Payload`] of the plan looks like on the wire.
//!
//! A message's size is known without its bytes, which the simulator does not need. Its content follows from the seed, the
//! client, the message's number and when it is due, so that a message that must be sent again is made again and never stored.
//! A maker serves all clients of a group.
//!
//! ```text
//! fixed, file   ┌ identity ┐ the same bytes in every message ...      (shared, never copied by the maker)
//! random        ┌ identity ┐ bytes drawn for every message ...
//! gps           {"type":"Feature","id":"┌ identity as text ┐", ... a position that moves ... }
//! image         {"id":"┌ identity as text ┐", ... "data":"/9j/4AAQ ... a picture of 20 × 20 ... "}
//! picture       a JPEG or PNG file with a comment, ┌ identity as text ┐ ..., before its pixels
//! template      ... text ... ┌ identity as text ┐ ... text with numbers, times and what is drawn ... spaces up to a size
//! ```
//!
//! What it does not do: write the identity itself; it says where the identity belongs. What it does not model:
//! the movement of anything real, or what a camera sees.

mod gps;
mod jpeg;
mod picture;
mod place;
mod png;
mod template;

use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mqttlab_units::{Bytes, Instant, Seed};

use crate::{Payload, PictureFormat, Publish, ReplayTable};

use picture::Picture;
pub use place::{SaidPlaces, find_place};
use template::Template;

/// Makes the payloads of a publication's messages.
#[derive(Clone, Debug)]
pub struct PayloadMaker {
    seed: Seed,
    sizes: PayloadSizes,
    content: PayloadContent,
    /// When the run's time began.
    started_unix_ns: u64,
    replayed: Option<Arc<ReplayTable>>,
}

/// The sizes of a publication's messages, known without their bytes.
#[derive(Clone, Debug)]
pub struct PayloadSizes {
    sizes: Sizes,
    replayed: Option<Arc<ReplayTable>>,
}

#[derive(Clone, Debug)]
enum Sizes {
    Same(Bytes),
    Written(Template),
}

/// Which message of a publication it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageNumber {
    /// The publisher's place in its group.
    pub client: u32,
    /// The publisher's own count of messages offered.
    pub sequence: u64,
}

/// Where a payload carries its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityPlace {
    /// In binary, at the very start, as far as it fits.
    Start,
    /// As text, at this byte.
    Text(usize),
}

#[derive(Clone, Debug)]
enum PayloadContent {
    Same(Arc<[u8]>),
    Random(usize),
    Gps,
    Image(Arc<[Vec<u8>]>),
    Picture(PictureFormat, Arc<[Vec<u8>]>),
    Written(Template),
}

impl Payload {
    /// The smallest size that a message may have.
    pub fn least(&self) -> Bytes {
        self.bounds(0)[0]
    }

    /// The greatest size that a message may have, in a group of so many clients.
    pub fn most(&self, clients: u32) -> Bytes {
        self.bounds(clients.saturating_sub(1))[1]
    }

    fn bounds(&self, last_client: u32) -> [Bytes; 2] {
        match self {
            Payload::Template { parts, bytes, .. } => {
                let padded = Bytes(bytes.unwrap_or(0));
                template::bounds(parts, last_client).map(|text| Bytes(text as u64).max(padded))
            }
            Payload::Fixed { bytes }
            | Payload::Random { bytes }
            | Payload::File { bytes, .. }
            | Payload::Picture { bytes, .. } => [Bytes(*bytes); 2],
            Payload::Gps => [Bytes(gps::BYTES as u64); 2],
            Payload::Image => [Bytes(IMAGE_BYTES as u64); 2],
        }
    }
}

impl Sizes {
    fn of(payload: &Payload, seed: Seed) -> Sizes {
        match payload {
            Payload::Template { parts, bytes, .. } => Sizes::Written(Template::new(parts, *bytes, seed)),
            payload => Sizes::Same(payload.least()),
        }
    }
}

impl PayloadSizes {
    /// Of messages whose payloads a [`PayloadMaker`] makes from the same.
    pub fn of(publish: &Publish, seed: Seed) -> PayloadSizes {
        PayloadSizes { sizes: Sizes::of(&publish.payload, seed), replayed: publish.replayed() }
    }

    /// The size of a message.
    pub fn of_message(&self, message: MessageNumber) -> Bytes {
        let MessageNumber { client, sequence } = message;
        let said = self.replayed.as_ref().and_then(|table| table.message(client, sequence)?.bytes);
        if let Some(bytes) = said {
            return Bytes(bytes.into());
        }
        match &self.sizes {
            Sizes::Same(size) => *size,
            Sizes::Written(template) => Bytes(template.len(message) as u64),
        }
    }
}

impl PayloadMaker {
    /// For the messages of one publication, in a run whose time began so long after 1970.
    ///
    /// # Errors
    /// The file cannot be read, or its size is no longer that of the plan.
    pub fn new(publish: &Publish, seed: Seed, started_unix_ns: u64) -> io::Result<PayloadMaker> {
        let maker = PayloadMaker::of_payload(&publish.payload, seed, started_unix_ns)?;
        Ok(PayloadMaker { sizes: PayloadSizes::of(publish, seed), replayed: publish.replayed(), ..maker })
    }

    /// Of messages that are not replayed.
    fn of_payload(payload: &Payload, seed: Seed, started_unix_ns: u64) -> io::Result<PayloadMaker> {
        let content = match payload {
            Payload::Fixed { bytes } => {
                PayloadContent::Same((b'a'..=b'z').cycle().take(*bytes as usize).collect())
            }
            Payload::Random { bytes } => PayloadContent::Random(*bytes as usize),
            Payload::Gps => PayloadContent::Gps,
            Payload::Image => PayloadContent::Image(pictures(seed)),
            Payload::File { path, bytes } => {
                let content = std::fs::read(path)?;
                if content.len() as u64 != *bytes {
                    let problem = format!("{} has {} B, but had {bytes} B", path.display(), content.len());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                }
                PayloadContent::Same(content.into())
            }
            Payload::Picture { format, bytes } => {
                PayloadContent::Picture(*format, files(*format, *bytes as usize, seed))
            }
            Payload::Template { parts, bytes, .. } => {
                PayloadContent::Written(Template::new(parts, *bytes, seed))
            }
        };
        let sizes = PayloadSizes { sizes: Sizes::of(payload, seed), replayed: None };
        Ok(PayloadMaker { seed, sizes, content, started_unix_ns, replayed: None })
    }

    /// The size of a message.
    pub fn size_of(&self, message: MessageNumber) -> Bytes {
        self.sizes.of_message(message)
    }

    /// Where the identity of a message is to be written.
    pub fn identity_place(&self, message: MessageNumber) -> IdentityPlace {
        if self.said(message).is_some() {
            return IdentityPlace::Start;
        }
        match &self.content {
            PayloadContent::Same(_) | PayloadContent::Random(_) => IdentityPlace::Start,
            PayloadContent::Gps => IdentityPlace::Text(gps::IDENTITY_AT),
            PayloadContent::Image(_) => IdentityPlace::Text(IMAGE_HEAD.len()),
            PayloadContent::Picture(PictureFormat::Jpeg, _) => IdentityPlace::Text(jpeg::COMMENT_AT),
            PayloadContent::Picture(PictureFormat::Png, _) => IdentityPlace::Text(png::COMMENT_AT),
            PayloadContent::Written(template) => IdentityPlace::Text(template.identity_at(message)),
        }
    }

    /// The bytes that all messages share but for their identity, so that large ones need not be copied; `None`
    /// when messages differ.
    pub fn shared(&self) -> Option<&Arc<[u8]>> {
        match &self.content {
            PayloadContent::Same(bytes) if self.replayed.is_none() => Some(bytes),
            _ => None,
        }
    }

    /// What a row says of a message: its size, and the bytes that the table has for it.
    fn said(&self, message: MessageNumber) -> Option<(u32, Option<&[u8]>)> {
        let said = self.replayed.as_ref()?.message(message.client, message.sequence)?;
        Some((said.bytes?, said.payload))
    }

    /// Appends the payload of a message that is due at `intended`. The identity's place holds placeholders.
    pub fn write(&self, message: MessageNumber, intended: Instant, out: &mut Vec<u8>) {
        let MessageNumber { client, sequence } = message;
        match self.said(message) {
            Some((_, Some(payload))) => return out.extend_from_slice(payload),
            Some((bytes, None)) => return out.extend((b'a'..=b'z').cycle().take(bytes as usize)),
            None => {}
        }
        match &self.content {
            PayloadContent::Same(bytes) => out.extend_from_slice(bytes),
            PayloadContent::Random(size) => self.write_random(message, *size, out),
            PayloadContent::Gps => gps::write(self.seed.index(u64::from(client)), sequence, out),
            PayloadContent::Image(pictures) | PayloadContent::Picture(_, pictures) => {
                let picture = sequence.wrapping_add(u64::from(client)) % pictures.len() as u64;
                out.extend_from_slice(&pictures[picture as usize]);
            }
            PayloadContent::Written(template) => {
                template.write(message, self.started_unix_ns.saturating_add(intended.as_ns()), out);
            }
        }
    }

    /// Works out anew what a payload says of its own bytes, when its identity has been written.
    pub fn seal(&self, message: MessageNumber, payload: &mut [u8]) {
        if self.said(message).is_none()
            && let PayloadContent::Picture(PictureFormat::Png, _) = self.content
        {
            png::seal(payload);
        }
    }

    fn write_random(&self, message: MessageNumber, size: usize, out: &mut Vec<u8>) {
        let mut dice = self.seed.index(u64::from(message.client)).index(message.sequence).dice();
        out.reserve(size);
        for _ in 0..size / 8 {
            out.extend_from_slice(&dice.bits().to_le_bytes());
        }
        out.extend_from_slice(&dice.bits().to_le_bytes()[..size % 8]);
    }
}

/// Length of an identity as text; `mqttlab-recording` writes it.
const TEXT_IDENTITY_BYTES: usize = 46;
const IMAGE_HEAD: &str = r#"{"id":""#;
const IMAGE_MIDDLE: &str =
    r#"","type":"image","format":"jpeg","width":20,"height":20,"encoding":"base64","data":""#;
const IMAGE_TAIL: &str = r#""}"#;
const IMAGE_BYTES: usize = IMAGE_HEAD.len()
    + TEXT_IDENTITY_BYTES
    + IMAGE_MIDDLE.len()
    + jpeg::BYTES.div_ceil(3) * 4
    + IMAGE_TAIL.len();
/// Pictures are made once and sent in turn: encoding one takes longer than sending it.
const PICTURES: u64 = 16;
/// What they may take together.
const FILES_BYTES: u64 = 16_000_000;

fn pictures(seed: Seed) -> Arc<[Vec<u8>]> {
    (0..PICTURES).map(|number| image_document(&jpeg::encode(&Picture::small(seed, number)))).collect()
}

/// Pictures as files of `bytes` bytes. Of large ones there are fewer, so that memory holds them.
fn files(format: PictureFormat, bytes: usize, seed: Seed) -> Arc<[Vec<u8>]> {
    let count = (FILES_BYTES / bytes.max(1) as u64).clamp(1, PICTURES);
    let file = |number| match format {
        PictureFormat::Jpeg if bytes == jpeg::BYTES => jpeg::encode(&Picture::small(seed, number)),
        PictureFormat::Jpeg => jpeg::encode_up_to(&Picture::tile(seed, number), bytes, TEXT_IDENTITY_BYTES),
        PictureFormat::Png if bytes == png::BYTES => {
            png::encode_up_to(&Picture::small(seed, number), bytes, TEXT_IDENTITY_BYTES)
        }
        PictureFormat::Png => png::encode_up_to(&Picture::tile(seed, number), bytes, TEXT_IDENTITY_BYTES),
    };
    (0..count).map(file).collect()
}

fn image_document(jpeg: &[u8]) -> Vec<u8> {
    let mut document = Vec::with_capacity(IMAGE_BYTES);
    document.extend_from_slice(IMAGE_HEAD.as_bytes());
    document.extend_from_slice(&[b'0'; TEXT_IDENTITY_BYTES]);
    document.extend_from_slice(IMAGE_MIDDLE.as_bytes());
    document.extend_from_slice(BASE64_STANDARD.encode(jpeg).as_bytes());
    document.extend_from_slice(IMAGE_TAIL.as_bytes());
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(payload: &Payload, client: u32, sequence: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let maker = PayloadMaker::of_payload(payload, Seed(3), 0).unwrap();
        maker.write(MessageNumber { client, sequence }, Instant::ZERO, &mut bytes);
        bytes
    }

    #[test]
    fn every_payload_has_the_size_it_says() {
        let sizes = [0, 1, 8, 9, 17, 64, 1001, 10_000_000];
        let fixed = sizes.map(|bytes| Payload::Fixed { bytes });
        let random = sizes.map(|bytes| Payload::Random { bytes });
        for payload in fixed.iter().chain(&random).chain(&[Payload::Gps, Payload::Image]) {
            for sequence in [0, 1, 77, 4_000_000_000] {
                let [least, most] = [payload.least(), payload.most(6)];
                assert_eq!((made(payload, 5, sequence).len() as u64, least), (most.0, most), "{payload:?}");
            }
        }
    }

    #[test]
    fn gps_and_image_are_json_of_the_published_sizes_with_room_for_an_identity() {
        for (payload, published) in [(Payload::Gps, 380..=420), (Payload::Image, 1250..=1350)] {
            let document = made(&payload, 1, 2);
            assert!(published.contains(&document.len()), "{}", document.len());
            let value: serde_json::Value = serde_json::from_slice(&document).unwrap();
            assert_eq!(value["id"].as_str().unwrap().len(), TEXT_IDENTITY_BYTES);
            let maker = PayloadMaker::of_payload(&payload, Seed(3), 0).unwrap();
            let IdentityPlace::Text(at) = maker.identity_place(MessageNumber { client: 1, sequence: 2 })
            else {
                panic!("a JSON document carries its identity as text");
            };
            assert!(document[at..at + TEXT_IDENTITY_BYTES].iter().all(|byte| *byte == b'0'));
        }
    }

    #[test]
    fn the_picture_in_the_document_decodes_to_20_by_20_pixels() {
        let value: serde_json::Value = serde_json::from_slice(&made(&Payload::Image, 0, 3)).unwrap();
        let text = value["data"].as_str().unwrap();
        let file = BASE64_STANDARD.decode(text).unwrap();
        let mut decoder = jpeg_decoder::Decoder::new(file.as_slice());
        assert_eq!(decoder.decode().unwrap().len(), 20 * 20 * 3);
        assert_eq!(decoder.info().map(|info| (info.width, info.height)), Some((20, 20)));
    }

    #[test]
    fn pictures_are_files_of_the_size_they_say_with_an_identity_in_a_comment() {
        for format in [PictureFormat::Jpeg, PictureFormat::Png] {
            let default = if format == PictureFormat::Jpeg { jpeg::BYTES } else { png::BYTES };
            for bytes in [900, default as u64, 30_000, 300_000] {
                let payload = Payload::Picture { format, bytes };
                let maker = PayloadMaker::of_payload(&payload, Seed(3), 0).unwrap();
                let (message, mut file) = (MessageNumber { client: 1, sequence: 2 }, Vec::new());
                maker.write(message, Instant::ZERO, &mut file);
                assert_eq!(Bytes(file.len() as u64), maker.size_of(message));
                let IdentityPlace::Text(at) = maker.identity_place(message) else { panic!("in a comment") };
                assert!(file[at..at + TEXT_IDENTITY_BYTES].iter().all(|byte| *byte == b' '), "{payload:?}");
                maker.seal(message, &mut file);
                let start: &[u8] = if format == PictureFormat::Jpeg { b"\xff\xd8" } else { b"\x89PNG" };
                assert!(file.starts_with(start));
            }
        }
    }

    #[test]
    fn random_bytes_differ_by_message_and_client_and_repeat_when_made_again() {
        let payload = Payload::Random { bytes: 20 };
        assert_eq!(made(&payload, 1, 1), made(&payload, 1, 1));
        assert_ne!(made(&payload, 1, 1), made(&payload, 1, 2));
        assert_ne!(made(&payload, 1, 1), made(&payload, 2, 1));
    }

    #[test]
    fn a_file_is_sent_as_it_is_and_refused_when_its_size_has_changed() {
        let path = std::env::temp_dir().join(format!("mqttlab-payload-{}", std::process::id()));
        std::fs::write(&path, b"twelve bytes").unwrap();
        assert_eq!(made(&Payload::File { path: path.clone(), bytes: 12 }, 0, 0), b"twelve bytes");
        let changed = PayloadMaker::of_payload(&Payload::File { path: path.clone(), bytes: 13 }, Seed(0), 0);
        assert_eq!(changed.unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(path).unwrap();
    }
}
