//! Captures in pcapng, for Wireshark and everything else that reads it.
//!
//! One section; one interface per direction of a link, with nanosecond timestamps and raw IP packets
//! (LINKTYPE_RAW); one enhanced packet block per frame, whose comment ([`Transit`](mqttlab_rows::Transit)) says when it
//! left and arrived, or what became of it. The section's comment says when the run began. Format: draft-ietf-opsawg-pcapng.

use std::io::{self, Write};

/// Writes a pcapng file.
pub struct PcapngWriter<W: Write> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a section. `system` is the operating system, `application` the program that wrote it.
    pub fn new(out: W, system: &str, application: &str, comment: &str) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter { out, block: Vec::new(), interfaces: 0 };
        writer.block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        writer.block.extend_from_slice(&1_u16.to_le_bytes());
        writer.block.extend_from_slice(&0_u16.to_le_bytes());
        // The section's length is not known in advance.
        writer.block.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.option(OPT_COMMENT, comment.as_bytes());
        writer.option(SHB_OS, system.as_bytes());
        writer.option(SHB_USERAPPL, application.as_bytes());
        writer.end_of_options();
        writer.write_block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Describes the next interface, and returns its number.
    pub fn interface(&mut self, name: &str, description: &str) -> io::Result<u32> {
        self.block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        self.block.extend_from_slice(&[0; 2]);
        // No limit to the length of a packet.
        self.block.extend_from_slice(&0_u32.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_DESCRIPTION, description.as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end_of_options();
        self.write_block(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes one packet. `unix_ns` counts from 1970-01-01T00:00:00Z.
    ///
    /// # Panics
    /// When the interface has not been described.
    pub fn packet(
        &mut self,
        interface: u32,
        unix_ns: u64,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        assert!(interface < self.interfaces, "interface {interface} has not been described");
        self.block.extend_from_slice(&interface.to_le_bytes());
        self.block.extend_from_slice(&((unix_ns >> 32) as u32).to_le_bytes());
        self.block.extend_from_slice(&(unix_ns as u32).to_le_bytes());
        self.block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.block.extend_from_slice(bytes);
        self.pad();
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes());
            self.end_of_options();
        }
        self.write_block(ENHANCED_PACKET)
    }

    /// Hands back the output, which the caller flushes.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.block.extend_from_slice(&[0; 4]);
    }

    /// Everything in a block begins at a multiple of four bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let size = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&size)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&size)?;
        self.block.clear();
        Ok(())
    }
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const OPT_COMMENT: u16 = 1;
const SHB_OS: u16 = 3;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
/// Timestamps count in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;
const LINKTYPE_RAW: u16 = 101;
