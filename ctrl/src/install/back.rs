//! Rollback: restores a switch's old program and entities after a failed installation.
//!
//! RECONCILE_AND_COMMIT leaves the entities in place. VERIFY_AND_COMMIT clears them, so that from then on only this process
//! has them, until they are written.

use super::before::Before;
use super::{How, Unfinished, reconcile};
use crate::client::Client;
use crate::error::CtrlError;
use crate::reconcile::changes;
use p4rack_p4rt::p4::v1::Update;

/// The program of a switch after a failed rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    New,
    /// Unknown: the call that installs the old one was cut off.
    Either,
    Old,
}

/// A failed rollback.
#[derive(Debug)]
struct Stuck {
    runs: Runs,
    /// Whether VERIFY_AND_COMMIT was sent.
    is_cleared: bool,
    error: CtrlError,
}

impl Stuck {
    /// The switch's program and entities in a sentence. `kept` is the number of entities to carry over.
    fn state(&self, how: How, kept: usize, before: &Before) -> String {
        let Stuck { runs, is_cleared, ref error } = *self;
        let program = match runs {
            Runs::New => "the new program",
            Runs::Either => "the new program or the old one",
            Runs::Old => "the old program",
        };
        let is_kept = how == How::Reconciled && !is_cleared;
        let entities = match (runs, how) {
            (Runs::Old, _) if is_kept || how == How::Same => "with some of these changes".to_owned(),
            (Runs::Old, _) => format!("without all or some of its {} entries", before.entities.len()),
            _ if is_kept => "with the old entries".to_owned(),
            (_, How::Reconciled) => format!("may have lost the {kept} entries"),
            _ => format!("without the {kept} entries"),
        };
        format!("the switch runs {program}, {entities}, and could not be given the old ones again: {error}")
    }
}

/// Brings the old program and its entities back. Those that the switch may lack then are kept for the next try. Returns the
/// error with what the switch runs and holds.
pub async fn undone(
    client: &mut Client,
    before: Option<Before>,
    (how, kept): (How, usize),
    error: CtrlError,
    unfinished: &mut Unfinished,
) -> CtrlError {
    let state = match before {
        None => "the switch had no program before; it runs the new one now, without these entries".to_owned(),
        Some(before) => match back(client, &before, how).await {
            Ok(true) => {
                "the old program and its entries are back; its counters and registers start again".to_owned()
            }
            Ok(false) => "the switch has its old program and entries".to_owned(),
            Err(stuck) => {
                let state = stuck.state(how, kept, &before);
                if stuck.is_cleared || how == How::Replaced {
                    unfinished.add(before);
                }
                state
            }
        },
    };
    CtrlError::NotInstalled { error: Box::new(error), state }
}

/// Returns whether VERIFY_AND_COMMIT was necessary.
async fn back(client: &mut Client, before: &Before, how: How) -> Result<bool, Stuck> {
    if how != How::Same && before.config.p4_device_config.is_empty() {
        let error = CtrlError::Program("the switch does not return its programs".into());
        return Err(Stuck { runs: Runs::New, is_cleared: false, error });
    }
    let failed = |is_cleared| {
        move |error: CtrlError| {
            let runs = if error.is_cut_off() { Runs::Either } else { Runs::New };
            Stuck { runs, is_cleared, error }
        }
    };
    let is_cleared = match how {
        How::Same => false,
        How::Reconciled => reconcile(client, before.config.clone()).await.map_err(failed(false))?.is_some(),
        How::Replaced | How::First => true,
    };
    if is_cleared {
        client.set_pipeline(before.config.clone()).await.map_err(failed(true))?;
    }
    match write(client, before).await {
        Ok(()) => Ok(is_cleared),
        Err(error) => Err(Stuck { runs: Runs::Old, is_cleared, error }),
    }
}

/// Writes what the switch lacks.
async fn write(client: &mut Client, before: &Before) -> Result<(), CtrlError> {
    let found = before.text.read(client, &before.schema).await?;
    let changes = changes(&before.all(), found.entities);
    let phases: Vec<&[Update]> = changes.phases.iter().map(Vec::as_slice).collect();
    client.write_together(&before.schema, &phases).await
}
