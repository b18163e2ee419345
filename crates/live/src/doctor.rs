//! What this machine can do for a live run, and what each missing thing costs.

use std::fs;
use std::io;

use mqttlab_plan::PortKind;
use mqttlab_system::namespaces::Privilege;
use mqttlab_system::priority::{self, Priority};
use mqttlab_system::usage::Pressure;
use serde_json::{Value, json};

use crate::host::limit_groups;
use crate::host::limits;
use crate::network::calibration::{Bench, constant_delay};

/// Examines the machine: one entry a capability, with `name`, `available`, `detail` and, where it is missing, what
/// that `costs`. The process must have a single thread.
pub fn examine() -> Value {
    // As the user that this is, who is another one in a user namespace.
    let tasks = limits::tasks_in_words();
    let privilege = Privilege::acquire();
    let namespaces = match &privilege {
        Ok(Privilege::Administrator) => Ok("as administrator".to_owned()),
        Ok(Privilege::UserNamespace) => Ok("in a user namespace".to_owned()),
        Err(forbidden) => Err(forbidden.to_string()),
    };
    let port = |kind| privilege.as_ref().map_err(ToString::to_string).and_then(|_| try_port(kind));
    let congestion =
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    json!({
        "engine": env!("CARGO_PKG_VERSION"),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "congestion_control": congestion.split_whitespace().collect::<Vec<_>>(),
        "capabilities": [
            entry("namespaces", namespaces, "only runs on external networks, without emulation"),
            entry("tun", port(PortKind::Tun), "packet sockets on veth carry the frames instead, at the same accuracy"),
            entry("packet", port(PortKind::Packet), "there is no fallback where TUN is missing"),
            entry(
                "real_time_priority",
                finding(priority::real_time_permitted(), "SCHED_FIFO", &priority::real_time_remedy()),
                "on a busy machine the emulator is milliseconds late at the 99th percentile instead of 0.1 ms",
            ),
            entry(
                "locked_memory",
                finding(priority::lock_memory(), "mlockall", "permit it with `ulimit -l unlimited`, or run as root"),
                "a page fault may delay the emulator when memory is short",
            ),
            entry("processor_time", Ok(limits::processor_time_in_words()), ""),
            entry("descriptors", Ok(limits::descriptors_in_words()), ""),
            entry("ports", Ok(limits::ports_in_words()), ""),
            entry("processes", Ok(tasks), ""),
            entry("memory", limits::memory_in_words(), "runs that need more memory than there is are not refused"),
            entry(
                "limits",
                limit_groups::in_words(),
                "hosts with `limits` can only be simulated, or have those that can be set",
            ),
            entry(
                "pressure",
                if Pressure::is_available() { Ok("/proc/pressure".into()) } else { Err("no /proc/pressure".into()) },
                "the validity verdict does not include how contended the processors were",
            ),
        ],
    })
}

fn entry(name: &str, found: Result<String, String>, costs: &str) -> Value {
    match found {
        Ok(detail) => json!({ "name": name, "available": true, "detail": detail }),
        Err(detail) => json!({ "name": name, "available": false, "detail": detail, "costs": costs }),
    }
}

fn finding(found: io::Result<()>, what: &str, remedy: &str) -> Result<String, String> {
    found.map(|()| what.to_owned()).map_err(|error| format!("{error}; {remedy}"))
}

/// How often a frame is sent before it is said that none goes through.
const TRIES: u32 = 3;

/// Sends a datagram from host to host over ports of this kind.
fn try_port(kind: PortKind) -> Result<String, String> {
    let delay = mqttlab_units::Duration::from_ms(1);
    let once = || {
        let bench =
            Bench::build(constant_delay(delay), kind, Priority::Normal, mqttlab_units::Duration::ZERO)?;
        bench.one_way_delay(&[0; 64])?;
        bench.stop()
    };
    let is_late =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    let mut tried = once();
    // On a busy machine one frame may take longer than anybody waits for it.
    for _ in 1..TRIES {
        if !tried.as_ref().is_err_and(is_late) {
            break;
        }
        tried = once();
    }
    match tried {
        Ok(()) => Ok("a frame went through".into()),
        Err(error) if is_late(&error) => {
            Err(format!("a frame did not come in time, {TRIES} times; if the machine is busy, try again"))
        }
        Err(error) if kind == PortKind::Tun => {
            Err(format!("{error}; check that /dev/net/tun exists and that you may open it"))
        }
        Err(error) => Err(error.to_string()),
    }
}
