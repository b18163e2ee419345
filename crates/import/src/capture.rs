//! Captures: every frame a row, every control packet a row, and the messages that they carried.

mod arrivals;
mod tcp;
mod udp;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use mqttlab_capture::{
    Analyser, AnalyserSettings, Analysis, CapturedFrame, Completed, FrameContent, KeyLog, ServerDirection,
    TcpHeader, TransportHeader, analysis, dissect_content,
};
use mqttlab_recording::{
    Direction as Way, Ending, EventKind, Frame as FrameRow, FrameFate, FrameHeaders, Gap, Layout, PacketRow,
    Transit,
};
use mqttlab_units::Instant;
use serde_json::Value;

use super::both_ends::{self, BothEnds};
use super::capture_point::{CapturePoint, PathPlace};
use super::clock::CaptureClock;
use super::clock_offsets::set_clocks;
use super::completeness::{self, CaptureCompleteness};
use super::conversations::{CapturedConnections, SILENCE, without_connect_in_words};
use super::dedup::{Dedup, Fingerprint};
use super::error::{ImportError, Result};
use super::gaps::Gaps;
use super::headers::{self, IpHeader};
use super::matcher::Matcher;
use super::mqttsn::GatewayTraffic;
use super::options::ImportOrder;
use super::output::{Findings, ImportOutput};
use super::participants::{Participants, written};
use super::plan::Facts;
use super::preambles;
use super::progress::{ImportObserver, ProgressWatch};
use super::row_texts::RowTexts;
use super::servers::ObservedServers;
use super::source::{CaptureFrames, CapturedAt, Meter};
use super::streams::{CapturedStreams, StreamPlace};
use super::unproven::{ReceiverEnd, UnprovenRows};

/// Imports captures.
pub fn import(order: &ImportOrder, observer: &mut dyn ImportObserver) -> Result<Ending> {
    let key_log = key_log(order)?;
    let meter = Meter::of(&order.files).unpacking(order.unpacked_max);
    let mut frames = CaptureFrames::open(&order.files, &meter)?;
    let (drifting, set) = set_clocks(&mut frames);
    let start = frames.run_started().unwrap_or(frames.start());
    let mut importer = Importer::new(order, key_log, CaptureClock::starting(start))?;
    if frames.run_started().is_some() {
        importer.matcher.trust_clock();
    }
    importer.both_ends = frames.show_both_ends().then(BothEnds::default);
    (importer.drifting, importer.clocks_set) = (drifting, set);
    if !frames.show_both_ends() {
        importer.dedup.look_ahead(frames.look_ahead());
    }
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
fn key_log(order: &ImportOrder) -> Result<KeyLog> {
    let mut key_log = KeyLog::default();
    for file in &order.key_logs {
        let text = fs::read(file).map_err(|error| ImportError::in_file(file, error))?;
        if key_log.add(&text) == 0 {
            let problem = "there are no secrets of TLS in it; a key log has lines such as `CLIENT_RANDOM`, 64 and 96 \
                           hexadecimal digits";
            return Err(ImportError::in_file(file, problem));
        }
    }
    Ok(key_log)
}

struct Importer<'a> {
    order: &'a ImportOrder,
    /// How many captures there are.
    captures: usize,
    output: ImportOutput<'a>,
    clock: CaptureClock,
    analyser: Analyser,
    participants: Participants,
    streams: CapturedStreams,
    dedup: Dedup,
    /// Where the captures say when each frame arrived.
    both_ends: Option<BothEnds>,
    conversations: CapturedConnections,
    /// MQTT-SN.
    datagrams: GatewayTraffic,
    matcher: Matcher,
    unproven: UnprovenRows,
    seen: CaptureCompleteness,
    gaps: Gaps,
    /// Why the clocks of several captures are not right, and how they were set.
    drifting: Vec<String>,
    clocks_set: Vec<String>,
    /// Gaps of connections whose client is not known yet.
    gaps_of_strangers: Vec<mqttlab_capture::CaptureGap>,
    /// Since when a subscription may have passed unseen.
    subscriptions_unknown_from: Option<Instant>,
    /// When the last frame was captured, and the one before it.
    latest: [Instant; 2],
    packets: Vec<Completed>,
    words: RowTexts,
    /// Stands for topics that are not in their packets.
    no_topic: Arc<str>,
}

/// Where a frame was seen.
#[derive(Clone, Copy)]
struct FramePlace {
    link: u16,
    /// The number of the capture, where there are several.
    capture: Option<u16>,
    frame: u64,
    hop: u8,
    /// How it crossed the link and which way, where the capture says so.
    transit: Option<(Way, Transit)>,
}

impl<'a> Importer<'a> {
    fn new(order: &'a ImportOrder, key_log: KeyLog, clock: CaptureClock) -> Result<Importer<'a>> {
        let (broker_ports, key_log) = (order.broker_ports.clone(), Arc::new(key_log));
        let settings = AnalyserSettings { broker_ports, key_log, ..AnalyserSettings::default() };
        Ok(Importer {
            order,
            captures: order.files.len(),
            output: ImportOutput::open(order, clock)?,
            clock,
            analyser: Analyser::new(settings),
            participants: Participants::default(),
            streams: CapturedStreams::default(),
            dedup: Dedup::default(),
            both_ends: None,
            conversations: CapturedConnections::default(),
            datagrams: GatewayTraffic::new(order.gateway_ports.clone()),
            matcher: Matcher::new(order.deliver_on_release).with_servers(ObservedServers::new(order.brokers)),
            unproven: UnprovenRows::default(),
            seen: CaptureCompleteness::default(),
            gaps: Gaps::default(),
            drifting: Vec::new(),
            clocks_set: Vec::new(),
            gaps_of_strangers: Vec::new(),
            subscriptions_unknown_from: None,
            latest: [Instant::ZERO; 2],
            packets: Vec::new(),
            words: RowTexts::default(),
            no_topic: "".into(),
        })
    }

    fn frame(&mut self, at: CapturedAt, frame: &CapturedFrame<'_>) -> Result<()> {
        let content = frame.carried();
        let transport = dissect_content(frame, &content);
        let print = match at.transit {
            Some(_) => None,
            None => Dedup::fingerprint(at, frame, &content, &transport),
        };
        let waits = match (&transport, &print) {
            (TransportHeader::Tcp(segment, _), Some(print)) => {
                self.dedup.translations.holds(at, frame, segment, print)
            }
            _ => false,
        };
        self.released()?;
        if waits { Ok(()) } else { self.known_frame(at, frame, &content, transport, print.as_ref()) }
    }

    /// Frames that have waited until it was known which connection is theirs.
    fn released(&mut self) -> Result<()> {
        while let Some((at, held, print)) = self.dedup.translations.release() {
            let frame = held.frame();
            let content = frame.carried();
            let transport = dissect_content(&frame, &content);
            self.known_frame(at, &frame, &content, transport, Some(&print))?;
        }
        Ok(())
    }

    fn known_frame(
        &mut self,
        CapturedAt { link, file, transit }: CapturedAt,
        frame: &CapturedFrame<'_>,
        content: &FrameContent,
        transport: TransportHeader<'_>,
        print: Option<&Fingerprint>,
    ) -> Result<()> {
        self.process_arrivals(self.clock.at(frame.time))?;
        self.seen.count_frame(frame, content, self.clock);
        self.latest = [self.clock.at(frame.time), self.latest[0]];
        let earlier = match (transit, print) {
            (Some((_, Transit { frame, hop, .. })), _) => (hop > 0).then_some((frame, hop)),
            (None, Some(print)) => self.dedup.earlier(file, frame, print, self.seen.frames + 1),
            (None, None) => None,
        };
        let capture = Some(file).filter(|_| self.captures > 1);
        let ip = headers::ip(frame, content);
        if let Some((number, hop)) = earlier {
            self.seen.passed_again += 1;
            let place = FramePlace { link, capture, frame: number, hop, transit };
            return self.passing(place, frame, ip.as_ref(), &transport);
        }
        self.seen.frames += 1;
        let number = transit.map_or(self.seen.frames, |(_, transit)| transit.frame);
        let place = FramePlace { link, capture, frame: number, hop: 0, transit };
        match transport {
            TransportHeader::Tcp(segment, payload) => {
                let [source, destination] = self.dedup.canonical([segment.source, segment.destination]);
                let segment = TcpHeader { source, destination, ..segment };
                self.segment(place, frame, ip.and_then(|ip| ip.ecn), &segment, payload)
            }
            transport => {
                self.analyser.other_frame(frame.time, frame.original_len);
                let Some(ip) = ip else { return self.unaddressed(place, frame) };
                if let TransportHeader::Udp(datagram, payload) = &transport {
                    self.seen.look_inside(datagram, payload);
                }
                if let TransportHeader::Udp(datagram, payload) = &transport
                    && let Some(seen) = self.datagrams.seen(datagram, payload, &mut self.participants)
                {
                    return self.datagram(place, frame, (&ip, datagram), &seen);
                }
                self.other(place, frame, &ip, &transport)
            }
        }
    }

    /// A frame that another link has carried before: its headers, and nothing that was counted there.
    fn passing(
        &mut self,
        place: FramePlace,
        frame: &CapturedFrame<'_>,
        ip: Option<&IpHeader>,
        transport: &TransportHeader<'_>,
    ) -> Result<()> {
        let Some(ip) = ip else { return self.unaddressed(place, frame) };
        let TransportHeader::Tcp(segment, _) = transport else {
            return self.other(place, frame, ip, transport);
        };
        if let Some(capture) = place.capture {
            let ends = self.dedup.canonical([segment.source, segment.destination]);
            if let Some(connection) = self.matcher.clocks.note_again(ends, capture)
                && let Some(direction) = self.analyser.direction(connection.into(), ends)
            {
                self.streams.seen_again(connection, direction, segment);
            }
        }
        let hosts = [ip.source, ip.destination].map(|address| self.participants.host(address));
        let to_broker = self.order.broker_ports.contains(&segment.destination.port);
        let row = self.row(place, frame, if to_broker { Way::Up } else { Way::Down }, hosts);
        let carried = self.enter_next_link(place, self.clock.at(frame.time));
        let headers = FrameHeaders {
            connection: carried.map(|carried| carried.connection),
            stream_offset: carried.filter(|carried| carried.bytes > 0).map(|carried| carried.start),
            ecn: ip.ecn,
            ..headers::of_segment(segment, &mut self.words.sack)
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    fn other(
        &mut self,
        place: FramePlace,
        frame: &CapturedFrame<'_>,
        ip: &IpHeader,
        transport: &TransportHeader<'_>,
    ) -> Result<()> {
        let hosts = [ip.source, ip.destination].map(|address| self.participants.host(address));
        let row = self.row(place, frame, Way::Up, hosts);
        let headers = match transport {
            TransportHeader::Udp(datagram, _) => headers::of_datagram(datagram, ip),
            _ => FrameHeaders {
                ip_bytes: ip.bytes,
                protocol: ip.protocol,
                ecn: ip.ecn,
                ..FrameHeaders::default()
            },
        };
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &headers))?)
    }

    /// A frame without IP: between hosts that have no name here.
    fn unaddressed(&mut self, place: FramePlace, frame: &CapturedFrame<'_>) -> Result<()> {
        let nowhere = self.participants.nowhere();
        let row = self.row(place, frame, Way::Up, [nowhere; 2]);
        Ok(self.output.recorder.packet(&PacketRow::new(&row, &FrameHeaders::default()))?)
    }

    /// Everything happens to a captured frame when it is captured, and when its first bit went out nobody knows; unless the
    /// capture says so. How many links its path has nobody knows either: it has arrived where it was seen first, and only there,
    /// so that what counts arrivals counts it once, however often it was seen.
    fn row(
        &self,
        place: FramePlace,
        frame: &CapturedFrame<'_>,
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
            cause: None,
            repetition: None,
        };
        place
            .transit
            .map_or(row, |(direction, transit)| FrameRow { direction, ..both_ends::row(&transit, row) })
    }

    fn take_rows(&mut self) -> Result<()> {
        while let Some((row, place)) = self.matcher.poll_placed() {
            self.unproven.put(row, place, &self.streams, self.clock, &mut self.output.recorder)?;
        }
        Ok(())
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
            if gap.from > Instant::ZERO && gap.direction == ServerDirection::ToServer {
                self.subscriptions_unknown(from);
            }
            if gap.from > Instant::ZERO {
                self.matcher.distrust_order(client);
            }
        }
        for client in self.matcher.guessed_subscribers() {
            // Nobody knows whether it shares its subscription with others, nor until when it holds.
            self.gaps.note(Some(client), Instant::ZERO, Instant::from_ns(u64::MAX));
        }
    }

    /// Somebody may have subscribed from here on without being seen.
    fn subscriptions_unknown(&mut self, from: Instant) {
        let earliest = self.subscriptions_unknown_from.map_or(from, |known| known.min(from));
        self.subscriptions_unknown_from = Some(earliest);
    }

    /// Messages that are lost for certain, where the evidence of both ends is whole.
    fn write_proved(&mut self) -> Result<()> {
        let gaps = &self.gaps;
        for row in self.matcher.causes.finish(self.latest[0], |client| gaps.has_none(client)) {
            self.output.recorder.dropped(&row)?;
        }
        Ok(())
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
        self.gather_events(None);
        self.unproven.take_events(&self.streams, &mut self.output.recorder)
    }

    /// Events of the packet at a place: a client has an answer when its host has it.
    fn gather_events(&mut self, place: Option<StreamPlace>) {
        while let Some((event, words)) = self.conversations.poll().or_else(|| self.datagrams.poll()) {
            let is_answer = matches!(event.kind, EventKind::Connack | EventKind::Suback);
            self.unproven.event(event, words, place.filter(|_| is_answer));
        }
    }

    /// The numbers behind the recording for `run.json`, and what to know of connections.
    fn details(
        &self,
        analysis: &Analysis,
        point: &CapturePoint,
        warnings: &mut Vec<String>,
    ) -> BTreeMap<String, Value> {
        let connections = self.conversations.as_json(self.participants.clients(), self.latest[0]);
        let connections = preambles::add_to(connections, analysis);
        let without_connect = self.conversations.without_connect(analysis);
        warnings.extend(without_connect_in_words(&without_connect));
        let mut told = self.seen.as_json(analysis, &self.matcher);
        told["connections_without_connect"] = without_connect.into();
        told["captured_at"] = point.as_json();
        told["acknowledgements"] = self.unproven.as_json(&self.streams);
        told["wills"] = self.matcher.wills.as_json(self.participants.clients());
        BTreeMap::from([("import".into(), told), ("connections".into(), connections)])
    }

    fn finish(mut self, frames: &CaptureFrames, observer: &mut dyn ImportObserver) -> Result<Ending> {
        self.dedup.translations.release_all();
        self.released()?;
        self.packets.extend_from_slice(self.analyser.flush());
        self.note_gaps();
        self.end_arrivals()?;
        self.take_packets()?;
        self.note_gaps();
        self.matcher.finish();
        self.take_rows()?;
        self.note_dropped(frames.dropped_anywhere());
        let analyser = std::mem::replace(&mut self.analyser, Analyser::new(AnalyserSettings::default()));
        let analysis = analyser.finish();
        self.note_attempts(&analysis);
        let receivers_known_until_ns = self.note_missing_directions(&analysis);
        self.conversations.expire(self.latest[0], &mut self.matcher);
        let several = self.dedup.is_at_several_places().then_some(PathPlace::Several);
        let point = CapturePoint::of(&analysis, self.order.captured_at, own_place(frames).or(several));
        self.judge_unproven(point)?;
        self.write_proved()?;
        self.write_gaps()?;
        self.write_metrics(&analysis)?;
        let mut findings = self.findings(frames, &analysis, &point);
        let broker = self.conversations.broker();
        let facts = Facts {
            length_ns: self.seen.last_ns.max(1),
            broker: broker.map_or("none captured".into(), |broker| self.matcher.servers.told_with(broker)),
            broker_port: broker.map(|broker| broker.port),
            broker_ports: self.broker_ports(&analysis),
            gateways: self.datagrams.gateway_addresses(),
            gateway_ports: self.datagrams.ports(),
            network: format!("as captured on {}", frames.links().join(", ")),
        };
        let details = self.details(&analysis, &point, &mut findings.warnings);
        let (layout, output) = self.into_layout(frames, receivers_known_until_ns);
        output.close(layout, &facts, findings, details, observer)
    }

    /// Who is who, and who should have received what; and the recording, which ends with it.
    fn into_layout(
        self,
        frames: &CaptureFrames,
        receivers_known_until_ns: Option<u64>,
    ) -> (Layout, ImportOutput<'a>) {
        let given_up = self.matcher.subscriptions.given_up();
        let Matcher { subscriptions, servers, .. } = self.matcher;
        let options = subscriptions.options();
        let (own_receivers, as_published) = (options.own_receivers(), options.as_published());
        let shares = subscriptions.shares(&servers);
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
            is_untimed: self.seen.is_untimed(),
            receivers_known_until_ns,
            topics_may_be_missing: true,
            given_up,
            own_receivers,
            as_published,
            shares,
            ..Layout::default()
        };
        (layout, self.output)
    }

    /// What was never acknowledged is judged by where the capture was taken and by how connections ended.
    fn judge_unproven(&mut self, point: CapturePoint) -> Result<()> {
        self.gather_events(None);
        let conversations = &self.conversations;
        let end = |place: StreamPlace| {
            let at_receiver = conversations.ends(place.connection).is_some_and(|(client, broker)| {
                point.is_at_receiver(place.direction, client.address, broker.address)
            });
            let (ended, is_session_over) = conversations.ended(place.connection);
            ReceiverEnd { shows_arrivals: !point.has_acks() || at_receiver, ended, is_session_over }
        };
        self.unproven.finish(&self.streams, end, &mut self.output.recorder)
    }

    /// What is said about the captures.
    fn findings(&mut self, frames: &CaptureFrames, analysis: &Analysis, point: &CapturePoint) -> Findings {
        let mut reasons = self.seen.reasons(analysis, self.order);
        let (mut disorder, mut sorted) = frames.disorder();
        reasons.append(&mut disorder);
        reasons.append(&mut self.matcher.servers.reasons());
        if self.drifting.is_empty() {
            self.drifting = self.dedup.drifting(&frames.names());
        }
        reasons.extend(self.drifting.iter().cloned());
        reasons.append(&mut self.matcher.clocks.reasons());
        reasons.append(&mut self.unproven.reasons(&self.streams));
        let assumed = self.clocks_set.is_empty() && self.drifting.is_empty() && !self.matcher.clocks.differ();
        let files = if assumed { frames.files() } else { 1 };
        let mut warnings = self.matcher.wills.warnings(self.participants.clients());
        warnings.append(&mut self.seen.warnings(analysis, &self.matcher, files));
        warnings.append(&mut self.clocks_set);
        warnings.append(&mut self.dedup.warnings());
        warnings.append(&mut sorted);
        warnings.append(&mut self.unproven.warnings(&self.streams));
        if self.seen.control_packets > 0 && !self.seen.is_untimed() {
            warnings.append(&mut point.warnings());
        }
        Findings { faults: frames.faults().to_vec(), reasons, warnings }
    }

    fn write_metrics(&mut self, analysis: &Analysis) -> Result<()> {
        let mut outcome = Ok(());
        let untimed = self.seen.is_untimed();
        let who = |number| {
            (number, self.conversations.client(number).or_else(|| self.datagrams.client_behind(number)))
        };
        analysis::rows(analysis, who, &mut |row| {
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
            if let Some(since) = completeness::unseen_subscriptions_since(connection) {
                let from = self.clock.at(since).as_ns();
                unknown_from = Some(unknown_from.map_or(from, |until| until.min(from)));
            }
            let Some(missing) = completeness::missing_direction(connection) else { continue };
            if let Some(client) = self.conversations.client(connection.number as u32) {
                self.gaps.note(Some(client), Instant::ZERO, Instant::from_ns(u64::MAX));
            }
            let [_, down] = &connection.directions;
            if let Some((first, _)) = down.span.filter(|_| missing == ServerDirection::ToServer) {
                let from = self.clock.at(first).as_ns().saturating_sub(SILENCE.as_ns());
                unknown_from = Some(unknown_from.map_or(from, |until| until.min(from)));
            }
        }
        unknown_from
    }

    /// Connections that a proxy refused, with its reason.
    fn note_refusals(&mut self, analysis: &Analysis) {
        for (last, words) in preambles::refusals(analysis) {
            self.conversations.push_event(self.clock.at(last), EventKind::Note, None, None, words);
        }
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
            self.conversations.push_event(at, EventKind::Note, None, None, words);
        }
        self.note_refusals(analysis);
    }
}

/// Where captures of mqttlab's own were taken.
fn own_place(frames: &CaptureFrames) -> Option<PathPlace> {
    let place = if frames.show_both_ends() { PathPlace::BothEnds } else { PathPlace::Senders };
    frames.are_own().then_some(place)
}
