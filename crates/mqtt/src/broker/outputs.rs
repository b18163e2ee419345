//! What the shell is to do, in order, and which messages somebody holds.
//!
//! Both stand together because the last that lets go of a message is told to the shell, behind all that was said before.

use std::collections::VecDeque;

use super::holds::Holds;
use super::{Cause, Input, Output, SessionId, Will};

/// What a broker says.
#[derive(Clone, Debug, Default)]
pub(super) struct BrokerOutputs {
    holds: Holds,
    ready: VecDeque<Output>,
}

impl BrokerOutputs {
    /// The shell is to do this, after all else.
    pub(super) fn say(&mut self, output: Output) {
        self.ready.push_back(output);
    }

    /// The next thing to do.
    pub(super) fn poll(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// Messages that somebody holds.
    pub(super) fn held(&self) -> usize {
        self.holds.len()
    }

    /// Holds a message so many times more.
    pub(super) fn hold(&mut self, message: u64, times: u32) {
        self.holds.hold(message, times);
    }

    /// Holds a message once less.
    pub(super) fn let_go(&mut self, message: u64) {
        if self.holds.let_go(message) {
            self.say(Output::Released { message });
        }
    }

    /// A session does not get a message.
    pub(super) fn drop(&mut self, session: u32, message: u64, cause: Cause) {
        self.say(Output::Dropped { session: SessionId(session), message, cause });
    }

    /// Does not take the message that a packet brings.
    pub(super) fn decline(&mut self, input: Input<'_>) {
        if let Input::Publish { message, .. } | Input::Connect { will: Some(Will { message, .. }), .. } =
            input
        {
            // Held and let go, so that it comes out as released, like every message that goes in.
            self.hold(message, 1);
            self.let_go(message);
        }
    }
}
