//! Frames that were captured on several links: the same frame, seen again further along its path.
//!
//! A capture of all interfaces of a host (`any`) holds a frame that it forwards several times, too: coming in, going
//! out, and on every bridge between. Linux' own header says which way it went, and since version 2 on which interface.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use mqttlab_capture::{Frame, LinkType, Network};
use mqttlab_recording::NumberMap;
use mqttlab_units::{Duration, Instant};

/// Recognises frames that another link has carried.
#[derive(Default)]
pub struct Dedup {
    seen: NumberMap<u64, Original>,
    order: VecDeque<u64>,
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Original {
    frame: u64,
    places: Vec<FramePlace>,
    last: Instant,
}

/// Where a frame was seen: link, interface of the host, whether it came or went, and how many hops it had left. The
/// last three are those of captures that hold a frame several times.
type FramePlace = (u16, u32, u8, u8);

impl Dedup {
    /// The frame's number and how often it was seen before, when it was elsewhere. Otherwise it gets the number `next`,
    /// and is remembered. Equal bytes where they were seen before are another frame: a repetition.
    pub fn earlier(&mut self, link: u16, frame: &Frame<'_>, next: u64) -> Option<(u64, u8)> {
        let Fingerprint { key, identified, hops_left } = fingerprint(frame)?;
        let place = match frame.link_type.place_on_host(frame.data) {
            Some((interface, way)) => (link, interface, way, hops_left),
            None => (link, 0, 0, 0),
        };
        if let Some(original) = self.seen.get_mut(&key) {
            let passed = frame.time.checked_since(original.last).unwrap_or_default();
            // Version 1 does not name interfaces; an IP identifier tells that a bridge passed it on.
            let bridged = frame.link_type == LinkType::LINUX_SLL && identified && passed < BRIDGED_WITHIN;
            if !original.places.contains(&place) || bridged {
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
}

struct Fingerprint {
    /// Of what a router leaves as it is: the IP packet without the fields that count hops, and the checksum over them.
    key: u64,
    /// Whether its sender numbers its packets, so that a repetition has another fingerprint.
    identified: bool,
    hops_left: u8,
}

fn fingerprint(frame: &Frame<'_>) -> Option<Fingerprint> {
    let carried = frame.carried();
    let packet = frame.data.get(carried.offset..)?;
    let mut hasher = DefaultHasher::new();
    let (identified, hops_left) = match carried.network {
        Network::Ipv4 => {
            let header = packet.get(..20)?;
            // Ethernet pads short frames; the header says how long the packet is.
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            (&header[..8], header[9], &header[12..20]).hash(&mut hasher);
            packet.get(20..packet.len().min(length.max(20)))?.hash(&mut hasher);
            (header[4..6] != [0, 0], header[8])
        }
        Network::Ipv6 => {
            let header = packet.get(..40)?;
            let length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
            (&header[..7], &header[8..40]).hash(&mut hasher);
            packet.get(40..packet.len().min(length))?.hash(&mut hasher);
            (false, header[7])
        }
        Network::Other | Network::Macsec => return None,
    };
    Some(Fingerprint { key: hasher.finish(), identified, hops_left })
}

/// A host passes a frame on within this.
const BRIDGED_WITHIN: Duration = Duration::from_ms(10);
/// Frames that are remembered; the oldest is forgotten first.
const REMEMBERED_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::LinkType;
    use mqttlab_units::Instant;

    fn earlier(dedup: &mut Dedup, link: u16, ttl: u8, id: u8, next: u64) -> Option<(u64, u8)> {
        let mut data =
            vec![0x45, 0, 0, 24, 0, id, 0, 0, ttl, 17, ttl, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        data.extend([0; 22]);
        dedup.earlier(link, &frame(LinkType::RAW, &data), next)
    }

    fn frame(link_type: LinkType, data: &[u8]) -> Frame<'_> {
        let original_len = data.len() as u32;
        Frame { time: Instant::ZERO, is_timed: true, interface: 0, link_type, original_len, data }
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
        let mut earlier =
            |way, ttl, id, next| dedup.earlier(0, &frame(LinkType::LINUX_SLL, &cooked(way, ttl, id)), next);
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
}
