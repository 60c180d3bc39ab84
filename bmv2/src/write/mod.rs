//! Writes a program as BMv2's JSON.
//!
//! ```text
//!  IR ─ flow ─▶ blocks with jumps ─┬─ pipeline: tables, conditionals
//!                                  ├─ action:   primitives with jumps
//!                                  └─ parser:   states
//! ```

mod action;
mod checksum;
mod depth;
mod expr;
mod externs;
mod flow;
mod objects;
mod parser;
mod pipeline;
mod places;
mod primitive;
mod table;
mod unions;
mod visit;

use flow::Reads;
use p4rack_p4::ast::Span;
use p4rack_p4::ir::{Expr, InstanceId, Program, Role, TableId, Task, Ty, Var, VarId};
use p4rack_p4::{Compiled, Diagnostic, Diagnostics};
use places::Places;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the format that is written: major, minor. Every version with the same major number is read.
pub const VERSION: [u32; 2] = [2, 23];

/// Something that BMv2, or its JSON, can't express.
#[derive(Clone, Debug)]
struct Refused {
    at: Span,
    message: String,
}

impl Refused {
    fn new(at: Span, what: impl Into<String>) -> Refused {
        Refused { at, message: format!("BMv2 has no {}", what.into()) }
    }
}

type Result<T> = std::result::Result<T, Refused>;

/// The JSON that BMv2's `simple_switch` and `simple_switch_grpc` load, for a program for v1model.
///
/// ```
/// let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/forward.p4"));
/// let compiled = p4rack_p4::compile(text, "forward.p4", &p4rack_p4::Options::default())?;
/// let json = p4rack_bmv2::write(&compiled)?;
/// assert_eq!(json["pipelines"][0]["tables"][0]["name"], "I.hosts");
/// # Ok::<(), p4rack_p4::Diagnostics>(())
/// ```
pub fn write(compiled: &Compiled) -> std::result::Result<Value, Diagnostics> {
    let written = Writer::new(compiled.program.clone()).program();
    written.map_err(|refused| {
        let mut said = Diagnostic::error(refused.at, refused.message);
        if compiled.program.arch != "v1model" {
            said = said.help("p4rack's own switch runs the text of this program");
        }
        Diagnostics::new(compiled.warnings.sources().clone(), vec![said])
    })
}

struct Writer {
    program: Program,
    places: Places,
    reads: Reads,
    /// The statement that is being written.
    at: Span,
    /// The parameters of the action that is being written, by position.
    params: BTreeMap<VarId, usize>,
    /// How many expressions the one that is being written is in.
    nesting: usize,
    /// Whether a parser is being written.
    in_parser: bool,
    actions: Vec<Value>,
    calculations: Vec<Value>,
    learn_lists: Vec<Value>,
    /// Ids of field lists, by index in the program.
    lists: Vec<u32>,
    /// What a table's direct meter writes its colour to.
    colours: BTreeMap<InstanceId, VarId>,
    /// Fields with the keys of tables that are no fields, by position of the key.
    keys: BTreeMap<(TableId, usize), VarId>,
    /// Last numbers of names that are made up.
    numbers: BTreeMap<&'static str, usize>,
    /// Ids of the actions of the program, by [`p4rack_p4::ir::ActionId`].
    action_ids: Vec<usize>,
    /// The next id of a state, which are unique among all parsers.
    next_state: usize,
    /// Tables that are already written.
    written: Vec<TableId>,
}

impl Writer {
    fn new(mut program: Program) -> Writer {
        unions::join_shifts(&mut program);
        let mut reads = Reads::new();
        visit::program(&program, &mut |expr| {
            if let Expr::Var(var) = expr {
                *reads.entry(*var).or_default() += 1;
            }
        });
        Writer {
            places: Places::new(&program),
            reads,
            at: program.main,
            params: BTreeMap::new(),
            nesting: 0,
            in_parser: false,
            actions: Vec::new(),
            calculations: Vec::new(),
            learn_lists: Vec::new(),
            lists: Vec::new(),
            colours: BTreeMap::new(),
            keys: BTreeMap::new(),
            numbers: BTreeMap::new(),
            action_ids: Vec::new(),
            next_state: 0,
            written: Vec::new(),
            program,
        }
    }

    /// Refuses something in the statement that is being written.
    fn refuse<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Refused::new(self.at, what))
    }

    /// A name that is made up.
    fn name(&mut self, start: &'static str) -> String {
        let number = self.numbers.entry(start).or_default();
        *number += 1;
        format!("{start}{}", *number - 1)
    }

    /// A new variable.
    fn temp(&mut self, start: &'static str, ty: Ty) -> VarId {
        let name = self.name(start);
        self.program.vars.push(Var { name, ty });
        VarId(self.program.vars.len() as u32 - 1)
    }

    fn program(mut self) -> Result<Value> {
        if self.program.arch != "v1model" {
            return self.refuse(format!("program for {}: its switches run v1model", self.program.arch));
        }
        let lists = self.field_lists()?;
        self.table_actions()?;
        let parser = self.parser()?;
        let ingress = self.pipeline("ingress", Role::ingress(Task::Process))?;
        let egress = self.pipeline("egress", Role::egress(Task::Process))?;
        let checksums = self.checksums()?;
        let deparser = self.deparser()?;
        let [counters, meters, registers] = self.arrays()?;
        let errors: Vec<Value> =
            self.program.errors.iter().enumerate().map(|(number, name)| json!([name, number])).collect();
        let enums: Vec<Value> = self.program.enums.iter().map(enumeration).collect();
        let headers = self.headers()?;
        let mut root = json!({
            "program": format!("{}.p4", self.program.name),
            "__meta__": {
                "version": VERSION,
                "compiler": concat!("https://github.com/p4rack/p4rack ", env!("CARGO_PKG_VERSION")),
            },
            "field_lists": lists,
            "errors": errors,
            "enums": enums,
            "parsers": [parser],
            "parse_vsets": self.value_sets(),
            "deparsers": [deparser],
            "meter_arrays": meters,
            "counter_arrays": counters,
            "register_arrays": registers,
            "calculations": self.calculations,
            "learn_lists": self.learn_lists,
            "actions": self.actions,
            "pipelines": [ingress, egress],
            "checksums": checksums,
            "force_arith": [],
            "extern_instances": [],
            "field_aliases": objects::aliases(),
        });
        if let Some(root) = root.as_object_mut() {
            root.extend(headers);
        }
        Ok(root)
    }
}

fn enumeration((name, members): &(String, Vec<String>)) -> Value {
    let entries: Vec<Value> =
        members.iter().enumerate().map(|(number, member)| json!([member, number])).collect();
    json!({ "name": name, "entries": entries })
}
