//! How long things take: frames on the air, interframe spaces, timeouts.

use mqttlab_units::{BitRate, Duration};

use super::spec::{Modulation, PhySpec};

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    Ack,
    Rts,
    Cts,
}

/// MAC bytes of an ACK and a CTS frame (IEEE 802.11-2016 §9.3.1.3, §9.3.1.4).
pub(crate) const ACK_BYTES: u32 = 14;
/// MAC bytes of an RTS frame (§9.3.1.2).
pub(crate) const RTS_BYTES: u32 = 20;
/// What a data frame has around an IP packet: MAC header 24, check sequence 4, LLC and SNAP headers 8.
pub(crate) const DATA_OVERHEAD_BYTES: u32 = 36;

/// Times that follow from a physical layer.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    modulation: Modulation,
    data_rate: BitRate,
    ack_rate: BitRate,
    control_rate: BitRate,
    pub(crate) preamble: Duration,
    pub(crate) slot: Duration,
    pub(crate) sifs: Duration,
    pub(crate) difs: Duration,
    /// After a frame with errors: long enough for its ACK at the lowest rate (§10.3.2.3.7).
    pub(crate) eifs: Duration,
    pub(crate) ack: Duration,
    pub(crate) cts: Duration,
    /// From the end of a frame until its ACK or CTS must have been noticed (§10.3.2.9).
    pub(crate) response_timeout: Duration,
    /// From the end of an RTS until those who heard it may take it for failed (§10.3.2.4).
    pub(crate) nav_timeout: Duration,
}

impl Timing {
    pub(crate) fn new(phy: &PhySpec) -> Self {
        let PhySpec { modulation, preamble, slot, sifs, .. } = *phy;
        // §10.3.7 has this relation and the next ones.
        let difs = sifs + slot * 2;
        let air = |rate, bytes| modulation.airtime(preamble, rate, bytes);
        let ack_rate = phy.ack_rate_bit_s.unwrap_or(phy.control_rate_bit_s);
        let (ack, cts) = (air(ack_rate, ACK_BYTES), air(phy.control_rate_bit_s, ACK_BYTES));
        let noticed = modulation.receive_start_delay(preamble);
        Timing {
            modulation,
            data_rate: phy.data_rate_bit_s,
            ack_rate,
            control_rate: phy.control_rate_bit_s,
            preamble,
            slot,
            sifs,
            difs,
            eifs: sifs + air(modulation.lowest_rate(), ACK_BYTES) + difs,
            ack,
            cts,
            response_timeout: sifs + slot + noticed,
            nav_timeout: sifs * 2 + cts + noticed + slot * 2,
        }
    }

    /// How long a frame is on the air.
    pub(crate) fn airtime(&self, kind: FrameKind, bytes: u32) -> Duration {
        let rate = match kind {
            FrameKind::Data => self.data_rate,
            FrameKind::Ack => self.ack_rate,
            FrameKind::Rts | FrameKind::Cts => self.control_rate,
        };
        self.modulation.airtime(self.preamble, rate, bytes)
    }

    /// How long the medium is still needed after a frame: its duration field (§9.2.5). `data` is the time of the
    /// data frame that an RTS announces or a CTS permits.
    pub(crate) fn reserved(&self, kind: FrameKind, data: Duration) -> Duration {
        match kind {
            FrameKind::Data => self.sifs + self.ack,
            FrameKind::Ack => Duration::ZERO,
            FrameKind::Rts => self.sifs * 3 + self.cts + data + self.ack,
            FrameKind::Cts => self.sifs * 2 + data + self.ack,
        }
    }
}

impl Modulation {
    fn airtime(self, preamble: Duration, rate: BitRate, bytes: u32) -> Duration {
        let bits = u64::from(bytes) * 8;
        match self {
            // The length is told in whole microseconds (§15.2.3.5, §16.2.3.5).
            Modulation::Dsss => preamble + Duration::from_us((bits * 1_000_000).div_ceil(rate.as_bit_s())),
            // 16 service bits and 6 tail bits (§17.4.3), 6 µs of signal extension (§18.3.2.4).
            Modulation::ErpOfdm => {
                let symbols = ((16 + bits + 6) * 250_000).div_ceil(rate.as_bit_s());
                preamble + Duration::from_us(4 * symbols + 6)
            }
        }
    }

    fn lowest_rate(self) -> BitRate {
        let bit_s = match self {
            Modulation::Dsss => 1_000_000,
            Modulation::ErpOfdm => 6_000_000,
        };
        BitRate::from_bit_s(bit_s).expect("positive")
    }

    /// aPHY-RX-START-Delay (tables 15-5 and 18-5): for DSSS its preamble and header.
    fn receive_start_delay(self, preamble: Duration) -> Duration {
        match self {
            Modulation::Dsss => preamble,
            Modulation::ErpOfdm => Duration::from_us(24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(name: &str) -> Timing {
        Timing::new(&PhySpec::preset(name).unwrap())
    }

    #[test]
    fn dsss_2_has_the_standards_times() {
        let timing = timing("dsss-2");
        assert_eq!(timing.airtime(FrameKind::Ack, 14), Duration::from_us(192 + 112));
        assert_eq!(timing.airtime(FrameKind::Rts, 20), Duration::from_us(192 + 160));
        assert_eq!(timing.airtime(FrameKind::Data, 236), Duration::from_us(192 + 944));
        assert_eq!(timing.difs, Duration::from_us(50));
        assert_eq!(timing.eifs, Duration::from_us(10 + 304 + 50));
        assert_eq!(timing.response_timeout, Duration::from_us(10 + 20 + 192));
    }

    #[test]
    fn b_11_rounds_up_to_whole_microseconds() {
        // 1536 B are 12 288 bits: 1117.09 µs at 11 Mbit/s.
        assert_eq!(timing("b-11").airtime(FrameKind::Data, 1536), Duration::from_us(192 + 1118));
        assert_eq!(timing("b-11").airtime(FrameKind::Ack, 14), Duration::from_us(192 + 56));
        assert_eq!(timing("b-11").eifs, Duration::from_us(10 + 304 + 50));
    }

    #[test]
    fn g_54_fills_whole_symbols() {
        // (16 + 8 * 1536 + 6) / 216 = 56.99: 57 symbols; (16 + 112 + 6) / 96 = 1.4: 2 symbols.
        assert_eq!(timing("g-54").airtime(FrameKind::Data, 1536), Duration::from_us(20 + 57 * 4 + 6));
        assert_eq!(timing("g-54").airtime(FrameKind::Ack, 14), Duration::from_us(20 + 8 + 6));
        assert_eq!(timing("g-54").difs, Duration::from_us(28));
        // At 6 Mbit/s 134 bits are 6 symbols of 24 bits.
        assert_eq!(timing("g-54").eifs, Duration::from_us(10 + 50 + 28));
    }
}
