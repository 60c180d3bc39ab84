//! Installs a program on a running switch, and keeps its entities as far as they fit.
//!
//! ```text
//!  before ─▶ plan ─┬─ the same program ────────────▶ Write of what differs
//!                  ├─ all fit ─▶ RECONCILE_AND_COMMIT ─▶ Write of what differs
//!                  └─ else, or declined ─▶ VERIFY_AND_COMMIT ─▶ Write of all that fit
//!                                               a failure ─▶ the old program and its entities again
//! ```
//!
//! Entries that a program's text gives its tables belong to the program: the old ones go with it, unless a controller has
//! changed them, and the new ones come with theirs.

mod back;
mod before;
mod plan;
mod unfinished;

pub use crate::carry::Dropped;
pub use unfinished::Unfinished;

use crate::client::Client;
use crate::desired::Desired;
use crate::error::CtrlError;
use crate::readback::{SwitchContents, kind_of};
use crate::reconcile::{Changes, changes};
use before::{Before, Own};
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update, update};
use plan::Plan;
use std::time::{Duration, Instant};
use tonic::Code;

/// Which of the switch's entities to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'p> {
    /// Keep none.
    pub clear: bool,
    /// The previous installation: its entities that are no longer desired are deleted.
    pub previous: Option<&'p Desired>,
}

/// How a program was installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The program was running already.
    Same,
    /// The switch had none.
    First,
    /// It replaced another one between two packets, with all entities.
    Reconciled,
    /// It replaced another one, and its entities were written again.
    Replaced,
}

/// A completed installation.
#[derive(Clone, Debug, PartialEq)]
pub struct Installed {
    /// How it was done.
    pub how: How,
    /// Why it was not done between two packets.
    pub declined: Option<String>,
    /// Entities of the old program that the new one holds.
    pub kept: usize,
    /// Entities of the old program that it does not.
    pub dropped: Vec<Dropped>,
    /// Entities inserted, modified and deleted besides.
    pub changed: [usize; 3],
    /// Kinds of entities that the switch can't read, so that they are not kept.
    pub unreadable: Vec<&'static str>,
    /// How long the switch was without some of its entities, at most.
    pub gap: Option<Duration>,
}

/// What an installation would do.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Whether the program runs already.
    pub is_same: bool,
    /// Entities that stay.
    pub kept: usize,
    /// Entities that don't fit.
    pub dropped: Vec<Dropped>,
    /// Changes besides.
    pub changes: Changes,
}

/// What [`install`] would do. It needs no session.
pub async fn preview(client: &mut Client, wanted: &Desired, rules: Rules<'_>) -> Result<Preview, CtrlError> {
    let before = Before::read(client).await?;
    let own = Own::of(&wanted.config, &wanted.schema);
    let plan = Plan::new(before.as_ref(), &[], (wanted, &own), rules);
    let actual = match &before {
        Some(before) if plan.is_same => before.all(),
        // Of another program, what is kept is there.
        _ => [plan.kept(), &plan.own].concat(),
    };
    let changes = changes(&plan.wanted(), actual);
    let kept = plan.kept_count();
    Ok(Preview { is_same: plan.is_same, kept, dropped: plan.dropped, changes })
}

/// Installs the program as primary. If something fails, the switch has its old program and entities again; the error says so.
/// If that is not possible, `unfinished` has them for the next try.
pub async fn install(
    client: &mut Client,
    wanted: &Desired,
    rules: Rules<'_>,
    unfinished: &mut Unfinished,
) -> Result<Installed, CtrlError> {
    let before = Before::read(client).await?;
    let own = Own::of(&wanted.config, &wanted.schema);
    let mut plan = Plan::new(before.as_ref(), unfinished.all(), (wanted, &own), rules);
    let is_repeated = !unfinished.is_empty();
    let (how, declined, since) = match before.as_ref() {
        Some(_) if plan.is_same => (How::Same, None, None),
        Some(_) => match replace(client, wanted, plan.is_whole).await {
            Ok(replaced) => replaced,
            Err(error) => {
                let state = match error.is_cut_off() || error.is_unknown() {
                    false => "the switch has its old program and entries".to_owned(),
                    true => {
                        let kept = plan.kept_count();
                        before.into_iter().for_each(|before| unfinished.add(before));
                        format!(
                            "it is not known which program the switch has, nor if it has the {kept} entries"
                        )
                    }
                };
                return Err(CtrlError::NotInstalled { error: Box::new(error), state });
            }
        },
        None => {
            client.set_pipeline(wanted.config.clone()).await?;
            (How::First, None, None)
        }
    };
    match fill(client, wanted, (&mut plan, &own), before.as_ref(), (how, is_repeated)).await {
        Ok(Filled { changed, rewritten }) => {
            unfinished.clear();
            let has_lost = how == How::Reconciled && rewritten > 0 && !is_repeated;
            let lost = || format!("the switch lost {rewritten} entries in RECONCILE_AND_COMMIT");
            // Entries of an earlier try were missing.
            let was_whole = !has_lost && (!is_repeated || how == How::First);
            let how_done = if was_whole { how } else { How::Replaced };
            Ok(Installed {
                how: how_done,
                declined: declined.or_else(|| has_lost.then(lost)),
                kept: plan.kept_count(),
                dropped: plan.dropped,
                changed,
                unreadable: match (&before, how) {
                    (Some(before), How::Replaced) => before.unreadable.clone(),
                    _ => Vec::new(),
                },
                // Entries of an earlier try have been missing since then.
                gap: since.filter(|_| !is_repeated && how_done == How::Replaced).map(|since| since.elapsed()),
            })
        }
        Err(error) => Err(back::undone(client, before, (how, plan.kept_count()), error, unfinished).await),
    }
}

/// Installs the program instead of the running one, with the entities if possible. Otherwise returns why not. Also returns
/// since when the switch may have been without them.
async fn replace(
    client: &mut Client,
    wanted: &Desired,
    is_whole: bool,
) -> Result<(How, Option<String>, Option<Instant>), CtrlError> {
    let tried = Instant::now();
    let declined = match is_whole {
        false => "the new program can't hold all entries as they are".to_owned(),
        true => match reconcile(client, wanted.config.clone()).await? {
            None => return Ok((How::Reconciled, None, Some(tried))),
            Some(why) => format!("the switch declined RECONCILE_AND_COMMIT: {why}"),
        },
    };
    let since = Instant::now();
    client.set_pipeline(wanted.config.clone()).await?;
    Ok((How::Replaced, Some(declined), Some(since)))
}

/// Installs a program between two packets. Returns why the switch declined that, if VERIFY_AND_COMMIT may succeed.
async fn reconcile(
    client: &mut Client,
    config: ForwardingPipelineConfig,
) -> Result<Option<String>, CtrlError> {
    match client.set_pipeline_by(Action::ReconcileAndCommit, Some(config)).await {
        Ok(()) => Ok(None),
        Err(error) if error.is_cut_off() => Err(error),
        Err(CtrlError::Refused { status, .. }) if may_be_committed(status.code()) => {
            Ok(Some(status.message().to_owned()))
        }
        Err(error) => Err(error),
    }
}

/// Whether a program that was not reconciled for this reason may be committed.
fn may_be_committed(code: Code) -> bool {
    matches!(
        code,
        Code::Unimplemented
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Internal
            | Code::Unknown
    )
}

/// What it took to bring a switch with a new program to what it should hold.
struct Filled {
    /// Entities inserted, modified and deleted, besides the kept ones.
    changed: [usize; 3],
    /// Kept entities that the switch lacked.
    rewritten: usize,
}

/// Writes what the switch lacks.
async fn fill(
    client: &mut Client,
    wanted: &Desired,
    (plan, own): (&mut Plan, &Own),
    before: Option<&Before>,
    (how, is_repeated): (How, bool),
) -> Result<Filled, CtrlError> {
    let is_fresh = matches!(how, How::First | How::Replaced);
    let cells = if how == How::Same { Vec::new() } else { wanted.initial_cells() };
    let mut known = match (how, before) {
        (How::Same, Some(before)) => {
            Some(SwitchContents { entities: before.all(), unreadable: before.unreadable.clone() })
        }
        _ if is_fresh => Some(SwitchContents { entities: plan.own.clone(), unreadable: Vec::new() }),
        _ => None,
    };
    loop {
        let mut found = match known.take() {
            Some(found) => found,
            None => own.read(client, &wanted.schema).await?,
        };
        let entities = plan.wanted();
        if !is_fresh {
            let unread = |entity: &&Entity| found.unreadable.contains(&kind_of(entity));
            let assumed: Vec<Entity> = entities.iter().filter(unread).cloned().collect();
            found.entities.extend(assumed);
        }
        let changes = changes(&entities, found.entities);
        let phases: Vec<&[Update]> =
            changes.phases.iter().map(Vec::as_slice).chain([cells.as_slice()]).collect();
        match client.write_together(&wanted.schema, &phases).await {
            Ok(()) => return Ok(filled(plan, &changes, is_fresh || is_repeated)),
            Err(CtrlError::Updates { failures }) if plan.give_up(&failures, &phases.concat()) => {}
            Err(error) => return Err(error),
        }
    }
}

fn filled(plan: &Plan, changes: &Changes, is_fresh: bool) -> Filled {
    let rewritten = changes.iter().filter(|update| plan.keeps(update)).count();
    let counts = |update: &&Update| if is_fresh { plan.asks_for(update) } else { !plan.keeps(update) };
    let changed = [update::Type::Insert, update::Type::Modify, update::Type::Delete]
        .map(|kind| changes.iter().filter(counts).filter(|update| update.r#type() == kind).count());
    Filled { changed, rewritten }
}
