//! From an open connection to READY, the same on both sides.
//!
//! ```text
//!   opened ──► send greeting ──► its greeting came ──► send READY ──► its READY came ──► open
//! ```
//!
//! Both sides speak at once: one round trip of the connection lies between the greeting and the first message.

use crate::greeting::Greeting;
use crate::{Kind, Malformed, SocketType};

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    own: SocketType,
    stage: HandshakeStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeStage {
    Greeting,
    Ready { minor: u8 },
    Open { minor: u8 },
}

impl Handshake {
    /// Of a connection that has just been opened.
    pub fn new(own: SocketType) -> Handshake {
        Handshake { own, stage: HandshakeStage::Greeting }
    }

    /// The peer's greeting has come: READY is to be sent.
    ///
    /// # Errors
    /// It was there already.
    pub fn greeting(&mut self, greeting: Greeting) -> Result<(), Malformed> {
        match self.stage {
            HandshakeStage::Greeting => self.stage = HandshakeStage::Ready { minor: greeting.minor },
            _ => return Err(Malformed::OutOfPlace(Kind::Greeting)),
        }
        Ok(())
    }

    /// The peer's READY has come.
    ///
    /// # Errors
    /// It has no place here, or its socket does not suit.
    pub fn ready(&mut self, socket: Option<SocketType>) -> Result<(), Malformed> {
        let HandshakeStage::Ready { minor } = self.stage else {
            return Err(Malformed::OutOfPlace(Kind::Ready));
        };
        // A peer should enforce that the other's socket type is one that suits (RFC 37).
        if !socket.is_some_and(|socket| socket.suits(self.own)) {
            return Err(Malformed::SocketType);
        }
        self.stage = HandshakeStage::Open { minor };
        Ok(())
    }

    /// Whether it is over.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, HandshakeStage::Open { .. })
    }

    /// The minor version of 3 that both speak. Before the peer's greeting, the lowest.
    pub fn minor(&self) -> u8 {
        match self.stage {
            HandshakeStage::Greeting => 0,
            HandshakeStage::Ready { minor } | HandshakeStage::Open { minor } => minor,
        }
    }

    /// What else came needs an open connection.
    ///
    /// # Errors
    /// It is not.
    pub fn require_open(&self, kind: Kind) -> Result<(), Malformed> {
        self.is_open().then_some(()).ok_or(Malformed::OutOfPlace(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_of_order_or_from_a_socket_that_does_not_suit_is_refused() {
        let greeting = Greeting { minor: 1 };
        let mut side = Handshake::new(SocketType::Xpub);
        assert_eq!(side.ready(Some(SocketType::Sub)), Err(Malformed::OutOfPlace(Kind::Ready)));
        assert_eq!(side.require_open(Kind::Ping), Err(Malformed::OutOfPlace(Kind::Ping)));
        side.greeting(greeting).unwrap();
        assert_eq!(side.greeting(greeting), Err(Malformed::OutOfPlace(Kind::Greeting)));
        assert_eq!(side.ready(Some(SocketType::Pub)), Err(Malformed::SocketType));
        assert_eq!(side.ready(None), Err(Malformed::SocketType));
        side.ready(Some(SocketType::Xsub)).unwrap();
        assert!(side.is_open() && side.require_open(Kind::Message).is_ok() && side.minor() == 1);
        assert_eq!(side.ready(Some(SocketType::Sub)), Err(Malformed::OutOfPlace(Kind::Ready)));
    }
}
