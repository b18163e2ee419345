//! Tables: rows into the columns of a Parquet file, a bounded number at a time.
//!
//! [`table!`] declares a table once: the struct of a row, the buffers of its columns, and the description that
//! the file's schema and `docs/reference/recording.md` are made of. A column's meaning is the comment on the row's field; its
//! unit is the last word of its name.
//!
//! Integers are stored as differences (DELTA_BINARY_PACKED), which suits times and counters, or through a dictionary
//! where there are few of them; words go through a dictionary.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mqttlab_rows::{
    Cause, Direction, EventKind, FrameFate, Identified, LossCause, MessageFate, Phase, SeenBy, Towards, Word,
};
use mqttlab_units::Entry;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use crate::column::{Buffer, Integers, PlainColumn};
use crate::error::{Error, ErrorContext, Result};
use crate::footer::{CREATED_BY, FileSize, schema_version, temporary};
use crate::journal::Journal;
use crate::pages::{PAGE_ROWS, Zstd};
use crate::text_columns::{Codes, Words};

/// What a table is made of.
#[derive(Debug)]
pub struct Description {
    /// Its name, which is its file's without `.parquet`.
    pub name: &'static str,
    /// What a row stands for.
    pub meaning: &'static str,
    /// Its columns, in the file's order.
    pub columns: &'static [Column],
}

/// What a column holds.
#[derive(Debug)]
pub struct Column {
    /// Its name; the last word is its unit.
    pub name: &'static str,
    /// Its type: `u8`, `u16`, `u32`, `i64`, `f64`, `bool` or `text`.
    pub kind: &'static str,
    /// Whether a row may leave it empty.
    pub nullable: bool,
    /// What it says.
    pub meaning: &'static str,
}

/// A value in a row, and the buffer that gathers its column.
pub(crate) trait Cell {
    type Buffer: Buffer;
    const KIND: &'static str;
    const NULLABLE: bool = false;
    /// Puts the value into its row's place.
    fn set(self, place: usize, buffer: &mut Self::Buffer);
}

/// The columns of one table.
pub(crate) trait Columns: Default {
    const DESCRIPTION: Description;
    /// Ends a page of every column.
    fn end_page(&mut self, rows: usize, zstd: &mut Zstd) -> parquet::errors::Result<()>;
    /// Writes the gathered pages as a row group.
    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
        schema: &SchemaDescriptor,
        zstd: &mut Zstd,
    ) -> parquet::errors::Result<()>;
}

macro_rules! cells {
    ($($kind:ty as $name:literal => $stored:ty, $buffer:ty;)*) => {$(
        impl Cell for $kind {
            type Buffer = $buffer;
            const KIND: &'static str = $name;
            #[inline]
            fn set(self, place: usize, buffer: &mut Self::Buffer) {
                buffer.values.set(place, self as $stored);
            }
        }

        impl Cell for Option<$kind> {
            type Buffer = $buffer;
            const KIND: &'static str = $name;
            const NULLABLE: bool = true;
            #[inline]
            fn set(self, place: usize, buffer: &mut Self::Buffer) {
                match self {
                    Some(value) => buffer.values.set(place, value as $stored),
                    None => buffer.values.absent.set(place),
                }
            }
        }
    )*};
}
// Parquet has no unsigned storage: the bits go into the signed type and the annotation says what they mean.
// Times and counters never reach 2^63; they stay signed, so that a reader may subtract them.
cells! {
    u8 as "u8" => u32, Integers<u32>;
    u16 as "u16" => u32, Integers<u32>;
    u32 as "u32" => u32, Integers<u32>;
    u64 as "i64" => u64, Integers<u64>;
    f64 as "f64" => f64, PlainColumn<f64>;
    bool as "bool" => bool, PlainColumn<bool>;
}

impl Cell for &str {
    type Buffer = Words;
    const KIND: &'static str = "text";
    #[inline]
    fn set(self, place: usize, buffer: &mut Words) {
        buffer.set(place, self);
    }
}

impl Cell for Option<&str> {
    type Buffer = Words;
    const KIND: &'static str = "text";
    const NULLABLE: bool = true;
    #[inline(always)]
    fn set(self, place: usize, buffer: &mut Words) {
        match self {
            Some(word) => buffer.set(place, word),
            None => buffer.indices.absent.set(place),
        }
    }
}

macro_rules! cells_of_words {
    ($($word:ty),* $(,)?) => {$(
        impl Cell for $word {
            type Buffer = Codes<$word>;
            const KIND: &'static str = "text";
            #[inline]
            fn set(self, place: usize, buffer: &mut Self::Buffer) {
                buffer.codes.set(place, self.code());
            }
        }

        impl Cell for Option<$word> {
            type Buffer = Codes<$word>;
            const KIND: &'static str = "text";
            const NULLABLE: bool = true;
            #[inline]
            fn set(self, place: usize, buffer: &mut Self::Buffer) {
                match self {
                    Some(word) => buffer.codes.set(place, word.code()),
                    None => buffer.codes.absent.set(place),
                }
            }
        }
    )*};
}
cells_of_words! {
    Direction, EventKind, FrameFate, Identified, LossCause, MessageFate, Phase, SeenBy, Towards,
}

impl Cell for Option<Cause> {
    type Buffer = Codes<CauseInColumn>;
    const KIND: &'static str = "text";
    const NULLABLE: bool = true;
    #[inline]
    fn set(self, place: usize, buffer: &mut Self::Buffer) {
        match self {
            Some(cause) => buffer.codes.set(place, CauseInColumn(cause).code()),
            None => buffer.codes.absent.set(place),
        }
    }
}

/// A frame's cause in its column. The dictionary begins with an empty word, which no row has: files stay the same byte for
/// byte as when frames that arrived had a cause of their own.
#[derive(Clone, Copy)]
pub(crate) struct CauseInColumn(Cause);

impl Word for CauseInColumn {
    const WORDS: &'static [&'static str] = &{
        let mut words = [""; Cause::WORDS.len() + 1];
        let mut number = 0;
        while number < Cause::WORDS.len() {
            words[number + 1] = Cause::WORDS[number];
            number += 1;
        }
        words
    };
    const ENTRIES: &'static [Entry] = Cause::ENTRIES;
    fn code(self) -> u8 {
        self.0.code() + 1
    }
}

/// Declares a table: its row, its columns, and what they mean.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        pub struct $row:ident<$life:lifetime> in $name:literal, columns $columns:ident $(, $extra:ident)? {
            $($(#[doc = $meaning:literal])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq $(, $extra)?)]
        pub struct $row<$life> { $($(#[doc = $meaning])* pub $field: $kind,)* }

        pub(crate) struct $columns<$life> { $($field: <$kind as $crate::table::Cell>::Buffer,)* }

        impl<$life> Default for $columns<$life> {
            fn default() -> Self {
                $columns { $($field: Default::default(),)* }
            }
        }

        impl $columns<'static> {
            #[inline]
            pub(crate) fn set(&mut self, place: usize, row: &$row<'_>) {
                assert!(place < $crate::pages::PAGE_ROWS, "a page has no such row");
                $($crate::table::Cell::set(row.$field, place, &mut self.$field);)*
            }
        }

        impl<$life> $crate::table::Columns for $columns<$life> {
            const DESCRIPTION: $crate::table::Description = $crate::table::Description {
                name: $name,
                meaning: concat!($($about),*),
                columns: &[$($crate::table::Column {
                    name: stringify!($field),
                    kind: <$kind as $crate::table::Cell>::KIND,
                    nullable: <$kind as $crate::table::Cell>::NULLABLE,
                    meaning: concat!($($meaning),*),
                },)*],
            };

            fn end_page(
                &mut self,
                rows: usize,
                zstd: &mut $crate::pages::Zstd,
            ) -> parquet::errors::Result<()> {
                $({
                    let nullable = <$kind as $crate::table::Cell>::NULLABLE;
                    let shape = $crate::column::TableShape { rows, nullable };
                    $crate::column::Buffer::end_page(&mut self.$field, shape, zstd)?;
                })*
                Ok(())
            }

            fn write(
                &mut self,
                group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, std::fs::File>,
                schema: &parquet::schema::types::SchemaDescriptor,
                zstd: &mut $crate::pages::Zstd,
            ) -> parquet::errors::Result<()> {
                let mut columns = schema.columns().iter();
                $(
                    let column = columns.next().expect("the schema and the row have as many columns").clone();
                    let (bytes, close) = $crate::column::Buffer::end_chunk(&mut self.$field, column, zstd)?;
                    group.append_column(&bytes, close)?;
                )*
                Ok(())
            }
        }
    };
}
pub(crate) use table;

/// A table being written. It becomes visible under its name only when it is finished.
pub(crate) struct TableWriter<C: Columns> {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    schema: SchemaDescriptor,
    columns: C,
    zstd: Zstd,
    /// For a table that is written while the run goes on, and how many rows a group of it has.
    journal: Option<Journal>,
    group_rows: usize,
    /// Rows in the page that is being gathered, in the row group, and written.
    rows_in_page: usize,
    rows_in_group: usize,
    rows: u64,
}

impl<C: Columns> TableWriter<C> {
    pub(crate) fn create(dir: &Path) -> Result<TableWriter<C>> {
        let path = dir.join(format!("{}.parquet", C::DESCRIPTION.name));
        let temporary = temporary(&path);
        let file = File::create(&temporary).on("create", &temporary)?;
        let schema = schema(&C::DESCRIPTION);
        let file = SerializedFileWriter::new(file, schema.clone(), properties())
            .map_err(|error| on_parquet(error, &temporary))?;
        let (schema, columns, zstd) = (SchemaDescriptor::new(schema), C::default(), Zstd::new());
        let (journal, group_rows) = (None, GROUP_ROWS);
        let (rows_in_page, rows_in_group, rows) = (0, 0, 0);
        Ok(TableWriter {
            path,
            file,
            schema,
            columns,
            zstd,
            journal,
            group_rows,
            rows_in_page,
            rows_in_group,
            rows,
        })
    }

    /// A table that can be read up to its last row group when its writer is killed; see [`crate::journal`].
    pub(crate) fn recoverable(dir: &Path, group_rows: usize) -> Result<TableWriter<C>> {
        let table = Self::create(dir)?;
        let journal = Some(Journal::create(&table.path)?);
        Ok(TableWriter { journal, group_rows, ..table })
    }

    /// Adds one row; `set` puts it into its place in the columns.
    #[inline]
    pub(crate) fn push(&mut self, set: impl FnOnce(&mut C, usize)) -> Result<()> {
        set(&mut self.columns, self.rows_in_page);
        self.rows_in_page += 1;
        if self.rows_in_page == PAGE_ROWS { self.end_page() } else { Ok(()) }
    }

    fn end_page(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows_in_page);
        let ended = self.columns.end_page(rows, &mut self.zstd);
        ended.map_err(|error| on_parquet(error, &temporary(&self.path)))?;
        self.rows_in_group += rows;
        if self.rows_in_group >= self.group_rows { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<()> {
        let mut write = || {
            let mut group = self.file.next_row_group()?;
            self.columns.write(&mut group, &self.schema, &mut self.zstd)?;
            group.close()
        };
        let group = write().map_err(|error| on_parquet(error, &temporary(&self.path)))?;
        if let Some(journal) = &mut self.journal {
            self.file.flush().on("write", &temporary(&self.path))?;
            journal.note((*group).clone(), self.file.bytes_written() as u64)?;
        }
        self.rows += std::mem::take(&mut self.rows_in_group) as u64;
        Ok(())
    }

    /// Writes the footer, waits for the disk, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<FileSize> {
        if self.rows_in_page > 0 {
            self.end_page()?;
        }
        if self.rows_in_group > 0 {
            self.end_group()?;
        }
        let temporary = temporary(&self.path);
        let file = self.file.into_inner().map_err(|error| on_parquet(error, &temporary))?;
        file.sync_all().on("write", &temporary)?;
        let bytes = file.metadata().on("read the size of", &temporary)?.len();
        fs::rename(&temporary, &self.path).on("rename", &temporary)?;
        if let Some(journal) = self.journal {
            journal.remove();
        }
        Ok(FileSize { rows: self.rows, bytes })
    }
}

fn on_parquet(error: ParquetError, path: &Path) -> Error {
    if let ParquetError::External(cause) = error {
        return match cause.downcast::<std::io::Error>() {
            Ok(source) => Error::Disk { action: "write", path: path.to_owned(), source: *source },
            Err(cause) => Error::Damaged { path: path.to_owned(), what: cause.to_string() },
        };
    }
    Error::Damaged { path: path.to_owned(), what: error.to_string() }
}

fn schema(table: &Description) -> TypePtr {
    let columns = table.columns.iter().map(|column| Arc::new(column_type(column))).collect();
    let group = Type::group_type_builder(table.name).with_fields(columns).build();
    Arc::new(group.expect("a table's columns make a schema"))
}

fn column_type(column: &Column) -> Type {
    let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
    let (physical, logical) = match column.kind {
        "u8" => (Physical::INT32, unsigned(8)),
        "u16" => (Physical::INT32, unsigned(16)),
        "u32" => (Physical::INT32, unsigned(32)),
        "i64" => (Physical::INT64, None),
        "f64" => (Physical::DOUBLE, None),
        "bool" => (Physical::BOOLEAN, None),
        _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
        .expect("a column's type and annotation agree")
}

fn properties() -> Arc<WriterProperties> {
    let properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.into())
        .set_key_value_metadata(Some(vec![schema_version()]))
        .set_offset_index_disabled(true);
    Arc::new(properties.build())
}

/// Rows of a row group, which are in memory in their encoded form.
const GROUP_ROWS: usize = 1 << 17;
