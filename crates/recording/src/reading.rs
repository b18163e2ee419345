//! A finished table, read column by column and a bounded number of rows at a time, whoever wrote it.
//!
//! Tables of older schemas lack columns, and other programs choose other widths and encodings: whole numbers of every
//! width come as `i64`, and a column that is not there comes without a value in any row.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::basic::LogicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::statistics::Statistics;

use crate::error::{Error, ErrorContext, Result};
use crate::hash::FoldedHash;

/// Words by number, each once, over all the columns and tables that share them.
#[derive(Debug, Default)]
pub struct Vocabulary {
    codes: HashMap<Box<[u8]>, u32, FoldedHash>,
    words: Vec<Box<[u8]>>,
}

impl Vocabulary {
    /// The number of a word, which gets one if it has none.
    pub fn code(&mut self, word: &[u8]) -> u32 {
        if let Some(&code) = self.codes.get(word) {
            return code;
        }
        let code = self.words.len() as u32;
        self.codes.insert(word.into(), code);
        self.words.push(word.into());
        code
    }

    /// The word of a number; bytes that are not UTF-8 are replaced.
    pub fn word(&self, code: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.words[code as usize])
    }
}

/// What is wanted of a column.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// Whole numbers, times and truths.
    Integers,
    /// Words of which there are few, by their numbers in a [`Vocabulary`].
    Words,
    /// Texts, each handed to whoever asks, and not kept.
    Texts,
    /// Texts, of each the number that a function makes of it.
    Told(fn(&[u8]) -> i64),
}

/// Some rows of a column.
#[derive(Debug, Default)]
pub struct ColumnValues {
    /// Of integers, words and what texts tell, by row; [`ABSENT`] in rows without a value.
    pub integers: Vec<i64>,
    texts: Vec<Option<ByteArray>>,
}

impl ColumnValues {
    /// The text of a row; `None` without a value.
    pub fn text(&self, row: usize) -> Option<&[u8]> {
        self.texts[row].as_ref().map(ByteArray::data)
    }
}

/// Stands for a value that is not there. No time, count or number is as low.
pub const ABSENT: i64 = i64::MIN;

/// What to do about a file that cannot be read.
const REMEDY: &str = "take the recording from a copy, or run again";

/// Rows that are read together.
pub const BATCH_ROWS: usize = 1 << 13;

/// What is read at once for the header of a page, which has a few numbers.
const PAGE_HEADER_BYTES: usize = 256;

/// A table that can be read.
pub struct TableReader {
    file: SerializedFileReader<SharedFile>,
    path: PathBuf,
}

impl TableReader {
    /// Opens a table of a recording; `None` where the recording has none of this name.
    pub fn open(dir: &Path, name: &str) -> Result<Option<TableReader>> {
        let path = dir.join(format!("{name}.parquet"));
        if !path.exists() {
            return Ok(None);
        }
        let file = File::open(&path).on("open", &path)?;
        let bytes = file.metadata().on("look at", &path)?.len();
        let file = SharedFile { file: Arc::new(file), bytes };
        let file = decoded(&path, || SerializedFileReader::new(file))?;
        Ok(Some(TableReader { file, path }))
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows() as u64
    }

    /// Hands out its rows in batches of the wanted columns, in their order.
    pub fn for_each_batch(
        &self,
        wanted: &[(&str, Wanted)],
        words: &mut Vocabulary,
        mut take: impl FnMut(&[ColumnValues], usize, &mut Vocabulary) -> Result<()>,
    ) -> Result<()> {
        let mut values: Vec<ColumnValues> = wanted.iter().map(|_| ColumnValues::default()).collect();
        for number in 0..self.file.num_row_groups() {
            let mut columns = decoded(&self.path, || Ok(self.columns(number, wanted)))??;
            let rows = self.file.metadata().row_group(number).num_rows();
            let mut left = usize::try_from(rows).map_err(|_| contradictory(&self.path))?;
            while left > 0 {
                let rows = left.min(BATCH_ROWS);
                for (column, values) in columns.iter_mut().zip(&mut values) {
                    decoded(&self.path, || column.read(rows, values, words))?;
                }
                take(&values, rows, words)?;
                left -= rows;
            }
        }
        Ok(())
    }

    fn columns(&self, group: usize, wanted: &[(&str, Wanted)]) -> Result<Vec<RowGroupColumn>> {
        let group = self.file.get_row_group(group).map_err(|error| damaged(&self.path, &error))?;
        let schema = group.metadata().schema_descr();
        let open = |&(name, kind): &(&str, Wanted)| {
            let index = (0..schema.num_columns()).find(|&index| schema.column(index).name() == name);
            let Some(index) = index else { return Ok(RowGroupColumn::missing(kind)) };
            let column = schema.column(index);
            let signed =
                !matches!(column.logical_type_ref(), Some(LogicalType::Integer(kind)) if !kind.is_signed);
            if let Some(value) = alike(group.metadata().column(index), signed) {
                return Ok(RowGroupColumn { source: Some(ColumnSource::Alike(value)), wanted: kind, signed });
            }
            let reader = group.get_column_reader(index).map_err(|error| damaged(&self.path, &error))?;
            let source = ColumnSource::of(reader).ok_or_else(|| Error::Damaged {
                path: self.path.clone(),
                what: format!("column `{name}` is of a type that no recording has"),
            })?;
            Ok(RowGroupColumn { source: Some(source), wanted: kind, signed })
        };
        wanted.iter().map(open).collect()
    }
}

/// What parquet reads. Of some damaged files it panics, as where a page needs a dictionary that does not come: that is an error
/// like any other, and nothing is printed of it.
fn decoded<T>(path: &Path, read: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODES.get() {
                before(info);
            }
        }));
    });
    DECODES.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    DECODES.set(false);
    outcome.map_err(|_| contradictory(path))?.map_err(|error| damaged(path, &error))
}

fn contradictory(path: &Path) -> Error {
    let what = format!("its pages contradict each other or its footer; {REMEDY}");
    Error::Damaged { path: path.to_owned(), what }
}

thread_local! {
    /// Whether this thread is in parquet.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// A file that many columns read, each at its own place. parquet's own reader of a [`File`] has its descriptor duplicated,
/// sought and closed for each page.
struct SharedFile {
    file: Arc<File>,
    bytes: u64,
}

/// What comes in a file from a place on.
struct FileFrom {
    file: Arc<File>,
    place: u64,
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<FileFrom>> {
        let from = FileFrom { file: Arc::clone(&self.file), place: start };
        Ok(BufReader::with_capacity(PAGE_HEADER_BYTES, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // A damaged length is no reason to ask for its memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie behind its end")));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Read for FileFrom {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

/// A column of a row group that is being read.
struct RowGroupColumn {
    source: Option<ColumnSource>,
    wanted: Wanted,
    signed: bool,
}

enum ColumnSource {
    /// All values of the row group are this one.
    Alike(i64),
    Truths(ColumnDecoder<BoolType>),
    Narrow(ColumnDecoder<Int32Type>),
    Wide(ColumnDecoder<Int64Type>),
    Bytes(ColumnDecoder<ByteArrayType>),
}

/// A column's decoder, and the values and levels of the rows that are being read.
struct ColumnDecoder<T: DataType> {
    reader: ColumnReaderImpl<T>,
    found: Vec<T::T>,
    levels: Vec<i16>,
}

impl ColumnSource {
    fn of(reader: ColumnReader) -> Option<ColumnSource> {
        Some(match reader {
            ColumnReader::BoolColumnReader(reader) => ColumnSource::Truths(ColumnDecoder::of(reader)),
            ColumnReader::Int32ColumnReader(reader) => ColumnSource::Narrow(ColumnDecoder::of(reader)),
            ColumnReader::Int64ColumnReader(reader) => ColumnSource::Wide(ColumnDecoder::of(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => ColumnSource::Bytes(ColumnDecoder::of(reader)),
            _ => return None,
        })
    }
}

impl RowGroupColumn {
    fn missing(wanted: Wanted) -> RowGroupColumn {
        RowGroupColumn { source: None, wanted, signed: true }
    }

    fn read(
        &mut self,
        rows: usize,
        into: &mut ColumnValues,
        words: &mut Vocabulary,
    ) -> parquet::errors::Result<()> {
        into.integers.clear();
        into.texts.clear();
        let (signed, wanted) = (self.signed, self.wanted);
        let Some(source) = &mut self.source else {
            into.integers.resize(rows, ABSENT);
            into.texts.resize(if let Wanted::Texts = wanted { rows } else { 0 }, None);
            return Ok(());
        };
        let integers = &mut into.integers;
        integers.reserve(rows);
        let widen = |value: i32| if signed { value.into() } else { i64::from(value as u32) };
        match source {
            ColumnSource::Truths(column) => column.spread(rows, |value| {
                integers.push(value.map_or(ABSENT, |&value| value.into()));
            }),
            ColumnSource::Narrow(column) => column.widen(rows, integers, |&value| widen(value)),
            ColumnSource::Wide(column) => column.widen(rows, integers, |&value| value),
            ColumnSource::Alike(value) => {
                integers.resize(rows, *value);
                Ok(())
            }
            ColumnSource::Bytes(column) => match wanted {
                Wanted::Texts => column.spread(rows, |value| into.texts.push(value.cloned())),
                Wanted::Told(tell) => column.spread(rows, |value| {
                    integers.push(value.map_or(ABSENT, |value| tell(value.data())));
                }),
                Wanted::Integers | Wanted::Words => {
                    // Rows with one word of a dictionary share its bytes: where these lie tells the word.
                    let mut latest: [Option<(&[u8], i64)>; PLACES] = [None; PLACES];
                    column.spread(rows, |value| {
                        let Some(value) = value else { return integers.push(ABSENT) };
                        let word = value.data();
                        let latest = &mut latest[place_of(word)];
                        let code = match *latest {
                            Some((known, code)) if std::ptr::eq(known, word) => code,
                            _ => {
                                let code = words.code(word).into();
                                *latest = Some((word, code));
                                code
                            }
                        };
                        integers.push(code);
                    })
                }
            },
        }
    }
}

impl<T: DataType> ColumnDecoder<T> {
    fn of(reader: ColumnReaderImpl<T>) -> ColumnDecoder<T> {
        ColumnDecoder { reader, found: Vec::new(), levels: Vec::new() }
    }

    /// Reads so many rows, and hands out what each of them has.
    fn spread<'a>(
        &'a mut self,
        rows: usize,
        mut take: impl FnMut(Option<&'a T::T>),
    ) -> parquet::errors::Result<()> {
        self.read(rows)?;
        if self.levels.is_empty() {
            self.found.iter().for_each(|value| take(Some(value)));
            return Ok(());
        }
        let mut values = self.found.iter();
        for &level in &self.levels {
            take(if level > 0 { values.next() } else { None });
        }
        Ok(())
    }

    /// Reads so many rows as integers, [`ABSENT`] where there is none.
    fn widen(
        &mut self,
        rows: usize,
        into: &mut Vec<i64>,
        widen: impl Fn(&T::T) -> i64,
    ) -> parquet::errors::Result<()> {
        self.read(rows)?;
        if self.found.len() == rows {
            into.extend(self.found.iter().map(widen));
            return Ok(());
        }
        let mut values = self.found.iter();
        let of_level = |&level: &i16| if level > 0 { values.next().map_or(ABSENT, &widen) } else { ABSENT };
        into.extend(self.levels.iter().map(of_level));
        Ok(())
    }

    fn read(&mut self, rows: usize) -> parquet::errors::Result<()> {
        let ColumnDecoder { reader, found, levels } = self;
        found.clear();
        levels.clear();
        let mut read = 0;
        // A reader may stop at the end of a page.
        while read < rows {
            let (records, _, _) = reader.read_records(rows - read, Some(levels), None, found)?;
            if records == 0 {
                return Err(ParquetError::General("a column ends before its row group".into()));
            }
            read += records;
        }
        Ok(())
    }
}

/// The value that all rows of a column of whole numbers have, as its statistics tell. Not every writer counts what is absent.
fn alike(column: &ColumnChunkMetaData, signed: bool) -> Option<i64> {
    let statistics = column.statistics()?;
    let absent = statistics.null_count_opt()?;
    let is_integers = matches!(statistics, Statistics::Int32(_) | Statistics::Int64(_));
    if is_integers && absent == column.num_values() as u64 {
        return Some(ABSENT);
    }
    match statistics {
        _ if absent > 0 || !statistics.min_is_exact() || !statistics.max_is_exact() => None,
        Statistics::Int32(of) => {
            let value = *of.min_opt()?;
            (of.max_opt()? == &value).then(|| if signed { value.into() } else { i64::from(value as u32) })
        }
        Statistics::Int64(of) => of.min_opt().filter(|&value| of.max_opt() == Some(value)).copied(),
        _ => None,
    }
}

/// Where among [`PLACES`] words at a place of memory are remembered.
fn place_of(word: &[u8]) -> usize {
    let address = word.as_ptr().addr() as u64;
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Words that are remembered at once.
const PLACES: usize = 64;

fn damaged(path: &Path, error: &ParquetError) -> Error {
    Error::Damaged { path: path.to_owned(), what: format!("{error}; {REMEDY}") }
}
