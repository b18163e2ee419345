//! The fuzz targets' checks on their committed corpus, and on mutations of good packets for a bounded number of rounds with a
//! fixed seed. `make fuzz` does the same without bounds, see `fuzz/`.

use mqttlab_mqttsn::encode::encode;
use mqttlab_units::{Dice, Seed};

#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

const ROUNDS: u64 = 5_000;

fn below(dice: &mut Dice, bound: usize) -> usize {
    dice.below(bound as u64) as usize
}

fn packets() -> Vec<Vec<u8>> {
    let encoded = |packet| {
        let mut bytes = Vec::new();
        encode(packet, &mut bytes).unwrap();
        bytes
    };
    crate::samples::samples().iter().map(encoded).collect()
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

#[test]
fn the_committed_corpus_is_right() {
    let again = |target: &str, check: fn(&[u8])| {
        corpus::made(target).iter().chain(&corpus::found(target)).for_each(|input| check(input));
    };
    again("mqttsn", crate::checks::decoder);
    again("mqttsn_gateway", crate::checks::gateway);
}

#[test]
fn hostile_datagrams() {
    let (packets, mut dice) = (packets(), Seed(1).derive("datagrams").dice());
    packets.iter().for_each(|packet| crate::checks::decoder(packet));
    for _ in 0..ROUNDS {
        let mut bytes = packets[below(&mut dice, packets.len())].clone();
        for _ in 0..=dice.below(4) {
            mutate(&mut bytes, &mut dice);
        }
        crate::checks::decoder(&bytes);
    }
}

#[test]
fn hostile_clients_and_brokers() {
    let (packets, mut dice) = (packets(), Seed(1).derive("scripts").dice());
    for round in 0..ROUNDS / 5 {
        let mut script = Vec::new();
        for _ in 0..40 {
            let mut piece = packets[below(&mut dice, packets.len())].clone();
            piece.truncate(255);
            if dice.below(4) == 0 {
                mutate(&mut piece, &mut dice);
            }
            script.extend([dice.bits() as u8, piece.len() as u8]);
            script.extend(piece);
        }
        let outcome = std::panic::catch_unwind(|| crate::checks::gateway(&script));
        assert!(outcome.is_ok(), "round {round} fails on {}", script.escape_ascii());
    }
}
