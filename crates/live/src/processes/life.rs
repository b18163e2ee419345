//! A server's program in the course of a run: it stands still, ends and starts again by events of the plan.
//!
//! ```text
//!    pause: SIGSTOP        stop: SIGTERM, kill: SIGKILL                  start
//!   Up ◄──► Paused      ──► Ending ──► (its end is seen) Down ──► Starting ──► (it is ready) Up
//! ```
//!
//! A program that is stopped while it stands still is made to continue, so that it can end in order. Its directory stays from
//! one start to the next, and with it what it has stored there, unless the plan says otherwise; its files are written anew, with the
//! same text. Its output goes to the same log.
//!
//! What it does not do: wait. Who has it asks it again.

use std::path::Path;
use std::time;

use mqttlab_plan::{ServerChange, ServerChangeKind, ServerProcess};
use mqttlab_system::process::Signal;

use crate::host::scratch::Scratch;
use crate::processes::server::{HostPlace, ServerError, ServerHandle};

/// One of a plan's servers that was started.
pub(crate) struct RunningServer {
    /// Index into the plan's servers.
    pub(crate) index: usize,
    /// `None` while it is down.
    handle: Option<ServerHandle>,
    state: ProgramState,
    /// Its directory, while it is down.
    directory: Option<Scratch>,
    /// Whether its directory is to stay when it has ended.
    keeps_directory: bool,
    /// It is to start once it is down: whether with its directory.
    start_wanted: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramState {
    Up,
    Paused,
    Ending,
    Down,
    Starting {
        deadline: time::Instant,
    },
    /// It has died by itself.
    Lost,
}

/// What was seen of a program.
#[derive(Debug)]
pub(crate) enum ServerNews {
    /// It ended because it was to: how.
    Ended(String),
    /// It ended, and nobody wanted that.
    Died,
    /// It has started again, and is ready.
    Ready,
}

/// Where and as what a program starts again.
pub(crate) struct StartPlace<'a> {
    pub(crate) process: &'a ServerProcess,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) host: HostPlace<'a>,
    pub(crate) log: &'a Path,
}

impl RunningServer {
    /// A program that is ready.
    pub(crate) fn new(index: usize, handle: ServerHandle) -> RunningServer {
        let (state, directory) = (ProgramState::Up, None);
        RunningServer {
            index,
            handle: Some(handle),
            state,
            directory,
            keeps_directory: true,
            start_wanted: None,
        }
    }

    /// Its program, while there is one.
    pub(crate) fn handle(&self) -> Option<&ServerHandle> {
        self.handle.as_ref()
    }

    /// Whether it stands still because it was told to.
    pub(crate) fn is_paused(&self) -> bool {
        self.state == ProgramState::Paused
    }

    /// Something happens to it. What does not fit its state changes nothing, as a signal to a program that has ended.
    pub(crate) fn change(&mut self, ServerChange { kind, persistence }: ServerChange) {
        if kind == ServerChangeKind::Start {
            if matches!(self.state, ProgramState::Ending | ProgramState::Down) {
                self.start_wanted = Some(persistence);
            }
            return;
        }
        let (ProgramState::Up | ProgramState::Paused, Some(handle)) = (self.state, &self.handle) else {
            return;
        };
        match kind {
            ServerChangeKind::Pause => {
                handle.signal(Signal::STOP);
                self.state = ProgramState::Paused;
            }
            ServerChangeKind::Continue => {
                handle.signal(Signal::CONT);
                self.state = ProgramState::Up;
            }
            ServerChangeKind::Stop => handle.terminate(),
            ServerChangeKind::Kill => handle.signal(Signal::KILL),
            ServerChangeKind::Start => {}
        }
        if matches!(kind, ServerChangeKind::Stop | ServerChangeKind::Kill) {
            (self.state, self.keeps_directory) = (ProgramState::Ending, persistence);
        }
    }

    /// What has become of it since it was last asked; starts it where it is to start.
    ///
    /// # Errors
    /// It does not start again.
    pub(crate) fn look(&mut self, place: &StartPlace<'_>) -> Result<Option<ServerNews>, ServerError> {
        if self.handle.as_ref().is_some_and(ServerHandle::has_exited) {
            return match self.state {
                ProgramState::Ending => Ok(Some(self.take_end())),
                ProgramState::Starting { .. } => {
                    Err(self.handle.take().map_or(ServerError::Stopped, ServerHandle::into_exit_error))
                }
                _ => Ok(Some(ServerNews::Died)),
            };
        }
        if let ProgramState::Down = self.state
            && let Some(persistence) = self.start_wanted.take()
        {
            self.start(place, persistence)?;
        }
        let (ProgramState::Starting { deadline }, Some(handle)) = (self.state, &self.handle) else {
            return Ok(None);
        };
        if handle.is_ready(place.address, place.host.namespace, place.process) {
            self.state = ProgramState::Up;
            return Ok(Some(ServerNews::Ready));
        }
        if time::Instant::now() >= deadline {
            return Err(handle.silent_error(place.process));
        }
        Ok(None)
    }

    fn take_end(&mut self) -> ServerNews {
        let mut handle = self.handle.take().expect("a program that ends was there");
        self.directory = handle.take_directory().filter(|_| self.keeps_directory);
        self.state = ProgramState::Down;
        ServerNews::Ended(handle.stop())
    }

    fn start(&mut self, place: &StartPlace<'_>, persistence: bool) -> Result<(), ServerError> {
        let directory = self.directory.take().filter(|_| persistence);
        let handle = ServerHandle::start_in(place.process, place.host, place.log, directory)?;
        self.handle = Some(handle);
        let timeout = time::Duration::from_nanos(place.process.start_timeout.as_ns());
        self.state = ProgramState::Starting { deadline: time::Instant::now() + timeout };
        Ok(())
    }

    /// It has died, and nobody starts it again; how.
    pub(crate) fn lose(&mut self) -> String {
        self.state = ProgramState::Lost;
        self.handle.take().map_or_else(String::new, ServerHandle::stop)
    }

    /// Whether it has died.
    pub(crate) fn is_lost(&self) -> bool {
        self.state == ProgramState::Lost
    }

    /// Ends it at the run's end, and says how it ended; `None`: it was down already.
    pub(crate) fn stop(self) -> Option<String> {
        self.handle.map(ServerHandle::stop)
    }
}
