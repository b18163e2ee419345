//! Columns of words.

use std::collections::HashMap;
use std::marker::PhantomData;

use bytes::Bytes;
use mqttlab_rows::Word;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use crate::column::{Buffer, PageValues, TableShape};
use crate::encoding::{put_indices, width_of};
use crate::pages::{Pages, Zstd};

/// A column of words of a fixed vocabulary, which is its dictionary.
pub(crate) struct Codes<W> {
    pub(crate) codes: PageValues<u8>,
    body: Vec<u8>,
    pages: Pages,
    words: PhantomData<W>,
}

impl<W> Default for Codes<W> {
    fn default() -> Self {
        let (codes, body, pages) = Default::default();
        Codes { codes, body, pages, words: PhantomData }
    }
}

impl<W: Word> Buffer for Codes<W> {
    fn end_page(&mut self, shape: TableShape, zstd: &mut Zstd) -> Result<()> {
        let codes = self.codes.begin(shape, &mut self.body);
        let width = width_of(W::WORDS.len() as u64 - 1).max(1);
        self.body.push(width as u8);
        put_indices(codes, width, &mut self.body);
        self.pages.data(&self.body, shape.rows, Encoding::RLE_DICTIONARY, zstd)
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
    /// Dictionary indices of the page's words.
    pub(crate) indices: PageValues<u32>,
    /// The page's words themselves, with their lengths, once the dictionary is full.
    plain: Vec<u8>,
    /// The dictionary page: every word behind its length.
    dictionary: Vec<u8>,
    /// Where each word lies in the dictionary page.
    places: Vec<(u32, u32)>,
    known: HashMap<Box<[u8]>, u32>,
    /// The index that was last looked up for words alike in length and last letters.
    recent: [u32; RECENT],
    full: bool,
    body: Vec<u8>,
    pages: Pages,
}

impl Default for Words {
    fn default() -> Self {
        let (indices, plain, dictionary, places, known, full, body, pages) = Default::default();
        let recent = [0; RECENT];
        Words { indices, plain, dictionary, places, known, recent, full, body, pages }
    }
}

impl Words {
    pub(crate) fn set(&mut self, place: usize, word: &str) {
        let word = word.as_bytes();
        if self.full {
            self.plain.extend_from_slice(&(word.len() as u32).to_le_bytes());
            self.plain.extend_from_slice(word);
            return;
        }
        let recent = &mut self.recent[slot(word)];
        let here = self.places.get(*recent as usize).map(|&(start, end)| start as usize..end as usize);
        if here.is_none_or(|here| self.dictionary[here] != *word) {
            *recent = look_up(word, &mut self.known, &mut self.places, &mut self.dictionary);
        }
        self.indices.set(place, *recent);
    }
}

fn look_up(
    word: &[u8],
    known: &mut HashMap<Box<[u8]>, u32>,
    places: &mut Vec<(u32, u32)>,
    dictionary: &mut Vec<u8>,
) -> u32 {
    if let Some(&index) = known.get(word) {
        return index;
    }
    let index = places.len() as u32;
    dictionary.extend_from_slice(&(word.len() as u32).to_le_bytes());
    let start = dictionary.len() as u32;
    dictionary.extend_from_slice(word);
    places.push((start, dictionary.len() as u32));
    known.insert(word.into(), index);
    index
}

/// Words that come often differ in their length or in their last letters.
#[inline]
fn slot(word: &[u8]) -> usize {
    let last = word.last_chunk::<4>().map_or(0, |last| u32::from_le_bytes(*last));
    let mixed = (last ^ word.len() as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> (u32::BITS - RECENT_BITS)) as usize
}

impl Buffer for Words {
    fn end_page(&mut self, shape: TableShape, zstd: &mut Zstd) -> Result<()> {
        let indices = self.indices.begin(shape, &mut self.body);
        if self.full {
            self.body.append(&mut self.plain);
            return self.pages.data(&self.body, shape.rows, Encoding::PLAIN, zstd);
        }
        let width = width_of(self.places.len().saturating_sub(1) as u64).max(1);
        self.body.push(width as u8);
        put_indices(indices, width, &mut self.body);
        self.full = self.dictionary.len() > DICTIONARY_BYTES_MAX;
        self.pages.data(&self.body, shape.rows, Encoding::RLE_DICTIONARY, zstd)
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

/// A dictionary larger than this no longer pays.
const DICTIONARY_BYTES_MAX: usize = 256 << 10;
const RECENT_BITS: u32 = 8;
const RECENT: usize = 1 << RECENT_BITS;
