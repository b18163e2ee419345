//! Pages of a column chunk, and whether they are compressed.
//!
//! A column chunk is compressed if its first page gains much by it: compressing a page costs several times what
//! encoding it does.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Zstandard at one of its fast levels.
pub(crate) struct Zstd(zstd::bulk::Compressor<'static>);

impl Zstd {
    pub(crate) fn new() -> Zstd {
        Zstd(zstd::bulk::Compressor::new(LEVEL).expect("a compressor takes memory and no more"))
    }
}

/// The pages of a column chunk.
pub(crate) struct Pages {
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
    pub(crate) fn data(
        &mut self,
        body: &[u8],
        rows: usize,
        encoding: Encoding,
        zstd: &mut Zstd,
    ) -> Result<()> {
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
        let gains = small.len() * 2 < body.len();
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
    pub(crate) fn finish(
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
            Some(true) => Compression::ZSTD(ZstdLevel::default()),
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

/// Rows whose values are encoded at once: those of all columns fit the processor's cache.
pub(crate) const PAGE_ROWS: usize = 1 << 12;
/// Half the work of level 1, for sizes that are a tenth larger.
const LEVEL: i32 = -3;
