//! What variables, headers and stacks of the IR are called in the JSON.

use super::Refused;
use crate::names::{FIELDS, SCALARS, STANDARD, VALID};
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{Header, HeaderId, Program, Stack, StackId, Ty, VarId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where the JSON has a variable.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A field: instance and name.
    Field(String, String),
    /// `nextIndex` of a stack.
    Next(StackId),
}

/// The field of an instance that stands for a variable of variable length.
pub(super) const VARBIT_FIELD: &str = "field";

/// A field of the header of scalars.
#[derive(Debug)]
pub(super) struct Scalar {
    pub name: String,
    pub ty: Ty,
}

/// Names in the JSON.
#[derive(Debug)]
pub(super) struct Places {
    places: BTreeMap<VarId, Place>,
    /// Fields of the header of scalars, in order.
    pub scalars: Vec<Scalar>,
    /// Variables of variable length, by the names of their instances, with their longest length in bits: a header has one such
    /// field at most.
    pub varbits: Vec<(String, u32)>,
    names: BTreeSet<String>,
    /// Names of headers, by [`HeaderId`].
    pub headers: Vec<String>,
    /// Names of header types, by [`HeaderId`].
    pub types: Vec<String>,
    /// Names of stacks, by [`StackId`]. The stacks of a union's members have the name of their union's stack.
    pub stacks: Vec<String>,
    /// Unions that are in no stack: name and members.
    pub unions: Vec<(String, Vec<HeaderId>)>,
}

impl Places {
    pub fn new(program: &Program) -> Places {
        let mut places = Places {
            places: BTreeMap::new(),
            scalars: Vec::new(),
            varbits: Vec::new(),
            names: BTreeSet::from([SCALARS.to_owned(), STANDARD.to_owned()]),
            headers: Vec::new(),
            types: Vec::new(),
            stacks: Vec::new(),
            unions: Vec::new(),
        };
        places.name_types(program);
        for header in &program.headers {
            let name = places.unique(instance(program, &header.name, header.valid));
            let field = |field: &str| Place::Field(name.clone(), field.to_owned());
            places.places.insert(header.valid, field(VALID));
            for part in &header.fields {
                places.places.insert(part.var, field(&part.name));
            }
            places.headers.push(name);
        }
        for (at, stack) in program.stacks.iter().enumerate() {
            let same = program.stacks[..at].iter().position(|other| other.next == stack.next);
            let name = match same {
                Some(first) => places.stacks[first].clone(),
                None => {
                    let id = StackId(at as u32);
                    places.places.insert(stack.next, Place::Next(id));
                    let whole = stack_name(program, stack);
                    places.unique(instance(program, &whole, stack.next))
                }
            };
            places.stacks.push(name);
        }
        for members in unions(program) {
            let first = &program.headers[members[0].0 as usize];
            let whole = parent(&first.name);
            let name = places.unique(instance(program, whole, first.valid));
            places.unions.push((name, members));
        }
        for field in &program.intrinsics {
            let known = FIELDS.iter().find(|known| known.role == field.role);
            if let Some(known) = known {
                let place = Place::Field(STANDARD.to_owned(), known.name.to_owned());
                places.places.insert(field.var, place);
            }
        }
        places
    }

    /// Types of the same name and different fields get names of their own.
    fn name_types(&mut self, program: &Program) {
        let mut known: BTreeMap<String, Vec<(String, Ty)>> = BTreeMap::new();
        for header in &program.headers {
            let shape = shape(program, header);
            let mut name = header.type_name.clone();
            let mut number = 0;
            while known.get(&name).is_some_and(|other| *other != shape)
                || matches!(&*name, SCALARS | STANDARD)
            {
                number += 1;
                name = format!("{}_{number}", header.type_name);
            }
            known.insert(name.clone(), shape);
            self.types.push(name);
        }
    }

    fn unique(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }

    /// Where a variable is. Scalars get their place when they are first asked for.
    pub fn of(&mut self, program: &Program, var: VarId, at: Span) -> Result<Place, Refused> {
        if let Some(place) = self.places.get(&var) {
            return Ok(place.clone());
        }
        let variable = &program.vars[var.0 as usize];
        match variable.ty {
            Ty::Varbit(width) => {
                let instance = self.unique(variable.name.clone());
                let place = Place::Field(instance.clone(), VARBIT_FIELD.to_owned());
                self.varbits.push((instance, width));
                self.places.insert(var, place.clone());
                return Ok(place);
            }
            Ty::Int(1) => return Err(Refused::new(at, format!("`int<1>`, `{}`", variable.name))),
            _ => {}
        }
        let mut name = variable.name.clone();
        let mut number = 0;
        while self.scalars.iter().any(|scalar| scalar.name == name) {
            number += 1;
            name = format!("{}_{number}", variable.name);
        }
        self.scalars.push(Scalar { name: name.clone(), ty: variable.ty });
        let place = Place::Field(SCALARS.to_owned(), name);
        self.places.insert(var, place.clone());
        Ok(place)
    }

    /// The name of a header as an argument.
    pub fn header(&self, header: HeaderId) -> Value {
        json!(self.headers[header.0 as usize])
    }
}

/// Names and types of a header's fields.
pub(super) fn shape(program: &Program, header: &Header) -> Vec<(String, Ty)> {
    let field = |var: VarId| program.vars[var.0 as usize].ty;
    header.fields.iter().map(|part| (part.name.clone(), field(part.var))).collect()
}

/// The name of an instance: that of a parameter loses the parameter's own name, as in p4c's files.
fn instance(program: &Program, name: &str, var: VarId) -> String {
    let is_shared = (var.0 as usize) < program.shared_vars;
    match name.split_once('.') {
        Some((_, rest)) if is_shared => rest.to_owned(),
        _ => name.to_owned(),
    }
}

/// Everything before the last dot.
fn parent(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(whole, _)| whole)
}

/// The stacks of a union's members are one stack of unions.
fn stack_name(program: &Program, stack: &Stack) -> String {
    let is_union = program.stacks.iter().filter(|other| other.next == stack.next).count() > 1
        || stack
            .elements
            .first()
            .is_some_and(|first| !program.headers[first.0 as usize].union_siblings.is_empty());
    if is_union { parent(&stack.name).to_owned() } else { stack.name.clone() }
}

/// All unions, each by its members in order.
pub(super) fn unions(program: &Program) -> Vec<Vec<HeaderId>> {
    let mut unions: Vec<Vec<HeaderId>> = Vec::new();
    for (at, header) in program.headers.iter().enumerate() {
        let id = HeaderId(at as u32);
        if !header.union_siblings.is_empty() && !unions.iter().any(|members| members.contains(&id)) {
            let mut members = header.union_siblings.clone();
            members.push(id);
            members.sort_unstable();
            unions.push(members);
        }
    }
    unions
}
