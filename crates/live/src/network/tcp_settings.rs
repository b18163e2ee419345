//! A host's TCP, from the plan to the kernel.
//!
//! Linux spreads its TCP knobs over three places: sysctls of the namespace, metrics of the route, options of the
//! socket. Sysctls and metrics reach the broker as well, which opens its own sockets; socket options reach the
//! clients only, and are used where there is nothing else.
//!
//! | plan                         | namespace                       | route          | client socket       |
//! |------------------------------|---------------------------------|----------------|---------------------|
//! | congestion control           |                                 | `congctl`      | TCP_CONGESTION      |
//! | SACK, timestamps, scaling    | tcp_sack, tcp_timestamps, …     |                |                     |
//! | ECN                          | tcp_ecn                         |                |                     |
//! | minimum, maximum RTO         | tcp_rto_min_us, tcp_rto_max_ms  | `rto_min`      |                     |
//! | delayed ACK                  |                                 | `quickack`     | TCP_DELACK_MAX_US   |
//! | initial window, MSS          |                                 | `initcwnd`, `advmss` |               |
//! | buffers                      | tcp_wmem, tcp_rmem              |                |                     |
//! | tail loss probe, SYN retries | tcp_early_retrans, tcp_syn_…    |                |                     |
//!
//! What it does not set: TCP_NODELAY, which belongs to a group of clients and to the broker's configuration.

use std::io;
use std::os::fd::BorrowedFd;

use mqttlab_plan::{CongestionControl, TcpPlan};
use mqttlab_system::namespaces::{set_sysctl, sysctl};
use mqttlab_system::netlink::Metrics;
use mqttlab_system::sockets;

/// What the kernel calls it.
pub fn congestion_control_name(algorithm: CongestionControl) -> &'static str {
    match algorithm {
        CongestionControl::Reno => "reno",
        CongestionControl::Cubic => "cubic",
        CongestionControl::Bbr => "bbr",
    }
}

/// The part of a host's TCP that its routes carry.
pub fn route_metrics(tcp: &TcpPlan) -> Metrics {
    let rto_min_ms = (tcp.rto_min.as_ns() / 1_000_000).max(1) as u32;
    Metrics {
        congestion_control: Some(congestion_control_name(tcp.congestion_control)),
        // The metric counts milliseconds; the sysctl, where there is one, microseconds.
        rto_min_ms: sysctl(RTO_MIN_US).is_none().then_some(rto_min_ms),
        quick_ack: !tcp.delayed_ack,
        advertised_mss: tcp.mss,
        initial_window: Some(tcp.initial_window),
    }
}

/// Sets the part of a host's TCP that the calling thread's namespace carries. Returns what could not be set as
/// warnings: sentences that name the field.
///
/// # Errors
/// The namespace's sysctls cannot be written at all (a read-only `/proc/sys`).
pub fn configure_namespace(tcp: &TcpPlan) -> io::Result<Vec<String>> {
    let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
    // Nothing may be remembered from an earlier connection, and nothing but the run may be on the wire.
    set_sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
    for scope in ["all", "default"] {
        // A kernel without IPv6 has nothing to switch off.
        let _ = set_sysctl(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
    let mut wanted = vec![
        ("sack", "net/ipv4/tcp_sack", flag(tcp.sack)),
        ("timestamps", "net/ipv4/tcp_timestamps", flag(tcp.timestamps)),
        ("window_scaling", "net/ipv4/tcp_window_scaling", flag(tcp.window_scaling)),
        ("tail_loss_probe", "net/ipv4/tcp_early_retrans", if tcp.tail_loss_probe { "3" } else { "0" }.into()),
        ("ecn", "net/ipv4/tcp_ecn", flag(tcp.ecn)),
        ("syn_retries", "net/ipv4/tcp_syn_retries", tcp.syn_retries.clamp(1, 127).to_string()),
        ("syn_linear_retries", "net/ipv4/tcp_syn_linear_timeouts", tcp.syn_linear_retries.to_string()),
        ("rto_max_ns", "net/ipv4/tcp_rto_max_ms", (tcp.rto_max.as_ns() / 1_000_000).to_string()),
    ];
    if sysctl(RTO_MIN_US).is_some() {
        wanted.push(("rto_min_ns", RTO_MIN_US, (tcp.rto_min.as_ns() / 1_000).max(1).to_string()));
    }
    if let Some(bytes) = tcp.send_buffer {
        wanted.push(("send_buffer_bytes", "net/ipv4/tcp_wmem", buffer_limits(bytes)));
    }
    if let Some(bytes) = tcp.receive_buffer {
        wanted.push(("receive_buffer_bytes", "net/ipv4/tcp_rmem", buffer_limits(bytes)));
    }
    let refused = wanted.into_iter().filter_map(|(field, name, value)| {
        let error = set_sysctl(name, &value).err()?;
        // Older kernels lack some knobs, but then mostly behave as if they were at their default.
        let default = DEFAULTS.contains(&(name, value.as_str()));
        (!default).then(|| {
            format!("TCP field `{field}` is not in force: {} = {value}: {error}", name.replace('/', "."))
        })
    });
    Ok(refused.collect())
}

/// Sets the part of a host's TCP that sockets carry.
///
/// # Errors
/// The kernel does not have the congestion control.
pub fn configure_socket(socket: BorrowedFd<'_>, tcp: &TcpPlan) -> io::Result<()> {
    let name = congestion_control_name(tcp.congestion_control);
    sockets::set_congestion_control(socket, name)?;
    if let Some(longest) = tcp.delayed_ack_max {
        // Kernels before 6.11 do not have it, and later ones refuse what is shorter than two of their ticks;
        // `socket_warnings` has said so.
        let _ = sockets::set_delayed_ack_max(socket, longest);
    }
    Ok(())
}

/// What of a host's TCP sockets cannot carry on this kernel, tried on `socket`.
pub fn socket_warnings(socket: BorrowedFd<'_>, tcp: &TcpPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(longest) = tcp.delayed_ack_max else { return warnings };
    if let Err(error) = sockets::set_delayed_ack_max(socket, longest) {
        warnings.push(format!(
            "TCP field `delayed_ack_max_ns` is not in force: TCP_DELACK_MAX_US = {longest}: {error}"
        ));
    } else {
        warnings.push(
            "TCP field `delayed_ack_max_ns` is in force for clients, but not for the broker's sockets".into(),
        );
    }
    warnings
}

/// Least, initial and greatest size: all the same, so that the kernel does not tune it.
fn buffer_limits(bytes: u32) -> String {
    format!("{bytes} {bytes} {bytes}")
}

const RTO_MIN_US: &str = "net/ipv4/tcp_rto_min_us";
const DEFAULTS: [(&str, &str); 2] =
    [("net/ipv4/tcp_syn_linear_timeouts", "0"), ("net/ipv4/tcp_rto_max_ms", "120000")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_pinned_not_tuned() {
        assert_eq!(buffer_limits(65_536), "65536 65536 65536");
    }
}
