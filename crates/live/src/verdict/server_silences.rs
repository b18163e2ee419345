//! When a server that runs elsewhere answered nobody.
//!
//! ```text
//!   clients ask ─► nothing comes for 1 s ─► what does TCP say of the connections?
//!                                           ├ all acknowledged, or no window: the program stood still
//!                                           ├ acknowledged bit by bit: a long message is on its way up
//!                                           └ nothing acknowledged, or nobody to ask: server, host or network
//! ```
//!
//! The kernel says when a server of this machine's stood still (`host/server_stalls.rs`); nobody says it of one elsewhere. Its clients
//! know when they last read a byte from it, and whether they wait for one: for an acknowledgement, or for a message of QoS 0
//! that goes to a client of this run. What the kernel of the server's host acknowledged, that host has received: a program
//! that answers none of it stands still or has too much to do.
//!
//! What it does not know: silences shorter than [`SILENCE_MIN`], TCP over IPv6, and whether a load balancer acknowledged
//! in the place of the host. While clients are missing nothing is concluded: lost connections are seen by themselves.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use mqttlab_plan::{NetworkKind, Plan, Server};
use mqttlab_system::netlink;
use mqttlab_units::{Duration, Instant};

use crate::contact::Contact;
use crate::control::FleetFigures;
use crate::network::tcp_states::{self, Socket};

/// How the run's clients stand.
#[derive(Clone, Copy, Debug, Default)]
struct Clients {
    /// None is missing that was there.
    all_here: bool,
    /// Whether any message waits for its acknowledgement.
    unacknowledged: bool,
}

/// The silences of all servers that run elsewhere.
pub(crate) struct ServerSilences {
    servers: Vec<OneServer>,
    /// Whether a message that waits can only wait for the one server, and comes back to clients of this process alone.
    is_alone: bool,
    ready_max: u32,
    tcp: Option<OwnedFd>,
    buffer: Vec<u8>,
}

struct OneServer {
    place: usize,
    name: String,
    addresses: Vec<SocketAddr>,
    present: Option<Silence>,
    /// What each connection had sent when TCP was first asked in the present one.
    sent: BTreeMap<SocketAddrV4, u64>,
    over: Vec<Silence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    since: Instant,
    until: Instant,
    /// Shorter ones are the way's own.
    least: Duration,
    said: Option<Said>,
    asks_again: Instant,
}

/// What TCP says of what the server was sent meanwhile, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Nothing,
    /// Its host acknowledges, and there is more on the way.
    UnderWay,
    Acknowledged,
}

impl ServerSilences {
    /// Of the servers of this plan that no process here performs.
    pub(crate) fn of(plan: &Plan) -> ServerSilences {
        let elsewhere = |(_, server): &(usize, &Server)| server.process.is_none();
        let servers: Vec<_> = match plan.network.kind {
            NetworkKind::External => plan.servers.iter().enumerate().filter(elsewhere).collect(),
            _ => Vec::new(),
        };
        let has_programs = plan.groups.iter().any(|group| group.program.is_some());
        ServerSilences {
            servers: servers.into_iter().map(|(place, server)| OneServer::of(place, server)).collect(),
            is_alone: plan.servers.len() == 1 && plan.live.parts == 1 && !has_programs,
            ready_max: 0,
            tcp: None,
            buffer: Vec::new(),
        }
    }

    /// Looks what clients have heard.
    pub(crate) fn listen(&mut self, now: Instant, figures: &FleetFigures) {
        let ServerSilences { servers, is_alone, ready_max, tcp, buffer } = self;
        let ready = figures.ready.load(Relaxed);
        *ready_max = ready.max(*ready_max);
        let clients = Clients {
            all_here: ready + figures.failed.load(Relaxed) >= *ready_max,
            unacknowledged: *is_alone && figures.unacknowledged.load(Relaxed) > 0,
        };
        for server in servers {
            let Some(counters) = figures.servers.get(server.place) else { continue };
            let contact = counters.contact();
            let contact = Contact { due: contact.due.filter(|_| *is_alone), ..contact };
            server.listen(now, &contact, clients, |addresses| sockets_to(addresses, tcp, buffer));
        }
    }

    /// Why the run is not valid: servers that stood still.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let words = "though its host acknowledged what it was sent: it stood still, had too much to do, or passes no such \
                     messages on; see its log";
        self.servers.iter().filter_map(|server| server.in_words(Some(Said::Acknowledged), words)).collect()
    }

    /// ServerSilences whose cause is not known, in words.
    pub(crate) fn unexplained(&self) -> Vec<String> {
        let nothing =
            "and its host acknowledged nothing: whether server, host or network stood still is not known";
        let nobody = "and TCP could not be asked: whether server, host or network stood still is not known";
        let kinds = [(Some(Said::Nothing), nothing), (None, nobody)];
        let of = |server: &OneServer| kinds.map(|(said, words)| server.in_words(said, words));
        self.servers.iter().flat_map(of).flatten().collect()
    }
}

impl OneServer {
    fn of(place: usize, server: &Server) -> OneServer {
        let addresses = server.endpoints.iter().map(|endpoint| endpoint.socket_address()).collect();
        OneServer::named(place, &server.name, addresses)
    }

    fn named(place: usize, name: &str, addresses: Vec<SocketAddr>) -> OneServer {
        let (present, sent, over) = (None, BTreeMap::new(), Vec::new());
        OneServer { place, name: name.to_owned(), addresses, present, sent, over }
    }

    fn listen(
        &mut self,
        now: Instant,
        contact: &Contact,
        clients: Clients,
        sockets: impl FnOnce(&[SocketAddr]) -> Vec<Socket>,
    ) {
        let heard = contact.heard.unwrap_or(Instant::ZERO);
        if let Some(silence) = &mut self.present {
            let is_over = heard > silence.since || !clients.all_here;
            silence.until = if heard > silence.since { heard } else { now };
            if is_over {
                self.over.extend(self.present.take().filter(Silence::is_long));
            } else if now >= silence.asks_again {
                silence.ask(now, &sockets(&self.addresses), &mut self.sent);
            }
        }
        if self.present.is_none() && clients.all_here {
            let asked = [contact.asked, contact.due].into_iter().flatten().filter(|at| *at > heard).min();
            // What waits since before has waited at least since then.
            let waits = contact.heard.filter(|_| clients.unacknowledged);
            self.present = asked.or(waits).map(Silence::from);
            self.sent.clear();
        }
    }

    /// A sentence for all silences of which TCP said this.
    fn in_words(&self, said: Option<Said>, words: &str) -> Option<String> {
        let present = self.present.filter(Silence::is_long);
        let mut alike = self.over.iter().copied().chain(present).filter(|silence| silence.said == said);
        let first = alike.next()?;
        let seconds = |at: Instant| at.since(Instant::ZERO).as_s_f64();
        let more = match alike.count() {
            0 => String::new(),
            1 => " and once more".into(),
            more => format!(" and {more} more times"),
        };
        Some(format!(
            "server `{}` answered nobody from {:.1} s to {:.1} s of the run{more}, {words}",
            self.name,
            seconds(first.since),
            seconds(first.until)
        ))
    }
}

impl From<Instant> for Silence {
    fn from(since: Instant) -> Silence {
        Silence { since, until: since, least: SILENCE_MIN, said: None, asks_again: since + ON_ITS_WAY }
    }
}

impl Silence {
    fn is_long(&self) -> bool {
        self.until.since(self.since) >= self.least
    }

    /// `sent` is what each connection had sent when it was first asked.
    fn ask(&mut self, now: Instant, sockets: &[Socket], sent: &mut BTreeMap<SocketAddrV4, u64>) {
        self.asks_again = now + ASKS_EVERY;
        let Some(round_trip) = sockets.iter().map(|socket| socket.srtt()).max() else { return };
        self.least = SILENCE_MIN.max(round_trip * 4);
        let has_all = |socket: &Socket| socket.in_flight_bytes() == 0;
        // Where messages go on, some bytes are always in flight: a receiver holds its acknowledgements back.
        let had = |socket: &Socket| {
            sent.get(&socket.local).is_some_and(|bytes| socket.acknowledged_bytes >= *bytes)
        };
        let has_new =
            |socket: &Socket| now >= self.since + socket.since_sent && (has_all(socket) || had(socket));
        // Later than this, no acknowledgement is of what was sent before.
        let late = self.since + ON_ITS_WAY + round_trip * 2;
        let said = if sockets.iter().all(has_all) || sockets.iter().any(has_new) {
            Said::Acknowledged
        } else if sockets.iter().any(|socket| now >= late + socket.since_acknowledged) {
            Said::UnderWay
        } else {
            Said::Nothing
        };
        self.said = self.said.max(Some(said));
        for socket in sockets {
            sent.entry(socket.local).or_insert(socket.sent_bytes());
        }
    }
}

/// This process's side of every connection to these addresses.
fn sockets_to(addresses: &[SocketAddr], tcp: &mut Option<OwnedFd>, buffer: &mut Vec<u8>) -> Vec<Socket> {
    let mut sockets = Vec::new();
    if tcp.is_none() {
        *tcp = netlink::open_diagnostics().ok();
    }
    if let Some(tcp) = tcp {
        // What the kernel does not answer is not known.
        let _ = tcp_states::dump(tcp, buffer, &mut sockets);
    }
    let is_one = |peer: SocketAddrV4| addresses.contains(&SocketAddr::V4(peer));
    sockets.retain(|socket| is_one(socket.peer));
    sockets
}

/// Less than this is a busy server, or a slow way.
const SILENCE_MIN: Duration = Duration::from_ms(1000);
/// An acknowledgement may be held back by a receiver for 200 ms, and by queues for longer.
const ON_ITS_WAY: Duration = Duration::from_ms(500);
/// A dump of a machine's sockets takes milliseconds.
const ASKS_EVERY: Duration = Duration::from_ms(250);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: Clients = Clients { all_here: true, unacknowledged: false };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn server() -> OneServer {
        OneServer::named(0, "broker", Vec::new())
    }

    /// A connection with so many bytes in flight, which sent and was acknowledged so long ago.
    fn socket(in_flight_bytes: u64, sent_ms: u64, acknowledged_ms: u64) -> Socket {
        let [sent, acknowledged] = [sent_ms, acknowledged_ms].map(Duration::from_ms);
        Socket::of(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 40_000), in_flight_bytes, sent, acknowledged)
    }

    /// Messages every 20 ms from 1 s to 5 s, each answered 1 ms later but for those from `from` to `until`, at which time
    /// everything is answered. What is said of it, with TCP as `sockets` has it after so many milliseconds of silence.
    fn told(from: u64, until: u64, clients: Clients, sockets: impl Fn(u64) -> Vec<Socket>) -> OneServer {
        let mut server = server();
        let mut contact = Contact { heard: Some(at(900)), ..Contact::default() };
        for ms in 1000..5000 {
            if ms % 20 == 0 {
                contact.asked = Some(at(ms));
            }
            if ms % 20 == 1 && !(from..until).contains(&ms) {
                contact.heard = Some(at(ms));
            }
            if ms % 50 == 0 {
                server.listen(at(ms), &contact, clients, |_| sockets(ms.saturating_sub(from)));
            }
        }
        server
    }

    fn words(server: &OneServer, said: Option<Said>) -> Option<String> {
        server.in_words(said, "words")
    }

    #[test]
    fn a_server_whose_host_acknowledges_and_that_answers_nobody_stood_still() {
        let whole = |_| vec![socket(0, 5, 3), socket(100, 1, 3)];
        let frozen = told(2000, 4000, HERE, whole);
        let said = words(&frozen, Some(Said::Acknowledged)).unwrap();
        assert!(
            said.starts_with("server `broker` answered nobody from 2.0 s to 4.0 s of the run, "),
            "{said}"
        );
        // Until the end.
        assert!(words(&told(3000, 9000, HERE, whole), Some(Said::Acknowledged)).is_some());
        // Shorter than is looked for.
        let short = told(2000, 2900, HERE, whole);
        assert_eq!(
            (short.over, words(&told(0, 0, HERE, whole), Some(Said::Acknowledged))),
            (Vec::new(), None)
        );
    }

    #[test]
    fn acknowledgements_that_are_held_back_do_not_hide_a_silence() {
        // 100 B every 20 ms, of which 200 B are always in flight.
        let held_back = |silent: u64| vec![socket(200, 5, 3).with_acknowledged(5 * silent)];
        assert!(words(&told(2000, 4000, HERE, held_back), Some(Said::Acknowledged)).is_some());
    }

    #[test]
    fn a_host_that_acknowledges_nothing_leaves_the_cause_open() {
        let cut = told(2000, 4000, HERE, |silent| {
            vec![socket(700, 20, silent), socket(0, silent + 300, silent + 300)]
        });
        assert!(
            words(&cut, Some(Said::Nothing)).is_some() && words(&cut, Some(Said::Acknowledged)).is_none()
        );
        let nobody = told(2000, 4000, HERE, |_| Vec::new());
        assert!(words(&nobody, None).is_some() && words(&nobody, Some(Said::Nothing)).is_none());
    }

    #[test]
    fn a_long_message_on_its_way_up_is_no_silence() {
        let upload = told(2000, 4000, HERE, |silent| {
            vec![socket(144_800, 10, 8).with_acknowledged(8 * silent), socket(0, 2500, 2400)]
        });
        assert_eq!(upload.over.len(), 1);
        assert!(
            [None, Some(Said::Nothing), Some(Said::Acknowledged)]
                .iter()
                .all(|said| words(&upload, *said).is_none())
        );
    }

    #[test]
    fn a_full_window_that_waits_is_a_silence_and_missing_clients_are_none() {
        let mut server = server();
        let contact = Contact { heard: Some(at(1000)), asked: Some(at(990)), due: None };
        let waiting = Clients { unacknowledged: true, ..HERE };
        (1000..4000)
            .step_by(50)
            .for_each(|ms| server.listen(at(ms), &contact, waiting, |_| vec![socket(0, 2000, 2000)]));
        assert!(words(&server, Some(Said::Acknowledged)).unwrap().contains("from 1.0 s to 4.0 s"));
        let gone = told(2000, 4000, Clients::default(), |_| vec![socket(0, 5, 3)]);
        assert_eq!((gone.over, gone.present), (Vec::new(), None));
        // Nothing was asked.
        let mut idle = self::server();
        let heard = Contact { heard: Some(at(1000)), ..Contact::default() };
        (1000..9000).step_by(50).for_each(|ms| idle.listen(at(ms), &heard, HERE, |_| vec![socket(0, 5, 3)]));
        assert_eq!(idle.present, None);
    }

    #[test]
    fn a_way_of_long_round_trips_has_longer_silences() {
        let far = |_| vec![socket(0, 5, 3).with_srtt(Duration::from_ms(700))];
        assert_eq!(words(&told(2000, 4000, HERE, far), Some(Said::Acknowledged)), None);
    }
}
