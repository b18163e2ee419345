//! Captures, as Wireshark's own reader sees them.

use std::process::Command;

use crate::common::*;
use expect_test::expect;
use mqttlab_recording::Recorder;

#[test]
fn tshark_reads_a_capture_without_complaint() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("tshark is not installed: the capture was not read");
        return;
    }
    let scratch = Scratch::new();
    let recorder = Recorder::create(scratch.path(), "{}", &layout()).unwrap();
    let mut sink = recorder.sink();
    play(&mut sink);
    drop(sink);
    recorder.close();
    let summary = finish(scratch.path(), true);
    assert_eq!(summary.files["capture-satcom.pcapng"].rows, 4);

    let fields =
        ["frame.time_epoch", "frame.interface_name", "ip.src", "tcp.flags", "tcp.len", "frame.comment"];
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(scratch.join("capture-satcom.pcapng"))
        .args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    tshark.args(["-T", "fields", "-E", "separator= "]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().unwrap();
    // Root is warned for being root, which is no complaint about the file.
    let complaints = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(output.status.success() && !complaints.contains("capture-satcom"), "{complaints}");
    expect![[r#"
        1735689600.000000050 satcom up 10.0.0.2 0x0002 0 delivered; frame=0 link=1/1 bytes=60 start_ns=0 sent_ns=10 delivered_ns=100
        1735689600.000000060 satcom down 10.0.0.1 0x0012 0 delivered; frame=1 link=1/1 bytes=60 start_ns=0 sent_ns=10 delivered_ns=100
        1735689600.000000065 satcom up 10.0.0.2 0x0018 4 delivered; frame=3 link=1/1 bytes=60 start_ns=0 sent_ns=10 delivered_ns=100
        1735689600.000000070 satcom up 10.0.0.2 0x0018 4 dropped: queue_full; frame=2 link=1/1 bytes=60 start_ns=0 sent_ns=10
    "#]]
    .assert_eq(&String::from_utf8_lossy(&output.stdout));
}
