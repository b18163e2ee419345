//! What a run says, and what it has warned of.

use mqttlab_units::{Duration, Instant};

use crate::{Interruption, Progress, RunObserver, RunPhase};

/// Tells an observer, and keeps the warnings for the recording.
pub struct Announcer<'a> {
    observer: &'a mut dyn RunObserver,
    warnings: Warnings,
}

/// What is to be read before a run's numbers are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings(Vec<String>);

impl Warnings {
    /// Warns of something: said once, and kept for the recording.
    pub fn warn(&mut self, observer: &mut dyn RunObserver, text: String) {
        if !self.0.contains(&text) {
            observer.on_progress(&Progress::Warning { text: text.clone() });
            self.0.push(text);
        }
    }

    /// All of them so far.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl<'a> Announcer<'a> {
    /// Of a run that has said nothing.
    pub fn new(observer: &'a mut dyn RunObserver) -> Announcer<'a> {
        Announcer { observer, warnings: Warnings::default() }
    }

    /// Says one thing.
    pub fn say(&mut self, progress: &Progress) {
        self.observer.on_progress(progress);
    }

    /// A phase begins, and takes this long at most; zero for unknown.
    pub fn phase(&mut self, phase: RunPhase, at: Instant, length: Duration) {
        self.say(&Progress::begin(phase, at, length));
    }

    /// Something to be read before the numbers are trusted; said once, and kept for the recording.
    pub fn warn(&mut self, text: String) {
        self.warnings.warn(self.observer, text);
    }

    /// All warnings so far.
    pub fn warnings(&self) -> &[String] {
        self.warnings.all()
    }

    /// Why the run shall end now, if it shall.
    pub fn cancelled(&mut self) -> Option<Interruption> {
        self.observer.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Vec<Progress>);

    impl RunObserver for Heard {
        fn on_progress(&mut self, progress: &Progress) {
            self.0.push(progress.clone());
        }

        fn cancelled(&mut self) -> Option<Interruption> {
            (self.0.len() > 2).then_some(Interruption::Signal("SIGINT"))
        }
    }

    #[test]
    fn a_warning_is_said_once_and_kept() {
        let mut heard = Heard::default();
        let mut announcer = Announcer::new(&mut heard);
        for text in ["late", "late", "no disk"] {
            announcer.warn(text.into());
        }
        assert_eq!(announcer.warnings(), ["late", "no disk"]);
        assert_eq!(announcer.cancelled(), None);
        announcer.phase(RunPhase::WarmUp, Instant::from_ns(3), Duration::from_ns(4));
        assert_eq!(announcer.cancelled(), Some(Interruption::Signal("SIGINT")));
        assert_eq!(
            heard.0,
            [
                Progress::Warning { text: "late".into() },
                Progress::Warning { text: "no disk".into() },
                Progress::Phase { phase: RunPhase::WarmUp, at_ns: 3, length_ns: 4 },
            ]
        );
    }
}
