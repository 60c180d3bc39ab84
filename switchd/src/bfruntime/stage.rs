//! The switch that requests for a program refer to: the running one or, while the program is prepared, one beside it.
//!
//! ```text
//!  prepared ─▶ Beside ─┬─ WARM_INIT_END ─▶ Runs
//!                      └─ its stream ends, or another program is prepared ─▶ Gone: requests that still mean it fail
//! ```

use crate::p4runtime::status;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Switch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync;
use tonic::Status;

/// Location of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// In the switch that forwards packets, or that did until another program replaced it.
    #[default]
    Runs,
    /// In a switch of its own.
    Beside,
    /// Nowhere: it was prepared, and never started.
    Gone,
}

/// The switch of a program that is prepared, while a job has it.
pub type Staged = sync::OwnedMappedMutexGuard<Option<Switch>, Switch>;

/// Location of a program, with its switch if that is beside the running one.
#[derive(Debug, Default)]
pub struct Stage {
    place: Mutex<Residence>,
    /// Jobs have it one after the other.
    switch: Arc<sync::Mutex<Option<Switch>>>,
}

fn gone() -> Status {
    status(Code::Aborted, "what was prepared is gone; begin again")
}

impl Stage {
    /// The stage of a program that is prepared in a switch.
    pub fn beside(switch: Switch) -> Stage {
        Stage { place: Mutex::new(Residence::Beside), switch: Arc::new(sync::Mutex::new(Some(switch))) }
    }

    fn lock(&self) -> MutexGuard<'_, Residence> {
        // Every change is a single assignment.
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program's location.
    pub fn place(&self) -> Residence {
        *self.lock()
    }

    /// The switch of a program that is prepared, after the jobs that have it; from now on the program is in `place`.
    /// `None` if it is not prepared.
    pub async fn leave(&self, place: Residence) -> Option<Switch> {
        {
            let mut own = self.lock();
            if *own != Residence::Beside {
                return None;
            }
            *own = place;
        }
        self.switch.lock().await.take()
    }

    /// The switch to work on; `None` is the one that runs. Errors: the program is gone.
    pub async fn enter(&self) -> Result<Option<Staged>, Status> {
        match self.place() {
            Residence::Runs => Ok(None),
            Residence::Gone => Err(gone()),
            Residence::Beside => {
                let switch = self.switch.clone().lock_owned().await;
                let staged = sync::OwnedMutexGuard::try_map(switch, Option::as_mut);
                staged.map(Some).map_err(|_| gone())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;
    use p4rack_switch::Config;

    #[tokio::test]
    async fn what_was_prepared_runs_or_is_gone() {
        let stage = || Stage::beside(Switch::new(Config::default()));
        let started = stage();
        assert!(started.enter().await.unwrap().is_some());
        assert!(started.leave(Residence::Runs).await.is_some());
        assert!(started.enter().await.unwrap().is_none(), "work is for the switch that runs");
        let forgotten = stage();
        assert!(forgotten.leave(Residence::Gone).await.is_some());
        assert_eq!(forgotten.enter().await.unwrap_err().code(), tonic::Code::Aborted);
        assert!(forgotten.leave(Residence::Runs).await.is_none() && forgotten.place() == Residence::Gone);
    }

    #[tokio::test]
    async fn a_job_that_waits_for_a_switch_that_goes_away_fails() {
        let stage = Arc::new(Stage::beside(Switch::new(Config::default())));
        let job = stage.enter().await.unwrap();
        let (first, second) = (stage.clone(), stage.clone());
        let forgets = tokio::spawn(async move { first.leave(Residence::Gone).await.is_some() });
        tokio::task::yield_now().await;
        let waits = tokio::spawn(async move { second.enter().await.is_err() });
        tokio::task::yield_now().await;
        drop(job);
        assert!(forgets.await.unwrap() && waits.await.unwrap());
    }
}
