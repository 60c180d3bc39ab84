//! The switch behind the gateway, over BFRuntime.

use super::packets::Layouts;
use super::{Compiler, lock};
use crate::bfrt::Link;
use crate::connect::ConnectOptions;
use crate::deploy::Desired;
use crate::error::CtrlError;
use p4rack_p4rt::errors::{self, UpdateError};
use p4rack_p4rt::p4::v1::entity::Entity as Kind;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, MeterConfig, MeterEntry, Update};
use p4rack_p4rt::schema::Schema;
use prost::Message;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tonic::{Code, Status};

/// Headers of the controller's packets, while the program that a controller installed runs. Not even a long call on the
/// switch keeps packets waiting.
pub(super) type Known = Arc<Mutex<Option<Layouts>>>;

/// A connection to the switch, made when it is needed, and the program that a controller installed there.
#[derive(Debug)]
pub(super) struct Behind {
    switch: ConnectOptions,
    compiler: Box<dyn Compiler>,
    link: Option<(Link, Schema)>,
    /// The program as the controller gave it, and as the switch got it.
    installed: Option<(ForwardingPipelineConfig, Desired)>,
    layouts: Known,
    /// Meter configurations as written, by id and index. The switch holds kilobits, and P4Runtime requires reads to
    /// return the written values.
    meters: HashMap<(u32, i64), MeterConfig>,
}

impl Behind {
    pub(super) fn new(switch: ConnectOptions, compiler: Box<dyn Compiler>) -> Behind {
        Behind {
            switch,
            compiler,
            link: None,
            installed: None,
            layouts: Known::default(),
            meters: HashMap::new(),
        }
    }

    /// Headers of the controller's packets.
    pub(super) fn layouts(&self) -> Known {
        self.layouts.clone()
    }

    /// The program: as the controller gave it, or as the switch reports it.
    pub(super) async fn program(&mut self) -> Result<ForwardingPipelineConfig, Status> {
        let (_, names) = self.link().await?;
        let p4info = Some(names.info().clone());
        Ok(match &self.installed {
            Some((config, _)) => config.clone(),
            None => ForwardingPipelineConfig { p4info, ..Default::default() },
        })
    }

    /// Compiles a program for the switch. Errors: it can't be one.
    pub(super) fn check(&self, config: &ForwardingPipelineConfig) -> Result<(Desired, Layouts), Status> {
        let invalid = |error: String| Status::invalid_argument(error);
        let info = config.p4info.clone().ok_or_else(|| invalid("config.p4info is not set".into()))?;
        let (program, binary) = self.compiler.compile(&info, &config.p4_device_config).map_err(invalid)?;
        let mut desired =
            Desired::new(info, binary, Vec::new()).map_err(|error| invalid(error.to_string()))?;
        let layouts = Layouts::of(&desired.schema).map_err(invalid)?;
        desired.bfrt = Some(program);
        Ok((desired, layouts))
    }

    /// Installs a program, without entries, and adds its ports.
    pub(super) async fn install(&mut self, config: ForwardingPipelineConfig) -> Result<(), Status> {
        let (desired, layouts) = self.check(&config)?;
        let ports = desired.bfrt.as_ref().map(|program| program.ports.clone()).unwrap_or_default();
        let mut link = match self.link.take() {
            Some((link, _)) => link,
            None => Link::connect(self.switch.clone()).await.map_err(status)?,
        };
        link.remember().await;
        let done = async {
            link.install(&desired).await?;
            let changes = link.port_changes(&ports).await?;
            link.change_ports(&changes).await?;
            link.start().await
        };
        // After a link that failed half-way the next call makes another one.
        if let Err(error) = done.await {
            return Err(status(link.give_back(error).await));
        }
        self.link = Some((link, desired.schema.clone()));
        self.installed = Some((config, desired));
        *lock(&self.layouts) = Some(layouts);
        self.meters.clear();
        Ok(())
    }

    /// Reads what the entities name.
    pub(super) async fn read(&mut self, entities: Vec<Entity>) -> Result<Vec<Entity>, Status> {
        let (link, _) = self.link().await?;
        let read = link.read(entities).await;
        let mut found = read.map_err(|error| self.failed(error))?;
        found.iter_mut().for_each(|entity| self.restore(entity));
        Ok(found)
    }

    /// Restores a meter's cell to the written configuration, if the switch holds that configuration's conversion.
    fn restore(&self, entity: &mut Entity) {
        let (Some((link, _)), Some(Kind::MeterEntry(cell))) = (&self.link, &entity.entity) else { return };
        let Some(written) = cell_of(cell).and_then(|cell| self.meters.get(&cell)) else { return };
        let cell = MeterEntry { config: Some(*written), ..*cell };
        let as_written = Entity { entity: Some(Kind::MeterEntry(cell)) };
        if link.held(std::slice::from_ref(&as_written)).is_ok_and(|held| held[..] == [entity.clone()]) {
            *entity = as_written;
        }
    }

    /// Remembers a meter's written configuration.
    fn remember(&mut self, entity: Option<&Entity>) {
        let Some(Kind::MeterEntry(cell)) = entity.and_then(|entity| entity.entity.as_ref()) else { return };
        match (cell_of(cell), &cell.config) {
            (Some(key), Some(config)) => drop(self.meters.insert(key, *config)),
            (Some(key), None) => drop(self.meters.remove(&key)),
            (None, _) => self.meters.retain(|(id, _), _| *id != cell.meter_id),
        }
    }

    /// Writes updates, each for itself.
    pub(super) async fn write(&mut self, updates: &[Update]) -> Result<(), Status> {
        let (link, names) = self.link().await?;
        let written = link.write(names, updates).await;
        let failures = match written {
            Ok(()) => Vec::new(),
            Err(CtrlError::Updates { failures }) => failures,
            Err(error) => return Err(self.failed(error)),
        };
        let mut outcomes: Vec<Result<(), UpdateError>> = updates.iter().map(|_| Ok(())).collect();
        for failure in failures {
            if let Some(outcome) = outcomes.get_mut(failure.number.wrapping_sub(1)) {
                *outcome = Err(failure.error);
            }
        }
        for (update, _) in updates.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()) {
            self.remember(update.entity.as_ref());
        }
        let packed = errors::pack(&outcomes);
        packed.map_or(Ok(()), |packed| {
            let details = packed.encode_to_vec().into();
            Err(Status::with_details(Code::Unknown, packed.message, details))
        })
    }

    /// The connection, bound to the program that runs, with its names.
    async fn link(&mut self) -> Result<(&mut Link, &Schema), Status> {
        if self.link.is_none() {
            let mut link = Link::connect(self.switch.clone()).await.map_err(status)?;
            let ours = match &self.installed {
                Some((_, desired)) if link.runs(desired).await.map_err(status)? => {
                    Some(desired.schema.clone())
                }
                _ => None,
            };
            let names = match ours {
                Some(names) => names,
                None => {
                    self.installed = None;
                    self.meters.clear();
                    *lock(&self.layouts) = None;
                    link.schema().await.map_err(status)?
                }
            };
            self.link = Some((link, names));
        }
        match &mut self.link {
            Some((link, names)) => Ok((link, names)),
            None => Err(Status::unavailable("not connected to the switch")),
        }
    }

    /// The status of a call that failed. If the connection is broken, the next call makes another one.
    fn failed(&mut self, error: CtrlError) -> Status {
        let status = status(error);
        let kept = [
            Code::InvalidArgument,
            Code::NotFound,
            Code::AlreadyExists,
            Code::Unimplemented,
            Code::OutOfRange,
            Code::ResourceExhausted,
            Code::Unknown,
        ];
        if !kept.contains(&status.code()) {
            self.link = None;
        }
        status
    }
}

/// Id and index of a single cell.
fn cell_of(cell: &MeterEntry) -> Option<(u32, i64)> {
    cell.index.as_ref().map(|index| (cell.meter_id, index.index))
}

/// An error of the switch's side as the answer to a controller.
fn status(error: CtrlError) -> Status {
    match error {
        CtrlError::Refused { call, status } => {
            Status::new(status.code(), format!("the switch refused {call}: {}", status.message()))
        }
        CtrlError::NotInstalled { error, state } => {
            let status = status(*error);
            Status::new(status.code(), format!("{}; {state}", status.message()))
        }
        CtrlError::Program(_) => Status::failed_precondition(error.to_string()),
        CtrlError::Input(_) => Status::invalid_argument(error.to_string()),
        _ => Status::unavailable(error.to_string()),
    }
}
