//! Captures: every frame a row, every control packet a row, and the messages that they carried.

mod arrivals;
mod datagram;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use mqttlab_capture::mqtt::{Kind, Packet};
use mqttlab_capture::{
    Analyser, Analysis, Completed, Direction, Frame, KeyLog, Passage, Payload, Segment, Settings, Transport,
    dissect, metrics,
};
use mqttlab_recording::{
    Cause, ControlPacketRow, Direction as Way, Ending, EventKind, Frame as FrameRow, FrameFate, Gap, Headers,
    Layout, PacketRow, Transit,
};
use mqttlab_units::Instant;

use super::both_ends::{self, BothEnds, Carried};
use super::clock::CaptureClock;
use super::conversation::{Conversations, SILENCE};
use super::datagrams::Datagrams;
use super::dedup::Dedup;
use super::error::{Error, Result};
use super::evidence::{self, Evidence};
use super::gaps::Gaps;
use super::headers::{self, IpHeader};
use super::matcher::{Matcher, Row};
use super::message::{Message, Publish};
use super::options::Order;
use super::output::{Findings, ImportOutput};
use super::participants::{Participants, written};
use super::place;
use super::plan::Facts;
use super::point::{CapturePoint, Place};
use super::progress::{Observer, ProgressWatch};
use super::servers::Servers;
use super::source::{CapturedAt, Frames, Meter};
use super::streams::CapturedStreams;
use super::words::{RowWords, name, reason, word};

/// Imports captures.
pub fn import(order: &Order, observer: &mut dyn Observer) -> Result<Ending> {
    let key_log = key_log(order)?;
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut frames = Frames::open(&order.files, &meter)?;
    let start = frames.run_started().unwrap_or(frames.start());
    let mut importer = Importer::new(order, key_log, CaptureClock::starting(start))?;
    if frames.run_started().is_some() {
        importer.matcher.trust_clock();
    }
    importer.both_ends = frames.show_both_ends().then(BothEnds::default);
    let mut watch = ProgressWatch::new(meter, observer);
    loop {
        // They stand before the frames that they open.
        if let Some(secrets) = frames.take_secrets() {
            importer.analyser.add_secrets(&secrets);
        }
        let Some((at, frame)) = frames.next() else { break };
        importer.frame(at, &frame)?;
        importer.dropped(frames.dropped_before());
        watch.add(1);
    }
    let observer = watch.end(Instant::from_ns(importer.seen.last_ns));
    importer.finish(&frames, observer)
}

/// The secrets of TLS connections that the order names.
fn key_log(order: &Order) -> Result<KeyLog> {
    let mut key_log = KeyLog::default();
    for file in &order.key_logs {
        let text = fs::read(file).map_err(|error| Error::in_file(file, error))?;
        if key_log.add(&text) == 0 {
            let problem = "there are no secrets of TLS in it; a key log has lines such as `CLIENT_RANDOM`, 64 and 96 \
                           hexadecimal digits";
            return Err(Error::in_file(file, problem));
        }
    }
    Ok(key_log)
}

struct Importer<'a> {
    order: &'a Order,
    output: ImportOutput<'a>,
    clock: CaptureClock,
    analyser: Analyser,
    participants: Participants,
    streams: CapturedStreams,
    dedup: Dedup,
    /// Where the captures say when each frame arrived.
    both_ends: Option<BothEnds>,
    conversations: Conversations,
    /// MQTT-SN.
    datagrams: Datagrams,
    matcher: Matcher,
    seen: Evidence,
    gaps: Gaps,
    /// Gaps of connections whose client is not known yet.
    gaps_of_strangers: Vec<mqttlab_capture::Gap>,
    /// Since when a subscription may have passed unseen.
    subscriptions_unknown_from: Option<Instant>,
    /// When the last frame was captured, and the one before it.
    latest: [Instant; 2],
    packets: Vec<Completed>,
    words: RowWords,
    /// Stands for topics that are not in their packets.
    no_topic: Arc<str>,
}

/// Where a frame was seen.
#[derive(Clone, Copy)]
struct FramePlace {
    link: u16,
    frame: u64,
    hop: u8,
    /// How it crossed the link and which way, where the capture says so.
    transit: Option<(Way, Transit)>,
}

impl<'a> Importer<'a> {
    fn new(order: &'a Order, key_log: KeyLog, clock: CaptureClock) -> Result<Importer<'a>> {
        let (broker_ports, key_log) = (order.broker_ports.clone(), Arc::new(key_log));
        let settings = Settings { broker_ports, key_log, ..Settings::default() };
        Ok(Importer {
            order,
            output: ImportOutput::open(order, clock)?,
            clock,
            analyser: Analyser::new(settings),
            participants: Participants::default(),
            streams: CapturedStreams::default(),
            dedup: Dedup::default(),
            both_ends: None,
            conversations: Conversations::default(),
            datagrams: Datagrams::new(order.gateway_ports.clone()),
            matcher: Matcher::new(order.deliver_on_release).with_servers(Servers::new(order.one_broker)),
            seen: Evidence::default(),
            gaps: Gaps::default(),
            gaps_of_strangers: Vec::new(),
            subscriptions_unknown_from: None,
            latest: [Instant::ZERO; 2],
            packets: Vec::new(),
            words: RowWords::default(),
            no_topic: "".into(),
        })
    }

    fn frame(&mut self, CapturedAt { link, transit }: CapturedAt, frame: &Frame<'_>) -> Result<()> {
        self.settle(self.clock.at(frame.time))?;
        self.seen.look(frame, self.clock);
        self.latest = [self.clock.at(frame.time), self.latest[0]];
        let transport = dissect(frame);
        let earlier = match transit {
            Some((_, Transit { frame, hop, .. })) => (hop > 0).then_some((frame, hop)),
            None => self.dedup.earlier(link, frame, &transport, self.seen.frames + 1),
        };
        if let Some((number, hop)) = earlier {
            self.seen.passed_again += 1;
            return self.passing(FramePlace { link, frame: number, hop, transit }, frame, &transport);
        }
        self.seen.frames += 1;
        let number = transit.map_or(self.seen.frames, |(_, transit)| transit.frame);
        let place = FramePlace { link, frame: number, hop: 0, transit };
        match transport {
            Transport::Tcp(segment, payload) => {
                let [source, destination] = self.dedup.canonical([segment.source, segment.destination]);
                self.segment(place, frame, &Segment { source, destination, ..segment }, payload)
            }
            transport => {
                self.analyser.other_frame(frame.time, frame.original_len);
                let Some(ip) = headers::ip(frame) else { return self.unaddressed(place, frame) };
                if let Transport::Udp(datagram, payload) = &transport {
                    self.seen.look_inside(datagram, payload);
                }
                if let Transport::Udp(datagram, payload) = &transport
                    && let Some(seen) = self.datagrams.seen(datagram, payload, &mut self.participants)
                {
                    return self.datagram(place, frame, (&ip, datagram), &seen);
                }
                self.other(place, frame, &ip, &transport)
            }
        }
    }

    fn segment(
        &mut self,
        place: FramePlace,
        frame: &Frame<'_>,
        segment: &Segment,
        payload: &[u8],
    ) -> Result<()> {
        let annotations = self.analyser.segment(segment, Payload::Bytes(payload));
        let (connection, direction) = (annotations.connection, annotations.direction);
        let mut verdict = annotations.verdict;
        verdict.ack_rtt = verdict.ack_rtt.filter(|_| frame.is_timed);
        self.words.clear();
        for completed in annotations.packets {
            if completed.packet.complete.frame == annotations.frame {
                name(&completed.packet, &mut self.words.mqtt);
            }
        }
        self.packets.clear();
        self.packets.extend_from_slice(annotations.packets);
        write!(self.words.marks, "{}", verdict.marks).expect("a string takes all");
        let offset = self.streams.place(connection, direction, segment, payload.len());
        let ends = [segment.source, segment.destination];
        let client_first = if direction == Direction::ToServer { ends } else { [ends[1], ends[0]] };
        let at = self.clock.at(frame.time);
        self.conversations.seen(connection as u32, direction, client_first, at, &mut self.matcher);
        self.note_gaps();
        if let Some((_, transit)) = place.transit {
            let (start, bytes) = offset.map_or((0, 0), |start| (start, segment.payload_len));
            let carried =
                Carried { connection: connection as u32, direction, start, bytes, bits: segment.bits };
            self.set_out(carried, &transit, at);
        } else {
            self.take_packets()?;
            self.note_gaps();
            self.conversations.closing(connection as u32, direction, segment.bits, at, &mut self.matcher);
            self.push_events()?;
        }
        let hosts = ends.map(|end| self.participants.host(end.address));
        let way = if direction == Direction::ToServer { Way::Up } else { Way::Down };
        let row = self.row(place, frame, way, hosts);
        let RowWords { sack, mqtt, marks } = &mut self.words;
        let headers = Headers {
            connection: Some(connection as u32),
            stream_offset: offset,
            mqtt: word(mqtt),
            marks: word(marks),
            ack_rtt_ns: verdict.ack_rtt.filter(|_| !verdict.ack_rtt_ambiguous).map(|rtt| rtt.as_ns()),
            ..headers::of_segment(segment, sack)
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    /// A frame that another link has carried before: its headers, and nothing that was counted there.
    fn passing(&mut self, place: FramePlace, frame: &Frame<'_>, transport: &Transport<'_>) -> Result<()> {
        let Some(ip) = headers::ip(frame) else { return self.unaddressed(place, frame) };
        let Transport::Tcp(segment, _) = transport else { return self.other(place, frame, &ip, transport) };
        let hosts = [ip.source, ip.destination].map(|address| self.participants.host(address));
        let to_broker = self.order.broker_ports.contains(&segment.destination.port);
        let row = self.row(place, frame, if to_broker { Way::Up } else { Way::Down }, hosts);
        let carried = self.pass_on(place, self.clock.at(frame.time));
        let headers = Headers {
            connection: carried.map(|carried| carried.connection),
            stream_offset: carried.filter(|carried| carried.bytes > 0).map(|carried| carried.start),
            ..headers::of_segment(segment, &mut self.words.sack)
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    fn other(
        &mut self,
        place: FramePlace,
        frame: &Frame<'_>,
        ip: &IpHeader,
        transport: &Transport<'_>,
    ) -> Result<()> {
        let hosts = [ip.source, ip.destination].map(|address| self.participants.host(address));
        let row = self.row(place, frame, Way::Up, hosts);
        let headers = match transport {
            Transport::Udp(datagram, _) => headers::of_datagram(datagram, ip),
            _ => Headers { ip_bytes: ip.bytes, protocol: ip.protocol, ..Headers::default() },
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    /// A frame without IP: between hosts that have no name here.
    fn unaddressed(&mut self, place: FramePlace, frame: &Frame<'_>) -> Result<()> {
        let nowhere = self.participants.nowhere();
        let row = self.row(place, frame, Way::Up, [nowhere; 2]);
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &Headers::default()))?)
    }

    /// Everything happens to a captured frame when it is captured, and when its first bit went out nobody knows; unless the
    /// capture says so. How many links its path has nobody knows either: it has arrived where it was seen first, and only there,
    /// so that what counts arrivals counts it once, however often it was seen.
    fn row(
        &self,
        place: FramePlace,
        frame: &Frame<'_>,
        direction: Way,
        [from_host, to_host]: [u16; 2],
    ) -> FrameRow {
        let at = self.clock.at(frame.time);
        let row = FrameRow {
            link: place.link,
            direction,
            hop: place.hop,
            hops: 1,
            frame: place.frame,
            from_host,
            to_host,
            frame_bytes: frame.original_len,
            entered: at,
            start: None,
            sent: Some(at),
            delivered: Some(at),
            fate: FrameFate::Delivered,
            cause: Cause::None,
            repetition: None,
        };
        place
            .transit
            .map_or(row, |(direction, transit)| FrameRow { direction, ..both_ends::row(&transit, row) })
    }

    /// Rows of the control packets that were completed last, and of what they mean.
    fn take_packets(&mut self) -> Result<()> {
        let mut packets = std::mem::take(&mut self.packets);
        for completed in packets.drain(..) {
            self.control_packet(&completed)?;
        }
        self.packets = packets;
        self.take_rows()
    }

    fn take_rows(&mut self) -> Result<()> {
        while let Some(row) = self.matcher.poll() {
            match row {
                Row::Sent(row) => self.output.recorder.sent(&row)?,
                Row::Acknowledged(row) => self.output.recorder.acknowledged(&row)?,
                Row::Received(row) => self.output.recorder.received(&row)?,
            }
        }
        Ok(())
    }

    fn control_packet(&mut self, completed: &Completed) -> Result<()> {
        let Completed { connection, direction, packet } = completed;
        let segments = self.streams.carriers(*connection, *direction, packet.start..packet.end);
        let complete = Some(self.clock.at(packet.complete.time));
        self.packet(*connection as u32, *direction, packet, complete, segments)
    }

    /// What a packet means that is complete at that time, or never, and its row.
    fn packet(
        &mut self,
        number: u32,
        direction: Direction,
        packet: &Packet,
        complete: Option<Instant>,
        segments: u32,
    ) -> Result<()> {
        let first_sent = self.clock.at(packet.first.time);
        let times = complete.map(|complete| [first_sent, complete]);
        self.seen.control_packets += 1;
        self.seen.damaged += u64::from(packet.damaged);
        let (client, message) = match (self.passed_on(number, packet), times) {
            (Some(passed_on), _) => passed_on,
            (None, Some(times)) => self.own_packet(number, direction, packet, times),
            (None, None) => self.lost_packet(number, direction, packet),
        };
        let ends = client.zip(message).map(|(client, message)| [client, message.publisher]);
        if let Some(row) = ends.and_then(|ends| place::said(packet, direction, ends, first_sent)) {
            self.output.recorder.position(&row)?;
        }
        let passage = Passage {
            connection: number,
            direction,
            client,
            first_sent,
            complete: complete.filter(|_| !packet.damaged),
            segments,
        };
        let row = ControlPacketRow {
            reason: reason(packet),
            publisher: message.map(|message| message.publisher),
            sequence: message.map(|message| message.sequence),
            ..passage.row_of(packet)
        };
        Ok(self.output.recorder.control_packet(&row)?)
    }

    /// A packet of a client of its own: that client, and the message of a PUBLISH.
    fn own_packet(
        &mut self,
        connection: u32,
        direction: Direction,
        packet: &Packet,
        times: [Instant; 2],
    ) -> (Option<u32>, Option<Message>) {
        let (participants, matcher) = (&mut self.participants, &mut self.matcher);
        let client = self.conversations.packet(connection, direction, packet, times, participants, matcher);
        (client, client.and_then(|client| self.message(client, connection, direction, packet, times)))
    }

    /// Whether a gateway of MQTT-SN passes this packet on, to its broker or from it; and for which of its clients, where it
    /// has a connection for each, and which message. What was a gateway's before its first datagram was seen is taken for a
    /// client's.
    fn passed_on(&mut self, connection: u32, packet: &Packet) -> Option<(Option<u32>, Option<Message>)> {
        let (client, broker) = self.conversations.ends(connection)?;
        if !self.datagrams.is_gateway(client.address) {
            return None;
        }
        if let Some(connect) = &packet.connect {
            self.datagrams.passes_on_for(connection, client.address, &connect.client_id);
        }
        let behind = self.datagrams.client_behind(connection);
        // On the broker's own host there may be clients of its own beside the gateway.
        let message = self.matcher.passed_on(packet.payload_head.as_slice());
        let is_known = packet.kind == Kind::Publish && message.is_some();
        let is_gateways = behind.is_some() || client.address != broker.address || is_known;
        if is_gateways {
            let gateways = self.datagrams.at(client.address);
            gateways.for_each(|gateway| self.matcher.servers.join(gateway, broker));
        }
        is_gateways.then_some((behind, message))
    }

    /// Tells the matcher; returns the message of a PUBLISH. A damaged packet is one whose bytes were not all captured:
    /// it went its way all the same.
    fn message(
        &mut self,
        client: u32,
        connection: u32,
        direction: Direction,
        packet: &Packet,
        [first, complete]: [Instant; 2],
    ) -> Option<Message> {
        match (packet.kind.mqtt()?, direction) {
            (Kind::Publish, _) => {
                let topic = packet.topic.as_ref().unwrap_or(&self.no_topic);
                self.seen.without_topic += u64::from(packet.topic.is_none());
                self.seen.alias_unknown += u64::from(packet.topic.is_none() && packet.topic_alias.is_some());
                if packet.damaged {
                    self.matcher.distrust_order(client);
                }
                let since = self.conversations.since(connection);
                let publish =
                    Publish { since, ..Publish::of(packet, client, connection, topic, [first, complete]) };
                return match direction {
                    Direction::ToServer => {
                        // Its delivery cannot be told by its content.
                        if !publish.is_whole {
                            self.gaps.note(Some(client), first, complete);
                        }
                        Some(self.matcher.published(&publish))
                    }
                    Direction::FromServer => {
                        let message = self.matcher.delivered(&publish);
                        // It may have been any message that was sent before.
                        if message.is_none() && (packet.damaged || packet.topic.is_none()) {
                            self.gaps.note(Some(client), first, complete);
                        }
                        message
                    }
                };
            }
            (Kind::Puback | Kind::Pubcomp, Direction::FromServer) => {
                self.matcher.acknowledged(client, packet.id?, complete);
            }
            (Kind::Puback | Kind::Pubcomp, Direction::ToServer) => self.matcher.completed(client, packet.id?),
            (Kind::Pubrel, Direction::FromServer) => self.matcher.released(client, packet.id?, complete),
            _ => {}
        }
        // Who subscribed to what may have been in the bytes that are missing.
        if packet.damaged {
            self.gaps.note(Some(client), first, complete);
            self.subscriptions_unknown(first);
        }
        None
    }

    /// Times in which packets of a client may have passed unseen.
    fn note_gaps(&mut self) {
        while let Some(gap) = self.analyser.gap() {
            if let Some(both_ends) = &mut self.both_ends {
                both_ends.distrust(gap.connection as u32, gap.direction);
            }
            self.gaps_of_strangers.push(gap);
        }
        // A connection gets its client with its first packet.
        for gap in std::mem::take(&mut self.gaps_of_strangers) {
            let Some(client) = self.conversations.client(gap.connection as u32) else {
                self.gaps_of_strangers.push(gap);
                continue;
            };
            let [from, until] = [gap.from, gap.until].map(|at| self.clock.at(at));
            self.gaps.note(Some(client), from, until);
            // A SUBSCRIBE may have been in it.
            if gap.from > Instant::ZERO && gap.direction == Direction::ToServer {
                self.subscriptions_unknown(from);
            }
            if gap.from > Instant::ZERO {
                self.matcher.distrust_order(client);
            }
        }
        for client in self.matcher.guessed() {
            // Nobody knows whether it shares its subscription with others, nor until when it holds.
            self.gaps.note(Some(client), Instant::ZERO, Instant::from_ns(u64::MAX));
        }
    }

    /// Somebody may have subscribed from here on without being seen.
    fn subscriptions_unknown(&mut self, from: Instant) {
        let earliest = self.subscriptions_unknown_from.map_or(from, |known| known.min(from));
        self.subscriptions_unknown_from = Some(earliest);
    }

    fn write_gaps(&mut self) -> Result<()> {
        for (client, from, until) in self.gaps.all() {
            self.output.recorder.gap(&Gap { client, from, until })?;
        }
        Ok(())
    }

    /// The capture dropped frames between the last one and the one before.
    fn dropped(&mut self, frames: u64) {
        if frames > 0 {
            self.seen.dropped += frames;
            self.gaps.note(None, self.latest[1], self.latest[0]);
            self.subscriptions_unknown(self.latest[1]);
        }
    }

    /// The capture dropped frames, nobody knows when. It may have said of some of them when that was.
    fn note_dropped(&mut self, anywhere: u64) {
        if anywhere > 0 {
            self.seen.dropped = self.seen.dropped.max(anywhere);
            self.gaps.note(None, Instant::ZERO, self.latest[0]);
            self.subscriptions_unknown(Instant::ZERO);
        }
    }

    fn push_events(&mut self) -> Result<()> {
        while let Some((event, words)) = self.conversations.poll().or_else(|| self.datagrams.poll()) {
            self.output.recorder.event(&event, &words)?;
        }
        Ok(())
    }

    fn finish(mut self, frames: &Frames, observer: &mut dyn Observer) -> Result<Ending> {
        self.packets.extend_from_slice(self.analyser.flush());
        self.note_gaps();
        self.end_arrivals()?;
        self.take_packets()?;
        self.note_gaps();
        self.matcher.finish();
        self.take_rows()?;
        self.note_dropped(frames.dropped_anywhere());
        let analyser = std::mem::replace(&mut self.analyser, Analyser::new(Settings::default()));
        let analysis = analyser.finish();
        self.note_attempts(&analysis);
        let receivers_known_until_ns = self.note_missing_directions(&analysis);
        self.conversations.expire(self.latest[0], &mut self.matcher);
        self.push_events()?;
        self.write_gaps()?;
        let untimed = self.seen.is_untimed();
        self.write_metrics(&analysis)?;
        let ports: Vec<String> = self.order.broker_ports.iter().map(u16::to_string).collect();
        let mut reasons = self.seen.reasons(&analysis, &self.order.broker_ports, &ports.join(", "));
        let (mut disorder, mut sorted) = frames.disorder();
        reasons.append(&mut disorder);
        let mut warnings = self.seen.warnings(&analysis, &self.matcher, frames.files());
        warnings.append(&mut self.dedup.warnings());
        warnings.append(&mut sorted);
        let point = CapturePoint::of(&analysis, self.order.captured_at, own_place(frames));
        if self.seen.control_packets > 0 && !untimed {
            warnings.append(&mut point.warnings());
        }
        let broker = self.conversations.broker();
        let facts = Facts {
            length_ns: self.seen.last_ns.max(1),
            broker: broker.map_or("none captured".into(), |broker| self.matcher.servers.told_with(broker)),
            broker_port: broker.map(|broker| broker.port),
            broker_ports: self.broker_ports(&analysis),
            gateways: self.datagrams.told(),
            gateway_ports: self.datagrams.ports(),
            network: format!("as captured on {}", frames.links().join(", ")),
        };
        let connections = self.conversations.told(self.participants.clients());
        let mut told = self.seen.told(&analysis, &self.matcher);
        told["captured_at"] = point.told();
        let details = BTreeMap::from([("import".into(), told), ("connections".into(), connections)]);
        let given_up = self.matcher.subscriptions.given_up();
        let Matcher { subscriptions, servers, .. } = self.matcher;
        let (topics, receivers) = subscriptions.into_layout(&servers);
        let [from, until] = frames.run_measured().unwrap_or_default().map(Instant::as_ns);
        let layout = Layout {
            warm_up_end_ns: from,
            measurement_end_ns: until,
            hosts: self.participants.hosts().to_vec(),
            links: frames.links().to_vec(),
            clients: self.participants.clients().to_vec(),
            topics,
            receivers,
            is_untimed: untimed,
            receivers_known_until_ns,
            topics_may_be_missing: true,
            given_up,
            ..Layout::default()
        };
        let findings = Findings { faults: frames.faults().to_vec(), reasons, warnings };
        self.output.close(layout, &facts, findings, details, observer)
    }

    fn write_metrics(&mut self, analysis: &Analysis) -> Result<()> {
        let mut outcome = Ok(());
        let untimed = self.seen.is_untimed();
        let who = |number| {
            (number, self.conversations.client(number).or_else(|| self.datagrams.client_behind(number)))
        };
        metrics::rows(analysis, who, &mut |row| {
            // Times and rates are of no worth where some frame has no time.
            let timed = row.metric.ends_with("_s") || row.metric.contains("_s_");
            if outcome.is_ok() && !(untimed && timed) {
                outcome = self.output.recorder.network_metric(row);
            }
        });
        Ok(outcome?)
    }

    /// Those that were named, and those on which MQTT was found.
    fn broker_ports(&self, analysis: &Analysis) -> Vec<u16> {
        let broker_s = analysis.connections.iter().filter(|connection| connection.is_broker_s);
        let found = broker_s.map(|connection| connection.server.port);
        found.chain(self.order.broker_ports.iter().copied()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What one end of a connection sent was not captured: what became of its client's messages is unknown. Answers
    /// since when subscriptions may have passed unseen.
    fn note_missing_directions(&mut self, analysis: &Analysis) -> Option<u64> {
        let asked = self.matcher.subscriptions.unanswered();
        let unseen = [self.subscriptions_unknown_from, asked].into_iter().flatten().min();
        let mut unknown_from = unseen.map(Instant::as_ns);
        for connection in &analysis.connections {
            if let Some(since) = evidence::unseen_subscriptions_since(connection) {
                let from = self.clock.at(since).as_ns();
                unknown_from = Some(unknown_from.map_or(from, |until| until.min(from)));
            }
            let Some(missing) = evidence::missing_direction(connection) else { continue };
            if let Some(client) = self.conversations.client(connection.number as u32) {
                self.gaps.note(Some(client), Instant::ZERO, Instant::from_ns(u64::MAX));
            }
            let [_, down] = &connection.directions;
            if let Some((first, _)) = down.span.filter(|_| missing == Direction::ToServer) {
                let from = self.clock.at(first).as_ns().saturating_sub(SILENCE.as_ns());
                unknown_from = Some(unknown_from.map_or(from, |until| until.min(from)));
            }
        }
        unknown_from
    }

    /// Connections that were never answered are happenings too.
    fn note_attempts(&mut self, analysis: &Analysis) {
        for connection in analysis.connections.iter().filter(|connection| connection.is_broker_s) {
            let [up, _] = &connection.directions;
            let Some((first, _)) = up.span.filter(|_| up.syn > 0 && up.handshakes == 0) else { continue };
            let (from, to) = (written(connection.client), written(connection.server));
            let words =
                format!("{from} could not open a connection to {to}: {} SYN and no handshake", up.syn);
            let at = self.clock.at(first);
            self.conversations.say(at, EventKind::Note, None, None, words);
        }
    }
}

/// Where captures of mqttlab's own were taken.
fn own_place(frames: &Frames) -> Option<Place> {
    let place = if frames.show_both_ends() { Place::BothEnds } else { Place::Senders };
    frames.are_own().then_some(place)
}
