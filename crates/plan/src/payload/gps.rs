//! A position report as a GeoJSON feature (RFC 7946), of always the same size: numbers stay within ranges whose
//! members have equally many digits. A vehicle drives an ellipse somewhere around 59° N, 10° E.

use std::f64::consts::TAU;

use mqttlab_units::{GeoPoint, Seed};

/// What a vehicle reports.
pub(super) struct Report {
    /// In 10⁻⁶ degrees.
    longitude_e6: i64,
    latitude_e6: i64,
    altitude_dm: i64,
    speed_cm_s: i64,
    course_ddeg: i64,
}

impl Report {
    /// The report number `sequence` of the vehicle that `seed` stands for.
    pub(super) fn new(seed: Seed, sequence: u64) -> Report {
        let mut dice = seed.dice();
        let (latitude, longitude, phase) = (dice.uniform(), dice.uniform(), dice.uniform());
        let angle = TAU * (phase + (sequence % LAP) as f64 / LAP as f64);
        let (sine, cosine) = angle.sin_cos();
        Report {
            // An ellipse of half a degree at most, centred so that it stays between 10.1 and 10.9 and 59.1 and 59.9.
            longitude_e6: 10_500_000 + ((longitude - 0.5) * 400_000.0 + cosine * 200_000.0) as i64,
            latitude_e6: 59_500_000 + ((latitude - 0.5) * 400_000.0 + sine * 200_000.0) as i64,
            altitude_dm: 1_500 + (sine * 300.0) as i64,
            speed_cm_s: 1_500 + (cosine * 400.0) as i64,
            course_ddeg: 1_000 + (angle / TAU * 2_599.0) as i64 % 2_600,
        }
    }

    /// Where it was.
    pub(super) fn place(&self) -> GeoPoint {
        GeoPoint {
            longitude_e7: self.longitude_e6 * 10,
            latitude_e7: self.latitude_e6 * 10,
            altitude_mm: Some(self.altitude_dm * 100),
        }
    }
}

/// Appends the report number `sequence` of the vehicle that `seed` stands for.
pub(super) fn write(seed: Seed, sequence: u64, out: &mut Vec<u8>) {
    let report = Report::new(seed, sequence);
    let start = out.len();
    out.extend_from_slice(DOCUMENT.as_bytes());
    let document = &mut out[start..];
    put(document, LONGITUDE_AT, 9, report.longitude_e6, 6);
    put(document, LATITUDE_AT, 9, report.latitude_e6, 6);
    put(document, ALTITUDE_AT, 5, report.altitude_dm, 1);
    put(document, SPEED_AT, 5, report.speed_cm_s, 2);
    put(document, COURSE_AT, 5, report.course_ddeg, 1);
    put(document, SEQUENCE_AT, 10, (sequence % 10_000_000_000) as i64, 0);
}

/// Writes `value`, of which the last `decimals` digits stand behind a point, over `width` bytes.
fn put(document: &mut [u8], at: usize, width: usize, mut value: i64, decimals: usize) {
    for place in (0..width).rev() {
        if decimals > 0 && place == width - 1 - decimals {
            document[at + place] = b'.';
            continue;
        }
        document[at + place] = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

const fn position_of(mark: &str) -> usize {
    let (document, mark) = (DOCUMENT.as_bytes(), mark.as_bytes());
    let mut at = 0;
    while at + mark.len() <= document.len() {
        let mut same = 0;
        while same < mark.len() && document[at + same] == mark[same] {
            same += 1;
        }
        if same == mark.len() {
            return at + mark.len();
        }
        at += 1;
    }
    panic!("the document has no such mark");
}

/// Reports in one lap.
const LAP: u64 = 3600;
const DOCUMENT: &str = concat!(
    r#"{"type":"Feature","id":"0000000000000000000000000000000000000000000000","#,
    r#""geometry":{"type":"Point","coordinates":[LLLLLLLLL,NNNNNNNNN,AAAAA]},"#,
    r#""properties":{"kind":"position","unit":"vehicle","source":"gps","datum":"WGS84","#,
    r#""sequence":"SSSSSSSSSS","speed_m_s":VVVVV,"course_deg":CCCCC,"satellites":11,"#,
    r#""fix":"3d","hdop":0.9,"vdop":1.4,"accuracy_m":3.5,"status":"moving","battery_percent":87}}"#,
);
pub(super) const BYTES: usize = DOCUMENT.len();
pub(super) const IDENTITY_AT: usize = position_of(r#""id":""#);
const LONGITUDE_AT: usize = position_of(r#""coordinates":["#);
const LATITUDE_AT: usize = LONGITUDE_AT + 10;
const ALTITUDE_AT: usize = LATITUDE_AT + 10;
const SEQUENCE_AT: usize = position_of(r#""sequence":""#);
const SPEED_AT: usize = position_of(r#""speed_m_s":"#);
const COURSE_AT: usize = position_of(r#""course_deg":"#);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vehicle_moves_and_stays_where_numbers_keep_their_length() {
        let report = |seed, sequence| -> serde_json::Value {
            let mut out = Vec::new();
            write(Seed(seed), sequence, &mut out);
            serde_json::from_slice(&out).unwrap()
        };
        for (seed, sequence) in (0..2000).map(|n| (n % 7, n * 13)) {
            let coordinates = &report(seed, sequence)["geometry"]["coordinates"];
            let within =
                |index: usize, low, high| (low..high).contains(&coordinates[index].as_f64().unwrap());
            assert!(
                within(0, 10.1, 10.9) && within(1, 59.1, 59.9) && within(2, 100.0, 200.0),
                "{coordinates}"
            );
        }
        assert_ne!(report(1, 1)["geometry"], report(1, 2)["geometry"]);
        assert_ne!(report(1, 1)["geometry"], report(2, 1)["geometry"]);
    }
}
