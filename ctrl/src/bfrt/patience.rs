//! Repeats calls that a driver refuses with UNAVAILABLE: all calls while a program is being installed, and updates of a table
//! that is part of another session's transaction.

use super::unpack;
use p4rack_p4rt::google::rpc;
use std::error::Error;
use std::time::Duration;
use tokio::time::sleep;
use tonic::{Code, Status};

/// Pauses before the attempts after the first one, in milliseconds.
const PAUSES_MS: [u64; 10] = [50, 100, 200, 400, 500, 500, 500, 500, 500, 500];

/// Attempts of a call that are left.
#[derive(Debug)]
pub(super) struct Patience(std::slice::Iter<'static, u64>);

impl Default for Patience {
    fn default() -> Patience {
        Patience(PAUSES_MS.iter())
    }
}

impl Patience {
    /// Waits before the next attempt. Returns `false` after the last one.
    pub(super) async fn wait(&mut self) -> bool {
        let Some(pause_ms) = self.0.next() else { return false };
        sleep(Duration::from_millis(*pause_ms)).await;
        true
    }

    /// Waits before the next attempt, if the switch was only busy. Returns whether there is one.
    pub(super) async fn after(&mut self, status: &Status) -> bool {
        is_busy(status) && self.wait().await
    }
}

/// Whether the switch itself refused a call, or all that it refused of it, because it is busy.
fn is_busy(status: &Status) -> bool {
    match unpack(status) {
        Some(outcomes) => {
            let mut failed = outcomes.into_iter().flatten().peekable();
            failed.peek().is_some() && failed.all(|error| error.code == rpc::Code::Unavailable)
        }
        // A status that the client made, because the connection is lost, has a source.
        None => status.code() == Code::Unavailable && status.source().is_none(),
    }
}
