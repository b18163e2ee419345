//! A TCP stack: the plan's words for it, and the knobs of the machine.
//!
//! ```text
//!   TcpPlan   what a kernel can be told, too: each host of a plan has one  ─┐
//!                                                                           ├─► Profile   what an Endpoint reads
//!   Stack     behaviour that no kernel lets be set: by name in the plan    ─┘
//! ```
//!
//! Nothing in the machine asks for a stack's name.

use mqttlab_fields::{Maybe, PositiveShortTime, PositiveTime, Rules, Size, Table, fields, plain};
use mqttlab_units::{Duration, Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::congestion::{CongestionControl, WindowUnit};
use crate::memory::first_window;
use crate::timers::Granularity;

fields! {
    /// One host's TCP: a profile, and what differs from it. The same fields set the kernel's TCP in a live run and the
    /// simulator's. The defaults are those of Linux; a profile has others.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct TcpPlan with rules {
        /// Default values of the fields below; `mqttlab networks --tcp` lists the profiles. Simulated, it names the
        /// [`Stack`], too.
        profile: String = "linux".into(),
        /// Congestion control.
        congestion_control: CongestionControl = CongestionControl::Cubic,
        /// Selective acknowledgements (RFC 2018).
        sack: bool = true,
        /// Timestamps option (RFC 7323).
        timestamps: bool = true,
        /// Window scaling (RFC 7323).
        window_scaling: bool = true,
        /// Minimum retransmission timeout. On Linux it caps the delayed acknowledgement too.
        #[serde(rename = "rto_min_ns")]
        rto_min: Duration as PositiveShortTime [..=HOUR_NS] = Duration::from_ms(200),
        /// Maximum retransmission timeout.
        #[serde(rename = "rto_max_ns")]
        rto_max: Duration as PositiveTime [..=24 * HOUR_NS] = Duration::from_s(120),
        /// `false` acknowledges every segment at once (Linux: route option `quickack`).
        delayed_ack: bool = true,
        /// Longest delay of an acknowledgement; left out, the stack's own (Linux: 40 to 200 ms). Simulated stacks with a
        /// periodic timer for acknowledgements (netbsd-2005, microcontroller) use it as their period.
        #[serde(rename = "delayed_ack_max_ns")]
        delayed_ack_max: Option<Duration> as Maybe<PositiveShortTime> [..=HOUR_NS],
        /// Initial congestion window in segments.
        #[serde(rename = "initial_window_segments")]
        initial_window: u32 [1..=100] = 10,
        /// Largest segment offered to the peer, payload and options; left out, it follows from the MTU.
        #[serde(rename = "mss_bytes")]
        mss: Option<u32> as Maybe<Size<u32>> [88..=65_495],
        /// Send buffer; automatic when left out.
        #[serde(rename = "send_buffer_bytes")]
        send_buffer: Option<u32> as Maybe<Size<u32>> [2048..=BUFFER_BYTES_MAX],
        /// Receive buffer; automatic when left out.
        #[serde(rename = "receive_buffer_bytes")]
        receive_buffer: Option<u32> as Maybe<Size<u32>> [2048..=BUFFER_BYTES_MAX],
        /// Tail loss probes (RFC 8985); they need `sack`.
        tail_loss_probe: bool = true,
        /// Explicit congestion notification (RFC 3168), with hosts that have it, too. A queue marks frames instead of
        /// dropping them where its `discipline` has `ecn = true`. `netbsd-2005` is older than NetBSD's and refuses it.
        #[serde(default)]
        ecn: bool = false,
        /// Number of repetitions of a SYN.
        syn_retries: u32 [0..=127] = 6,
        /// Number of these repetitions that come every 1 s, before the interval doubles (Linux from 6.5 on: 4).
        syn_linear_retries: u32 [0..=127] = 4,
    }
}

impl Rules for TcpPlan {
    fn check(&mut self, _table: &Table) -> Result<(), String> {
        if self.rto_max < self.rto_min {
            let s = |time: Duration| plain(time.as_ns() as f64 / 1e9, 6);
            return Err(format!(
                "has a minimum retransmission timeout of {} s, but a maximum of {} s; raise `rto_max`, or lower `rto_min`",
                s(self.rto_min),
                s(self.rto_max)
            ));
        }
        Ok(())
    }
}

/// A stack's behaviour that no kernel lets be set. What a field means is said at the [`Profile`]'s of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Stack {
    #[serde(rename = "timestamp_tick_ns")]
    pub timestamp_tick: Duration,
    pub echoes_repetitions: bool,
    pub dsack: bool,
    pub limited_transmit: bool,
    pub fresh_is_no_duplicate: bool,
    pub rack: bool,
    pub rate_reduction: bool,
    pub undo: bool,
    pub window_unit: WindowUnit,
    pub slow_start_after_idle: bool,
    #[serde(rename = "rto_initial_ns")]
    pub rto_initial: Duration,
    pub rto_floor: RtoFloor,
    pub retries: u32,
    pub syn_echoes_latest: bool,
    pub delayed_ack: DelayedAck,
    pub nagle: Nagle,
    pub skb_coalescing: bool,
    pub truesize: bool,
    pub half_window_segments: bool,
    pub window_scale: u8,
    pub send_buffer_bytes: u32,
    pub send_buffer_bytes_max: u32,
    pub receive_buffer_bytes: u32,
    pub keep_alive: Option<KeepAlive>,
    #[serde(rename = "time_wait_ns")]
    pub time_wait: Duration,
    pub granularity: Granularity,
}

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
    /// How long after a tick of the host's timers the time begins ([`with_tick_phase`](Profile::with_tick_phase)).
    pub tick_phase: Duration,
    /// A repetition of what the last acknowledgement was about sets the timestamp to echo: Linux takes a segment that
    /// ends there for acceptable. The sender then measures the repetition's round trip, and does not take it for needless.
    /// What ends before is discarded, and with it the acknowledgement that it carries.
    pub echoes_repetitions: bool,
    /// Selective acknowledgements (RFC 2018) and recovery by them (RFC 6675).
    pub sack: bool,
    /// Says what came twice (D-SACK, RFC 2883); needs SACK.
    pub dsack: bool,
    /// New data on the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// A bare acknowledgement that is newer than the last window update is an update itself, and no duplicate (Linux): the first
    /// one after data from the peer does not count towards the three.
    pub fresh_is_no_duplicate: bool,
    /// Loss detection by time (RFC 8985 §6); needs SACK. Otherwise by three duplicates.
    pub rack: bool,
    /// Tail loss probes (RFC 8985 §7); needs SACK.
    pub tail_loss_probe: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Proportional rate reduction while recovering (RFC 6937); otherwise the window halves at once.
    pub rate_reduction: bool,
    /// Takes a reduction back when it was needless (RFC 4015), as timestamps (RFC 3522), D-SACKs (RFC 3708) or, after a timeout,
    /// F-RTO (RFC 5682) show it.
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
    /// The receive buffer counts the memory that segments take, not their bytes (`crate::memory`).
    pub truesize: bool,
    /// The send buffer does likewise (`crate::send_memory`).
    pub send_truesize: bool,
    /// Segments are no longer than half of the largest window that the peer has offered (Linux `tcp_bound_to_half_wnd`).
    pub half_window_segments: bool,
    /// Send buffer in bytes of payload, or of memory; before the handshake, where it grows.
    pub send_buffer: u32,
    /// The send buffer grows with the congestion window, up to so many bytes (`crate::send_memory`); `None`: it is fixed.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DelayedAck {
    /// Every segment at once.
    Off,
    /// Every second segment, or this long after the first (RFC 1122 §4.2.3.2, the BSDs, lwIP).
    EverySecond {
        /// The longest delay; with [`Granularity::FastSlow`] the acknowledgement leaves at the next tick of the fast timer.
        #[serde(rename = "timeout_ns")]
        timeout: Duration,
    },
    /// Linux: quick acknowledgements at the start, on the application's read in one-way streams, and delayed by an
    /// adapting timeout once the application answers what it receives ("ping-pong").
    Adaptive {
        /// Least delay (`TCP_DELACK_MIN`).
        #[serde(rename = "min_ns")]
        min: Duration,
        /// Greatest delay (`TCP_DELACK_MAX`, and the minimum RTO where that is less).
        #[serde(rename = "max_ns")]
        max: Duration,
    },
}

/// When a segment that is not full waits for acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nagle {
    /// Never (`TCP_NODELAY`).
    Off,
    /// While anything is unacknowledged (RFC 896).
    Classic,
    /// While another segment that was not full is unacknowledged (Minshall; Linux).
    Minshall,
}

/// Keep-alive probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepAlive {
    /// Silence before the first probe.
    #[serde(rename = "idle_ns")]
    pub idle: Duration,
    /// Time between probes.
    #[serde(rename = "interval_ns")]
    pub interval: Duration,
    /// Unanswered probes after which the connection is given up.
    pub probes: u32,
}

impl Profile {
    /// What a host's TCP is, on a device that carries IP packets of up to `mtu_bytes`. The congestion control must be
    /// [modelled](CongestionControl::is_modelled).
    /// Timers tick from the beginning of time on; see [`with_tick_phase`](Profile::with_tick_phase).
    pub fn new(plan: &TcpPlan, stack: &Stack, mtu_bytes: u32) -> Profile {
        // The length of an IPv4 packet has 16 bits, whatever a device would carry (RFC 791 §3.1).
        let largest = mtu_bytes.min(u16::MAX.into()).saturating_sub(HEADERS).clamp(1, u16::MAX.into());
        Profile {
            mss: plan.mss.unwrap_or(largest).min(largest) as u16,
            window_scale: plan.window_scaling.then_some(stack.window_scale),
            timestamps: plan.timestamps,
            timestamp_tick: stack.timestamp_tick,
            tick_phase: Duration::ZERO,
            echoes_repetitions: stack.echoes_repetitions,
            sack: plan.sack,
            dsack: stack.dsack,
            limited_transmit: stack.limited_transmit,
            fresh_is_no_duplicate: stack.fresh_is_no_duplicate,
            rack: stack.rack && plan.sack,
            tail_loss_probe: plan.tail_loss_probe && plan.sack,
            ecn: plan.ecn,
            rate_reduction: stack.rate_reduction,
            undo: stack.undo,
            congestion_control: plan.congestion_control,
            window_unit: stack.window_unit,
            initial_window: plan.initial_window,
            slow_start_after_idle: stack.slow_start_after_idle,
            rto: RtoPolicy {
                initial: stack.rto_initial,
                min: plan.rto_min,
                max: plan.rto_max,
                floor: stack.rto_floor,
            },
            retries: stack.retries,
            syn: SynPolicy {
                retries: plan.syn_retries,
                linear_retries: plan.syn_linear_retries,
                echoes_latest: stack.syn_echoes_latest,
            },
            delayed_ack: stack.delayed_ack.limited(plan),
            nagle: stack.nagle,
            skb_coalescing: stack.skb_coalescing,
            truesize: stack.truesize && plan.receive_buffer.is_some(),
            send_truesize: stack.truesize,
            half_window_segments: stack.half_window_segments,
            send_buffer: plan.send_buffer.unwrap_or(stack.send_buffer_bytes),
            // A buffer that is set is not tuned any more (Linux `SOCK_SNDBUF_LOCK`).
            send_buffer_max: plan.send_buffer.is_none().then_some(stack.send_buffer_bytes_max),
            receive_buffer: plan.receive_buffer.unwrap_or(stack.receive_buffer_bytes),
            keep_alive: stack.keep_alive,
            time_wait: stack.time_wait,
            granularity: match (plan.delayed_ack_max, stack.granularity) {
                // Such a stack has no timer for an acknowledgement, only a clock: the longest delay is its period.
                (Some(longest), Granularity::FastSlow { slow, .. }) => {
                    Granularity::FastSlow { fast: longest, slow }
                }
                (_, granularity) => granularity,
            },
        }
    }

    /// The same host, whose timer wheel ticks at a random phase: where a kernel's ticks lie to what its programs do is
    /// chance, and decides what of a cycle of delayed acknowledgements goes together. Stacks of one seed tick together,
    /// as the hosts of a live run do, which share a kernel. The clocks of other stacks are not moved.
    pub fn with_tick_phase(mut self, seed: Seed) -> Profile {
        if let Granularity::Wheel { tick } = self.granularity {
            // Long timers use every 8th, 64th, … tick: the phase covers four levels of the wheel.
            self.tick_phase = Duration::from_ns(seed.dice().below(tick.as_ns() * 8u64.pow(4)));
        }
        self
    }

    /// The window that a SYN offers, which is never scaled (RFC 7323 §2.2).
    pub(crate) fn first_window(&self, mss: u16) -> u64 {
        let buffer = u64::from(self.receive_buffer);
        let window = if self.truesize { first_window(buffer, mss.into()) } else { buffer };
        window.min(u16::MAX.into())
    }

    /// When a timer that is set now for `delay` fires.
    pub(crate) fn deadline(&self, now: Instant, delay: Duration) -> Instant {
        self.granularity.deadline(now + self.tick_phase, delay) - self.tick_phase
    }

    /// When a delayed acknowledgement that may wait for `delay` from now on leaves.
    pub(crate) fn ack_deadline(&self, now: Instant, delay: Duration) -> Instant {
        self.granularity.ack_deadline(now + self.tick_phase, delay) - self.tick_phase
    }
}

/// A number that a plan may not choose freely: field, value, least, greatest.
pub type Bound = (&'static str, u64, u64, u64);

impl Stack {
    /// What must lie within bounds.
    pub fn bounds(&self) -> impl Iterator<Item = Bound> {
        let keep_alive = self.keep_alive.unwrap_or(KeepAlive {
            idle: Duration::from_s(1),
            interval: Duration::from_s(1),
            probes: 1,
        });
        let (fast, slow, tick) = match self.granularity {
            Granularity::Exact => (0, 0, 1),
            Granularity::FastSlow { fast, slow } => (fast.as_ns(), slow.as_ns(), 1),
            Granularity::Wheel { tick } => (0, 0, tick.as_ns()),
        };
        let (least, longest) = match self.delayed_ack {
            DelayedAck::Off => (1, 1),
            DelayedAck::EverySecond { timeout } => (1, timeout.as_ns()),
            DelayedAck::Adaptive { min, max } => (min.as_ns(), max.as_ns()),
        };
        [
            ("timestamp_tick_ns", self.timestamp_tick.as_ns(), 1, HOUR_NS),
            ("rto_initial_ns", self.rto_initial.as_ns(), 1, HOUR_NS),
            ("retries", self.retries.into(), 0, 127),
            ("delayed_ack.min_ns", least, 1, HOUR_NS),
            ("delayed_ack.max_ns", longest, least, HOUR_NS),
            ("window_scale", self.window_scale.into(), 0, 14),
            ("send_buffer_bytes", self.send_buffer_bytes.into(), 2048, BUFFER_BYTES_MAX),
            ("send_buffer_bytes_max", self.send_buffer_bytes_max.into(), 2048, BUFFER_BYTES_MAX),
            ("receive_buffer_bytes", self.receive_buffer_bytes.into(), 2048, BUFFER_BYTES_MAX),
            ("keep_alive.idle_ns", keep_alive.idle.as_ns(), 1, 24 * HOUR_NS),
            ("keep_alive.interval_ns", keep_alive.interval.as_ns(), 1, 24 * HOUR_NS),
            ("keep_alive.probes", keep_alive.probes.into(), 1, 127),
            ("time_wait_ns", self.time_wait.as_ns(), 1, 24 * HOUR_NS),
            ("granularity.fast_ns", fast, 0, HOUR_NS),
            ("granularity.slow_ns", slow, 0, HOUR_NS),
            ("granularity.tick_ns", tick, 1, HOUR_NS),
        ]
        .into_iter()
    }
}

impl DelayedAck {
    /// A stack's policy, as far as the plan leaves it.
    fn limited(self, plan: &TcpPlan) -> DelayedAck {
        if !plan.delayed_ack {
            return DelayedAck::Off;
        }
        match (self, plan.delayed_ack_max) {
            (stack, None) => stack,
            (DelayedAck::Adaptive { min, .. }, Some(longest)) => {
                DelayedAck::Adaptive { min: min.min(longest), max: longest }
            }
            (DelayedAck::Off | DelayedAck::EverySecond { .. }, Some(longest)) => {
                DelayedAck::EverySecond { timeout: longest }
            }
        }
    }
}

/// IPv4 and TCP without options (RFC 6691).
const HEADERS: u32 = 40;
const HOUR_NS: u64 = 3_600_000_000_000;
const BUFFER_BYTES_MAX: u64 = 1 << 26;

#[cfg(test)]
impl Profile {
    /// A stack as the Python package declares it, on Ethernet.
    pub(crate) fn named(name: &str) -> Profile {
        let stacks: std::collections::BTreeMap<String, (TcpPlan, Stack)> =
            serde_json::from_str(include_str!("../tests/stacks.json")).expect("stacks as the plan has them");
        let (plan, stack) = &stacks[name];
        Profile::new(plan, stack, 1500)
    }
}
