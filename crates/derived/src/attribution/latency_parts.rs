//! The parts of a delivery's latency, in the order in which they pass.

use std::ops::{AddAssign, Index, IndexMut};

use mqttlab_units::words;

words! {
    /// A part, as the columns of `attribution` name it, which say what each is.
    pub(crate) enum LatencyPart {
        Schedule = "schedule_ns" {
            title: "schedule",
            share: "waiting to be sent: the client was late",
        },
        Session = "session_ns" {
            title: "session",
            share: "waiting in the sender's session",
            source: "MQTT 5, 4.9",
        },
        Sleep = "sleep_ns" {
            title: "sleep",
            share: "waiting for a sleeping client",
            source: "MQTT-SN 1.2, 6.14",
        },
        Register = "register_ns" {
            title: "register",
            share: "registering the topic",
            source: "MQTT-SN 1.2, 6.5",
        },
        SenderNagle = "sender_nagle_ns" {
            title: "sender Nagle",
            share: "held by Nagle's algorithm at the sender",
            source: "RFC 896; RFC 1122, 4.2.3.4",
        },
        SenderSocket = "sender_socket_ns" {
            title: "sender socket",
            share: "waiting in the sender's socket",
            source: "RFC 5681",
        },
        Retry = "retry_ns" {
            title: "retry",
            share: "waiting for a repeated datagram",
            source: "MQTT-SN 1.2, 6.13",
        },
        QueueToBroker = "queue_to_broker_ns" {
            title: "queue up",
            share: "queueing on the way to the broker",
        },
        WireToBroker = "wire_to_broker_ns" {
            title: "wire up",
            share: "on the wire to the broker",
        },
        RetransmissionToBroker = "retransmission_to_broker_ns" {
            title: "lost up",
            share: "waiting for a repeated segment to the broker",
            source: "RFC 6298; RFC 9293, 3.8",
        },
        Gateway = "gateway_ns" {
            title: "gateway",
            share: "inside the gateway",
        },
        Handshake = "handshake_ns" {
            title: "handshake",
            share: "in the QoS 2 handshake with the broker",
            source: "MQTT 5, 4.3.3",
        },
        Undivided = "undivided_ns" {
            title: "network and broker",
            share: "in network and broker, not recorded apart",
        },
        Broker = "broker_ns" {
            title: "broker",
            share: "inside the broker",
        },
        BrokerWindow = "broker_window_ns" {
            title: "broker window",
            share: "waiting for the broker's in-flight window",
            source: "MQTT 5, 4.9",
        },
        BrokerNagle = "broker_nagle_ns" {
            title: "broker Nagle",
            share: "held by Nagle's algorithm at the broker",
            source: "RFC 896; RFC 1122, 4.2.3.4",
        },
        BrokerSocket = "broker_socket_ns" {
            title: "broker socket",
            share: "waiting in the broker's socket",
            source: "RFC 5681",
        },
        QueueToSubscriber = "queue_to_subscriber_ns" {
            title: "queue down",
            share: "queueing on the way to the subscriber",
        },
        WireToSubscriber = "wire_to_subscriber_ns" {
            title: "wire down",
            share: "on the wire to the subscriber",
        },
        RetransmissionToSubscriber = "retransmission_to_subscriber_ns" {
            title: "lost down",
            share: "waiting for a repeated segment to the subscriber",
            source: "RFC 6298; RFC 9293, 3.8",
        },
        Release = "release_ns" {
            title: "release",
            share: "in the QoS 2 handshake with the subscriber",
            source: "MQTT 5, 4.3.3",
        },
        Delivery = "delivery_ns" {
            title: "delivery",
            share: "inside the subscriber's host",
        },
        // What the recording names beside packets and frames: these take their time of the others (`holds`).
        SenderUnconnected = "sender_unconnected_ns" {
            title: "sender unconnected",
            share: "waiting for the sender to be connected",
        },
        LinkDown = "link_down_ns" {
            title: "link down",
            share: "waiting for a link that an event had taken down",
        },
        NatForgot = "nat_forgot_ns" {
            title: "NAT forgot",
            share: "waiting on a connection that a NAT had forgotten",
        },
        BrokerPaused = "broker_paused_ns" {
            title: "broker paused",
            share: "waiting for the broker, which an event had paused",
        },
        SubscriberUnconnected = "subscriber_unconnected_ns" {
            title: "subscriber unconnected",
            share: "waiting at the broker for the subscriber to be connected",
        },
        ReaderStopped = "reader_stopped_ns" {
            title: "reader stopped",
            share: "waiting for the subscriber, which an event had stop reading",
        },
    }
}

/// Nanoseconds of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LatencyParts([i64; LatencyPart::ALL.len()]);

impl Index<LatencyPart> for LatencyParts {
    type Output = i64;

    fn index(&self, part: LatencyPart) -> &i64 {
        &self.0[part as usize]
    }
}

impl IndexMut<LatencyPart> for LatencyParts {
    fn index_mut(&mut self, part: LatencyPart) -> &mut i64 {
        &mut self.0[part as usize]
    }
}

impl AddAssign for LatencyParts {
    fn add_assign(&mut self, other: LatencyParts) {
        self.0.iter_mut().zip(other.0).for_each(|(part, more)| *part += more);
    }
}
