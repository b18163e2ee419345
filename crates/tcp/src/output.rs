//! What an endpoint has to say.

use crate::Segment;

/// One thing that the driver must carry out or pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOutput {
    /// Hand this to the network.
    Transmit(Segment),
    /// Tell the application.
    Event(TcpEvent),
}

/// What the application is told. Offsets count bytes of a stream from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEvent {
    /// The handshake is done.
    Connected,
    /// All bytes of the peer's stream before this offset can be read or have been.
    Readable(u64),
    /// After a write was cut short: so many bytes can be written now.
    Writable(u64),
    /// The peer has acknowledged all bytes before this offset.
    Acknowledged(u64),
    /// The peer will send no more.
    PeerClosed,
    /// Nobody listens there: a reset answered our SYN (RFC 9293 §3.10.7.3), `ECONNREFUSED`. Nothing follows.
    Refused,
    /// The peer, or nobody there any more, reset the connection. Nothing follows.
    Reset,
    /// Too many retransmissions or probes went unanswered. Nothing follows.
    TimedOut,
    /// Both directions were closed in order and all is acknowledged. TIME-WAIT, where due, goes on silently.
    Closed,
}

/// Events that wait to be polled, in the order in which they are told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    pub connected: bool,
    pub acknowledged: bool,
    pub writable: bool,
    pub readable: bool,
    pub peer_closed: bool,
    pub closed: bool,
    /// How the connection ended before its time.
    pub broken: Option<Broken>,
}

/// The events after which nothing follows; of a connection there is one at most.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Broken {
    Refused,
    Reset,
    TimedOut,
}

impl Events {
    /// Takes a flag down, and says whether it was up.
    pub fn take(flag: &mut bool) -> bool {
        std::mem::take(flag)
    }

    /// The next of those that need no more to be told than that they are: those after which little or nothing follows.
    pub fn next_last(&mut self) -> Option<TcpEvent> {
        let last = [(&mut self.peer_closed, TcpEvent::PeerClosed), (&mut self.closed, TcpEvent::Closed)];
        last.into_iter().find_map(|(flag, event)| Events::take(flag).then_some(event)).or_else(|| {
            self.broken.take().map(|how| match how {
                Broken::Refused => TcpEvent::Refused,
                Broken::Reset => TcpEvent::Reset,
                Broken::TimedOut => TcpEvent::TimedOut,
            })
        })
    }
}
