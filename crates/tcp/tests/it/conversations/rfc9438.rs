//! RFC 9438: CUBIC.

use expect_test::expect;
use mqttlab_tcp::{
    CongestionControl, Endpoint, Flags, Info, Profile, RecoveryPhase, Segment, Seq, TcpOutput,
};
use mqttlab_units::{Duration, Instant};

use super::script::{check_established, plain, run_established};

/// Counts segments, has room for windows of up to 8 MB, and begins with `initial_window`.
fn cubic(initial_window: u32) -> Profile {
    Profile {
        congestion_control: CongestionControl::Cubic,
        initial_window,
        window_scale: Some(7),
        send_buffer: 8 << 20,
        ..plain()
    }
}

/// The first of ten segments is lost; then all arrives.
const ONE_LOSS: &str = "+0 write 60000
     +10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
     +0 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
     +0 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
     +0 < . 1:1(0) ack 1 win 65535 <sack 1001:10001>
     +10 < . 1:1(0) ack 12001 win 65535";

#[test]
fn s4_6_a_loss_takes_three_tenths_of_the_window() {
    check_established(
        cubic(10),
        ONE_LOSS,
        expect![[r#"
        0 write 60000
            > . 1:1001(1000) ack 1 win 24576
            > . 1001:2001(1000) ack 1 win 24576
            > . 2001:3001(1000) ack 1 win 24576
            > . 3001:4001(1000) ack 1 win 24576
            > . 4001:5001(1000) ack 1 win 24576
            > . 5001:6001(1000) ack 1 win 24576
            > . 6001:7001(1000) ack 1 win 24576
            > . 7001:8001(1000) ack 1 win 24576
            > . 8001:9001(1000) ack 1 win 24576
            > . 9001:10001(1000) ack 1 win 24576
        10 < . 1:1(0) ack 1 win 65535 <sack 1001:2001>
            > . 10001:11001(1000) ack 1 win 24576
        10 < . 1:1(0) ack 1 win 65535 <sack 1001:3001>
            > . 11001:12001(1000) ack 1 win 24576
        10 < . 1:1(0) ack 1 win 65535 <sack 1001:4001>
            > . 1:1001(1000) ack 1 win 24576
        10 < . 1:1(0) ack 1 win 65535 <sack 1001:10001>
            > . 12001:13001(1000) ack 1 win 24576
            > . 13001:14001(1000) ack 1 win 24576
            > . 14001:15001(1000) ack 1 win 24576
            > . 15001:16001(1000) ack 1 win 24576
        20 < . 1:1(0) ack 12001 win 65535
            > . 16001:17001(1000) ack 1 win 24576
            > . 17001:18001(1000) ack 1 win 24576
            > . 18001:19001(1000) ack 1 win 24576
            ! Acknowledged(12000)
    "#]],
    );
    let (_, endpoint) = run_established(cubic(10), ONE_LOSS);
    let info = endpoint.info();
    assert_eq!((info.phase, info.congestion_window, info.slow_start_threshold), (RecoveryPhase::Open, 7, 7));
}

#[test]
fn s4_8_a_timeout_takes_three_tenths_of_the_threshold_and_slow_start_begins_anew() {
    let (_, endpoint) = run_established(cubic(10), "+0 write 60000\n+250 wait");
    let info = endpoint.info();
    assert_eq!(
        (info.phase, info.congestion_window, info.slow_start_threshold),
        (RecoveryPhase::Timeout, 1, 7)
    );
}

#[test]
fn s4_2_the_window_follows_the_curve_past_the_old_maximum() {
    let mut path = Path::new(cubic(60), LONG);
    path.lose_one();
    assert_eq!(path.info().slow_start_threshold, 42);
    // Equations 1 and 2.
    let k_s = f64::cbrt(60.0 * (1.0 - 0.7) / 0.4);
    let curve = |round_trips: u32| 0.4 * (f64::from(round_trips) * LONG.as_s_f64() - k_s).powi(3) + 60.0;
    for trips in 1..=30 {
        path.round_trip();
        // In each round trip the window goes most of the way to where the curve will be at its end (§4.4), in
        // whole segments, each for a whole number of others.
        let (low, high) = (curve(trips - 1) - 2.0, curve(trips + 1) + 1.0);
        let window = path.info().congestion_window as f64;
        assert!((low..=high).contains(&window), "round trip {trips}: {window} outside {low:.1} to {high:.1}");
    }
    assert!(path.info().congestion_window > 120, "the convex part was reached");
}

#[test]
fn s4_3_on_short_paths_it_grows_as_reno_would() {
    let mut path = Path::new(cubic(20), Duration::from_ms(2));
    path.lose_one();
    assert_eq!(path.info().congestion_window, 14);
    // Alpha is 3 (1 - 0.7) / (1 + 0.7) = 0.53 segments a round trip. Beyond the old maximum §4.3 has one; Linux goes on
    // with the same (8/15 in its arithmetic).
    let reno = |trips: f64| 14.0 + trips.max(0.0) * 8.0 / 15.0;
    // While the window stays the same, Linux looks at Reno's only every 31 ms.
    let lag = 32.0 / 2.0;
    for round_trip in 1..=60 {
        path.round_trip();
        let (low, high) = (reno(f64::from(round_trip) - lag) - 2.0, reno(round_trip.into()) + 2.0);
        let window = path.info().congestion_window as f64;
        assert!(
            (low..=high).contains(&window),
            "round trip {round_trip}: {window} outside {low:.1} to {high:.1}"
        );
    }
}

#[test]
fn s4_7_a_second_loss_below_the_maximum_lowers_the_plateau() {
    let mut path = Path::new(cubic(60), LONG);
    path.lose_one();
    path.lose_one();
    let window = path.info().slow_start_threshold as f64;
    assert!((29.0..34.0).contains(&window), "0.7 of what 42 has grown to: {window}");
    // Without fast convergence the plateau would be at the window before the loss, window / 0.7.
    let plateau = window / 0.7 * (1.0 + 0.7) / 2.0;
    let k_s = f64::cbrt((plateau - window) / 0.4);
    (0..(k_s / LONG.as_s_f64()) as u32).for_each(|_| path.round_trip());
    let after = path.info().congestion_window as f64;
    assert!((after - plateau).abs() < 1.5, "{after}, but the plateau is at {plateau:.1}");
}

/// Long enough for the curve to be ahead of Reno.
const LONG: Duration = Duration::from_ms(400);

/// A path that loses nothing unless told, to a peer that acknowledges every segment at once.
struct Path {
    endpoint: Endpoint,
    now: Instant,
    rtt: Duration,
    in_flight: Vec<Segment>,
    /// What the peer expects next, and the end of what it has beyond a gap of one segment.
    expected: u32,
    reached: u32,
}

impl Path {
    fn new(profile: Profile, rtt: Duration) -> Path {
        let (_, endpoint) = run_established(profile, "");
        let now = Instant::ZERO + Duration::from_ms(10);
        let mut path = Path { endpoint, now, rtt, in_flight: Vec::new(), expected: 1, reached: 1 };
        path.fill();
        path
    }

    fn info(&self) -> Info {
        self.endpoint.info()
    }

    /// All that is in flight arrives, and so do the acknowledgements.
    fn round_trip(&mut self) {
        self.now += self.rtt;
        for segment in std::mem::take(&mut self.in_flight) {
            self.arrive(&segment);
        }
    }

    /// Loses the first segment in flight; ends when the recovery has.
    fn lose_one(&mut self) {
        self.in_flight.remove(0);
        self.round_trip();
        assert_eq!(self.info().phase, RecoveryPhase::Fast, "the loss was found");
        self.round_trip();
        assert_eq!(self.info().phase, RecoveryPhase::Open, "and repaired within a round trip");
    }

    fn arrive(&mut self, segment: &Segment) {
        let end = segment.seq.0 + u32::from(segment.length);
        if segment.seq.0 == self.expected {
            self.expected = end.max(self.reached);
        }
        self.reached = self.reached.max(end);
        let (ack, window) = (Seq(self.expected), 65_535);
        let mut answer = Segment { seq: Seq(1), ack, window, flags: Flags::ACK, ..Segment::default() };
        if self.reached > self.expected {
            answer.sack.push(Seq(self.expected + 1000), Seq(self.reached));
        }
        self.endpoint.receive(self.now, &answer);
        self.fill();
    }

    /// Lets the endpoint send all that the window allows.
    fn fill(&mut self) {
        self.endpoint.write(self.now, 8 << 20);
        while let Some(output) = self.endpoint.poll() {
            if let TcpOutput::Transmit(segment) = output {
                self.in_flight.push(segment);
            }
        }
    }
}
