//! Columns: values gathered a page at a time, pages gathered a row group at a time.
//!
//! A page is small enough for its values to be encoded out of the processor's cache. A column chunk is compressed
//! if its first page gains by it: differences of times hardly do, and would cost more than all the rest.

use std::collections::HashMap;
use std::marker::PhantomData;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::encoding::{Integer, put_differences, put_indices, put_packed, put_run, width_of};

/// A column's values, gathered until the page is full, and its pages, gathered until the row group is.
pub(crate) trait Buffer: Default {
    /// Encodes the gathered values as a page.
    fn end_page(&mut self, zstd: &mut Zstd) -> Result<()>;
    /// Hands out the pages as a column chunk, and begins the next.
    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)>;
}

/// Zstandard at its fastest level.
pub(crate) struct Zstd(zstd::bulk::Compressor<'static>);

impl Zstd {
    pub(crate) fn new() -> Zstd {
        Zstd(zstd::bulk::Compressor::new(LEVEL).expect("a compressor takes memory and no more"))
    }
}

/// The pages of a column chunk.
struct Pages {
    out: TrackedWrite<Vec<u8>>,
    /// Known once the first page has been tried.
    compressed: Option<bool>,
    rows: u64,
    bytes_uncompressed: i64,
    encodings: Vec<Encoding>,
}

impl Default for Pages {
    fn default() -> Self {
        let out = TrackedWrite::new(Vec::new());
        Pages { out, compressed: None, rows: 0, bytes_uncompressed: 0, encodings: vec![Encoding::RLE] }
    }
}

impl Pages {
    fn data(&mut self, body: &[u8], rows: usize, encoding: Encoding, zstd: &mut Zstd) -> Result<()> {
        self.rows += rows as u64;
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
        let buf = self.compress(body, zstd)?;
        let page = Page::DataPage {
            buf,
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.put(page, body.len())
    }

    fn compress(&mut self, body: &[u8], zstd: &mut Zstd) -> Result<Bytes> {
        if self.compressed == Some(false) {
            return Ok(Bytes::copy_from_slice(body));
        }
        let small = zstd.0.compress(body)?;
        let gains = small.len() * 3 < body.len() * 2;
        let compressed = *self.compressed.get_or_insert(gains);
        Ok(if compressed { small.into() } else { Bytes::copy_from_slice(body) })
    }

    fn put(&mut self, page: Page, bytes_uncompressed: usize) -> Result<()> {
        let page = CompressedPage::new(page, bytes_uncompressed);
        let written = SerializedPageWriter::new(&mut self.out).write_page(page)?;
        self.bytes_uncompressed += written.uncompressed_size as i64;
        Ok(())
    }

    /// The chunk, with the dictionary in front of the pages that refer to it.
    fn finish(
        self,
        column: ColumnDescPtr,
        dictionary: Option<(&[u8], usize)>,
        statistics: Option<Statistics>,
        zstd: &mut Zstd,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let mut front = Pages { compressed: self.compressed, ..Pages::default() };
        if let Some((words, count)) = dictionary {
            let page = Page::DictionaryPage {
                buf: front.compress(words, zstd)?,
                num_values: count as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            front.put(page, words.len())?;
        }
        let dictionary_bytes = front.out.bytes_written();
        let mut bytes = self.out.into_inner()?;
        if dictionary_bytes > 0 {
            bytes.splice(..0, front.out.into_inner()?);
        }
        let compression = match self.compressed {
            Some(true) => Compression::ZSTD(ZstdLevel::try_new(LEVEL)?),
            _ => Compression::UNCOMPRESSED,
        };
        let mut metadata = ColumnChunkMetaData::builder(column)
            .set_compression(compression)
            .set_encodings(self.encodings)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.bytes_uncompressed + front.bytes_uncompressed)
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .set_data_page_offset(dictionary_bytes as i64);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes.into(), close))
    }
}

/// Which rows of a page have a value: the lengths of the runs of rows alike, the first of rows with one.
#[derive(Default)]
pub(crate) struct Presence {
    runs: Vec<u32>,
    run: u32,
    /// Whether the run that goes on is of rows without a value.
    absent: bool,
    absent_in_chunk: u64,
}

impl Presence {
    #[inline]
    pub(crate) fn push(&mut self, present: bool) {
        if present == self.absent {
            self.runs.push(self.run);
            self.run = 0;
            self.absent = !present;
        }
        self.run += 1;
    }

    /// Begins a page's body with the definition levels, and says how many rows there are. A column that may not be
    /// empty has no runs, and as many rows as `values`.
    fn put(&mut self, values: usize, body: &mut Vec<u8>) -> usize {
        self.runs.push(std::mem::take(&mut self.run));
        self.absent = false;
        let rows = self.runs.iter().sum::<u32>() as usize;
        if rows > 0 {
            self.absent_in_chunk += (rows - values) as u64;
            let start = body.len();
            body.extend([0; 4]);
            self.put_levels(rows, body);
            let length = (body.len() - start - 4) as u32;
            body[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        self.runs.clear();
        rows.max(values)
    }

    fn put_levels(&self, rows: usize, body: &mut Vec<u8>) {
        let alike = self.runs.iter().position(|&run| run as usize == rows);
        if let Some(place) = alike {
            return put_run(u64::from(place % 2 == 0), rows, 1, body);
        }
        let mut levels: Vec<u32> = Vec::with_capacity(rows);
        for (place, &run) in self.runs.iter().enumerate() {
            levels.resize(levels.len() + run as usize, u32::from(place % 2 == 0));
        }
        put_packed(&levels, 1, body);
    }
}

/// A column of integers.
#[derive(Default)]
pub(crate) struct Integers<T> {
    pub(crate) values: Vec<T>,
    pub(crate) presence: Presence,
    range: Option<(T, T)>,
    body: Vec<u8>,
    pages: Pages,
}

/// What the footer says about a column chunk of integers.
pub(crate) trait Bounds: Integer {
    fn statistics(range: Option<(Self, Self)>, absent: u64) -> Statistics;
}

impl Bounds for u32 {
    fn statistics(range: Option<(u32, u32)>, absent: u64) -> Statistics {
        let (least, most) = (range.map(|range| range.0 as i32), range.map(|range| range.1 as i32));
        Statistics::int32(least, most, None, Some(absent), false)
    }
}

impl Bounds for u64 {
    fn statistics(range: Option<(u64, u64)>, absent: u64) -> Statistics {
        let (least, most) = (range.map(|range| range.0 as i64), range.map(|range| range.1 as i64));
        Statistics::int64(least, most, None, Some(absent), false)
    }
}

impl<T: Bounds> Buffer for Integers<T> {
    fn end_page(&mut self, zstd: &mut Zstd) -> Result<()> {
        self.body.clear();
        let rows = self.presence.put(self.values.len(), &mut self.body);
        put_differences(&self.values, &mut self.body);
        if let Some(&first) = self.values.first() {
            let (least, most) = self.range.unwrap_or((first, first));
            let least = self.values.iter().fold(least, |least, &value| least.min(value));
            let most = self.values.iter().fold(most, |most, &value| most.max(value));
            self.range = Some((least, most));
        }
        self.values.clear();
        self.pages.data(&self.body, rows, Encoding::DELTA_BINARY_PACKED, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        let statistics = T::statistics(self.range.take(), std::mem::take(&mut self.presence.absent_in_chunk));
        std::mem::take(&mut self.pages).finish(column, None, Some(statistics), zstd)
    }
}

/// A column of numbers with a fraction, or of truths: few, and stored plainly.
#[derive(Default)]
pub(crate) struct Plain<T> {
    pub(crate) values: Vec<T>,
    pub(crate) presence: Presence,
    pages: Pages,
}

/// How a value is stored plainly.
pub(crate) trait Stored: Sized {
    fn put(values: &[Self], body: &mut Vec<u8>);
}

impl Stored for f64 {
    fn put(values: &[f64], body: &mut Vec<u8>) {
        values.iter().for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
    }
}

impl Stored for bool {
    fn put(values: &[bool], body: &mut Vec<u8>) {
        for eight in values.chunks(8) {
            body.push(eight.iter().rev().fold(0, |bits, &value| bits << 1 | u8::from(value)));
        }
    }
}

impl<T: Stored + Default> Buffer for Plain<T> {
    fn end_page(&mut self, zstd: &mut Zstd) -> Result<()> {
        let mut body = Vec::new();
        let rows = self.presence.put(self.values.len(), &mut body);
        T::put(&self.values, &mut body);
        self.values.clear();
        self.pages.data(&body, rows, Encoding::PLAIN, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        std::mem::take(&mut self.pages).finish(column, None, None, zstd)
    }
}

/// A word of a fixed vocabulary.
pub(crate) trait Word {
    /// The vocabulary.
    const WORDS: &'static [&'static str];
    /// The word's place in it.
    fn code(self) -> u8;
}

/// A column of words of a fixed vocabulary, which is its dictionary.
pub(crate) struct Codes<W> {
    codes: Vec<u32>,
    pub(crate) presence: Presence,
    body: Vec<u8>,
    pages: Pages,
    words: PhantomData<W>,
}

impl<W> Default for Codes<W> {
    fn default() -> Self {
        Codes {
            codes: Vec::new(),
            presence: Presence::default(),
            body: Vec::new(),
            pages: Pages::default(),
            words: PhantomData,
        }
    }
}

impl<W: Word> Codes<W> {
    #[inline]
    pub(crate) fn push(&mut self, word: W) {
        self.codes.push(u32::from(word.code()));
    }
}

impl<W: Word> Buffer for Codes<W> {
    fn end_page(&mut self, zstd: &mut Zstd) -> Result<()> {
        self.body.clear();
        let rows = self.presence.put(self.codes.len(), &mut self.body);
        let width = width_of(W::WORDS.len() as u64 - 1).max(1);
        self.body.push(width as u8);
        put_indices(&self.codes, width, &mut self.body);
        self.codes.clear();
        self.pages.data(&self.body, rows, Encoding::RLE_DICTIONARY, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        let mut dictionary = Vec::new();
        for word in W::WORDS {
            dictionary.extend_from_slice(&(word.len() as u32).to_le_bytes());
            dictionary.extend_from_slice(word.as_bytes());
        }
        let pages = std::mem::take(&mut self.pages);
        pages.finish(column, Some((&dictionary, W::WORDS.len())), None, zstd)
    }
}

/// A column of words. They go through a dictionary until it is too large, and then stand for themselves.
pub(crate) struct Words {
    pub(crate) presence: Presence,
    /// Dictionary indices of the page's words.
    indices: Vec<u32>,
    /// The page's words themselves, with their lengths, once the dictionary is full.
    plain: Vec<u8>,
    plain_words: usize,
    /// The dictionary page: every word behind its length.
    dictionary: Vec<u8>,
    /// Where each word lies in the dictionary page.
    places: Vec<(u32, u32)>,
    known: HashMap<Box<[u8]>, u32>,
    /// The index that was last looked up for words of this length and last letter.
    recent: [u32; RECENT],
    full: bool,
    body: Vec<u8>,
    pages: Pages,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            presence: Presence::default(),
            indices: Vec::new(),
            plain: Vec::new(),
            plain_words: 0,
            dictionary: Vec::new(),
            places: Vec::new(),
            known: HashMap::new(),
            recent: [0; RECENT],
            full: false,
            body: Vec::new(),
            pages: Pages::default(),
        }
    }
}

impl Words {
    #[inline]
    pub(crate) fn push(&mut self, word: &str) {
        let word = word.as_bytes();
        if self.full {
            self.plain.extend_from_slice(&(word.len() as u32).to_le_bytes());
            self.plain.extend_from_slice(word);
            self.plain_words += 1;
            return;
        }
        let slot = (word.len() + usize::from(word.last().copied().unwrap_or(0)) * 8) % RECENT;
        let recent = self.recent[slot];
        if self.places.get(recent as usize).is_some_and(|&place| self.at(place) == word) {
            self.indices.push(recent);
            return;
        }
        self.recent[slot] = self.look_up(word);
        self.indices.push(self.recent[slot]);
    }

    fn at(&self, (start, end): (u32, u32)) -> &[u8] {
        &self.dictionary[start as usize..end as usize]
    }

    fn look_up(&mut self, word: &[u8]) -> u32 {
        if let Some(&index) = self.known.get(word) {
            return index;
        }
        let index = self.places.len() as u32;
        self.dictionary.extend_from_slice(&(word.len() as u32).to_le_bytes());
        let start = self.dictionary.len() as u32;
        self.dictionary.extend_from_slice(word);
        self.places.push((start, self.dictionary.len() as u32));
        self.known.insert(word.into(), index);
        index
    }
}

impl Buffer for Words {
    fn end_page(&mut self, zstd: &mut Zstd) -> Result<()> {
        self.body.clear();
        if self.full {
            let rows = self.presence.put(self.plain_words, &mut self.body);
            self.body.append(&mut self.plain);
            self.plain_words = 0;
            return self.pages.data(&self.body, rows, Encoding::PLAIN, zstd);
        }
        let rows = self.presence.put(self.indices.len(), &mut self.body);
        let width = width_of(self.places.len().saturating_sub(1) as u64).max(1);
        self.body.push(width as u8);
        put_indices(&self.indices, width, &mut self.body);
        self.indices.clear();
        self.full = self.dictionary.len() > DICTIONARY_BYTES_MAX;
        self.pages.data(&self.body, rows, Encoding::RLE_DICTIONARY, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        let pages = std::mem::take(&mut self.pages);
        let chunk = pages.finish(column, Some((&self.dictionary, self.places.len())), None, zstd);
        self.dictionary.clear();
        self.places.clear();
        self.known.clear();
        self.full = false;
        chunk
    }
}

const LEVEL: i32 = 1;
/// A dictionary larger than this no longer pays.
const DICTIONARY_BYTES_MAX: usize = 256 << 10;
const RECENT: usize = 64;
