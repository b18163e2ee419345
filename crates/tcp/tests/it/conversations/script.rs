//! Reads scripts, runs them, writes transcripts.

use std::fmt::Write;

use expect_test::Expect;
use mqttlab_tcp::{
    CongestionControl, Ecn, Endpoint, Flags, Granularity, Profile, Role, SackBlocks, Segment, Seq, TcpOutput,
    Timestamps,
};
use mqttlab_units::{Duration, Instant};

/// Runs `script` on a new endpoint and compares the transcript.
pub fn check(profile: Profile, role: Role, script: &str, expected: Expect) {
    let mut conversation = Conversation::new(Endpoint::new(profile, role));
    conversation.run(script);
    expected.assert_eq(&conversation.transcript);
}

/// Runs `script` on a new endpoint and returns it.
pub fn run(profile: Profile, role: Role, script: &str) -> Endpoint {
    let mut conversation = Conversation::new(Endpoint::new(profile, role));
    conversation.run(script);
    conversation.endpoint
}

/// As `check`, after a handshake with a peer that offers the same and has 10 ms of round trip. Time starts anew.
pub fn check_established(profile: Profile, script: &str, expected: Expect) {
    let (transcript, _) = run_established(profile, script);
    expected.assert_eq(&transcript);
}

/// As `check_established`, and returns the endpoint instead of comparing.
pub fn run_established(profile: Profile, script: &str) -> (String, Endpoint) {
    let flags = if profile.ecn { "SE." } else { "S." };
    let mut syn_ack = format!("+10 < {flags} 0:0(0) ack 1 win 65535 <mss {}", profile.mss);
    if profile.sack {
        syn_ack += ",sackOK";
    }
    if profile.timestamps {
        syn_ack += ",ts 1000 0";
    }
    if let Some(scale) = profile.window_scale {
        write!(syn_ack, ",wscale {scale}").unwrap();
    }
    let mut conversation = Conversation::new(Endpoint::new(profile, Role::Active));
    conversation.run(&format!("+0 open\n{syn_ack}>"));
    conversation.transcript.clear();
    conversation.start = conversation.now;
    conversation.run(script);
    (conversation.transcript, conversation.endpoint)
}

/// Round numbers: segments of 1000 bytes, no options but SACK, exact timers, NewReno, nothing of RFC 8985.
pub fn plain() -> Profile {
    Profile {
        mss: 1000,
        window_scale: None,
        timestamps: false,
        rack: false,
        tail_loss_probe: false,
        rate_reduction: false,
        fresh_is_no_duplicate: false,
        half_window_segments: false,
        congestion_control: CongestionControl::Reno,
        granularity: Granularity::Exact,
        ..crate::stacks::linux()
    }
}

struct Conversation {
    endpoint: Endpoint,
    now: Instant,
    start: Instant,
    transcript: String,
}

impl Conversation {
    fn new(endpoint: Endpoint) -> Conversation {
        Conversation { endpoint, now: Instant::ZERO, start: Instant::ZERO, transcript: String::new() }
    }

    fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (time, command) = line.split_once(' ').expect("a line is `+ms command`");
            let ms: f64 = time.trim_start_matches('+').parse().expect("milliseconds");
            self.tick_until(self.now + Duration::from_s_f64(ms / 1e3));
            self.note(command);
            self.apply(command);
            self.drain();
        }
    }

    fn tick_until(&mut self, end: Instant) {
        while let Some(at) = self.endpoint.next_deadline().filter(|at| *at <= end) {
            assert!(at >= self.now, "a deadline lies in the past");
            self.now = at;
            self.note("tick");
            self.endpoint.tick(at);
            self.drain();
        }
        self.now = end;
    }

    fn apply(&mut self, command: &str) {
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        let (endpoint, now) = (&mut self.endpoint, self.now);
        match verb {
            "open" => endpoint.open(now),
            "write" | "write_apart" => {
                let wanted: u64 = rest.parse().unwrap();
                let accepted = match verb {
                    "write" => endpoint.write(now, wanted),
                    _ => endpoint.write_apart(now, wanted),
                };
                if accepted < wanted {
                    writeln!(self.transcript, "    = {accepted}").unwrap();
                }
            }
            "read" => {
                endpoint.read(now, rest.parse().unwrap());
            }
            "shutdown" => endpoint.shutdown(now),
            "close" => endpoint.close(now),
            "abort" => endpoint.abort(now),
            "nodelay" => endpoint.set_nodelay(true),
            "wait" => endpoint.tick(now),
            "<" => endpoint.receive(now, &parse(rest)),
            _ => panic!("unknown command {command}"),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.endpoint.poll() {
            match output {
                TcpOutput::Transmit(segment) => writeln!(self.transcript, "    > {segment}").unwrap(),
                TcpOutput::Event(event) => writeln!(self.transcript, "    ! {event:?}").unwrap(),
            }
        }
    }

    fn note(&mut self, what: &str) {
        let ms = self.now.since(self.start).as_ns() as f64 / 1e6;
        writeln!(self.transcript, "{ms} {what}").unwrap();
    }
}

/// The inverse of a segment's `Display`.
fn parse(text: &str) -> Segment {
    let (head, options) =
        text.split_once('<').map_or((text, ""), |(head, rest)| (head, rest.trim_end_matches('>')));
    let mut words: Vec<&str> = head.split_whitespace().collect();
    let ecn = match words[0] {
        "[ect0]" => Ecn::Ect0,
        "[ce]" => Ecn::Ce,
        _ => Ecn::NotEct,
    };
    words.drain(..usize::from(ecn != Ecn::NotEct));
    let mut segment = Segment { flags: parse_flags(words[0]), ecn, ..Segment::default() };
    let (start, rest) = words[1].split_once(':').expect("start:end(length)");
    segment.seq = Seq(start.parse().unwrap());
    segment.length = rest.split_once('(').unwrap().1.trim_end_matches(')').parse().unwrap();
    for pair in words[2..].chunks(2) {
        match pair[0] {
            "ack" => segment.ack = Seq(pair[1].parse().unwrap()),
            "win" => segment.window = pair[1].parse().unwrap(),
            other => panic!("unknown field {other}"),
        }
    }
    options
        .split(',')
        .filter(|option| !option.is_empty())
        .for_each(|option| parse_option(&mut segment, option));
    segment
}

fn parse_flags(letters: &str) -> Flags {
    letters.chars().fold(Flags::default(), |flags, letter| {
        flags.with(match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            '.' => Flags::ACK,
            _ => panic!("unknown flag {letter}"),
        })
    })
}

fn parse_option(segment: &mut Segment, option: &str) {
    let words: Vec<&str> = option.split_whitespace().collect();
    match words[..] {
        ["mss", mss] => segment.mss = Some(mss.parse().unwrap()),
        ["sackOK"] => segment.sack_permitted = true,
        ["wscale", scale] => segment.window_scale = Some(scale.parse().unwrap()),
        ["ts", value, echo] => {
            segment.timestamps =
                Some(Timestamps { value: value.parse().unwrap(), echo: echo.parse().unwrap() });
        }
        ["sack", range] => {
            let (start, end) = range.split_once(':').unwrap();
            let mut blocks: SackBlocks = segment.sack;
            blocks.push(Seq(start.parse().unwrap()), Seq(end.parse().unwrap()));
            segment.sack = blocks;
        }
        _ => panic!("unknown option {option}"),
    }
}
