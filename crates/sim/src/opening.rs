//! How what lies on a simulated TCP connection is opened: who says what before the first packet.
//!
//! ```text
//!   TCP is open ──► steps of a script, back and forth ──► the client is told that it is open ──► packets, each longer
//! ```
//!
//! A step stands in the stream as a packet does, and is served as one by a server.

use mqttlab_recording::EventKind;

use crate::ids::{ClientId, ConnectionId, Side};
use crate::stream::{Carries, Packet};
use crate::surroundings::Surroundings;
use crate::transport::Transport;

impl Transport {
    /// An end has heard a step of a connection's opening, or begins with it: it says what follows, behind what it has to
    /// say. Returns the steps that are done by that, the heard one first.
    pub(crate) fn proceed(&mut self, id: ConnectionId, side: Side, heard: Option<u8>) -> Vec<u8> {
        let connection = self.connection_mut(id);
        let Some(layered) = &connection.layered else { return Vec::new() };
        let stream = &mut connection.streams[side as usize];
        let (mut done, mut next) = (Vec::from_iter(heard), vec![heard]);
        while let Some(last) = next.pop() {
            for (number, step) in layered.next(side, last) {
                let packet = Packet::layer(Carries::Step(number));
                stream.append(packet, step.bytes as usize);
                done.push(number);
                next.push(Some(number));
            }
        }
        done
    }

    /// Puts behind an end's last packet what says that nothing more will be said.
    pub(crate) fn say_farewell(&mut self, id: ConnectionId, side: Side) {
        let connection = self.connection_mut(id);
        let bytes = connection.layered.as_ref().map_or(0, |layered| layered.farewell(side));
        if bytes > 0 {
            connection.streams[side as usize].append(Packet::layer(Carries::Farewell), bytes);
        }
    }
}

impl Surroundings<'_> {
    /// TCP is open: begins to open what lies on it. `false` where nothing does.
    pub(crate) fn open_layers(&mut self, client: ClientId, id: ConnectionId) -> bool {
        let now = self.agenda.now();
        let Some(layered) = &mut self.transport.connection_mut(id).layered else { return false };
        let took = layered.begin(now);
        self.evidence.event(now, EventKind::LayerOpen, Some(client), Some(took), "tcp");
        self.proceed(client, id, None);
        true
    }

    /// A client has heard a step, or begins. Says whether all layers are open by that.
    pub(crate) fn proceed(&mut self, client: ClientId, id: ConnectionId, heard: Option<u8>) -> bool {
        let (now, done) = (self.agenda.now(), self.transport.proceed(id, Side::Client, heard));
        let mut is_open = false;
        for step in done {
            let Some(layered) = &mut self.transport.connection_mut(id).layered else { break };
            let Some((layer, took, is_last)) = layered.opened(step, now) else { continue };
            is_open |= is_last;
            self.evidence.event(now, EventKind::LayerOpen, Some(client), Some(took), layer.name());
        }
        if self.write(id) {
            self.transmit(id);
        }
        is_open
    }
}
