//! What let a PUBLISH of QoS 1 or 2 go, and what lets its receiver hand it on: packets of other messages, and later ones.
//!
//! With n packets of QoS 1 and 2 before it on its connection and an in-flight window of w, its sender could send it when
//! the acknowledgement number n - w + 1 had come (MQTT 5 §4.9). At QoS 2 its receiver hands it on at the PUBREL with its
//! identifier. Both are looked up here, a connection or a client at a time.

use mqttlab_recording::NumberMap;
use mqttlab_recording::Result;
use mqttlab_recording::reading::ABSENT;

use crate::control_packets::{FollowedKind, NamedPacket, narrow, wide};
use crate::instants::SLACK_NS;
use crate::partitions::{Packed, bring_together, slices};
use crate::settings::RunSettings;

/// A PUBLISH of QoS 1 or 2, or what acknowledged one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) number: u32,
    pub(crate) connection: u32,
    client: u32,
    publisher: u32,
    sequence: u32,
    /// Whether the PUBLISH goes, or went, to the broker.
    to_broker: bool,
    is_over: bool,
    /// Of a PUBLISH its place in the stream, of an acknowledgement when it had come.
    at: i64,
    first_sent_ns: i64,
}

impl Counted {
    /// What of a packet counts; `None` where nothing does.
    pub(crate) fn of(packet: &NamedPacket) -> Option<Counted> {
        let is_over = match packet.kind {
            FollowedKind::Publish if packet.qos > 0 => false,
            FollowedKind::Over | FollowedKind::Received { refuses: true } if packet.complete_ns != ABSENT => {
                true
            }
            _ => return None,
        };
        let (publisher, sequence) = packet.message();
        Some(Counted {
            number: packet.number,
            connection: packet.connection,
            client: narrow(packet.client()),
            publisher: narrow(publisher),
            sequence: narrow(sequence),
            to_broker: packet.to_broker != is_over,
            is_over,
            at: if is_over { packet.complete_ns } else { packet.stream_start },
            first_sent_ns: packet.first_sent_ns,
        })
    }

    /// The window that it may have to wait for, as far as it is known whose that is.
    fn window(&self, settings: &RunSettings) -> Option<i64> {
        settings.window(wide(self.client), self.to_broker)
    }

    /// The message of a PUBLISH that says it.
    pub(crate) fn message(&self) -> (i64, i64) {
        (wide(self.publisher), wide(self.sequence))
    }
}

pub(crate) const COUNTED_FIELDS: usize = 8;

impl Packed<COUNTED_FIELDS> for Counted {
    fn fields(&self) -> [i64; COUNTED_FIELDS] {
        [
            self.number.into(),
            self.connection.into(),
            self.client.into(),
            self.publisher.into(),
            self.sequence.into(),
            i64::from(self.to_broker) | i64::from(self.is_over) << 1,
            self.at,
            self.first_sent_ns,
        ]
    }

    fn of(fields: &[i64; COUNTED_FIELDS]) -> Counted {
        Counted {
            number: fields[0] as u32,
            connection: fields[1] as u32,
            client: fields[2] as u32,
            publisher: fields[3] as u32,
            sequence: fields[4] as u32,
            to_broker: fields[5] & 1 == 1,
            is_over: fields[5] & 2 == 2,
            at: fields[6],
            first_sent_ns: fields[7],
        }
    }
}

/// A PUBLISH of QoS 2 that arrived, or a PUBREL that did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub(crate) number: u32,
    /// Whose it is: what nobody's connection carries is a gateway's own, and has no other.
    pub(crate) whose: i64,
    packet_id: i32,
    publisher: u32,
    sequence: u32,
    to_broker: bool,
    is_datagram: bool,
    is_release: bool,
    complete_ns: i64,
}

impl Released {
    /// What of a packet belongs to the second half of an exchange; `None` where nothing does.
    pub(crate) fn of(packet: &NamedPacket) -> Option<Released> {
        let is_release = packet.kind == FollowedKind::Release;
        let is_one = is_release || (packet.kind == FollowedKind::Publish && packet.qos == 2);
        if !is_one || packet.complete_ns == ABSENT {
            return None;
        }
        let client = packet.client();
        let (publisher, sequence) = packet.message();
        Some(Released {
            number: packet.number,
            whose: if client == ABSENT { -1 - i64::from(packet.connection) } else { client },
            packet_id: packet.packet_id,
            publisher: narrow(publisher),
            sequence: narrow(sequence),
            to_broker: packet.to_broker,
            is_datagram: packet.is_datagram,
            is_release,
            complete_ns: packet.complete_ns,
        })
    }

    fn key(&self) -> (bool, bool, i64, i32) {
        (self.is_datagram, self.to_broker, self.whose, self.packet_id)
    }

    /// The message of a PUBLISH that says it.
    pub(crate) fn message(&self) -> (i64, i64) {
        (wide(self.publisher), wide(self.sequence))
    }
}

pub(crate) const RELEASED_FIELDS: usize = 7;

impl Packed<RELEASED_FIELDS> for Released {
    fn fields(&self) -> [i64; RELEASED_FIELDS] {
        let truths = [self.to_broker, self.is_datagram, self.is_release];
        [
            self.number.into(),
            self.whose,
            self.packet_id.into(),
            self.publisher.into(),
            self.sequence.into(),
            truths.iter().rev().fold(0, |bits, &truth| bits << 1 | i64::from(truth)),
            self.complete_ns,
        ]
    }

    fn of(fields: &[i64; RELEASED_FIELDS]) -> Released {
        Released {
            number: fields[0] as u32,
            whose: fields[1],
            packet_id: fields[2] as i32,
            publisher: fields[3] as u32,
            sequence: fields[4] as u32,
            to_broker: fields[5] & 1 == 1,
            is_datagram: fields[5] & 2 == 2,
            is_release: fields[5] & 4 == 4,
            complete_ns: fields[6],
        }
    }
}

/// What another packet did for a PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Permit {
    /// The PUBLISH.
    pub(crate) number: u32,
    pub(crate) what: Permitted,
}

/// What was permitted, by which packet, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Permitted {
    /// The window let it go.
    Window { by: u32, at: i64 },
    /// Of a connection whose client is not known: how many were before it.
    Place { before: u32 },
    /// Its receiver may hand it on.
    Release { by: u32, at: i64 },
}

pub(crate) const PERMIT_FIELDS: usize = 3;

impl Packed<PERMIT_FIELDS> for Permit {
    fn fields(&self) -> [i64; PERMIT_FIELDS] {
        let (kind, by, at) = match self.what {
            Permitted::Window { by, at } => (0, by, at),
            Permitted::Place { before } => (1, before, 0),
            Permitted::Release { by, at } => (2, by, at),
        };
        [i64::from(self.number) << 2 | kind, by.into(), at]
    }

    fn of(&[number, by, at]: &[i64; PERMIT_FIELDS]) -> Permit {
        let by = by as u32;
        let what = match number & 3 {
            0 => Permitted::Window { by, at },
            1 => Permitted::Place { before: by },
            _ => Permitted::Release { by, at },
        };
        Permit { number: (number >> 2) as u32, what }
    }
}

/// The acknowledgements on connections of nobody, by direction of what they acknowledge and connection: gateways', whose
/// windows are those of the clients behind them.
#[derive(Default)]
pub(crate) struct OverOfGateways(NumberMap<(bool, u32), Vec<(i64, u32)>>);

impl OverOfGateways {
    /// The acknowledgement that let a PUBLISH go that had so many before it.
    pub(crate) fn let_go(&self, publish: &NamedPacket, before: u32, window: i64) -> Option<(u32, i64)> {
        let over = self.0.get(&(publish.to_broker, publish.connection))?;
        // Counted from 0: fewer than a window before it, and nothing had to come.
        let nth = usize::try_from(i64::from(before) - window).ok()?;
        let &(at, by) = over.get(nth)?;
        (at <= publish.first_sent_ns + SLACK_NS).then_some((by, at.min(publish.first_sent_ns)))
    }
}

/// Hands out what the windows of these connections let go. Of connections of nobody the acknowledgements are kept.
pub(crate) fn windows(
    counted: &mut [Counted],
    settings: &RunSettings,
    gateways: &mut OverOfGateways,
    mut take: impl FnMut(&Counted, Permitted) -> Result<()>,
) -> Result<()> {
    let ends = bring_together(counted, |one| one.connection.into());
    let mut ways: [[Vec<Counted>; 2]; 2] = Default::default();
    for connection in slices(counted, &ends) {
        ways.iter_mut().flatten().for_each(Vec::clear);
        for one in connection {
            ways[usize::from(one.to_broker)][usize::from(one.is_over)].push(*one);
        }
        for [publishes, over] in &mut ways {
            for one in [&mut *publishes, over] {
                // Most are in order.
                if !one.is_sorted_by_key(|one| (one.at, one.number)) {
                    one.sort_unstable_by_key(|one| (one.at, one.number));
                }
            }
            for (before, publish) in (0_u32..).zip(publishes.iter()) {
                if wide(publish.client) == ABSENT {
                    take(publish, Permitted::Place { before })?;
                    continue;
                }
                let Some(window) = publish.window(settings) else { continue };
                let Ok(nth) = usize::try_from(i64::from(before) - window) else { continue };
                let Some(over) = over.get(nth) else { continue };
                // One that came behind the sending let nothing go: the sender counts otherwise than is known.
                if publish.first_sent_ns != ABSENT && over.at <= publish.first_sent_ns + SLACK_NS {
                    let at = over.at.min(publish.first_sent_ns);
                    take(publish, Permitted::Window { by: over.number, at })?;
                }
            }
            if let Some(one) = publishes.first().filter(|one| wide(one.client) == ABSENT) {
                let times = over.iter().map(|over| (over.at, over.number)).collect();
                gateways.0.insert((one.to_broker, one.connection), times);
            }
        }
    }
    Ok(())
}

/// Hands out which PUBREL lets the receiver of each PUBLISH hand it on: the next one with its identifier.
pub(crate) fn releases(
    released: &mut [Released],
    mut take: impl FnMut(&Released, Permitted) -> Result<()>,
) -> Result<()> {
    // At one time the PUBLISH is before the PUBREL, which answers it through a PUBREC.
    released.sort_unstable_by_key(|one| (one.key(), one.complete_ns, one.is_release, one.number));
    let mut next: Option<&Released> = None;
    // From the end, so that the next PUBREL of a PUBLISH is the last one seen.
    for one in released.iter().rev() {
        if one.is_release {
            next = Some(one);
        } else if let Some(release) = next.filter(|release| release.key() == one.key()) {
            take(one, Permitted::Release { by: release.number, at: release.complete_ns })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_records_come_back() {
        let counted = Counted {
            number: 1,
            connection: u32::MAX,
            client: 2,
            publisher: u32::MAX,
            sequence: 3,
            to_broker: true,
            is_over: false,
            at: 7,
            first_sent_ns: ABSENT,
        };
        for one in [counted, Counted { to_broker: false, is_over: true, first_sent_ns: 0, ..counted }] {
            assert_eq!(format!("{:?}", Counted::of_fields(&one)), format!("{one:?}"));
        }
        let (by, at) = (u32::MAX, i64::MAX);
        for what in [
            Permitted::Window { by, at },
            Permitted::Place { before: 0 },
            Permitted::Release { by: 0, at: 0 },
        ] {
            let permit = Permit { number: u32::MAX, what };
            assert_eq!(Permit::of(&permit.fields()), permit);
        }
    }

    impl Counted {
        fn of_fields(one: &Counted) -> Counted {
            <Counted as Packed<COUNTED_FIELDS>>::of(&one.fields())
        }
    }

    #[test]
    fn a_publish_is_released_by_the_next_pubrel_of_its_identifier_or_by_none() {
        let one = Released {
            number: 0,
            whose: 1,
            packet_id: 5,
            publisher: 0,
            sequence: 0,
            to_broker: true,
            is_datagram: false,
            is_release: false,
            complete_ns: 10,
        };
        let release = |number, complete_ns| Released { number, complete_ns, is_release: true, ..one };
        let mut all = [
            Released { number: 9, complete_ns: 40, ..one },
            release(1, 9),
            one,
            release(3, 10),
            release(4, 10),
            Released { number: 2, packet_id: 6, ..one },
            release(7, 30),
            Released { number: 6, complete_ns: 11, ..one },
        ];
        let mut found = Vec::new();
        releases(&mut all, |one, what| {
            found.push((one.number, what));
            Ok(())
        })
        .unwrap();
        let permitted = |by, at| Permitted::Release { by, at };
        assert_eq!(found, [(6, permitted(7, 30)), (0, permitted(3, 10))]);
    }
}
