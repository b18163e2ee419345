//! Evidence as it lies on the disk: plain or compressed, one file or several, and how far it has been read.
//!
//! Compression is told by the first bytes, not by the name. Frames of several captures come merged by time; those of
//! one capture in the order of their times, as far as [`Sorting`] puts them in order.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use mqttlab_capture::{CaptureReader, CapturedFrame};
use mqttlab_recording::{Direction, NumberMap, Transit};
use mqttlab_units::Instant;

use super::error::{ImportError, Result};
use super::sorting::{HeldFrame, Sorting};

/// Counts the bytes that are read from all files.
#[derive(Clone)]
pub struct Meter {
    read: Rc<Cell<u64>>,
    total: Option<u64>,
    unpacked_max: Option<u64>,
}

impl Meter {
    /// A meter for these files, of which none has been read.
    pub fn of(files: &[PathBuf]) -> Meter {
        let sizes = files.iter().map(|file| file.metadata().ok().filter(|facts| facts.is_file()));
        let total = sizes.map(|facts| Some(facts?.len())).sum();
        Meter { read: Rc::default(), total, unpacked_max: None }
    }

    /// How many bytes compressed files may unpack to; what they have tells when left out.
    pub fn unpacking(self, most: Option<u64>) -> Meter {
        Meter { unpacked_max: most, ..self }
    }

    fn unpacked_max(&self) -> u64 {
        self.unpacked_max.unwrap_or_else(|| UNPACKED_ALWAYS.max(UNPACKED_RATIO * self.read.get()))
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read.get()
    }

    /// Bytes of all files; `None` when one of them is a pipe.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

/// A reader whose bytes are counted.
struct Metered<R> {
    inner: R,
    meter: Meter,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.read.set(self.meter.read.get() + count as u64);
        Ok(count)
    }
}

/// What a compressed stream unpacks to, up to a bound: a few bytes may stand for any number.
struct Unpacked<R> {
    inner: R,
    meter: Meter,
    bytes: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.meter.unpacked_max();
        let room = usize::try_from(most.saturating_sub(self.bytes)).unwrap_or(usize::MAX).min(buffer.len());
        if room > 0 || buffer.is_empty() {
            let count = self.inner.read(&mut buffer[..room])?;
            self.bytes += count as u64;
            return Ok(count);
        }
        // It may end just here.
        if self.inner.read(&mut [0])? == 0 {
            return Ok(0);
        }
        let problem = format!(
            "it unpacks to more than {:.1} MB, of {:.1} MB read; give --unpacked-max more if that is right",
            most as f64 / 1e6,
            self.meter.read() as f64 / 1e6
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, problem))
    }
}

/// Opens a file, or standard input for `-`, and decompresses it.
///
/// # Errors
/// [`ImportError::Evidence`] when there is no such file, it cannot be read, or it is an archive of files.
pub fn open(file: &Path, meter: &Meter) -> Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = if file == Path::new("-") {
        let begun = std::mem::take(&mut *STDIN_HEAD.lock().unwrap_or_else(PoisonError::into_inner));
        Box::new(Cursor::new(begun).chain(io::stdin()))
    } else {
        let facts = file.metadata().map_err(|error| ImportError::in_file(file, describe(&error)))?;
        if facts.is_dir() {
            return Err(ImportError::in_file(file, "is a directory; name the files in it"));
        }
        Box::new(File::open(file).map_err(|error| ImportError::in_file(file, describe(&error)))?)
    };
    let read = decompressed(Metered { inner: raw, meter: meter.clone() }, meter);
    let (head, plain) = read
        .and_then(|plain| ahead(plain, TAR_MAGIC.end))
        .map_err(|error| ImportError::in_file(file, format!("cannot be read: {error}")))?;
    if head.get(TAR_MAGIC).is_some_and(|magic| magic == b"ustar") {
        return Err(ImportError::in_file(
            file,
            "is an archive; unpack it first (tar -xf) and name the files in it",
        ));
    }
    Ok(plain)
}

/// The first bytes of a file, decompressed. Those of standard input stay to be read.
///
/// # Errors
/// As those of [`open`].
pub fn head(file: &Path, unpacked_max: Option<u64>) -> Result<Vec<u8>> {
    let meter = Meter::of(&[]).unpacking(unpacked_max);
    let unread = |error: io::Error| ImportError::in_file(file, format!("cannot be read: {error}"));
    let mut plain = if file == Path::new("-") {
        let mut begun = STDIN_HEAD.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.is_empty() {
            io::stdin().take(HEAD_BYTES).read_to_end(&mut begun).map_err(unread)?;
        }
        decompressed(Cursor::new(begun.clone()), &meter).map_err(unread)?
    } else {
        open(file, &meter)?
    };
    let mut bytes = Vec::new();
    // What cannot be read any further is met again.
    let _ = plain.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes);
    Ok(bytes)
}

/// What was read of standard input to see what it is.
static STDIN_HEAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// So much says what a file is.
const HEAD_BYTES: u64 = 64 << 10;

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "cannot be read: permission denied".into(),
        _ => format!("cannot be opened: {error}"),
    }
}

fn decompressed(raw: impl Read + 'static, meter: &Meter) -> io::Result<Box<dyn Read>> {
    let (head, raw) = ahead(raw, 4)?;
    let inner: Box<dyn Read> = match head.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(raw))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(raw)?),
        _ => return Ok(raw),
    };
    Ok(Box::new(Unpacked { inner, meter: meter.clone(), bytes: 0 }))
}

/// Captures of small frames that are all alike unpack to fifty times their size; a stream of zeros to a thousand times.
const UNPACKED_RATIO: u64 = 200;
const UNPACKED_ALWAYS: u64 = 256_000_000;

/// Frames of each of several captures that are looked at before the first one is taken.
const LOOKED_AT: usize = 1 << 13;

/// The first `count` bytes of a stream, or all if there are fewer, and the whole stream.
fn ahead(mut stream: impl Read + 'static, count: usize) -> io::Result<(Vec<u8>, Box<dyn Read>)> {
    let mut head = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match stream.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A compressed file that ends too early is read as far as it goes; the end will be met again.
            Err(error) if filled > 0 && error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    head.truncate(filled);
    Ok((head.clone(), Box::new(Cursor::new(head).chain(stream))))
}

/// The frames of one or several captures, by time.
pub struct CaptureFrames {
    captures: Vec<Capture>,
    current: HeldFrame,
    /// Names of links, by number.
    links: Vec<String>,
    /// Why captures ended before their end.
    faults: Vec<String>,
    /// See [`CaptureFrames::take_secrets`].
    secrets: Vec<u8>,
    /// See [`CaptureFrames::show_both_ends`].
    show_both_ends: bool,
}

/// Where a frame was captured.
#[derive(Clone, Copy)]
pub struct CapturedAt {
    /// The number of the link.
    pub link: u16,
    /// The number of the capture.
    pub file: u16,
    /// How it crossed that link and which way, where the captures show both ends.
    pub transit: Option<(Direction, Transit)>,
}

struct Capture {
    label: String,
    /// What is added to its times.
    add_ns: i64,
    reader: CaptureReader<Box<dyn Read>>,
    /// Frames that were read and wait for their turn.
    sorting: Sorting,
    /// Whether there is no frame left to read.
    is_read: bool,
    /// The link of each interface that has been seen, and of each interface of the host in it.
    links: NumberMap<(u32, u32), u16>,
}

impl CaptureFrames {
    /// Opens captures and reads the first frame of each.
    ///
    /// # Errors
    /// [`ImportError::Evidence`] when a file cannot be opened, is no capture, or none holds a frame.
    pub fn open(files: &[PathBuf], meter: &Meter) -> Result<CaptureFrames> {
        let labels = labels(files);
        let mut frames = CaptureFrames {
            captures: Vec::new(),
            current: HeldFrame::empty(),
            links: Vec::new(),
            faults: Vec::new(),
            secrets: Vec::new(),
            show_both_ends: false,
        };
        for (file, label) in files.iter().zip(labels) {
            let reader =
                CaptureReader::new(open(file, meter)?).map_err(|error| ImportError::in_file(file, error))?;
            let (sorting, links) = (Sorting::default(), NumberMap::default());
            let mut capture = Capture { label, add_ns: 0, reader, sorting, is_read: false, links };
            // One is enough to begin with: a pipe may bring more only later.
            capture.read(&mut frames.faults, &mut frames.secrets);
            frames.captures.push(capture);
        }
        if frames.captures.iter().all(|capture| capture.time().is_none()) {
            let problem = frames.faults.first().cloned().unwrap_or("there is no frame to import".into());
            return Err(ImportError::in_file(&files[0], problem));
        }
        let is_told = |capture: &Capture| {
            let first = capture.sorting.first();
            capture.reader.is_own() && first.is_none_or(|held| held.transit.is_some())
        };
        frames.show_both_ends = frames.captures.iter().all(is_told);
        Ok(frames)
    }

    /// Whether mqttlab wrote all of them and says of each frame when it arrived.
    pub fn show_both_ends(&self) -> bool {
        self.show_both_ends
    }

    /// When the run began that all of them belong to, where they show both ends and hold it whole.
    pub fn run_started(&self) -> Option<Instant> {
        let mut starts = self.captures.iter().map(|capture| capture.reader.run_started());
        let first = starts.next().flatten().filter(|_| self.show_both_ends)?;
        starts.all(|start| start == Some(first)).then_some(first)
    }

    /// From when to when the run was measured that all of them belong to, counted from its beginning.
    pub fn run_measured(&self) -> Option<[Instant; 2]> {
        self.run_started()?;
        let mut windows = self.captures.iter().map(|capture| capture.reader.run_measured());
        // Readers of a recording have signed times.
        let first = windows.next().flatten().filter(|[_, until]| i64::try_from(until.as_ns()).is_ok())?;
        windows.all(|window| window == Some(first)).then_some(first)
    }

    /// When the first frame was captured.
    pub fn start(&self) -> Instant {
        self.captures.iter().filter_map(Capture::time).min().unwrap_or_default()
    }

    /// The next frame, and where it was captured.
    pub fn next(&mut self) -> Option<(CapturedAt, CapturedFrame<'_>)> {
        for capture in &mut self.captures {
            capture.fill(&mut self.faults, &mut self.secrets);
        }
        let earliest = (0..self.captures.len())
            .filter(|&index| self.captures[index].time().is_some())
            .min_by_key(|&index| self.captures[index].time())?;
        let capture = &mut self.captures[earliest];
        let mut next = capture.sorting.next()?;
        next.time = capture.corrected(next.time);
        capture.sorting.give_back(std::mem::replace(&mut self.current, next));
        let link = capture.link(&self.current, &mut self.links, self.show_both_ends);
        let HeldFrame { time, is_timed, interface, link_type, original_len, ref data, ref transit, .. } =
            self.current;
        let transit = transit.as_ref().filter(|_| self.show_both_ends);
        let file = earliest.min(usize::from(u16::MAX)) as u16;
        let at = CapturedAt { link, file, transit: transit.map(|told| (told.direction, told.transit)) };
        Some((at, CapturedFrame { time, is_timed, interface, link_type, original_len, data }))
    }

    /// The first frames of each capture, with its number; they stay where they are.
    pub fn look_ahead(&mut self) -> impl Iterator<Item = (u16, CapturedFrame<'_>)> {
        let count = if self.captures.len() > 1 { LOOKED_AT } else { 0 };
        for capture in &mut self.captures {
            capture.fill(&mut self.faults, &mut self.secrets);
            while !capture.is_read && capture.sorting.waiting().len() < count {
                capture.read(&mut self.faults, &mut self.secrets);
            }
        }
        let captures = (0..).zip(&self.captures);
        captures.flat_map(|(file, capture)| {
            let frames = capture.sorting.waiting().map(HeldFrame::frame);
            frames.map(move |frame| (file, CapturedFrame { time: capture.corrected(frame.time), ..frame }))
        })
    }

    /// Adds to the times of a capture.
    pub fn correct(&mut self, file: u16, add_ns: i64) {
        self.captures[usize::from(file)].add_ns = add_ns;
    }

    /// What the captures are called.
    pub fn names(&self) -> Vec<String> {
        self.captures.iter().map(|capture| capture.label.clone()).collect()
    }

    /// Frames that its capture dropped between the last frame and the one before it.
    pub fn dropped_before(&self) -> u64 {
        self.current.dropped_before
    }

    /// Frames that the captures dropped, nobody knows when.
    pub fn dropped_anywhere(&self) -> u64 {
        self.captures.iter().map(|capture| capture.reader.dropped().anywhere).sum()
    }

    /// Secrets of TLS connections that the captures hold, as far as they were read and not taken.
    pub fn take_secrets(&mut self) -> Option<Vec<u8>> {
        (!self.secrets.is_empty()).then(|| std::mem::take(&mut self.secrets))
    }

    /// Whether mqttlab wrote all of them.
    pub fn are_own(&self) -> bool {
        self.captures.iter().all(|capture| capture.reader.is_own())
    }

    /// How many files there are: each may have a clock of its own.
    pub fn files(&self) -> usize {
        self.captures.len()
    }

    /// Names of the links that had frames.
    pub fn links(&self) -> &[String] {
        &self.links
    }

    /// What is wrong with the order of the frames' times: why numbers are not the whole truth, and what to know besides.
    pub fn disorder(&self) -> (Vec<String>, Vec<String>) {
        let (mut reasons, mut warnings) = (Vec::new(), Vec::new());
        for capture in &self.captures {
            capture.sorting.report_disorder(&capture.label, &mut reasons, &mut warnings);
            if capture.reader.is_coarse() {
                reasons.push(format!(
                    "{} has times in whole milliseconds: latencies and round trips are off by up to 1 ms. Capture with a \
                     program that writes pcapng.",
                    capture.label
                ));
            }
        }
        (reasons, warnings)
    }

    /// Why captures ended before their end.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl Capture {
    fn time(&self) -> Option<Instant> {
        self.sorting.time().map(|time| self.corrected(time))
    }

    fn corrected(&self, time: Instant) -> Instant {
        Instant::from_ns(time.as_ns().saturating_add_signed(self.add_ns))
    }

    /// Reads frames until there are enough to put the next ones in order.
    fn fill(&mut self, faults: &mut Vec<String>, secrets: &mut Vec<u8>) {
        while !self.is_read && self.sorting.wants_more() {
            self.read(faults, secrets);
        }
    }

    fn end(&mut self) {
        self.is_read = true;
        self.sorting.end();
    }

    fn read(&mut self, faults: &mut Vec<String>, secrets: &mut Vec<u8>) {
        let mut held = self.sorting.room();
        match self.reader.next_frame() {
            Ok(Some(frame)) => {
                held.hold(&frame);
                held.dropped_before = self.reader.dropped().between;
                held.transit = self.reader.take_transit();
                secrets.append(&mut self.reader.take_secrets());
                return self.sorting.put(held);
            }
            Ok(None) => self.end(),
            Err(error) => {
                self.end();
                return faults.push(match error {
                    mqttlab_capture::CaptureError::Io(error) => {
                        format!("{} cannot be read to its end: {error}", self.label)
                    }
                    error => format!("{} is damaged {error}", self.label),
                });
            }
        }
        if self.reader.truncated() {
            faults.push(format!("{} ends in the middle of a frame", self.label));
        }
    }

    /// The number of an interface's link, which gets one when its first frame comes. A capture of all interfaces of a
    /// host has a link for each that it names; captures of our own name their links.
    fn link(&mut self, held: &HeldFrame, links: &mut Vec<String>, is_named: bool) -> u16 {
        let name = held.transit.as_ref().map(|told| &*told.link).filter(|_| is_named);
        let known = name.and_then(|name| links.iter().position(|link| link == name));
        let on_host = held.link_type.place_on_host(&held.data).map_or(0, |(interface, _)| interface);
        let before = self.links.len();
        *self.links.entry((held.interface, on_host)).or_insert_with(|| {
            let number = known.unwrap_or(links.len()).min(usize::from(u16::MAX)) as u16;
            if known.is_some() {
                return number;
            }
            let suffix = match (on_host, before) {
                (1.., _) => format!(" interface {on_host}"),
                (_, 0) => String::new(),
                (_, before) => format!("#{}", before + 1),
            };
            links.push(name.map_or_else(|| format!("{}{suffix}", self.label), str::to_owned));
            number
        })
    }
}

/// What files are called: their names without what only says how they are stored, and as many of the directories
/// above them as tell them apart.
pub fn labels(files: &[PathBuf]) -> Vec<String> {
    let deepest = files.iter().map(|file| file.components().count()).max().unwrap_or_default();
    let apart = |labels: &Vec<String>| labels.iter().collect::<HashSet<_>>().len() == files.len();
    let short = (1..=deepest).map(|depth| files.iter().map(|file| label(file, depth)).collect());
    let whole = || files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    short.into_iter().find(apart).unwrap_or_else(whole)
}

/// The last `depth` parts of a file's path, without suffixes.
fn label(file: &Path, depth: usize) -> String {
    if file == Path::new("-") {
        return "standard input".into();
    }
    let parts: Vec<_> = file.components().collect();
    let last: PathBuf = parts[parts.len().saturating_sub(depth)..].iter().collect();
    let mut name = last.to_string_lossy().into_owned();
    while let Some(stem) = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) {
        name = stem.to_owned();
    }
    name
}

const SUFFIXES: [&str; 8] = [".gz", ".zst", ".pcapng", ".pcap", ".cap", ".ntar", ".log", ".csv"];
/// Where a tar archive says that it is one (POSIX.1-1988, ustar).
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_unless_they_repeat() {
        let labels_of = |files: &[&str]| labels(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(labels_of(&["a/x.pcapng.gz", "b/y.log.zst", "-"]), ["x", "y", "standard input"]);
        assert_eq!(labels_of(&["/e/a/x.pcapng", "/e/b/x.pcap"]), ["a/x", "b/x"]);
        assert_eq!(labels_of(&["a/x.pcapng", "a/x.pcap"]), ["a/x.pcapng", "a/x.pcap"]);
    }

    /// A pcap file (little endian, microseconds, raw IP) with frames of one byte at these seconds.
    fn pcap(seconds: &[u32]) -> Vec<u8> {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0; 8]);
        file.extend([0, 0, 4, 0, 101, 0, 0, 0]);
        for second in seconds {
            file.extend(second.to_le_bytes());
            file.extend([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x45]);
        }
        file
    }

    fn written(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mqttlab-source-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn frames_of_several_captures_come_by_time_from_plain_and_compressed_files() {
        let packed = zstd::encode_all(&pcap(&[2, 4, 3])[..], 1).unwrap();
        let files = [written("a.pcap", &pcap(&[1, 5])), written("b.pcap.zst", &packed)];
        let mut frames = CaptureFrames::open(&files, &Meter::of(&files)).unwrap();
        let mut seen = Vec::new();
        while let Some((at, frame)) = frames.next() {
            seen.push((at.link, frame.time.as_ns() / 1_000_000_000));
        }
        assert_eq!(
            seen,
            [(0, 1), (1, 2), (1, 4), (1, 4), (0, 5)],
            "a clock that goes back goes on from there"
        );
        assert!(frames.faults().is_empty() && frames.disorder().0[0].contains("b went back by"));
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    }

    #[test]
    fn what_is_left_of_a_cut_file_is_read_and_the_cut_is_named() {
        let whole = pcap(&[1, 2]);
        let file = written("cut.pcap", &whole[..whole.len() - 1]);
        let mut frames = CaptureFrames::open(std::slice::from_ref(&file), &Meter::of(&[])).unwrap();
        assert!(frames.next().is_some() && frames.next().is_none());
        assert!(frames.faults()[0].ends_with("ends in the middle of a frame"), "{:?}", frames.faults());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_compressed_file_is_read_up_to_a_bound_and_the_bound_is_said() {
        let packed = zstd::encode_all(&vec![0_u8; 100_000][..], 3).unwrap();
        let file = written("zeros.zst", &packed);
        let read = |most: Option<u64>| {
            let meter = Meter::of(std::slice::from_ref(&file)).unpacking(most);
            let mut bytes = Vec::new();
            open(&file, &meter).and_then(|mut plain| {
                plain.read_to_end(&mut bytes).map_err(|error| ImportError::in_file(&file, error))
            })?;
            Ok::<usize, ImportError>(bytes.len())
        };
        assert_eq!(read(None).unwrap(), 100_000, "what is small may unpack to any number of times its size");
        assert_eq!(read(Some(100_000)).unwrap(), 100_000);
        let Err(ImportError::Evidence(said)) = read(Some(99_999)) else { panic!("it is above the bound") };
        assert!(said.contains("unpacks to more than 0.1 MB") && said.contains("--unpacked-max"), "{said}");
        assert_eq!(Meter::of(&[]).unpacked_max(), UNPACKED_ALWAYS);
        let meter = Meter::of(&[]);
        meter.read.set(10_000_000);
        assert_eq!(meter.unpacked_max(), 10_000_000 * UNPACKED_RATIO);
    }
}
