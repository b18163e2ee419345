//! Frames that were captured several times: on several links, before and after address translation, or twice on one link.
//!
//! A capture of all interfaces of a host (`any`) holds a frame that it forwards several times, too: coming in, going
//! out, and on every bridge between. Linux' own header says which way it went, and since version 2 on which interface.
//! Where addresses are translated ([`translations`]), a segment's copies differ in what comes before TCP, and in ports and
//! checksum. A mirror port that copies both ways of a switch shows each frame twice on one link ([`mirrors`]).

mod mirrors;
mod translations;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};

use mqttlab_capture::{
    Bits, CapturedFrame, FrameContent, LinkType, NetworkPacket, SocketEndpoint, TcpHeader, TransportHeader,
    dissect_content,
};
use mqttlab_recording::{FoldedHash, NumberMap};
use mqttlab_units::{Duration, Instant};

use super::capture_point::AT_END;
use super::passages::Passages;
use super::sorting::HeldFrame;
use super::source::CapturedAt;
use mirrors::Mirrors;
use translations::Translations;

/// Sender and receiver of a segment.
pub type Ends = [SocketEndpoint; 2];

/// Recognises frames that were seen before.
#[derive(Default)]
pub struct Dedup {
    seen: NumberMap<u64, Repeated>,
    order: VecDeque<u64>,
    /// Connections behind address translation, and the frames that wait for them.
    pub translations: Translations,
    mirrors: Mirrors,
    /// How long segments took from one capture to another.
    passages: Passages,
    /// Frames that were shown twice on one link.
    shown_twice: u64,
    /// Frames that were shown at another place: at once, as on one host, and later.
    shown_elsewhere: [u64; 2],
    /// Frames that equal earlier ones of another place and came too late to be the same.
    too_late: u64,
}

/// A frame on its way.
#[derive(Clone, Debug)]
struct Original {
    frame: u64,
    /// The sender's number of the packet.
    id: u16,
    file: u16,
    first_place: FramePlace,
    /// Where it was seen after that.
    places: Vec<FramePlace>,
    last: Instant,
}

/// Frames with equal bytes that one sender has sent, oldest first.
struct Repeated {
    first: Original,
    others: Vec<Original>,
}

/// Where a frame was seen: its capture, link and interface of the host, whether it came or went, the ends of the link, and how many hops it
/// had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FramePlace {
    link: u16,
    /// Of all but the capture.
    on_link: u32,
}

/// A frame that waits until it is known which connection is its own, where it was captured, and what it is known by.
pub type WaitingFrame = (CapturedAt, HeldFrame, Fingerprint);

/// What a frame is known by.
#[derive(Clone, Copy)]
pub struct Fingerprint {
    /// Of what routers leave as it is: of TCP all but ports and checksum, and the largest segment of a SYN; of others the IP
    /// packet without the fields that count hops, and the checksum over them.
    content: u64,
    ends: Option<Ends>,
    /// The sender's number of the packet, which repetitions have of their own (RFC 6864 §4.2); 0 without one.
    id: u16,
    place: FramePlace,
    /// Whether it has more to it than an acknowledgment, of which a receiver may send equal ones at once.
    carries: bool,
    is_syn: bool,
}

impl Fingerprint {
    /// What copies of a frame have in common, wherever they are.
    pub fn content(&self) -> u64 {
        self.content
    }
}

impl Dedup {
    /// What a frame is known by; `None` of a frame without IP.
    pub fn fingerprint(
        at: CapturedAt,
        frame: &CapturedFrame<'_>,
        carried: &FrameContent,
        transport: &TransportHeader<'_>,
    ) -> Option<Fingerprint> {
        let segment = match transport {
            TransportHeader::Tcp(segment, _) => Some(segment),
            _ => None,
        };
        let Content { content, id, hops_left } = content(frame, carried, segment)?;
        Some(Fingerprint {
            content,
            ends: segment.map(|segment| [segment.source, segment.destination]),
            id,
            place: FramePlace { link: at.link, on_link: on_link(frame, carried, hops_left) },
            carries: segment.is_some_and(|segment| segment.payload_len > 0 || segment.bits.has(Bits::SYN)),
            is_syn: segment.is_some_and(|segment| segment.bits.has(Bits::SYN)),
        })
    }

    /// The first frames of each capture, before any of them is looked at: what they show of all.
    pub fn look_ahead<'a>(&mut self, frames: impl Iterator<Item = (u16, CapturedFrame<'a>)>) {
        let (mut mirrors, mut translations) =
            (mirrors::FirstLook::default(), translations::FirstLook::default());
        for (file, frame) in frames {
            let carried = frame.carried();
            let transport = dissect_content(&frame, &carried);
            let at = CapturedAt { link: file, file, transit: None };
            let Some(print) = Dedup::fingerprint(at, &frame, &carried, &transport) else { continue };
            mirrors.add(&print, file, frame.time);
            if let TransportHeader::Tcp(segment, _) = &transport {
                translations.add(&print, segment);
            }
        }
        mirrors.conclude(&mut self.mirrors);
        translations.conclude(&mut self.translations);
    }

    /// The frame's number and how often it was seen before, when it was. Otherwise it gets the number `next`, and is
    /// remembered. Equal bytes where they were seen before are another frame, a repetition, unless the sender's number of the
    /// packet says that they are not, or a mirror shows every frame so.
    pub fn earlier(
        &mut self,
        file: u16,
        frame: &CapturedFrame<'_>,
        print: &Fingerprint,
        next: u64,
    ) -> Option<(u64, u8)> {
        let (key, keeps_ids) = self.key(print);
        let at = frame.time;
        let new = Original {
            frame: next,
            id: print.id,
            file,
            first_place: print.place,
            places: Vec::new(),
            last: at,
        };
        if let Some(repeated) = self.seen.get_mut(&key) {
            if let Some(original) = repeated.not_yet_at(print, keeps_ids, at) {
                if original.file != file && print.carries && original.places.is_empty() {
                    let passed = at.as_ns() as i64 - original.last.as_ns() as i64;
                    let ends = self.translations.canonical(print.ends?).0;
                    self.passages.add((original.file, file), ends, passed);
                }
                let passed = at.checked_since(original.last).unwrap_or_default();
                self.shown_elsewhere[usize::from(passed >= AT_END)] += 1;
                return Some(original.add(print.place, at));
            }
            let original = repeated.latest(print);
            let passed = at.checked_since(original.last).unwrap_or_default();
            let shown = original.times_at(print.place);
            let has_its_number = original.id == print.id;
            self.too_late += u64::from(shown == 0 && has_its_number && passed >= ON_THE_WAY_MAX);
            // Version 1 does not name interfaces; an IP identifier tells that a bridge passed it on.
            let is_bridged = frame.link_type == LinkType::LINUX_SLL && print.id != 0;
            let is_shown_again = print.id != 0
                || self.mirrors.show_again(print, file, (shown, passed))
                || (self.shown_twice > 0 && print.carries && passed < REPEATED_AFTER);
            if shown > 0 && has_its_number && passed < COPIED_WITHIN && is_shown_again {
                self.shown_twice += u64::from(!is_bridged);
                return Some(original.add(print.place, at));
            }
            repeated.put(new);
            return None;
        }
        self.seen.insert(key, Repeated { first: new, others: Vec::new() });
        self.order.push_back(key);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        None
    }

    /// What copies and repetitions of a frame have in common, and whether copies have the number of its packet, too.
    fn key(&self, print: &Fingerprint) -> (u64, bool) {
        let Some(ends) = print.ends else { return (print.content, true) };
        let (ends, keeps_ids) = self.translations.canonical(ends);
        (FoldedHash::default().hash_one((print.content, ends)), keeps_ids)
    }

    /// Whether frames were captured at several places that are not on one host: most that were shown again had travelled.
    pub fn is_at_several_places(&self) -> bool {
        let [at_once, travelled] = self.shown_elsewhere;
        // On each host several interfaces may show a frame.
        travelled.saturating_mul(4) > at_once
    }

    /// The ends under which a connection was seen first, where its addresses are translated.
    pub fn canonical(&self, ends: Ends) -> Ends {
        self.translations.canonical(ends).0
    }

    /// Clocks that drift apart, of captures with these names.
    pub fn drifting(&self, names: &[String]) -> Vec<String> {
        self.passages.drifting(names)
    }

    /// What there is to know of copies.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.translations.count() > 0 {
            warnings.push(format!(
                "{} connections are in the capture before and after address translation. Each is counted once, with the \
                 addresses under which it was seen first.",
                self.translations.count()
            ));
        }
        if self.too_late > 0 {
            warnings.push(format!(
                "{} frames equal frames that another interface had shown {} or more before. They are counted as frames of their \
                 own. If they are the same, the clocks of the captures differ: set them right (editcap -t) and import again.",
                self.too_late, ON_THE_WAY_MAX
            ));
        }
        if self.shown_twice > 0 {
            warnings.push(format!(
                "{} frames stand in the capture twice: a mirror port shows them so, or the network has duplicated them. Each is \
                 counted once, and none as a retransmission.",
                self.shown_twice
            ));
        }
        warnings
    }
}

impl Original {
    fn times_at(&self, place: FramePlace) -> usize {
        usize::from(self.first_place == place) + self.places.iter().filter(|known| **known == place).count()
    }

    /// Adds a place. Answers the frame's number and how often it was seen before.
    fn add(&mut self, place: FramePlace, at: Instant) -> (u64, u8) {
        self.places.push(place);
        self.last = at;
        (self.frame, self.places.len().min(usize::from(u8::MAX - 1)) as u8)
    }
}

impl Repeated {
    /// The first of them that may come to this place now, because it has not been there.
    fn not_yet_at(&mut self, print: &Fingerprint, keeps_ids: bool, at: Instant) -> Option<&mut Original> {
        let is_under_way = |original: &Original| {
            (original.id == print.id || !keeps_ids)
                && at.checked_since(original.last).unwrap_or_default() < ON_THE_WAY_MAX
                && original.times_at(print.place) == 0
        };
        std::iter::once(&mut self.first).chain(&mut self.others).find(|original| is_under_way(original))
    }

    /// The latest of them, if possible with this number.
    fn latest(&mut self, print: &Fingerprint) -> &mut Original {
        let numbered = self.others.iter().rposition(|other| other.id == print.id);
        match numbered {
            Some(index) => &mut self.others[index],
            None if self.first.id == print.id => &mut self.first,
            None => self.others.last_mut().unwrap_or(&mut self.first),
        }
    }

    /// Adds a repetition. The oldest is forgotten where there are many.
    fn put(&mut self, original: Original) {
        self.others.push(original);
        if self.others.len() >= REPEATED_MAX {
            self.first = self.others.remove(0);
        }
    }
}

struct Content {
    content: u64,
    id: u16,
    hops_left: u8,
}

fn content(
    frame: &CapturedFrame<'_>,
    carried: &FrameContent,
    segment: Option<&TcpHeader>,
) -> Option<Content> {
    let packet = frame.data.get(carried.offset..)?;
    let mut hasher = FoldedHash::default().build_hasher();
    let (id, hops_left) = match carried.network {
        NetworkPacket::Ipv4 => {
            let header = packet.get(..20)?;
            (u16::from_be_bytes([header[4], header[5]]), header[8])
        }
        NetworkPacket::Ipv6 => (0, packet.get(..40)?[7]),
        NetworkPacket::Other | NetworkPacket::Macsec => return None,
    };
    match segment {
        Some(segment) => {
            let begin = segment.ip_len.saturating_sub(segment.payload_len + segment.header_len) as usize;
            // Ethernet pads short frames; the header says how long the packet is.
            let bytes = packet.get(begin..packet.len().min(segment.ip_len as usize))?;
            bytes.get(4..16)?.hash(&mut hasher);
            if segment.bits.has(Bits::SYN) {
                // Routers lower the largest segment that a SYN offers.
                (segment.options.window_scale, segment.options.timestamps).hash(&mut hasher);
                bytes.get(segment.header_len as usize..).unwrap_or_default().hash(&mut hasher);
            } else {
                bytes.get(18..)?.hash(&mut hasher);
            }
        }
        None if carried.network == NetworkPacket::Ipv4 => {
            let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            (&packet[..8], packet[9], &packet[12..20]).hash(&mut hasher);
            packet.get(20..packet.len().min(length.max(20)))?.hash(&mut hasher);
        }
        None => {
            let length = 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            (&packet[..7], &packet[8..40]).hash(&mut hasher);
            packet.get(40..packet.len().min(length))?.hash(&mut hasher);
        }
    }
    Some(Content { content: hasher.finish(), id, hops_left })
}

/// Which interface of a host and which way, or whose Ethernet addresses and which VLAN; and the hops that are left.
fn on_link(frame: &CapturedFrame<'_>, carried: &FrameContent, hops_left: u8) -> u32 {
    let header = match frame.link_type.place_on_host(frame.data) {
        Some((interface, way)) => u128::from(interface) << 8 | u128::from(way),
        None if frame.link_type == LinkType::ETHERNET => {
            frame.data.first_chunk().map_or(0, |header: &[u8; 16]| {
                let is_tagged = matches!(header[12..14], [0x81, 0] | [0x88, 0xa8]);
                let [.., tag, vlan] = *header;
                let ends = u128::from_be_bytes(*header) >> 32;
                ends << 16 | if is_tagged { u128::from(tag & 0xf) << 8 | u128::from(vlan) } else { 0 }
            })
        }
        None => 0,
    };
    // A packet in a tunnel is seen at another place than the same one outside.
    let inside = (hops_left, carried.tunnels);
    (FoldedHash::default().hash_one((header as u64, (header >> 64) as u64, inside)) >> 32) as u32
}

/// A frame is on its way between two places of capture for less than this. NB-IoT is made for delays of up to 10 s (3GPP TR
/// 45.820), and few queues hold a packet for longer. Equal frames after that may be of another connection with the same ports and
/// numbers: two maximum segment lifetimes (RFC 9293 §3.4.1), 60 s in Linux, are the least between these.
const ON_THE_WAY_MAX: Duration = Duration::from_s(10);
/// A host passes a frame on within this, and a mirror shows both copies.
const COPIED_WITHIN: Duration = Duration::from_ms(10);
/// No host repeats a SYN sooner.
const SYN_REPEATED_AFTER: Duration = Duration::from_ms(1);
/// No sender repeats a segment sooner.
const REPEATED_AFTER: Duration = Duration::from_us(100);
/// Frames that are remembered; the oldest is forgotten first.
const REMEMBERED_MAX: usize = 1 << 16;
/// Repetitions of a frame that may be on their way at once.
const REPEATED_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of a frame of the capture with this number.
    fn known(dedup: &mut Dedup, file: u16, frame: &CapturedFrame<'_>, next: u64) -> Option<(u64, u8)> {
        let (carried, at) = (frame.carried(), CapturedAt { link: file, file, transit: None });
        let transport = dissect_content(frame, &carried);
        let print = Dedup::fingerprint(at, frame, &carried, &transport)?;
        if let TransportHeader::Tcp(segment, _) = &transport
            && dedup.translations.holds(at, frame, segment, &print)
        {
            return Some(WAITS);
        }
        dedup.earlier(file, frame, &print, next)
    }

    /// It waits until its connection is known.
    const WAITS: (u64, u8) = (0, 0);

    fn earlier(dedup: &mut Dedup, link: u16, ttl: u8, id: u8, next: u64) -> Option<(u64, u8)> {
        let mut data =
            vec![0x45, 0, 0, 24, 0, id, 0, 0, ttl, 17, ttl, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        data.extend([0; 22]);
        let frame = frame(LinkType::RAW, &data, 20 * next);
        known(dedup, link, &frame, next)
    }

    fn frame(link_type: LinkType, data: &[u8], at_ms: u64) -> CapturedFrame<'_> {
        let (original_len, time) = (data.len() as u32, Instant::from_ns(at_ms * 1_000_000));
        CapturedFrame { time, is_timed: true, interface: 0, link_type, original_len, data }
    }

    /// A frame of a capture of all interfaces: came in (0) or went out (4), with so many hops left.
    fn cooked(way: u8, ttl: u8, id: u8) -> Vec<u8> {
        let mut data = vec![0, way, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        data.extend([0x45, 0, 0, 24, 0, id, 0, 0, ttl, 17, ttl, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4]);
        data
    }

    #[test]
    fn a_forwarded_frame_is_one_frame_in_a_capture_of_all_interfaces() {
        let mut dedup = Dedup::default();
        let mut earlier = |way, ttl, id, next| {
            let data = cooked(way, ttl, id);
            let frame = frame(LinkType::LINUX_SLL, &data, next);
            known(&mut dedup, 0, &frame, next)
        };
        assert_eq!(earlier(0, 64, 1, 1), None);
        assert_eq!(earlier(0, 64, 1, 2), Some((1, 1)), "on the bridge");
        assert_eq!(earlier(4, 63, 1, 3), Some((1, 2)), "routed");
        assert_eq!(earlier(0, 64, 2, 4), None, "the sender's next packet");
        assert_eq!(earlier(0, 64, 0, 5), None);
        assert_eq!(earlier(4, 63, 0, 6), Some((5, 1)));
        assert_eq!(earlier(0, 64, 0, 7), None, "sent again by a sender that does not number its packets");
    }

    #[test]
    fn a_frame_is_known_on_its_next_link_and_its_repetition_is_another_frame() {
        let mut dedup = Dedup::default();
        assert_eq!(earlier(&mut dedup, 0, 64, 1, 7), None);
        assert_eq!(earlier(&mut dedup, 1, 63, 1, 8), Some((7, 1)));
        assert_eq!(earlier(&mut dedup, 0, 64, 1, 9), None, "sent again");
        assert_eq!(earlier(&mut dedup, 1, 63, 1, 10), Some((9, 1)));
        assert_eq!(earlier(&mut dedup, 1, 63, 2, 11), None, "another packet");
    }

    #[test]
    fn equal_frames_of_two_links_are_the_same_for_seconds_only() {
        let mut dedup = Dedup::default();
        let mut earlier = |link, at_ms, next| {
            let data = syn([1, 2], 7, 64);
            let frame = frame(LinkType::RAW, &data, at_ms);
            known(&mut dedup, link, &frame, next)
        };
        assert_eq!(earlier(0, 0, 1), None);
        assert_eq!(earlier(1, 9_999, 2), Some((1, 1)), "a slow network");
        assert_eq!(earlier(2, 409_999, 2), None, "another connection with the same ports and numbers");
        assert_eq!(earlier(0, 410_999, 3), Some((2, 1)));
        assert_eq!(dedup.too_late, 1);
    }

    /// A SYN between these two, with this number of IP and so many hops left.
    fn syn([from, to]: [u8; 2], id: u8, ttl: u8) -> Vec<u8> {
        let mut data = vec![0x45, 0, 0, 40, 0, id, 0x40, 0, ttl, 6, ttl, from, 10, 0, 0, from, 10, 0, 0, to];
        data.extend([from, from, to, to, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 2, 1, 0, from, to, 0, 0]);
        data
    }

    fn passes(
        dedup: &mut Dedup,
        ends: [u8; 2],
        id: u8,
        ttl: u8,
        (at_us, next): (u64, u64),
    ) -> Option<(u64, u8)> {
        let data = syn(ends, id, ttl);
        let frame = CapturedFrame { time: Instant::from_ns(at_us * 1_000), ..frame(LinkType::RAW, &data, 0) };
        known(dedup, 0, &frame, next)
    }

    #[test]
    fn a_segment_behind_address_translation_is_the_one_before_it_and_so_are_those_that_follow() {
        let mut dedup = Dedup::default();
        assert_eq!(passes(&mut dedup, [1, 2], 7, 64, (0, 1)), None);
        assert_eq!(passes(&mut dedup, [1, 3], 7, 63, (20, 2)), Some((1, 1)));
        let end = |last: u8| SocketEndpoint {
            address: [10, 0, 0, last].into(),
            port: u16::from_be_bytes([last; 2]),
        };
        assert_eq!(dedup.canonical([end(3), end(1)]), [end(2), end(1)]);
        assert_eq!(passes(&mut dedup, [3, 1], 0, 64, (100, 2)), None, "the answer, without a number");
        assert_eq!(passes(&mut dedup, [2, 1], 0, 63, (120, 3)), Some((2, 1)));
        assert_eq!(passes(&mut dedup, [4, 2], 9, 64, (200, 3)), None);
        assert_eq!(
            passes(&mut dedup, [5, 2], 9, 64, (220, 4)),
            None,
            "no router was between: another client"
        );
        assert_eq!(dedup.translations.count(), 1);
    }

    #[test]
    fn a_frame_that_a_mirror_shows_twice_is_one_and_a_repetition_is_another() {
        let mut dedup = Dedup::default();
        assert_eq!(passes(&mut dedup, [1, 2], 0, 64, (0, 1)), None);
        assert_eq!(
            passes(&mut dedup, [1, 2], 0, 64, (3, 2)),
            Some((1, 1)),
            "no host repeats a SYN so soon, with a number or without"
        );
        assert_eq!(passes(&mut dedup, [1, 2], 7, 64, (10, 3)), None);
        assert_eq!(passes(&mut dedup, [1, 2], 7, 64, (13, 4)), Some((3, 1)));
        assert_eq!(passes(&mut dedup, [2, 1], 0, 64, (20, 4)), None);
        assert_eq!(passes(&mut dedup, [2, 1], 0, 64, (23, 5)), Some((4, 1)));
        assert_eq!(passes(&mut dedup, [1, 2], 8, 64, (50, 5)), None, "sent again, with its own number");
        assert_eq!(passes(&mut dedup, [1, 2], 8, 64, (20_000, 6)), None, "the numbers have come around");
        assert_eq!(dedup.shown_twice, 3);
    }

    #[test]
    fn a_mirror_shows_so_many_copies_as_of_the_syn_and_the_next_equal_frame_is_a_repetition() {
        let mut dedup = Dedup::default();
        let mut shows = |flags: u8, at_us: u64, next: u64| {
            let mut data = syn([1, 2], 0, 64);
            data[33] = flags;
            let frame =
                CapturedFrame { time: Instant::from_ns(at_us * 1_000), ..frame(LinkType::RAW, &data, 0) };
            known(&mut dedup, 0, &frame, next)
        };
        assert_eq!([shows(2, 0, 1), shows(2, 3, 2)], [None, Some((1, 1))]);
        assert_eq!([shows(16, 10, 2), shows(16, 13, 3)], [None, Some((2, 1))]);
        assert_eq!([shows(16, 16, 3), shows(16, 19, 4)], [None, Some((3, 1))], "a second acknowledgment");
        assert_eq!(dedup.shown_twice, 3);
    }

    #[test]
    fn a_number_that_translation_changes_does_not_tell_copies_from_repetitions() {
        let mut dedup = Dedup::default();
        let mut seen = |file: u16, ends: [u8; 2], id: u8, payload: &[u8], (at_ms, next): (u64, u64)| {
            let mut data = syn(ends, id, 64);
            data[3] += payload.len() as u8;
            data[33] = if payload.is_empty() { 2 } else { 24 };
            data.extend(payload);
            let frame = frame(LinkType::RAW, &data, at_ms);
            known(&mut dedup, file, &frame, next)
        };
        assert_eq!(seen(0, [1, 2], 7, b"", (0, 1)), None);
        assert_eq!(seen(0, [1, 2], 8, b"CONNECT", (100, 2)), None);
        assert_eq!(seen(1, [3, 2], 21, b"", (900, 3)), Some(WAITS));
        assert_eq!(seen(1, [3, 2], 22, b"CONNECT", (1_000, 3)), Some(WAITS), "now it is known");
        assert_eq!(std::iter::from_fn(|| dedup.translations.release()).count(), 2);
        let mut seen = |file: u16, ends: [u8; 2], id: u8, (at_ms, next): (u64, u64)| {
            let mut data = syn(ends, id, 64);
            (data[3], data[33]) = (data[3] + 4, 24);
            data.extend(b"more");
            let frame = frame(LinkType::RAW, &data, at_ms);
            known(&mut dedup, file, &frame, next)
        };
        assert_eq!(seen(0, [1, 2], 9, (2_000, 3)), None);
        assert_eq!(seen(0, [1, 2], 10, (2_200, 4)), None, "sent again");
        assert_eq!(seen(1, [3, 2], 23, (2_900, 5)), Some((3, 1)));
        assert_eq!(seen(1, [3, 2], 24, (3_100, 5)), Some((4, 1)));
    }
}
