//! A server's process in its host's namespace, which dies with the engine.
//!
//! A thread, its keeper, starts it ([`mqttlab_system::spawn`]) and lives until the server is stopped. The keeper ends with the
//! engine, however the engine ends: `kill -9` leaves nothing behind.
//!
//! What it does not do: know when a server is to start again (`life.rs`), or what its end means for the run.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mqttlab_plan::{Server, ServerProcess, Text, hidden};
use mqttlab_system::namespaces::Namespace;
use mqttlab_system::poller::is_readable;
use mqttlab_system::priority::Priority;
use mqttlab_system::process::{self, Signal};
use mqttlab_system::spawn::{Place, spawn};
use mqttlab_system::usage;

use crate::host::limit_groups::LimitGroup;
use crate::host::scratch::Scratch;
use crate::processes::readiness;

/// A running server.
pub struct ServerHandle {
    init: i32,
    pidfd: OwnedFd,
    /// Dropping it lets the keeper end.
    release: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<Option<ExitStatus>>>,
    log: PathBuf,
    /// Where in its log its own output begins: before it is that of an earlier start.
    log_start: u64,
    /// What its log must not show.
    secrets: Vec<Text>,
    directory: Option<Scratch>,
    /// What holds it, and how often the kernel had killed one of its host's for memory before.
    limits: Option<(Arc<LimitGroup>, u64)>,
}

/// A host, for a program that is started there.
#[derive(Clone, Copy)]
pub struct HostPlace<'a> {
    /// `None`: the engine's own.
    pub(crate) namespace: Option<&'a Namespace>,
    /// What holds it to the host's limits.
    pub(crate) limits: Option<&'a Arc<LimitGroup>>,
}

/// The detail of a server's event: which server, and `what`.
pub(crate) fn named(server: &Server, what: &str) -> String {
    format!("{}: {what}", server.name)
}

/// Why a server did not start.
#[derive(Debug)]
pub enum ServerError {
    /// Its files or its log could not be written.
    Files(io::Error),
    /// The program is not there, or not executable.
    Program {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended before it was ready.
    Exited {
        /// How.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// It was not ready in time.
    Silent {
        /// What it did not do.
        missing: String,
        /// How long was waited.
        waited: mqttlab_units::Duration,
        /// The end of its log.
        log: String,
    },
    /// The run was stopped while waiting.
    Stopped,
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerError::Files(source) => write!(f, "its files cannot be written: {source}"),
            ServerError::Program { program, source } => {
                write!(f, "`{program}` cannot be started: {source}")
            }
            ServerError::Exited { status, log } => {
                write!(f, "it ended at its start ({status}): {log}")
            }
            ServerError::Silent { missing, waited, log } => {
                write!(f, "it {missing} within {waited}: {log}")
            }
            ServerError::Stopped => write!(f, "the run was stopped before it was ready"),
        }
    }
}

impl std::error::Error for ServerError {}

impl ServerHandle {
    /// Writes the server's files and starts it at `host`. Its output goes to `log`.
    ///
    /// # Errors
    /// [`ServerError::Files`] and [`ServerError::Program`].
    pub fn start(
        process: &ServerProcess,
        host: HostPlace<'_>,
        log: &Path,
    ) -> Result<ServerHandle, ServerError> {
        ServerHandle::start_in(process, host, log, None)
    }

    /// As [`ServerHandle::start`], in the directory of an earlier start, if there is one.
    pub(crate) fn start_in(
        process: &ServerProcess,
        host: HostPlace<'_>,
        log: &Path,
        directory: Option<Scratch>,
    ) -> Result<ServerHandle, ServerError> {
        let scratch = directory.map_or_else(|| Scratch::new("server"), Ok).map_err(ServerError::Files)?;
        let log_start = fs::metadata(log).map_or(0, |log| log.len());
        let directory = scratch.path().to_string_lossy().into_owned();
        let engine = std::env::current_exe().map_err(ServerError::Files)?.to_string_lossy().into_owned();
        let filled = |text: &str| text.replace("{directory}", &directory).replace("{engine}", &engine);
        for file in &process.files {
            scratch.write(&file.path, &filled(file.text.as_str())).map_err(ServerError::Files)?;
        }
        // A file is a text with places to fill in; another secret is used as it is.
        let text_of =
            |text: &Text| if text.is_secret() { text.as_str().to_owned() } else { filled(text.as_str()) };
        let arguments: Vec<String> = process.command.iter().map(text_of).collect();
        let mut command = command(&arguments, scratch.path(), log).map_err(ServerError::Files)?;
        command.envs(process.environment.iter().map(|(name, value)| (name, text_of(value))));
        let limits = host.limits.map(|limits| (Arc::clone(limits), limits.memory_kills()));
        let (child, release, keeper) = spawn_keeper(command, host)
            .map_err(|source| ServerError::Program { program: arguments[0].clone(), source })?;
        let pidfd = process::open(child).map_err(ServerError::Files)?;
        Ok(ServerHandle {
            init: child,
            pidfd,
            release: Some(release),
            keeper: Some(keeper),
            log: log.to_owned(),
            log_start,
            secrets: secrets_of(process),
            directory: Some(scratch),
            limits,
        })
    }

    /// Waits until the server is ready, asked at `address` from its own namespace.
    ///
    /// # Errors
    /// It ended, or was not ready within the plan's time, or `stopped` became true.
    pub fn wait_until_ready(
        &mut self,
        address: SocketAddr,
        namespace: Option<&Namespace>,
        process: &ServerProcess,
        stopped: impl Fn() -> bool,
    ) -> Result<(), ServerError> {
        let deadline = Instant::now() + Duration::from_nanos(process.start_timeout.as_ns());
        loop {
            if self.has_exited() {
                return Err(self.exit_error());
            }
            if self.is_ready(address, namespace, process) {
                return Ok(());
            }
            if stopped() {
                return Err(ServerError::Stopped);
            }
            if Instant::now() >= deadline {
                return Err(self.silent_error(process));
            }
            thread::sleep(POLL);
        }
    }

    /// Whether it is ready now, asked at `address` from its own namespace.
    pub(crate) fn is_ready(
        &self,
        address: SocketAddr,
        namespace: Option<&Namespace>,
        process: &ServerProcess,
    ) -> bool {
        readiness::is_ready(&process.ready, address, namespace, (&self.log, self.log_start))
    }

    /// Why it has not started: it has ended.
    pub(crate) fn into_exit_error(mut self) -> ServerError {
        self.exit_error()
    }

    fn exit_error(&mut self) -> ServerError {
        let status = self.stop_and_wait();
        ServerError::Exited { status, log: self.log_end() }
    }

    /// Why it has not started: it is not ready in time.
    pub(crate) fn silent_error(&self, process: &ServerProcess) -> ServerError {
        let (missing, waited) = (readiness::in_words(&process.ready), process.start_timeout);
        ServerError::Silent { missing, waited, log: self.log_end() }
    }

    /// Its directory, which stays when it has ended.
    pub(crate) fn take_directory(&mut self) -> Option<Scratch> {
        self.directory.take()
    }

    /// Process 1 of the server's namespace, by its number outside.
    pub fn init(&self) -> i32 {
        self.init
    }

    /// The processes of the server and its children, without init.
    pub fn processes(&self) -> Vec<i32> {
        usage::descendants(self.init)
    }

    /// Schedules its processes so. Those that limits hold stay as they are: a quota does not concern real-time threads.
    pub(crate) fn prioritise(&self, priority: Priority) {
        for process in self.processes().into_iter().filter(|_| self.limits.is_none()) {
            // Refused where the emulator's was, and that has been said.
            let _ = priority.apply_to_process(process);
        }
    }

    /// Whether it has a disk that is slow on purpose.
    pub(crate) fn has_slow_disk(&self) -> bool {
        self.limits.as_ref().is_some_and(|(limits, _)| limits.has_slow_disk())
    }

    /// Whether the server's main process has ended.
    pub fn has_exited(&self) -> bool {
        is_readable(&self.pidfd)
    }

    /// Asks the server to end, insists after a second, and says how it ended.
    pub fn stop(mut self) -> String {
        self.stop_and_wait()
    }

    /// Asks it to end, and does not wait.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        // One that stands still would not hear it.
        self.signal(Signal::CONT);
    }

    /// Sends a signal to all of its processes.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in self.processes() {
            // It may have ended meanwhile.
            let _ = process::send(process, signal);
        }
    }

    /// Waits until then for the end that it was asked for, insists, and says how it ended.
    pub fn stop_by(mut self, deadline: Instant) -> String {
        self.wait_then_kill(deadline)
    }

    fn stop_and_wait(&mut self) -> String {
        self.terminate();
        self.wait_then_kill(Instant::now() + GRACE)
    }

    fn wait_then_kill(&mut self, deadline: Instant) -> String {
        while !self.has_exited() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        drop(self.release.take());
        let status = self.keeper.take().and_then(|keeper| keeper.join().expect("the keeper does not panic"));
        status.map_or_else(|| "killed".into(), |status| self.cause(status))
    }

    /// How it ended; the kernel tells only the group that it was for memory.
    fn cause(&self, status: ExitStatus) -> String {
        let words = describe(status);
        match &self.limits {
            Some((limits, before)) if words == KILLED && limits.memory_kills() > *before => {
                limits.memory_death()
            }
            _ => words,
        }
    }

    fn log_end(&self) -> String {
        let text =
            fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return "it logged nothing".into();
        }
        let end = lines[lines.len().saturating_sub(3)..].join(" / ");
        format!("its log ends: {}", hidden(end, &self.secrets))
    }
}

/// What a program is told that nobody else may see.
fn secrets_of(process: &ServerProcess) -> Vec<Text> {
    let files = process.files.iter().map(|file| &file.text);
    let texts = process.command.iter().chain(process.environment.values()).chain(files);
    texts.filter(|text| text.is_secret()).cloned().collect()
}

impl AsFd for ServerHandle {
    /// Readable once the server has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if self.keeper.is_some() {
            self.stop_and_wait();
        }
    }
}

fn command(arguments: &[String], directory: &Path, log: &Path) -> io::Result<Command> {
    let program = arguments.first().ok_or_else(|| io::Error::other("its command is empty"))?;
    // Behind what earlier starts have left there.
    let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.args(&arguments[1..]).current_dir(directory).stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log);
    Ok(command)
}

type Keeper = (i32, mpsc::Sender<()>, JoinHandle<Option<ExitStatus>>);

/// Starts the command on a thread that lives until its `Sender` is dropped, and ties the command's life to it.
fn spawn_keeper(mut command: Command, host: HostPlace<'_>) -> io::Result<Keeper> {
    let groups = host.limits.map_or_else(|| Ok(Vec::new()), |limits| limits.entrances())?;
    let network = host.namespace.map(|namespace| namespace.as_fd().try_clone_to_owned()).transpose()?;
    let (release, released) = mpsc::channel::<()>();
    let (report, started) = mpsc::sync_channel(1);
    let keeper = thread::Builder::new().name("keeper".into()).spawn(move || {
        let place = Place { network: network.as_ref().map(OwnedFd::as_fd), groups };
        let mut tied = match spawn(&mut command, place) {
            Ok(tied) => tied,
            Err(error) => {
                let _ = report.send(Err(error));
                return None;
            }
        };
        let _ = report.send(Ok(tied.init.id() as i32));
        // Ends when the sender is dropped; nothing is ever sent.
        let _ = released.recv();
        let ended = tied.init.try_wait().ok().flatten();
        // The kill takes the whole PID namespace along, children that outlived the server included.
        let _ = tied.init.kill();
        let _ = tied.init.wait();
        ended
    })?;
    let pid = started.recv().expect("the keeper reports before it ends")?;
    Ok((pid, release, keeper))
}

/// Init passes a signal on as 128 and its number, as shells do.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) if code > 128 => format!("killed by signal {}", code - 128),
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

/// By SIGKILL, as the kernel does it.
const KILLED: &str = "killed by signal 9";
const POLL: Duration = Duration::from_millis(10);
const GRACE: Duration = Duration::from_secs(1);
