//! What of a broker outlives its program, as Mosquitto 2.0.11 stores it with `autosave_on_changes` and an `autosave_interval` of 1.
//!
//! Mosquitto writes everything to its disk at the end of the pass in which one of these happened (measured): a session that
//! outlives its connection begins or goes on, a subscription changes, a message has to wait for a client, the last acknowledgement
//! of a message comes from a client, a retained message changes. What happens between writes is gone when it is killed:
//! a message that went straight into flight to a client, and a QoS 2 message whose PUBREL has not come. A broker that is asked to
//! end writes everything first.
//!
//! What it does not model: a PUBREC or PUBREL since the last write, which is kept here, and is not by Mosquitto; of what MQTT 3.1's
//! timer has repeated since, that it was written before.

use mqttlab_units::Instant;

use super::{Broker, Cause};

/// What is there when a broker's program starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All sessions and retained messages: it has ended in order.
    Everything,
    /// What it had written to its disk: it was killed.
    Written,
    /// It stores nothing.
    Nothing,
}

impl Broker {
    /// Publishes the wills of all who are connected, as Mosquitto does when it is asked to end.
    pub fn publish_wills(&mut self, now: Instant) {
        for number in self.sessions.numbers() {
            let will = self.sessions.get(number).will.take();
            self.publish_will(now, number, will);
        }
    }

    /// The broker's program has ended: connections are gone without a word, sessions and messages stay as far as they are kept.
    /// Wills that were not published never will be.
    pub fn end(&mut self, now: Instant, kept: Kept) {
        for number in self.sessions.numbers() {
            let session = self.sessions.get(number);
            let connection = session.connection.take();
            let will = session.will.take();
            if connection.is_some() {
                session.heard = now;
            }
            if let Some(connection) = connection {
                self.sessions.unbind(connection);
            }
            will.into_iter().for_each(|will| self.out.let_go(will.message));
            if kept == Kept::Nothing || !self.sessions.get(number).is_stored() {
                self.forget(number);
                continue;
            }
            if kept == Kept::Written {
                self.forget_unwritten(number);
            }
            if let Some(exchanges) = &mut self.sessions.get(number).exchanges {
                exchanges.outbox.disconnect();
            }
            self.sessions.schedule(number, &self.options);
        }
        if kept == Kept::Nothing {
            let retained = self.topics.forget_retained();
            retained.into_iter().for_each(|retained| self.out.let_go(retained.message));
        }
    }

    /// Something has changed that makes Mosquitto write to its disk.
    pub(super) fn write_all(&mut self, now: Instant) {
        self.written = now;
    }

    /// When it last wrote everything to its disk, if it has one.
    pub fn written(&self) -> Instant {
        self.written
    }

    fn forget_unwritten(&mut self, number: u32) {
        let written = self.written;
        let Some(exchanges) = &mut self.sessions.get(number).exchanges else { return };
        let sent = exchanges.outbox.take_sent_after(written);
        let came = exchanges.inbox.take_if(|publication| publication.came > written);
        for delivery in sent {
            self.out.drop(number, delivery.message, Cause::SessionEnded);
            self.out.let_go(delivery.message);
        }
        came.into_iter().for_each(|publication| self.out.let_go(publication.message));
    }
}
