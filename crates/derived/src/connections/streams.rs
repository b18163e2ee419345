//! What TCP did with the bytes of a packet: when it let them go, and which frame brought them.
//!
//! A connection has two ways, one for each direction of data. Of each there are the segments as they were sent, the
//! segments that arrived, and the acknowledgements that came back, as positions in the stream that they acknowledge. The
//! last say why a byte was sent when it was.
//!
//! What it does not model: the congestion window, which no frame shows. That an acknowledgement was followed by data that
//! had to wait, and that Nagle's algorithm cannot have held, is taken as evidence for a window.

use mqttlab_recording::NumberSet;
use mqttlab_recording::reading::ABSENT;

use crate::connections::frame_times::FrameTimes;
use crate::connections::segment_flight::{SegmentFlight, WaitEnd};
use crate::instants::{MaybeInstant, SLACK_NS, known, least, most};
use crate::network::frame_rows::{ConnectionFrames, LinkFrame, StoredFate};
use crate::search_hint::SearchHint;
use crate::settings::RunSettings;

/// Data that an acknowledgement released sets out at once; this much later, something else has released them.
const RELEASE_NS: i64 = 2_000_000;
/// The place of what did not arrive.
const NOWHERE: u32 = u32::MAX;

/// A data segment on its first link, with what of the stream had been sent by then.
#[derive(Clone, Copy, Debug)]
struct StreamSegment {
    entered: i64,
    frame: u64,
    /// The number of its frame on its connection.
    nth: u32,
    end: i64,
    payload_bytes: i64,
    /// The largest segment of its sender.
    mss: Option<i64>,
    /// End of all data, and of those in segments below the MSS, sent up to here.
    sent_end: i64,
    small_end: i64,
    /// When the last segment below the MSS was sent.
    small_sent: MaybeInstant,
}

/// A data segment that arrived, a link's copy too.
#[derive(Clone, Copy, Debug)]
struct ArrivedData {
    delivered: i64,
    frame: u64,
    /// The number of its frame on its connection.
    nth: u32,
    offset: i64,
    end: i64,
    went: i64,
    queue: i64,
    again: bool,
    /// On the link that took longest for it.
    slowest: OnLink,
}

/// When a frame came to a link, left its queue, and had left its transmitter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnLink {
    pub(crate) entered: i64,
    pub(crate) start: i64,
    pub(crate) sent: i64,
}

impl OnLink {
    fn of(row: &LinkFrame) -> OnLink {
        let start = if row.start == ABSENT { row.entered } else { row.start };
        OnLink { entered: row.entered, start, sent: if row.sent == ABSENT { start } else { row.sent } }
    }

    /// How long it took, transmission before waiting.
    fn took(&self) -> (i64, i64) {
        (self.sent - self.start, self.start - self.entered)
    }
}

/// An acknowledgement where it arrived.
#[derive(Clone, Copy, Debug)]
struct SeenAck {
    delivered: i64,
    frame: u64,
    /// Position up to which all is acknowledged.
    acked: i64,
}

/// One direction of a connection.
#[derive(Default)]
pub(crate) struct ConnectionDirection {
    /// In the order of sending.
    sent: Vec<StreamSegment>,
    /// Places in `sent`: of what had not been sent before, whose ends are in order, too; and of what had.
    originals: Vec<u32>,
    repetitions: Vec<u32>,
    /// In the order of arriving, and of those the first of each frame, by the frame's number on its connection.
    arrived: Vec<ArrivedData>,
    first_arrival: Vec<u32>,
    /// In the order of arriving, and places of those that acknowledge something new.
    acknowledgements: Vec<SeenAck>,
    advances: Vec<u32>,
    /// In each of these lists.
    near: [SearchHint; 5],
}

/// A PUBLISH whose way is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarriedPacket {
    pub(crate) stream_start: i64,
    pub(crate) stream_end: i64,
    pub(crate) first_sent: MaybeInstant,
    pub(crate) complete: MaybeInstant,
    /// When its first copy was sent, and when it could be.
    pub(crate) tried: MaybeInstant,
    pub(crate) ready: MaybeInstant,
    /// Whether its sender uses Nagle's algorithm; `None` where nothing is known of the sender.
    pub(crate) nagle: Option<bool>,
}

/// Bytes that wait.
struct WaitingBytes {
    ready: MaybeInstant,
    sent: MaybeInstant,
    nagle: Option<bool>,
    segment_bytes: Option<i64>,
    mss: Option<i64>,
}

/// The two ways of a connection: from the broker, and to it.
pub(crate) fn ways(frames: &ConnectionFrames<'_>, settings: &RunSettings) -> [ConnectionDirection; 2] {
    let journeys = Journeys::of(frames);
    let mut rows = [DirectionRows::default(), DirectionRows::default()];
    for row in frames.rows {
        let is_up = settings.ports.contains(&row.destination_port.into());
        if row.is_first() && row.has_data() {
            rows[usize::from(is_up)].sent.push(row);
        }
        if row.has_arrived() && row.delivered != ABSENT {
            if row.has_data() {
                rows[usize::from(is_up)].arrived.push(row);
            }
            if row.ack != ABSENT {
                rows[usize::from(!is_up)].back.push(row);
            }
        }
    }
    rows.map(|rows| {
        let mut way = ConnectionDirection::default();
        let base = way.send(rows.sent, settings);
        way.arrived.reserve_exact(rows.arrived.len());
        rows.arrived.into_iter().for_each(|row| way.arrive(row, &journeys));
        way.end_arrivals(frames.frames);
        way.acknowledge(rows.back, base);
        way
    })
}

/// Rows of one direction's data, in the order of the table: where they set out, where they arrived, and the acknowledgements that
/// came back.
#[derive(Default)]
struct DirectionRows<'a> {
    sent: Vec<&'a LinkFrame>,
    arrived: Vec<&'a LinkFrame>,
    back: Vec<&'a LinkFrame>,
}

/// The journeys of frames, by their numbers on the connection.
struct Journeys(Vec<Journey>);

/// When a frame set out, how long it waited in queues on its way, and how many links it had come to with the last on which it did.
#[derive(Clone, Copy, Default)]
struct Journey {
    went: i64,
    queue: i64,
    /// 0 where it is not known.
    links: u16,
    slowest: OnLink,
}

impl Journeys {
    fn of(frames: &ConnectionFrames<'_>) -> Journeys {
        let rows = frames.rows;
        let mut found = vec![Journey::default(); frames.frames];
        let hops = rows.iter().map(|row| row.hop).max().unwrap_or(0);
        // Link by link of each frame's way; on each the rows are in the order of the table.
        for hop in 0..=hops {
            let carries =
                |row: &&LinkFrame| row.hop == hop && row.fate != StoredFate::Dropped && row.has_data();
            for row in rows.iter().filter(carries) {
                let wait = if row.start == ABSENT { 0 } else { row.start - row.entered };
                let (journey, links) = (&mut found[row.nth as usize], u16::from(hop) + 1);
                let here = OnLink::of(row);
                if journey.links == 0 {
                    *journey = Journey { went: row.entered, queue: wait, links, slowest: here };
                } else if journey.links != links {
                    // A copy is made behind the transmitter, and has waited as long as its original.
                    journey.queue += wait;
                    journey.links = links;
                    if here.took() > journey.slowest.took() {
                        journey.slowest = here;
                    }
                }
            }
        }
        Journeys(found)
    }
}

impl ConnectionDirection {
    /// Takes what was sent on the first link. Returns the sequence number of the stream's first byte.
    fn send(&mut self, mut first: Vec<&LinkFrame>, settings: &RunSettings) -> Option<i64> {
        first.sort_by_key(|row| row.entered);
        let (mut sent_end, mut small_end, mut small_sent) = (-1, 0, None);
        let mut between = None;
        self.sent.reserve_exact(first.len());
        for row in &first {
            let hosts = (row.from_host, row.to_host);
            let mss = match between {
                Some((known, mss)) if known == hosts => mss,
                _ => settings.segment_bytes_max(hosts.0.into(), hosts.1.into()),
            };
            between = Some((hosts, mss));
            let payload_bytes = i64::from(row.payload_bytes);
            let end = row.end();
            // One that repeats and adds something new counts as new: what it adds had to wait for its own reasons.
            let again = end <= sent_end;
            sent_end = sent_end.max(end);
            if mss.is_some_and(|mss| payload_bytes < mss) {
                small_end = small_end.max(end);
                small_sent = most([small_sent, Some(row.entered)]);
            }
            let (entered, frame, nth) = (row.entered, row.frame, row.nth);
            let place = self.sent.len() as u32;
            (if again { &mut self.repetitions } else { &mut self.originals }).push(place);
            self.sent.push(StreamSegment {
                entered,
                frame,
                nth,
                end,
                payload_bytes,
                mss,
                sent_end,
                small_end,
                small_sent,
            });
        }
        let row = first.first()?;
        known(row.seq).map(|seq| seq - row.stream_offset)
    }

    fn arrive(&mut self, row: &LinkFrame, journeys: &Journeys) {
        let journey = &journeys.0[row.nth as usize];
        let known = (journey.went, journey.queue, journey.slowest);
        let (went, queue, slowest) =
            if journey.links > 0 { known } else { (row.entered, 0, OnLink::of(row)) };
        let (delivered, frame, nth) = (row.delivered, row.frame, row.nth);
        let (offset, end) = (row.stream_offset, row.end());
        let again = false;
        self.arrived.push(ArrivedData { delivered, frame, nth, offset, end, went, queue, again, slowest });
    }

    fn end_arrivals(&mut self, frames: usize) {
        let again: NumberSet<u64> =
            self.repetitions.iter().map(|&place| self.sent[place as usize].frame).collect();
        // By arrival, and stable: of frames that arrived together the table's order remains.
        self.arrived.sort_by_key(|one| one.delivered);
        self.first_arrival = vec![NOWHERE; frames];
        for (place, one) in (0..).zip(&mut self.arrived) {
            one.again = again.contains(&one.frame);
            // A link's copy brings nothing that its original has not brought.
            let first = &mut self.first_arrival[one.nth as usize];
            *first = place.min(*first);
        }
    }

    /// Takes the acknowledgements that came back. `base` is the sequence number of the stream's first byte.
    fn acknowledge(&mut self, mut rows: Vec<&LinkFrame>, base: Option<i64>) {
        rows.sort_by_key(|row| row.delivered);
        self.acknowledgements.reserve_exact(rows.len());
        let mut acked = 0;
        for row in rows {
            let sent = self.latest_sent(Some(row.delivered));
            let position = sent.zip(base).map_or(0, |(sent, base)| {
                // The stream may be longer than the numbers: an acknowledgement is for the last 2^32 bytes. FIN counts as
                // one.
                let top = sent.sent_end + 2;
                (top - (top - (row.ack - base)).rem_euclid(1 << 32)).max(0)
            });
            if position > acked {
                self.advances.push(self.acknowledgements.len() as u32);
            }
            acked = acked.max(position);
            let (delivered, frame) = (row.delivered, row.frame);
            self.acknowledgements.push(SeenAck { delivered, frame, acked });
        }
    }

    /// The last segment that had been sent by then.
    fn latest_sent(&self, at: MaybeInstant) -> Option<&StreamSegment> {
        let at = at?;
        let place = self.near[0].partition_point(&self.sent, |sent| sent.entered <= at).checked_sub(1)?;
        Some(&self.sent[place])
    }

    /// The first segment with data that had not been sent before that ends at a position or behind it.
    fn original(&self, position: i64) -> Option<&StreamSegment> {
        let end = |place: u32| self.sent[place as usize].end;
        let place = self.near[1].partition_point(&self.originals, |&place| end(place) < position);
        self.originals.get(place).map(|&place| &self.sent[place as usize])
    }

    /// The last acknowledgement that had come by then.
    fn latest_acknowledgement(&self, at: MaybeInstant) -> Option<&SeenAck> {
        let at = at?;
        let near = &self.near[2];
        let place = near.partition_point(&self.acknowledgements, |one| one.delivered <= at).checked_sub(1)?;
        Some(&self.acknowledgements[place])
    }

    /// The first acknowledgement of all up to a position.
    fn acknowledged(&self, position: Option<i64>) -> Option<&SeenAck> {
        let position = position?;
        let acked = |place: u32| self.acknowledgements[place as usize].acked;
        let place = self.near[3].partition_point(&self.advances, |&place| acked(place) < position);
        self.advances.get(place).map(|&place| &self.acknowledgements[place as usize])
    }

    /// The frame whose arrival made a packet complete. Of frames that arrived together, the one sent last, but for copies of
    /// what had come before them: where a link lets all go at once that it has kept, the first copy is the carrier.
    fn bringing(&self, carried: &CarriedPacket) -> Option<&ArrivedData> {
        let complete = carried.complete?;
        let from = self.near[4].partition_point(&self.arrived, |one| one.delivered < complete);
        let count = self.arrived[from..].iter().take_while(|one| one.delivered == complete).count();
        let together = &self.arrived[from..from + count];
        let is_new = |nth: usize, one: &ArrivedData| {
            let covers = |before: &ArrivedData| before.offset <= one.offset && before.end >= one.end;
            !self.is_copy(one, (from + nth) as u32) && !together[..nth].iter().any(covers)
        };
        let own = together.iter().enumerate().filter(|(_, one)| one.offset < carried.stream_end);
        // Where all are copies, the receiver had not kept what came before.
        own.max_by_key(|&(nth, one)| (is_new(nth, one), one.frame)).map(|(_, one)| one)
    }

    /// Whether the first sending of the bytes of a repetition had arrived before it.
    fn is_copy(&self, one: &ArrivedData, place: u32) -> bool {
        let original = || self.original(one.end).map(|own| self.first_arrival[own.nth as usize]);
        one.again && original().is_some_and(|first| first < place)
    }

    /// Where the frames of a packet of several segments waited in queues and were transmitted, each on its slowest link.
    fn own_frames(&self, carried: &CarriedPacket, complete: i64) -> FrameTimes {
        let mut found = FrameTimes::default();
        let sent = carried.first_sent.unwrap_or(complete);
        let from = self.arrived.partition_point(|one| one.delivered < sent);
        let arrived =
            self.arrived.iter().enumerate().skip(from).take_while(|(_, one)| one.delivered <= complete);
        for (place, one) in arrived {
            let is_own = one.offset < carried.stream_end && one.end > carried.stream_start;
            if is_own && !self.is_copy(one, place as u32) {
                let OnLink { entered, start, sent } = one.slowest;
                found.add([entered, start, sent]);
            }
        }
        found
    }

    /// What became of a packet on this way.
    pub(crate) fn flight(&self, carried: &CarriedPacket) -> SegmentFlight {
        let first = self.original(carried.stream_start + 1);
        let own = self.original(carried.stream_end).map(|own| self.first_arrival[own.nth as usize]);
        let own = own.filter(|&place| place != NOWHERE).map(|place| &self.arrived[place as usize]);
        let bringing = self.bringing(carried);
        let brought_at = bringing.map(|one| one.went);
        let repeated = brought_at.and_then(|went| {
            let entered = |place: u32| self.sent[place as usize].entered;
            let place = self.repetitions.partition_point(|&place| entered(place) <= went).checked_sub(1)?;
            Some(entered(self.repetitions[place]))
        });
        // The frame that was missing had set out before this packet: it was overtaken, not lost. Then this packet's own
        // frame travelled, and waited at the other end.
        let early = brought_at.zip(carried.first_sent).is_some_and(|(went, first)| went < first);
        let own_first = own.zip(carried.complete).is_some_and(|(own, at)| own.delivered <= at);
        let (went, queue, arrived) = match own {
            Some(own) if early && own_first => (carried.first_sent, Some(own.queue), Some(own.delivered)),
            _ => (brought_at, bringing.map(|one| one.queue), carried.complete),
        };
        let again = bringing.map(|one| one.again);
        let late = carried.tried.zip(carried.first_sent).is_some_and(|(tried, first)| tried < first);
        // Data sent again between a message's segments: what came after it had waited for it.
        let held = repeated.filter(|&at| carried.first_sent.is_some_and(|first| at > first));
        let resumed = if again == Some(true) || late { went } else { held.or(carried.first_sent) };
        let mss = first.and_then(|first| first.mss);
        let nagle = carried.nagle;
        let waiting = WaitingBytes {
            ready: carried.ready,
            sent: carried.first_sent,
            nagle,
            segment_bytes: first.map(|first| first.payload_bytes),
            mss,
        };
        let rest = bringing.map(|one| one.end - one.offset);
        let tail = WaitingBytes { ready: resumed, sent: went, nagle, segment_bytes: rest, mss };
        let follows = went.zip(resumed).is_some_and(|(went, resumed)| went > resumed);
        let flight = SegmentFlight {
            frame: bringing.map(|one| one.frame as i64).into(),
            went: went.into(),
            queue: queue.into(),
            arrived: arrived.into(),
            resumed: resumed.into(),
            first: self.release(&waiting),
            tail: if follows { self.release(&tail) } else { WaitEnd::default() },
        };
        let is_several = first.is_some_and(|first| first.end < carried.stream_end);
        // What overtook is divided by its own frame already.
        match carried.complete {
            Some(complete) if is_several && arrived == Some(complete) => {
                let begins = if late { carried.tried } else { carried.first_sent };
                self.own_frames(carried, complete).divide(flight, begins)
            }
            _ => flight,
        }
    }

    /// Which wait it was: the data of a segment below the MSS waits, under Nagle's algorithm in the form that Linux uses,
    /// while another segment below the MSS is not acknowledged (RFC 896; Minshall's variant).
    fn release(&self, waiting: &WaitingBytes) -> WaitEnd {
        let &WaitingBytes { ready, sent, nagle, segment_bytes, mss } = waiting;
        // Before the sending: at its own time this segment would be found itself.
        let before = self.latest_sent(sent.map(|at| at - 1));
        let ready_end = self.latest_sent(ready).map(|one| one.small_end);
        let acked = self.latest_acknowledgement(ready).map_or(0, |one| one.acked);
        let nagle_end = self.acknowledged(before.map(|one| one.small_end));
        let ready_nagle_end = self.acknowledged(ready_end).map(|one| one.delivered);
        // With the slack: a stack may be woken that much before the time of the frame that wakes it.
        let latest = self.latest_acknowledgement(sent.map(|at| at + SLACK_NS));
        let waited = ready.zip(sent).is_some_and(|(ready, sent)| sent > ready);
        let released_at = |one: Option<&SeenAck>| {
            one.zip(ready).zip(sent).is_some_and(|((one, ready), sent)| {
                let at = one.delivered;
                waited && at > ready && at <= sent + SLACK_NS && at >= sent - RELEASE_NS
            })
        };
        let size = segment_bytes.zip(mss);
        let is_small = size.is_some_and(|(bytes, mss)| bytes < mss);
        let is_full = size.is_some_and(|(bytes, mss)| bytes >= mss);
        let held_at_once = nagle == Some(true) && ready_end.is_some_and(|end| end > acked);
        let acknowledged = nagle == Some(true) && is_small && released_at(nagle_end);
        // Under Nagle's algorithm a segment may also go because it has become full.
        let beyond = ready_nagle_end.zip(sent).is_some_and(|(at, sent)| at > sent);
        let filled = held_at_once && waited && is_full && beyond;
        let owed = before.is_some_and(|one| one.sent_end > acked);
        let window = released_at(latest) && owed && !acknowledged && !filled;
        let by = if acknowledged { nagle_end } else { latest.filter(|_| window) };
        let until = if filled { sent } else { by.map(|one| one.delivered).or(ready) };
        let held_until = least([until, most([sent, ready])]);
        // The first acknowledgement that it waited for; what came in between was another's wait, or a window's.
        let first = least([ready_nagle_end.or(sent), held_until]);
        // A full segment does not wait for an acknowledgement; it was held by the algorithm only until it was full.
        let held = held_at_once && (is_small || filled);
        let nagle_until = if held { most([first, ready]) } else { ready };
        let second = most([least([before.and_then(|one| one.small_sent), held_until]), nagle_until]);
        let socket_until = if acknowledged || filled { second } else { held_until };
        WaitEnd {
            nagle_until: nagle_until.into(),
            socket_until: socket_until.into(),
            held_until: held_until.into(),
            frame: by.map(|one| one.frame as i64).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_near_the_last_place_is_found_wherever_it_is() {
        let all: Vec<i64> = (0..200).map(|number| number / 3).collect();
        let near = SearchHint::default();
        for number in 0..1000 {
            let wanted = number * 7919 % 71 - 2;
            let found = near.partition_point(&all, |&one| one < wanted);
            assert_eq!(found, all.partition_point(|&one| one < wanted), "{wanted}");
        }
        assert_eq!(near.partition_point(&[], |_: &i64| true), 0);
    }
}
