//! Frames in, what a client may take out: valid streams however they are cut, and every rule broken once.

use mqttlab_framing::frame::{self, Came, Decoder, Malformed, Opcode};
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
enum Fault {
    Malformed(Malformed),
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::Malformed(malformed)
    }
}

/// What comes of a stream in pieces of this size: all data, and the control frames in between.
fn decoded(stream: &[u8], pieces: usize) -> Result<(Vec<u8>, Vec<String>), Fault> {
    let (mut decoder, mut data, mut control) = (Decoder::default(), Vec::new(), Vec::new());
    for piece in stream.chunks(pieces) {
        decoder.feed(piece, |came| {
            match came {
                Came::Data(bytes) => data.extend_from_slice(bytes),
                other => control.push(format!("{other:?}")),
            }
            Ok::<(), Fault>(())
        })?;
    }
    Ok((data, control))
}

fn refusal(stream: &[u8]) -> Malformed {
    let Err(Fault::Malformed(malformed)) = decoded(stream, stream.len()) else { panic!("it was taken") };
    malformed
}

#[test]
fn lengths_are_written_in_the_fewest_bytes() {
    for (payload, header) in [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10), (1_000_000, 10)] {
        let mut out = Vec::new();
        frame::encode(Opcode::Binary, None, &vec![7; payload], &mut out);
        assert_eq!((out.len() - payload, frame::header_len(payload, false)), (header, header));
        assert_eq!(frame::header_len(payload, true), header + 4);
        assert_eq!(decoded(&out, 1000).unwrap().0.len(), payload);
    }
}

#[test]
fn a_clients_frame_is_the_rfcs_own_example() {
    let mut out = Vec::new();
    frame::encode(Opcode::Text, Some([0x37, 0xfa, 0x21, 0x3d]), b"Hello", &mut out);
    assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58], "RFC 6455 §5.7");
}

#[test]
fn fragments_with_a_ping_between_them_are_one_stream() {
    let stream = b"\x02\x03abc\x89\x02hi\x00\x00\x80\x01d\x8a\x00\x88\x02\x03\xe8";
    let (data, control) = decoded(stream, 1).unwrap();
    assert_eq!(data, b"abcd");
    assert_eq!(control, ["Ping([104, 105])", "Pong", "Close(Some(1000))"]);
    assert_eq!(decoded(stream, stream.len()).unwrap(), (data, control));
}

#[test]
fn what_no_server_may_send_is_refused() {
    assert_eq!(refusal(b"\xc2\x00"), Malformed::Reserved);
    assert_eq!(refusal(b"\x83\x00"), Malformed::Opcode(3));
    assert_eq!(refusal(b"\x82\x81\x00\x00\x00\x00a"), Malformed::Masked);
    assert_eq!(refusal(b"\x09\x00"), Malformed::Control);
    assert_eq!(refusal(b"\x89\x7e\x00\x7e"), Malformed::Control);
    assert_eq!(refusal(b"\x81\x01a"), Malformed::Text);
    assert_eq!(refusal(b"\x80\x01a"), Malformed::Fragment);
    assert_eq!(refusal(b"\x02\x01a\x82\x01b"), Malformed::Fragment);
    assert_eq!(refusal(b"\x82\x7e\x00\x05"), Malformed::Length);
    assert_eq!(refusal(b"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"), Malformed::Length);
    assert_eq!(refusal(b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"), Malformed::Length);
}

proptest! {
    #[test]
    fn data_is_the_same_however_it_is_framed_and_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        pieces in 1usize..400,
    ) {
        let mut stream = Vec::new();
        messages.iter().for_each(|message| frame::encode(Opcode::Binary, None, message, &mut stream));
        let (data, control) = decoded(&stream, pieces).unwrap();
        prop_assert_eq!(data, messages.concat());
        prop_assert!(control.is_empty());
    }

    #[test]
    fn a_mask_taken_off_is_gone(key: [u8; 4], payload in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut masked = payload.clone();
        frame::mask(key, &mut masked);
        for (place, byte) in masked.iter().enumerate() {
            prop_assert_eq!(byte ^ key[place % 4], payload[place]);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_hold_more_than_a_control_frame(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let _ = decoded(&bytes, 7);
    }
}
