//! Frames that were captured on several links: the same frame, seen again further along its path.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use mqttlab_capture::{Frame, Network};

/// Recognises frames that another link has carried.
#[derive(Default)]
pub struct Passes {
    seen: HashMap<u64, Pass>,
    order: VecDeque<u64>,
}

/// A frame on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pass {
    frame: u64,
    links: Vec<u16>,
}

impl Passes {
    /// The frame's number and how many links carried it before, when another link has. Otherwise it gets the number
    /// `next`, and is remembered. Equal bytes on a link that has carried them are another frame: a repetition.
    pub fn earlier(&mut self, link: u16, frame: &Frame<'_>, next: u64) -> Option<(u64, u8)> {
        let key = fingerprint(frame)?;
        if let Some(pass) = self.seen.get_mut(&key)
            && !pass.links.contains(&link)
        {
            let hop = pass.links.len().min(usize::from(u8::MAX - 1)) as u8;
            pass.links.push(link);
            return Some((pass.frame, hop));
        }
        if self.seen.insert(key, Pass { frame: next, links: vec![link] }).is_none() {
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

/// What a router leaves as it is: the IP packet without the fields that count hops, and the checksum over them.
fn fingerprint(frame: &Frame<'_>) -> Option<u64> {
    let (network, offset) = frame.link_type.network(frame.data);
    let packet = frame.data.get(offset..)?;
    let mut hasher = DefaultHasher::new();
    match network {
        Network::Ipv4 => {
            let header = packet.get(..20)?;
            // Ethernet pads short frames; the header says how long the packet is.
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            (&header[..8], header[9], &header[12..20]).hash(&mut hasher);
            packet.get(20..packet.len().min(length.max(20)))?.hash(&mut hasher);
        }
        Network::Ipv6 => {
            let header = packet.get(..40)?;
            let length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
            (&header[..7], &header[8..40]).hash(&mut hasher);
            packet.get(40..packet.len().min(length))?.hash(&mut hasher);
        }
        Network::Other => return None,
    }
    Some(hasher.finish())
}

/// Frames that are remembered; the oldest is forgotten first.
const REMEMBERED_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use mqttlab_capture::LinkType;
    use mqttlab_units::Instant;

    fn earlier(passes: &mut Passes, link: u16, ttl: u8, id: u8, next: u64) -> Option<(u64, u8)> {
        let mut data =
            vec![0x45, 0, 0, 24, 0, id, 0, 0, ttl, 17, ttl, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        data.extend([0; 22]);
        let link_type = LinkType::RAW;
        let frame = Frame { time: Instant::ZERO, interface: 0, link_type, original_len: 46, data: &data };
        passes.earlier(link, &frame, next)
    }

    #[test]
    fn a_frame_is_known_on_its_next_link_and_its_repetition_is_another_frame() {
        let mut passes = Passes::default();
        assert_eq!(earlier(&mut passes, 0, 64, 1, 7), None);
        assert_eq!(earlier(&mut passes, 1, 63, 1, 8), Some((7, 1)));
        assert_eq!(earlier(&mut passes, 0, 64, 1, 9), None, "sent again");
        assert_eq!(earlier(&mut passes, 1, 63, 1, 10), Some((9, 1)));
        assert_eq!(earlier(&mut passes, 1, 63, 2, 11), None, "another packet");
    }
}
