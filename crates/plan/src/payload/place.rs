//! Where a payload says that its publisher is.
//!
//! ```text
//!   {"type":"Feature","geometry":{"type":"Point","coordinates":[10.5,59.5,150]}, …}   GeoJSON (RFC 7946), or the geometry alone
//!   {"_type":"location","lat":59.5,"lon":10.5, …}                                    latitude and longitude in an object
//!   $GPGGA,120000,5930.0000,N,01030.0000,E,…                                         NMEA 0183, a GGA or RMC sentence
//! ```
//!
//! What it does not know: other geometries than points, coordinates in other systems than WGS 84, compressed and binary
//! payloads, and payloads longer than 1 kB.

use std::sync::Arc;

use mqttlab_units::{GeoPoint, Instant, Seed};
use serde_json::Value;

use super::{MessageNumber, PayloadMaker, gps};
use crate::Payload;

/// Where the publishers of a group say that they are.
#[derive(Clone, Debug)]
pub enum SaidPlaces {
    /// On their ways, as generated payloads have it.
    Moving(Seed),
    /// In one place, as the file says that all of them send.
    Still(GeoPoint),
    /// As each message of a template says it.
    Written(Arc<PayloadMaker>),
}

impl SaidPlaces {
    /// For payloads that a [`PayloadMaker`](super::PayloadMaker) makes from the same; `None` where they do not say it.
    pub fn of(payload: &Payload, seed: Seed) -> Option<SaidPlaces> {
        match payload {
            Payload::Gps => Some(SaidPlaces::Moving(seed)),
            Payload::File { path, bytes } if *bytes <= SAID_BYTES_MAX as u64 => {
                find_place(&std::fs::read(path).ok()?).map(SaidPlaces::Still)
            }
            Payload::Template { .. } => {
                let maker = PayloadMaker::of_payload(payload, seed, 0).ok()?;
                let places = SaidPlaces::Written(Arc::new(maker));
                // What the first message does not say, the others do not say either.
                places.at(0, 0).is_some().then_some(places)
            }
            Payload::File { .. }
            | Payload::Fixed { .. }
            | Payload::Random { .. }
            | Payload::Image
            | Payload::Picture { .. } => None,
        }
    }

    /// Where `client` (index in its group) says that it is in its message `sequence`, if it does.
    pub fn at(&self, client: u32, sequence: u64) -> Option<GeoPoint> {
        match self {
            SaidPlaces::Moving(seed) => {
                Some(gps::Report::new(seed.index(u64::from(client)), sequence).place())
            }
            SaidPlaces::Still(place) => Some(*place),
            SaidPlaces::Written(maker) => {
                let mut payload = Vec::new();
                maker.write(MessageNumber { client, sequence }, Instant::ZERO, &mut payload);
                find_place(&payload)
            }
        }
    }
}

/// Where a payload says that its publisher is; `None` where it does not say it in a way that is known here.
pub fn find_place(payload: &[u8]) -> Option<GeoPoint> {
    if payload.len() > SAID_BYTES_MAX {
        return None;
    }
    match payload.first()? {
        b'{' => in_object(&serde_json::from_slice(payload).ok()?),
        b'$' => std::str::from_utf8(payload).ok()?.lines().find_map(in_sentence),
        _ => None,
    }
}

fn in_object(object: &Value) -> Option<GeoPoint> {
    match object["type"].as_str() {
        Some("Feature") => return in_object(&object["geometry"]),
        Some("Point") => {
            let coordinate = |index: usize| object["coordinates"][index].as_f64();
            return GeoPoint::from_degrees(coordinate(0)?, coordinate(1)?, coordinate(2));
        }
        _ => {}
    }
    let named = |names: &[&str]| names.iter().find_map(|name| object[*name].as_f64());
    GeoPoint::from_degrees(
        named(&["lon", "lng", "longitude"])?,
        named(&["lat", "latitude"])?,
        named(&["alt", "altitude", "ele"]),
    )
}

/// A GGA or RMC sentence with a fix; the checksum is MQTT's and TCP's business.
fn in_sentence(line: &str) -> Option<GeoPoint> {
    let fields: Vec<&str> = line.split(['*', '\r']).next()?.split(',').collect();
    let has_fix = |field: &str| !field.is_empty() && field != "0" && field != "V";
    let (latitude_at, fix, altitude) = match fields.first()?.get(3..)? {
        "GGA" => (2, fields.get(6)?, fields.get(9).and_then(|field| field.parse().ok())),
        "RMC" => (3, fields.get(2)?, None),
        _ => return None,
    };
    let angle = |at: usize, negative: &str| {
        let value: f64 = fields.get(at)?.parse().ok()?;
        // Degrees and minutes in one number: 5930.5 is 59° 30.5'.
        let degrees = (value / 100.0).trunc();
        let degrees = degrees + (value - degrees * 100.0) / 60.0;
        Some(if *fields.get(at + 1)? == negative { -degrees } else { degrees })
    };
    let (latitude, longitude) = (angle(latitude_at, "S")?, angle(latitude_at + 2, "W")?);
    has_fix(fix).then(|| GeoPoint::from_degrees(longitude, latitude, altitude)).flatten()
}

/// The longest payload that is looked at; the analyser of captures keeps none longer.
const SAID_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemplatePart;

    fn degrees(payload: &str) -> Option<(f64, f64, Option<f64>)> {
        let place = find_place(payload.as_bytes())?;
        let altitude = place.altitude_mm.map(|mm| mm as f64 / 1e3);
        Some((place.longitude_e7 as f64 / 1e7, place.latitude_e7 as f64 / 1e7, altitude))
    }

    #[test]
    fn places_are_read_as_the_formats_write_them() {
        let geometry = r#"{"type":"Point","coordinates":[-122.25,37.5]}"#;
        let feature = format!(r#"{{"type":"Feature","geometry":{geometry},"properties":null}}"#);
        let table = [
            (geometry, Some((-122.25, 37.5, None))),
            (&feature, Some((-122.25, 37.5, None))),
            (r#"{"type":"Point","coordinates":[0,-90,8848.86]}"#, Some((0.0, -90.0, Some(8848.86)))),
            (r#"{"_type":"location","lat":48.858,"lon":2.294,"tst":1}"#, Some((2.294, 48.858, None))),
            (r#"{"latitude":-1,"longitude":36.8,"altitude":1795}"#, Some((36.8, -1.0, Some(1795.0)))),
            // NMEA 0183's own example: 48° 7.038' N, 11° 31' E.
            (
                "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47",
                Some((11.516_666_7, 48.1173, Some(545.4))),
            ),
            (
                "$GNRMC,123519,A,4807.038,S,01131.000,W,022.4,084.4,230394,003.1,W*6A\r\n",
                Some((-11.516_666_7, -48.1173, None)),
            ),
        ];
        for (payload, expected) in table {
            assert_eq!(degrees(payload), expected, "{payload}");
        }
    }

    #[test]
    fn what_says_no_place_has_none() {
        for payload in [
            "",
            "{",
            "{}",
            "$",
            "null",
            "$GPGGA",
            "$GPGGA,,,,,,0,,,,,,,,",
            "$GPGSV,1,1,0",
            r#"{"type":"Point","coordinates":[181,0]}"#,
            r#"{"type":"Point","coordinates":["1","2"]}"#,
            r#"{"type":"LineString","coordinates":[[1,2],[3,4]]}"#,
            r#"{"type":"Feature","geometry":null}"#,
            r#"{"lat":1}"#,
            r#"{"lat":"1","lon":"2"}"#,
            "$GPRMC,123519,V,4807.038,N,01131.000,E,,,230394,,*00",
        ] {
            assert_eq!(degrees(payload), None, "{payload}");
        }
        let long = format!(r#"{{"lat":1,"lon":2,"pad":"{}"}}"#, "x".repeat(SAID_BYTES_MAX));
        assert_eq!(degrees(&long), None);
    }

    #[test]
    fn what_is_known_without_the_payload_is_what_the_payload_says() {
        let text = |text: &str| TemplatePart::Text { text: text.into() };
        let degrees = |low, high| TemplatePart::Number { low, high, decimals: 3 };
        let longitude =
            [text(r#"{"lon":"#), degrees(10_000, 11_000), text(r#","id":""#), TemplatePart::Identity];
        let latitude = [text(r#"","lat":"#), degrees(-1_000, 1_000), text("}")];
        let template = Payload::Template {
            name: String::new(),
            parts: [&longitude[..], &latitude].concat(),
            bytes: Some(200),
        };
        for payload in [Payload::Gps, template] {
            let maker = PayloadMaker::of_payload(&payload, Seed(3), 0).unwrap();
            let said = SaidPlaces::of(&payload, Seed(3)).unwrap();
            for (client, sequence) in (0..500).map(|n| (n % 5, u64::from(n) * 31)) {
                let mut bytes = Vec::new();
                maker.write(MessageNumber { client, sequence }, Instant::ZERO, &mut bytes);
                let found = find_place(&bytes);
                assert!(found.is_some() && found == said.at(client, sequence), "{client} {sequence}");
            }
        }
        let bare =
            Payload::Template { name: String::new(), parts: vec![TemplatePart::Identity], bytes: None };
        assert!(SaidPlaces::of(&bare, Seed(3)).is_none());
        assert!(SaidPlaces::of(&Payload::Fixed { bytes: 100 }, Seed(3)).is_none());
        let path = std::env::temp_dir().join(format!("mqttlab-place-{}", std::process::id()));
        std::fs::write(&path, r#"{"lat":1.5,"lon":2.5}"#).unwrap();
        let still = SaidPlaces::of(&Payload::File { path: path.clone(), bytes: 21 }, Seed(3)).unwrap();
        assert_eq!(still.at(0, 0), GeoPoint::from_degrees(2.5, 1.5, None));
        std::fs::remove_file(&path).unwrap();
        assert!(SaidPlaces::of(&Payload::File { path, bytes: 21 }, Seed(3)).is_none());
    }
}
