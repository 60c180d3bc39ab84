//! Commands of simple_switch_CLI on a switch that runs in this process.
//!
//! ```text
//!  client ── JSON lines, 127.0.0.1:9090 ──▶ serve ─ Runtime ── P4Runtime, a role of its own ──▶ the switch's server
//!                                                   │ handles of entries, multicast nodes
//!                                                   └─ queues: the switch itself
//!  words     names and values, as BMv2 writes them
//!  list      all commands, with their usage
//!  refusals  BMv2's names of what the switch refuses
//!  tables, adding, dump, members, cells, replication, device     the commands
//! ```
//!
//! P4Runtime has neither handles nor multicast nodes, so they are here, and last as long as the switch. Entries that a
//! controller writes get a handle when they are first listed.

mod adding;
mod cells;
mod device;
mod dump;
mod handles;
mod list;
mod members;
mod refusals;
mod replication;
mod serve;
mod tables;
mod words;

pub use serve::{Answer, GREETING, Names, Request, serve};

use handles::Handles;
use p4rack_ctrl::{Client, ConnectOptions, CtrlError, RoleConfig, Session};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update, update};
use p4rack_p4rt::schema::{Schema, id_of};
use p4rack_p4rt::stratum::P4RoleConfig;
use p4rack_switchd::core::Handle;
use p4rack_switchd::driver::PortSpec;
use replication::Nodes;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Role in which the commands write, so that they don't replace a controller.
const ROLE: &str = "simple_switch_CLI";

/// Properties of the switch that only its process knows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Ports and their interfaces.
    pub ports: Vec<PortSpec>,
    /// P4Runtime device id.
    pub device_id: u64,
    /// When the switch was started.
    pub started: Instant,
}

/// Why a command failed, as a line for its user.
#[derive(Debug)]
struct Failure(String);

type Done<T = ()> = Result<T, Failure>;

/// `Error: …`, for mistakes in a command.
fn mistake<T>(what: impl std::fmt::Display) -> Done<T> {
    Err(Failure(format!("Error: {what}")))
}

impl From<CtrlError> for Failure {
    fn from(error: CtrlError) -> Failure {
        Failure(format!("Error: {error}"))
    }
}

/// The state behind the commands.
#[derive(Debug)]
struct Runtime {
    facts: Facts,
    handle: Handle,
    client: Client,
    /// Open while a client's writes need it; a session for each program, whose objects its role names.
    session: Option<Session>,
    schema: Option<Arc<Schema>>,
    entries: HashMap<u32, Handles>,
    nodes: Nodes,
    /// A program that waits for `swap_configs`.
    loaded: Option<ForwardingPipelineConfig>,
}

/// A command that is carried out.
struct Call<'r> {
    runtime: &'r mut Runtime,
    schema: Arc<Schema>,
    /// What it prints.
    out: String,
    /// Text of a file that the client has read for it.
    given: Option<String>,
    /// Text for a file that the client writes for it.
    taken: Option<String>,
}

impl Runtime {
    async fn connect(facts: Facts, handle: Handle, addr: String) -> Result<Runtime, CtrlError> {
        let client = Client::connect(ConnectOptions::new(addr, facts.device_id)).await?;
        let (entries, nodes) = (HashMap::new(), Nodes::default());
        Ok(Runtime { facts, handle, client, session: None, schema: None, entries, nodes, loaded: None })
    }

    /// The program's objects. Forgets those of an earlier program.
    async fn schema(&mut self) -> Result<Arc<Schema>, CtrlError> {
        let schema = self.client.schema().await?;
        match &self.schema {
            Some(known) if known.info() == schema.info() => Ok(known.clone()),
            _ => {
                self.forget();
                Ok(self.schema.insert(Arc::new(schema)).clone())
            }
        }
    }

    /// Forgets what belongs to a program's state.
    fn forget(&mut self) {
        self.session = None;
        self.schema = None;
        self.entries.clear();
        self.nodes = Nodes::default();
    }

    /// A session that may write all of the program's objects, and gets no packets of the controller's.
    async fn session(&mut self, schema: &Schema) -> Result<&mut Session, CtrlError> {
        if self.session.is_none() {
            let config =
                P4RoleConfig { shared_p4_ids: ids(schema), can_push_pipeline: true, ..Default::default() };
            let target = ConnectOptions {
                role: ROLE.to_owned(),
                role_config: Some(RoleConfig(config)),
                ..self.client.target().clone()
            };
            self.session = Some(Session::connect(target).await?);
        }
        match &mut self.session {
            Some(session) => Ok(session),
            None => Err(CtrlError::Ended("it has no session".to_owned())),
        }
    }

    /// The last client has left: nothing is kept open for it.
    fn rest(&mut self) {
        self.session = None;
    }
}

/// Ids of all objects that a role may name.
fn ids(schema: &Schema) -> Vec<u32> {
    let info = schema.info();
    macro_rules! of {
        ($($list:ident),*) => {
            [$(info.$list.iter().map(|object| id_of(object.preamble.as_ref())).collect::<Vec<u32>>()),*].concat()
        };
    }
    of!(tables, action_profiles, counters, meters, registers, value_sets)
}

/// Whether a session can't be used after an error. After updates that the switch refuses it can; after others, an answer may
/// still be on its way, or the stream has ended.
fn ends_session(error: &CtrlError) -> bool {
    !matches!(error, CtrlError::Updates { .. })
}

impl Call<'_> {
    async fn read(&mut self, kind: EntityKind) -> Result<Vec<EntityKind>, CtrlError> {
        let found = self.runtime.client.read(vec![Entity { entity: Some(kind) }]).await?;
        Ok(found.into_iter().filter_map(|entity| entity.entity).collect())
    }

    async fn write(&mut self, kind: update::Type, entity: EntityKind) -> Result<(), CtrlError> {
        self.write_all(vec![(kind, entity)]).await
    }

    async fn write_all(&mut self, all: Vec<(update::Type, EntityKind)>) -> Result<(), CtrlError> {
        let update = |(kind, entity): (update::Type, EntityKind)| Update {
            r#type: kind.into(),
            entity: Some(Entity { entity: Some(entity) }),
        };
        let updates: Vec<Update> = all.into_iter().map(update).collect();
        if updates.is_empty() {
            return Ok(());
        }
        let schema = self.schema.clone();
        let session = self.runtime.session(&schema).await?;
        let done = session.write(&schema, &updates).await;
        if done.as_ref().is_err_and(ends_session) {
            // The next command tries with another one.
            self.runtime.session = None;
        }
        done
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_outlives_refused_updates_alone() {
        assert!(!ends_session(&CtrlError::Updates { failures: Vec::new() }));
        assert!(ends_session(&CtrlError::Timeout("an answer".to_owned(), 5000)));
        assert!(ends_session(&CtrlError::Ended("it was closed".to_owned())));
    }
}
