//! Installs a program on a running switch, and keeps its entities as far as they fit.
//!
//! ```text
//!  read ─▶ carry ─┬─ the same program ────────────▶ Write of what differs
//!                 ├─ all fit ─▶ RECONCILE_AND_COMMIT ─▶ Write of what differs
//!                 └─ else, or declined ─▶ VERIFY_AND_COMMIT ─▶ Write of all that fit
//!                                              a failure ─▶ the old program and its entities again
//! ```

pub use crate::carry::Dropped;

use crate::carry::carry;
use crate::client::{self, Client};
use crate::desired::Desired;
use crate::error::{CtrlError, UpdateFailure};
use crate::link::is_same;
use crate::normal::{Key, key, normal};
use crate::readback;
use crate::reconcile::{Changes, changes, is_written};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, TableEntry, Update, update};
use p4rack_p4rt::schema::{Schema, id_of};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tonic::Code;

/// Maximum entries that the switch refuses before the installation is given up.
const REFUSED: usize = 64;

/// What becomes of the entities that the switch has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'p> {
    /// Keep none.
    pub clear: bool,
    /// What was installed before. Of its entities, those that are no longer desired go.
    pub previous: Option<&'p Desired>,
}

/// How a program was installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It was running already.
    Same,
    /// The switch had none.
    First,
    /// Between two packets, with all entities.
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

/// A running program and its entities.
struct Before {
    config: ForwardingPipelineConfig,
    schema: Schema,
    /// What controllers have written.
    entities: Vec<Entity>,
    unreadable: Vec<&'static str>,
}

impl Before {
    async fn read(client: &mut Client) -> Result<Option<Before>, CtrlError> {
        let Some(config) = client.pipeline().await? else { return Ok(None) };
        let Some(info) = config.p4info.clone() else { return Ok(None) };
        let schema = Schema::new(info).map_err(|error| CtrlError::Program(error.to_string()))?;
        let found = readback::read_all(client, &schema).await?;
        let entities = found.entities.into_iter().filter(is_written).collect();
        Ok(Some(Before { config, schema, entities, unreadable: found.unreadable }))
    }
}

/// Entries for which tables have room besides those that are asked for.
struct Room(HashMap<u32, (i64, i64)>);

impl Room {
    fn of(schema: &Schema, asked: &[Entity]) -> Room {
        let tables = schema.info().tables.iter();
        let mut room = Room(tables.map(|table| (id_of(table.preamble.as_ref()), (table.size, 0))).collect());
        for entry in asked.iter().filter_map(entry_of) {
            if let Some((_, used)) = room.0.get_mut(&entry.table_id) {
                *used += 1;
            }
        }
        room
    }

    fn take(&mut self, entity: &Entity) -> Result<(), String> {
        let Some(entry) = entry_of(entity) else { return Ok(()) };
        let Some((size, used)) = self.0.get_mut(&entry.table_id) else { return Ok(()) };
        if *used >= *size {
            return Err(format!("the table has room for {size} entries, and others come first"));
        }
        *used += 1;
        Ok(())
    }
}

/// A table entry that takes room.
fn entry_of(entity: &Entity) -> Option<&TableEntry> {
    match &entity.entity {
        Some(EntityKind::TableEntry(entry)) if !entry.is_default_action => Some(entry),
        _ => None,
    }
}

/// What the switch should hold, and where that comes from.
struct Plan {
    is_same: bool,
    /// Whether the new program can hold everything as it is.
    is_whole: bool,
    /// Those that are asked for, then those that are kept.
    entities: Vec<Entity>,
    /// Number of the former, and their keys.
    first_kept: usize,
    asked: HashSet<Key>,
    dropped: Vec<Dropped>,
    /// Number of those that the switch has refused.
    refused: usize,
}

fn keys(entities: &[Entity]) -> HashSet<Key> {
    entities.iter().map(|entity| key(&normal(entity.clone()))).collect()
}

impl Plan {
    fn new(before: Option<&Before>, wanted: &Desired, rules: Rules<'_>) -> Plan {
        let asked = keys(&wanted.entities);
        let mut plan = Plan {
            is_same: false,
            is_whole: true,
            entities: wanted.entities.clone(),
            first_kept: wanted.entities.len(),
            asked,
            dropped: Vec::new(),
            refused: 0,
        };
        let Some(before) = before else { return plan };
        plan.is_same = is_same(&before.config, wanted);
        let carried = carry(&before.schema, &wanted.schema, &before.entities);
        plan.is_whole = carried.is_whole;
        if rules.clear {
            return plan;
        }
        let previous = rules.previous.filter(|previous| previous.config.p4info == before.config.p4info);
        let left = previous.map(|previous| keys(&previous.entities)).unwrap_or_default();
        let stays = |at: usize| !left.contains(&key(&normal(before.entities[at].clone())));
        let kept = carried.kept.into_iter().filter(|(at, _)| left.is_empty() || stays(*at));
        let mut room = Room::of(&wanted.schema, &plan.entities);
        for (_, entity) in kept {
            if plan.asked.contains(&key(&normal(entity.clone()))) {
                continue;
            }
            match room.take(&entity) {
                Ok(()) => plan.entities.push(entity),
                Err(why) => plan.dropped.push(Dropped { what: client::name(&wanted.schema, &entity), why }),
            }
        }
        let dropped = carried.dropped.into_iter().filter(|(at, _)| left.is_empty() || stays(*at));
        plan.dropped.extend(dropped.map(|(_, dropped)| dropped));
        plan
    }

    /// Number of entities that are kept.
    fn kept(&self) -> usize {
        self.entities.len() - self.first_kept
    }

    /// Gives up entities that the switch refuses although they seem to fit. Returns whether that can help: nothing that is
    /// asked for was refused.
    fn give_up(&mut self, failures: &[UpdateFailure], updates: &[Update]) -> bool {
        let mut refused = HashSet::new();
        for failure in failures {
            let update = failure.number.checked_sub(1).and_then(|at| updates.get(at));
            let Some(update) = update.filter(|update| update.r#type() != update::Type::Delete) else {
                return false;
            };
            let Some(entity) = &update.entity else { return false };
            let key = key(&normal(entity.clone()));
            if self.asked.contains(&key) {
                return false;
            }
            refused.insert(key);
            self.dropped.push(Dropped { what: failure.what.clone(), why: failure.error.to_string() });
        }
        let before = self.entities.len();
        self.entities.retain(|entity| !refused.contains(&key(&normal(entity.clone()))));
        self.refused += refused.len();
        self.entities.len() < before && self.refused <= REFUSED
    }
}

/// What [`install`] would do. It needs no session.
pub async fn preview(client: &mut Client, wanted: &Desired, rules: Rules<'_>) -> Result<Preview, CtrlError> {
    let before = Before::read(client).await?;
    let plan = Plan::new(before.as_ref(), wanted, rules);
    let actual = match &before {
        Some(before) if plan.is_same => before.entities.clone(),
        // Of another program, what is kept is there.
        _ => plan.entities[plan.first_kept..].to_vec(),
    };
    let changes = changes(&plan.entities, actual);
    Ok(Preview { is_same: plan.is_same, kept: plan.kept(), dropped: plan.dropped, changes })
}

/// Installs the program as primary. If something fails, the switch has its old program and entities again; the error says so.
pub async fn install(
    client: &mut Client,
    wanted: &Desired,
    rules: Rules<'_>,
) -> Result<Installed, CtrlError> {
    let before = Before::read(client).await?;
    let mut plan = Plan::new(before.as_ref(), wanted, rules);
    let (how, declined, since) = match &before {
        Some(_) if plan.is_same => (How::Same, None, None),
        Some(_) => match replace(client, wanted, plan.is_whole).await {
            Ok(replaced) => replaced,
            Err(error) => {
                let state = "the switch has its old program and entries".to_owned();
                return Err(CtrlError::NotInstalled { error: Box::new(error), state });
            }
        },
        None => {
            client.set_pipeline(wanted.config.clone()).await?;
            (How::First, None, None)
        }
    };
    match fill(client, wanted, &mut plan, before.as_ref(), how).await {
        Ok(changed) => Ok(Installed {
            how,
            declined,
            kept: plan.kept(),
            dropped: plan.dropped,
            changed,
            unreadable: match (&before, how) {
                (Some(before), How::Replaced) => before.unreadable.clone(),
                _ => Vec::new(),
            },
            gap: since.map(|since| since.elapsed()),
        }),
        Err(error) => Err(undone(client, before, how, error).await),
    }
}

/// Installs the program instead of the running one, with the entities if possible. Otherwise returns why not, and since when
/// the switch has been without them.
async fn replace(
    client: &mut Client,
    wanted: &Desired,
    is_whole: bool,
) -> Result<(How, Option<String>, Option<Instant>), CtrlError> {
    let declined = match is_whole {
        false => "the new program can't hold all entries as they are".to_owned(),
        true => match client.set_pipeline_by(Action::ReconcileAndCommit, wanted.config.clone()).await {
            Ok(()) => return Ok((How::Reconciled, None, None)),
            Err(CtrlError::Refused { status, .. }) if may_be_committed(status.code()) => {
                format!("the switch declined RECONCILE_AND_COMMIT: {}", status.message())
            }
            Err(error) => return Err(error),
        },
    };
    let since = Instant::now();
    client.set_pipeline(wanted.config.clone()).await?;
    Ok((How::Replaced, Some(declined), Some(since)))
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

/// Writes what the switch lacks. Returns how many entities were inserted, modified and deleted, besides the kept ones.
async fn fill(
    client: &mut Client,
    wanted: &Desired,
    plan: &mut Plan,
    before: Option<&Before>,
    how: How,
) -> Result<[usize; 3], CtrlError> {
    let is_fresh = matches!(how, How::First | How::Replaced);
    let has_own =
        wanted.schema.info().tables.iter().any(|table| table.has_initial_entries && !table.is_const_table);
    let cells = if how == How::Same { Vec::new() } else { wanted.initial_cells() };
    let mut known = match (how, before) {
        (How::Same, Some(before)) => {
            Some(readback::Found { entities: before.entities.clone(), unreadable: before.unreadable.clone() })
        }
        _ if is_fresh && !has_own => Some(readback::Found::default()),
        _ => None,
    };
    loop {
        let mut found = match known.take() {
            Some(found) => found,
            None => readback::read_all(client, &wanted.schema).await?,
        };
        found.entities.retain(is_written);
        let mut entities = plan.entities.clone();
        if is_fresh {
            // The program's own entries, unless others have their keys.
            let there = keys(&entities);
            let own =
                found.entities.iter().filter(|entity| !there.contains(&key(&normal((*entity).clone()))));
            entities.extend(own.cloned());
        } else {
            let unread = |entity: &&Entity| found.unreadable.contains(&readback::kind_of(entity));
            let assumed: Vec<Entity> = entities.iter().filter(unread).cloned().collect();
            found.entities.extend(assumed);
        }
        let changes = changes(&entities, found.entities);
        let phases: Vec<&[Update]> =
            changes.phases.iter().map(Vec::as_slice).chain([cells.as_slice()]).collect();
        match client.write_together(&wanted.schema, &phases).await {
            Ok(()) => return Ok(count(plan, &changes, is_fresh)),
            Err(CtrlError::Updates { failures }) if plan.give_up(&failures, &phases.concat()) => {}
            Err(error) => return Err(error),
        }
    }
}

fn count(plan: &Plan, changes: &Changes, is_fresh: bool) -> [usize; 3] {
    let asked = |update: &&Update| {
        let entity = update.entity.as_ref();
        !is_fresh || entity.is_some_and(|entity| plan.asked.contains(&key(&normal(entity.clone()))))
    };
    [update::Type::Insert, update::Type::Modify, update::Type::Delete]
        .map(|kind| changes.iter().filter(asked).filter(|update| update.r#type() == kind).count())
}

/// Brings the old program and its entities back. Returns the error with what the switch runs then.
async fn undone(client: &mut Client, before: Option<Before>, how: How, error: CtrlError) -> CtrlError {
    let state = match before {
        None => "the switch had no program before; it runs the new one now, without these entries".to_owned(),
        Some(before) => match back(client, &before, how).await {
            Ok(()) if how == How::Replaced => {
                "the old program and its entries are back; its counters and registers start again".to_owned()
            }
            Ok(()) => "the switch has its old program and entries".to_owned(),
            Err(second) => format!("and its old state could not be restored: {second}"),
        },
    };
    CtrlError::NotInstalled { error: Box::new(error), state }
}

async fn back(client: &mut Client, before: &Before, how: How) -> Result<(), CtrlError> {
    if how != How::Same && before.config.p4_device_config.is_empty() {
        return Err(CtrlError::Program("the switch does not return its programs".into()));
    }
    let again = before.config.clone();
    match how {
        How::Same => {}
        How::Reconciled => {
            if client.set_pipeline_by(Action::ReconcileAndCommit, again.clone()).await.is_err() {
                client.set_pipeline(again).await?;
            }
        }
        How::Replaced | How::First => client.set_pipeline(again).await?,
    }
    let mut found = readback::read_all(client, &before.schema).await?.entities;
    found.retain(is_written);
    let changes = changes(&before.entities, found);
    let phases: Vec<&[Update]> = changes.phases.iter().map(Vec::as_slice).collect();
    client.write_together(&before.schema, &phases).await
}
