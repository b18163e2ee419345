//! A plan's TCP as a profile of the endpoint: the same fields that set the kernel's.

use std::sync::Arc;

use mqttlab_plan::{CongestionControl, TcpPlan};
use mqttlab_tcp::{self as tcp, DelayedAck, Granularity, Profile};

/// The profile of a host whose largest IP packet is `mtu_bytes`.
///
/// # Errors
/// A sentence, when the plan asks for what the simulator does not know.
pub(crate) fn profile(plan: &TcpPlan, mtu_bytes: u32) -> Result<Arc<Profile>, String> {
    let mut profile = base(&plan.profile);
    profile.congestion_control = match plan.congestion_control {
        CongestionControl::Reno => tcp::CongestionControl::NewReno,
        CongestionControl::Cubic => tcp::CongestionControl::Cubic,
        CongestionControl::Bbr => {
            return Err("tcp.congestion_control is bbr, but the simulator knows reno and cubic".into());
        }
    };
    profile.timestamps = plan.timestamps;
    profile.window_scale = plan.window_scaling.then(|| profile.window_scale.unwrap_or(DEFAULT_SCALE));
    profile.sack = plan.sack;
    profile.rack &= plan.sack;
    profile.tail_loss_probe = plan.tail_loss_probe && plan.sack;
    profile.initial_window = plan.initial_window_segments;
    (profile.rto.min, profile.rto.max) = (plan.rto_min, plan.rto_max);
    profile.syn.retries = plan.syn_retries;
    profile.syn.linear_retries = plan.syn_linear_retries;
    // The length of an IPv4 packet has 16 bits, whatever a device would carry (RFC 791 §3.1).
    let largest = mtu_bytes.min(u16::MAX.into()).saturating_sub(HEADERS).clamp(1, u16::MAX.into());
    profile.mss = plan.mss_bytes.unwrap_or(largest).min(largest) as u16;
    if let Some(bytes) = plan.send_buffer_bytes {
        (profile.send_buffer, profile.send_buffer_max) = (bytes, None);
    }
    if let Some(bytes) = plan.receive_buffer_bytes {
        profile.receive_buffer = bytes;
    }
    profile.delayed_ack = delayed_ack(plan, profile.delayed_ack);
    if let (Some(longest), Granularity::FastSlow { fast, .. }) =
        (plan.delayed_ack_max, &mut profile.granularity)
    {
        // Such a stack has no timer for an acknowledgement, only a clock: the longest delay is its period.
        *fast = longest;
    }
    Ok(Arc::new(profile))
}

/// Behaviour that has no field. A name that is not known was refused before; the kernel's is the common one.
fn base(name: &str) -> Profile {
    match name {
        "netbsd-2005" => Profile::netbsd_2005(),
        "microcontroller" => Profile::microcontroller(),
        _ => Profile::linux(),
    }
}

fn delayed_ack(plan: &TcpPlan, stack: DelayedAck) -> DelayedAck {
    if !plan.delayed_ack {
        return DelayedAck::Off;
    }
    let Some(longest) = plan.delayed_ack_max else { return stack };
    match stack {
        DelayedAck::Adaptive { min, .. } => DelayedAck::Adaptive { min: min.min(longest), max: longest },
        DelayedAck::Off | DelayedAck::EverySecond { .. } => DelayedAck::EverySecond { timeout: longest },
    }
}

/// What Linux's loopback device carries.
pub(crate) const LOOPBACK_MTU_BYTES: u32 = 65_536;
/// IPv4 and TCP without options (RFC 6691).
const HEADERS: u32 = 40;
/// Linux's, with automatic buffers.
const DEFAULT_SCALE: u8 = 7;
