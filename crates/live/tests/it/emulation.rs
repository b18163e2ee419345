//! The emulator between two namespaces, in real time. Bounds hold on a busy machine too: a frame may be late, and
//! then the emulator says so, but never early.

use mqttlab_live::network::calibration::{Bench, compensation, constant_delay};
use mqttlab_plan::PortKind;
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::priority::Priority;
use mqttlab_units::Duration;

/// Says why a test does not run, where namespaces are not permitted.
fn permitted(kind: PortKind) -> bool {
    let namespaces = Namespace::new().map(drop);
    let tun = std::fs::File::open("/dev/net/tun").map(drop);
    let needed = if kind == PortKind::Tun { namespaces.and(tun) } else { namespaces };
    needed.inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
}

fn never_early(kind: PortKind) {
    if !permitted(kind) {
        return;
    }
    let (delay, compensation) = (Duration::from_ms(5), Duration::from_us(30));
    let bench = Bench::build(constant_delay(delay), kind, Priority::Normal, compensation).unwrap();
    let (mut came, mut lost) = (0, 0);
    while came < 20 {
        match bench.one_way_delay(&[7; 100]) {
            Ok(found) => {
                assert!(found >= delay - compensation, "{found}");
                came += 1;
            }
            // A kernel without a free processor may drop a datagram, which is not early either.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && lost < 5 => lost += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let counters = bench.counters();
    assert!(counters.lateness.snapshot().len() >= 20, "every frame's lateness is counted");
    bench.stop().unwrap();
}

#[test]
fn a_frame_is_never_early_over_tun() {
    never_early(PortKind::Tun);
}

#[test]
fn a_frame_is_never_early_over_packet_sockets() {
    never_early(PortKind::Packet);
}

#[test]
fn calibration_finds_a_latency_that_this_machine_could_have() {
    if !permitted(PortKind::Auto) {
        return;
    }
    let found = compensation(PortKind::Auto, Priority::Normal).unwrap();
    assert!(found > Duration::ZERO && found <= Duration::from_us(150), "{found}");
    eprintln!("compensation: {found}");
}
