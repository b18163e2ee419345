//! A client's connection: its socket, what waits to be written, what was read of a packet.

use std::os::fd::OwnedFd;

use mqttlab_client::Connection;
use mqttlab_framing::Layer;
use mqttlab_mqtt::alias::{ReceivedAliases, TopicAliases};
use mqttlab_mqtt::terms::ServerTerms;
use mqttlab_recording::DatagramAccount;
use mqttlab_zmtp::stream::Decoder;

use super::datagrams::ClientDatagrams;
use super::layers::ClientLayers;
use super::message_order::ReceivedInOrder;
use super::outbox::SocketOutbox;
use super::own_packets::{self, OwnPackets};
use super::packet_stream::PacketStream;

/// What the fleet keeps for one client.
pub(super) struct ClientConnection {
    /// The client's place among its worker's.
    pub(super) slot: u32,
    /// From the beginning of opening to the end.
    pub(super) socket: Option<OwnedFd>,
    /// Whether its program reads.
    pub(super) is_reading: bool,
    /// Whether its stream has ended, and its program has not read that.
    pub(super) has_unread_end: bool,
    /// Sockets without power, which keep their ports.
    pub(super) vanished: Vec<OwnedFd>,
    /// What waits to be written to a stream.
    pub(super) outbox: SocketOutbox,
    pub(super) incoming: PacketStream,
    /// What it calls topics, where it gives aliases.
    pub(super) aliases: Option<Box<TopicAliases>>,
    /// What the broker will not take, as its last CONNACK says; `None`: nothing of the kind.
    pub(super) terms: Option<Box<ServerTerms>>,
    /// What the broker calls topics.
    pub(super) received_aliases: ReceivedAliases,
    /// Between the stream and its packets.
    pub(super) layered: Option<Box<ClientLayers>>,
    /// Instead of `incoming`, for ZeroMQ.
    pub(super) frames: Option<Box<Decoder>>,
    /// Instead of a stream.
    pub(super) datagrams: Option<Box<ClientDatagrams>>,
    /// What it knows of its packets, where nobody records their frames. It outlives connections.
    pub(super) own_packets: Option<Box<OwnPackets>>,
    /// What it has received of messages too small to say who they are. It outlives connections.
    pub(super) order: ReceivedInOrder,
}

/// Topic and payload of a message that is repeated.
#[derive(Default)]
pub(super) struct RelayedBytes {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
}

impl Connection for ClientConnection {
    type Relayed = RelayedBytes;
}

impl ClientConnection {
    /// `speaks` is what goes over datagrams.
    pub(super) fn new(slot: u32, over_datagrams: bool, layered: Option<ClientLayers>) -> ClientConnection {
        ClientConnection {
            slot,
            socket: None,
            is_reading: true,
            has_unread_end: false,
            vanished: Vec::new(),
            outbox: SocketOutbox::default(),
            incoming: PacketStream::default(),
            aliases: None,
            terms: None,
            received_aliases: ReceivedAliases::default(),
            layered: layered.map(Box::new),
            frames: None,
            datagrams: over_datagrams.then(|| Box::new(ClientDatagrams::new())),
            own_packets: None,
            order: ReceivedInOrder::default(),
        }
    }

    /// With a book of its packets, if there is to be one.
    pub(super) fn with_own_packets(self, own_packets: Option<OwnPackets>) -> ClientConnection {
        ClientConnection { own_packets: own_packets.map(Box::new), ..self }
    }

    /// Giving topics these aliases.
    pub(super) fn with_aliases(self, aliases: Option<Box<TopicAliases>>) -> ClientConnection {
        ClientConnection { aliases, ..self }
    }

    /// What was to be written and was read of a packet is gone with the socket.
    pub(super) fn forget(&mut self) {
        self.has_unread_end = false;
        self.layered.iter_mut().for_each(|layered| layered.end());
        self.outbox.clear();
        self.incoming.clear();
        self.received_aliases.clear();
        self.terms = None;
        self.frames = None;
        self.datagrams.iter_mut().for_each(|datagrams| datagrams.clear());
    }

    /// How far it has come that is not open in time.
    pub(super) fn not_opened(&self) -> &'static str {
        mqttlab_client::not_opened(self.layered.as_ref().and_then(|layered| layered.waits_for()))
    }

    /// What is said when the other side ends it: also at which layer, where they are not all open.
    pub(super) fn closed_by_broker(&self) -> &'static str {
        match self
            .layered
            .as_ref()
            .filter(|layered| layered.is_opening())
            .and_then(|layered| layered.waits_for())
        {
            Some(Layer::Tls) => "the broker closed the connection before TLS was open",
            Some(Layer::WebSocket) => "the broker closed the connection instead of upgrading it to WebSocket",
            None => "the broker closed the connection",
        }
    }

    /// Where what was put ends, counted from the beginning of the connection.
    pub(super) fn end(&self) -> u64 {
        self.datagrams.as_ref().map_or(self.outbox.end(), |datagrams| datagrams.end())
    }

    /// Up to where the socket has taken it.
    pub(super) fn written(&self) -> u64 {
        self.datagrams.as_ref().map_or(self.outbox.written(), |datagrams| datagrams.written())
    }

    /// Puts a datagram that `write` makes behind what is to be sent; of a message with the name of its topic.
    pub(super) fn put_datagram(&mut self, topic: Option<&str>, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(datagrams) = &mut self.datagrams else { return };
        let bytes = datagrams.put(write);
        let Some(own) = &mut self.own_packets else { return };
        let facts = DatagramAccount::read(bytes)
            .map(|(account, payload)| own_packets::datagram::of(&account, payload, topic));
        own.put(facts, datagrams.end());
    }

    /// Whether it needs no opening and has no end.
    pub(super) fn is_datagrams(&self) -> bool {
        self.datagrams.is_some()
    }
}
