//! The stacks that the Python package declares, as profiles on Ethernet. `../stacks.json` is generated from there.

use std::collections::BTreeMap;

use mqttlab_tcp::{Profile, Stack, TcpPlan};

/// Linux of today.
pub fn linux() -> Profile {
    named("linux")
}

/// NetBSD as perez2005 ran it.
#[allow(dead_code, reason = "not every test needs every stack")]
pub fn netbsd_2005() -> Profile {
    named("netbsd-2005")
}

/// An lwIP-like stack.
#[allow(dead_code, reason = "not every test needs every stack")]
pub fn microcontroller() -> Profile {
    named("microcontroller")
}

fn named(name: &str) -> Profile {
    let stacks: BTreeMap<String, (TcpPlan, Stack)> =
        serde_json::from_str(include_str!("../../stacks.json")).expect("stacks as the plan has them");
    let (plan, stack) = &stacks[name];
    Profile::new(plan, stack, 1500)
}
