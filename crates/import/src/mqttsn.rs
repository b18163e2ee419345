//! MQTT-SN in captures: who is a gateway, who its client, and what topic identifiers mean.
//!
//! ```text
//!   datagram ──► client and gateway told apart ──► packet, its client, its topic ──► a row, and the matcher
//!                                                                     TCP from the gateway ──► passed on, no client's own
//! ```
//!
//! A gateway is an endpoint that was named by its port, or that was sent a CONNECT or answered one: its protocol number and
//! lengths make a CONNECT certain enough. What a capture holds of a conversation before that is not read.
//!
//! What clients send over a gateway it sends again, to the broker, from its own address: with a client's identifier where it is
//! transparent. Those packets are rows, but no messages: the datagrams are.
//!
//! What it does not model: forwarders' headers beyond the packet behind them, topics that both sides knew beforehand (their
//! messages have no topic), MQTT-SN 2.0.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use mqttlab_capture::{ServerDirection, SocketEndpoint, UdpHeader};
use mqttlab_mqtt::SubscriptionOptions;
use mqttlab_mqtt::topic::is_name;
use mqttlab_mqttsn::ReturnCode;
use mqttlab_mqttsn::packet::{Filter, Packet, Topic, decode};
use mqttlab_recording::{ControlPacketRow, DatagramAccount, Event, EventKind, SeenBy, Towards};
use mqttlab_units::{Duration, Instant};

use super::matcher::Matcher;
use super::message::CountedMessage;
use super::participants::{Participants, written};

/// Everything that is known of gateways and their clients.
pub struct GatewayTraffic {
    /// Ports that were named.
    ports: Vec<u16>,
    gateways: HashSet<SocketEndpoint>,
    addresses: HashSet<IpAddr>,
    /// By client's and gateway's end.
    of: HashMap<[SocketEndpoint; 2], GatewayConversation>,
    sessions: HashMap<u32, GatewaySession>,
    /// Clients by the address of their gateway and their identifier.
    ids: HashMap<(IpAddr, Box<str>), u32>,
    /// Clients over which TCP connections of gateways passed on, by connection.
    passing: HashMap<u32, u32>,
    events: VecDeque<(Event, String)>,
}

/// Datagrams between two sockets.
struct GatewayConversation {
    number: u32,
    client: Option<u32>,
    /// Bytes to the gateway, and from it.
    positions: [u64; 2],
}

/// What a client and its gateway have agreed on.
#[derive(Default)]
struct GatewaySession {
    topics: HashMap<u16, Arc<str>>,
    registering: HashMap<u16, Arc<str>>,
    subscribing: HashMap<u16, (Instant, Option<String>)>,
    /// When it asked to be connected, and whether anew.
    asked: Option<(Instant, bool)>,
    clean: bool,
    leaving: bool,
}

/// A packet of MQTT-SN, where it was seen.
pub struct SeenSnPacket<'a> {
    pub connection: u32,
    pub direction: ServerDirection,
    pub client: Option<u32>,
    pub gateway: SocketEndpoint,
    pub packet: Packet<&'a str, &'a [u8]>,
    /// Bytes of its sender before it, and its own.
    pub start: u64,
    pub bytes: u32,
    /// The topic of a PUBLISH, where it is known.
    pub topic: Option<Arc<str>>,
}

impl GatewayTraffic {
    /// Of gateways that listen on these ports, and on others.
    pub fn new(ports: Vec<u16>) -> GatewayTraffic {
        GatewayTraffic {
            ports,
            gateways: HashSet::new(),
            addresses: HashSet::new(),
            of: HashMap::new(),
            sessions: HashMap::new(),
            ids: HashMap::new(),
            passing: HashMap::new(),
            events: VecDeque::new(),
        }
    }

    /// Ports on which gateways were found.
    pub fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.gateways.iter().map(|gateway| gateway.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The next event.
    pub fn poll(&mut self) -> Option<(Event, String)> {
        self.events.pop_front()
    }

    /// The gateways at this address.
    pub fn at(&self, address: IpAddr) -> impl Iterator<Item = SocketEndpoint> {
        self.gateways.iter().copied().filter(move |gateway| gateway.address == address)
    }

    /// Whether a gateway was found at this address.
    pub fn is_gateway(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// A gateway connects to its broker with this identifier: for one of its clients?
    pub fn passes_on_for(&mut self, connection: u32, address: IpAddr, id: &str) -> Option<u32> {
        let client = *self.ids.get(&(address, Box::from(id)))?;
        self.passing.insert(connection, client);
        Some(client)
    }

    /// The client for which a gateway opened a TCP connection.
    pub fn client_behind(&self, connection: u32) -> Option<u32> {
        self.passing.get(&connection).copied()
    }

    /// What a datagram carries; `None` for what is no MQTT-SN.
    pub fn seen<'a>(
        &mut self,
        datagram: &UdpHeader,
        payload: &'a [u8],
        participants: &mut Participants,
    ) -> Option<SeenSnPacket<'a>> {
        let packet = decode(payload).ok()?.packet;
        let direction = self.direction(datagram, &packet)?;
        let (client_end, gateway) = match direction {
            ServerDirection::ToServer => (datagram.source, datagram.destination),
            ServerDirection::FromServer => (datagram.destination, datagram.source),
        };
        self.gateways.insert(gateway);
        self.addresses.insert(gateway.address);
        let number = FIRST + self.of.len() as u32;
        let fresh = GatewayConversation { number, client: None, positions: [0; 2] };
        let conversation = self.of.entry([client_end, gateway]).or_insert(fresh);
        let id = match &packet {
            Packet::Connect { client_id, .. } | Packet::Pingreq { client_id: Some(client_id) } => {
                Some(*client_id)
            }
            _ => None,
        };
        match id {
            // A sleeper may be awake at another port.
            Some(id) => {
                let client = participants.client(id, client_end, gateway);
                conversation.client = Some(client);
                self.ids.insert((gateway.address, id.into()), client);
            }
            None if conversation.client.is_none() && belongs_to_a_client(&packet) => {
                conversation.client = Some(participants.client("", client_end, gateway));
            }
            None => {}
        }
        let position = &mut conversation.positions[usize::from(direction == ServerDirection::FromServer)];
        let (start, bytes) = (*position, payload.len() as u32);
        *position += u64::from(bytes);
        let (connection, client) = (conversation.number, conversation.client);
        let topic = match &packet {
            Packet::Publish { topic, .. } => self.topic(client, *topic),
            _ => None,
        };
        Some(SeenSnPacket { connection, direction, client, gateway, packet, start, bytes, topic })
    }

    fn direction(&self, datagram: &UdpHeader, packet: &Packet<&str, &[u8]>) -> Option<ServerDirection> {
        let is_gateway = |end: SocketEndpoint| self.ports.contains(&end.port) || self.gateways.contains(&end);
        match (packet, is_gateway(datagram.destination), is_gateway(datagram.source)) {
            // Gateways speak to clients, and both may be at one port.
            (Packet::Connect { .. }, ..) => Some(ServerDirection::ToServer),
            (Packet::Connack { .. }, ..) => Some(ServerDirection::FromServer),
            (_, true, _) => Some(ServerDirection::ToServer),
            (_, false, true) => Some(ServerDirection::FromServer),
            (_, false, false) => None,
        }
    }

    fn topic(&self, client: Option<u32>, topic: Topic) -> Option<Arc<str>> {
        match topic {
            Topic::Short(_) => topic.short_name().filter(|name| is_name(name)).map(Arc::from),
            Topic::Registered(id) => self.sessions.get(&client?)?.topics.get(&id).cloned(),
            Topic::Predefined(_) => None,
        }
    }

    /// What a packet means for its client's session.
    pub fn on_packet(&mut self, seen: &SeenSnPacket<'_>, at: Instant, matcher: &mut Matcher) {
        let Some(client) = seen.client else { return };
        let session = self.sessions.entry(client).or_default();
        match &seen.packet {
            Packet::Connect { clean, .. } => {
                session.asked = Some((at, *clean));
                session.leaving = false;
                self.push_event(at, EventKind::Connect, client, None, String::new());
            }
            Packet::Connack { code } => self.connack(seen, client, *code, at, matcher),
            Packet::Register { topic_id, name, .. } if seen.direction == ServerDirection::FromServer => {
                session.topics.insert(*topic_id, Arc::from(*name));
            }
            Packet::Register { id, name, .. } => {
                session.registering.insert(*id, Arc::from(*name));
            }
            Packet::Regack { topic_id, id, code } => {
                if let Some(name) = session.registering.remove(id).filter(|_| *code == ReturnCode::Accepted) {
                    session.topics.insert(*topic_id, name);
                }
            }
            Packet::Subscribe { id, filter, .. } => {
                let filter = filter_name(filter);
                if let Some(filter) = &filter {
                    matcher.subscriptions.ask(client, filter, SubscriptionOptions::default(), at);
                }
                session.subscribing.insert(*id, (at, filter.clone()));
                self.push_event(at, EventKind::Subscribe, client, None, filter.unwrap_or_default());
            }
            Packet::Suback { topic_id, id, code, .. } => {
                self.suback((client, *id), *topic_id, *code, at, matcher)
            }
            Packet::Unsubscribe { filter, .. } => {
                if let Some(filter) = filter_name(filter) {
                    matcher.subscriptions.unsubscribe(client, &filter, at);
                }
            }
            Packet::Disconnect { duration_s: None } => self.disconnect(seen, client, at, matcher),
            _ => {}
        }
    }

    fn connack(
        &mut self,
        seen: &SeenSnPacket<'_>,
        client: u32,
        code: ReturnCode,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let Some((asked, clean)) = session.asked.take() else { return };
        let took = at.checked_since(asked);
        if code != ReturnCode::Accepted {
            let words = format!("CONNACK with code 0x{:02x}", code.number());
            return self.push_event(at, EventKind::Refused, client, None, words);
        }
        session.clean = clean;
        if clean {
            session.topics.clear();
            matcher.forget(client, Some(seen.connection));
            matcher.subscriptions.forget(client, asked, asked);
        }
        self.push_event(at, EventKind::Connack, client, took, String::new());
    }

    fn suback(
        &mut self,
        (client, id): (u32, u16),
        topic_id: u16,
        code: ReturnCode,
        at: Instant,
        matcher: &mut Matcher,
    ) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let Some((asked, filter)) = session.subscribing.remove(&id) else { return };
        let took = at.checked_since(asked);
        let filter = filter.unwrap_or_default();
        if code != ReturnCode::Accepted {
            matcher.subscriptions.unsubscribe(client, &filter, at);
            let words = format!("{filter} with code 0x{:02x}", code.number());
            return self.push_event(at, EventKind::Refused, client, None, words);
        }
        matcher.subscriptions.grant(client, &filter, at);
        // A filter with wild cards has no identifier (§5.4.16).
        if topic_id != 0 && is_name(&filter) {
            session.topics.insert(topic_id, Arc::from(&*filter));
        }
        self.push_event(at, EventKind::Suback, client, took, String::new());
    }

    fn disconnect(&mut self, seen: &SeenSnPacket<'_>, client: u32, at: Instant, matcher: &mut Matcher) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let is_clients = seen.direction == ServerDirection::ToServer;
        let was_leaving = std::mem::replace(&mut session.leaving, true);
        // The gateway answers a client's DISCONNECT with one of its own.
        if was_leaving {
            return;
        }
        let clean = session.clean;
        let (kind, words) = if is_clients {
            (EventKind::Close, String::new())
        } else {
            (EventKind::Disconnect, "DISCONNECT from the gateway".into())
        };
        self.push_event(at, kind, client, None, words);
        if clean {
            matcher.forget(client, None);
            if matcher.subscriptions.forget(client, Instant::from_ns(u64::MAX), at) {
                self.push_event(at, EventKind::SessionEnd, client, None, String::new());
            }
        }
    }

    fn push_event(
        &mut self,
        at: Instant,
        kind: EventKind,
        client: u32,
        took: Option<Duration>,
        words: String,
    ) {
        self.events.push_back((Event { at, kind, client: Some(client), took }, words));
    }

    /// Every gateway, as people write it.
    pub fn gateway_addresses(&self) -> Vec<String> {
        let mut told: Vec<String> = self.gateways.iter().map(|&gateway| written(gateway)).collect();
        told.sort_unstable();
        told
    }
}

impl SeenSnPacket<'_> {
    /// What it says of itself.
    pub fn account(&self) -> DatagramAccount<'_> {
        DatagramAccount::of_packet(&self.packet, self.bytes, |message| message.len())
    }

    /// As the recording has it.
    pub fn row(
        &self,
        sent: Instant,
        complete: Option<Instant>,
        message: Option<CountedMessage>,
    ) -> ControlPacketRow<'_> {
        let account = self.account();
        ControlPacketRow {
            connection: self.connection,
            seen_by: SeenBy::Capture,
            transport: account.kind.protocol().transport(),
            protocol: account.kind.protocol().as_str(),
            direction: match self.direction {
                ServerDirection::ToServer => Towards::Broker,
                ServerDirection::FromServer => Towards::Client,
            },
            client: self.client,
            kind: account.kind.name(),
            qos: account.qos,
            dup: account.dup,
            retain: account.retain,
            packet_id: Some(account.id).filter(|id| *id != 0),
            reason: account.reason,
            topic: self.topic.as_deref(),
            publisher: message.map(|message| message.publisher),
            sequence: message.map(|message| message.sequence),
            stream_start: self.start,
            stream_end: self.start + u64::from(self.bytes),
            fixed_header_bytes: account.fixed_header_bytes,
            topic_bytes: account.topic_bytes,
            packet_id_bytes: account.packet_id_bytes,
            property_bytes: 0,
            payload_bytes: account.payload_bytes,
            first_sent_ns: Some(sent.as_ns()),
            complete_ns: complete.map(Instant::as_ns),
            segments: Some(1),
            written_ns: None,
            read_ns: None,
        }
    }
}

/// Whether a packet is of a client's session, or published without one.
fn belongs_to_a_client(packet: &Packet<&str, &[u8]>) -> bool {
    !matches!(packet, Packet::Advertise { .. } | Packet::Searchgw { .. } | Packet::Gwinfo { .. })
}

fn filter_name(filter: &Filter<&str>) -> Option<String> {
    match filter {
        Filter::Name(name) => Some((*name).to_owned()),
        Filter::Short(name) => std::str::from_utf8(name).ok().map(str::to_owned),
        Filter::Predefined(_) => None,
    }
}

/// TCP's connections are counted from 0.
const FIRST: u32 = 1 << 31;
