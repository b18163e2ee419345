//! Sequence numbers, which come round again.

/// Whether `a` is after `b` in sequence space (RFC 1982 arithmetic); of time stamps, too (RFC 7323 §5.2).
pub fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
