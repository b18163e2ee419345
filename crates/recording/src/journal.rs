//! What makes a table readable whose writer was killed: a file beside it with the metadata of every row group.
//!
//! A Parquet file is read from its footer, which is written last. A producer that writes its packets straight into
//! columns appends to this journal, after each row group, what the footer will say of it: its length, where the group
//! ends in the file, and a footer of that group alone. From these the footer can be written by whoever comes later.
//! A torn entry costs its group. What it does not keep: rows of the group that was being gathered in memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::SchemaDescriptor;

use crate::error::{Error, ErrorContext, Result};
use crate::footer::{CREATED_BY, FileSize, schema_version, temporary};

/// The journal of a table that is being written.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    pub(crate) fn create(table: &Path) -> Result<Journal> {
        let path = path_of(table);
        Ok(Journal { file: File::create(&path).on("create", &path)?, path })
    }

    /// Notes a row group whose last byte is in the file, before `end`.
    pub(crate) fn note(&mut self, group: RowGroupMetaData, end: u64) -> Result<()> {
        let schema = group.schema_descr().clone();
        let footer = footer(vec![group], schema, None).map_err(|error| damaged(&self.path, &error))?;
        let mut entry = Vec::with_capacity(footer.len() + HEAD_BYTES);
        entry.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        entry.extend_from_slice(&end.to_le_bytes());
        entry.extend_from_slice(&footer);
        self.file.write_all(&entry).on("write", &self.path)
    }

    /// The table has its own footer now.
    pub(crate) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives the table `name`, whose writer was killed in `from`, the footer that its whole row groups need, in `to`.
/// `None` when there is no whole row group.
pub(crate) fn salvage(from: &Path, to: &Path, name: &str) -> Result<Option<FileSize>> {
    let (source, target) = (from.join(name), to.join(name));
    let (unfinished, unnamed) = (temporary(&source), temporary(&target));
    let Some((groups, end)) = entries(&source, &unfinished)? else { return Ok(None) };
    let rows = groups.iter().map(|group| group.num_rows() as u64).sum();
    let schema = groups[0].schema_descr().clone();
    let version = schema_version();
    let footer = footer(groups, schema, Some(version)).map_err(|error| damaged(&source, &error))?;
    let file = if from == to {
        OpenOptions::new().write(true).open(&unfinished).on("open", &unfinished)
    } else {
        copy_start(&unfinished, &unnamed, end)
    };
    let mut file = file?;
    let mut write = || {
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(&footer)?;
        file.sync_all()
    };
    write().on("write", &unnamed)?;
    fs::rename(&unnamed, &target).on("rename", &unnamed)?;
    Ok(Some(FileSize { rows, bytes: end + footer.len() as u64 }))
}

/// Where the journal of a table is.
pub(crate) fn path_of(table: &Path) -> PathBuf {
    table.with_extension("groups.spool")
}

/// The row groups that are whole in the file, and where the last of them ends.
fn entries(table: &Path, unfinished: &Path) -> Result<Option<(Vec<RowGroupMetaData>, u64)>> {
    let path = path_of(table);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.on("read", &path)?,
    };
    let length = fs::metadata(unfinished).on("read the size of", unfinished)?.len();
    let (mut groups, mut last, mut rest) = (Vec::new(), 0, bytes.as_slice());
    while rest.len() >= HEAD_BYTES {
        let size = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let end = u64::from_le_bytes(rest[4..HEAD_BYTES].try_into().expect("eight bytes"));
        let Some(footer) = rest.get(HEAD_BYTES..HEAD_BYTES + size).filter(|_| size > 8 && end <= length)
        else {
            break;
        };
        // Behind the metadata are its length and the magic word.
        let metadata = ParquetMetaDataReader::decode_metadata(&footer[..size - 8]);
        groups.extend(metadata.map_err(|error| damaged(&path, &error))?.row_groups().iter().cloned());
        last = end;
        rest = &rest[HEAD_BYTES + size..];
    }
    Ok((!groups.is_empty()).then_some((groups, last)))
}

fn footer(
    groups: Vec<RowGroupMetaData>,
    schema: SchemaDescriptor,
    version: Option<KeyValue>,
) -> parquet::errors::Result<Vec<u8>> {
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let created_by = Some(CREATED_BY.to_owned());
    let facts = FileMetaData::new(1, rows, created_by, version.map(|one| vec![one]), Arc::new(schema), None);
    let metadata = ParquetMetaData::new(facts, groups);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
    Ok(bytes)
}

fn copy_start(from: &Path, to: &Path, bytes: u64) -> Result<File> {
    let source = File::open(from).on("open", from)?;
    let mut target = File::create(to).on("create", to)?;
    io::copy(&mut source.take(bytes), &mut target).on("copy", from)?;
    Ok(target)
}

fn damaged(path: &Path, error: &ParquetError) -> Error {
    Error::Damaged { path: path.to_owned(), what: error.to_string() }
}

/// The length of an entry's footer, and where its row group ends.
const HEAD_BYTES: usize = 12;
