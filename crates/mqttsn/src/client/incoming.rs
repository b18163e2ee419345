//! Messages that come to a client: which are repetitions, and which are held until they are released.

use std::collections::BTreeSet;

use mqttlab_mqtt::Qos;

use super::interface::Receipt;

/// What has come and is not settled.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldMessages {
    /// Identifiers of QoS 2 messages whose PUBREL has not come.
    held: BTreeSet<u16>,
}

impl HeldMessages {
    /// A message came: what becomes of it.
    pub(super) fn arrived(&mut self, qos: Qos, id: u16, deliver_on_release: bool) -> Receipt {
        // At QoS 1 a repetition is delivered again, as in MQTT ([MQTT-4.3.2-5]).
        if qos != Qos::ExactlyOnce {
            return Receipt::Deliver;
        }
        match (self.held.insert(id), deliver_on_release) {
            (false, _) => Receipt::Duplicate,
            (true, true) => Receipt::Hold,
            (true, false) => Receipt::Deliver,
        }
    }

    /// PUBREL came; `false` when it repeats one.
    pub(super) fn release(&mut self, id: u16) -> bool {
        self.held.remove(&id)
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
