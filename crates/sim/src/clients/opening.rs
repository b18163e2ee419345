//! How what lies on a simulated TCP connection is opened: who says what before the first packet.
//!
//! ```text
//!   TCP is open ──► steps of a script, back and forth ──► the client is told that it is open ──► packets, each longer
//! ```
//!
//! A step stands in the stream as a packet does, and is served as one by a server.

use mqttlab_framing::Step;
use mqttlab_recording::EventKind;

use crate::clients::surroundings::SimSurroundings;
use crate::hosts::connections::SimConnection;
use crate::hosts::stream::{StreamContent, StreamPacket};
use crate::ids::{ClientId, Side, TcpConnectionId};

impl SimConnection {
    /// An end has heard or said a step of the connection's opening, or begins with it: the steps that it says then.
    pub(crate) fn following(&self, side: Side, done: Option<u8>) -> Vec<(u8, Step)> {
        self.layered.as_ref().map_or_else(Vec::new, |layered| layered.next(side, done).collect())
    }

    /// Puts a step behind what an end has to say. It is to be written on its own.
    pub(crate) fn append_step(&mut self, side: Side, (number, step): (u8, Step)) {
        let packet = StreamPacket::layer(StreamContent::Step(number), step.length);
        self.streams[side as usize].append(packet, step.length.bytes() as usize);
    }

    /// Puts behind an end's last packet what says that nothing more will be said.
    pub(crate) fn say_farewell(&mut self, side: Side) {
        let said = self.layered.as_ref().map(|layered| layered.farewell(side)).unwrap_or_default();
        if said.bytes() > 0 {
            let farewell = StreamPacket::layer(StreamContent::Farewell, said);
            self.streams[side as usize].append(farewell, said.bytes() as usize);
        }
    }
}

impl SimSurroundings<'_> {
    /// TCP is open: begins to open what lies on it. `false` where nothing does.
    pub(crate) fn open_layers(&mut self, client: ClientId, id: TcpConnectionId) -> bool {
        let now = self.agenda.now();
        let Some(layered) = &mut self.transport.connection_mut(id).layered else { return false };
        let took = layered.begin(now);
        self.evidence.event(now, EventKind::LayerOpen, Some(client), Some(took), "tcp");
        self.proceed(client, id, None);
        true
    }

    /// A client has heard a step, or begins. Says whether all layers are open by that.
    pub(crate) fn proceed(&mut self, client: ClientId, id: TcpConnectionId, heard: Option<u8>) -> bool {
        let mut is_open = heard.is_some_and(|step| self.note_step(client, id, step));
        let mut following = self.transport.connection(id).following(Side::Client, heard);
        while let Some((number, step)) = following.pop() {
            self.transport.connection_mut(id).append_step(Side::Client, (number, step));
            if self.write(id) {
                self.transmit(id);
            }
            is_open |= self.note_step(client, id, number);
            following.extend(self.transport.connection(id).following(Side::Client, Some(number)));
        }
        is_open
    }

    /// The client has heard or said a step. Says whether all layers are open by that.
    fn note_step(&mut self, client: ClientId, id: TcpConnectionId, step: u8) -> bool {
        let now = self.agenda.now();
        let Some(layered) = &mut self.transport.connection_mut(id).layered else { return false };
        let Some((layer, took, is_last)) = layered.opened(step, now) else { return false };
        let words = layered.in_words(layer);
        self.evidence.event(now, EventKind::LayerOpen, Some(client), Some(took), &words);
        is_last
    }
}
