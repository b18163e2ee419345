//! The logs against `reference_logs_client1.csv`, `reference_logs_client2.csv` and `reference_tables.csv`.

use crate::reference::{Data, Verdicts};

pub fn compare_client1(_data: &Data) -> Verdicts {
    Verdicts::default()
}

pub fn compare_client2(_data: &Data) -> Verdicts {
    Verdicts::default()
}

pub fn compare_tables(_data: &Data) -> Verdicts {
    Verdicts::default()
}
