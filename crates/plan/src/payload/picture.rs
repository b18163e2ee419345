//! What the lab's pictures show: a disc before a slope of colour.

use mqttlab_units::Seed;

/// Red, green and blue of each pixel, row by row.
#[derive(Debug)]
pub(super) struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// A picture of 20 × 20; the `number` moves the disc.
    pub(super) fn small(seed: Seed, number: u64) -> Picture {
        let mut dice = seed.index(number).dice();
        let (x, y) = (4.0 + 12.0 * dice.uniform(), 4.0 + 12.0 * dice.uniform());
        Picture::drawn(SMALL, |column, row| {
            let distance = (column as f64 - x).hypot(row as f64 - y);
            let light = (150.0 - 25.0 * (distance - 4.0)).clamp(0.0, 150.0);
            let slope = |step: usize| (60 + step * 3) as f64;
            [(slope(row) + light) as u8, slope(column) as u8, 90]
        })
    }

    /// A part of a larger one, 80 × 80, with as much noise as a photograph by night has.
    pub(super) fn tile(seed: Seed, number: u64) -> Picture {
        let mut dice = seed.index(number).dice();
        let (x, y) = (20.0 + 40.0 * dice.uniform(), 20.0 + 40.0 * dice.uniform());
        Picture::drawn(TILE, |column, row| {
            let distance = (column as f64 - x).hypot(row as f64 - y);
            let light = (100.0 - 12.0 * (distance - 14.0)).clamp(0.0, 100.0);
            let noise = 24.0 * dice.uniform();
            [60.0 + row as f64 / 2.0 + light + noise, 60.0 + column as f64 + noise, 90.0 + noise]
                .map(|colour| colour as u8)
        })
    }

    fn drawn(side: usize, mut pixel: impl FnMut(usize, usize) -> [u8; 3]) -> Picture {
        let pixels = (0..side * side).map(|index| pixel(index % side, index / side)).collect();
        Picture { width: side, pixels }
    }

    /// Width and height.
    pub(super) fn sides(&self) -> [usize; 2] {
        [self.width, self.pixels.len() / self.width]
    }

    /// The colour in this column and row; the picture is repeated beyond its edges.
    pub(super) fn pixel(&self, column: usize, row: usize) -> [u8; 3] {
        let [width, height] = self.sides();
        self.pixels[row % height * width + column % width]
    }

    /// The pixels of a picture of these sides that has this one again and again, row by row.
    pub(super) fn rows(&self, [width, height]: [usize; 2]) -> impl Iterator<Item = [u8; 3]> {
        (0..width * height).map(move |index| self.pixel(index % width, index / width))
    }
}

const SMALL: usize = 20;
const TILE: usize = 80;
