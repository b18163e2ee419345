//! The states of a connection and what leads from one to another (RFC 9293 §3.3.2), as pure functions.
//!
//! ```text
//!              shutdown: FIN sent          our FIN acknowledged
//! Established ───────────────► FinWait1 ───────────────► FinWait2 ──┐
//!      │ peer's FIN               │ peer's FIN                      │ peer's FIN
//!      ▼                          ▼                                 ▼
//!  CloseWait ──────► LastAck   Closing ───────────────────────► TimeWait ──► Closed
//!           shutdown    └──── our FIN acknowledged ─────────────────────────────▲
//! ```

/// Connection states (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ConnectionState {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl ConnectionState {
    /// Whether both sides know each other's sequence numbers.
    pub(crate) fn is_synchronised(self) -> bool {
        // The variants are in this order for it (RFC 9293 §3.5.2, group 3, has the list).
        self >= ConnectionState::Established
    }

    /// Whether the peer may still send: after its FIN it has no use for a window.
    pub(crate) fn peer_may_send(self) -> bool {
        matches!(self, ConnectionState::Established | ConnectionState::FinWait1 | ConnectionState::FinWait2)
    }

    /// The application will write no more. `None` when that changes nothing.
    pub(crate) fn on_shutdown(self) -> Option<ConnectionState> {
        match self {
            // The FIN waits for the handshake (RFC 9293 §3.10.4): the SYN may have to be repeated.
            ConnectionState::SynReceived => Some(ConnectionState::SynReceived),
            ConnectionState::Established => Some(ConnectionState::FinWait1),
            ConnectionState::CloseWait => Some(ConnectionState::LastAck),
            ConnectionState::Listen | ConnectionState::SynSent => Some(ConnectionState::Closed),
            _ => None,
        }
    }

    /// The peer's FIN has come, and all before it.
    pub(crate) fn on_peer_fin(self) -> ConnectionState {
        match self {
            ConnectionState::SynReceived | ConnectionState::Established => ConnectionState::CloseWait,
            // The segment did not acknowledge our FIN: both have closed at once (RFC 9293 §3.6, case 3).
            ConnectionState::FinWait1 => ConnectionState::Closing,
            ConnectionState::FinWait2 => ConnectionState::TimeWait,
            state => state,
        }
    }

    /// The peer has acknowledged our FIN.
    pub(crate) fn on_fin_acknowledged(self) -> ConnectionState {
        match self {
            ConnectionState::FinWait1 => ConnectionState::FinWait2,
            ConnectionState::Closing => ConnectionState::TimeWait,
            ConnectionState::LastAck => ConnectionState::Closed,
            state => state,
        }
    }
}
