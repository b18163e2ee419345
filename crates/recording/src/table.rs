//! Tables: rows into the columns of a Parquet file, a bounded number at a time.
//!
//! [`table!`] declares a table once: the struct of a row, the buffers of its columns, and the description that
//! the file's schema and `docs/recording.md` are made of. A column's meaning is the comment on the row's field; its
//! unit is the last word of its name.
//!
//! Integers are stored as differences (DELTA_BINARY_PACKED), which suits times and counters and costs next to
//! nothing for constants; words go through a dictionary.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::SCHEMA_VERSION;
use crate::error::{Context, Error, Result};

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
    fn push(self, buffer: &mut Self::Buffer);
}

/// A column's values, gathered until the row group is full.
pub(crate) trait Buffer: Default {
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> parquet::errors::Result<()>;
}

/// The columns of one table.
pub(crate) trait Columns: Default {
    const DESCRIPTION: Description;
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> parquet::errors::Result<()>;
}

/// Values of a physical type, and which of them are there when the column is nullable.
pub(crate) struct Values<T: DataType> {
    values: Vec<T::T>,
    /// 1 where a value is, 0 where none is; empty in a column without gaps.
    levels: Vec<i16>,
}

/// Words, one behind the other.
#[derive(Default)]
pub(crate) struct Words {
    text: Vec<u8>,
    ends: Vec<u32>,
    levels: Vec<i16>,
}

impl<T: DataType> Default for Values<T> {
    fn default() -> Self {
        Values { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T: DataType> Buffer for Values<T> {
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> parquet::errors::Result<()> {
        let mut column = group.next_column()?.expect("the schema and the row have as many columns");
        let levels = (!self.levels.is_empty()).then_some(&self.levels[..]);
        column.typed::<T>().write_batch(&self.values, levels, None)?;
        self.values.clear();
        self.levels.clear();
        column.close()
    }
}

impl Buffer for Words {
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, File>) -> parquet::errors::Result<()> {
        let mut column = group.next_column()?.expect("the schema and the row have as many columns");
        let text = bytes_of(&mut self.text);
        let mut start = 0;
        let values: Vec<ByteArray> = self
            .ends
            .drain(..)
            .map(|end| {
                let word = text.slice(start, end as usize - start);
                start = end as usize;
                word
            })
            .collect();
        let levels = (!self.levels.is_empty()).then_some(&self.levels[..]);
        column.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
        self.levels.clear();
        column.close()
    }
}

/// The bytes as one shared piece, of which words can be slices; the buffer keeps its size for the next ones.
fn bytes_of(text: &mut Vec<u8>) -> ByteArray {
    let size = text.capacity();
    ByteArray::from(std::mem::replace(text, Vec::with_capacity(size)))
}

macro_rules! cells {
    ($($kind:ty as $name:literal => $stored:ty, $physical:ty;)*) => {$(
        impl Cell for $kind {
            type Buffer = Values<$physical>;
            const KIND: &'static str = $name;
            #[inline]
            fn push(self, buffer: &mut Self::Buffer) {
                buffer.values.push(self as $stored);
            }
        }

        impl Cell for Option<$kind> {
            type Buffer = Values<$physical>;
            const KIND: &'static str = $name;
            const NULLABLE: bool = true;
            #[inline]
            fn push(self, buffer: &mut Self::Buffer) {
                buffer.levels.push(i16::from(self.is_some()));
                if let Some(value) = self {
                    buffer.values.push(value as $stored);
                }
            }
        }
    )*};
}
// Parquet has no unsigned storage: the bits go into the signed type and the annotation says what they mean.
// Times and counters never reach 2^63; they stay signed, so that a reader may subtract them.
cells! {
    u8 as "u8" => i32, Int32Type;
    u16 as "u16" => i32, Int32Type;
    u32 as "u32" => i32, Int32Type;
    u64 as "i64" => i64, Int64Type;
    f64 as "f64" => f64, DoubleType;
    bool as "bool" => bool, BoolType;
}

impl Cell for &str {
    type Buffer = Words;
    const KIND: &'static str = "text";
    #[inline]
    fn push(self, buffer: &mut Words) {
        buffer.text.extend_from_slice(self.as_bytes());
        buffer.ends.push(buffer.text.len() as u32);
    }
}

impl Cell for Option<&str> {
    type Buffer = Words;
    const KIND: &'static str = "text";
    const NULLABLE: bool = true;
    #[inline]
    fn push(self, buffer: &mut Words) {
        buffer.levels.push(i16::from(self.is_some()));
        if let Some(word) = self {
            word.push(buffer);
        }
    }
}

/// Declares a table: its row, its columns, and what they mean.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        pub struct $row:ident<$life:lifetime> in $name:literal, columns $columns:ident {
            $($(#[doc = $meaning:literal])* pub $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $row<$life> { $($(#[doc = $meaning])* pub $field: $kind,)* }

        pub(crate) struct $columns<$life> { $($field: <$kind as $crate::table::Cell>::Buffer,)* }

        impl Default for $columns<'_> {
            fn default() -> Self {
                $columns { $($field: Default::default(),)* }
            }
        }

        impl $columns<'static> {
            #[inline]
            pub(crate) fn push(&mut self, row: &$row<'_>) {
                $($crate::table::Cell::push(row.$field, &mut self.$field);)*
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

            fn write(
                &mut self,
                group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, std::fs::File>,
            ) -> parquet::errors::Result<()> {
                $($crate::table::Buffer::write(&mut self.$field, group)?;)*
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
    columns: C,
    rows_buffered: usize,
    rows: u64,
}

/// How large a finished file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FileSize {
    /// Rows in it.
    pub rows: u64,
    /// Its size on the disk.
    pub bytes: u64,
}

impl<C: Columns> TableWriter<C> {
    pub(crate) fn create(dir: &Path) -> Result<TableWriter<C>> {
        let path = dir.join(format!("{}.parquet", C::DESCRIPTION.name));
        let temporary = temporary(&path);
        let file = File::create(&temporary).on("create", &temporary)?;
        let file = SerializedFileWriter::new(file, schema(&C::DESCRIPTION), properties(&C::DESCRIPTION))
            .map_err(|error| on_parquet(error, &temporary))?;
        Ok(TableWriter { path, file, columns: C::default(), rows_buffered: 0, rows: 0 })
    }

    /// Adds one row; `push` puts it into the columns.
    #[inline]
    pub(crate) fn push(&mut self, push: impl FnOnce(&mut C)) -> Result<()> {
        push(&mut self.columns);
        self.rows_buffered += 1;
        if self.rows_buffered == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut write = || {
            let mut group = self.file.next_row_group()?;
            self.columns.write(&mut group)?;
            group.close()
        };
        write().map_err(|error| on_parquet(error, &temporary(&self.path)))?;
        self.rows += self.rows_buffered as u64;
        self.rows_buffered = 0;
        Ok(())
    }

    /// Writes the footer, waits for the disk, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<FileSize> {
        if self.rows_buffered > 0 {
            self.write_group()?;
        }
        let temporary = temporary(&self.path);
        let file = self.file.into_inner().map_err(|error| on_parquet(error, &temporary))?;
        file.sync_all().on("write", &temporary)?;
        let bytes = file.metadata().on("read the size of", &temporary)?.len();
        fs::rename(&temporary, &self.path).on("rename", &temporary)?;
        Ok(FileSize { rows: self.rows, bytes })
    }
}

fn temporary(path: &Path) -> PathBuf {
    path.with_extension("parquet.tmp")
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

fn properties(table: &Description) -> Arc<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("mqttlab ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "mqttlab.schema_version".into(),
            SCHEMA_VERSION.to_string(),
        )]))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).expect("zstd has a level 1")))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_write_batch_size(8192)
        .set_offset_index_disabled(true);
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        if column.kind.starts_with(['u', 'i']) {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else if column.kind == "text" {
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Arc::new(properties.build())
}

/// Rows gathered before they are written: some tens of MiB of columns.
const GROUP_ROWS: usize = 1 << 17;
