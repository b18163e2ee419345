//! What a link is: as a scenario writes it, and as a plan says it.

use std::borrow::Cow;

use mqttlab_fields::{
    AsPart, DataRate, Delay, Entry, FieldDeclaration, Flat, Maybe, Node, PositiveShortTime, Reader, Rule,
    Rules, Shape, Size, Table, Unread, fields, words,
};
use mqttlab_units::{BitRate, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fields! {
    /// One direction of a link.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct LinkSpec {
        /// Unique; random streams are derived from it.
        name: String as Unread<String>,
        /// Data rate; leave it out for a link without transmission time.
        rate_bit_s / "rate": Option<BitRate> as Maybe<DataRate>,
        /// Added to each IP packet: 14 B for an Ethernet header, 38 B with Ethernet's check sequence, preamble and gap.
        overhead_bytes / "overhead": u32 as Size<u32> [..=65_535] = 0,
        /// Shorter frames are padded to this.
        minimum_frame_bytes / "minimum_frame": u32 as Size<u32> [..=65_535] = 0,
        /// What waits.
        queue: QueueSpec as Flat<QueueSpec>,
        /// What propagation takes.
        delay: DelaySpec as Flat<DelaySpec>,
        /// What is lost.
        loss: LossSpec as OneLoss,
        /// Whether a lost frame uses the link's time.
        loss_at: LossPlace = LossPlace::Exit,
        /// Probability that a frame arrives twice.
        duplication / "duplicate": Ratio = Ratio::ZERO,
        /// Probability that one bit of a frame is flipped.
        corruption / "corrupt": Ratio = Ratio::ZERO,
        /// Reordering of frames.
        reordering / "reorder": ReorderSpec = ReorderSpec { probability: Ratio::ZERO, gap: 1 },
        /// Drops what comes faster than its `rate`, but for bursts: a token bucket before the queue, such as
        /// `{ rate = "1 Mbit/s", burst = "15 kB" }` (RFC 2697, `tc-police`).
        #[serde(default)]
        policer: Option<PolicerSpec>,
    }
}

impl LinkSpec {
    /// The bytes that the link counts for the largest IP packet.
    pub fn largest_frame_bytes(&self, mtu_bytes: u32) -> u32 {
        (mtu_bytes + self.overhead_bytes).max(self.minimum_frame_bytes)
    }
}

fields! {
    /// A token bucket without a queue: frames that exceed it are dropped (RFC 2697 with an excess burst of 0).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct PolicerSpec {
        /// Data rate that may pass for ever.
        rate_bit_s / "rate": BitRate as DataRate,
        /// Bytes that may pass at once after a silence, with the link's `overhead`; room for one packet at least.
        burst_bytes / "burst": u64 as Size [1..=1_000_000_000],
    }
}

fields! {
    /// Limits of the queue; a frame that exceeds one is dropped.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct QueueSpec {
        /// Frames waiting or in service; `null` for no limit.
        limit_packets: Option<u32> as Unread<Option<u32>>,
        /// Bytes waiting or in service; `null` for no limit.
        limit_bytes: Option<u64> as Unread<Option<u64>>,
        /// Frames that propagate count as waiting, as in netem. With `loss_at = "exit"` lost frames do, too.
        counts_delay_line / "queue_counts_delay_line": bool = false,
        /// Which frame leaves next, and which is dropped.
        #[serde(default)]
        discipline: Discipline as Unread<Discipline>,
    }
}

words! {
    /// Disciplines of queues.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DisciplineKind {
        /// A frame that finds no room is dropped.
        TailDrop = "tail-drop" | "droptail" | "tail drop" | "taildrop" | "tail_drop" | "fifo" | "pfifo" | "bfifo",
        /// Frames at the head are dropped while all stay too long (RFC 8289).
        Codel = "codel",
        /// A queue for each direction of a connection, served in turns, each under CoDel (RFC 8290).
        FqCodel = "fq-codel" | "fq_codel" | "fqcodel" | "fq codel",
    }
}

fields! {
    /// Which frame leaves a queue next, and which is dropped, as a scenario writes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct QueueDiscipline with rules {
        /// `tail-drop`: a frame that finds no room; `codel`: frames at the head while all stay too long (RFC 8289);
        /// `fq-codel`: a queue for each direction of a connection, served in turns, each under CoDel (RFC 8290).
        kind: DisciplineKind,
        /// CoDel drops nothing while a frame stays for less; on a slow link not below the time of one packet.
        target: Duration as PositiveShortTime [1_000..=HOUR_NS] = Duration::from_ms(5),
        /// CoDel drops nothing before frames have stayed too long for this time: about the longest usual round trip.
        interval: Duration as PositiveShortTime [1_000..=HOUR_NS] = Duration::from_ms(100),
        /// Queues that `fq-codel` spreads connections over.
        flows: u32 [1..=65_536] = 1_024,
        /// Bytes that a queue of `fq-codel` sends in its turn; the largest frame when left out.
        quantum: Option<u32> as Maybe<Size<u32>> [64..=10_000_000],
        /// CoDel marks frames of hosts with `tcp = { ecn = true }` instead of dropping them (RFC 3168). What finds no
        /// room is dropped all the same.
        ecn: bool = false,
    }
}

impl Rules for QueueDiscipline {
    fn before<'n>(node: &'n Node, _reader: &mut Reader) -> Result<Cow<'n, Node>, String> {
        let is_short = node.as_text().is_some();
        Ok(if is_short { Cow::Owned(node.short_for("kind", node.clone())) } else { Cow::Borrowed(node) })
    }

    fn short_form() -> Option<Shape> {
        Some(<DisciplineKind as mqttlab_fields::Field>::Rule::shape())
    }

    fn check(&mut self, table: &Table) -> Result<(), String> {
        use mqttlab_fields::Words;
        let goes = |names: &[&'static str], with: &str, holds: bool| {
            let wrong = names.iter().find(|name| !holds && table.has(name));
            wrong.map_or(Ok(()), |name| {
                let kind = self.kind.word();
                Err(format!("is \"{kind}\", but has `{name}`, which goes with {with}; leave it out"))
            })
        };
        let is_codel = self.kind != DisciplineKind::TailDrop;
        goes(&["target", "interval"], "\"codel\" and \"fq-codel\"", is_codel)?;
        goes(&["flows", "quantum"], "\"fq-codel\"", self.kind == DisciplineKind::FqCodel)?;
        goes(&["ecn"], "\"codel\" and \"fq-codel\"", is_codel)?;
        if self.target > self.interval {
            let ms = |time: Duration| mqttlab_fields::plain(time.as_ns() as f64 / 1e6, 6);
            return Err(format!(
                "has a `target` of {} ms, longer than its `interval` of {} ms; use a shorter `target` or a longer \
                 `interval`",
                ms(self.target),
                ms(self.interval)
            ));
        }
        Ok(())
    }
}

impl QueueDiscipline {
    /// What a link drops by whose room does not matter: first in, first out.
    pub const TAIL_DROP: QueueDiscipline = QueueDiscipline {
        kind: DisciplineKind::TailDrop,
        target: Duration::from_ms(5),
        interval: Duration::from_ms(100),
        flows: 1_024,
        quantum: None,
        ecn: false,
    };

    /// As a plan has it, on a link with frames up to this size.
    pub fn spec(&self, largest_frame_bytes: u32) -> Discipline {
        let QueueDiscipline { kind, target, interval, flows, quantum, ecn } = *self;
        match kind {
            DisciplineKind::TailDrop => Discipline::TailDrop,
            DisciplineKind::Codel => Discipline::Codel { target, interval, largest_frame_bytes, ecn },
            DisciplineKind::FqCodel => Discipline::FqCodel {
                target,
                interval,
                largest_frame_bytes,
                ecn,
                flows,
                quantum_bytes: quantum.unwrap_or(largest_frame_bytes.max(64)),
            },
        }
    }
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

fields! {
    /// Propagation delay.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct DelaySpec with rules {
        /// Distribution of the delay; default `normal` with a jitter, `constant` without.
        law / "distribution": DelayLaw = DelayLaw::Constant,
        /// Propagation delay; its mean where it varies.
        #[serde(rename = "mean_ns")]
        mean / "delay": Duration as Delay = Duration::ZERO,
        /// Standard deviation of the delay; half its width when uniform.
        #[serde(rename = "jitter_ns")]
        jitter: Duration as Delay = Duration::ZERO,
        /// Correlation of a frame's delay with the last one's.
        correlation: Ratio = Ratio::ZERO,
        /// Frames arrive in order even where their delays vary.
        keep_order: bool = true,
    }
}

impl Rules for DelaySpec {
    fn check(&mut self, table: &Table) -> Result<(), String> {
        use mqttlab_fields::Words;
        let varies = !self.jitter.is_zero();
        if !table.has("distribution") {
            self.law = if varies { DelayLaw::Normal } else { DelayLaw::Constant };
        }
        if varies && self.law == DelayLaw::Constant {
            return Err(
                "has a `jitter`, but its `distribution` is \"constant\"; leave one of them out".into()
            );
        }
        if !varies && self.law != DelayLaw::Constant {
            let law = self.law.word();
            return Err(format!(
                "has the distribution \"{law}\" without a `jitter`; add one, such as \"5 ms\""
            ));
        }
        Ok(())
    }
}

impl DelaySpec {
    /// Whether every frame propagates for just as long.
    pub(crate) fn is_constant(&self) -> bool {
        self.law == DelayLaw::Constant || self.jitter.is_zero()
    }
}

words! {
    /// Laws of delay.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DelayLaw {
        /// Always the mean.
        Constant = "constant",
        /// Evenly within mean ± jitter.
        Uniform = "uniform",
        /// Normal.
        Normal = "normal",
        /// Pareto, as netem's table.
        Pareto = "pareto",
        /// A quarter normal, three quarters Pareto, as netem's table.
        Paretonormal = "paretonormal",
    }
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
    GilbertElliott(BurstLoss),
    /// Gilbert and Elliott's chain, one step a bit.
    BitGilbertElliott(BitErrors),
}

fields! {
    /// Loss in bursts: Gilbert and Elliott's two-state chain, one step a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct BurstLoss {
        /// Probability per frame of a change from good to bad.
        good_to_bad: Ratio,
        /// Probability per frame of a change from bad to good.
        bad_to_good: Ratio,
        /// Probability that a frame is lost in the good state.
        loss_good: Ratio = Ratio::ZERO,
        /// Probability that a frame is lost in the bad state.
        loss_bad: Ratio = Ratio::ONE,
    }
}

fields! {
    /// Bit errors in bursts: the same chain with one step a bit, so that long frames die more often.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct BitErrors {
        /// Probability per bit of a change from good to bad.
        good_to_bad: Ratio,
        /// Probability per bit of staying in the bad state.
        bad_to_bad: Ratio,
        /// Bit error ratio in the good state.
        error_good: Ratio = Ratio::ZERO,
        /// Bit error ratio in the bad state.
        error_bad: Ratio = Ratio::new(1, 2).expect("a half is a ratio"),
    }
}

fields! {
    /// The ways of losing frames that a scenario has, of which a link has one.
    #[derive(Debug)]
    pub struct LossFields {
        /// Probability that a frame is lost, independently of others.
        loss: Ratio = Ratio::ZERO,
        /// Loss in bursts of frames; instead of `loss`.
        burst_loss: Option<BurstLoss>,
        /// Loss by bit errors; instead of `loss`.
        bit_errors: Option<BitErrors>,
    }
}

/// The rule of the fields of [`LossFields`].
#[derive(Debug)]
pub struct OneLoss;

impl Rule for OneLoss {
    type Target = LossSpec;

    fn read(node: &Node, reader: &mut Reader) -> Option<LossSpec> {
        AsPart::<LossFields>::read(node, reader).and_then(|loss| loss.spec(reader))
    }

    fn shape() -> Shape {
        AsPart::<LossFields>::shape()
    }

    fn take(
        entry: Entry<'_>,
        _default: impl FnOnce() -> Option<LossSpec>,
        reader: &mut Reader,
    ) -> Option<LossSpec> {
        Flat::<LossFields>::take(entry, || None, reader).and_then(|loss| loss.spec(reader))
    }

    fn declare(field: FieldDeclaration, fields: &mut Vec<FieldDeclaration>) {
        Flat::<LossFields>::declare(field, fields);
    }
}

impl LossFields {
    fn spec(self, reader: &mut Reader) -> Option<LossSpec> {
        match (self.loss, self.burst_loss, self.bit_errors) {
            (Ratio::ZERO, None, None) => Some(LossSpec::None),
            (probability, None, None) => Some(LossSpec::Bernoulli { probability }),
            (Ratio::ZERO, Some(bursts), None) => Some(LossSpec::GilbertElliott(bursts)),
            (Ratio::ZERO, None, Some(errors)) => Some(LossSpec::BitGilbertElliott(errors)),
            _ => reader.wrong("has more than one of `loss`, `burst_loss` and `bit_errors`; keep one"),
        }
    }
}

words! {
    /// Where loss happens.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum LossPlace {
        /// Before the queue: lost frames take no time, as in netem.
        Entry = "entry",
        /// On the air: lost frames take their time.
        Exit = "exit",
    }
}

fields! {
    /// Reordering, as netem does it: a frame skips the delay and overtakes those before it.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct ReorderSpec {
        /// Probability that a frame is reordered.
        probability: Ratio,
        /// Reorder every Nth frame at most; 1: any frame may be reordered.
        gap: u32 [1..=1_000_000] = 1,
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;
