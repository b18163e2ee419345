//! Compares every row of the reference tables of Schuhmacher 2018 with what this crate reads off the same captures
//! and logs, prints what differs and why, and fails on a difference without a reason.
//!
//! The data are not part of the repository: `MQTTLAB_SHARED` names the directory that holds
//! `data/schuhmacher2018`; without it, `../shared` beside the repository is tried.

mod captures;
mod logs;
mod reference;

fn with_data(check: impl FnOnce(&reference::Data) -> reference::Verdicts) {
    let Some(data) = reference::Data::find() else {
        eprintln!("skipped: no data/schuhmacher2018 under MQTTLAB_SHARED or ../shared");
        return;
    };
    check(&data).report();
}

#[test]
fn every_row_of_the_capture_reference_is_met() {
    with_data(captures::compare_captures);
}

#[test]
fn every_row_of_the_overhead_reference_is_met() {
    with_data(captures::compare_overhead);
}

#[test]
fn every_row_of_capture_against_log_is_met() {
    with_data(captures::compare_with_logs);
}

#[test]
fn every_row_of_the_senders_logs_is_met() {
    with_data(logs::compare_client1);
}

#[test]
fn every_row_of_the_relays_logs_is_met() {
    with_data(logs::compare_client2);
}

#[test]
fn every_cell_of_the_study_s_tables_is_met() {
    with_data(logs::compare_tables);
}
