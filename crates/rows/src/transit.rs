//! What a capture of mqttlab's says of a frame besides the time at which it came to its link: a comment that people and the
//! importer read.
//!
//! ```text
//!   dropped: queue_full; frame=17 link=1/2 bytes=70
//!   delivered; frame=18 link=1/2 bytes=70 start_ns=0 sent_ns=120000 delivered_ns=30120000 repetition=1
//! ```
//!
//! Times count from the frame's own. A value that the recording does not have is left out. Keys that are not known are passed
//! over, so that later versions may add some.

use std::fmt::{self, Display, Write};

use mqttlab_units::{Duration, Instant};

use crate::{Cause, Frame, FrameFate};

/// How a frame crossed a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// What became of it.
    pub fate: FrameFate,
    /// Why, where it was not delivered.
    pub cause: Option<Cause>,
    /// [`Frame::frame`].
    pub frame: u64,
    /// [`Frame::hop`].
    pub hop: u8,
    /// [`Frame::hops`].
    pub hops: u8,
    /// Its size as the link counts it; `None` where the comment does not say.
    pub frame_bytes: Option<u32>,
    /// From its time to its first bit's leaving.
    pub start: Option<Duration>,
    /// From its time to its last bit's leaving.
    pub sent: Option<Duration>,
    /// From its time to its arrival.
    pub delivered: Option<Duration>,
    /// [`Frame::repetition`].
    pub repetition: Option<u32>,
}

impl Transit {
    /// How a frame of a recording crossed its link.
    pub fn of(frame: &Frame) -> Transit {
        let after = |at: Option<Instant>| at.and_then(|at| at.checked_since(frame.entered));
        Transit {
            fate: frame.fate,
            cause: frame.cause,
            frame: frame.frame,
            hop: frame.hop,
            hops: frame.hops,
            frame_bytes: Some(frame.frame_bytes),
            start: after(frame.start),
            sent: after(frame.sent),
            delivered: after(frame.delivered),
            repetition: frame.repetition,
        }
    }

    /// Reads a comment. `None` for one that says something else.
    pub fn read(comment: &str) -> Option<Transit> {
        let (became, places) = comment.split_once("; ")?;
        let (fate, cause) =
            became.split_once(": ").map_or((became, None), |(fate, cause)| (fate, Some(cause)));
        let cause = match cause {
            Some(cause) => Some(*Cause::ALL.iter().find(|known| known.as_str() == cause)?),
            None => None,
        };
        let mut transit = Transit {
            fate: *FrameFate::ALL.iter().find(|known| known.as_str() == fate)?,
            cause,
            frame: 0,
            hop: 0,
            hops: 0,
            frame_bytes: None,
            start: None,
            sent: None,
            delivered: None,
            repetition: None,
        };
        for (key, value) in places.split(' ').filter_map(|place| place.split_once('=')) {
            let after = || value.parse().ok().map(Duration::from_ns);
            match key {
                "frame" => transit.frame = value.parse().ok()?,
                "link" => {
                    let (link, links) = value.split_once('/')?;
                    transit.hop = link.parse::<u8>().ok()?.checked_sub(1)?;
                    transit.hops = links.parse().ok()?;
                }
                "bytes" => transit.frame_bytes = value.parse().ok(),
                "start_ns" => transit.start = after(),
                "sent_ns" => transit.sent = after(),
                "delivered_ns" => transit.delivered = after(),
                "repetition" => transit.repetition = value.parse().ok(),
                _ => {}
            }
        }
        (transit.hop < transit.hops).then_some(transit)
    }

    /// Whether the whole path of the frame ends with this link, at the receiver.
    pub fn is_last(&self) -> bool {
        self.hop + 1 >= self.hops
    }
}

impl Display for Transit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.fate.as_str())?;
        if let Some(cause) = self.cause {
            write!(f, ": {}", cause.as_str())?;
        }
        write!(f, "; frame={} link={}/{}", self.frame, u16::from(self.hop) + 1, self.hops)?;
        let after = |at: Option<Duration>| at.map(Duration::as_ns);
        let places = [
            ("bytes", self.frame_bytes.map(u64::from)),
            ("start_ns", after(self.start)),
            ("sent_ns", after(self.sent)),
            ("delivered_ns", after(self.delivered)),
            ("repetition", self.repetition.map(u64::from)),
        ];
        for (key, value) in places {
            if let Some(value) = value {
                f.write_char(' ')?;
                write!(f, "{key}={value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transit() -> Transit {
        Transit {
            fate: FrameFate::Delivered,
            cause: None,
            frame: 18,
            hop: 0,
            hops: 2,
            frame_bytes: Some(70),
            start: Some(Duration::ZERO),
            sent: Some(Duration::from_us(120)),
            delivered: Some(Duration::from_us(30_120)),
            repetition: Some(1),
        }
    }

    #[test]
    fn a_comment_says_how_a_frame_crossed_its_link_and_is_read_back() {
        let text = "delivered; frame=18 link=1/2 bytes=70 start_ns=0 sent_ns=120000 delivered_ns=30120000 repetition=1";
        assert_eq!(transit().to_string(), text);
        assert_eq!(Transit::read(text), Some(transit()));
        let causes: Vec<_> = Cause::ALL.iter().copied().map(Some).chain([None]).collect();
        for (&fate, &cause) in
            FrameFate::ALL.iter().flat_map(|fate| causes.iter().map(move |cause| (fate, cause)))
        {
            let dropped = Transit {
                fate,
                cause,
                start: None,
                sent: None,
                delivered: None,
                repetition: None,
                ..transit()
            };
            assert_eq!(Transit::read(&dropped.to_string()), Some(dropped));
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_no_comment_of_ours_and_later_keys_are_passed_over() {
        for text in [
            "",
            "delivered",
            "slow; look at this",
            "delivered; frame=x link=1/1",
            "delivered; frame=1 link=0/1",
            "delivered; frame=1 link=3/2",
            "dropped: whim; frame=1 link=1/1",
            "delivered; frame=1",
        ] {
            assert_eq!(Transit::read(text), None, "{text}");
        }
        let later = transit().to_string() + " colour=red";
        assert_eq!(Transit::read(&later), Some(transit()));
    }
}
