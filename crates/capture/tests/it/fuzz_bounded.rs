//! Tries the committed corpus of the fuzz targets again, and mutates what of it was made by hand, for a bounded number of rounds
//! with a fixed seed. So every run of the tests, on any toolchain, tries hostile input. `make fuzz` does the same without
//! bounds, see `fuzz/`.

use mqttlab_units::{Dice, Seed};

use crate::checks;

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

const ROUNDS: u64 = 4_000;
const LEN_MAX: usize = 16 * 1024;

fn run(target: &str, check: fn(&[u8])) {
    let corpus = corpus::made(target);
    corpus.iter().chain(&corpus::found(target)).for_each(|input| check(input));
    let mut dice = Seed(1).derive(target).dice();
    for round in 0..ROUNDS {
        let mut bytes = corpus[dice.below(corpus.len() as u64) as usize].clone();
        for _ in 0..1 + dice.below(8) {
            mutate(&mut bytes, &corpus, &mut dice);
        }
        bytes.truncate(LEN_MAX);
        let outcome = std::panic::catch_unwind(|| check(&bytes));
        assert!(outcome.is_ok(), "{target} fails in round {round} on {}", bytes.escape_ascii());
    }
}

/// One small change: a byte, a number of interest, a piece left out, doubled, or taken from another file.
fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], dice: &mut Dice) {
    if bytes.is_empty() {
        bytes.push(dice.bits() as u8);
    }
    let at = dice.below(bytes.len() as u64) as usize;
    let len = (1 + dice.below(64) as usize).min(bytes.len() - at);
    match dice.below(6) {
        0 => bytes[at] = dice.bits() as u8,
        1 => bytes[at] ^= 1 << dice.below(8),
        2 => bytes[at..at + len].fill([0, 0xff, 0x7f, 0x80][dice.below(4) as usize]),
        3 => drop(bytes.drain(at..at + len)),
        4 => {
            let part = bytes[at..at + len].to_vec();
            bytes.splice(at..at, part);
        }
        _ => {
            let other = &corpus[dice.below(corpus.len() as u64) as usize];
            let from = dice.below(other.len() as u64) as usize;
            let part = other[from..other.len().min(from + 200)].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

#[test]
fn capture_files_never_panic_the_reader_or_the_analyser() {
    run("capture", checks::capture);
}

#[test]
fn reassembly_delivers_the_stream_whatever_the_segments() {
    run("reassembly", checks::reassembly);
}

#[test]
fn mqtt_packets_lie_behind_one_another_in_any_stream() {
    run("mqtt", checks::mqtt);
}

#[test]
fn websocket_streams_are_accounted_for_whatever_their_frames() {
    run("websocket", checks::websocket);
}

#[test]
fn key_logs_have_as_many_secrets_as_they_say() {
    run("key_log", checks::key_log);
}

#[test]
fn tls_streams_are_accounted_for_whatever_their_records() {
    run("tls", checks::tls);
}

#[test]
fn preambles_are_accounted_for_whatever_stands_in_them() {
    run("preamble", checks::preamble);
}

/// The corpus itself is opened: else its mutations would try nothing.
#[test]
fn the_corpus_of_tls_holds_mqtt() {
    for bytes in corpus::made("tls") {
        assert!(checks::packets_in_tls(&bytes) >= 8);
    }
}
