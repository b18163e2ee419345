//! The command line of `mqttlab-engine import`.

use std::path::PathBuf;

use super::capture_point::PathPlace;
use super::servers::KnownBrokers;

/// What is to be imported, and how it is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOrder {
    /// What kind of files they are.
    pub evidence: EvidenceKind,
    /// The files; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// The recording's directory.
    pub output: PathBuf,
    /// What reports call it.
    pub name: String,
    /// Ports that brokers listen on (captures).
    pub broker_ports: Vec<u16>,
    /// Whether the user has named them.
    pub are_ports_given: bool,
    /// Ports that gateways of MQTT-SN listen on (captures). Others are recognised by their clients' CONNECT.
    pub gateway_ports: Vec<u16>,
    /// Where the user says that it was taken (captures). Otherwise round trips tell.
    pub captured_at: Option<PathPlace>,
    /// Which servers are one broker (captures).
    pub brokers: KnownBrokers,
    /// Logs of the secrets of TLS connections (captures).
    pub key_logs: Vec<PathBuf>,
    /// Whether a message at QoS 2 counts as delivered at its PUBREL, not already at its PUBLISH (captures).
    pub deliver_on_release: bool,
    /// How far local times are ahead of UTC, in seconds (logs, and times without a zone in tables).
    pub utc_offset_s: i64,
    /// Bytes that compressed files may unpack to. Otherwise what they have tells.
    pub unpacked_max: Option<u64>,
}

/// Kinds of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceKind {
    /// pcapng and pcap.
    Capture,
    /// Logs of brokers, and those of Schuhmacher 2018.
    Log,
    /// Comma-separated values.
    Csv,
}

/// Reads the words after `import`.
///
/// # Errors
/// A sentence for the user, when they say nothing that the engine knows.
pub fn parse(words: &[&str]) -> Result<ImportOrder, String> {
    let (evidence, mut rest) = match words.split_first() {
        Some((&"capture", rest)) => (EvidenceKind::Capture, rest.iter()),
        Some((&"log", rest)) => (EvidenceKind::Log, rest.iter()),
        Some((&"csv", rest)) => (EvidenceKind::Csv, rest.iter()),
        Some((other, _)) => return Err(format!("unknown kind of input `{other}`; known: capture, log, csv")),
        None => return Err("import needs a kind of input: capture, log or csv".into()),
    };
    let mut order = ImportOrder {
        evidence,
        files: Vec::new(),
        output: PathBuf::new(),
        name: String::new(),
        broker_ports: Vec::new(),
        are_ports_given: false,
        gateway_ports: Vec::new(),
        captured_at: None,
        brokers: KnownBrokers::Unknown,
        key_logs: Vec::new(),
        deliver_on_release: true,
        utc_offset_s: 0,
        unpacked_max: None,
    };
    while let Some(&word) = rest.next() {
        let mut value = || rest.next().copied().ok_or_else(|| format!("{word} needs a value"));
        match word {
            "--output" => order.output = value()?.into(),
            "--name" => order.name = value()?.into(),
            "--broker-port" => order.broker_ports.push(port(word, value()?)?),
            "--gateway-port" => order.gateway_ports.push(port(word, value()?)?),
            "--captured-at" => order.captured_at = Some(place(value()?)?),
            "--one-broker" => order.brokers = KnownBrokers::One,
            "--separate-brokers" => order.brokers = KnownBrokers::Separate,
            "--key-log" => order.key_logs.push(value()?.into()),
            "--deliver-on" => order.deliver_on_release = release(value()?)?,
            "--utc-offset" => order.utc_offset_s = offset_s(value()?)?,
            "--unpacked-max" => order.unpacked_max = Some(bytes(word, value()?)?),
            option if option.starts_with("--") => return Err(format!("import has no option {option}")),
            file => order.files.push(file.into()),
        }
    }
    complete(order)
}

fn complete(mut order: ImportOrder) -> Result<ImportOrder, String> {
    let Some(first) = order.files.first() else { return Err("import needs a file".into()) };
    if order.output.as_os_str().is_empty() {
        return Err("import needs --output DIR".into());
    }
    if order.name.is_empty() {
        order.name = first.file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    order.are_ports_given = !order.broker_ports.is_empty();
    if order.broker_ports.is_empty() {
        order.broker_ports.push(MQTT_PORT);
    }
    Ok(order)
}

fn port(option: &str, text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|&port| port > 0);
    port.ok_or_else(|| format!("{option} is `{text}`, but must be between 1 and 65535"))
}

fn bytes(option: &str, text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok().filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| format!("{option} is `{text}`, but must be a number of bytes"))
}

fn place(text: &str) -> Result<PathPlace, String> {
    PathPlace::parse(text)
        .ok_or_else(|| format!("--captured-at is `{text}`, but must be broker, clients or between"))
}

fn release(text: &str) -> Result<bool, String> {
    match text {
        "release" => Ok(true),
        "publish" => Ok(false),
        _ => Err(format!("--deliver-on is `{text}`, but must be release or publish")),
    }
}

/// `Z`, `+02:00` or `-0530`, in seconds.
pub fn offset_s(text: &str) -> Result<i64, String> {
    let wrong = || format!("the offset from UTC is `{text}`, but must be like +02:00");
    if text == "Z" || text == "z" {
        return Ok(0);
    }
    let sign = match text.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(wrong()),
    };
    let digits: String = text[1..].chars().filter(|&character| character != ':').collect();
    let number: i64 = digits.parse().map_err(|_| wrong())?;
    let (hours, minutes) = match digits.len() {
        1 | 2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return Err(wrong()),
    };
    let plausible = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    plausible.then_some(sign * (hours * 3600 + minutes * 60)).ok_or_else(wrong)
}

/// What IANA has registered for MQTT.
pub const MQTT_PORT: u16 = 1883;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<ImportOrder, String> {
        parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn options_may_stand_anywhere_and_have_defaults() {
        let order = parsed("capture a.pcapng --output out b.pcapng --broker-port 1884 --key-log k").unwrap();
        assert_eq!(order.key_logs, ["k"].map(PathBuf::from));
        assert_eq!(order.files, ["a.pcapng", "b.pcapng"].map(PathBuf::from));
        assert_eq!((order.name.as_str(), order.broker_ports), ("a.pcapng", vec![1884]));
        assert!(order.deliver_on_release);
        assert_eq!(parsed("capture a --output o").unwrap().broker_ports, [1883]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (line, problem) in [
            ("", "import needs a kind of input: capture, log or csv"),
            ("pictures a", "unknown kind of input `pictures`; known: capture, log, csv"),
            ("capture --output o", "import needs a file"),
            ("capture a", "import needs --output DIR"),
            ("capture a --output", "--output needs a value"),
            (
                "capture a --output o --captured-at home",
                "--captured-at is `home`, but must be broker, clients or between",
            ),
            ("capture a --output o --broker-port 0", "--broker-port is `0`, but must be between 1 and 65535"),
            (
                "capture a --output o --gateway-port x",
                "--gateway-port is `x`, but must be between 1 and 65535",
            ),
            ("log a --output o --utc-offset 2", "the offset from UTC is `2`, but must be like +02:00"),
            ("log a --output o --fast", "import has no option --fast"),
        ] {
            assert_eq!(parsed(line), Err(problem.into()), "{line}");
        }
    }

    #[test]
    fn offsets_are_read_as_iso_8601_writes_them() {
        assert_eq!(
            ["+02:00", "-0530", "Z", "+2"].map(|text| offset_s(text).unwrap()),
            [7200, -19800, 0, 7200]
        );
        assert!(offset_s("+25:00").is_err());
    }
}
