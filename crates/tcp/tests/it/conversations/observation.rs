//! What an endpoint tells of itself.

use mqttlab_tcp::{Endpoint, Profile, Role, TcpEvent, TcpOutput, TcpState};
use mqttlab_units::{Duration, Instant};

use super::script::{plain, run_established};

#[test]
fn the_sending_half_is_told_in_bytes_before_and_after_a_timeout() {
    let profile = Profile { initial_window: 4, ..plain() };
    let (_, endpoint) = run_established(profile.clone(), "+0 write 10000");
    let before = TcpState {
        rto: Duration::from_ms(210),
        srtt: Some(Duration::from_ms(10)),
        congestion_window_bytes: 4000,
        slow_start_threshold_bytes: None,
        unsent_bytes: 6000,
        unacknowledged_bytes: 4000,
    };
    assert_eq!(endpoint.tcp_state(), before);
    let (_, endpoint) = run_established(profile, "+0 write 10000\n+250 wait");
    let after = TcpState {
        rto: Duration::from_ms(420),
        congestion_window_bytes: 1000,
        slow_start_threshold_bytes: Some(2000),
        ..before
    };
    assert_eq!(endpoint.tcp_state(), after);
}

#[test]
fn segments_can_be_had_without_the_events_which_wait() {
    let mut server = Endpoint::new(plain(), Role::Passive);
    let mut client = Endpoint::new(plain(), Role::Active);
    client.open(Instant::ZERO);
    let carry = |from: &mut Endpoint, to: &mut Endpoint| {
        while let Some(segment) = from.poll_transmit() {
            to.receive(Instant::ZERO, &segment);
        }
    };
    carry(&mut client, &mut server);
    carry(&mut server, &mut client);
    carry(&mut client, &mut server);
    assert_eq!(client.poll(), Some(TcpOutput::Event(TcpEvent::Connected)));
    assert_eq!(server.poll(), Some(TcpOutput::Event(TcpEvent::Connected)));
    assert_eq!((client.poll(), server.poll()), (None, None));
}
