//! Messages: what was sent beside what arrived.
//!
//! The rows of a message are scattered over four spools, and [`crate::message_rows`] brings them together. When they are
//! few enough, its first pass has kept them and is the only one. The table comes out ordered by publisher, sequence
//! and receiver, whichever thread pushed first.

use std::collections::BTreeMap;
use std::path::Path;

use mqttlab_rows::{
    Dropped, Identified, Layout, LossCause, MessageFate, Phase, Received, Receivers, Sent, Share,
};
use mqttlab_units::Instant;

use crate::client_tally::ClientTally;
use crate::error::Result;
use crate::fate::{Judge, UndeliveredMessage};
use crate::flow::Flow;
use crate::footer::FileSize;
use crate::latest::Latest;
use crate::message_rows::{
    BLOCK_BITS, GatheredDelivery, GatheredMessage, GatheredRows, Survey, for_each, key, ranges,
};
use crate::origin::CopyOrigin;
use crate::shares::{ShareEvidence, TopicShares, is_member};
use crate::spool::Spool;
use crate::summary::Fates;
use crate::summing::{FoldState, SummedMessages, fate_again};
use crate::table::TableWriter;
use crate::tables::{MessageColumns, MessageRow};
use crate::untraced::{SPANS_MOST, UntracedDeliveries};
use crate::waiting::Waiting;

/// What the table of messages comes to.
pub(crate) struct JoinedMessages {
    pub(crate) size: FileSize,
    /// By client.
    pub(crate) tallies: Vec<ClientTally>,
    pub(crate) fates: Fates,
    pub(crate) flow: Flow,
    /// Between whom deliveries were under way.
    pub(crate) waiting: Waiting,
    /// What to read before the fates are used.
    pub(crate) warning: Option<String>,
    /// What was added up, where the table has a sample.
    pub(crate) summed: Option<SummedMessages>,
}

/// Writes `messages` to `to` from the spools in `from`.
pub(crate) fn messages(
    from: &Path,
    to: &Path,
    layout: &Layout,
    judge: &Judge<'_>,
    range_rows: u64,
) -> Result<JoinedMessages> {
    let summed = layout.summary.map(|rule| SummedMessages::load(from, layout, &rule)).transpose()?;
    let before = summed.as_ref().map(SummedMessages::survey).unwrap_or_default();
    let (survey, rows) = Survey::of(from, range_rows, before)?;
    let mut out = TableOut::new(layout, judge, dropped(from)?, summed);
    out.table = Some(TableWriter::create(to)?);
    if survey.foreign || survey.ambiguous {
        out.untraced = UntracedDeliveries::read(from, SPANS_MOST)?;
    }
    let before =
        |out: &TableOut<'_>| out.summed.as_ref().map(|summed| summed.state.latest()).unwrap_or_default();
    if let Some(rows) = rows {
        let rows = rows.ordered(judge);
        if rows.misses_any(layout) {
            out.latest = Some(before(&out).with(&rows, judge));
        }
        rows.each(&mut |message| out.message(message))?;
    } else {
        let blocks = survey.blocks.iter().map(|(&block, &count)| (block, count)).collect();
        let ranges = ranges(&blocks, BLOCK_BITS, range_rows);
        for range in &ranges {
            let rows = GatheredRows::read(from, range, &survey)?.ordered(judge);
            if out.latest.is_none() && rows.misses_any(layout) {
                out.latest = Some(before(&out).with_ranges(from, &ranges, &survey, judge)?);
            }
            rows.each(&mut |message| out.message(message))?;
        }
    }
    if survey.foreign {
        write_foreign(from, &mut out)?;
    }
    out.finish()
}

/// What is known to have been dropped, by message.
pub(crate) type DroppedRows = BTreeMap<u64, Vec<(Option<u32>, LossCause)>>;

pub(crate) fn dropped(from: &Path) -> Result<DroppedRows> {
    let mut dropped = DroppedRows::new();
    for_each(from, Spool::Dropped, |row: Dropped, _| {
        let rows = dropped.entry(key(row.publisher, row.sequence)).or_default();
        rows.push((row.subscriber, row.cause));
        Ok(())
    })?;
    Ok(dropped)
}

pub(crate) struct TableOut<'a> {
    layout: &'a Layout,
    judge: &'a Judge<'a>,
    dropped: DroppedRows,
    pub(crate) topic_shares: TopicShares<'a>,
    untraced: UntracedDeliveries,
    /// The publisher of the message before, and when those of its QoS 2 messages were acknowledged that may be in flight.
    in_flight: (u32, Vec<Option<Instant>>),
    /// Whether the present message found no place at the broker and reached nobody.
    crowded: bool,
    /// `None` as long as every message has arrived.
    latest: Option<Latest>,
    /// `None` while rows are added up.
    table: Option<TableWriter<MessageColumns<'static>>>,
    /// Where only a sample goes into the table.
    pub(crate) summed: Option<SummedMessages>,
    tallies: Vec<ClientTally>,
    /// Rows by the number of their fate.
    fates: [u64; MessageFate::ALL.len()],
    flow: Flow,
    waiting: Waiting,
}

impl<'a> TableOut<'a> {
    pub(crate) fn new(
        layout: &'a Layout,
        judge: &'a Judge<'a>,
        dropped: DroppedRows,
        mut summed: Option<SummedMessages>,
    ) -> TableOut<'a> {
        let heard = summed.as_mut().map(|summed| std::mem::take(&mut summed.state.heard));
        let before = summed.as_mut().map(|summed| &mut summed.state);
        let (tallies, fates, flow, slow) = before.map_or_else(
            || (vec![ClientTally::default(); layout.clients.len()], Default::default(), Flow::default(), 0),
            |state| {
                let cool_down_ns = judge.end().as_ns().saturating_sub(layout.measurement_end_ns);
                let slow = state.sums.slower_than(cool_down_ns / 3);
                (std::mem::take(&mut state.tallies), state.fates, state.flow, slow)
            },
        );
        let flow = Flow {
            cool_down_ns: judge.end().as_ns().saturating_sub(layout.measurement_end_ns),
            end_ns: judge.end().as_ns(),
            slow,
            ..flow
        };
        let (untraced, latest, table) = (UntracedDeliveries::default(), None, None);
        let (in_flight, crowded) = ((0, Vec::new()), false);
        let topic_shares = TopicShares::of(layout);
        TableOut {
            layout,
            judge,
            dropped,
            topic_shares,
            untraced,
            in_flight,
            crowded,
            latest,
            table,
            summed,
            tallies,
            fates,
            flow,
            waiting: Waiting::after(heard.unwrap_or_default()),
        }
    }

    /// Ends the table.
    fn finish(self) -> Result<JoinedMessages> {
        let met = MessageFate::ALL.iter().zip(self.fates).filter(|(_, count)| *count > 0);
        let fates = met.map(|(fate, count)| (fate.as_str(), count)).collect();
        let warning = self.untraced.warning();
        let size = self.table.expect("it was begun").finish()?;
        let (tallies, flow, waiting, summed) = (self.tallies, self.flow, self.waiting, self.summed);
        Ok(JoinedMessages { size, tallies, fates, flow, waiting, warning, summed })
    }

    /// What was added up, with its counts.
    pub(crate) fn into_state(self) -> FoldState {
        let mut state = self.summed.expect("it adds up").state;
        (state.tallies, state.fates, state.flow) = (self.tallies, self.fates, self.flow);
        state.heard = self.waiting.heard;
        state
    }

    pub(crate) fn layout(&self) -> &'a Layout {
        self.layout
    }

    pub(crate) fn judge(&self) -> &'a Judge<'a> {
        self.judge
    }

    /// Who is known not to get a message.
    pub(crate) fn drops_of(&self, key: u64) -> &[(Option<u32>, LossCause)] {
        self.dropped.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Whether a message was added up before.
    pub(crate) fn has_added(&self, message: &GatheredMessage<'_>) -> bool {
        self.summed.as_ref().is_some_and(|summed| summed.state.has_added(message.publisher, message.sequence))
    }

    /// Takes note of what later copies of a message are to be counted by.
    pub(crate) fn note(&mut self, message: &GatheredMessage<'_>) {
        let intended = message.sent.map(|row| row.intended).or(message.unsent.map(|row| row.intended));
        let phase = self.phase(intended.unwrap_or_default());
        if let Some(summed) = &mut self.summed {
            summed.state.note(message, phase);
        }
    }

    /// Copies of a message that was added up before.
    pub(crate) fn again(&mut self, message: &GatheredMessage<'_>) -> Result<()> {
        for delivery in message.deliveries {
            let Some(summed) = &mut self.summed else { return Ok(()) };
            summed.is_again = true;
            let state = &summed.state;
            let row = MessageRow {
                publisher: Some(message.publisher),
                sequence: Some(message.sequence),
                qos: Some(state.qos_of(message.publisher, delivery.row.qos)),
                phase: state.phase_of(message.publisher, message.sequence),
                fate: fate_again(delivery.row.retained),
                payload_bytes: delivery.row.payload_bytes,
                ..EMPTY
            };
            if !delivery.row.retained {
                self.count(delivery.row.subscriber, |tally| tally.duplicates += 1);
            }
            self.row(&delivery_of(&row, &delivery.row))?;
            self.summed.iter_mut().for_each(|summed| summed.is_again = false);
        }
        Ok(())
    }

    pub(crate) fn message(&mut self, message: &GatheredMessage<'_>) -> Result<()> {
        if self.has_added(message) {
            return self.again(message);
        }
        let mut row = self.blank(message);
        if let Some(sent) = message.sent {
            self.count_sent(sent, message.acknowledged);
            self.crowded = self.is_crowded(sent, message.acknowledged) && message.deliveries.is_empty();
        } else if message.unsent.is_some() && message.deliveries.is_empty() {
            self.count(message.publisher, |tally| tally.unsent += 1);
            row.fate = MessageFate::Unsent;
            if let (Some(summed), Some(unsent)) = (&mut self.summed, message.unsent) {
                summed.count_wanted(self.layout, &row, unsent.topic);
            }
            return self.row(&row);
        }
        let expected = message.sent.map(|sent| self.layout.receivers_of(sent.topic, sent.publisher));
        let expected = expected.unwrap_or_default();
        let shares = message.sent.map_or(0, |sent| self.layout.shares_of(sent.topic));
        if expected.is_empty() && shares == 0 && message.deliveries.is_empty() {
            let drops = self.drops_of(key(message.publisher, message.sequence));
            let is_known = message.sent.is_none_or(|sent| self.judge.knows_receivers(sent))
                || drops.iter().any(|(_, cause)| *cause == LossCause::NoMatchingSubscribers);
            (row.fate, row.cause) = match is_known {
                true => (MessageFate::NoReceiver, None),
                false => (MessageFate::Unknown, Some(LossCause::NotRecorded)),
            };
            return self.row(&row);
        }
        let rows: u64 = self.fates.iter().sum();
        let others = self.receivers(&row, expected, message)?;
        let Some(sent) = message.sent else { return Ok(()) };
        match self.topic_shares.unserved(sent.topic, message.deliveries) {
            Some(unserved) => {
                unserved.into_iter().try_for_each(|share| self.unserved(&row, message, share))?;
            }
            None => self.shares(&row, sent, message.acknowledged, shares.saturating_sub(others))?,
        }
        if self.fates.iter().sum::<u64>() > rows {
            return Ok(());
        }
        // All who subscribe now did so only after the broker had it.
        row.fate = MessageFate::NoReceiver;
        self.row(&row)
    }

    /// Whether the publisher of a QoS 2 message had as many others in flight as its broker takes.
    pub(crate) fn is_crowded(&mut self, sent: &Sent, acknowledged: Option<Instant>) -> bool {
        let Some(limit) = self.layout.inflight_limit(sent.publisher).filter(|_| sent.qos == 2) else {
            return false;
        };
        let (publisher, others) = &mut self.in_flight;
        if *publisher != sent.publisher {
            (*publisher, *others) = (sent.publisher, Vec::new());
        }
        others.retain(|at| at.is_none_or(|at| at > sent.sent));
        others.push(acknowledged);
        let name = key(sent.publisher, sent.sequence);
        others.len() > limit
            || self.summed.as_ref().is_some_and(|summed| summed.state.crowded.contains(&name))
    }

    /// Walks those who should have received the message beside those who did, both in order. Answers how many others
    /// received it.
    fn receivers(
        &mut self,
        row: &MessageRow<'_>,
        expected: Receivers<'_>,
        message: &GatheredMessage<'_>,
    ) -> Result<u32> {
        let mut expected = expected.iter().peekable();
        let mut others = 0;
        for copies in message.deliveries.chunk_by(|one, other| one.row.subscriber == other.row.subscriber) {
            let subscriber = copies[0].row.subscriber;
            while let Some(passed_over) = expected.next_if(|&receiver| receiver < subscriber) {
                self.absent(row, message, passed_over)?;
            }
            // No copy of the store goes to a shared subscription (MQTT 5 §4.8.2).
            let is_live = copies.iter().any(|copy| copy.origin != CopyOrigin::Stored);
            others += u32::from(expected.next_if_eq(&subscriber).is_none() && is_live);
            let mut arrived = false;
            for delivery in copies {
                match delivery.origin {
                    CopyOrigin::Stored => self.unmeasured(row, delivery, MessageFate::Retained)?,
                    CopyOrigin::NotDecided => self.unmeasured(row, delivery, MessageFate::NotDecided)?,
                    CopyOrigin::Live => {
                        self.delivered(row, delivery, arrived)?;
                        arrived = true;
                    }
                }
            }
        }
        expected.try_for_each(|passed_over| self.absent(row, message, passed_over))?;
        Ok(others)
    }

    /// A receiver that has not got the message.
    fn absent(&mut self, row: &MessageRow<'_>, message: &GatheredMessage<'_>, subscriber: u32) -> Result<()> {
        let Some(sent) = message.sent else { return Ok(()) };
        let rows = self.drops_of(key(sent.publisher, sent.sequence));
        let concerns = |whom: Option<u32>| whom.is_none_or(|whom| whom == subscriber);
        let dropped = rows.iter().find(|(whom, _)| concerns(*whom)).map(|(_, cause)| *cause);
        // What was lost on the way to a relay is lost by that for those who get the relay's copy.
        let relay = rows.first().filter(|_| self.layout.is_relayed(sent.topic));
        let instead = relay.map(|(_, cause)| *cause);
        let overtaken = self.latest.as_ref().and_then(|latest| latest.overtakes(sent, subscriber));
        let turn = self.latest.as_ref().and_then(|latest| latest.turn(sent, subscriber));
        // What came behind a later message was none before it.
        let untraced = self.untraced.any((subscriber, sent.payload_bytes), sent.sent, overtaken);
        let known = UndeliveredMessage::of(sent, message.acknowledged);
        let received = message.deliveries.iter().filter(|copy| copy.origin == CopyOrigin::Live);
        let at_broker_by = received.map(|copy| copy.row.received).chain(overtaken).min();
        let overtaken = overtaken.is_some();
        let crowded = self.crowded;
        let absent = UndeliveredMessage {
            subscriber: Some(subscriber),
            dropped,
            overtaken,
            instead,
            turn,
            untraced,
            crowded,
            at_broker_by,
            ..known
        };
        self.judged(row, &absent, Some(subscriber))
    }

    /// A shared subscription of which no member has got the message. Which member the broker chose is known where it says that it
    /// has dropped the message, and where one alone can have missed it.
    fn unserved(&mut self, row: &MessageRow<'_>, message: &GatheredMessage<'_>, share: &Share) -> Result<()> {
        let Some(sent) = message.sent else { return Ok(()) };
        let rows = self.dropped.get(&key(sent.publisher, sent.sequence)).map_or(&[][..], Vec::as_slice);
        let dropped = rows.iter().find(|(whom, _)| whom.is_none_or(|whom| is_member(share, whom)));
        let known = UndeliveredMessage::of(sent, message.acknowledged);
        if let Some(&(member, cause)) = dropped {
            return self.judged(row, &UndeliveredMessage { dropped: Some(cause), ..known }, member);
        }
        let known = UndeliveredMessage { crowded: self.crowded, ..known };
        let evidence =
            ShareEvidence { judge: self.judge, latest: self.latest.as_ref(), untraced: &self.untraced };
        let (known, member) = evidence.of(share, message.deliveries, sent, known);
        self.judged(row, &known, member)
    }

    /// Shared subscriptions of which no member has got the message, where nobody knows whose copies are whose. Their order is
    /// nobody's, so that no later message tells.
    fn shares(
        &mut self,
        row: &MessageRow<'_>,
        sent: &Sent,
        acknowledged: Option<Instant>,
        missing: u32,
    ) -> Result<()> {
        if missing == 0 {
            return Ok(());
        }
        let expected = self.layout.receivers_of(sent.topic, sent.publisher);
        let rows = self.dropped.get(&key(sent.publisher, sent.sequence)).cloned().unwrap_or_default();
        let members = rows.iter().filter(|(whom, _)| whom.is_none_or(|whom| !expected.contains(whom)));
        let mut members = members.copied();
        for _ in 0..missing {
            let (member, dropped) = members.next().map_or((None, None), |(whom, cause)| (whom, Some(cause)));
            let absent = UndeliveredMessage { dropped, ..UndeliveredMessage::of(sent, acknowledged) };
            self.judged(row, &absent, member)?;
        }
        Ok(())
    }

    fn judged(
        &mut self,
        row: &MessageRow<'_>,
        absent: &UndeliveredMessage,
        subscriber: Option<u32>,
    ) -> Result<()> {
        let (fate, cause) = self.judge.judge(absent);
        if fate == MessageFate::NoReceiver {
            return Ok(());
        }
        if let Some(subscriber) = subscriber {
            self.count(subscriber, |tally| match fate {
                MessageFate::Lost => tally.lost += 1,
                MessageFate::UnderWay => tally.under_way += 1,
                MessageFate::NotDecided => {}
                _ => tally.unknown += 1,
            });
        }
        self.row(&MessageRow { subscriber, fate, cause, ..*row })
    }

    fn delivered(
        &mut self,
        row: &MessageRow<'_>,
        delivery: &GatheredDelivery,
        duplicate: bool,
    ) -> Result<()> {
        let received_ns = delivery.row.received.as_ns();
        // What rests on a guess is no latency, and no order.
        let is_told = delivery.row.identified != Identified::Ambiguous;
        // The clock is one for all; a delivery before its intended time comes only from a foreign recording.
        let latency_ns = row.intended_ns.filter(|_| is_told && !self.layout.is_untimed);
        let latency_ns = latency_ns.and_then(|intended_ns| received_ns.checked_sub(intended_ns));
        let most = self.layout.late_after(row.publisher, delivery.row.subscriber);
        let late = !duplicate && latency_ns.zip(most).is_some_and(|(took, most)| took > most);
        // A repeated message may come behind later ones (MQTT 5 §4.6): only its first copy keeps the order.
        let out_of_order = delivery.overtaken && !duplicate && is_told;
        self.count(delivery.row.subscriber, |tally| {
            tally.delivered += u64::from(!duplicate);
            tally.duplicates += u64::from(duplicate);
            tally.out_of_order += u64::from(out_of_order);
            tally.late += u64::from(late);
        });
        self.row(&MessageRow {
            fate: if duplicate { MessageFate::Duplicate } else { MessageFate::Delivered },
            phase: if row.intended_ns.is_some() { row.phase } else { self.phase(delivery.row.received) },
            out_of_order,
            late,
            latency_ns,
            payload_bytes: delivery.row.payload_bytes,
            ..delivery_of(row, &delivery.row)
        })
    }

    /// A copy from the broker's store, or one that may be from there: how long ago it was published says nothing about the way that
    /// it took.
    fn unmeasured(
        &mut self,
        row: &MessageRow<'_>,
        delivery: &GatheredDelivery,
        fate: MessageFate,
    ) -> Result<()> {
        self.row(&MessageRow {
            fate,
            phase: if row.intended_ns.is_some() { row.phase } else { self.phase(delivery.row.received) },
            payload_bytes: delivery.row.payload_bytes,
            ..delivery_of(row, &delivery.row)
        })
    }

    fn foreign(&mut self, received: &Received) -> Result<()> {
        let is_will = received.identified == Identified::Will;
        self.count(received.subscriber, |tally| tally.foreign += u64::from(!is_will));
        let fate = if is_will { MessageFate::Will } else { MessageFate::Foreign };
        let row = MessageRow { publisher: received.will_of(), fate, ..EMPTY };
        let phase = self.phase(received.received);
        self.row(&MessageRow { phase, payload_bytes: received.payload_bytes, ..delivery_of(&row, received) })
    }

    /// The part of a row that is the same for every receiver.
    fn blank(&self, message: &GatheredMessage<'_>) -> MessageRow<'a> {
        let (sent, unsent) = (message.sent, message.unsent);
        let layout = self.layout;
        let topic = sent.map(|row| row.topic).or(unsent.map(|row| row.topic));
        let intended = sent.map(|row| row.intended).or(unsent.map(|row| row.intended));
        let payload_bytes = sent.map(|row| row.payload_bytes).or(unsent.map(|row| row.payload_bytes));
        MessageRow {
            publisher: Some(message.publisher),
            sequence: Some(message.sequence),
            topic: topic.and_then(|topic| layout.topics.get(topic as usize)).map(|topic| &*topic.name),
            publication: sent.map_or(unsent.and_then(|row| row.publication), |row| row.publication),
            phase: self.phase(intended.unwrap_or_default()),
            qos: sent.map(|row| row.qos).or(unsent.map(|row| row.qos)),
            payload_bytes: payload_bytes.unwrap_or_default(),
            retain: sent.is_some_and(|row| row.retain),
            intended_ns: intended.map(Instant::as_ns),
            sent_ns: sent.map(|row| row.sent.as_ns()),
            written_ns: sent.and_then(|row| row.written).map(Instant::as_ns),
            acknowledged_ns: message.acknowledged.map(Instant::as_ns),
            ..EMPTY
        }
    }

    fn phase(&self, at: Instant) -> Phase {
        if at.as_ns() < self.layout.warm_up_end_ns {
            Phase::WarmUp
        } else if at.as_ns() < self.layout.measurement_end_ns {
            Phase::Measurement
        } else {
            Phase::CoolDown
        }
    }

    fn count_sent(&mut self, sent: &Sent, acknowledged: Option<Instant>) {
        let took = acknowledged.and_then(|at| at.checked_since(sent.sent));
        self.count(sent.publisher, |tally| {
            tally.sent += 1;
            tally.acknowledged += u64::from(took.is_some());
            tally.acknowledged_ns += took.map_or(0, |took| u128::from(took.as_ns()));
        });
    }

    /// Counts for a client, if the layout knows it: a spool that was damaged may name any number.
    fn count(&mut self, client: u32, count: impl FnOnce(&mut ClientTally)) {
        if let Some(tally) = self.tallies.get_mut(client as usize) {
            count(tally);
        }
    }

    fn row(&mut self, row: &MessageRow<'_>) -> Result<()> {
        self.fates[row.fate as usize] += 1;
        self.flow.count(row);
        self.waiting.count(row);
        if self.summed.as_mut().is_some_and(|summed| !summed.count(row)) {
            return Ok(());
        }
        self.table.as_mut().map_or(Ok(()), |table| table.push(|columns, place| columns.set(place, row)))
    }
}

/// `row` with what the receiver saw.
fn delivery_of<'a>(row: &MessageRow<'a>, received: &Received) -> MessageRow<'a> {
    MessageRow {
        subscriber: Some(received.subscriber),
        qos_delivered: Some(received.qos),
        retained: received.retained,
        dup: received.dup,
        identified: Some(received.identified),
        received_ns: Some(received.received.as_ns()),
        ..*row
    }
}

/// Deliveries that no publisher is known for, as they came.
fn write_foreign(from: &Path, out: &mut TableOut<'_>) -> Result<()> {
    for_each(
        from,
        Spool::Received,
        |row: Received, _| {
            if row.publisher.is_none() { out.foreign(&row) } else { Ok(()) }
        },
    )
}

/// Rows in memory at a time: about 150 MiB of them, with the copy that is put in order.
pub(crate) const RANGE_ROWS: u64 = 1 << 20;
pub(crate) const EMPTY: MessageRow<'static> = MessageRow {
    publisher: None,
    sequence: None,
    topic: None,
    publication: None,
    subscriber: None,
    fate: MessageFate::Unknown,
    cause: None,
    phase: Phase::WarmUp,
    qos: None,
    qos_delivered: None,
    payload_bytes: 0,
    retain: false,
    retained: false,
    dup: false,
    out_of_order: false,
    late: false,
    identified: None,
    intended_ns: None,
    sent_ns: None,
    written_ns: None,
    acknowledged_ns: None,
    received_ns: None,
    latency_ns: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::Missing;
    use crate::{Acknowledged, Client, DirectRecorder, Topic, Unsent};
    use mqttlab_units::Seed;

    #[test]
    fn the_table_does_not_depend_on_how_many_rows_are_in_memory() {
        let root = std::env::temp_dir().join(format!("mqttlab-join-{}", std::process::id()));
        let layout = random_spools(&root.join("spools"));
        let table = |rows: u64| {
            let to = root.join(rows.to_string());
            std::fs::create_dir_all(&to).unwrap();
            let changes = crate::coverage::ChangedSubscriptions::default();
            let judge = Judge::new(&layout, &[], Vec::new(), Missing::default(), Instant::ZERO, &changes);
            let JoinedMessages { tallies, fates, flow, .. } =
                messages(&root.join("spools"), &to, &layout, &judge, rows).unwrap();
            (std::fs::read(to.join("messages.parquet")).unwrap(), format!("{tallies:?}{flow:?}"), fates)
        };
        let whole = table(RANGE_ROWS);
        assert_eq!(whole.2.keys().count(), 7, "all but no_receiver and retained are met: {:?}", whole.2);
        assert!(table(1) == whole && table(500) == whole);
        std::fs::remove_dir_all(&root).unwrap();
    }

    /// Twenty publishers whose messages are sent, lost, repeated and not sent, in no order at all.
    fn random_spools(dir: &Path) -> Layout {
        let client =
            Client { name: "c".into(), group: "g".into(), host: 0, session: None, is_program: false };
        let topics = vec![Topic { name: "t".into(), receivers: 0, shares: 0, relayed: false }];
        let receivers = vec![vec![0, 1, 2]];
        let layout = Layout { clients: vec![client; 20], topics, receivers, ..Layout::default() };
        let mut recorder = DirectRecorder::create(dir, "{}", &layout).unwrap();
        let mut dice = Seed(3).dice();
        for _ in 0..5_000 {
            let publisher = dice.below(20) as u32;
            let sequence = dice.below(200_000) as u32;
            let at = Instant::from_ns(dice.below(1_000_000));
            let (topic, qos, payload_bytes) = (0, 1, 9);
            match dice.below(5) {
                0 => recorder.unsent(&Unsent {
                    publisher,
                    sequence,
                    topic,
                    qos,
                    payload_bytes,
                    intended: at,
                    publication: None,
                }),
                1 => recorder.acknowledged(&Acknowledged { publisher, sequence, at }),
                2 | 3 => {
                    let sent = Sent {
                        publisher,
                        sequence,
                        topic,
                        qos,
                        retain: false,
                        payload_bytes,
                        intended: at,
                        sent: at,
                        written: None,
                        publication: None,
                    };
                    recorder.sent(&sent).and_then(|()| match dice.below(3) {
                        0 => recorder.received(&arrival(2, Some(publisher), sequence, at)),
                        _ => Ok(()),
                    })
                }
                _ => (0..1 + dice.below(3)).try_for_each(|subscriber| {
                    let publisher = Some(publisher).filter(|publisher| *publisher > 0);
                    recorder.received(&arrival(subscriber as u32 % 2, publisher, sequence, at))
                }),
            }
            .unwrap();
        }
        recorder.write_spools().unwrap();
        layout
    }

    fn arrival(subscriber: u32, publisher: Option<u32>, sequence: u32, received: Instant) -> Received {
        Received {
            subscriber,
            publisher,
            sequence,
            qos: 1,
            dup: false,
            retained: false,
            payload_bytes: 9,
            received,
            identified: Identified::Payload,
        }
    }
}
