//! Pictures as baseline JPEG files (ITU-T T.81) of a size that is chosen.
//!
//! Colour without subsampling, the Huffman tables of the standard's annex K. What the picture does not fill is a
//! comment, before the scan. It is made for the lab's own pictures and for nothing else.
//!
//! A large picture is a tile again and again, whose coefficients are worked out once.

use super::picture::Picture;

pub(super) const SIDE: usize = 20;
/// Size of every file of a picture of [`SIDE`] × [`SIDE`].
pub(super) const BYTES: usize = 870;
/// Where a file's comment begins: it is before everything that differs.
pub(super) const COMMENT_AT: usize = 2 + 18 + 2 * 69 + 19 + 2 * (21 + 12) + 2 * (21 + 162) + 4;

/// The `number`-th small picture as a file of [`BYTES`] bytes.
///
/// # Panics
/// When the picture has so much detail that it does not fit.
pub(super) fn encode(picture: &Picture) -> Vec<u8> {
    let blocks = Blocks::of(picture);
    let mut scan = Scan::new();
    (0..blocks.rows).for_each(|row| scan.row(&blocks, row, blocks.columns));
    file([SIDE; 2], &scan.finish(), BYTES)
}

/// A file of `bytes` bytes with as large a picture as there is room for, made of `tile`, and a comment of at least
/// `comment` bytes.
///
/// # Panics
/// When there is no room for a picture of one block.
pub(super) fn encode_up_to(tile: &Picture, bytes: usize, comment: usize) -> Vec<u8> {
    let blocks = Blocks::of(tile);
    let room = bytes.saturating_sub(AROUND_SCAN + comment);
    let mut one = Scan::new();
    (0..blocks.rows).for_each(|row| one.row(&blocks, row, blocks.columns));
    let block_bytes = one.finish().len() as f64 / (blocks.rows * blocks.columns) as f64;
    // About as wide as high; a file has at most 65,535 pixels each way (T.81 §B.2.2).
    let columns = ((room as f64 / block_bytes).sqrt() as usize).clamp(1, SIDE_BLOCKS_MAX);
    let (mut scan, mut rows) = (Scan::new(), 0);
    while rows < SIDE_BLOCKS_MAX {
        let before = scan.clone_state();
        scan.row(&blocks, rows, columns);
        // One byte more where the last bits do not fill theirs, two where these are ones.
        if scan.bits.out.len() + 2 > room {
            scan.restore(before);
            break;
        }
        rows += 1;
    }
    assert!(rows > 0, "{bytes} B have room for a row of {columns} blocks");
    file([columns * 8, rows * 8], &scan.finish(), bytes)
}

/// A file of `bytes` bytes; comments fill what its picture leaves.
fn file([width, height]: [usize; 2], scan: &[u8], bytes: usize) -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    segment(&mut file, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    quantisation_tables(&mut file);
    let [[h1, h0], [w1, w0]] = [height, width].map(|side| (side as u16).to_be_bytes());
    segment(&mut file, 0xc0, &[8, h1, h0, w1, w0, 3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1]);
    for (class, table) in [(0x00, &DC[0]), (0x10, &AC[0]), (0x01, &DC[1]), (0x11, &AC[1])] {
        let mut content = vec![class];
        content.extend_from_slice(&table.counts);
        content.extend(table.symbols());
        segment(&mut file, 0xc4, &content);
    }
    let rest = file.len() + 4 + SCAN_HEADER.len() + scan.len() + 2;
    let mut left = bytes.checked_sub(rest + 4).expect("the lab's pictures have little detail") + 4;
    while left > 0 {
        // What is left for the next comment has room for its head.
        let most = if left > COMMENT_MAX + 8 { COMMENT_MAX + 4 } else { left };
        segment(&mut file, 0xfe, &vec![b' '; most - 4]);
        left -= most;
    }
    segment(&mut file, 0xda, &SCAN_HEADER);
    file.extend_from_slice(scan);
    file.extend_from_slice(&[0xff, 0xd9]);
    file
}

const SCAN_HEADER: [u8; 10] = [3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0];
/// All of a file but its scan and the content of its comment.
const AROUND_SCAN: usize = COMMENT_AT + 4 + SCAN_HEADER.len() + 2;
const SIDE_BLOCKS_MAX: usize = 65_535 / 8;
/// Of one comment.
const COMMENT_MAX: usize = 65_000;

fn segment(file: &mut Vec<u8>, marker: u8, content: &[u8]) {
    file.extend_from_slice(&[0xff, marker]);
    file.extend_from_slice(&(content.len() as u16 + 2).to_be_bytes());
    file.extend_from_slice(content);
}

fn quantisation_tables(file: &mut Vec<u8>) {
    for table in [0, 1] {
        let mut content = vec![table];
        content.extend(ZIGZAG.iter().map(|&place| quantum(table, place)));
        segment(file, 0xdb, &content);
    }
}

/// Coarser for higher frequencies, and for colour.
fn quantum(table: u8, place: u8) -> u8 {
    let frequency = place / 8 + place % 8;
    (6 + 3 * frequency) * (1 + table)
}

/// The coefficients of a picture, block by block, each of three components.
struct Blocks {
    columns: usize,
    rows: usize,
    coefficients: Vec<[[i32; 64]; 3]>,
}

impl Blocks {
    fn of(picture: &Picture) -> Blocks {
        let [columns, rows] = picture.sides().map(|side| side.div_ceil(8));
        let block = |number: usize| {
            let place = [number % columns, number / columns];
            std::array::from_fn(|component| {
                transform(&samples(picture, place, component), u8::from(component > 0))
            })
        };
        Blocks { columns, rows, coefficients: (0..columns * rows).map(block).collect() }
    }
}

/// The entropy-coded rows of a picture.
struct Scan {
    codes: [[Codes; 2]; 2],
    bits: BitWriter,
    last_dc: [i32; 3],
}

impl Scan {
    fn new() -> Scan {
        let codes = [[DC[0].codes(), AC[0].codes()], [DC[1].codes(), AC[1].codes()]];
        Scan { codes, bits: BitWriter::default(), last_dc: [0; 3] }
    }

    /// A row of `columns` blocks, those of a tile again and again.
    fn row(&mut self, blocks: &Blocks, row: usize, columns: usize) {
        for column in 0..columns {
            let place = row % blocks.rows * blocks.columns + column % blocks.columns;
            for (component, coefficients) in blocks.coefficients[place].iter().enumerate() {
                let codes = &self.codes[usize::from(component > 0)];
                self.bits.block(coefficients, &mut self.last_dc[component], codes);
            }
        }
    }

    fn clone_state(&self) -> (usize, u32, u32, [i32; 3]) {
        (self.bits.out.len(), self.bits.held, self.bits.count, self.last_dc)
    }

    fn restore(&mut self, (len, held, count, last_dc): (usize, u32, u32, [i32; 3])) {
        self.bits.out.truncate(len);
        (self.bits.held, self.bits.count, self.last_dc) = (held, count, last_dc);
    }

    fn finish(self) -> Vec<u8> {
        self.bits.finish()
    }
}

/// The samples of one component in the block of 8 × 8 in this column and row, level-shifted; the last row and column are
/// repeated beyond the edge.
fn samples(picture: &Picture, [block_column, block_row]: [usize; 2], component: usize) -> [f64; 64] {
    let [width, height] = picture.sides();
    std::array::from_fn(|index| {
        let column = (block_column * 8 + index % 8).min(width - 1);
        let row = (block_row * 8 + index / 8).min(height - 1);
        let [red, green, blue] = picture.pixel(column, row).map(f64::from);
        // ITU-T T.871 §7. The level shift of 128 leaves colour differences around zero.
        match component {
            0 => 0.299 * red + 0.587 * green + 0.114 * blue - 128.0,
            1 => -0.168_736 * red - 0.331_264 * green + 0.5 * blue,
            _ => 0.5 * red - 0.418_688 * green - 0.081_312 * blue,
        }
    })
}

/// Forward discrete cosine transform (T.81 §A.3.3), quantised, in zigzag order.
fn transform(samples: &[f64; 64], table: u8) -> [i32; 64] {
    let basis = |frequency: usize, position: usize| {
        let scale = if frequency == 0 { (1.0_f64 / 8.0).sqrt() } else { 0.5 };
        scale * ((2 * position + 1) as f64 * frequency as f64 * std::f64::consts::PI / 16.0).cos()
    };
    ZIGZAG.map(|place| {
        let (v, u) = (usize::from(place / 8), usize::from(place % 8));
        let sum: f64 =
            samples.iter().enumerate().map(|(at, sample)| sample * basis(u, at % 8) * basis(v, at / 8)).sum();
        (sum / f64::from(quantum(table, place))).round() as i32
    })
}

type Codes = [(u32, u32); 256];

#[derive(Default)]
struct BitWriter {
    out: Vec<u8>,
    held: u32,
    count: u32,
}

impl BitWriter {
    /// One block (T.81 §F.1.2).
    fn block(&mut self, coefficients: &[i32; 64], last_dc: &mut i32, [dc, ac]: &[Codes; 2]) {
        let difference = coefficients[0] - *last_dc;
        *last_dc = coefficients[0];
        self.value(0, difference, dc);
        let mut zeros = 0;
        for &coefficient in &coefficients[1..] {
            if coefficient == 0 {
                zeros += 1;
                continue;
            }
            while zeros > 15 {
                self.code(0xf0, ac);
                zeros -= 16;
            }
            self.value(zeros, coefficient, ac);
            zeros = 0;
        }
        if zeros > 0 {
            self.code(0x00, ac);
        }
    }

    /// A run of zeros and a value: the code of both lengths, then the value's bits, negative ones less one.
    fn value(&mut self, zeros: u8, value: i32, codes: &Codes) {
        let size = 32 - value.unsigned_abs().leading_zeros();
        self.code(zeros << 4 | size as u8, codes);
        let bits = if value < 0 { value - 1 } else { value };
        self.bits(bits as u32 & ((1 << size) - 1), size);
    }

    fn code(&mut self, symbol: u8, codes: &Codes) {
        let (code, length) = codes[usize::from(symbol)];
        self.bits(code, length);
    }

    fn bits(&mut self, bits: u32, count: u32) {
        self.held = self.held << count | bits;
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.held >> self.count) as u8;
            self.out.push(byte);
            // An 0xff among the data is told from a marker by a zero behind it (T.81 §B.1.1.5).
            if byte == 0xff {
                self.out.push(0);
            }
        }
        self.held &= (1 << self.count) - 1;
    }

    fn finish(mut self) -> Vec<u8> {
        let fill = (8 - self.count) % 8;
        self.bits((1 << fill) - 1, fill);
        self.out
    }
}

/// A Huffman table: how many codes of each length, and the first of their symbols; all others follow in order.
struct HuffmanTable {
    counts: [u8; 16],
    first: &'static [u8],
    all: fn() -> Vec<u8>,
}

impl HuffmanTable {
    fn symbols(&self) -> Vec<u8> {
        let rest = (self.all)().into_iter().filter(|symbol| !self.first.contains(symbol));
        self.first.iter().copied().chain(rest).collect()
    }

    /// Code and length of each symbol (T.81 §C.2).
    fn codes(&self) -> Codes {
        let mut codes = [(0, 0); 256];
        let mut symbols = self.symbols().into_iter();
        let mut code = 0;
        for (count, length) in self.counts.iter().zip(1..) {
            for symbol in symbols.by_ref().take(usize::from(*count)) {
                codes[usize::from(symbol)] = (code, length);
                code += 1;
            }
            code <<= 1;
        }
        codes
    }
}

fn dc_symbols() -> Vec<u8> {
    (0..12).collect()
}

/// Runs of 0 to 15 before values of 1 to 10 bits, the end of a block, and a run of 16.
fn ac_symbols() -> Vec<u8> {
    let mut symbols: Vec<u8> = (0..16).flat_map(|run| (1..11).map(move |size| run << 4 | size)).collect();
    symbols.extend([0x00, 0xf0]);
    symbols.sort_unstable();
    symbols
}

/// T.81 tables K.3 and K.4.
static DC: [HuffmanTable; 2] = [
    HuffmanTable { counts: [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], first: &[], all: dc_symbols },
    HuffmanTable { counts: [0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], first: &[], all: dc_symbols },
];
/// T.81 tables K.5 and K.6.
static AC: [HuffmanTable; 2] = [
    HuffmanTable {
        counts: [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125],
        first: &[
            0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07,
            0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0,
            0x24, 0x33, 0x62, 0x72, 0x82,
        ],
        all: ac_symbols,
    },
    HuffmanTable {
        counts: [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119],
        first: &[
            0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71,
            0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0,
            0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1,
        ],
        all: ac_symbols,
    },
];
/// Row and column (as `8 * row + column`) of each coefficient in the order of a file (T.81 figure A.6).
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

#[cfg(test)]
mod tests {
    use mqttlab_units::Seed;

    use super::*;

    fn difference(file: &[u8], meant: impl Iterator<Item = [u8; 3]>) -> f64 {
        let pixels = jpeg_decoder::Decoder::new(file).decode().unwrap();
        let meant: Vec<u8> = meant.flatten().collect();
        assert_eq!(pixels.len(), meant.len());
        let sum: f64 = pixels.iter().zip(meant).map(|(seen, meant)| f64::from(seen.abs_diff(meant))).sum();
        sum / pixels.len() as f64
    }

    #[test]
    fn an_independent_decoder_sees_the_picture() {
        for number in 0..200 {
            let picture = Picture::small(Seed(number / 16), number);
            let file = encode(&picture);
            assert_eq!(file.len(), BYTES);
            let apart = difference(&file, picture.rows([SIDE; 2]));
            assert!(apart < 4.0, "picture {number}: {apart}");
        }
    }

    #[test]
    fn a_large_file_is_a_picture_of_its_tile_with_a_comment() {
        let tile = Picture::tile(Seed(4), 1);
        for bytes in [900, 901, 1_300, 5_000, 70_001, 140_000] {
            let file = encode_up_to(&tile, bytes, 46);
            assert_eq!(file.len(), bytes);
            assert!(file[COMMENT_AT..COMMENT_AT + 46].iter().all(|byte| *byte == b' '));
            assert_eq!(file[COMMENT_AT - 4..COMMENT_AT - 2], [0xff, 0xfe]);
            let mut decoder = jpeg_decoder::Decoder::new(file.as_slice());
            decoder.read_info().unwrap();
            let info = decoder.info().unwrap();
            let sides = [info.width, info.height].map(usize::from);
            let apart = difference(&file, tile.rows(sides));
            assert!(apart < 12.0, "{bytes} B, {sides:?}: {apart}");
            let comments = file.windows(40).filter(|bytes| bytes.iter().all(|byte| *byte == b' ')).count();
            assert!(comments < 1_500 + bytes / 20, "{bytes} B, {sides:?}: {comments} B of comments");
        }
    }
}
