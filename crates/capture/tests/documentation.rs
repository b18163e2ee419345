//! The reference page says what the metrics' table says. `MQTTLAB_BLESS=1` rewrites the page.

use std::fs;
use std::path::Path;

use mqttlab_capture::metrics::reference_page;

const START: &str = "<!-- metrics -->\n";
const END: &str = "<!-- end of metrics -->";

#[test]
fn the_reference_page_holds_the_table_of_metrics() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/capture.md");
    let page = fs::read_to_string(&path).expect("the reference page");
    let (before, rest) = page.split_once(START).expect("the table's start");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let expected = format!("{before}{START}{}{END}{after}", reference_page());
    if std::env::var_os("MQTTLAB_BLESS").is_some() {
        fs::write(&path, expected).expect("the reference page can be written");
        return;
    }
    assert!(page == expected, "docs/capture.md is out of date; run this test with MQTTLAB_BLESS=1");
}
