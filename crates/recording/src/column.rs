//! Columns: values gathered a page at a time, pages gathered a row group at a time.
//!
//! A page is small enough for its values to be encoded out of the processor's cache. Every row has its place in
//! each column, so that pushing a value is a store and no more; what is absent is taken out when the page ends.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use crate::distinct::{Distinct, VALUE_MAX};
use crate::encoding::{Integer, alike, bounds, put_differences, put_indices, put_run, width_of};
use crate::null_rows::NullRows;
use crate::pages::{PAGE_ROWS, Pages, Zstd};

/// A column's values, gathered until the page is full, and its pages, gathered until the row group is.
pub(crate) trait Buffer: Default {
    /// Encodes the gathered values as a page.
    fn end_page(&mut self, shape: TableShape, zstd: &mut Zstd) -> Result<()>;
    /// Hands out the pages as a column chunk, and begins the next.
    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)>;
}

/// What every column of a table has in common with the others, and what it has not.
#[derive(Clone, Copy)]
pub(crate) struct TableShape {
    /// How many rows the page has.
    pub(crate) rows: usize,
    /// Whether a row may leave the column empty.
    pub(crate) nullable: bool,
}

/// The values of a page, each in its row's place.
pub(crate) struct PageValues<T> {
    values: Box<[T; PAGE_ROWS]>,
    pub(crate) absent: NullRows,
}

impl<T: Copy + Default> Default for PageValues<T> {
    fn default() -> Self {
        let values = vec![T::default(); PAGE_ROWS].into_boxed_slice();
        let Ok(values) = values.try_into() else { unreachable!("it was made as long as a page") };
        PageValues { values, absent: NullRows::default() }
    }
}

impl<T: Copy + Default> PageValues<T> {
    #[inline]
    pub(crate) fn set(&mut self, place: usize, value: T) {
        self.values[place] = value;
    }

    /// Begins a page's body, and hands out the values of the rows that have one. The next page begins.
    pub(crate) fn begin(&mut self, shape: TableShape, body: &mut Vec<u8>) -> &[T] {
        body.clear();
        let TableShape { rows, nullable } = shape;
        let count = if nullable { self.absent.put(rows, &mut self.values, body) } else { rows };
        &self.values[..count]
    }
}

/// A column of integers.
pub(crate) struct Integers<T> {
    pub(crate) values: PageValues<T>,
    form: Form<T>,
    range: Option<(T, T)>,
    body: Vec<u8>,
    pages: Pages,
}

/// How the integers of a column chunk are stored.
enum Form<T> {
    /// The first page will tell.
    Untried,
    /// As indices into a dictionary, for that is smaller.
    Indices(Distinct<T>),
    /// As differences, though earlier pages may be indices into this dictionary.
    Differences(Option<Distinct<T>>),
    /// As they are: numbers that jump about, such as sequence numbers of many connections.
    Plain,
}

impl<T: Integer> Default for Integers<T> {
    fn default() -> Self {
        let (form, range, pages) = (Form::Untried, None, Pages::default());
        Integers { values: PageValues::default(), form, range, body: Vec::new(), pages }
    }
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
    fn end_page(&mut self, shape: TableShape, zstd: &mut Zstd) -> Result<()> {
        let values = self.values.begin(shape, &mut self.body);
        let found = (!values.is_empty()).then(|| bounds(values));
        if let Some((least, most)) = found {
            let before = self.range.unwrap_or((least, most));
            self.range = Some((before.0.min(least), before.1.max(most)));
        }
        let most = found.map_or(0, |(_, most)| most.bits());
        let encoding = self.form.put(values, most, &mut self.body);
        self.pages.data(&self.body, shape.rows, encoding, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        let statistics = T::statistics(self.range.take(), self.values.absent.end_chunk());
        let dictionary = match std::mem::replace(&mut self.form, Form::Untried) {
            Form::Indices(known) | Form::Differences(Some(known)) => Some((known.page(), known.len())),
            Form::Untried | Form::Differences(None) | Form::Plain => None,
        };
        let dictionary = dictionary.as_ref().map(|(page, count)| (&page[..], *count));
        std::mem::take(&mut self.pages).finish(column, dictionary, Some(statistics), zstd)
    }
}

impl<T: Integer> Form<T> {
    /// Appends the values, of which `most` is the largest, in the form that takes less room on the first page with
    /// any.
    fn put(&mut self, values: &[T], most: u64, body: &mut Vec<u8>) -> Encoding {
        if matches!(self, Form::Untried) && !values.is_empty() {
            *self = Form::smaller(values, most);
        }
        if let Form::Indices(known) = self {
            if most <= VALUE_MAX && put_known(known, values, body) {
                return Encoding::RLE_DICTIONARY;
            }
            *self = Form::Differences(Some(std::mem::take(known)));
        }
        if let Form::Plain = self {
            values.iter().for_each(|value| value.put(body));
            return Encoding::PLAIN;
        }
        put_differences(values, body);
        Encoding::DELTA_BINARY_PACKED
    }

    fn smaller(values: &[T], most: u64) -> Self {
        let (mut differences, mut indices, mut known) = (Vec::new(), Vec::new(), Distinct::default());
        put_differences(values, &mut differences);
        let few = most <= VALUE_MAX && put_known(&mut known, values, &mut indices);
        if few && indices.len() + known.page().len() < differences.len() {
            Form::Indices(known)
        } else if size_of_val(values) <= differences.len() {
            Form::Plain
        } else {
            Form::Differences(None)
        }
    }
}

/// Appends the values as indices into a dictionary; `false`, and nothing appended, when it would be too large.
fn put_known<T: Integer>(known: &mut Distinct<T>, values: &[T], body: &mut Vec<u8>) -> bool {
    let alike = alike(values);
    let count = if alike { values.len().min(1) } else { values.len() };
    if known.look_up(&values[..count]).is_none() {
        return false;
    }
    let width = width_of(known.len().saturating_sub(1) as u64).max(1);
    body.push(width as u8);
    match known.indices(count) {
        [only] => put_run(u64::from(*only), values.len(), width, body),
        indices => put_indices(indices, width, body),
    }
    true
}

/// A column of numbers with a fraction, or of truths: few, and stored plainly.
pub(crate) struct PlainColumn<T> {
    pub(crate) values: PageValues<T>,
    body: Vec<u8>,
    pages: Pages,
}

impl<T: Copy + Default> Default for PlainColumn<T> {
    fn default() -> Self {
        PlainColumn { values: PageValues::default(), body: Vec::new(), pages: Pages::default() }
    }
}

/// How a value is stored plainly.
pub(crate) trait Stored: Copy + Default {
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

impl<T: Stored> Buffer for PlainColumn<T> {
    fn end_page(&mut self, shape: TableShape, zstd: &mut Zstd) -> Result<()> {
        T::put(self.values.begin(shape, &mut self.body), &mut self.body);
        self.pages.data(&self.body, shape.rows, Encoding::PLAIN, zstd)
    }

    fn end_chunk(&mut self, column: ColumnDescPtr, zstd: &mut Zstd) -> Result<(Bytes, ColumnCloseResult)> {
        std::mem::take(&mut self.pages).finish(column, None, None, zstd)
    }
}
