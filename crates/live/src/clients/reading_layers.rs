//! What comes through the layers of a connection: they are opened one after the other, then packets pass them.

use mqttlab_client::{Loss, Rows, Transport};
use mqttlab_framing::Layer;
use mqttlab_framing::frame::{Came, Opcode};
use mqttlab_recording::EventKind;

use super::Client;
use super::connection::ClientConnection;
use super::layers::{ClientLayers, OpeningStage};
use super::reading::ClientReader;
use super::turn::ClientTurn;

impl ClientTurn<'_> {
    /// TCP is open, and the next layer is opened. Again, while that goes on: writes what the socket did not take.
    pub(super) fn open_layers(&mut self, client: &mut Client) {
        let is_first = client.connection().layered.as_ref().is_some_and(|layered| !layered.is_opening());
        let begun = if is_first { self.pass(client, "tcp") } else { Ok(()) };
        if let Err(loss) = begun.and_then(|()| self.write(client.connection_mut())) {
            client.lose(self, &loss);
        }
    }

    /// A part of a client's connection is open: notes how long it took, and begins with the next one or tells the client.
    fn pass(&mut self, client: &mut Client, part: &str) -> Result<(), Loss> {
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let took = layered.open_next(self.now, outbox)?;
        let is_open = layered.stage == OpeningStage::Open;
        self.event(EventKind::LayerOpen, client.who().number, Some(took), part);
        self.write(client.connection_mut())?;
        if is_open {
            client.opened(self);
        }
        Ok(())
    }
}

impl ClientReader<'_, '_> {
    /// Takes what was read through the layers of its connection.
    pub(super) fn unseal(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        if client.connection().layered.as_ref().is_none_or(|layered| layered.secured.is_none()) {
            return self.unframe(client, bytes);
        }
        let mut plain = std::mem::take(&mut self.turn.buffers.plain);
        let outcome = self.decrypt(client, bytes, &mut plain).and_then(|()| self.unframe(client, &plain));
        plain.clear();
        self.turn.buffers.plain = plain;
        outcome
    }

    /// Opens records. What TLS has to say itself is written at once.
    fn decrypt(&mut self, client: &mut Client, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), Loss> {
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let ClientLayers { secured: Some(secured), stage, .. } = &mut **layered else { return Ok(()) };
        let opened = secured.open(bytes, plain, outbox);
        let is_over = *stage == OpeningStage::Securing && opened.is_ok() && secured.is_open();
        let part = is_over.then(|| format!("{} {}", Layer::Tls.name(), secured.in_words()));
        // What ends a handshake is not held back for what comes next, nor an alert for the connection's end.
        self.turn.write(client.connection_mut())?;
        opened?;
        part.map_or(Ok(()), |part| self.turn.pass(client, &part))
    }

    /// Takes frames, or packets where there are none.
    fn unframe(&mut self, client: &mut Client, bytes: &[u8]) -> Result<(), Loss> {
        let rest = self.handle_answer(client, bytes)?;
        let Some(layered) = &mut client.connection_mut().layered else { return Ok(()) };
        let Some(websocket) = &mut layered.websocket else { return self.handle_packets(client, bytes) };
        let mut frames = std::mem::take(&mut websocket.frames);
        frames.feed(&bytes[rest..], |came| self.handle_frame(client, came))?;
        if let Some(ClientLayers { websocket: Some(websocket), .. }) =
            client.connection_mut().layered.as_deref_mut()
        {
            websocket.frames = frames;
        }
        Ok(())
    }

    /// Takes what belongs to the answer to the upgrade, and says how many bytes did.
    fn handle_answer(&mut self, client: &mut Client, bytes: &[u8]) -> Result<usize, Loss> {
        let layered = client.connection_mut().layered.as_deref_mut();
        let Some(ClientLayers { stage: OpeningStage::Upgrading, websocket: Some(websocket), .. }) = layered
        else {
            return Ok(0);
        };
        let nonce = websocket.nonce;
        let taken = websocket.answer.feed(bytes, nonce).map_err(|refusal| Loss::Refused {
            how: format!("WebSocket upgrade: {refusal}").into(),
            for_good: refusal.is_for_good(),
        })?;
        let Some(taken) = taken else { return Ok(bytes.len()) };
        self.turn.pass(client, Layer::WebSocket.name())?;
        Ok(taken)
    }

    fn handle_frame(&mut self, client: &mut Client, came: Came<'_>) -> Result<(), Loss> {
        match came {
            Came::Data(bytes) => return self.handle_packets(client, bytes),
            Came::Pong => return Ok(()),
            Came::Ping(_) | Came::Close(_) => {}
        }
        let ClientConnection { layered: Some(layered), outbox, .. } = client.connection_mut() else {
            return Ok(());
        };
        let Came::Close(code) = came else {
            if let Came::Ping(payload) = came {
                layered.write_frame(Opcode::Pong, payload, outbox);
            }
            return Ok(());
        };
        // It is answered before the connection ends (§5.5.1).
        layered.write_close(outbox);
        self.turn.write(client.connection_mut())?;
        let code = code.map_or_else(String::new, |code| format!(", code {code}"));
        Err(Loss::broken(format!("the broker closed the WebSocket{code}")))
    }
}
