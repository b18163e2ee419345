//! The method CONNECT of HTTP (RFC 9110 §9.3.6): a client asks a proxy for a tunnel.

use super::{Answer, Part, Reply, Request, spells};

/// A client's request.
pub(super) fn request(bytes: &[u8]) -> Part<Request> {
    if !spells(bytes, b"CONNECT ") {
        return Part::Other;
    }
    let Some(end) = end_of_head(bytes) else { return too_short(bytes) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    match (words.nth(1), words.next()) {
        (Some(target), Some(version)) if version.starts_with("HTTP/1.") => {
            Part::Whole(end, Request::Connect(target.to_owned()))
        }
        _ => Part::Other,
    }
}

/// A proxy's answer. One of success has no content, whatever its fields say (RFC 9110 §9.3.6).
pub(super) fn answer(bytes: &[u8]) -> Part<Reply> {
    if !spells(bytes, b"HTTP/1.") {
        return Part::Other;
    }
    let Some(end) = end_of_head(bytes) else { return too_short(bytes) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status.trim());
    let code: u16 = status.get(..3).and_then(|code| code.parse().ok()).unwrap_or_default();
    match code {
        100..=199 => return Part::Whole(end, Reply::default()),
        200..=299 => return Part::Whole(end, Reply { is_last: true, ..Reply::default() }),
        300..=599 => {}
        _ => return Part::Other,
    }
    let mut next = Vec::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length")
            && let Ok(len @ 1..) = value.parse()
        {
            next = vec![Answer::HttpContent(len)];
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            next = vec![Answer::HttpChunks];
            break;
        }
    }
    Part::Whole(end, Reply { refusal: Some(format!("HTTP {status}")), next, is_last: true })
}

/// The content of an answer, as far as it has come.
pub(super) fn content(bytes: &[u8], len: u64) -> Part<Reply> {
    let here = len.min(bytes.len() as u64);
    let left = len - here;
    let next = if left > 0 { vec![Answer::HttpContent(left)] } else { Vec::new() };
    Part::Whole(here as usize, Reply { refusal: None, next, is_last: true })
}

/// A chunk of an answer's content (RFC 9112 §7.1).
pub(super) fn chunks(bytes: &[u8]) -> Part<Reply> {
    let Some(end) = bytes.iter().take(LINE_MAX).position(|&byte| byte == b'\n') else {
        return if bytes.len() < LINE_MAX { Part::Short } else { Part::Other };
    };
    let line = String::from_utf8_lossy(&bytes[..end]);
    let size = line.split(';').next().unwrap_or_default().trim();
    match u64::from_str_radix(size, 16) {
        // Fields may follow the last chunk, up to an empty line.
        Ok(0) => match end_of_head(bytes) {
            Some(end) => Part::Whole(end, Reply { is_last: true, ..Reply::default() }),
            None => too_short(bytes),
        },
        Ok(size) => {
            let next = vec![Answer::HttpContent(size.saturating_add(2)), Answer::HttpChunks];
            Part::Whole(end + 1, Reply { refusal: None, next, is_last: true })
        }
        Err(_) => Part::Other,
    }
}

/// Where a head ends; some programs end lines without a carriage return.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(line) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        at += line + 1;
        match bytes.get(at..) {
            Some([b'\n', ..]) => return Some(at + 1),
            Some([b'\r', b'\n', ..]) => return Some(at + 2),
            _ => {}
        }
    }
    None
}

fn too_short<T>(bytes: &[u8]) -> Part<T> {
    if bytes.len() < HEAD_MAX { Part::Short } else { Part::Other }
}

/// The longest head that is waited for.
const HEAD_MAX: usize = 16 * 1024;
/// The longest line before a chunk.
const LINE_MAX: usize = 256;
