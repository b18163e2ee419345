//! A picture of 20 × 20 pixels as a baseline JPEG file (ITU-T T.81) of always the same size.
//!
//! Colour without subsampling, the Huffman tables of the standard's annex K. What the picture does not fill is a
//! comment. It is made for the lab's own pictures and for nothing else.

use mqttlab_units::Seed;

pub(super) const SIDE: usize = 20;
/// Size of every file.
pub(super) const BYTES: usize = 870;

/// Red, green and blue of each pixel, row by row.
pub(super) type Picture = [[u8; 3]; SIDE * SIDE];

/// A disc before a slope of colour; the `number` moves the disc.
pub(super) fn picture(seed: Seed, number: u64) -> Picture {
    let mut dice = seed.index(number).dice();
    let (x, y) = (4.0 + 12.0 * dice.uniform(), 4.0 + 12.0 * dice.uniform());
    let mut pixels = [[0; 3]; SIDE * SIDE];
    for (index, pixel) in pixels.iter_mut().enumerate() {
        let (column, row) = (index % SIDE, index / SIDE);
        let distance = (column as f64 - x).hypot(row as f64 - y);
        let light = (150.0 - 25.0 * (distance - 4.0)).clamp(0.0, 150.0);
        let slope = |step: usize| (60 + step * 3) as f64;
        *pixel = [(slope(row) + light) as u8, slope(column) as u8, 90];
    }
    pixels
}

/// The picture as a file of [`BYTES`] bytes.
///
/// # Panics
/// When the picture has so much detail that it does not fit.
pub(super) fn encode(picture: &Picture) -> Vec<u8> {
    let scan = encode_scan(picture);
    let mut file = vec![0xff, 0xd8];
    segment(&mut file, 0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    quantisation_tables(&mut file);
    let side = SIDE as u8;
    segment(&mut file, 0xc0, &[8, 0, side, 0, side, 3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1]);
    for (class, table) in [(0x00, &DC[0]), (0x10, &AC[0]), (0x01, &DC[1]), (0x11, &AC[1])] {
        let mut content = vec![class];
        content.extend_from_slice(&table.counts);
        content.extend(table.symbols());
        segment(&mut file, 0xc4, &content);
    }
    const SCAN_HEADER: [u8; 10] = [3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0];
    let rest = file.len() + 4 + SCAN_HEADER.len() + scan.len() + 2;
    let comment = BYTES.checked_sub(rest + 4).expect("the lab's pictures have little detail");
    segment(&mut file, 0xfe, &vec![b' '; comment]);
    segment(&mut file, 0xda, &SCAN_HEADER);
    file.extend_from_slice(&scan);
    file.extend_from_slice(&[0xff, 0xd9]);
    file
}

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

fn encode_scan(picture: &Picture) -> Vec<u8> {
    let codes = [[DC[0].codes(), AC[0].codes()], [DC[1].codes(), AC[1].codes()]];
    let mut bits = BitWriter::default();
    let mut last_dc = [0; 3];
    for block in 0..9 {
        for (component, last_dc) in last_dc.iter_mut().enumerate() {
            let table = usize::from(component > 0);
            let coefficients = transform(&samples(picture, block, component), table as u8);
            bits.block(&coefficients, last_dc, &codes[table]);
        }
    }
    bits.finish()
}

/// The samples of one component in one block of 8 × 8, level-shifted; the last row and column are repeated beyond
/// the edge.
fn samples(picture: &Picture, block: usize, component: usize) -> [f64; 64] {
    std::array::from_fn(|index| {
        let column = (block % 3 * 8 + index % 8).min(SIDE - 1);
        let row = (block / 3 * 8 + index / 8).min(SIDE - 1);
        let [red, green, blue] = picture[row * SIDE + column].map(f64::from);
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
    use super::*;

    #[test]
    fn an_independent_decoder_sees_the_picture() {
        for number in 0..200 {
            let picture = picture(Seed(number / 16), number);
            let file = encode(&picture);
            assert_eq!(file.len(), BYTES);
            let pixels = jpeg_decoder::Decoder::new(file.as_slice()).decode().unwrap();
            let difference = |(seen, meant): (&u8, &u8)| f64::from(seen.abs_diff(*meant));
            let sum: f64 = pixels.iter().zip(picture.as_flattened()).map(difference).sum();
            assert!(sum / (pixels.len() as f64) < 4.0, "picture {number}: {}", sum / pixels.len() as f64);
        }
    }
}
