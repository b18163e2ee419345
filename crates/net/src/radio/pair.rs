//! A stream of its own for each pair of stations.

use mqttlab_units::Seed;

/// Of two stations, whichever of them sends: the air is the same in both directions.
pub(crate) fn pair_seed(seed: Seed, one: usize, other: usize) -> Seed {
    seed.index(one.min(other) as u64).index(one.max(other) as u64)
}
