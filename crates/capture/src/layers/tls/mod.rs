//! TLS 1.2 and 1.3 as somebody reads it who has the secrets of one end (RFC 5246, RFC 8446).
//!
//! ```text
//!   records ──► handshake in clear ──► keys, from the key log ──► records, opened ──► what they carry
//!                                      └─ none, or another suite: `Unread` says why
//! ```
//!
//! Opening a record proves its key and its number. So what a hole may hide is tried: the numbers that so many bytes may have
//! used up, the keys that come next. Behind a hole the next record is whatever can be opened.
//!
//! What a direction is sealed with takes both hellos. Records that come before them, because a capture swapped frames, wait.
//! Where the ServerHello itself was not captured, the suites of TLS 1.3 that fit the secrets' length are tried.
//!
//! What it does not model: suites without AES-GCM or ChaCha20-Poly1305, what the handshake itself proves, compression.

mod hello;
mod key_log;
mod keys;
mod records;
mod suites;

use std::collections::VecDeque;
use std::fmt;

use super::stream_spans::StreamSpan;
use super::{Chunk, LayerTally, UNKNOWN_BYTES};
use hello::{ClientHello, HandshakeMessages, ServerHello};
pub use key_log::KeyLog;
use key_log::{Label, Random};
use keys::{Opener, PlainRecord, updated};
use records::{RecordEvent, RecordReader, TlsRecord};
use suites::{Hash, Suite};

/// Why a TLS connection was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// There is no key log.
    NoKeyLog,
    /// The key log has no secrets of it.
    NoSecret,
    /// Its cipher suite is none that is opened.
    Suite(u16),
    /// Its version is before TLS 1.2.
    Version(u16),
    /// Its hellos were not captured.
    Begun,
    /// Its records cannot be opened with the secrets that the key log has for it.
    Sealed,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unread::NoKeyLog => f.write_str("no key log was given"),
            Unread::NoSecret => f.write_str("the key log has no secrets of them"),
            Unread::Suite(number) => {
                write!(
                    f,
                    "{}, of which records are not opened (AES-GCM and ChaCha20-Poly1305 are)",
                    suites::name(number)
                )
            }
            Unread::Version(number) => {
                write!(f, "{}, which is not opened (1.2 and 1.3 are)", version(number))
            }
            Unread::Begun => f.write_str("their hellos were not captured"),
            Unread::Sealed => f.write_str("the key log's secrets do not open their records"),
        }
    }
}

/// What a version is called.
fn version(number: u16) -> String {
    match number {
        0x0300 => "SSL 3.0".into(),
        0x0301..=0x0304 => format!("TLS 1.{}", number - 0x0301),
        other => format!("TLS version 0x{other:04x}"),
    }
}

/// What is known of a TLS connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// Version, where the ServerHello was captured: `TLS 1.3`.
    pub version: Option<String>,
    /// Cipher suite, likewise.
    pub suite: Option<String>,
    /// Whether the session goes on with keys of an earlier connection.
    pub is_resumed: bool,
    /// Whether the client sent data before the server had answered (0-RTT).
    pub has_early_data: bool,
    /// Why it was not read.
    pub unread: Option<Unread>,
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct TlsConnection {
    halves: [TlsDirection; 2],
    random: Option<Random>,
    server: Option<ServerHello>,
    /// Whether the ServerHello is not in the capture.
    is_blind: bool,
    /// Whether the server said all of a full handshake, which it does not in a resumed session of TLS 1.2.
    is_full: bool,
    is_resumed: bool,
    has_early_data: bool,
    has_opened: bool,
    unread: Option<Unread>,
}

/// One direction.
#[derive(Debug, Default)]
struct TlsDirection {
    reader: RecordReader,
    messages: HandshakeMessages,
    /// Keys in the order in which they are used; the first is in use.
    epochs: VecDeque<TlsEpoch>,
    is_sealed: bool,
    /// What waits for the hellos.
    held: VecDeque<TlsRecord>,
    /// Bytes that were lost since the last record that was opened.
    lost_bytes: u64,
    /// Bytes that were tried to be opened in vain.
    tried_bytes: u64,
    overhead_bytes: u64,
    skipped_bytes: u64,
    impossible: u64,
}

/// Records under one key.
#[derive(Debug)]
struct TlsEpoch {
    opener: Opener,
    /// The number of the next record.
    number: u64,
    stage: TlsStage,
    /// What the key was made of, for the one after it.
    secret: Option<(Suite, Box<[u8]>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsStage {
    EarlyData,
    Handshake,
    Traffic,
}

/// Who takes what is inside, by direction.
type Emit<'a> = &'a mut dyn FnMut(usize, Chunk);

impl TlsConnection {
    /// What is known of the connection.
    pub(super) fn facts(&self) -> TlsFacts {
        TlsFacts {
            version: self.server.map(|server| version(server.version)),
            suite: self.server.map(|server| suites::name(server.suite)),
            is_resumed: self.is_resumed,
            has_early_data: self.has_early_data,
            unread: self.unread.or((!self.has_opened).then_some(Unread::Begun)),
        }
    }

    /// Takes the next bytes of a direction's TCP stream.
    pub(super) fn feed(
        &mut self,
        way: usize,
        bytes: &[u8],
        place: StreamSpan,
        key_log: &KeyLog,
        emit: Emit<'_>,
    ) {
        self.absorb(way, bytes, place, key_log, emit);
        while self.unread.is_none()
            && let Some(record) = self.halves[way].reader.candidate()
        {
            if !self.is_record(way, &record, key_log) {
                self.halves[way].reader.reject();
                continue;
            }
            let behind = self.halves[way].reader.accept();
            self.process(way, record, key_log, emit);
            for (bytes, place) in behind {
                self.absorb(way, &bytes, place, key_log, emit);
            }
        }
    }

    /// Bytes of a direction's TCP stream are missing.
    pub(super) fn miss(&mut self, way: usize, len: u64, key_log: &KeyLog, emit: Emit<'_>) {
        if self.unread.is_none()
            && let Some(came) = self.halves[way].reader.miss(len)
        {
            self.came(way, came, key_log, emit);
        }
    }

    /// No more will come in a direction; what was counted of it.
    pub(super) fn finish(&mut self, way: usize) -> LayerTally {
        let half = &mut self.halves[way];
        half.reader.finish();
        LayerTally {
            overhead_bytes: half.overhead_bytes,
            skipped_bytes: half.skipped_bytes + half.reader.skipped_bytes,
            impossible: half.impossible + half.reader.impossible,
        }
    }

    fn absorb(&mut self, way: usize, bytes: &[u8], place: StreamSpan, key_log: &KeyLog, emit: Emit<'_>) {
        let mut at = 0;
        while at < bytes.len() && self.unread.is_none() {
            let rest = place.part(at..bytes.len(), bytes.len());
            let (used, came) = self.halves[way].reader.feed(&bytes[at..], rest);
            at += used;
            if let Some(came) = came {
                self.came(way, came, key_log, emit);
            }
        }
    }

    fn came(&mut self, way: usize, came: RecordEvent, key_log: &KeyLog, emit: Emit<'_>) {
        match came {
            RecordEvent::Record(record) => self.process(way, record, key_log, emit),
            RecordEvent::Lost(bytes) => {
                self.halves[way].lost_bytes += bytes.max(1);
                self.lose_messages(way);
                emit(way, Chunk::missing(UNKNOWN_BYTES));
            }
        }
    }

    /// Takes a record as soon as it can be understood, and then those that waited for it.
    fn process(&mut self, way: usize, record: TlsRecord, key_log: &KeyLog, emit: Emit<'_>) {
        let half = &mut self.halves[way];
        if record.kind() == DATA
            && self.random.is_none()
            && half.held.is_empty()
            && !half.is_sealed
            && way == 0
        {
            // A client that has sent data has said hello before.
            self.unread = Some(Unread::Begun);
            return;
        }
        if !half.held.is_empty() || !self.is_ready(way, &record) {
            let half = &mut self.halves[way];
            half.held.push_back(record);
            if half.held.len() > HELD_MAX {
                self.unread = Some(Unread::Begun);
            }
            return;
        }
        self.deliver(way, record, key_log, emit);
        for way in [0, 1] {
            while self.unread.is_none()
                && let Some(front) = self.halves[way].held.front()
                && self.is_ready(way, front)
                && let Some(record) = self.halves[way].held.pop_front()
            {
                self.deliver(way, record, key_log, emit);
            }
        }
    }

    /// Whether what a record means is known: what is sealed takes both hellos.
    fn is_ready(&self, way: usize, record: &TlsRecord) -> bool {
        let both = self.random.is_some() && (self.server.is_some() || self.is_blind);
        self.halves[way].is_sealed || both || !matches!(record.kind(), CHANGE | DATA)
    }

    fn deliver(&mut self, way: usize, record: TlsRecord, key_log: &KeyLog, emit: Emit<'_>) {
        if !self.halves[way].is_sealed {
            match record.kind() {
                DATA => self.seal(way, key_log),
                CHANGE if self.is_13() => {}
                CHANGE => {
                    // What comes behind it is sealed (RFC 5246 §7.1).
                    self.is_resumed |= way == 1 && !self.is_full;
                    self.seal(way, key_log);
                }
                HANDSHAKE if record.is_damaged => self.lose_messages(way),
                HANDSHAKE => {
                    self.halves[way].messages.add(&record.body);
                    self.read_messages(way, key_log);
                }
                _ => {}
            }
            if record.kind() != DATA {
                self.halves[way].overhead_bytes += record.len();
                return;
            }
        }
        // TLS 1.3 still sends one in clear, for the eyes of middleboxes (RFC 8446 §D.4).
        if self.is_13() && record.kind() != DATA {
            self.halves[way].overhead_bytes += record.len();
        } else if self.unread.is_none() {
            self.open(way, record, key_log, emit);
        }
    }

    fn is_13(&self) -> bool {
        self.is_blind || self.server.is_some_and(|server| server.version == TLS_1_3)
    }

    fn open(&mut self, way: usize, record: TlsRecord, key_log: &KeyLog, emit: Emit<'_>) {
        if record.is_damaged {
            return self.pass_over(way, &record, emit);
        }
        if let Some(plain) = self.halves[way].open(&record) {
            self.has_opened = true;
            return self.plain(way, record, plain, key_log, emit);
        }
        let half = &mut self.halves[way];
        half.skipped_bytes += record.len();
        let is_before_traffic = half.epochs.front().is_some_and(|epoch| epoch.stage != TlsStage::Traffic);
        if way == 0 && self.has_early_data && is_before_traffic {
            // Data that the server may have refused, or of which the log has no secret.
            emit(way, Chunk::missing(UNKNOWN_BYTES));
        } else if self.has_opened {
            half.impossible += 1;
            half.lost_bytes += record.len();
            emit(way, Chunk::missing(UNKNOWN_BYTES));
        } else {
            self.unread = Some(Unread::Sealed);
        }
    }

    /// A record of which only the length is known.
    fn pass_over(&mut self, way: usize, record: &TlsRecord, emit: Emit<'_>) {
        let half = &mut self.halves[way];
        half.messages.clear();
        let Some(epoch) = half.epochs.front_mut() else { return };
        epoch.number += 1;
        let held = record.len().saturating_sub((HEADER + epoch.opener.overhead()) as u64);
        if record.kind() == DATA && epoch.stage == TlsStage::Traffic && held > 0 {
            emit(way, Chunk::missing(held));
        }
    }

    fn plain(&mut self, way: usize, record: TlsRecord, plain: PlainRecord, key_log: &KeyLog, emit: Emit<'_>) {
        let half = &mut self.halves[way];
        half.overhead_bytes += record.len();
        match plain.kind {
            DATA => {
                half.overhead_bytes -= plain.bytes.len() as u64;
                if !plain.bytes.is_empty() {
                    emit(way, Chunk::data(plain.bytes, record.place));
                }
            }
            HANDSHAKE => {
                half.messages.add(&plain.bytes);
                self.read_messages(way, key_log);
            }
            // A handshake within the connection (TLS 1.2) has come to its new keys.
            CHANGE => self.seal(way, key_log),
            _ => {}
        }
    }

    fn read_messages(&mut self, way: usize, key_log: &KeyLog) {
        while self.unread.is_none()
            && let Some((kind, body)) = self.halves[way].messages.next()
        {
            self.message(way, kind, &body, key_log);
        }
    }

    fn message(&mut self, way: usize, kind: u8, body: &[u8], key_log: &KeyLog) {
        let half = &mut self.halves[way];
        let stage = half.epochs.front().map(|epoch| epoch.stage);
        match (way, kind) {
            (0, CLIENT_HELLO) => {
                let Some(hello) = ClientHello::read(body) else { return };
                self.random = Some(hello.random);
                self.has_early_data |= hello.sends_early_data;
                self.is_full = false;
            }
            (1, SERVER_HELLO) => {
                let Some(hello) = ServerHello::read(body).filter(|hello| !hello.is_retry) else { return };
                self.server = Some(hello);
                self.is_resumed |= hello.takes_known_key && hello.version == TLS_1_3;
                self.unread = self.why_not(hello, key_log);
            }
            (1, CERTIFICATE | SERVER_HELLO_DONE) => self.is_full = true,
            (0, END_OF_EARLY_DATA) if stage == Some(TlsStage::EarlyData) => half.next_epoch(),
            (_, FINISHED) if stage == Some(TlsStage::Handshake) => half.next_epoch(),
            (_, KEY_UPDATE) => {
                if let Some(next) = half.epochs.front().and_then(TlsEpoch::updated) {
                    half.epochs[0] = next;
                }
            }
            _ => {}
        }
    }

    /// Why a connection that begins so cannot be read, if it cannot.
    fn why_not(&self, hello: ServerHello, key_log: &KeyLog) -> Option<Unread> {
        if !matches!(hello.version, TLS_1_2 | TLS_1_3) {
            return Some(Unread::Version(hello.version));
        }
        let without = if key_log.is_empty() { Unread::NoKeyLog } else { Unread::NoSecret };
        if self.random.is_some_and(|random| !key_log.knows(&random)) {
            return Some(without);
        }
        suites::suite(hello.suite).is_none().then_some(Unread::Suite(hello.suite))
    }

    /// A part of the handshake is missing.
    fn lose_messages(&mut self, way: usize) {
        self.halves[way].messages.clear();
        match way {
            0 if self.random.is_none() => self.unread = Some(Unread::Begun),
            1 if self.server.is_none() => self.is_blind = true,
            _ => {}
        }
    }

    /// What comes now is sealed: the keys of a direction.
    fn seal(&mut self, way: usize, key_log: &KeyLog) {
        self.halves[way].is_sealed = true;
        let Some(random) = self.random else {
            self.unread = Some(Unread::Begun);
            return;
        };
        let without = if key_log.is_empty() { Unread::NoKeyLog } else { Unread::NoSecret };
        let epochs = match self.server {
            Some(server) if server.version == TLS_1_2 => suites::suite(server.suite).and_then(|suite| {
                let master = key_log.secret(&random, Label::Master)?;
                let [client, from_server] = Opener::of_master(suite, master, [&random, &server.random])?;
                let opener = if way == 0 { client } else { from_server };
                Some([TlsEpoch { opener, number: 0, stage: TlsStage::Traffic, secret: None }].into())
            }),
            Some(server) => {
                suites::suite(server.suite).map(|suite| self.epochs(way, suite, &random, key_log))
            }
            None => {
                let secret = key_log.secret(&random, Label::ClientTraffic).unwrap_or_default();
                let fitting =
                    suites::of_secret(secret.len()).iter().filter_map(|&number| suites::suite(number));
                Some(fitting.flat_map(|suite| self.epochs(way, suite, &random, key_log)).collect())
            }
        };
        let epochs: VecDeque<TlsEpoch> = epochs.unwrap_or_default();
        if epochs.is_empty() {
            self.unread = Some(without);
        }
        self.halves[way].epochs = epochs;
    }

    /// The keys of a direction of TLS 1.3, as far as there are secrets.
    fn epochs(&self, way: usize, suite: Suite, random: &Random, key_log: &KeyLog) -> VecDeque<TlsEpoch> {
        let labels: &[(Label, TlsStage)] = if way == 0 {
            &[
                (Label::ClientEarly, TlsStage::EarlyData),
                (Label::ClientHandshake, TlsStage::Handshake),
                (Label::ClientTraffic, TlsStage::Traffic),
            ]
        } else {
            &[(Label::ServerHandshake, TlsStage::Handshake), (Label::ServerTraffic, TlsStage::Traffic)]
        };
        let secrets =
            labels.iter().filter_map(|&(label, stage)| Some((key_log.secret(random, label)?, stage)));
        secrets.filter_map(|(secret, stage)| TlsEpoch::of(suite, secret, stage)).collect()
    }

    /// Whether what may be a record behind a hole is one.
    fn is_record(&mut self, way: usize, record: &TlsRecord, key_log: &KeyLog) -> bool {
        if !self.halves[way].is_sealed {
            match record.kind() {
                CHANGE => return record.body == [1],
                DATA if self.is_ready(way, record) => self.seal(way, key_log),
                _ => return false,
            }
        }
        self.halves[way].opens(record)
    }
}

impl TlsDirection {
    /// Opens a record under the key and number in use, or those that a hole leads to.
    fn open(&mut self, record: &TlsRecord) -> Option<PlainRecord> {
        let (index, number, plain) = self.find(record)?;
        self.epochs.drain(..index);
        self.epochs[0].number = number + 1;
        if self.lost_bytes > 0 {
            self.lost_bytes = 0;
            self.messages.clear();
        }
        Some(plain)
    }

    fn opens(&mut self, record: &TlsRecord) -> bool {
        self.find(record).is_some()
    }

    /// Which key, number and content a record has.
    fn find(&mut self, record: &TlsRecord) -> Option<(usize, u64, PlainRecord)> {
        let slack = match self.lost_bytes {
            0 => 0,
            bytes => (bytes / RECORD_MIN + 2).min(NUMBERS_TRIED),
        };
        if slack > 0 {
            // A KeyUpdate may have been in the hole.
            let last = self.epochs.back().filter(|epoch| epoch.stage == TlsStage::Traffic);
            if self.epochs.len() == 1
                && let Some(next) = last.and_then(TlsEpoch::updated)
            {
                self.epochs.push_back(next);
            }
        }
        for (index, epoch) in self.epochs.iter().enumerate() {
            let first = if index == 0 { epoch.number } else { 0 };
            for number in first..=first.saturating_add(slack) {
                if self.tried_bytes > TRIED_BYTES_MAX {
                    return None;
                }
                if let Some(plain) = epoch.opener.open(number, record.header, &record.body) {
                    return Some((index, number, plain));
                }
                self.tried_bytes += record.len();
            }
        }
        None
    }

    fn next_epoch(&mut self) {
        if self.epochs.len() > 1 {
            self.epochs.pop_front();
        }
    }
}

impl TlsEpoch {
    fn of(suite: Suite, secret: &[u8], stage: TlsStage) -> Option<TlsEpoch> {
        let fits = secret.len() == if suite.hash == Hash::Sha384 { 48 } else { 32 };
        let opener = Opener::of_traffic(suite, secret).filter(|_| fits)?;
        Some(TlsEpoch { opener, number: 0, stage, secret: Some((suite, secret.into())) })
    }

    /// The key after a KeyUpdate (RFC 8446 §4.6.3).
    fn updated(&self) -> Option<TlsEpoch> {
        let (suite, secret) = self.secret.as_ref()?;
        TlsEpoch::of(*suite, &updated(suite.hash, secret)?, self.stage)
    }
}

const CHANGE: u8 = 20;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const END_OF_EARLY_DATA: u8 = 5;
const CERTIFICATE: u8 = 11;
const SERVER_HELLO_DONE: u8 = 14;
const FINISHED: u8 = 20;
const KEY_UPDATE: u8 = 24;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;
const HEADER: usize = 5;
/// The shortest sealed record: header, type or nothing, tag.
const RECORD_MIN: u64 = 22;
/// Records that may wait for the hellos.
const HELD_MAX: usize = 256;
/// Numbers that are tried behind a hole.
const NUMBERS_TRIED: u64 = 4096;
/// Bytes that are tried in vain before a direction is given up: a hostile capture could go on for ever.
const TRIED_BYTES_MAX: u64 = 256 << 20;
