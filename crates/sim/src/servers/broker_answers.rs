//! What a broker is asked and answers, what its answers are like on the wire, and how it reads and writes a connection.

use mqttlab_mqtt::broker;
use mqttlab_mqtt::{Kind, Version, encode};
use mqttlab_tcp::ConnectionState;

use super::mosquitto_loop::{PacketReading, ReadKind};
use super::{End, ServerSurroundings};
use crate::hosts::layers::SimLayers;
use crate::hosts::stream::StreamPacket;
use crate::ids::TcpConnectionId;

/// Something that a socket has for the broker.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) connection: TcpConnectionId,
    pub(super) what: BrokerRequestContent,
    pub(super) turn: ReadKind,
}

#[derive(Clone, Copy)]
pub(super) enum BrokerRequestContent {
    Packet(StreamPacket),
    Closed,
}

/// Something that the broker writes.
#[derive(Clone, Copy)]
pub(super) struct BrokerResponse {
    pub(super) connection: TcpConnectionId,
    /// A packet and its length; `None` closes the connection.
    pub(super) packet: Option<(StreamPacket, usize)>,
}

/// The protocol version that is spoken on the connection in this slot.
pub(super) fn version(around: &ServerSurroundings<'_>, socket: broker::ConnectionId) -> Version {
    around.version_at(around.transport.connections().at(socket.0))
}

/// What lies between TCP and the packets of a connection.
fn layers<'a>(around: &'a ServerSurroundings<'_>, id: TcpConnectionId) -> Option<&'a SimLayers> {
    around.transport.connection(id).layered.as_deref()
}

/// Whether libwebsockets is the broker's end of a connection.
pub(super) fn is_websocket(around: &ServerSurroundings<'_>, id: TcpConnectionId) -> bool {
    layers(around, id).is_some_and(SimLayers::has_websocket)
}

pub(super) fn has_tls(around: &ServerSurroundings<'_>, id: TcpConnectionId) -> bool {
    layers(around, id).is_some_and(SimLayers::has_tls)
}

/// Whether packets come over a connection: WebSocket, if it is below them, is open.
pub(super) fn is_opened(around: &ServerSurroundings<'_>, id: TcpConnectionId) -> bool {
    !is_websocket(around, id) || layers(around, id).is_some_and(|layers| layers.waits_for().is_none())
}

/// Whether the end of a connection begins a pass: not of one that Mosquitto has closed itself, or does not know yet.
pub(super) fn wakes(around: &ServerSurroundings<'_>, (id, side): End) -> bool {
    let state = around.transport.connection(id).ends[side as usize].state();
    is_opened(around, id) && !matches!(state, ConnectionState::Closing | ConnectionState::TimeWait)
}

pub(super) fn reading(around: &ServerSurroundings<'_>, id: TcpConnectionId) -> PacketReading {
    match (is_websocket(around, id), has_tls(around, id)) {
        (true, true) => PacketReading::Records,
        (true, false) => PacketReading::Bytes,
        (false, _) => PacketReading::Packets,
    }
}

/// A CONNACK that tells an MQTT 5 client how many messages it may send ahead and how many topic aliases it may give, in
/// properties of three bytes each (§3.2.2.3.3, §3.2.2.3.8). What is the protocol's default is not said.
pub(super) fn connack(version: Version, session_present: bool, told: (u16, u16)) -> (StreamPacket, usize) {
    let (receive_maximum, topic_alias_maximum) = if version == Version::V5 { told } else { (u16::MAX, 0) };
    let said = usize::from(receive_maximum != u16::MAX) + usize::from(topic_alias_maximum > 0);
    let bare = StreamPacket::bare(Kind::Connack, 0);
    let packet = StreamPacket { session_present, receive_maximum, topic_alias_maximum, ..bare };
    (packet, encode::connack_len(version) + 3 * said)
}

pub(super) fn acknowledgement(kind: Kind, id: u16) -> Option<(StreamPacket, usize)> {
    Some((StreamPacket::bare(kind, id), encode::ACKNOWLEDGEMENT_LEN))
}
