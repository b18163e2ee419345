//! The command line.

use std::path::PathBuf;

use mqttlab_import::Order;
use mqttlab_units::{Duration, Instant};

/// What the engine is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Perform the plan on standard input.
    Run,
    /// Simulate the plan on standard input until this instant, and print the state.
    RunUntil(Instant),
    /// Check the plan on standard input.
    Check,
    /// Say what this machine can do.
    Doctor,
    /// Try for so long what can be measured on this machine.
    Measure(Duration),
    /// Make the tables of a recording whose engine was killed.
    Recover {
        /// The recording.
        directory: PathBuf,
        /// Where the tables go; `None` for the same directory.
        out: Option<PathBuf>,
    },
    /// Make a recording of what a run that is still going on has written.
    Snapshot {
        /// The recording.
        directory: PathBuf,
        /// Where the snapshot goes.
        out: PathBuf,
    },
    /// Measure the paths of the plan on standard input, each for so many seconds.
    Probe(u64),
    /// Make a recording from captures, logs or tables that somebody else made.
    Import(Order),
    /// Say which version this is.
    Version,
    /// Say how it is used.
    Help,
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence for the user, when they say nothing that the engine knows.
pub fn parse(arguments: &[String]) -> Result<Command, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run"] => Ok(Command::Run),
        ["run", "--until", seconds] => match seconds.parse::<f64>() {
            Ok(until) if (0.0..=UNTIL_S_MAX).contains(&until) => {
                Ok(Command::RunUntil(Instant::ZERO + Duration::from_s_f64(until)))
            }
            _ => Err(format!(
                "--until {seconds}: write seconds since the start of the run, 0 to {UNTIL_S_MAX}"
            )),
        },
        ["run", "--until"] => Err("--until needs a time: mqttlab-engine run --until SECONDS".into()),
        ["check"] => Ok(Command::Check),
        ["doctor"] => Ok(Command::Doctor),
        ["measure", "--seconds", seconds] => match seconds.parse::<f64>() {
            Ok(length) if (1.0..=300.0).contains(&length) => {
                Ok(Command::Measure(Duration::from_s_f64(length)))
            }
            _ => Err(format!("--seconds {seconds}: write a number of seconds from 1 to 300")),
        },
        ["measure", ..] => Err("measure needs its time: mqttlab-engine measure --seconds N".into()),
        ["probe"] => Ok(Command::Probe(PROBE_S)),
        ["probe", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds @ 1..=3600) => Ok(Command::Probe(seconds)),
            _ => Err(format!("--seconds {seconds}: write a whole number of seconds from 1 to 3600")),
        },
        ["probe", ..] => Err("probe takes only --seconds: mqttlab-engine probe [--seconds N]".into()),
        ["recover", directory] => Ok(Command::Recover { directory: directory.into(), out: None }),
        ["recover", directory, "--out", out] | ["recover", "--out", out, directory] => {
            Ok(Command::Recover { directory: directory.into(), out: Some(out.into()) })
        }
        ["recover", ..] => Err("recover needs a directory: mqttlab-engine recover DIR [--out DIR]".into()),
        ["snapshot", directory, "--out", out] | ["snapshot", "--out", out, directory] => {
            Ok(Command::Snapshot { directory: directory.into(), out: out.into() })
        }
        ["snapshot", ..] => {
            Err("snapshot needs two directories: mqttlab-engine snapshot DIR --out DIR".into())
        }
        ["import", rest @ ..] => mqttlab_import::parse(rest).map(Command::Import),
        ["--version" | "-V"] => Ok(Command::Version),
        ["--help" | "-h" | "help"] => Ok(Command::Help),
        [] => Err("a command is missing".into()),
        ["run" | "check" | "doctor", extra, ..] => Err(format!("`{extra}` is not expected here")),
        [other, ..] => Err(format!("there is no command `{other}`")),
    }
}

/// How long each path is measured by default.
const PROBE_S: u64 = 10;
/// More than thirty years.
const UNTIL_S_MAX: f64 = 1e9;

/// How it is used.
pub const HELP: &str = "\
mqttlab-engine performs MQTT experiments: real brokers and real TCP over emulated networks, or a simulation.
`mqttlab` turns scenarios into plans and calls it; it is rarely called directly.

  mqttlab-engine run     < plan.json   perform the plan; progress on standard output, one JSON object a line
  mqttlab-engine run --until SECONDS < plan.json
                                       simulate the plan until then, and print the state as JSON; see docs/simulator.md
  mqttlab-engine check   < plan.json   check whether the plan can be performed, and start nothing
  mqttlab-engine probe [--seconds N] < plan.json
                                       measure delay, jitter, loss and rate of the plan's emulated paths
  mqttlab-engine doctor                report what this machine can do, as JSON
  mqttlab-engine measure --seconds N   measure how exactly this machine emulates, and what runs can measure on it
  mqttlab-engine recover DIR [--out DIR]
                                       make the tables of a recording whose engine was killed
  mqttlab-engine snapshot DIR --out DIR
                                       copy what a run in progress has recorded so far; only reads DIR
  mqttlab-engine import capture --output DIR [--name NAME] [--broker-port PORT]... [--deliver-on publish|release] FILE...
  mqttlab-engine import log     --output DIR [--name NAME] [--utc-offset +HH:MM] FILE...
  mqttlab-engine import csv     --output DIR [--name NAME] [--utc-offset +HH:MM] FILE...
                                       make a recording from captures, logs or tables; see docs/import.md
  mqttlab-engine --version
  mqttlab-engine --help

A plan comes from a scenario:  mqttlab check scenario.toml --plan > plan.json
The recording is written to the plan's `directory`; `run.json` in it means that it is complete.

Exit status: 0 done, 1 failed, 2 the command line or the plan is wrong, 3 the run ended early and what was
recorded is kept (`incomplete.json`). Ctrl-C, SIGTERM, SIGHUP and closing its standard output all end a run that way,
within two seconds: where the tables take longer, the rows stay in their spools until the recording is opened. A
second signal ends it at once. An import that is stopped leaves nothing.
Every process that it starts ends with it, even after kill -9.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn recover_takes_its_option_before_and_after_the_directory() {
        let expected = Command::Recover { directory: "a".into(), out: Some("b".into()) };
        assert_eq!(parsed("recover a --out b"), Ok(expected.clone()));
        assert_eq!(parsed("recover --out b a"), Ok(expected));
    }

    #[test]
    fn a_snapshot_always_says_where_it_goes() {
        let expected = Command::Snapshot { directory: "a".into(), out: "b".into() };
        assert_eq!(parsed("snapshot a --out b"), Ok(expected.clone()));
        assert_eq!(parsed("snapshot --out b a"), Ok(expected));
        assert!(parsed("snapshot a").unwrap_err().contains("two directories"));
    }

    #[test]
    fn a_run_stops_at_a_time_that_is_there() {
        let until = |ms| Ok(Command::RunUntil(Instant::ZERO + Duration::from_ms(ms)));
        assert_eq!((parsed("run --until 12.5"), parsed("run --until 0")), (until(12_500), until(0)));
        for wrong in ["run --until", "run --until -1", "run --until soon", "run --until nan"] {
            assert!(parsed(wrong).unwrap_err().starts_with("--until"), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        assert_eq!(parsed("runn"), Err("there is no command `runn`".into()));
        assert_eq!(parsed("run plan.json"), Err("`plan.json` is not expected here".into()));
        assert!(parsed("measure --seconds 0.5").unwrap_err().contains("from 1 to 300"));
        assert!(parsed("").is_err() && parsed("recover").is_err());
    }

    #[test]
    fn the_help_names_every_command() {
        for command in [
            "run",
            "check",
            "probe",
            "doctor",
            "measure",
            "recover",
            "snapshot",
            "import",
            "--version",
            "--help",
        ] {
            assert!(HELP.contains(&format!("mqttlab-engine {command}")), "{command}");
        }
    }
}
