//! Pictures as PNG files (ISO/IEC 15948) of a size that is chosen.
//!
//! Colours of 8 bits, no filters, and no compression, so that as many pixels take as many bytes. What the picture does not
//! fill is a text, before the data. The text's check sequence is written when the text is known.

use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::picture::Picture;

/// Size of a file of a picture of 20 × 20 with a comment that is an identity.
pub(super) const BYTES: usize = AROUND_DATA + 46 + 11 + 20 * (1 + 3 * 20);
/// Where the text begins, behind its keyword.
pub(super) const COMMENT_AT: usize = SIGNATURE.len() + 25 + 8 + KEYWORD.len();

/// A file of `bytes` bytes with as large a picture as there is room for, made of `tile`, and a comment of at least
/// `comment` bytes.
///
/// # Panics
/// When there is no room for a pixel.
pub(super) fn encode_up_to(tile: &Picture, bytes: usize, comment: usize) -> Vec<u8> {
    let room = bytes.saturating_sub(AROUND_DATA + comment);
    // About as wide as high; a row has a byte for its filter, and the data 11 bytes around them at least.
    let width = ((room.saturating_sub(11) / 3).isqrt()).max(1);
    let mut height = room.saturating_sub(11) / (1 + 3 * width);
    let mut data = pixels(tile, width, height);
    while data.len() > room {
        height -= 1;
        data = pixels(tile, width, height);
    }
    assert!(height > 0, "{bytes} B have room for a row of {width} pixels");
    let mut file = SIGNATURE.to_vec();
    let mut header = [width, height].map(|side| (side as u32).to_be_bytes()).concat();
    // Eight bits each of red, green and blue; the only compression and filters there are; no interlace.
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &header);
    let fill = bytes - AROUND_DATA - data.len();
    chunk(&mut file, *b"tEXt", &[KEYWORD, &vec![b' '; fill]].concat());
    chunk(&mut file, *b"IDAT", &data);
    chunk(&mut file, *b"IEND", &[]);
    file
}

/// Writes the check sequence of a file's text anew.
pub(super) fn seal(file: &mut [u8]) {
    let Range { start, end } = text_chunk(file);
    let check = crc32fast::hash(&file[start..end]);
    file[end..end + 4].copy_from_slice(&check.to_be_bytes());
}

/// The kind and the content of the text's chunk.
fn text_chunk(file: &[u8]) -> Range<usize> {
    let start = COMMENT_AT - KEYWORD.len() - 4;
    let length = u32::from_be_bytes(file[start - 4..start].try_into().expect("a length is four bytes"));
    start..start + 4 + length as usize
}

fn pixels(tile: &Picture, width: usize, height: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::none());
    let mut written = Ok(());
    for (index, pixel) in tile.rows([width, height]).enumerate() {
        if index % width == 0 {
            written = written.and_then(|()| encoder.write_all(&[0]));
        }
        written = written.and_then(|()| encoder.write_all(&pixel));
    }
    written.and_then(|()| encoder.finish()).expect("memory takes all bytes")
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    file.extend_from_slice(&(content.len() as u32).to_be_bytes());
    let start = file.len();
    file.extend_from_slice(&kind);
    file.extend_from_slice(content);
    let check = crc32fast::hash(&file[start..]);
    file.extend_from_slice(&check.to_be_bytes());
}

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const KEYWORD: &[u8] = b"Comment\0";
/// All of a file but its data and its text: signature, header, and what is around text, data and end.
const AROUND_DATA: usize = SIGNATURE.len() + 25 + 12 + KEYWORD.len() + 12 + 12;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use mqttlab_units::Seed;

    use super::*;

    /// Width, height, pixels with their rows' filters, and the text; each chunk's check sequence is right.
    fn decoded(file: &[u8]) -> ([usize; 2], Vec<u8>, String) {
        let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut chunks) = (SIGNATURE.len(), Vec::new());
        while at < file.len() {
            let content = at + 8..at + 8 + number(at);
            assert_eq!(number(content.end), crc32fast::hash(&file[at + 4..content.end]) as usize);
            chunks.push((&file[at + 4..at + 8], content.clone()));
            at = content.end + 4;
        }
        let kinds: Vec<&[u8]> = chunks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [b"IHDR", b"tEXt", b"IDAT", b"IEND"]);
        let mut pixels = Vec::new();
        flate2::read::ZlibDecoder::new(&file[chunks[2].1.clone()]).read_to_end(&mut pixels).unwrap();
        let text = file[chunks[1].1.clone()].strip_prefix(KEYWORD).unwrap();
        ([number(16), number(20)], pixels, String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn a_file_has_the_pixels_of_its_picture_and_its_text() {
        for (tile, bytes) in [
            (Picture::small(Seed(1), 3), BYTES),
            (Picture::tile(Seed(1), 3), 200),
            (Picture::tile(Seed(1), 3), 70_001),
            (Picture::tile(Seed(1), 3), 200_000),
        ] {
            let mut file = encode_up_to(&tile, bytes, 46);
            assert_eq!(file.len(), bytes);
            file[COMMENT_AT..COMMENT_AT + 46].copy_from_slice(&[b'i'; 46]);
            seal(&mut file);
            let (sides, pixels, text) = decoded(&file);
            let rows: Vec<[u8; 3]> = tile.rows(sides).collect();
            let rows = rows.chunks(sides[0]).flat_map(|row| [&[0], row.as_flattened()].concat());
            assert!(pixels.iter().copied().eq(rows), "{sides:?}");
            assert_eq!(text.trim_end(), "i".repeat(46));
            assert!(text.len() < 46 + 11 + bytes / 20 + 3 * sides[0] + 1, "{bytes} B: {}", text.len());
            assert!(bytes != BYTES || sides == [20, 20]);
        }
    }
}
