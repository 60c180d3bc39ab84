//! A running program with its BFRuntime schema.

use super::extras::Extras;
use super::fixed::{Fixed, Ports, fixed_text, is_second};
use super::own::Own;
use super::settings::Settings;
use crate::p4runtime::status;
use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::Translation;
use p4rack_entities::Program;
use p4rack_p4rt::google::rpc::Code;
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
    /// What clients have set for its tables.
    pub settings: Settings,
    /// Pipes with entries of their own.
    pub pipes: u32,
}

impl Loaded {
    /// Makes the schema of a program for Tofino's architecture.
    pub fn new(program: Arc<Program>, ports: Ports, pipes: u32) -> Result<Loaded, Status> {
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
        let own = Arc::new(Own::new(schema.clone(), program.clone(), pipes));
        let extras = Arc::new(Extras::new(schema.clone(), program.clone()));
        let of_device = fixed_text(&program.ir.arch);
        schema.add(of_device.as_bytes()).map_err(|error| fault(error.to_string()))?;
        let fixed = Arc::new(Fixed::new(
            Schema::parse(of_device.as_bytes()).map_err(|error| fault(error.to_string()))?,
            ports,
        ));
        Ok(Loaded { program, schema, translation, fixed, own, extras, settings: Settings::default(), pipes })
    }
}
