//! Hosts: their TCP, and what they have of processor, memory and disk.

use mqttlab_fields::{
    Bound, Bounds, Kind, Maybe, Node, RATE, Reader, Rule, SIZE, Shape, Share, fields, plain,
};
use mqttlab_tcp::TcpPlan;
use mqttlab_units::Ratio;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine: in a live run a network namespace, in the simulator a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Unique, as links and reports call it.
    pub name: String,
    /// IPv4 address.
    pub address: std::net::Ipv4Addr,
    /// Its TCP.
    pub tcp: TcpPlan,
    /// What its servers and programs may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<HostLimits>,
}

fields! {
    /// What the servers and programs of a host have together; what is left out is no limit.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct HostLimits {
        /// Share of one processor. Live it is one of the machine that runs it; simulated, `service` takes that much longer.
        processor: Option<Ratio> as Maybe<ProcessorShare>,
        /// Memory. A server that needs more is killed.
        memory_bytes / "memory": Option<u64> as Maybe<Memory>,
        /// How fast the disk takes what is written and waited for, as by Mosquitto with `persistence`.
        disk_bytes_s / "disk_rate": Option<u64> as Maybe<DiskRate>,
    }
}

/// The rule of a share of a processor.
#[derive(Debug)]
pub struct ProcessorShare;

impl Rule for ProcessorShare {
    type Target = Ratio;

    fn read(node: &Node, reader: &mut Reader) -> Option<Ratio> {
        let share = Share::read(node, reader)?;
        let (above, below): (u64, u64) = share.into();
        // The kernel gives out processor time by 1 ms at least, here of 100 ms at most.
        if u128::from(above) * 100 < u128::from(below) {
            let percent = plain(100.0 * above as f64 / below as f64, 6);
            return reader
                .wrong(format!("is {percent} %, but must be 1 % or more: a kernel gives out no less"));
        }
        Some(share)
    }

    fn shape() -> Shape {
        Shape::Text(Some("25 %"))
    }
}

/// The rule of a memory, in bytes.
#[derive(Debug)]
pub struct Memory;

impl Memory {
    // A program that does nothing needs as much as the least.
    const KIND: Kind = Kind { usual: "MB", example: "64 MB", least: Bound(1 << 20, "1 MiB"), ..SIZE };
}

impl Rule for Memory {
    type Target = u64;

    fn read(node: &Node, reader: &mut Reader) -> Option<u64> {
        Memory::KIND.read(node).map_or_else(|what| reader.wrong(what), |bytes| Some(bytes as u64))
    }

    fn shape() -> Shape {
        Shape::Quantity(&Memory::KIND)
    }

    fn own_bounds() -> Bounds {
        Bounds::of(Memory::KIND.least.0..=Memory::KIND.most.0)
    }

    fn amount(value: &u64) -> Option<i128> {
        Some((*value).into())
    }
}

/// The rule of a disk's rate, in bytes per second.
#[derive(Debug)]
pub struct DiskRate;

impl DiskRate {
    const KIND: Kind = Kind { usual: "MB/s", example: "1 MB/s", least: Bound(8_000, "1 kB/s"), ..RATE };
}

impl Rule for DiskRate {
    type Target = u64;

    fn read(node: &Node, reader: &mut Reader) -> Option<u64> {
        DiskRate::KIND.read(node).map_or_else(|what| reader.wrong(what), |bits| Some(bits as u64 / 8))
    }

    fn shape() -> Shape {
        Shape::Quantity(&DiskRate::KIND)
    }

    fn own_bounds() -> Bounds {
        Bounds::of(1_000..=100_000_000_000_i64)
    }

    fn amount(value: &u64) -> Option<i128> {
        Some((*value).into())
    }
}
