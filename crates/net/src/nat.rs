//! Network address translators that forget: a mapping that nothing has used for a time is gone (RFC 5382, REQ-5; RFC 4787).
//!
//! ```text
//!   inside ──── SYN ────► [mapping] ────► outside      a SYN from inside makes a mapping
//!          ◄─── data ───            ◄────              each frame, either way, keeps it
//!                 silence ≥ timeout: forgotten
//!          ◄─────────── ✕                              nobody knows for whom that is
//!          ──── data ──► ✕, or a new mapping           as the translator has it: [`ForgottenFlow`]
//! ```
//!
//! Neither end is told. A TCP connection learns of it by its own timers alone, and an MQTT client by its keep-alive.
//!
//! Contract: frames are shown in the order of time. Whether one passes is decided when it sets out, and not when it comes to
//! the translator: the links before that take milliseconds, and mappings last for minutes.
//!
//! What it does not do: it gives no new ports, and resets nothing. A closed connection keeps its mapping until it is
//! forgotten. Datagrams are not for it.

use std::collections::{BTreeMap, BTreeSet};

use mqttlab_fields::words;
use mqttlab_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::Stage;

words! {
    /// What becomes of a frame from inside whose mapping is forgotten, and that begins no connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ForgottenFlow {
        /// It is dropped, as by translators that make mappings for a SYN alone.
        Drop = "drop",
        /// It makes the mapping anew, as by Linux (`net.netfilter.nf_conntrack_tcp_loose = 1`).
        Revive = "revive",
    }
}

/// A translator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatSpec {
    /// Indices of the links that lead out of it, from inside.
    pub outward: BTreeSet<usize>,
    /// Indices of the links that lead into it.
    pub inward: BTreeSet<usize>,
    /// After so long without a frame a mapping is forgotten.
    pub timeout: Duration,
    /// What becomes of a frame from inside then.
    pub forgotten: ForgottenFlow,
}

/// All translators of a network, by its paths.
#[derive(Clone, Debug, Default)]
pub struct Nats {
    specs: Vec<NatSpec>,
    /// What each path crosses.
    crossings: Vec<Option<NatCrossing>>,
    /// When a frame of each flow was last let through, by translator.
    used: BTreeMap<(usize, u128), Instant>,
    /// With so many of them the forgotten ones are looked for.
    most: usize,
}

const LOOKED_AT: usize = 1024;

/// A path's way through a translator.
#[derive(Clone, Copy, Debug)]
struct NatCrossing {
    nat: usize,
    hop: u16,
    is_outward: bool,
}

impl Nats {
    /// Of these translators, and paths as the network has them. Where a path crosses several, the first one counts.
    pub fn new(specs: Vec<NatSpec>, paths: &[Vec<Stage>]) -> Nats {
        let crossings = match specs.is_empty() {
            true => Vec::new(),
            false => paths.iter().map(|path| crossing(&specs, path)).collect(),
        };
        Nats { specs, crossings, used: BTreeMap::new(), most: LOOKED_AT }
    }

    /// Whether a path crosses a translator. Any other path's frames need not be looked into.
    #[inline]
    pub fn are_crossed_by(&self, path: usize) -> bool {
        self.crossings.get(path).is_some_and(Option::is_some)
    }

    /// Whether a frame of a TCP connection sets out in vain: which of its path's stages drops it.
    ///
    /// `flow` is the connection's: the same in both directions, and no other one's at its time. `begins` is whether it is a SYN
    /// without ACK.
    #[inline]
    pub fn drops(&mut self, at: Instant, path: usize, flow: u128, begins: bool) -> Option<u16> {
        let crossing = (*self.crossings.get(path)?)?;
        self.judge(at, crossing, flow, begins)
    }

    fn judge(&mut self, at: Instant, crossing: NatCrossing, flow: u128, begins: bool) -> Option<u16> {
        let spec = &self.specs[crossing.nat];
        let used = self.used.get(&(crossing.nat, flow));
        let is_known = used.is_some_and(|used| at.since(*used) < spec.timeout);
        let makes = crossing.is_outward && (begins || spec.forgotten == ForgottenFlow::Revive);
        if !is_known && !makes {
            return Some(crossing.hop);
        }
        self.used.insert((crossing.nat, flow), at);
        if self.used.len() > self.most {
            // Clients that come and go for days have a port each time.
            self.used.retain(|(nat, _), used| at.since(*used) < self.specs[*nat].timeout);
            self.most = LOOKED_AT.max(2 * self.used.len());
        }
        None
    }
}

fn crossing(specs: &[NatSpec], path: &[Stage]) -> Option<NatCrossing> {
    path.iter().enumerate().find_map(|(hop, stage)| {
        let Stage::Link(link) = stage else { return None };
        specs.iter().enumerate().find_map(|(nat, spec)| {
            let [is_outward, is_inward] = [&spec.outward, &spec.inward].map(|links| links.contains(link));
            (is_outward || is_inward).then_some(NatCrossing { nat, hop: hop as u16, is_outward })
        })
    })
}
