//! One conversation written in every format and dialect reads the same, and nothing in them makes the reader fail.

use std::fs;
use std::path::Path;

use mqttlab_capture::CaptureReader;
use mqttlab_units::Seed;

/// Microseconds, original length, captured bytes.
type Frames = Vec<(u64, u32, Vec<u8>)>;

fn read(bytes: &[u8]) -> Frames {
    let mut reader = CaptureReader::new(bytes).expect("a capture");
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a frame") {
        assert_eq!(frame.link_type.0, 1);
        frames.push((frame.time.as_ns() / 1_000, frame.original_len, frame.data.to_vec()));
    }
    assert!(!reader.truncated());
    frames
}

fn conversation() -> Frames {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture/pcap-be-us-ethernet");
    read(&fs::read(file).expect("a corpus file"))
}

struct Writer {
    big: bool,
    file: Vec<u8>,
}

impl Writer {
    fn u16(&mut self, value: u16) {
        self.file.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u32(&mut self, value: u32) {
        self.file.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u64(&mut self, value: u64) {
        self.file.extend(value.to_le_bytes());
    }
}

/// A pcap file with this number at its start, version and link, and so many bytes more than usual before each frame.
fn pcap(frames: &Frames, big: bool, magic: u32, version: (u16, u16), link: u32, more: usize) -> Vec<u8> {
    let mut writer = Writer { big, file: Vec::new() };
    writer.u32(magic);
    writer.u16(version.0);
    writer.u16(version.1);
    [0, 0, 65_535, link].into_iter().for_each(|field| writer.u32(field));
    if magic >> 16 == 0x1c00 {
        writer.u32(1_000);
    }
    let is_fine = matches!(magic, 0xa1b2_3c4d | 0x1c00_01ac) || link == 6;
    for (micros, original, data) in frames {
        writer.u32((micros / 1_000_000) as u32);
        writer.u32((micros % 1_000_000) as u32 * if is_fine { 1_000 } else { 1 });
        let lengths = [data.len() as u32, *original];
        let is_old = version.1 < 3 || version.0 == 543;
        for length in if is_old { [lengths[1], lengths[0]] } else { lengths } {
            writer.u32(length);
        }
        match more {
            0 => {}
            4 => writer.u32(0),
            _ => {
                writer.u32(2);
                writer.u16(0x0800);
                writer.file.resize(writer.file.len() + more - 6, 0);
            }
        }
        writer.file.extend(data);
    }
    writer.file
}

fn snoop(frames: &Frames) -> Vec<u8> {
    let mut writer = Writer { big: true, file: b"snoop\0\0\0".to_vec() };
    [2, 4].into_iter().for_each(|field| writer.u32(field));
    for (micros, original, data) in frames {
        let padded = data.len().next_multiple_of(4);
        let (seconds, rest) = ((micros / 1_000_000) as u32, (micros % 1_000_000) as u32);
        for field in [*original, data.len() as u32, 24 + padded as u32, 0, seconds, rest] {
            writer.u32(field);
        }
        writer.file.extend(data);
        writer.file.resize(writer.file.len() + padded - data.len(), 0);
    }
    writer.file
}

/// A file of Network Monitor that began with its first frame, or whose frames have their own times.
fn netmon(frames: &Frames, major: u8, minor: u8) -> Vec<u8> {
    let mut writer =
        Writer { big: false, file: if major == 1 { b"RTSS".to_vec() } else { b"GMBU".to_vec() } };
    writer.file.extend([minor, major]);
    // Ethernet; Tuesday, 28 March 2023, 10:40.
    [1, 2023, 3, 2, 28, 10, 40, 0, 0].into_iter().for_each(|field| writer.u16(field));
    let table_at = writer.file.len();
    writer.file.resize(128, 0);
    const START: u64 = 1_680_000_000_000_000;
    for (micros, original, data) in frames {
        let delta = micros - START;
        if major == 1 {
            writer.u32((delta / 1_000) as u32);
            writer.u16(*original as u16);
            writer.u16(data.len() as u16);
        } else {
            // Since version 2.3 the time is behind the frame.
            writer.u64(if minor < 3 { delta } else { 7 });
            writer.u32(*original);
            writer.u32(data.len() as u32);
        }
        writer.file.extend(data);
        if minor >= 1 && major == 2 {
            writer.u16(if minor == 2 { 0xe001 } else { 1 });
        }
        if minor >= 2 {
            writer.u32(0);
        }
        if minor >= 3 {
            writer.u64((micros + 11_644_473_600_000_000) * 10);
            writer.file.push(0);
        }
    }
    let table = (writer.file.len() as u32).to_le_bytes();
    writer.file[table_at..table_at + 4].copy_from_slice(&table);
    writer.file.extend([0; 40]);
    writer.file
}

/// Times that Network Monitor has in milliseconds as well, after its capture began.
fn in_2023(frames: Frames) -> Frames {
    let first = frames[0].0;
    let moved = frames.into_iter().map(|(micros, original, data)| {
        (1_680_000_000_000_000 + (micros - first) / 1_000 * 1_000, original, data)
    });
    moved.collect()
}

fn files(frames: &Frames) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("snoop".to_owned(), snoop(frames))];
    for (major, minor) in [(1, 1), (2, 0), (2, 1), (2, 2), (2, 3)] {
        files.push((format!("Network Monitor {major}.{minor}"), netmon(frames, major, minor)));
    }
    for big in [false, true] {
        for (name, magic, version, link, more) in [
            ("usual", 0xa1b2_c3d4, (2, 4), 1, 0),
            ("check sequence's length", 0xa1b2_c3d4, (2, 4), 0x4400_0001, 0),
            ("nanoseconds", 0xa1b2_3c4d, (2, 4), 1, 0),
            ("Red Hat 6.1", 0xa1b2_c3d4, (2, 4), 1, 8),
            ("Nokia", 0xa1b2_c3d4, (2, 4), 1, 4),
            ("modified", 0xa1b2_cd34, (2, 4), 1, 8),
            ("SuSE 6.3", 0xa1b2_cd34, (2, 4), 1, 12),
            ("AIX", 0xa1b2_c3d4, (2, 2), 6, 0),
            ("version 2.2", 0xa1b2_c3d4, (2, 2), 1, 0),
            ("version 2.3", 0xa1b2_c3d4, (2, 3), 1, 0),
            ("DG/UX", 0xa1b2_c3d4, (543, 0), 1, 0),
            ("Ixia, nanoseconds", 0x1c00_01ac, (2, 4), 1, 0),
            ("Ixia", 0x1c00_01ab, (2, 4), 1, 0),
        ] {
            files.push((format!("{name}, big endian: {big}"), pcap(frames, big, magic, version, link, more)));
        }
    }
    files
}

#[test]
fn every_format_and_dialect_reads_alike() {
    let frames = in_2023(conversation());
    assert!(frames.len() > 10);
    for (name, file) in files(&frames) {
        assert_eq!(read(&file), frames, "{name}");
    }
    // Frames that are cut to a part.
    let cut: Frames =
        frames.iter().take(2).map(|(micros, _, data)| (*micros, 900, data[..50].to_vec())).collect();
    for (name, file) in files(&cut) {
        assert_eq!(read(&file), cut, "{name}");
    }
}

#[test]
fn a_usual_file_that_was_cut_or_damaged_stays_a_usual_file() {
    let frames = in_2023(conversation());
    let whole = pcap(&frames, false, 0xa1b2_c3d4, (2, 4), 1, 0);
    for end in 24 + 16 + frames[0].2.len()..24 + 200 {
        let mut reader = CaptureReader::new(&whole[..end]).expect("a capture");
        let first = reader.next_frame().expect("a frame").expect("the first one");
        assert_eq!(first.data, frames[0].2, "cut at {end}");
    }
}

#[test]
fn no_change_of_any_file_makes_the_reader_fail() {
    let frames = in_2023(conversation());
    let mut dice = Seed(1).derive("dialects").dice();
    for (_, whole) in files(&frames[..6].to_vec()) {
        for _ in 0..300 {
            let mut file = whole.clone();
            for _ in 0..1 + dice.below(6) {
                let at = dice.below(file.len() as u64) as usize;
                file[at] = dice.bits() as u8;
            }
            file.truncate(1 + dice.below(file.len() as u64) as usize);
            let Ok(mut reader) = CaptureReader::new(&file[..]) else { continue };
            let mut count = 0;
            while let Ok(Some(_)) = reader.next_frame() {
                count += 1;
            }
            assert!(count <= file.len());
        }
    }
}
