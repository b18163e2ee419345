//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use mqttlab_import::ImportOrder;
use mqttlab_plan::{Destination, Part};
use mqttlab_units::{Duration, Instant};

/// What the engine is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineCommand {
    /// Perform the plan on standard input, and leave its recording there.
    Run(Destination),
    /// Simulate the plan on standard input until this instant, and print the state.
    RunUntil(Destination, Instant),
    /// Check the plan on standard input.
    Check,
    /// Print the JSON Schema of a plan.
    Schema,
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
        /// Whether the values of its secrets are on standard input.
        secrets: bool,
    },
    /// Overwrite the secrets in a recording whose engine has ended.
    Hide {
        /// The recording.
        directory: PathBuf,
        /// Whether their values are on standard input.
        secrets: bool,
    },
    /// Make a recording of what a run that is still going on has written.
    Snapshot {
        /// The recording.
        directory: PathBuf,
        /// Where the snapshot goes.
        out: PathBuf,
    },
    /// Sum up a finished recording.
    Summarise {
        /// The recording.
        directory: PathBuf,
        /// Where the derived tables go; `None` for the same directory.
        out: Option<PathBuf>,
    },
    /// Measure the paths of the plan on standard input, each for so many seconds.
    Probe(u64),
    /// Make a recording from captures, logs or tables that somebody else made.
    Import(ImportOrder),
    /// Be an MQTT-SN gateway with the settings of this file.
    Gateway(PathBuf),
    /// Be a proxy of ZeroMQ with the settings of this file.
    Proxy(PathBuf),
    /// Say which version this is.
    Version,
    /// Say how it is used.
    Help,
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// A sentence for the user, when they say nothing that the engine knows.
pub fn parse(arguments: &[String]) -> Result<EngineCommand, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", rest @ ..] => run(rest),
        ["check"] => Ok(EngineCommand::Check),
        ["gateway", "--settings", settings] => Ok(EngineCommand::Gateway(settings.into())),
        ["proxy", "--settings", settings] => Ok(EngineCommand::Proxy(settings.into())),
        ["proxy", ..] => Err("proxy needs its settings: mqttlab-engine proxy --settings FILE".into()),
        ["gateway", ..] => Err("gateway needs its settings: mqttlab-engine gateway --settings FILE".into()),
        ["schema"] => Ok(EngineCommand::Schema),
        ["doctor"] => Ok(EngineCommand::Doctor),
        ["measure", "--seconds", seconds] => match seconds.parse::<f64>() {
            Ok(length) if (1.0..=300.0).contains(&length) => {
                Ok(EngineCommand::Measure(Duration::from_s_f64(length)))
            }
            _ => Err(format!("--seconds {seconds}: write a number of seconds from 1 to 300")),
        },
        ["measure", ..] => Err("measure needs its time: mqttlab-engine measure --seconds N".into()),
        ["probe"] => Ok(EngineCommand::Probe(PROBE_S)),
        ["probe", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds @ 1..=3600) => Ok(EngineCommand::Probe(seconds)),
            _ => Err(format!("--seconds {seconds}: write a whole number of seconds from 1 to 3600")),
        },
        ["probe", ..] => Err("probe takes only --seconds: mqttlab-engine probe [--seconds N]".into()),
        ["recover", rest @ ..] => recover(rest),
        ["hide", directory] => Ok(EngineCommand::Hide { directory: directory.into(), secrets: false }),
        ["hide", directory, "--secrets"] => {
            Ok(EngineCommand::Hide { directory: directory.into(), secrets: true })
        }
        ["hide", ..] => Err("hide needs a directory: mqttlab-engine hide DIR [--secrets]".into()),
        ["snapshot", directory, "--out", out] | ["snapshot", "--out", out, directory] => {
            Ok(EngineCommand::Snapshot { directory: directory.into(), out: out.into() })
        }
        ["snapshot", ..] => {
            Err("snapshot needs two directories: mqttlab-engine snapshot DIR --out DIR".into())
        }
        ["summarise", directory] => Ok(EngineCommand::Summarise { directory: directory.into(), out: None }),
        ["summarise", directory, "--out", out] | ["summarise", "--out", out, directory] => {
            Ok(EngineCommand::Summarise { directory: directory.into(), out: Some(out.into()) })
        }
        ["summarise", ..] => {
            Err("summarise needs a directory: mqttlab-engine summarise DIR [--out DIR]".into())
        }
        ["import", rest @ ..] => mqttlab_import::parse(rest).map(EngineCommand::Import),
        ["--version" | "-V"] => Ok(EngineCommand::Version),
        ["--help" | "-h" | "help"] => Ok(EngineCommand::Help),
        [] => Err("a command is missing".into()),
        ["check" | "schema" | "doctor", extra, ..] => Err(format!("`{extra}` is not expected here")),
        [other, ..] => Err(format!("there is no command `{other}`")),
    }
}

/// Which recording is recovered, and where.
fn recover(words: &[&str]) -> Result<EngineCommand, String> {
    let secrets = words.contains(&"--secrets");
    let rest: Vec<&str> = words.iter().copied().filter(|word| *word != "--secrets").collect();
    let (directory, out) = match rest.as_slice() {
        [directory] => (directory, None),
        [directory, "--out", out] | ["--out", out, directory] => (directory, Some(out.into())),
        _ => {
            return Err(
                "recover needs a directory: mqttlab-engine recover DIR [--out DIR] [--secrets]".into()
            );
        }
    };
    Ok(EngineCommand::Recover { directory: directory.into(), out, secrets })
}

/// What `run` is asked to do: perform the plan, or simulate it until an instant, and where it is recorded.
fn run(words: &[&str]) -> Result<EngineCommand, String> {
    let (mut directory, mut run_id, mut until) = (None, None, None);
    let (mut part, mut number, mut lead) = (Part::Whole, None, None);
    let mut rest = words;
    while let [option, value, others @ ..] = rest {
        match *option {
            "--directory" if !value.is_empty() => directory = Some(PathBuf::from(value)),
            "--identifier" if is_ulid(value) => run_id = Some((*value).to_owned()),
            "--identifier" => {
                return Err(format!("--identifier {value}: write a ULID, 26 digits and capital letters"));
            }
            "--until" => until = Some(instant(value)?),
            "--lead-at" => part = Part::Leading { listen: address(option, value)? },
            "--lead" => lead = Some(address(option, value)?),
            "--part" => number = Some(part_number(value)?),
            _ => break,
        }
        rest = others;
    }
    part = match (part, number, lead) {
        (part, None, None) => part,
        (Part::Whole, Some(number), Some(lead)) => Part::Following { number, lead },
        _ => return Err("a part of a run has --lead-at ADDRESS, or --part NUMBER and --lead ADDRESS".into()),
    };
    match (directory, rest) {
        (_, ["--until"]) => Err("--until needs a time: mqttlab-engine run --until SECONDS".into()),
        (_, [extra, ..]) => Err(format!("`{extra}` is not expected here")),
        (Some(directory), []) => {
            let destination = Destination { directory, run_id, part };
            Ok(match until {
                Some(until) => EngineCommand::RunUntil(destination, until),
                None => EngineCommand::Run(destination),
            })
        }
        (None, []) => {
            Err("run needs a directory: mqttlab-engine run --directory DIR [--identifier ULID]".into())
        }
    }
}

/// An address and a port; names of machines are the caller's to look up.
fn address(option: &str, value: &str) -> Result<SocketAddr, String> {
    value.parse().map_err(|_| format!("{option} {value}: write an address and a port, such as 10.0.0.1:4000"))
}

/// Of a part that is not the first.
fn part_number(value: &str) -> Result<u32, String> {
    match value.parse() {
        Ok(number @ 1..=63) => Ok(number),
        _ => Err(format!("--part {value}: write the number of a part, from 1 to 63; part 0 has --lead-at")),
    }
}

/// Seconds since the start of a run.
fn instant(seconds: &str) -> Result<Instant, String> {
    match seconds.parse::<f64>() {
        Ok(until) if (0.0..=UNTIL_S_MAX).contains(&until) => Ok(Instant::ZERO + Duration::from_s_f64(until)),
        _ => Err(format!("--until {seconds}: write seconds since the start of the run, 0 to {UNTIL_S_MAX}")),
    }
}

/// Whether a text is a ULID in its canonical form: 128 bits in Crockford's base 32.
fn is_ulid(text: &str) -> bool {
    let is_digit =
        |digit: u8| digit.is_ascii_digit() || (digit.is_ascii_uppercase() && !b"ILOU".contains(&digit));
    text.len() == 26 && text.bytes().all(is_digit) && text.as_bytes()[0] <= b'7'
}

/// How long each path is measured by default.
const PROBE_S: u64 = 10;
/// More than thirty years.
const UNTIL_S_MAX: f64 = 1e9;

/// How it is used.
pub const HELP: &str = "\
mqttlab-engine performs MQTT experiments: real brokers and real TCP over emulated networks, or a simulation.
`mqttlab` turns scenarios into plans and calls it; it is rarely called directly.

  mqttlab-engine run --directory DIR [--identifier ULID] < plan.json
                                       perform the plan and record it in DIR; progress on standard output, one JSON
                                       object a line
  mqttlab-engine run --directory DIR --lead-at ADDRESS:PORT < plan.json
  mqttlab-engine run --directory DIR --part NUMBER --lead ADDRESS:PORT --identifier ULID < plan.json
                                       perform a part of the plan, which has several (live.parts): part 0, which the
                                       others come to and which has the recording, or another one; see docs/explanation/live.md
  mqttlab-engine run --directory DIR --until SECONDS < plan.json
                                       simulate the plan until then, and print the state as JSON; see docs/explanation/simulator.md
  mqttlab-engine check   < plan.json   check whether the plan can be performed, and start nothing
  mqttlab-engine schema                print the JSON Schema of a plan
  mqttlab-engine gateway --settings FILE
                                       be an MQTT-SN gateway until a signal ends it, then print its counters;
                                       FILE is JSON: listen, broker, role
  mqttlab-engine proxy --settings FILE
                                       be a proxy of ZeroMQ (XSUB, XPUB) until a signal ends it, then print its
                                       counters; FILE is JSON: publishers, subscribers, high_water_mark
  mqttlab-engine probe [--seconds N] < plan.json
                                       measure delay, jitter, loss and rate of the plan's emulated paths
  mqttlab-engine doctor                report what this machine can do, as JSON
  mqttlab-engine measure --seconds N   measure how exactly this machine emulates, and what runs can measure on it
  mqttlab-engine recover DIR [--out DIR] [--secrets] [< secrets.json]
                                       make the tables of a recording whose engine was killed, and hide its secrets
  mqttlab-engine hide DIR [--secrets] [< secrets.json]
                                       overwrite secrets in the captures and logs of a recording; with --secrets those
                                       of standard input, a JSON object of values; print what was changed, as JSON
  mqttlab-engine snapshot DIR --out DIR
                                       copy what a run in progress has recorded so far; only reads DIR
  mqttlab-engine summarise DIR [--out DIR]
                                       make the derived tables of a recording that has none: of an older program's
  mqttlab-engine import capture --output DIR [--name NAME] [--broker-port PORT]... [--key-log FILE]...
                        [--deliver-on publish|release] [--unpacked-max BYTES] FILE...
  mqttlab-engine import log|csv --output DIR [--name NAME] [--utc-offset +HH:MM] [--unpacked-max BYTES] FILE...
                                       make a recording from captures, logs or tables; see docs/how-to/import.md
  mqttlab-engine --version
  mqttlab-engine --help

A plan comes from a scenario:  mqttlab check scenario.toml --plan > plan.json
Of its secrets it has marks (***0123456789abcdef); their values stand behind it on standard input, an object with a
value for each mark, and are not kept.
`run.json` in the directory of a recording means that it is complete.

Exit status: 0 done, 1 failed, 2 the command line or the plan is wrong, 3 the run ended early and what was
recorded is kept (`incomplete.json`). Ctrl-C, SIGTERM, SIGHUP and closing its standard output all end a run that way,
within two seconds: where the tables take longer, the rows stay in their spools until the recording is opened. A
second signal ends it at once. An import that is stopped leaves nothing.
Every process that it starts ends with it, even after kill -9.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<EngineCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn recover_takes_its_option_before_and_after_the_directory() {
        let expected =
            EngineCommand::Recover { directory: "a".into(), out: Some("b".into()), secrets: false };
        assert_eq!(parsed("recover a --out b"), Ok(expected.clone()));
        assert_eq!(parsed("recover --out b a"), Ok(expected));
    }

    #[test]
    fn a_run_says_where_it_is_recorded_and_may_say_what_it_is_called() {
        let id = "01JDA5K0C3ZV9X8W7T6S5R4Q3P";
        let expected = Destination { run_id: Some(id.into()), ..Destination::new("a") };
        assert_eq!(parsed(&format!("run --identifier {id} --directory a")), Ok(EngineCommand::Run(expected)));
        assert_eq!(parsed("run --directory a"), Ok(EngineCommand::Run(Destination::new("a"))));
        assert!(parsed("run").unwrap_err().contains("--directory DIR"));
        assert!(parsed("run --directory a --identifier me").unwrap_err().contains("ULID"));
    }

    #[test]
    fn a_part_of_a_run_leads_or_says_whom_it_follows() {
        let part = |line: &str| match parsed(&format!("run --directory a {line}")) {
            Ok(EngineCommand::Run(destination)) => Ok(destination.part),
            other => Err(format!("{other:?}")),
        };
        let lead: SocketAddr = "10.0.0.1:4000".parse().unwrap();
        assert_eq!(part("--lead-at 10.0.0.1:4000"), Ok(Part::Leading { listen: lead }));
        assert_eq!(part("--part 2 --lead 10.0.0.1:4000"), Ok(Part::Following { number: 2, lead }));
        assert_eq!(part(""), Ok(Part::Whole));
        for (wrong, words) in [
            ("--part 0 --lead 10.0.0.1:4000", "part 0 has --lead-at"),
            ("--part 1", "--part NUMBER and --lead ADDRESS"),
            ("--lead 10.0.0.1:4000", "--part NUMBER and --lead ADDRESS"),
            ("--lead-at 10.0.0.1:0 --part 1 --lead 10.0.0.1:1", "--part NUMBER and --lead ADDRESS"),
            ("--lead-at somewhere", "an address and a port"),
        ] {
            assert!(part(wrong).unwrap_err().contains(words), "{wrong}");
        }
    }

    #[test]
    fn a_summary_goes_beside_the_tables_or_elsewhere() {
        let command =
            |out: Option<&str>| EngineCommand::Summarise { directory: "a".into(), out: out.map(Into::into) };
        assert_eq!(parsed("summarise a"), Ok(command(None)));
        assert_eq!(parsed("summarise --out b a"), Ok(command(Some("b"))));
        assert!(parsed("summarise").unwrap_err().contains("needs a directory"));
    }

    #[test]
    fn a_snapshot_always_says_where_it_goes() {
        let expected = EngineCommand::Snapshot { directory: "a".into(), out: "b".into() };
        assert_eq!(parsed("snapshot a --out b"), Ok(expected.clone()));
        assert_eq!(parsed("snapshot --out b a"), Ok(expected));
        assert!(parsed("snapshot a").unwrap_err().contains("two directories"));
    }

    #[test]
    fn a_run_stops_at_a_time_that_is_there() {
        let until = |ms| {
            let destination = Destination::new("d");
            Ok(EngineCommand::RunUntil(destination, Instant::ZERO + Duration::from_ms(ms)))
        };
        assert_eq!(parsed("run --directory d --until 12.5"), until(12_500));
        assert_eq!(parsed("run --until 0 --directory d"), until(0));
        for wrong in ["--until", "--until -1", "--until soon", "--until nan"] {
            assert!(
                parsed(&format!("run --directory d {wrong}")).unwrap_err().starts_with("--until"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        assert_eq!(parsed("runn"), Err("there is no command `runn`".into()));
        assert_eq!(parsed("run plan.json"), Err("`plan.json` is not expected here".into()));
        assert_eq!(parsed("check plan.json"), Err("`plan.json` is not expected here".into()));
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
            "summarise",
            "import",
            "--version",
            "--help",
        ] {
            assert!(HELP.contains(&format!("mqttlab-engine {command}")), "{command}");
        }
    }
}
