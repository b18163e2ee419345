//! Messages as logs and tables tell them: who offered what, and who got it when.

use std::collections::BTreeMap;
use std::sync::Arc;

use mqttlab_recording::{Ending, Identified, Layout, NumberMap, Received, Sent, Unsent};
use mqttlab_units::Instant;
use serde_json::json;

use super::clock::CaptureClock;
use super::error::Result;
use super::options::ImportOrder;
use super::output::{Findings, ImportOutput};
use super::participants::Participants;
use super::plan::Facts;
use super::progress::ProgressWatch;
use super::servers::ObservedServers;
use super::subscriptions::ObservedSubscriptions;

/// Everything that the evidence tells. Times are since 1970, or since whatever the evidence counts from.
#[derive(Default)]
pub struct Timeline {
    /// Who takes part.
    pub participants: Participants,
    /// Messages, in any order.
    pub offers: Vec<Offer>,
    /// Deliveries, in any order.
    pub receipts: Vec<LoggedReceipt>,
    /// What is said about the evidence.
    pub findings: Findings,
}

/// A message that was to be sent.
pub struct Offer {
    /// The publishing client.
    pub publisher: u32,
    /// Its topic.
    pub topic: Arc<str>,
    /// Quality of service.
    pub qos: u8,
    /// Size of the application message.
    pub payload_bytes: u32,
    /// When it was wanted sent.
    pub intended: Instant,
    /// When it was; `None` when it never was.
    pub sent: Option<Instant>,
    /// Who should receive it.
    pub receivers: Vec<u32>,
}

/// A delivery.
pub struct LoggedReceipt {
    /// Which of the offers; `None` when that is not known.
    pub offer: Option<usize>,
    /// The receiving client.
    pub subscriber: u32,
    /// Quality of service.
    pub qos: u8,
    /// Size of the application message.
    pub payload_bytes: u32,
    /// When it was received.
    pub received: Instant,
}

impl Timeline {
    /// Writes it down, for who watched how it was read.
    pub fn write(mut self, order: &ImportOrder, watch: ProgressWatch<'_>) -> Result<Ending> {
        let (start, end) = self.span();
        let length_ns = end.as_ns().saturating_sub(start.as_ns());
        let observer = watch.end(Instant::from_ns(length_ns));
        self.warn_of_clocks();
        let clock = CaptureClock::starting(start);
        let mut output = ImportOutput::open(order, clock)?;
        let sequences = self.sequences();
        let mut subscriptions = ObservedSubscriptions::default();
        for (offer, &sequence) in self.offers.iter_mut().zip(&sequences) {
            let topic = subscriptions.topic_for(&offer.topic, std::mem::take(&mut offer.receivers), 0);
            write_offer(&mut output, offer, sequence, topic, clock)?;
        }
        // Who came first decides what is out of order.
        self.receipts.sort_by_key(|receipt| receipt.received);
        for receipt in &self.receipts {
            let offer = receipt.offer.map(|offer| (self.offers[offer].publisher, sequences[offer]));
            output.recorder.received(&Received {
                subscriber: receipt.subscriber,
                publisher: offer.map(|(publisher, _)| publisher),
                sequence: offer.map_or(0, |(_, sequence)| sequence),
                qos: receipt.qos,
                dup: false,
                retained: false,
                payload_bytes: receipt.payload_bytes,
                received: clock.at(receipt.received),
                identified: if offer.is_some() { Identified::Payload } else { Identified::Unknown },
            })?;
        }
        let facts = Facts {
            length_ns: length_ns.max(1),
            broker: "not recorded".into(),
            broker_port: None,
            broker_ports: Vec::new(),
            gateways: Vec::new(),
            gateway_ports: Vec::new(),
            network: "not recorded".into(),
        };
        let told = json!({"messages": self.offers.len(), "deliveries": self.receipts.len()});
        let details = BTreeMap::from([("import".into(), told)]);
        let (topics, receivers) = subscriptions.into_layout(&ObservedServers::default());
        let (hosts, clients) = (self.participants.hosts().to_vec(), self.participants.clients().to_vec());
        let layout = Layout { hosts, clients, topics, receivers, ..Layout::default() };
        output.close(layout, &facts, self.findings, details, observer)
    }

    /// No message arrives before it is sent, unless two clocks say so.
    fn warn_of_clocks(&mut self) {
        let early = |receipt: &&LoggedReceipt| {
            receipt.offer.is_some_and(|offer| receipt.received < self.offers[offer].intended)
        };
        let count = self.receipts.iter().filter(early).count();
        if count > 0 {
            self.findings.reasons.push(format!(
                "{count} deliveries are earlier than the sending of their messages: the clocks differ. They have no \
                 latency, and the others are off by the same difference."
            ));
        }
    }

    /// The first and the last thing that happened.
    fn span(&self) -> (Instant, Instant) {
        let offers = self.offers.iter().flat_map(|offer| [Some(offer.intended), offer.sent]).flatten();
        let times = || offers.clone().chain(self.receipts.iter().map(|receipt| receipt.received));
        (times().min().unwrap_or_default(), times().max().unwrap_or_default())
    }

    /// Each offer's place among those of its publisher, by intended time.
    fn sequences(&self) -> Vec<u32> {
        let mut in_order: Vec<usize> = (0..self.offers.len()).collect();
        in_order.sort_by_key(|&offer| self.offers[offer].intended);
        let mut counts: NumberMap<u32, u32> = NumberMap::default();
        let mut sequences = vec![0; self.offers.len()];
        for offer in in_order {
            let count = counts.entry(self.offers[offer].publisher).or_default();
            sequences[offer] = *count;
            *count += 1;
        }
        sequences
    }
}

fn write_offer(
    output: &mut ImportOutput<'_>,
    offer: &Offer,
    sequence: u32,
    topic: u32,
    clock: CaptureClock,
) -> Result<()> {
    let Offer { publisher, qos, payload_bytes, .. } = *offer;
    let intended = clock.at(offer.intended);
    match offer.sent {
        Some(sent) => output.recorder.sent(&Sent {
            publisher,
            sequence,
            topic,
            qos,
            retain: false,
            payload_bytes,
            intended,
            sent: clock.at(sent),
            written: None,
            publication: None,
        })?,
        None => {
            output.recorder.unsent(&Unsent {
                publisher,
                sequence,
                topic,
                qos,
                payload_bytes,
                intended,
                publication: None,
            })?;
        }
    }
    Ok(())
}
