//! What both sides agree on in their SYNs.

use crate::profile::Profile;
use crate::segment::{Flags, Segment};

/// The options of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// Largest segment to send, payload and options; 0 before the peer's SYN.
    pub mss: u16,
    /// Timestamps in every segment.
    pub timestamps: bool,
    /// Both know SACK.
    pub sack: bool,
    /// Both know ECN.
    pub ecn: bool,
    /// Shift of windows that come, and of windows that go.
    pub peer_scale: u8,
    pub own_scale: u8,
}

impl Terms {
    /// An option is in force when both SYNs have it (RFC 7323 §2.2 and §3.2, RFC 2018 §2).
    pub fn agree(profile: &Profile, syn: &Segment) -> Terms {
        let scales = syn.window_scale.zip(profile.window_scale);
        // A shift of more than 14 is read as 14 (RFC 7323 §2.3).
        let (peer_scale, own_scale) = scales.map_or((0, 0), |(peer, own)| (peer.min(14), own.min(14)));
        // A SYN asks with ECE and CWR, a SYN-ACK answers with ECE alone (RFC 3168 §6.1.1).
        let [answers, echoes, reduced] = [Flags::ACK, Flags::ECE, Flags::CWR].map(|flag| syn.flags.has(flag));
        Terms {
            ecn: profile.ecn && echoes && reduced != answers,
            // Without the option a peer takes 536 bytes (RFC 9293 §3.7.1).
            mss: profile.mss.min(syn.mss.unwrap_or(536)).max(TCP_MIN_MSS),
            timestamps: syn.timestamps.is_some() && profile.timestamps,
            sack: syn.sack_permitted && profile.sack,
            peer_scale,
            own_scale,
        }
    }
}

/// Smaller would leave no room beside timestamps and SACK blocks (Linux's constant of this name).
const TCP_MIN_MSS: u16 = 88;
