//! What a link is, as a plan says it.

use mqttlab_units::{BitRate, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Unique; random streams are derived from it.
    pub name: String,
    /// Bits per second; `null` for a link that takes no time to send.
    pub rate_bit_s: Option<BitRate>,
    /// Added to every frame's IP packet: 14 for an Ethernet header, 38 with preamble, check sequence and gap.
    pub overhead_bytes: u32,
    /// Shorter frames are padded to this.
    pub minimum_frame_bytes: u32,
    /// What waits.
    pub queue: QueueSpec,
    /// What propagation takes.
    pub delay: DelaySpec,
    /// What is lost.
    pub loss: LossSpec,
    /// Whether a lost frame uses the link's time.
    pub loss_at: LossPlace,
    /// Chance that a frame arrives twice.
    pub duplication: Ratio,
    /// Chance that one bit of a frame is flipped.
    pub corruption: Ratio,
    /// Frames that overtake.
    pub reordering: ReorderSpec,
    /// What is dropped before the queue because it comes too fast; `null` for nothing.
    #[serde(default)]
    pub policer: Option<PolicerSpec>,
}

/// A token bucket without a queue: frames that exceed it are dropped (RFC 2697 with an excess burst of 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Bits per second that may pass for ever.
    pub rate_bit_s: BitRate,
    /// Bytes that may pass at once, as the link counts them.
    pub burst_bytes: u64,
}

/// Limits of the queue; a frame that exceeds one is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Frames waiting or in service; `null` for no limit.
    pub limit_packets: Option<u32>,
    /// Bytes waiting or in service; `null` for no limit.
    pub limit_bytes: Option<u64>,
    /// Frames that propagate count too, as in netem.
    pub counts_delay_line: bool,
    /// Which frame leaves next, and which is dropped.
    #[serde(default)]
    pub discipline: Discipline,
}

/// Which frame leaves a queue next, and which is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Discipline {
    /// First in, first out; a frame that finds no room is dropped.
    #[default]
    TailDrop,
    /// First in, first out; frames at the head are dropped while all stay too long (RFC 8289).
    Codel {
        /// How long a frame may stay.
        #[serde(rename = "target_ns")]
        target: Duration,
        /// For how long frames stay too long before one is dropped: about a round trip.
        #[serde(rename = "interval_ns")]
        interval: Duration,
        /// Nothing is dropped while no more than this waits: the largest frame.
        largest_frame_bytes: u32,
        /// A frame of an ECN-capable transport is marked instead of dropped (RFC 3168 §5).
        #[serde(default)]
        ecn: bool,
    },
    /// A queue for each flow, served in turns, each under CoDel (RFC 8290).
    FqCodel {
        /// How long a frame may stay.
        #[serde(rename = "target_ns")]
        target: Duration,
        /// For how long frames stay too long before one is dropped: about a round trip.
        #[serde(rename = "interval_ns")]
        interval: Duration,
        /// Nothing is dropped while no more than this waits: the largest frame.
        largest_frame_bytes: u32,
        /// A frame of an ECN-capable transport is marked instead of dropped (RFC 3168 §5).
        #[serde(default)]
        ecn: bool,
        /// Queues that flows are spread over.
        flows: u32,
        /// Bytes that a queue sends in its turn.
        quantum_bytes: u32,
    },
}

/// Propagation delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySpec {
    /// Its law.
    pub law: DelayLaw,
    /// Mean.
    #[serde(rename = "mean_ns")]
    pub mean: Duration,
    /// Standard deviation; half the width of a uniform delay.
    #[serde(rename = "jitter_ns")]
    pub jitter: Duration,
    /// Correlation of neighbours.
    pub correlation: Ratio,
    /// A frame never overtakes another.
    pub keep_order: bool,
}

impl DelaySpec {
    /// Whether every frame propagates for just as long.
    pub(crate) fn is_constant(&self) -> bool {
        self.law == DelayLaw::Constant || self.jitter.is_zero()
    }
}

/// Laws of delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayLaw {
    /// Always the mean.
    Constant,
    /// Evenly within mean ± jitter.
    Uniform,
    /// Normal.
    Normal,
    /// Pareto, as netem's table.
    Pareto,
    /// A quarter normal, three quarters Pareto, as netem's table.
    Paretonormal,
}

/// Loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossSpec {
    /// None.
    None,
    /// Independent.
    Bernoulli {
        /// Chance of each frame.
        probability: Ratio,
    },
    /// Gilbert and Elliott's chain, one step a frame.
    GilbertElliott {
        /// Good to bad.
        good_to_bad: Ratio,
        /// Bad to good.
        bad_to_good: Ratio,
        /// Chance of loss in the good state.
        loss_good: Ratio,
        /// Chance of loss in the bad state.
        loss_bad: Ratio,
    },
    /// Gilbert and Elliott's chain, one step a bit.
    BitGilbertElliott {
        /// Good to bad, per bit.
        good_to_bad: Ratio,
        /// Bad to bad, per bit.
        bad_to_bad: Ratio,
        /// Bit error ratio in the good state.
        error_good: Ratio,
        /// Bit error ratio in the bad state.
        error_bad: Ratio,
    },
}

/// Where loss happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossPlace {
    /// Before the queue: lost frames take no time (netem).
    Entry,
    /// On the air: lost frames take their time.
    Exit,
}

/// Netem's reordering: every `gap`-th frame is sent at once with this probability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// Chance to overtake.
    pub probability: Ratio,
    /// Candidates are every `gap`-th frame; 1 for every frame.
    pub gap: u32,
}
