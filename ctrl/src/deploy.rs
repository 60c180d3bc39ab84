//! Deploys a rack description to a switch: installs the program if it differs, then applies the minimal
//! changes to its contents.

use crate::bfrt;
use crate::client::{self, Client};
use crate::connect::ConnectOptions;
use crate::desired::PortChange;
pub use crate::desired::{BfrtProgram, CompiledProgram, Desired};
use crate::error::CtrlError;
use crate::protocol::Protocol;
use crate::reach::Reach;
use crate::readback;
use crate::reconcile::{Changes, changes};
use crate::session::Session;
use p4rack_p4rt::p4::v1::{Entity, Update, update};
use p4rack_p4rt::schema::Schema;

/// A completed step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The switch responds and this controller is primary.
    Connected,
    /// The switch had another program or none; the right one is installed now.
    Installed,
    /// The switch has another program or none, and this only reports it.
    Missing,
    /// The switch already had the program.
    Kept,
    /// The switch's contents were compared with the desired ones.
    Compared {
        /// Entities found.
        found: usize,
        /// Changes needed.
        changes: Changes,
    },
    /// The changes have been written.
    Written {
        /// Number of updates.
        updates: usize,
    },
    /// The ports were compared with the desired ones, and the differences written unless this is only to report.
    Ports {
        /// Changes needed.
        changes: Vec<PortChange>,
        /// Ports whose rates the chip does not have.
        without: Vec<u16>,
    },
    /// The contents were read back and match.
    Verified {
        /// Number of entities.
        entities: usize,
    },
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Change the differences.
    All,
    /// Only report the differences.
    DryRun,
}

/// Deploys to one switch. Passes every step to `done`.
pub async fn deploy(
    desired: &Desired,
    target: ConnectOptions,
    extent: Extent,
    mut done: impl FnMut(Step),
) -> Result<(), CtrlError> {
    if target.protocol == Protocol::BfRuntime {
        let mut link = bfrt::Link::connect(target).await?;
        done(Step::Connected);
        let brought = bring_to(&mut link, desired, extent, &mut done).await;
        return match brought {
            Ok(()) => Ok(()),
            Err(error) => Err(link.give_back(error).await),
        };
    }
    match extent {
        Extent::DryRun => {
            let mut client = Client::connect(target).await?;
            done(Step::Connected);
            bring(&mut client, desired, extent, &mut done).await
        }
        Extent::All => {
            let mut session = Session::connect(target).await?;
            done(Step::Connected);
            bring(&mut session, desired, extent, &mut done).await
        }
    }
}

/// Like [`deploy`], over an existing connection that may write.
pub async fn bring(
    client: &mut Client,
    desired: &Desired,
    extent: Extent,
    done: &mut impl FnMut(Step),
) -> Result<(), CtrlError> {
    bring_to(client, desired, extent, done).await
}

/// Like [`bring`], whatever the protocol.
pub(crate) async fn bring_to(
    client: &mut impl Reach,
    desired: &Desired,
    extent: Extent,
    done: &mut impl FnMut(Step),
) -> Result<(), CtrlError> {
    let schema = &desired.schema;
    let runs = client.runs(desired).await?;
    if !runs && extent == Extent::DryRun {
        done(Step::Missing);
        done(Step::Compared { found: 0, changes: changes(&desired.entities, Vec::new()) });
        return bring_ports(client, desired, extent, done).await;
    }
    if runs {
        done(Step::Kept);
    } else {
        client.install(desired).await?;
        done(Step::Installed);
    }
    let wanted = client.held(&desired.entities)?;
    let (found, changes) = compare(client, schema, &wanted, !runs).await?;
    done(Step::Compared { found, changes: changes.clone() });
    if extent == Extent::DryRun {
        return bring_ports(client, desired, extent, done).await;
    }
    let cells = if runs { Vec::new() } else { desired.initial_cells() };
    let updates = changes.len() + cells.len();
    if updates > 0 {
        let phases = changes.phases.iter().map(Vec::as_slice).chain([cells.as_slice()]).collect();
        match desired.is_whole {
            true => client.write_together(schema, phases).await?,
            false => client.write_phases(schema, phases, updates).await?,
        }
        done(Step::Written { updates });
        let (_, left) = compare(client, schema, &wanted, false).await?;
        if !left.is_empty() {
            return Err(differs(schema, &left, updates.max(left.len())));
        }
    }
    // Before the start: a driver removed them with the program before, and brings them up with the new one.
    bring_ports(client, desired, extent, done).await?;
    client.start().await?;
    if !runs {
        // A driver may have reset them.
        bring_ports(client, desired, extent, &mut |_| {}).await?;
    }
    done(Step::Verified { entities: desired.entities.len() });
    Ok(())
}

/// Adds the rack's ports, where that is the controller's task.
async fn bring_ports(
    client: &mut impl Reach,
    desired: &Desired,
    extent: Extent,
    done: &mut impl FnMut(Step),
) -> Result<(), CtrlError> {
    let Some(changes) = client.port_changes(desired).await? else { return Ok(()) };
    if extent == Extent::All && !changes.is_empty() {
        client.change_ports(&changes).await?;
        let left = client.port_changes(desired).await?.unwrap_or_default();
        if !left.is_empty() {
            let differences = left.iter().map(|change| format!("{change}: is still to be done")).collect();
            return Err(CtrlError::Differs { differences, total: changes.len() });
        }
    }
    let without = desired.bfrt.as_ref().map_or_else(Vec::new, |program| program.without.clone());
    done(Step::Ports { changes, without });
    Ok(())
}

/// Reads the switch. Returns how many entities it holds and the changes needed. Unreadable entities count as
/// absent if the program is `new`, otherwise as correct.
async fn compare(
    client: &mut impl Reach,
    schema: &Schema,
    wanted: &[Entity],
    new: bool,
) -> Result<(usize, Changes), CtrlError> {
    let mut found = readback::read(client, schema, wanted).await?;
    client.approached(wanted, &mut found.entities)?;
    let count = found.entities.len();
    if !new && !found.unreadable.is_empty() {
        tracing::warn!(
            kinds = found.unreadable.join(", "),
            "this switch can't read them, so they are assumed to be right"
        );
        let unread = |entity: &&Entity| found.unreadable.contains(&readback::kind_of(entity));
        let assumed: Vec<Entity> = wanted.iter().filter(unread).cloned().collect();
        found.entities.extend(assumed);
    }
    Ok((count, changes(wanted, found.entities)))
}

fn differs(schema: &Schema, left: &Changes, total: usize) -> CtrlError {
    let sentence = |update: &Update| {
        let what = update.entity.as_ref().map_or_else(String::new, |entity| client::name(schema, entity));
        let how = match update.r#type() {
            update::Type::Insert => "is not there",
            update::Type::Delete => "exists, but should not",
            _ => "has another value",
        };
        format!("{what}: {how}")
    };
    CtrlError::Differs { differences: left.iter().map(sentence).collect(), total }
}
