//! What one TCP does differently from another, as a plain struct of knobs.
//!
//! A profile is a starting point: every field may be overridden before the endpoint is made. Nothing in the
//! machine asks for a profile's name.

use mqttlab_units::Duration;

use crate::congestion::{CongestionControl, WindowUnit};
use crate::timers::Granularity;

/// All knobs of an endpoint. Share one among many endpoints by `Arc`.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Largest segment offered to the peer and sent, in bytes of payload *and* options (RFC 6691).
    pub mss: u16,
    /// Window scaling (RFC 7323 §2): the shift offered; `None` to not offer it.
    pub window_scale: Option<u8>,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// One tick of the timestamp clock.
    pub timestamp_tick: Duration,
    /// A repetition of what the last acknowledgement was about sets the timestamp to echo: Linux takes a segment that
    /// ends there for acceptable. The sender then measures the repetition's round trip, and does not take it for needless.
    pub echoes_repetitions: bool,
    /// Selective acknowledgements (RFC 2018) and recovery by them (RFC 6675).
    pub sack: bool,
    /// Says what came twice (D-SACK, RFC 2883); needs SACK.
    pub dsack: bool,
    /// New data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Loss detection by time (RFC 8985 §6); needs SACK. Otherwise by three duplicates.
    pub rack: bool,
    /// Tail loss probes (RFC 8985 §7); needs SACK.
    pub tail_loss_probe: bool,
    /// Proportional rate reduction while recovering (RFC 6937); otherwise the window halves at once.
    pub rate_reduction: bool,
    /// Takes a reduction back when timestamps show that the retransmission was needless (RFC 3522, RFC 4015).
    pub undo: bool,
    /// Congestion control.
    pub congestion_control: CongestionControl,
    /// What the congestion window counts.
    pub window_unit: WindowUnit,
    /// Initial congestion window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// The congestion window decays while the connection is idle (RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// Retransmission timeout.
    pub rto: RtoPolicy,
    /// Retransmission timeouts in a row after which the connection is given up.
    pub retries: u32,
    /// Repetition of SYN and SYN-ACK.
    pub syn: SynPolicy,
    /// Delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// Nagle's algorithm.
    pub nagle: Nagle,
    /// Writes are coalesced into skbs as in Linux, which limits what Nagle's algorithm holds back.
    pub skb_coalescing: bool,
    /// Send buffer in bytes of payload.
    pub send_buffer: u32,
    /// The send buffer grows with the congestion window, to twice its bytes, up to this many; `None`: it is fixed.
    pub send_buffer_max: Option<u32>,
    /// Receive buffer in bytes of payload: the largest window ever advertised.
    pub receive_buffer: u32,
    /// Keep-alive probes (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// How long TIME-WAIT lasts (RFC 9293: 2 MSL), and FIN-WAIT-2 after a full close.
    pub time_wait: Duration,
    /// When timers can fire.
    pub granularity: Granularity,
}

/// The retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoPolicy {
    /// Before the first measurement.
    pub initial: Duration,
    /// Lower bound.
    pub min: Duration,
    /// Upper bound, also of the backed-off timeout.
    pub max: Duration,
    /// What the lower bound bounds.
    pub floor: RtoFloor,
}

/// What the minimum RTO bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoFloor {
    /// The timeout as a whole (RFC 6298 §2.4).
    Timeout,
    /// The variance's share of it, so that RTO ≥ SRTT + minimum; the variance is that of the worst sample of a
    /// window (Linux `tcp_rtt_estimator`).
    Variance,
}

/// How SYNs are repeated. The interval is the initial RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynPolicy {
    /// How often at most, not counting the linear ones, as Linux does.
    pub retries: u32,
    /// How many repetitions of a SYN come before the interval starts to double (Linux from 6.5 on: 4; before: 0).
    /// A SYN-ACK always doubles.
    pub linear_retries: u32,
    /// A SYN-ACK that answers a repeated SYN echoes that one's timestamp (NetBSD's SYN cache, lwIP), not the first
    /// one's (Linux). The latter makes the client's first round trip as long as the loss, and its timeouts with it.
    pub echoes_latest: bool,
}

/// When received data is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment at once.
    Off,
    /// Every second segment, or this long after the first (RFC 1122 §4.2.3.2, the BSDs, lwIP).
    EverySecond {
        /// The longest delay; with [`Granularity::FastSlow`] the acknowledgement leaves at the next tick of the fast timer.
        timeout: Duration,
    },
    /// Linux: quick acknowledgements at the start, on the application's read in one-way streams, and delayed by an
    /// adapting timeout once the application answers what it receives ("ping-pong").
    Adaptive {
        /// Least delay (`TCP_DELACK_MIN`).
        min: Duration,
        /// Greatest delay (`TCP_DELACK_MAX`, and the minimum RTO where that is less).
        max: Duration,
    },
}

/// When a segment that is not full waits for acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Never (`TCP_NODELAY`).
    Off,
    /// While anything is unacknowledged (RFC 896).
    Classic,
    /// While another segment that was not full is unacknowledged (Minshall; Linux).
    Minshall,
}

/// Keep-alive probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is given up.
    pub probes: u32,
}

impl Profile {
    /// Linux 6.x with CUBIC. Buffers stand for automatic tuning that has settled.
    pub fn linux() -> Profile {
        Profile {
            mss: 1460,
            window_scale: Some(7),
            timestamps: true,
            timestamp_tick: Duration::from_ms(1),
            echoes_repetitions: true,
            sack: true,
            dsack: true,
            limited_transmit: true,
            rack: true,
            tail_loss_probe: true,
            rate_reduction: true,
            undo: true,
            congestion_control: CongestionControl::Cubic,
            window_unit: WindowUnit::Segments,
            initial_window: 10,
            slow_start_after_idle: true,
            rto: RtoPolicy {
                initial: Duration::from_s(1),
                min: Duration::from_ms(200),
                max: Duration::from_s(120),
                floor: RtoFloor::Variance,
            },
            retries: 15,
            syn: SynPolicy { retries: 6, linear_retries: 4, echoes_latest: false },
            delayed_ack: DelayedAck::Adaptive { min: Duration::from_ms(40), max: Duration::from_ms(200) },
            nagle: Nagle::Minshall,
            skb_coalescing: true,
            send_buffer: 46_080,
            send_buffer_max: Some(4 << 20),
            receive_buffer: 3 << 20,
            keep_alive: None,
            time_wait: Duration::from_s(60),
            granularity: Granularity::Wheel { tick: Duration::from_ms(4) },
        }
    }

    /// NetBSD as perez2005 ran it: NewReno without SACK, MSS 536, buffers of 32 segments, minimum RTO 30 ms,
    /// acknowledgements delayed to the next tick of a 200 ms timer. Timestamps are on; the study has both.
    pub fn netbsd_2005() -> Profile {
        Profile {
            mss: 536,
            window_scale: None,
            // A minimum RTO of 30 ms needs a clock that is finer than that release's of 500 ms.
            timestamp_tick: Duration::from_ms(1),
            echoes_repetitions: false,
            sack: false,
            dsack: false,
            rack: false,
            tail_loss_probe: false,
            rate_reduction: false,
            undo: false,
            skb_coalescing: false,
            limited_transmit: false,
            congestion_control: CongestionControl::NewReno,
            window_unit: WindowUnit::Bytes,
            initial_window: 2,
            rto: RtoPolicy {
                initial: Duration::from_s(3),
                min: Duration::from_ms(30),
                max: Duration::from_s(64),
                floor: RtoFloor::Timeout,
            },
            retries: 12,
            syn: SynPolicy { retries: 4, linear_retries: 0, echoes_latest: true },
            delayed_ack: DelayedAck::EverySecond { timeout: Duration::from_ms(200) },
            nagle: Nagle::Classic,
            send_buffer: 32 * 536,
            send_buffer_max: None,
            receive_buffer: 32 * 536,
            granularity: Granularity::FastSlow { fast: Duration::from_ms(200), slow: Duration::ZERO },
            ..Profile::linux()
        }
    }

    /// A microcontroller's stack after lwIP's defaults for the ESP8266: MSS 536, send buffer 2 MSS, window 4 MSS,
    /// timers on 250 ms and 500 ms ticks, no SACK and no timestamps.
    pub fn microcontroller() -> Profile {
        Profile {
            timestamps: false,
            initial_window: 4,
            slow_start_after_idle: false,
            rto: RtoPolicy {
                initial: Duration::from_s(3),
                min: Duration::from_ms(500),
                max: Duration::from_s(64),
                floor: RtoFloor::Timeout,
            },
            syn: SynPolicy { retries: 6, linear_retries: 0, echoes_latest: true },
            delayed_ack: DelayedAck::EverySecond { timeout: Duration::from_ms(250) },
            send_buffer: 2 * 536,
            receive_buffer: 4 * 536,
            time_wait: Duration::from_s(120),
            granularity: Granularity::FastSlow { fast: Duration::from_ms(250), slow: Duration::from_ms(500) },
            ..Profile::netbsd_2005()
        }
    }

    /// The profile of this name in a plan: `linux`, `netbsd-2005` or `microcontroller`.
    pub fn named(name: &str) -> Option<Profile> {
        match name {
            "linux" => Some(Profile::linux()),
            "netbsd-2005" => Some(Profile::netbsd_2005()),
            "microcontroller" => Some(Profile::microcontroller()),
            _ => None,
        }
    }
}
