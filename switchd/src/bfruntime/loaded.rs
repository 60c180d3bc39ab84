//! A running program with its BFRuntime schema.

use super::extras::Extras;
use super::fixed::{DeviceConfig, Fixed, Ports, fixed_text, is_second};
use super::own::Own;
use super::settings::Settings;
use super::shadows::Shadows;
use super::stage::{Residence, Stage};
use crate::core::Isolation;
use crate::p4runtime::{Device, Held, Job, status};
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::Translation;
use p4rack_entities::{Outcomes, Program};
use p4rack_netdev::clock;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::ops::ControlFlow;
use std::sync::Arc;
use tonic::Status;

/// A program with its schema.
#[derive(Debug)]
pub struct Loaded {
    /// The program.
    pub program: Arc<Program>,
    /// Its tables, followed by those of the device.
    pub schema: Schema,
    /// The program's tables and their counterparts in P4Runtime.
    pub translation: Translation,
    /// The tables of the device.
    pub fixed: Arc<Fixed>,
    /// Its tables without counterparts.
    pub own: Arc<Own>,
    /// Fields of its entries without counterparts.
    pub extras: Arc<Extras>,
    /// Its counters and registers, as reads show them that don't ask the switch.
    pub shadows: Shadows,
    /// Clients' settings of its tables.
    pub settings: Settings,
    /// Pipes with entries of their own.
    pub pipes: u32,
    /// The switch in which it is prepared or runs.
    pub stage: Stage,
}

/// State that outlives programs.
#[derive(Clone, Debug, Default)]
pub struct Lasting {
    /// Ports as configured by clients.
    pub ports: Ports,
    /// Settings of the device.
    pub config: DeviceConfig,
}

impl Loaded {
    /// Makes the schema of a program for Tofino's architecture.
    pub fn new(program: Arc<Program>, lasting: &Lasting, pipes: u32, stage: Stage) -> Result<Loaded, Status> {
        if let Some(name) = program.translated_to_strings() {
            let message = format!(
                "type `{name}` is translated to strings for P4Runtime, and BFRuntime has numbers only; use P4Runtime, or \
                 leave @p4runtime_translation out"
            );
            return Err(status(Code::Unimplemented, message));
        }
        let Some(text) = &program.bf_rt else {
            let message = format!(
                "the program is one for {}, and BFRuntime is for tna and t2na; use P4Runtime",
                program.ir.arch
            );
            return Err(status(Code::FailedPrecondition, message));
        };
        let fault = |error: String| {
            status(Code::Internal, format!("the program's schema: {error}; please report it"))
        };
        let mut schema = Schema::parse(text.as_bytes()).map_err(|error| fault(error.to_string()))?;
        let mut translation = Translation::new(&schema, &program.info).map_err(fault)?;
        translation.set_device(is_second(&program.ir.arch));
        let own = Arc::new(Own::new(schema.clone(), program.clone(), pipes, lasting.config.clone()));
        let extras = Arc::new(Extras::new(schema.clone(), program.clone()));
        let shadows = Shadows::new(&schema, &program, &translation);
        let of_device = fixed_text(&program.ir.arch);
        schema.add(of_device.as_bytes()).map_err(|error| fault(error.to_string()))?;
        let fixed = Arc::new(Fixed::new(
            Schema::parse(of_device.as_bytes()).map_err(|error| fault(error.to_string()))?,
            &program.ir.arch,
            lasting.ports.clone(),
            lasting.config.clone(),
        ));
        let settings = Settings::default();
        Ok(Loaded { program, schema, translation, fixed, own, extras, shadows, settings, pipes, stage })
    }
}

impl Loaded {
    /// Does work on its switch: one that is prepared is beside the threads that serve calls.
    pub async fn call<R: Send + 'static>(
        &self,
        device: &Device,
        work: impl FnOnce(&mut Switch, Nanos) -> R + Send + 'static,
    ) -> Result<R, Status> {
        match self.stage.enter().await? {
            Some(mut staged) => device.aside(move || work(&mut staged, clock::now())).await,
            None => Ok(device.handle().call(work).await?),
        }
    }

    /// Does work on its switch, in turns on one that forwards packets.
    pub async fn in_turns<R: Send + 'static>(
        &self,
        device: &Device,
        isolation: Isolation,
        mut work: impl FnMut(&mut Switch, Nanos) -> ControlFlow<R> + Send + 'static,
    ) -> Result<R, Status> {
        let Some(mut staged) = self.stage.enter().await? else {
            return Ok(device.handle().in_turns(isolation, work).await?);
        };
        let to_the_end = move || {
            loop {
                if let ControlFlow::Break(result) = work(&mut staged, clock::now()) {
                    return result;
                }
            }
        };
        device.aside(to_the_end).await
    }

    /// Makes a Write of few updates.
    pub async fn make_small(
        &self,
        device: &Device,
        job: Job,
        isolation: Isolation,
        updates: usize,
    ) -> Result<Outcomes, Status> {
        match self.stage.place() {
            Residence::Runs => Ok(device.make_small(job, isolation, updates).await?),
            _ => self.in_turns(device, isolation, job).await,
        }
    }

    /// Whether it is prepared beside the program that runs.
    pub fn is_beside(&self) -> bool {
        self.stage.place() == Residence::Beside
    }

    /// Keeps the running program from being replaced while it is held. Errors: this program neither runs nor is prepared.
    pub async fn hold<'a>(&self, device: &'a Device) -> Result<Held<'a>, Status> {
        let held = device.hold().await;
        match self.is_beside() || held.runs(&self.program) {
            true => Ok(held),
            false => Err(status(Code::Aborted, "another program was installed meanwhile; try again")),
        }
    }
}
