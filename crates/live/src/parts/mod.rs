//! A run that several engines share, each with its part of the clients, on one machine or on many.
//!
//! ```text
//!   part 0  ◄── here, what is the time?, ready ──  parts 1, 2, …
//!           ── welcome, the time, begin ──►
//!           ◄── how the clients stand ───────────
//!           ── when to publish, leave ──►
//!           ◄── the time again, rows ────────────
//!           ── kept ──►
//! ```
//!
//! Every part has the whole plan, so that clients, topics and messages have the same numbers everywhere, and performs every
//! n-th client. All count time from the same instant, part 0's, as far as the clocks' offset is known (`clock_offset`): so there is
//! one schedule, and what is written down needs no translation but for the clocks' drift. Part 0 decides when a stage is over
//! from what all clients have done, and makes one recording of everybody's rows.
//!
//! What it does not do: start the other parts, or emulate a network, which one machine has for itself.

pub(crate) mod client_share;
mod clock_offset;
mod follower;
mod leader;
mod merge;
mod messages;

use mqttlab_plan::{Backend, Destination, Part, Plan};
use mqttlab_run::{Announcer, Interruption, Progress, Schedule};
use mqttlab_units::Duration;

pub(crate) use follower::PartFollower;
pub(crate) use leader::PartLeader;

use crate::clock::Clock;
use crate::host::watch::Watch;
use crate::parts::client_share::ClientsStatus;

/// With whom this engine performs the run.
pub(crate) enum PartRole {
    /// With nobody.
    Alone,
    /// The others come here.
    Leading(PartLeader),
    /// Part 0 is elsewhere.
    Following(PartFollower),
}

impl PartRole {
    /// Part 0 listens, and says where; another part goes there, and takes its time from it: `clock` is then the run's. The
    /// process must have made its namespaces.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn join(
        plan: &Plan,
        destination: &Destination,
        clock: &mut Clock,
        announcer: &mut Announcer<'_>,
    ) -> Result<PartRole, String> {
        let parts = if plan.backend == Backend::Live { plan.live.parts } else { 1 };
        let run = || {
            let run_id = destination.run_id.as_deref().ok_or("a part of a run needs --identifier")?;
            Ok::<_, String>((run_id, mqttlab_recording::digest(plan.to_json().as_bytes())))
        };
        match destination.part {
            Part::Whole if parts == 1 => Ok(PartRole::Alone),
            Part::Whole => {
                Err(format!("`live.parts` is {parts}: part 0 needs --lead-at, the others --part and --lead"))
            }
            _ if parts == 1 => Err("`live.parts` is 1: the run has no other parts".into()),
            Part::Leading { listen } => {
                let lead = PartLeader::new(listen, parts, run()?, *clock, &destination.directory)
                    .map_err(|error| format!("part 0 cannot listen at {listen}: {error}"))?;
                announcer.say(&Progress::Leading { address: lead.address().to_string() });
                Ok(PartRole::Leading(lead))
            }
            Part::Following { number, lead } => {
                let follow = PartFollower::new(number, lead, run()?)?;
                *clock = follow.clock;
                Ok(PartRole::Following(follow))
            }
        }
    }

    /// Waits until everybody is ready.
    ///
    /// # Errors
    /// What ended the run before it began.
    pub(crate) fn wait_for_parts(&self, watch: &mut Watch, clock: &Clock) -> Result<(), Interruption> {
        let began = clock.now();
        if let PartRole::Following(follow) = self {
            follow.ready();
        }
        loop {
            let is_ready = match self {
                PartRole::Alone => true,
                PartRole::Leading(lead) => lead.are_ready()?,
                PartRole::Following(follow) => follow.may_begin()?,
            };
            if is_ready {
                break;
            }
            watch.wait(STEP)?;
            if let PartRole::Leading(lead) = self
                && clock.now().since(began) > LONGEST_WAIT
            {
                let missing: Vec<String> = lead.missing().iter().map(ToString::to_string).collect();
                let words =
                    format!("parts {} of the run did not come within {LONGEST_WAIT}", missing.join(", "));
                return Err(Interruption::Part(words));
            }
        }
        if let PartRole::Leading(lead) = self {
            lead.begin();
        }
        Ok(())
    }

    /// Tells how the clients here stand, and learns how those of other parts do, where something is decided here.
    ///
    /// # Errors
    /// A part is gone, or has to end.
    pub(crate) fn exchange_status(
        &self,
        own: impl FnOnce() -> ClientsStatus,
    ) -> Result<ClientsStatus, Interruption> {
        match self {
            PartRole::Alone => Ok(ClientsStatus::default()),
            PartRole::Leading(lead) => lead.others(),
            PartRole::Following(follow) => follow.report_status(own()).map(|()| ClientsStatus::default()),
        }
    }

    /// Whether another part decides when stages are over.
    pub(crate) fn is_follower(&self) -> bool {
        matches!(self, PartRole::Following(_))
    }

    /// Tells the other parts when to publish.
    pub(crate) fn publish(&self, schedule: &Schedule) {
        if let PartRole::Leading(lead) = self {
            lead.publish(schedule);
        }
    }

    /// When part 0 has said that is published.
    pub(crate) fn ordered_schedule(&self) -> Option<Schedule> {
        if let PartRole::Following(follow) = self { follow.schedule() } else { None }
    }

    /// Whether part 0 has said that nothing is outstanding.
    pub(crate) fn may_leave(&self) -> bool {
        matches!(self, PartRole::Following(follow) if follow.may_leave())
    }

    /// The stages are over here: as planned, or before.
    pub(crate) fn leave(&self, result: &Result<(), Interruption>) {
        match self {
            PartRole::Alone => {}
            PartRole::Leading(lead) => lead.leave(result),
            PartRole::Following(follow) => follow.leave(result),
        }
    }
}

const STEP: Duration = Duration::from_ms(5);
/// Another machine may have a run of its own to finish first.
const LONGEST_WAIT: Duration = Duration::from_s(3600);
