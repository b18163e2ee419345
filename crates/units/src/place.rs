//! Places on the earth.

/// A place on the earth (WGS 84), to a centimetre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoPoint {
    /// East of Greenwich, in 10⁻⁷ degrees.
    pub longitude_e7: i64,
    /// North of the equator, in 10⁻⁷ degrees.
    pub latitude_e7: i64,
    /// Height in millimetres, where it is known.
    pub altitude_mm: Option<i64>,
}

impl GeoPoint {
    /// From degrees and metres; `None` where there is no such place.
    pub fn from_degrees(longitude: f64, latitude: f64, altitude_m: Option<f64>) -> Option<GeoPoint> {
        let is_a_place = longitude.abs() <= 180.0 && latitude.abs() <= 90.0;
        is_a_place.then(|| GeoPoint {
            longitude_e7: (longitude * 1e7).round() as i64,
            latitude_e7: (latitude * 1e7).round() as i64,
            altitude_mm: altitude_m
                .filter(|metres| metres.abs() < 1e9)
                .map(|metres| (metres * 1e3).round() as i64),
        })
    }
}
