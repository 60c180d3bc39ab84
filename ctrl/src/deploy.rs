//! Deploys a rack description to a switch: installs the program if it differs, then applies the minimal
//! changes to its contents.

use crate::bmv2;
use crate::client::{self, Client};
use crate::connect::ConnectOptions;
use crate::error::CtrlError;
use crate::readback;
use crate::reconcile::{Changes, changes};
use crate::session::Session;
use p4rack_codegen::rack::Target;
use p4rack_codegen::{Arch, Artefacts, GenerateError, Rack, Scheme};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::forwarding_pipeline_config::Cookie;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update, WriteRequest, update};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::{diff, text};
use prost::Message;
use std::path::Path;

/// The program and contents that a switch should have.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The program. Its cookie identifies it.
    pub config: ForwardingPipelineConfig,
    /// Names of the program.
    pub schema: Schema,
    /// Everything that the switch should hold.
    pub entities: Vec<Entity>,
}

/// A completed step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The switch responds and this controller is primary.
    Connected,
    /// The switch had another program or none; the right one is installed now.
    Installed,
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
    /// The contents were read back and match.
    Verified {
        /// Number of entities.
        entities: usize,
    },
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Change what differs.
    All,
    /// Only report what differs.
    DryRun,
}

impl Desired {
    /// What the switch of a rack should hold. `target` says what kind of switch it is; `compiled` is a compiler's output for
    /// the program, for switches that do not take P4 text.
    pub fn of_rack(
        rack: &Rack,
        scheme: Scheme,
        target: Target,
        compiled: Option<&Path>,
    ) -> Result<Desired, CtrlError> {
        check(target, &rack.under(scheme).map_err(GenerateError::from)?)?;
        let artefacts = p4rack_codegen::generate(rack, scheme, Arch::V1model)?;
        let device_config = device_config(target, &artefacts, compiled)?;
        Desired::of_artefacts(&artefacts, device_config)
    }

    /// The desired state for generated artefacts.
    pub fn of_artefacts(artefacts: &Artefacts, device_config: Vec<u8>) -> Result<Desired, CtrlError> {
        let fault = |what: &str, error: String| CtrlError::Program(format!("generated {what}:\n{error}"));
        let info: P4Info =
            text::parse(&artefacts.p4info).map_err(|error| fault("P4Info", error.to_string()))?;
        let entries: WriteRequest =
            text::parse(&artefacts.entries).map_err(|error| fault("entries", error.to_string()))?;
        let entities = entries.updates.into_iter().filter_map(|update| update.entity).collect();
        Desired::new(info, device_config, entities)
    }

    /// The desired state from its parts.
    pub fn new(info: P4Info, device_config: Vec<u8>, entities: Vec<Entity>) -> Result<Desired, CtrlError> {
        let schema = Schema::new(info.clone()).map_err(|error| CtrlError::Program(error.to_string()))?;
        let cookie = Some(Cookie { cookie: fingerprint(&[&info.encode_to_vec(), &device_config]) });
        let config = ForwardingPipelineConfig { p4info: Some(info), p4_device_config: device_config, cookie };
        Ok(Desired { config, schema, entities })
    }

    /// Updates that set cells of counters and registers. They only make sense on a new program.
    fn initial_cells(&self) -> Vec<Update> {
        let lives = |entity: &&Entity| {
            matches!(
                &entity.entity,
                Some(
                    EntityKind::CounterEntry(_)
                        | EntityKind::RegisterEntry(_)
                        | EntityKind::DirectCounterEntry(_)
                )
            )
        };
        let modify =
            |entity: &Entity| Update { r#type: update::Type::Modify as i32, entity: Some(entity.clone()) };
        self.entities.iter().filter(lives).map(modify).collect()
    }
}

/// Rejects a rack that a switch of this kind cannot implement.
fn check(target: Target, rack: &Rack) -> Result<(), CtrlError> {
    match target {
        Target::Embedded if rack.exchanges_times() && rack.switch.time_unit_ns != 1 => {
            Err(CtrlError::Program(format!(
                "rack {}: the embedded switch counts nanoseconds, the description's unit is {} ns: write \
                 target = \"embedded\" and no time_unit_ns under [switch]",
                rack.name, rack.switch.time_unit_ns
            )))
        }
        Target::Embedded => Ok(()),
        Target::Bmv2 => bmv2::check(rack),
    }
}

/// The `p4_device_config` for a switch of this kind.
fn device_config(
    target: Target,
    artefacts: &Artefacts,
    compiled: Option<&Path>,
) -> Result<Vec<u8>, CtrlError> {
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|error| CtrlError::Program(format!("reading {}: {error}", path.display())))
    };
    match (target, compiled) {
        (_, Some(path)) => read(path),
        (Target::Embedded, None) => Ok(artefacts.p4.clone().into_bytes()),
        (Target::Bmv2, None) => bmv2::compile(artefacts),
    }
}

/// Deploys to one switch. Passes every step to `done`.
pub async fn deploy(
    desired: &Desired,
    target: ConnectOptions,
    extent: Extent,
    mut done: impl FnMut(Step),
) -> Result<(), CtrlError> {
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
    let schema = &desired.schema;
    let runs = runs(client, desired).await?;
    if !runs && extent == Extent::DryRun {
        done(Step::Compared { found: 0, changes: changes(&desired.entities, Vec::new()) });
        return Ok(());
    }
    if runs {
        done(Step::Kept);
    } else {
        client.set_pipeline(desired.config.clone()).await?;
        done(Step::Installed);
    }
    let (found, changes) = compare(client, desired, !runs).await?;
    done(Step::Compared { found, changes: changes.clone() });
    if extent == Extent::DryRun {
        return Ok(());
    }
    let cells = if runs { Vec::new() } else { desired.initial_cells() };
    let updates = changes.len() + cells.len();
    if updates > 0 {
        let phases = changes.phases.iter().map(Vec::as_slice).chain([cells.as_slice()]);
        client.write_phases(schema, phases, updates).await?;
        done(Step::Written { updates });
        let (_, left) = compare(client, desired, false).await?;
        if !left.is_empty() {
            return Err(differs(schema, &left, desired.entities.len()));
        }
    }
    done(Step::Verified { entities: desired.entities.len() });
    Ok(())
}

/// Reads the switch. Returns how many entities it holds and the changes needed. What cannot be read counts as
/// absent if the program is `new`, otherwise as correct.
async fn compare(client: &mut Client, desired: &Desired, new: bool) -> Result<(usize, Changes), CtrlError> {
    let mut found = readback::read(client, &desired.schema, &desired.entities).await?;
    let count = found.entities.len();
    if !new && !found.unreadable.is_empty() {
        tracing::warn!(
            kinds = found.unreadable.join(", "),
            "this switch can't read them, so they are assumed to be right"
        );
        let unread = |entity: &&Entity| found.unreadable.contains(&readback::kind_of(entity));
        let assumed: Vec<Entity> = desired.entities.iter().filter(unread).cloned().collect();
        found.entities.extend(assumed);
    }
    Ok((count, changes(&desired.entities, found.entities)))
}

/// Whether the switch already has the program. The cookie alone is not enough: whoever installed a program
/// chose it, and may have reused an earlier one.
async fn runs(client: &mut Client, desired: &Desired) -> Result<bool, CtrlError> {
    let Some(installed) = client.pipeline().await? else { return Ok(false) };
    let (Some(there), Some(wanted)) = (&installed.p4info, &desired.config.p4info) else { return Ok(false) };
    let is_ours = installed.cookie == desired.config.cookie;
    // A server that does not return the device config: its cookie has to suffice.
    let kept = installed.p4_device_config.is_empty() && is_ours;
    let same_text = kept || installed.p4_device_config == desired.config.p4_device_config;
    let same = same_text && (there == wanted || diff::differences(wanted, there).is_empty());
    if is_ours && !same {
        tracing::warn!("the switch's cookie is the program's, but it runs another one");
    }
    Ok(same)
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

/// A 64-bit hash that identifies a program (FNV-1a). Never 0, which means no cookie.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.max(1)
}
