//! Prints every metric of a capture as JSON: `analyse_capture FILE`, or `-` for standard input.
//!
//! With `--frames` it prints a line for each TCP frame instead: number, marks, round trip in seconds, bytes in
//! flight; the form in which the analysis is compared with that of other programs.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::process::ExitCode;

use mqttlab_capture::metrics::{METRICS, MetricTally};
use mqttlab_capture::{Analyser, AnalyserSettings, Annotations, CaptureError, CaptureReader};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let frames = arguments.iter().any(|argument| argument == "--frames");
    let Some(path) = arguments.iter().find(|argument| *argument != "--frames") else {
        eprintln!("usage: analyse_capture [--frames] FILE");
        return ExitCode::from(2);
    };
    match open(path).and_then(|input| analyse(input, frames)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn open(path: &str) -> Result<Box<dyn Read>, CaptureError> {
    Ok(if path == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) })
}

fn analyse(input: Box<dyn Read>, frames: bool) -> Result<(), CaptureError> {
    let mut reader = CaptureReader::new(input)?;
    let mut analyser = Analyser::new(AnalyserSettings::default());
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(frame) = reader.next_frame()? {
        if let Some(annotations) = analyser.frame(&frame)
            && frames
        {
            line(&mut out, &annotations)?;
        }
    }
    if !frames {
        let analysis = analyser.finish();
        writeln!(out, "{{")?;
        scope(&mut out, "total", &analysis.total, ",")?;
        scope(&mut out, "to_server", &analysis.directions[0], ",")?;
        scope(&mut out, "from_server", &analysis.directions[1], "")?;
        writeln!(out, "}}")?;
    }
    out.flush()?;
    Ok(())
}

fn line(out: &mut impl Write, annotations: &Annotations<'_>) -> io::Result<()> {
    let verdict = &annotations.verdict;
    let rtt = verdict.ack_rtt.map_or(String::new(), |rtt| format!("{:.9}", rtt.as_s_f64()));
    let in_flight = verdict.bytes_in_flight.map_or(String::new(), |bytes| bytes.to_string());
    writeln!(out, "{}\t{}\t{rtt}\t{in_flight}", annotations.frame, verdict.marks)
}

fn scope(out: &mut impl Write, name: &str, tally: &MetricTally, comma: &str) -> io::Result<()> {
    writeln!(out, "  \"{name}\": {{")?;
    let values: Vec<_> = METRICS.iter().flat_map(|metric| metric.values(tally)).collect();
    for (index, value) in values.iter().enumerate() {
        let comma = if index + 1 < values.len() { "," } else { "" };
        let number = value.value.map_or("null".to_owned(), |value| value.to_string());
        writeln!(out, "    \"{}\": {number}{comma}", value.name)?;
    }
    writeln!(out, "  }}{comma}")
}
