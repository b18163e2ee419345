//! The fuzz targets' checks on their committed corpus, and on mutations of good streams for a bounded number of rounds with a
//! fixed seed. `make fuzz` does the same without bounds, see `fuzz/`.

#[path = "fuzzing/checks.rs"]
mod checks;
#[allow(dead_code)]
#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use mqttlab_units::{Dice, Seed};
use mqttlab_zmtp::{SocketType, command, frame, greeting};

const ROUNDS: u64 = 5_000;

fn below(dice: &mut Dice, bound: usize) -> usize {
    dice.below(bound as u64) as usize
}

/// A good conversation of a peer with this socket.
fn stream(socket: SocketType) -> Vec<u8> {
    let mut bytes = Vec::new();
    greeting::encode(&mut bytes);
    command::ready(socket, Some("c-1"), &mut bytes);
    command::ping(&mut bytes);
    for prefix in [&b""[..], b"a/", &[7; 300]] {
        command::subscribe(true, prefix, 1, &mut bytes);
        command::subscribe(true, prefix, 0, &mut bytes);
        command::subscribe(false, prefix, 1, &mut bytes);
    }
    for payload in [0, 10, 300] {
        frame::message_header(3, true, &mut bytes);
        bytes.extend_from_slice(b"a/b");
        frame::message_header(payload, false, &mut bytes);
        bytes.resize(bytes.len() + payload, b'x');
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    if bytes.is_empty() {
        return;
    }
    let at = below(dice, bytes.len());
    match dice.below(4) {
        0 => bytes[at] = dice.bits() as u8,
        1 => bytes[at] ^= 1 << dice.below(8),
        2 => drop(bytes.remove(at)),
        _ => bytes.insert(at, dice.bits() as u8),
    }
}

fn mutated(dice: &mut Dice, each: impl Fn(&[u8])) {
    for _ in 0..ROUNDS {
        let socket = if dice.below(2) == 0 { SocketType::Pub } else { SocketType::Sub };
        let mut bytes = stream(socket);
        bytes.truncate(below(dice, bytes.len()) + 1);
        for _ in 0..=dice.below(4) {
            mutate(&mut bytes, dice);
        }
        each(&bytes);
    }
}

#[test]
fn the_committed_corpus_is_right() {
    corpus::found("zmtp").iter().for_each(|input| checks::decoder(input));
    corpus::found("zmtp_proxy").iter().for_each(|input| checks::proxy(input));
}

#[test]
fn hostile_streams() {
    checks::decoder(&stream(SocketType::Pub));
    mutated(&mut Seed(1).derive("streams").dice(), checks::decoder);
}

#[test]
fn hostile_peers() {
    let dice = &mut Seed(1).derive("peers").dice();
    for which in 0..4 {
        let good = [&[which][..], &stream(SocketType::Sub)].concat();
        checks::proxy(&good);
    }
    mutated(dice, |bytes| {
        for which in 0..4 {
            checks::proxy(&[&[which][..], bytes].concat());
        }
    });
}
