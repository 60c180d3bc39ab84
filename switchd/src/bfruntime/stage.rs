//! The switch that requests for a program mean: the one that runs or, while the program is prepared, one beside it.

use p4rack_netdev::clock;
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A switch with a program that is prepared; nothing if the program runs.
#[derive(Debug, Default)]
pub struct Stage(Mutex<Option<Switch>>);

impl Stage {
    /// With a switch.
    pub fn of(switch: Switch) -> Stage {
        Stage(Mutex::new(Some(switch)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Switch>> {
        // A panic within a job at worst leaves an update half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The switch, for one that runs to take it over.
    pub fn take(&self) -> Option<Switch> {
        self.lock().take()
    }

    /// Whether there is one.
    pub fn has_any(&self) -> bool {
        self.lock().is_some()
    }

    /// Does work on the switch; gives it back if there is none.
    pub fn run<R, W: FnOnce(&mut Switch, Nanos) -> R>(&self, work: W) -> Result<R, W> {
        match &mut *self.lock() {
            Some(switch) => Ok(work(switch, clock::now())),
            None => Err(work),
        }
    }
}
