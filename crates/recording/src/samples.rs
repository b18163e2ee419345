//! What was sampled while a run went on: tables whose rows are those of their spools, in their order.

use std::path::Path;

use mqttlab_rows::{Layout, PositionSample, PositionSource, Resource, TcpSample};
use mqttlab_units::Duration;

use crate::error::Result;
use crate::footer::FileSize;
use crate::message_rows::for_each;
use crate::spool::Spool;
use crate::table::TableWriter;
use crate::tables::{
    PositionColumns, PositionRow, ResourceColumns, ResourceRow, TcpStateColumns, TcpStateRow,
};

/// What processes used.
pub(crate) fn resources(from: &Path, to: &Path) -> Result<FileSize> {
    let mut table = TableWriter::<ResourceColumns<'static>>::create(to)?;
    for_each(from, Spool::Resources, |resource: Resource, _| {
        let row = ResourceRow {
            at_ns: resource.at.as_ns(),
            process: resource.process.as_str(),
            cpu_user_s: resource.cpu_user.as_s_f64(),
            cpu_system_s: resource.cpu_system.as_s_f64(),
            rss_bytes: resource.rss_bytes,
            switches_voluntary: resource.switches_voluntary,
            switches_involuntary: resource.switches_involuntary,
            pressure_cpu_us: resource.pressure_cpu.as_ns() / 1000,
            pressure_memory_us: resource.pressure_memory.as_ns() / 1000,
            pressure_io_us: resource.pressure_io.as_ns() / 1000,
            run_queue_s: resource.run_queue.map(Duration::as_s_f64),
            faults_minor: resource.faults_minor,
            faults_major: resource.faults_major,
            steal_s: resource.steal.map(Duration::as_s_f64),
            server: resource.server,
        };
        table.push(|columns, place| columns.set(place, &row))
    })?;
    table.finish()
}

/// What the ends of TCP connections knew.
pub(crate) fn tcp_states(from: &Path, to: &Path) -> Result<FileSize> {
    let mut table = TableWriter::<TcpStateColumns<'static>>::create(to)?;
    for_each(from, Spool::TcpSamples, |sample: TcpSample, _| {
        let row = TcpStateRow {
            at_ns: sample.at.as_ns(),
            client: sample.client,
            connection: sample.connection,
            end: sample.end.as_str(),
            rto_ns: sample.rto.as_ns(),
            srtt_ns: sample.srtt.map(Duration::as_ns),
            congestion_window_bytes: sample.congestion_window_bytes,
            slow_start_threshold_bytes: sample.slow_start_threshold_bytes,
            unsent_bytes: sample.unsent_bytes,
            unacknowledged_bytes: sample.unacknowledged_bytes,
        };
        table.push(|columns, place| columns.set(place, &row))
    })?;
    table.finish()
}

/// Where clients and stations were.
pub(crate) fn positions(from: &Path, to: &Path, layout: &Layout) -> Result<FileSize> {
    let mut table = TableWriter::<PositionColumns<'static>>::create(to)?;
    for_each(from, Spool::Positions, |sample: PositionSample, _| {
        let client = sample.client.and_then(|client| layout.clients.get(client as usize));
        let blank = PositionRow {
            at_ns: sample.at.as_ns(),
            client: sample.client,
            host: sample.host.or(client.map(|client| client.host)),
            source: sample.source.as_str(),
            link: sample.link,
            x_m: None,
            y_m: None,
            longitude_deg: None,
            latitude_deg: None,
            altitude_m: sample.altitude_mm.map(|mm| mm as f64 / 1e3),
        };
        let (east, north) = (sample.east as f64, sample.north as f64);
        let row = match sample.source {
            PositionSource::Station => PositionRow { x_m: Some(east / 1e3), y_m: Some(north / 1e3), ..blank },
            PositionSource::Payload => {
                PositionRow { longitude_deg: Some(east / 1e7), latitude_deg: Some(north / 1e7), ..blank }
            }
        };
        table.push(|columns, place| columns.set(place, &row))
    })?;
    table.finish()
}
