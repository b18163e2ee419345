//! Frames that were captured several times: on several links, before and after address translation, or twice on one link.
//!
//! A capture of all interfaces of a host (`any`) holds a frame that it forwards several times, too: coming in, going
//! out, and on every bridge between. Linux' own header says which way it went, and since version 2 on which interface.
//! Where the host translates addresses (a published port of a container), a segment's copies differ in addresses, ports and
//! checksum alone. A mirror port that copies both ways of a switch shows each frame twice on one link.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use mqttlab_capture::{Bits, CapturedFrame, LinkType, NetworkPacket, SocketEndpoint, TransportHeader};
use mqttlab_recording::NumberMap;
use mqttlab_units::{Duration, Instant};

/// Sender and receiver of a segment.
pub type Ends = [SocketEndpoint; 2];

/// Recognises frames that were seen before.
#[derive(Default)]
pub struct Dedup {
    seen: NumberMap<u64, Original>,
    order: VecDeque<u64>,
    /// Segments by what address translation leaves as it is.
    translatable: NumberMap<u64, Translatable>,
    translatable_order: VecDeque<u64>,
    /// Ends of connections behind address translation, and those under which they were seen first.
    translations: HashMap<Ends, Ends>,
    /// Frames that were shown twice on one link.
    shown_twice: u64,
    /// Frames that equal earlier ones of another place and came too late to be the same.
    too_late: u64,
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Original {
    frame: u64,
    places: Vec<FramePlace>,
    last: Instant,
}

/// A segment that may come again with other addresses.
#[derive(Clone, Copy)]
struct Translatable {
    ends: Ends,
    place: FramePlace,
    at: Instant,
}

/// Where a frame was seen: link, interface of the host, whether it came or went, and how many hops it had left. The
/// last three are those of captures that hold a frame several times.
type FramePlace = (u16, u32, u8, u8);

impl Dedup {
    /// The frame's number and how often it was seen before, when it was. Otherwise it gets the number `next`, and is
    /// remembered. Equal bytes where they were seen before are another frame, a repetition, unless the sender's number of the
    /// packet says that they are not.
    pub fn earlier(
        &mut self,
        link: u16,
        frame: &CapturedFrame<'_>,
        transport: &TransportHeader<'_>,
        next: u64,
    ) -> Option<(u64, u8)> {
        let ends = ends(transport);
        let Fingerprint { body, identified, hops_left, tunnels } = fingerprint(frame, ends.is_some())?;
        let on_host = frame.link_type.place_on_host(frame.data);
        // A packet in a tunnel is seen at another place than the same one outside.
        let tunnels = u32::from(tunnels) << 24;
        let place = match on_host {
            Some((interface, way)) => (link, interface ^ tunnels, way, hops_left),
            None => (link, tunnels, 0, 0),
        };
        if let (Some(ends), true) = (ends, identified) {
            self.learn(body, Translatable { ends, place: (place.0, place.1, 0, hops_left), at: frame.time });
        }
        let key = ends.map_or(body, |ends| hash((body, self.canonical(ends))));
        if let Some(original) = self.seen.get_mut(&key) {
            let passed = frame.time.checked_since(original.last).unwrap_or_default();
            let is_new_place = !original.places.contains(&place);
            let elsewhere = is_new_place && passed < ON_THE_WAY_MAX;
            self.too_late += u64::from(is_new_place && !elsewhere);
            // Version 1 does not name interfaces; an IP identifier tells that a bridge passed it on.
            let bridged = frame.link_type == LinkType::LINUX_SLL && identified && passed < COPIED_WITHIN;
            // A sender numbers each of its packets, repetitions too (RFC 6864 §4.2); who does not, repeats nothing so soon.
            let soon = if identified { COPIED_WITHIN } else { REPEATED_AFTER };
            let mirrored = passed < soon && (identified || self.shown_twice > 0 && carries(transport));
            if elsewhere || bridged || mirrored {
                self.shown_twice += u64::from(!elsewhere && !bridged);
                let hop = original.places.len().min(usize::from(u8::MAX - 1)) as u8;
                original.places.push(place);
                original.last = frame.time;
                return Some((original.frame, hop));
            }
        }
        let original = Original { frame: next, places: vec![place], last: frame.time };
        if self.seen.insert(key, original).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        None
    }

    /// The ends under which a connection was seen first, where its addresses are translated.
    pub fn canonical(&self, ends: Ends) -> Ends {
        self.translations.get(&ends).copied().unwrap_or(ends)
    }

    /// Connections whose addresses are translated, with those under which they were seen first.
    fn translated(&self) -> u64 {
        self.translations.len() as u64 / 2
    }

    /// What there is to know of copies.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.translated() > 0 {
            warnings.push(format!(
                "{} connections are in the capture before and after address translation. Each is counted once, with the \
                 addresses under which it was seen first.",
                self.translated()
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
                "{} frames stand in the capture twice, with one number of the IP packet: a mirror port shows them so, or the \
                 network has duplicated them. Each is counted once, and none as a retransmission.",
                self.shown_twice
            ));
        }
        warnings
    }

    /// Notes a segment; learns a translation where the same one was seen a moment ago between other ends. Its numbers, of IP
    /// and of TCP, are equal by chance once in 2^80.
    fn learn(&mut self, body: u64, here: Translatable) {
        let Some(earlier) = self.translatable.get(&body).copied() else {
            self.translatable.insert(body, here);
            self.translatable_order.push_back(body);
            if self.translatable_order.len() > TRANSLATABLE_MAX
                && let Some(oldest) = self.translatable_order.pop_front()
            {
                self.translatable.remove(&oldest);
            }
            return;
        };
        let passed = here.at.checked_since(earlier.at).unwrap_or_default();
        if passed >= COPIED_WITHIN {
            self.translatable.insert(body, here);
            return;
        }
        // On the same link only a router's work tells a copy from a made capture with equal numbers.
        let is_elsewhere = here.place != earlier.place;
        let [from, to] = self.canonical(earlier.ends);
        if is_elsewhere && here.ends != [from, to] && self.canonical(here.ends) != [from, to] {
            self.translations.insert(here.ends, [from, to]);
            self.translations.insert([here.ends[1], here.ends[0]], [to, from]);
        }
    }
}

fn ends(transport: &TransportHeader<'_>) -> Option<Ends> {
    match transport {
        TransportHeader::Tcp(segment, _) => Some([segment.source, segment.destination]),
        _ => None,
    }
}

/// Whether a segment has more to it than an acknowledgement, of which a receiver may send equal ones at once.
fn carries(transport: &TransportHeader<'_>) -> bool {
    matches!(transport, TransportHeader::Tcp(segment, _) if segment.payload_len > 0 || segment.bits.has(Bits::SYN))
}

struct Fingerprint {
    /// Of what routers leave as it is: the IP packet without the fields that count hops, and the checksum over them; of TCP
    /// also without addresses, ports and its checksum.
    body: u64,
    /// Whether its sender numbers its packets, so that a repetition has another fingerprint.
    identified: bool,
    hops_left: u8,
    /// Tunnels that it is in.
    tunnels: u8,
}

fn fingerprint(frame: &CapturedFrame<'_>, is_tcp: bool) -> Option<Fingerprint> {
    let carried = frame.carried();
    let packet = frame.data.get(carried.offset..)?;
    let mut hasher = DefaultHasher::new();
    let (identified, hops_left, payload) = match carried.network {
        NetworkPacket::Ipv4 => {
            let header = packet.get(..20)?;
            // Ethernet pads short frames; the header says how long the packet is.
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            (&header[..8], header[9]).hash(&mut hasher);
            if !is_tcp {
                header[12..20].hash(&mut hasher);
            }
            let begin = if is_tcp { usize::from(header[0] & 0xf) * 4 } else { 20 };
            let payload = packet.get(begin..packet.len().min(length.max(begin)))?;
            (header[4..6] != [0, 0], header[8], payload)
        }
        NetworkPacket::Ipv6 => {
            let header = packet.get(..40)?;
            let length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
            (&header[..7], &header[8..40]).hash(&mut hasher);
            (false, header[7], packet.get(40..packet.len().min(length))?)
        }
        NetworkPacket::Other | NetworkPacket::Macsec => return None,
    };
    match payload.get(18..).filter(|_| is_tcp && carried.network == NetworkPacket::Ipv4) {
        Some(rest) => (&payload[4..16], rest).hash(&mut hasher),
        None => payload.hash(&mut hasher),
    }
    Some(Fingerprint { body: hasher.finish(), identified, hops_left, tunnels: carried.tunnels })
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A frame is on its way between two places of capture for less than this. NB-IoT is made for delays of up to 10 s (3GPP TR
/// 45.820), and few queues hold a packet for longer. Equal frames after that may be of another connection with the same ports and
/// numbers: two maximum segment lifetimes (RFC 9293 §3.4.1), 60 s in Linux, are the least between these.
const ON_THE_WAY_MAX: Duration = Duration::from_s(10);
/// A host passes a frame on within this, and a mirror shows both copies.
const COPIED_WITHIN: Duration = Duration::from_ms(10);
/// No sender repeats a segment sooner.
const REPEATED_AFTER: Duration = Duration::from_us(100);
/// Frames that are remembered; the oldest is forgotten first.
const REMEMBERED_MAX: usize = 1 << 16;
/// Segments that may come again with other addresses, within [`COPIED_WITHIN`]; the oldest is forgotten first.
const TRANSLATABLE_MAX: usize = 1 << 12;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::{LinkType, dissect};

    fn earlier(dedup: &mut Dedup, link: u16, ttl: u8, id: u8, next: u64) -> Option<(u64, u8)> {
        let mut data =
            vec![0x45, 0, 0, 24, 0, id, 0, 0, ttl, 17, ttl, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        data.extend([0; 22]);
        let frame = frame(LinkType::RAW, &data, 20 * next);
        dedup.earlier(link, &frame, &dissect(&frame), next)
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
            dedup.earlier(0, &frame, &dissect(&frame), next)
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
            dedup.earlier(link, &frame, &dissect(&frame), next)
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
        dedup.earlier(0, &frame, &dissect(&frame), next)
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
        assert_eq!(dedup.translated(), 1);
    }

    #[test]
    fn a_frame_that_a_mirror_shows_twice_is_one_and_a_repetition_is_another() {
        let mut dedup = Dedup::default();
        assert_eq!(passes(&mut dedup, [1, 2], 0, 64, (0, 1)), None);
        assert_eq!(passes(&mut dedup, [1, 2], 0, 64, (3, 2)), None, "nothing tells that there is a mirror");
        assert_eq!(passes(&mut dedup, [1, 2], 7, 64, (10, 3)), None);
        assert_eq!(passes(&mut dedup, [1, 2], 7, 64, (13, 4)), Some((3, 1)));
        assert_eq!(passes(&mut dedup, [2, 1], 0, 64, (20, 4)), None);
        assert_eq!(passes(&mut dedup, [2, 1], 0, 64, (23, 5)), Some((4, 1)));
        assert_eq!(passes(&mut dedup, [1, 2], 8, 64, (50, 5)), None, "sent again, with its own number");
        assert_eq!(passes(&mut dedup, [1, 2], 8, 64, (20_000, 6)), None, "the numbers have come around");
        assert_eq!(dedup.shown_twice, 2);
    }
}
