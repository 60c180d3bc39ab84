//! Translates a typed program to its executable form, once, when it is loaded.

mod arch;
mod builder;
mod expr;
mod externs;
mod pipeline;
mod stmt;
mod tables;

pub(crate) use pipeline::InstanceShape;
pub use pipeline::Pipeline;

use crate::arch::Arch;
use crate::code::ops::{Op, Slot};
use crate::code::plans::EGRESS;
use crate::code::plans::{ActionPlan, ErrorNumbers, Late};
use crate::error::CompileError;
#[cfg(feature = "native")]
use crate::native::{Native, Source};
use builder::{Builder, kind};
use p4rack_p4::ir::{InstanceKind, Program};
use pipeline::ValueSetShape;
use std::sync::Arc;

/// Maximum cells of a counter, meter or register.
const MAX_CELLS: u64 = 1 << 24;

impl Pipeline {
    /// Translates a program. Rejects constructs that this switch does not support, by name. Changes nothing
    /// that runs.
    pub fn compile(program: &Program) -> Result<Pipeline, CompileError> {
        #[allow(unused_mut)]
        let mut pipeline = Pipeline::translate(program, false)?;
        #[cfg(feature = "native")]
        {
            let (code, tables, registers) = (&pipeline.code, &pipeline.initial, &pipeline.registers());
            pipeline.native = Native::compile(Source { code, tables, registers }).map(Arc::new);
        }
        Ok(pipeline)
    }

    /// Translates a program for the interpreter, which runs on machines without a code generator and serves
    /// as reference for the machine code.
    pub fn compile_interpreted(program: &Program) -> Result<Pipeline, CompileError> {
        Pipeline::translate(program, false)
    }

    /// Like [`Pipeline::compile`], with a program that records the events of each packet
    /// ([`crate::Switch::poll_trace`]).
    pub fn compile_traced(program: &Program) -> Result<Pipeline, CompileError> {
        Pipeline::translate(program, true)
    }

    fn translate(program: &Program, traced: bool) -> Result<Pipeline, CompileError> {
        let arch = Arch::of(program)?;
        let mut builder = Builder::new(program, arch)?;
        builder.traced = traced;
        builder.code.errors = arch.errors().unwrap_or_else(|| error_numbers(program));
        let instances = instances(program)?;
        arch::compile(&mut builder)?;
        let late = builder.code.entries.iter().find(|entry| entry.half == EGRESS);
        let late = late.map_or(&[][..], |entry| &builder.code.ops[entry.start as usize..]);
        let (is_early, is_empty) =
            (late.iter().all(|op| op.is_early()), matches!(late.first(), None | Some(Op::End)));
        builder.code.late = Late { is_early, is_empty, ..Late::default() };

        let mut plans = vec![ActionPlan::default(); program.actions.len()];
        for (index, action) in program.actions.iter().enumerate() {
            let users = program.tables.iter().zip(&builder.applied);
            let listed = |table: &p4rack_p4::ir::Table| {
                table.actions.iter().any(|listed| listed.action.0 as usize == index)
            };
            builder.half =
                users.filter(|(table, _)| listed(table)).map(|(_, half)| half).fold(0, |a, b| a | b);
            if !program.tables.iter().any(listed) {
                continue;
            }
            let (mut args, mut words) = (Vec::new(), Vec::new());
            for param in &action.params {
                let slot = builder.var(param.var)?;
                let count = kind(param.ty).words() as Slot;
                args.extend((0..count).map(|word| slot + word));
                words.push(count);
            }
            builder.action = Some(index);
            plans[index] = ActionPlan { pc: builder.action(&action.body)?, args, words };
        }

        arch::settle(&mut builder);

        let mut tables = Vec::new();
        let mut initial = Vec::new();
        for table in &program.tables {
            let (shape, state, actions) = tables::table(program, table, &plans)?;
            builder.code.actions.push(actions);
            tables.push(shape);
            initial.push(state);
        }
        let value_sets = program
            .value_sets
            .iter()
            .map(|set| ValueSetShape {
                name: set.named.name.clone(),
                size: set.size,
                fields: set.fields.iter().map(|(_, ty, _)| kind(*ty)).collect(),
            })
            .collect();
        let digests = program
            .digests
            .iter()
            .map(|digest| digest.fields.iter().map(|(_, ty)| kind(*ty)).collect())
            .collect();
        Ok(Pipeline {
            arch,
            code: Arc::new(builder.finish()?),
            tables,
            instances,
            value_sets,
            digests,
            homes: homes(program),
            errors: arch.errors().map_or_else(|| program.errors.clone(), |numbers| error_names(&numbers)),
            traced,
            initial,
            #[cfg(feature = "native")]
            native: None,
        })
    }
}

/// Number of the pipeline of each table, extern object and value set. Where there are several, names begin with
/// theirs.
fn homes(program: &Program) -> [Vec<usize>; 3] {
    let of = |named: &p4rack_p4::ir::Named| {
        let own = |pipeline: &String| {
            named.name.strip_prefix(pipeline.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        program.pipelines.iter().position(own).unwrap_or(0)
    };
    [
        program.tables.iter().map(|table| of(&table.named)).collect(),
        program.instances.iter().map(|instance| of(&instance.named)).collect(),
        program.value_sets.iter().map(|set| of(&set.named)).collect(),
    ]
}

/// Names by number, for numbers that are not the program's.
fn error_names(numbers: &ErrorNumbers) -> Vec<String> {
    let named = [
        (0, "NoError"),
        (numbers.no_match, "NoMatch"),
        (numbers.packet_too_short, "PacketTooShort"),
        (numbers.stack_out_of_bounds, "StackOutOfBounds"),
        (numbers.parser_invalid_argument, "ParserInvalidArgument"),
    ];
    let last = named.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let name = |number| named.iter().find(|(of, _)| *of == number).map_or("", |(_, name)| *name);
    (0..=last).map(|number| name(number).to_owned()).collect()
}

fn error_numbers(program: &Program) -> ErrorNumbers {
    let number = |name: &str| program.errors.iter().position(|error| error == name).unwrap_or(0) as u64;
    ErrorNumbers {
        packet_too_short: number("PacketTooShort"),
        no_match: number("NoMatch"),
        stack_out_of_bounds: number("StackOutOfBounds"),
        header_too_short: number("HeaderTooShort"),
        parser_invalid_argument: number("ParserInvalidArgument"),
    }
}

fn instances(program: &Program) -> Result<Vec<InstanceShape>, CompileError> {
    let mut shapes = Vec::new();
    for instance in &program.instances {
        let (size, words) = match &instance.kind {
            InstanceKind::Counter { size, .. }
            | InstanceKind::Meter { size, .. }
            | InstanceKind::Smoother { size, .. } => (*size, 1),
            InstanceKind::Register { size, ty, .. } => (*size, kind(*ty).words() as u64),
            _ => (0, 1),
        };
        if size.saturating_mul(words) > MAX_CELLS {
            return Err(CompileError::TooBig {
                object: instance.named.name.clone(),
                needed: size.saturating_mul(words),
                limit: MAX_CELLS,
                unit: "cells of 64 bits",
            });
        }
        shapes.push(InstanceShape { name: instance.named.name.clone(), kind: instance.kind.clone() });
    }
    if shapes.len() > usize::from(u16::MAX) {
        return Err(CompileError::TooBig {
            object: program.name.clone(),
            needed: shapes.len() as u64,
            limit: u16::MAX.into(),
            unit: "extern objects",
        });
    }
    Ok(shapes)
}
