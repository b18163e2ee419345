//! What only captures of mqttlab's own say: the link and direction of each interface, how each frame crossed its link, when the
//! run began, and from when to when it was measured.

use std::sync::Arc;

use mqttlab_recording::{Direction, Transit};
use mqttlab_units::Instant;

/// A frame on a link, as mqttlab recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTransit {
    /// The link's name.
    pub link: Arc<str>,
    /// Which way it went.
    pub direction: Direction,
    /// When it left and arrived, or what became of it.
    pub transit: Transit,
}

/// The link and direction of an interface, from its name.
pub(super) fn link_of(name: &[u8]) -> Option<(Arc<str>, Direction)> {
    let (link, way) = std::str::from_utf8(name).ok()?.rsplit_once(' ')?;
    let direction = Direction::ALL.iter().find(|direction| direction.as_str() == way)?;
    Some((link.into(), *direction))
}

/// When the run began, from the section's comment: nanoseconds since 1970.
pub(super) fn started(comment: &[u8]) -> Option<Instant> {
    let ns = std::str::from_utf8(comment).ok()?.strip_prefix(STARTED)?;
    ns.parse().ok().map(Instant::from_ns)
}

/// From when to when the run was measured, on its own clock, from another comment of the section.
pub(super) fn measured(comment: &[u8]) -> Option<[Instant; 2]> {
    let (from, until) =
        std::str::from_utf8(comment).ok()?.strip_prefix(MEASURED_FROM)?.split_once(MEASURED_UNTIL)?;
    let [from, until] = [from, until].map(|ns| ns.parse().ok().map(Instant::from_ns));
    Some([from?, until?]).filter(|[from, until]| from < until)
}

/// How a comment of a section begins that has its measurement.
const MEASURED_FROM: &str = "measured_from_ns=";
/// What stands between its beginning and its end.
const MEASURED_UNTIL: &str = " measured_until_ns=";
/// How the comment of a section begins that holds a whole run.
const STARTED: &str = "started_unix_ns=";
